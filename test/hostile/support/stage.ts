/**
 * Owns: one real Pi in which rows with a home of their own follow each other, each in a session of its own. Such a
 * session starts as a Pi starts in that home: the extension is loaded again, its worker threads are new, and what it
 * reads of its process (folder, `HOME`, Pi's agent folder, temp folder) is the row's. What stays is Pi's own code.
 * Must not: know rows, or judge results.
 * Called by: run-row.ts, story.ts and baseline.ts.
 */
import { randomUUID } from "node:crypto";
import { copyFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Arena } from "./arena.ts";
import { openPlace } from "./place.ts";
import type { Place } from "./row.ts";

export interface Scene {
  place: Place;
  /** More variables for Pi's environment. */
  env?: Record<string, string> | undefined;
  /** Working directory; the project of `place` if left out. */
  cwd?: string | undefined;
  /** True sends every call through the one tool `mcp`, as `settings.proxyTool` requires. */
  proxy?: boolean | undefined;
}

export interface Stage {
  readonly arena: Arena;
  /**
   * Ends the session that runs, and starts one in the home of `scene`, unless `leave` has started the first one there.
   * Resolves once Pi is ready there.
   */
  enter(scene: Scene): Promise<Arena>;
  /**
   * Ends the session that runs, and starts the next one: in the home that will be entered next, or without any server.
   * Resolves with a text for each process that the session has left behind.
   */
  leave(next?: Scene): Promise<string[]>;
  /** Ends Pi. Resolves with a text for each problem. */
  end(): Promise<string[]>;
  kill(): Promise<void>;
}

/** Files of the agent folder that Pi itself reads, always from the folder that it was started with. */
const READ_BY_PI = ["settings.json", "trust.json"];
const SWITCH_MS = 60_000;

/** Starts Pi in the home of `first`. `caches`: Pi's transforms and compiled code of earlier runs. */
export async function openStage(
  first: Place,
  { extension, caches }: { extension: string; caches: string },
): Promise<Stage> {
  const idle = await openPlace({ caches });
  const stageFile = join(idle.home.dir, "stage.json");
  const arena = await Arena.start({ place: first, extension, stageFile });
  /** What the environment of Pi has beyond that of any home. */
  let added: readonly string[] = [];
  /** The home that `leave` has entered. */
  let ahead: Place | undefined;

  const go = async ({ place, env = {}, cwd = place.home.cwd, proxy = false }: Scene): Promise<void> => {
    const { home } = place;
    const removed = Object.fromEntries(added.map((name) => [name, null]));
    added = Object.keys(env);
    await writeFile(stageFile, JSON.stringify({ cwd, env: { ...removed, ...home.env(env) } }));
    for (const name of READ_BY_PI) await takeOver(join(home.agentDir, name), join(first.home.agentDir, name));
    // A question that is still open would be answered in the next session.
    arena.rpc.answerUi({ cancelled: true });
    arena.rpc.answerUi(() => undefined);
    const since = arena.rpc.events.length;
    await arena.rpc.request(
      { type: "switch_session", sessionPath: await sessionFile(home.dir, cwd) },
      SWITCH_MS,
    );
    const ended = arena.rpc.events.findIndex(
      (event, i) => i >= since && event.message === "the session has ended",
    );
    if (ended === -1) throw new Error("the earlier session has not ended");
    arena.moveTo(place, proxy, ended + 1);
  };

  return {
    arena,
    enter: async (scene) => {
      const isThere = ahead === scene.place;
      ahead = undefined;
      if (!isThere) await go(scene);
      return arena;
    },
    leave: async (next) => {
      const left = arena.place;
      await go(next ?? { place: idle });
      ahead = next?.place;
      return arena.survivors(left);
    },
    end: async () => {
      const wrong = await arena.end();
      wrong.push(...(await arena.survivors(first)));
      await idle.dispose();
      return wrong;
    },
    kill: async () => {
      await arena.kill();
      await idle.dispose();
    },
  };
}

/** Makes `to` a copy of `from`, and removes it if there is none. */
async function takeOver(from: string, to: string): Promise<void> {
  if (from === to) return;
  await copyFile(from, to).catch(async (error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOENT") throw error;
    await rm(to, { force: true });
  });
}

/** Writes a session without messages, whose folder Pi enters. */
async function sessionFile(folder: string, cwd: string): Promise<string> {
  const id = randomUUID();
  const header = { type: "session", version: 3, id, timestamp: new Date().toISOString(), cwd };
  const path = join(folder, `${id}.jsonl`);
  await writeFile(path, `${JSON.stringify(header)}\n`);
  return path;
}
