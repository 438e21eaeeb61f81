/**
 * Owns: the attacks of several rows in one session: all of them are in the configuration at the same time, and each one
 * is called and checked in turn.
 * Must not: start or end Pi.
 * Called by: run-row.ts.
 */
import type { Arena } from "./arena.ts";
import { attack, attackInTurn, type Config, configOf, HEALTHY, happened, newcomerProblem } from "./attack.ts";
import type { Baseline } from "./baseline.ts";
import { mainProblem, neighbourProblem } from "./checks.ts";
import { healthyServer, type OpenPlace } from "./place.ts";
import { type Outcome, Problems } from "./problems.ts";
import type { Check, Problem, Row } from "./row.ts";

/** The outcomes of rows whose attacks ran beside each other. */
export interface Round {
  /** One for each row, in their order; the rows after the first one with a problem have none. */
  outcomes: Outcome[];
  /** What broke while all attacks were there and is no row's own problem. */
  together: Problem[];
}

export const IDLE: Config = { mcpServers: { [HEALTHY]: healthyServer() } };

const WORKER_ENDS = /worker ended unexpectedly|out of memory/;

/** An attack that is in the configuration. */
interface Entered {
  row: Row;
  server: string;
  problems: Problems;
}

let count = 0;

/** Adds the attack of a row to the configuration. */
async function enter(row: Row, place: OpenPlace, into: Config): Promise<Entered> {
  const server = `evil${++count}`;
  await place.next(server);
  const { mcpServers } = await configOf(row, place);
  Object.assign(into.mcpServers, mcpServers);
  return { row, server, problems: new Problems(row) };
}

async function runOne(row: Row, arena: Arena, place: OpenPlace, baseline: Baseline): Promise<Round> {
  const config: Config = { mcpServers: {} };
  const { problems } = await enter(row, place, config);
  await place.home.writeMcp(config);
  await attack({ row, config, baseline }, arena, problems);
  return { outcomes: [problems], together: [] };
}

async function runMany(
  rows: readonly Row[],
  arena: Arena,
  place: OpenPlace,
  baseline: Baseline,
): Promise<Round> {
  const config: Config = { mcpServers: {} };
  const all: Entered[] = [];
  for (const row of rows) all.push(await enter(row, place, config));
  await place.home.writeMcp(config);
  for (const { row, server, problems } of all) {
    place.turnTo(server);
    await problems.step("row", "waiting for the attack", () => happened(row, arena));
  }
  const together: Problem[] = [];
  const add = (check: Check, texts: readonly string[]): void => {
    together.push(...texts.map((text) => ({ check, text })));
  };
  add("main", await mainProblem("while the attacks began", await arena.spent(), baseline.later));
  const notices = arena.notices.map(({ message }) => message);
  add(
    "neighbour",
    notices.filter((message) => WORKER_ENDS.test(message)),
  );
  const note = (): void => undefined;
  add("neighbour", await neighbourProblem(arena, HEALTHY, note));
  const outcomes: Outcome[] = [];
  for (const { row, server, problems } of all) {
    place.turnTo(server);
    await attackInTurn({ row, baseline }, arena, problems);
    outcomes.push(problems);
    if (problems.list.length > 0) return { outcomes, together };
    arena.begin();
  }
  add("neighbour", await newcomerProblem(arena, config, note));
  add("main", await mainProblem("while all attacks were there", await arena.spent(), baseline.later));
  return { outcomes, together };
}

/** Runs the attacks of the rows beside each other in the session that runs, and takes them away again. */
export async function runTogether(
  rows: readonly Row[],
  { arena, place, baseline }: { arena: Arena; place: OpenPlace; baseline: Baseline },
): Promise<Round> {
  arena.begin();
  await arena.spent();
  const [row] = rows;
  const round =
    row !== undefined && rows.length === 1
      ? await runOne(row, arena, place, baseline)
      : await runMany(rows, arena, place, baseline);
  await place.home.writeMcp(IDLE);
  await place.clear();
  return round;
}
