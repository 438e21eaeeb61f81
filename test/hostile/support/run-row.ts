/**
 * Owns: one row from its preparation to the list of its problems, in a Pi of its own or in the Pi of its file.
 * Must not: know attacks.
 * Called by: suite.ts.
 */
import { Arena, type Spent, searchOf } from "./arena.ts";
import { attack, configOf, HEALTHY, unusable } from "./attack.ts";
import type { Baseline } from "./baseline.ts";
import { type OpenPlace, openPlace } from "./place.ts";
import { messageOf, type Outcome, Problems } from "./problems.ts";
import type { Row } from "./row.ts";
import { openStage, type Stage } from "./stage.ts";
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

/** How a row with a home of its own gets its Pi. */
interface Start {
  start(place: OpenPlace): Promise<Arena>;
  /** Resolves with a text for each problem. */
  end(arena: Arena): Promise<string[]>;
  /** CPU time of bare Pi until it is ready, and in its first prompt. */
  ready: Spent;
  first: Spent;
}

/** `stage`: the Pi of the row's file; without it, the row gets a Pi of its own. */
function startOf(row: Row, { extension, baseline }: RowContext, stage?: Stage): Start {
  const proxy = row.settings?.proxyTool === true;
  const optionsAt = (place: OpenPlace) => ({ place, env: row.env?.(place), proxy });
  if (stage)
    return {
      start: async (place) => {
        await stage.arena.spent();
        return stage.enter(optionsAt(place));
      },
      end: () => stage.leave(),
      ready: baseline.entered,
      first: baseline.enteredFirst,
    };
  return {
    start: (place) => Arena.start({ ...optionsAt(place), extension }),
    end: (arena) => arena.end(),
    ready: baseline.start,
    first: baseline.first,
  };
}

/** Runs a row in a home of its own; the attack is in place before the session starts. */
export async function runAlone(row: Row, context: RowContext, stage?: Stage): Promise<Outcome> {
  const problems = new Problems(row);
  const { extension, baseline, caches } = context;
  const place = await openPlace({
    caches,
    ...(row.trusted === undefined ? {} : { trusted: row.trusted }),
    ...(row.piSettings ? { settings: row.piSettings } : {}),
  });
  const { start, end, ready, first } = startOf(row, context, stage);
  try {
    for (const [path, content] of Object.entries(row.files?.(place) ?? {}))
      await place.home.writeFile(path, content);
    await row.lay?.(place);
    const config = await configOf(row, place);
    await place.home.writeMcp(config);
    for (let count = 0; count < (row.startsBefore ?? 0); count++) {
      const before = await start(place);
      await before.prompt(searchOf("everything"));
      await end(before);
    }
    if (row.story) {
      await tellStory({ row, story: row.story, place, extension }, problems, stage);
      return problems;
    }
    const arena = await start(place).catch((error: unknown) => {
      problems.list.push({ check: "lives", text: `Pi did not start: ${messageOf(error)}` });
      return undefined;
    });
    if (!arena) return problems;
    try {
      problems.main("at the start", await arena.spent(), ready);
      const isUp = await problems.step("neighbour", "the first call of the healthy server", async () => {
        const failure = await unusable(arena, HEALTHY);
        return failure === undefined ? [] : [`the healthy server is not usable: ${failure}`];
      });
      if (isUp || (await isAnswering(arena))) {
        problems.main("in the first prompt", await arena.spent(), first);
        await attack({ row, config, baseline }, arena, problems);
      }
    } catch (error) {
      problems.list.push({ check: "lives", text: messageOf(error) });
    }
    await problems.step("lives", "the end of the session", () => end(arena));
  } finally {
    await place.dispose();
  }
  return problems;
}

/** The Pi of one test file. */
export interface FilePi {
  /** Runs rows beside each other in the session that such rows share. */
  runShared(rows: readonly Row[]): Promise<Round>;
  /** Runs a row in a home and a session of its own. No row can share a session afterwards. */
  runInHome(row: Row): Promise<Outcome>;
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
  return {
    runShared: (rows) => runTogether(rows, { arena, place, baseline }),
    runInHome: (row) => runAlone(row, context, stage),
    end: async () => {
      const wrong = await stage.end();
      await place.dispose();
      return wrong;
    },
    kill: async () => {
      await stage.kill();
      await place.dispose();
    },
  };
}
