/**
 * Owns: one row from its preparation to the list of its problems, in a Pi of its own or in the Pi of its file.
 * Must not: know attacks.
 * Called by: suite.ts.
 */
import { Arena, type Spent, searchOf } from "./arena.ts";
import { attack, type Config, configOf, HEALTHY, unusable } from "./attack.ts";
import type { Baseline } from "./baseline.ts";
import { type OpenPlace, openPlace } from "./place.ts";
import { messageOf, type Outcome, Problems } from "./problems.ts";
import type { Row } from "./row.ts";
import { openStage, type Scene, type Stage } from "./stage.ts";
import { tellStory } from "./story.ts";
import { IDLE, type Round, runTogether } from "./together.ts";

export interface RowContext {
  extension: string;
  baseline: Baseline;
  /** Pi's transforms and compiled code of earlier runs. */
  caches: string;
}

const isAnswering = (arena: Arena): Promise<boolean> =>
  arena.rpc.ready(3_000).then(
    () => true,
    () => false,
  );

/** A row and the home in which its attack is in place. */
export interface Prepared {
  row: Row;
  place: OpenPlace;
  config: Config;
}

export async function prepare(row: Row, caches: string): Promise<Prepared> {
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
    return { row, place, config };
  } catch (error) {
    await place.dispose();
    throw error;
  }
}

const sceneOf = ({ row, place }: Prepared): Scene => ({
  place,
  env: row.env?.(place),
  proxy: typeof row.settings === "object" && row.settings.proxyTool === true,
});

/** How a row with a home of its own gets its Pi. */
interface Start {
  start(): Promise<Arena>;
  /** Ends a session before the row's own. */
  endBefore(arena: Arena): Promise<unknown>;
  /** Ends the row's session; `isSound`: Pi can be used by the next row. Resolves with a text for each problem. */
  end(arena: Arena, isSound: boolean): Promise<string[]>;
  /** CPU time of bare Pi until it is ready, and in its first prompt. */
  ready: Spent;
  first: Spent;
}

/** The Pi of a row's file. */
interface Shared {
  stage: Stage;
  /** The home that the row after this one needs; undefined if that is not known yet. */
  next: () => Promise<Prepared | undefined>;
}

/** Without `shared`, the row gets a Pi of its own. */
function startOf(prepared: Prepared, { extension, baseline }: RowContext, shared?: Shared): Start {
  const scene = sceneOf(prepared);
  if (!shared)
    return {
      start: () => Arena.start({ ...scene, extension }),
      endBefore: (arena) => arena.end(),
      end: (arena) => arena.end(),
      ready: baseline.start,
      first: baseline.first,
    };
  const { stage, next } = shared;
  let isThere = stage.arena.place === scene.place;
  return {
    start: async () => {
      if (!isThere) await stage.arena.spent();
      isThere = false;
      return stage.enter(scene);
    },
    // The next session in the same home ends this one. What it leaves behind is found at the end of the last one.
    endBefore: async () => undefined,
    end: async (_arena, isSound) => {
      const after = isSound ? await next() : undefined;
      if (after) await stage.arena.spent();
      return stage.leave(after && sceneOf(after));
    },
    ready: baseline.entered,
    first: baseline.enteredFirst,
  };
}

/** Runs a row in a home of its own, which it disposes of; the attack is in place before the session starts. */
export async function runAlone(prepared: Prepared, context: RowContext, shared?: Shared): Promise<Outcome> {
  const { row, place, config } = prepared;
  const problems = new Problems(row);
  const { extension, baseline } = context;
  const { start, endBefore, end, ready, first } = startOf(prepared, context, shared);
  try {
    for (let count = 0; count < (row.startsBefore ?? 0); count++) {
      const before = await start();
      // On a busy machine a long list takes longer than a search waits for it.
      await before.connected();
      await before.prompt(searchOf("everything"));
      await endBefore(before);
    }
    if (row.story) {
      await tellStory({ row, story: row.story, place, extension }, problems, shared?.stage);
      return problems;
    }
    const arena = await start().catch((error: unknown) => {
      problems.list.push({ check: "lives", text: `Pi did not start: ${messageOf(error)}` });
      return undefined;
    });
    if (!arena) return problems;
    try {
      await problems.main("at the start", await arena.spent(), ready);
      const isUp = await problems.step("neighbour", "the first call of the healthy server", async () => {
        const failure = await unusable(arena, HEALTHY);
        return failure === undefined ? [] : [`the healthy server is not usable: ${failure}`];
      });
      if (isUp || (await isAnswering(arena))) {
        await problems.main("in the first prompt", await arena.spent(), first);
        await attack({ row, config, baseline }, arena, problems);
      }
    } catch (error) {
      problems.list.push({ check: "lives", text: messageOf(error) });
    }
    await problems.step("lives", "the end of the session", () => end(arena, problems.list.length === 0));
  } finally {
    await place.dispose();
  }
  return problems;
}

/** The Pi of one test file. */
export interface FilePi {
  /** Runs rows beside each other in the session that such rows share. */
  runShared(rows: readonly Row[]): Promise<Round>;
  /**
   * Runs a row in a home and a session of its own. `next`: the row of this kind that follows at once; its session is the
   * one that ends the session of this row. No row can share a session afterwards.
   */
  runInHome(row: Row, next?: Row): Promise<Outcome>;
  /** Ends Pi. Resolves with a text for each problem. */
  end(): Promise<string[]>;
  kill(): Promise<void>;
}

export async function startFilePi(context: RowContext): Promise<FilePi> {
  const { extension, baseline, caches } = context;
  const place = await openPlace({ caches });
  await place.home.writeMcp(IDLE);
  const stage = await openStage(place, { extension, caches });
  const { arena } = stage;
  const { failure } = await arena.loadAndEcho(HEALTHY);
  if (failure !== undefined) throw new Error(`without any attack the healthy server failed: ${failure}`);
  /** The row in whose home Pi is already. */
  let ahead: Prepared | undefined;
  /** Returns what is ready for this row, or makes it. */
  const preparedFor = async (row: Row): Promise<Prepared> => {
    const ready = ahead;
    ahead = undefined;
    if (ready?.row === row) return ready;
    if (ready) {
      await stage.leave();
      await ready.place.dispose();
    }
    return prepare(row, caches);
  };
  const dispose = async (): Promise<void> => {
    await ahead?.place.dispose();
    await place.dispose();
  };
  return {
    runShared: (rows) => runTogether(rows, { arena, place, baseline }),
    runInHome: async (row, following) => {
      const next = async (): Promise<Prepared | undefined> => {
        // What goes wrong here goes wrong again when that row has its turn, and is its own problem.
        ahead = following && (await prepare(following, caches).catch(() => undefined));
        return ahead;
      };
      return runAlone(await preparedFor(row), context, { stage, next });
    },
    end: async () => {
      const wrong = await stage.end();
      await dispose();
      return wrong;
    },
    kill: async () => {
      await stage.kill();
      await dispose();
    },
  };
}
