/**
 * Owns: one attack from its preparation to the list of what it broke, in a Pi of its own or in one that many share.
 * Must not: know attacks.
 * Called by: suite.ts.
 */
import { Arena, type Spent, searchOf } from "./arena.ts";
import {
  besideProblem,
  canaryProblems,
  mainProblem,
  neighbourProblem,
  protocolProblems,
  watchedProblem,
  wordsProblems,
} from "./checks.ts";
import { healthyServer, type OpenPlace, openPlace } from "./place.ts";
import type { Call, Check, Entry, Problem, Row } from "./row.ts";

/** What bare Pi computes at a stretch: until it is ready, in its first prompt, and later. */
export interface Baseline {
  start: Spent;
  first: Spent;
  later: Spent;
}

export interface RowContext {
  extension: string;
  baseline: Baseline;
  /** Pi's transforms and compiled code of earlier runs. */
  caches: string;
}

export const HEALTHY = "healthy";
/** A healthy server that Pi does not know before the attack. */
const newcomerOf = (server: string): string => `${server}_new`;

const HAPPENS_MS = 15_000;
/** A search waits 5 s for the tools of a server that starts, and may come before the edit that names it is applied. */
const USABLE_MS = 10_000;

const messageOf = (error: unknown): string =>
  error instanceof Error ? (error.message.split("\nlast records")[0] ?? "") : String(error);

/** What an attack came to. */
export interface Outcome {
  readonly list: readonly Problem[];
  readonly figures: Readonly<{ callMs: number; mainCpuMs: number; mainGapMs: number }>;
}

