/**
 * Owns: the rows with several starts of Pi, one after the other or at the same time.
 * Must not: know attacks.
 * Called by: run-row.ts.
 */
import { Arena } from "./arena.ts";
import { canaryProblems, protocolProblems, wordsProblems } from "./checks.ts";
import type { OpenPlace } from "./place.ts";
import type { Problems } from "./problems.ts";
import type { Row } from "./row.ts";

/** Runs the story of a row and records its problems. */
export async function tellStory(
  {
    row,
    story,
    place,
    extension,
  }: { row: Row; story: NonNullable<Row["story"]>; place: OpenPlace; extension: string },
  problems: Problems,
): Promise<void> {
  const open = new Set<Arena>();
  const end = async (arena: Arena): Promise<void> => {
    open.delete(arena);
    problems.add("words", ...wordsProblems(arena));
    problems.add("lives", ...protocolProblems(arena), ...(await arena.end()));
  };
  const start = async (options: { cwd?: string } = {}): Promise<Arena> => {
    const arena = await Arena.start({ place, extension, env: row.env?.(place), ...options });
    open.add(arena);
    return arena;
  };
  await problems.step("row", "the story", () => story({ place, start, end }));
  // All Pis end before the first check: the processes of a running Pi would count as left behind by another Pi.
  await Promise.all([...open].map(({ rpc }) => rpc.stop()));
  for (const arena of [...open]) await end(arena);
  const canaries = await canaryProblems(place);
  problems.add("runs", ...canaries.runs);
  problems.add("leaves", ...canaries.leaves);
}
