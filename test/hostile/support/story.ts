/**
 * Owns: several starts of Pi, one after the other or at once, as a row tells them.
 * Must not: know attacks.
 * Called by: run-row.ts.
 */
import { Arena } from "./arena.ts";
import { canaryProblems, protocolProblems, wordsProblems } from "./checks.ts";
import type { OpenPlace } from "./place.ts";
import type { Problems } from "./problems.ts";
import type { Row } from "./row.ts";

/** Several starts of Pi, as the row tells it. */
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
  // All end before any of them is looked at: what another Pi has started is not left behind.
  await Promise.all([...open].map(({ rpc }) => rpc.stop()));
  for (const arena of [...open]) await end(arena);
  const canaries = await canaryProblems(place);
  problems.add("runs", ...canaries.runs);
  problems.add("leaves", ...canaries.leaves);
}
