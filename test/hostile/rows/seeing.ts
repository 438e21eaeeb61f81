/** Owns: checks that several rows make after an attack. */
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { toolResultTexts } from "../../support/model.ts";
import type { Arena } from "../support/arena.ts";

/** The limit for one result that the model gets; the extension shows fewer characters of any result. */
const RESULT_CHARS = 60_000;

/** Reports each result for the model that is longer than the limit. */
export const isShort = (arena: Arena): string[] => {
  const long = arena.requests.flatMap(toolResultTexts).filter(({ length }) => length > RESULT_CHARS);
  return long.map(({ length }) => `the model was shown a result of ${length} characters`);
};

const TOO_MANY_VALUES = `keys and values, more than ${LIMITS.messageValues.toLocaleString("en")}`;

/** Reports a call of a message with too many values that was not refused for them. */
export const refusesValues = (arena: Arena): string[] => {
  const isTold = arena.requests.flatMap(toolResultTexts).some((text) => text.includes(TOO_MANY_VALUES));
  return isTold ? [] : ["the answer was not refused for its many values"];
};

/** Reports a tool list with too many values whose server does not fail for them. */
export const failsForValues = async (arena: Arena): Promise<string[]> => {
  const status = await arena.status();
  return status.includes(TOO_MANY_VALUES) ? [] : [`the list was not refused for its many values: ${status}`];
};

/** Returns the notices about an end of the connection worker, which an attack must never cause. */
export const workerEnds = ({ notices }: Arena): string[] =>
  notices
    .map(({ message }) => message)
    .filter((message) => /worker ended unexpectedly|out of memory/.test(message));

/** Counts how often the attacking server recorded this line. */
export const count = async ({ place }: Arena, what: string): Promise<number> =>
  (await place.seen()).filter((line) => line === what).length;

export const isGone = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return false;
  } catch {
    return true;
  }
};
