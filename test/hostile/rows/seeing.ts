/** Owns: checks that several rows make after an attack. */
import { toolResultTexts } from "../../support/model.ts";
import type { Arena } from "../support/arena.ts";

/** The limit for one result that the model gets; the extension shows fewer characters of any result. */
const RESULT_CHARS = 60_000;

/** Reports each result for the model that is longer than the limit. */
export const isShort = (arena: Arena): string[] => {
  const long = arena.requests.flatMap(toolResultTexts).filter(({ length }) => length > RESULT_CHARS);
  return long.map(({ length }) => `the model was shown a result of ${length} characters`);
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
