/**
 * Owns: one Pi over RPC for several tests. Each test gets a new session, which loads the extension, the settings and the
 * configuration again, from a home of its own content in the same place.
 * Must not: serve tests of Pi's start and end, or of what a second process reads.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { expect, onTestFailed } from "vitest";
import { forWholeFile } from "../support/cleanup.ts";
import { contentText, fillHome, type HomeOptions, type PiHome } from "../support/pi-home.ts";
import { processesWithMarker, waitGone } from "../support/processes.ts";
import type { RpcEvent } from "../support/rpc-events.ts";
import { type Opened, type OpenOptions, open, PATIENCE_MS } from "./rpc-support.ts";
import { ENTRY, home, onCleanup, root } from "./support.ts";

/** Replaces the home between two sessions; it comes last, so that the extension has ended before. */
export const NEXT_HOME = join(root, "test", "fixtures", "next-home.mjs");

/**
 * What the session finds. Pi asks once whether it trusts a project with a `.pi` folder, so all turns with one give the
 * same `trusted`. Node keeps a loaded file: an extension in `files` needs a name of its own.
 */
export interface Turn extends HomeOptions {
  /** Makes further files below this folder, whose content is the home's when the session begins. */
  fill?(folder: string): Promise<unknown>;
  /** Path of a session's file: this session goes on. Not for the first turn of a Pi. */
  resumed?: string;
}

/** What happens to the home between two sessions. */
export interface Change {
  /** Contents by path below the home: a string is raw text, any other value becomes JSON. */
  files?: Readonly<Record<string, unknown>>;
  /** Paths below the home. */
  removed?: readonly string[];
}

export interface InTurn extends Opened {
  /**
   * Begins another session with the home as it is but for the change, or goes on with the session in the file `resumed`.
   * Forgets the records and requests so far.
   */
  again(change?: Change, resumed?: string): Promise<void>;
}

/** What stays the same for all tests. `extensions` gets Pi's home; without it, the built extension is loaded. */
interface Sharing extends Pick<OpenOptions, "args" | "env"> {
  extensions?: (at: PiHome) => Promise<readonly string[]>;
}

type Begin = Turn | ((at: PiHome) => Turn);
export type TakeTurn = (turn?: Begin) => Promise<InTurn>;

/**
 * Returns a function that begins a session. The turn may depend on the home, whose place is the same each time. After a
 * test that failed, the next one gets another Pi.
 */
export function inTurn({ extensions, ...sharing }: Sharing = {}): TakeTurn {
  let shared: Opened | undefined;

  const fillAt = async (folder: string, at: PiHome, turn: Begin): Promise<string | undefined> => {
    const { fill, resumed, ...options } = typeof turn === "function" ? turn(at) : turn;
    await fillHome(folder, options, at.cwd);
    await fill?.(folder);
    return resumed;
  };
  const start = async (turn: Begin): Promise<Opened> => {
    const at = await home({});
    await fillAt(at.dir, at, turn);
    const loaded = extensions ? await extensions(at) : [ENTRY];
    const pi = await open({ ...sharing, at, extensions: [...loaded, NEXT_HOME] });
    onCleanup(async () => {
      const exit = await pi.rpc.stop();
      if (shared === pi) expect(exit).toMatchObject({ code: 0 });
    });
    return pi;
  };

  return async (turn = {}) => {
    onTestFailed(async () => {
      await shared?.rpc.stop();
      shared = undefined;
    });
    if (shared) {
      await nextSession(shared, await fillAt(join(shared.at.dir, "next"), shared.at, turn));
    } else {
      shared = await forWholeFile(() => start(turn));
    }
    const pi = shared;
    return {
      ...pi,
      again: async (change, resumed) => {
        const next = join(pi.at.dir, "next");
        if (change) await writeFiles(next, { ...change.files, "removed.json": change.removed ?? [] });
        await nextSession(pi, resumed);
      },
    };
  };
}

/** Writes files below a folder: a string is raw text, any other value becomes JSON. */
export async function writeFiles(folder: string, files: Readonly<Record<string, unknown>>): Promise<void> {
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), contentText(content));
  }
}

/**
 * Begins another session of a Pi that has loaded NEXT_HOME. Resolves when it has started and no process of the old one is
 * left.
 */
export async function nextSession({ at, rpc, scripted }: Opened, resumed?: string): Promise<void> {
  const old = (await processesWithMarker(`HOME=${at.dir}`)).filter(({ pid }) => pid !== rpc.pid);
  const since = rpc.events.length;
  // Another Pi of this home has a model of its own.
  await at.useModel(scripted.url);
  await rpc.request(
    resumed === undefined ? { type: "new_session" } : { type: "switch_session", sessionPath: resumed },
    PATIENCE_MS,
  );
  const ended = rpc.events.findIndex((event, i) => i >= since && isEnd(event));
  if (ended === -1) throw new Error("the earlier session has not ended");
  const left = await waitGone(
    old.map(({ pid }) => pid),
    PATIENCE_MS,
  );
  if (left.length > 0) throw new Error(`processes of the earlier session still run: ${left.join(", ")}`);
  rpc.forget(ended + 1);
  scripted.forget();
}

/** The notice of the extension that replaces the home. */
const isEnd = ({ message }: RpcEvent): boolean => message === "the session has ended";