/** Problems of one attack, and how each is added. */
class Problems {
  /** The longest that a call of the healthy server took, and the most that main computed at a stretch. */
  readonly figures = { callMs: 0, mainCpuMs: 0, mainGapMs: 0 };
  readonly list: Problem[] = [];
  readonly #checks: ReadonlySet<Check | "row">;
  readonly #mainMs: number | undefined;
  constructor({ checks, mainMs }: Row) {
    this.#mainMs = mainMs;
    this.#checks = new Set<Check | "row">([...checks, "row"]);
  }
  add(check: Check | "row", ...texts: readonly string[]): void {
    if (this.#checks.has(check)) this.list.push(...texts.map((text) => ({ check, text })));
  }
  readonly called = (ms: number): void => {
    this.figures.callMs = Math.max(this.figures.callMs, ms);
  };
  main(when: string, spent: Spent, bare: Spent): void {
    this.figures.mainCpuMs = Math.max(this.figures.mainCpuMs, spent.mostCpuMs - bare.mostCpuMs);
    this.figures.mainGapMs = Math.max(this.figures.mainGapMs, spent.longestMs);
    this.add("main", ...mainProblem(when, spent, bare, this.#mainMs));
  }
  /** A step that fails is the problem of what it looks at; the next steps are taken all the same while Pi lives. */
  async step(check: Check | "row", name: string, run: () => Promise<readonly string[]>): Promise<boolean> {
    try {
      this.add(check, ...(await run()));
      return true;
    } catch (error) {
      // A step that got no answer says more of Pi than of itself.
      this.list.push({ check, text: `${name}: ${messageOf(error)}` });
      return false;
    }
  }
}

interface Config {
  mcpServers: Record<string, Entry>;
  settings?: Record<string, unknown>;
}

/** `mcp.json` during the attack. */
async function configOf(row: Row, place: OpenPlace): Promise<Config> {
  const mcpServers: Record<string, Entry> = { [HEALTHY]: healthyServer() };
  const attacker = await row.server?.(place);
  if (attacker) mcpServers[place.server] = attacker;
  Object.assign(mcpServers, await row.servers?.(place));
  return { mcpServers, ...(row.settings ? { settings: row.settings } : {}) };
}

/** The attack is under way: its server was reached. Not needed where no server attacks. */
async function happened(row: Row, arena: Arena): Promise<string[]> {
  if (!row.server || row.mayBeStopped) return [];
  const line = row.happened ?? "tools/list";
  const was = await arena.until(async () => (await arena.place.seen()).includes(line), HAPPENS_MS);
  return was ? [] : [`the attack never took place: the server saw ${(await arena.place.seen()).slice(0, 5)}`];
}

/** Why a healthy server that is started only now cannot be used; undefined: it can. */
async function unusable(arena: Arena, server: string): Promise<string | undefined> {
  let failure: string | undefined;
  await arena.until(async () => {
    failure = (await arena.loadAndEcho(server)).failure;
    return failure === undefined;
  }, USABLE_MS);
  return failure;
}

/** A server that is configured now, beside the attack: its tools must become known. */
async function newcomerProblem(arena: Arena, config: Config): Promise<string[]> {
  const { home, server } = arena.place;
  const mcpServers = { ...config.mcpServers, [newcomerOf(server)]: healthyServer() };
  await home.writeMcp({ ...config, mcpServers });
  const failure = await unusable(arena, newcomerOf(server));
  return failure === undefined ? [] : [`a new server beside it is not usable: ${failure}`];
}

/** A call of the attacking server; where the row wants it with the healthy one beside it. */
async function callProblem(
  { tool, args = {} }: Call,
  arena: Arena,
  watchMs: number,
  problems: Problems,
): Promise<string[]> {
  const { server } = arena.place;
  if (watchMs > 0) {
    const waited = await arena.useBeside({ server, tool, args }, { healthy: HEALTHY, watchMs });
    return besideProblem(waited, problems.called);
  }
  await arena.use(server, tool, args);
  return [];
}

/** From the moment at which the attack is configured. */
async function attack(
  { row, config, baseline }: { row: Row; config: Config; baseline: Baseline },
  arena: Arena,
  problems: Problems,
): Promise<void> {
  const { place } = arena;
  const watched = { server: HEALTHY, watchMs: row.watchMs ?? 0 };
  const steps: [Check | "row", string, () => Promise<readonly string[]>][] = [
    ["row", "waiting for the attack", () => happened(row, arena)],
    [
      "neighbour",
      "the healthy server during the attack",
      () => watchedProblem(arena, watched, problems.called),
    ],
    ...(row.calls ?? []).map((call): (typeof steps)[number] => [
      "neighbour",
      `the call of ${call.tool}`,
      () => callProblem(call, arena, watched.watchMs, problems),
    ]),
    [
      "row",
      "the steps of the attack",
      async () => {
        await row.act?.(arena);
        return [];
      },
    ],
    [
      "neighbour",
      "the healthy server after the attack",
      async () => (row.calls || row.act ? neighbourProblem(arena, HEALTHY, problems.called) : []),
    ],
    ["neighbour", "a server that is new", () => newcomerProblem(arena, config)],
    ["row", "the row's own check", async () => (await row.check?.(arena)) ?? []],
    [
      "main",
      "what main computed",
      async () => {
        problems.main("during the attack", await arena.spent(), baseline.later);
        return [];
      },
    ],
  ];
  for (const [check, name, run] of steps) {
    const done = await problems.step(check, name, run);
    // After a prompt without an end there is no other; a row's own step fails for reasons of its own.
    if (!done && check !== "row") break;
  }
  problems.add("words", ...wordsProblems(arena));
  problems.add("lives", ...protocolProblems(arena));
  const canaries = await canaryProblems(place);
  problems.add("runs", ...canaries.runs);
  problems.add("leaves", ...canaries.leaves);
}

const isAnswering = (arena: Arena): Promise<boolean> =>
  arena.rpc.ready(3_000).then(
    () => true,
    () => false,
  );

/** Several starts of Pi, as the row tells it. */
async function tellStory(
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

/** A Pi for this row alone: all lies there before it starts. */
export async function runAlone(row: Row, context: RowContext): Promise<Outcome> {
  const problems = new Problems(row);
  const { extension, baseline, caches } = context;
  const place = await openPlace({
    caches,
    ...(row.trusted === undefined ? {} : { trusted: row.trusted }),
    ...(row.piSettings ? { settings: row.piSettings } : {}),
  });
  try {
    for (const [path, content] of Object.entries(row.files?.(place) ?? {}))
      await place.home.writeFile(path, content);
    await row.lay?.(place);
    const config = await configOf(row, place);
    await place.home.writeMcp(config);
    const start = (): Promise<Arena> =>
      Arena.start({ place, extension, env: row.env?.(place), proxy: row.settings?.proxyTool === true });
    for (let count = 0; count < (row.startsBefore ?? 0); count++) {
      const before = await start();
      await before.prompt(searchOf("everything"));
      await before.end();
    }
    if (row.story) {
      await tellStory({ row, story: row.story, place, extension }, problems);
      return problems;
    }
    const arena = await start().catch((error: unknown) => {
      problems.list.push({ check: "lives", text: `Pi did not start: ${messageOf(error)}` });
      return undefined;
    });
    if (!arena) return problems;
    try {
      problems.main("at the start", await arena.spent(), baseline.start);
      const isUp = await problems.step("neighbour", "the first call of the healthy server", async () => {
        const failure = await unusable(arena, HEALTHY);
        return failure === undefined ? [] : [`the healthy server is not usable: ${failure}`];
      });
      if (isUp || (await isAnswering(arena))) {
        problems.main("in the first prompt", await arena.spent(), baseline.first);
        await attack({ row, config, baseline }, arena, problems);
      }
    } catch (error) {
      problems.list.push({ check: "lives", text: messageOf(error) });
    }
    problems.add("lives", ...(await arena.end()));
  } finally {
    await place.dispose();
  }
  return problems;
}

/** One Pi for many rows: each configures its attack while Pi runs, and takes it away again. */
export interface SharedPi {
  run(row: Row): Promise<Outcome>;
  /** What was not right when it ended. */
  end(): Promise<string[]>;
  kill(): Promise<void>;
}

export async function startShared(context: RowContext): Promise<SharedPi> {
  const place = await openPlace({ caches: context.caches });
  const idle = { mcpServers: { [HEALTHY]: healthyServer() } };
  await place.home.writeMcp(idle);
  const arena = await Arena.start({ place, extension: context.extension });
  const { failure } = await arena.loadAndEcho(HEALTHY);
  if (failure !== undefined) throw new Error(`without any attack the healthy server failed: ${failure}`);
  let count = 0;
  return {
    run: async (row) => {
      const problems = new Problems(row);
      place.next(`evil${++count}`);
      arena.begin();
      await arena.spent();
      const config = await configOf(row, place);
      await place.home.writeMcp(config);
      await attack({ row, config, baseline: context.baseline }, arena, problems);
      await place.home.writeMcp(idle);
      return problems;
    },
    end: async () => {
      const wrong = await arena.end();
      await place.dispose();
      return wrong;
    },
    kill: async () => {
      await arena.kill();
      await place.dispose();
    },
  };
}
