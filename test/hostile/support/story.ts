/**
 * Owns: the rows with several starts of Pi, one after the other in the Pi of other rows, or at the same time: the second
 * one in a Pi of its own.
 * Must not: know attacks.
 * Called by: run-row.ts.
 */
import { Arena } from "./arena.ts";
import { canaryProblems, protocolProblems, wordsProblems } from "./checks.ts";
import type { OpenPlace } from "./place.ts";
import type { Problems } from "./problems.ts";
import type { Row } from "./row.ts";
import type { Stage } from "./stage.ts";

export interface Telling {
  row: Row;
  story: NonNullable<Row["story"]>;
  place: OpenPlace;
  extension: string;
}

/** Runs the story of a row and records its problems. Without a stage, each start of the story is a start of Pi. */
export async function tellStory(
  { row, story, place, extension }: Telling,
  problems: Problems,
  stage?: Stage,
): Promise<void> {
  const open = new Set<Arena>();
  const isOnStage = (arena: Arena): boolean => arena === stage?.arena;
  const close = async (arena: Arena, leave: () => Promise<readonly string[]>): Promise<void> => {
    open.delete(arena);
    problems.add("words", ...wordsProblems(arena));
    problems.add("lives", ...protocolProblems(arena), ...(await leave()));
  };
  const end = (arena: Arena): Promise<void> =>
    close(arena, () => (stage && isOnStage(arena) ? stage.leave() : arena.end()));
  const start = async ({ cwd, after }: { cwd?: string; after?: Arena } = {}): Promise<Arena> => {
    // The next session on the stage ends this one. What it leaves behind is found at the end of the last one.
    if (after) await (isOnStage(after) ? close(after, async () => []) : end(after));
    const options = { place, env: row.env?.(place), cwd };
    const isFirst = open.size === 0;
    const arena = await (stage && isFirst ? stage.enter(options) : Arena.start({ ...options, extension }));
    open.add(arena);
    return arena;
  };
  await problems.step("row", "the story", () => story({ place, start, end }));
  // All Pis end before the first check: the processes of a running Pi would count as left behind by another Pi.
  const last = [...open].toSorted((a, b) => Number(isOnStage(b)) - Number(isOnStage(a)));
  await Promise.all(last.filter((arena) => !isOnStage(arena)).map(({ rpc }) => rpc.stop()));
  for (const arena of last) await end(arena);
  const canaries = await canaryProblems(place);
  problems.add("runs", ...canaries.runs);
  problems.add("leaves", ...canaries.leaves);
}
