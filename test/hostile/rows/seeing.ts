/** Owns: what rows look at after an attack. */
import { toolResultTexts } from "../../support/model.ts";
import type { Arena } from "../support/arena.ts";

/** More than the model is shown of any result. */
const RESULT_CHARS = 60_000;

/** The model is shown of a result what it is shown of any. */
export const isShort = (arena: Arena): string[] => {
  const long = arena.requests.flatMap(toolResultTexts).filter(({ length }) => length > RESULT_CHARS);
  return long.map(({ length }) => `the model was shown a result of ${length} characters`);
};

/** The worker that owns all servers goes on. */
export const workerEnds = ({ notices }: Arena): string[] =>
  notices
    .map(({ message }) => message)
    .filter((message) => /worker ended unexpectedly|out of memory/.test(message));

/** How often the attacking server did something. */
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
