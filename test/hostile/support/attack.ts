/**
 * Owns: the steps of one attack in a running Pi: the attack takes place, the model acts, the healthy servers are called.
 * Must not: start or end Pi.
 * Called by: run-row.ts and together.ts.
 */
import { join } from "node:path";
import type { RpcToolEnd } from "../../support/rpc-events.ts";
import type { Arena } from "./arena.ts";
import type { Baseline } from "./baseline.ts";
import { echoBoth, useBeside, useInTurn } from "./calls.ts";
import {
  besideProblem,
  canaryProblems,
  neighbourProblem,
  protocolProblems,
  watchedProblem,
  wordsProblems,
} from "./checks.ts";
import { healthyServer, linesIn, type OpenPlace } from "./place.ts";
import type { Problems } from "./problems.ts";
import type { Check, Entry, Row } from "./row.ts";

export const HEALTHY = "healthy";
/** A healthy server that Pi does not know before the attack. */
const newcomerOf = (server: string): string => `${server}_new`;

const HAPPENS_MS = 45_000;
/** A search waits 5 s for the tools of a starting server, and may run before Pi has applied the edit that adds it. */
const USABLE_MS = 45_000;
/** The wait for a server that is new decides nothing: the searches after it do. */
const LISTED_MS = 3_000;

export interface Config {
  mcpServers: Record<string, Entry>;
  settings?: Record<string, unknown>;
}

/** Returns the content of `mcp.json` during the attack. */
export async function configOf(row: Row, place: OpenPlace): Promise<Config> {
  const mcpServers: Record<string, Entry> = { [HEALTHY]: healthyServer() };
  const attacker = await row.server?.(place);
  if (attacker) mcpServers[place.server] = attacker;
  Object.assign(mcpServers, await row.servers?.(place));
  const settings = typeof row.settings === "function" ? await row.settings(place) : row.settings;
  return { mcpServers, ...(settings ? { settings } : {}) };
}

/** Waits until the attacking server was reached. A row without an attacking server needs no wait. */
export async function happened(row: Row, arena: Arena): Promise<string[]> {
  if (!row.server || row.mayBeStopped) return [];
  const line = row.happened ?? "tools/list";
  const was = await arena.until(async () => (await arena.place.seen()).includes(line), HAPPENS_MS);
  return was ? [] : [`the attack never took place: the server saw ${(await arena.place.seen()).slice(0, 5)}`];
}

/** Returns why a healthy server that starts now cannot be used; undefined if it can. */
export async function unusable(arena: Arena, server: string): Promise<string | undefined> {
  let failure: string | undefined;
  await arena.until(async () => {
    failure = (await arena.loadAndEcho(server)).failure;
    return failure === undefined;
  }, USABLE_MS);
  return failure;
}

/** Adds a healthy server to the configuration during the attack; it must become usable, and the other one stays so. */
export async function newcomerProblem(
  arena: Arena,
  config: Config,
  note: (ms: number) => void,
): Promise<string[]> {
  const { home, server } = arena.place;
  const name = newcomerOf(server);
  const seenFile = join(home.dir, `seen-${name}`);
  const mcpServers = { ...config.mcpServers, [name]: healthyServer(seenFile) };
  await home.writeMcp({ ...config, mcpServers });
  // A look at a file is cheap, and every search in vain makes the conversation longer, which Pi sends with each request.
  await arena.until(async () => (await linesIn(seenFile)).includes("tools/list"), LISTED_MS);
  let last: Awaited<ReturnType<typeof echoBoth>> | undefined;
  await arena.until(async () => {
    last = await echoBoth(arena, name, HEALTHY);
    return last.newcomer.failure === undefined;
  }, USABLE_MS);
  const failure = last?.newcomer.failure;
  return [
    ...(failure === undefined ? [] : [`a new server beside it is not usable: ${failure}`]),
    ...(await neighbourProblem(arena, HEALTHY, note, last?.healthy)),
  ];
}

/** What Pi or the extension answers a call in the place of the server: see tools/unknown-call. */
const NOT_CALLED = /^(Tool )?\S+ (not found|was not loaded|is the name of several tools|is called through)\b/;

/** Reports a tool that Pi did not find: without a call the attack did not take place, and the row proves nothing. */
const notCalledProblem = (end: RpcToolEnd | undefined): string[] =>
  end === undefined || (end.isError && NOT_CALLED.test(end.text))
    ? [`the attacking tool was not called: ${end?.text ?? "no such call"}`]
    : [];

