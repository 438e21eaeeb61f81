/**
 * Owns: one row from its preparation to the list of its problems, in a Pi of its own or in a shared Pi.
 * Must not: know attacks.
 * Called by: suite.ts.
 */
import { Arena, searchOf } from "./arena.ts";
import { attack, configOf, HEALTHY, unusable } from "./attack.ts";
import type { Baseline } from "./baseline.ts";
import { healthyServer, openPlace } from "./place.ts";
import { messageOf, type Outcome, Problems } from "./problems.ts";
import type { Row } from "./row.ts";
import { tellStory } from "./story.ts";

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

/** Runs a row in a Pi of its own; the attack is in place before Pi starts. */
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

/** One Pi for many rows. Each row adds its attack to the configuration while Pi runs, and removes it afterwards. */
export interface SharedPi {
  run(row: Row): Promise<Outcome>;
  /** Ends Pi. Resolves with a text for each problem. */
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