/** Calls the attacking server, and the healthy server after it, or at the same time if `watchMs` is above 0. */
async function callProblems(
  { calls = [], watchMs = 0 }: Row,
  arena: Arena,
  note: (ms: number) => void,
): Promise<string[]> {
  if (watchMs === 0) {
    const { attacks, answered } = await useInTurn(arena, calls, HEALTHY);
    return [
      ...attacks.flatMap(notCalledProblem),
      ...(await neighbourProblem(arena, HEALTHY, note, answered)),
    ];
  }
  const problems: string[] = [];
  for (const call of calls) {
    const { attack, waited } = await useBeside(arena, call, { healthy: HEALTHY, watchMs });
    problems.push(...notCalledProblem(attack), ...(await besideProblem(waited, note)));
  }
  return problems;
}

type Step = [check: Check | "row", name: string, run: () => Promise<readonly string[]>];

/** Runs the steps until one of them makes the others impossible. */
async function run(steps: readonly Step[], arena: Arena, problems: Problems): Promise<void> {
  for (const [check, name, step] of steps) {
    const done = await problems.step(check, name, step);
    // A prompt that never ends makes every later prompt impossible. A row's own step may also fail for other reasons.
    if (!done && (check !== "row" || arena.isBusy)) break;
  }
}

/** The model's calls and the row's own steps; a text for each problem. */
const stepsOf = (row: Row, arena: Arena, problems: Problems): Step[] => [
  ...(row.calls === undefined
    ? []
    : [
        [
          "neighbour",
          `the calls of ${row.calls.map(({ tool }) => tool)}`,
          () => callProblems(row, arena, problems.called),
        ] satisfies Step,
      ]),
  [
    "row",
    "the steps of the attack",
    async () => {
      await row.act?.(arena);
      return [];
    },
  ],
];

/** Calls the healthy server while the attack goes on. What calls the attacker calls the healthy server as well. */
const watched = (row: Row, arena: Arena, problems: Problems): Step => [
  "neighbour",
  "the healthy server during the attack",
  async () =>
    row.calls === undefined
      ? watchedProblem(arena, { server: HEALTHY, watchMs: row.watchMs ?? 0 }, problems.called)
      : [],
];

const ownCheck = ({ check }: Row, arena: Arena): Step => [
  "row",
  "the row's own check",
  async () => (await check?.(arena)) ?? [],
];
const computed = (arena: Arena, baseline: Baseline, problems: Problems): Step => [
  "main",
  "what main computed",
  async () => {
    await problems.main("during the attack", await arena.spent(), baseline.later);
    return [];
  },
];

async function seen(arena: Arena, problems: Problems): Promise<void> {
  problems.add("words", ...wordsProblems(arena));
  problems.add("lives", ...protocolProblems(arena));
  const canaries = await canaryProblems(arena.place);
  problems.add("runs", ...canaries.runs);
  problems.add("leaves", ...canaries.leaves);
}

/** Runs all steps of an attack that is in the configuration. */
export async function attack(
  { row, config, baseline }: { row: Row; config: Config; baseline: Baseline },
  arena: Arena,
  problems: Problems,
): Promise<void> {
  const steps: Step[] = [
    ["row", "waiting for the attack", () => happened(row, arena)],
    // Without a server, the attack was there when the session's first prompt called the healthy server.
    ...(row.server ? [watched(row, arena, problems)] : []),
    ...stepsOf(row, arena, problems),
    [
      "neighbour",
      "a server that is new, and the healthy server after the attack",
      () => newcomerProblem(arena, config, problems.called),
    ],
    ownCheck(row, arena),
    computed(arena, baseline, problems),
  ];
  await run(steps, arena, problems);
  await seen(arena, problems);
}

/**
 * Runs the steps of an attack beside others, all of which have taken place. What concerns all is not asked: the healthy
 * server answers before the first one and after the last one.
 */
export async function attackInTurn(
  { row, baseline }: { row: Row; baseline: Baseline },
  arena: Arena,
  problems: Problems,
): Promise<void> {
  const steps: Step[] = [
    ...(row.watchMs ? [watched(row, arena, problems)] : []),
    ...stepsOf(row, arena, problems),
    [
      "neighbour",
      "the healthy server after the steps of the attack",
      async () => (row.act ? neighbourProblem(arena, HEALTHY, problems.called) : []),
    ],
    ownCheck(row, arena),
    computed(arena, baseline, problems),
  ];
  await run(steps, arena, problems);
  await seen(arena, problems);
}
