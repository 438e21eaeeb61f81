/** Owns: a Pi over RPC with a scripted model, and waits for notices, dialogs and the status line. */
import { rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "vitest";
import type { ModelRequest, ModelTurn, ScriptedModel } from "../support/model.ts";
import { PATIENCE_MS } from "../support/patience.ts";
import {
  type HomeOptions,
  type PiHome,
  type PiOptions,
  type RpcSession,
  startRpc,
} from "../support/pi-run.ts";
import { processesWithMarker } from "../support/processes.ts";
import {
  extensionErrors,
  notices,
  type RpcAnswer,
  type RpcDialog,
  type RpcEvent,
  type RpcToolEnd,
  toDialog,
  toolEnds,
} from "../support/rpc-events.ts";
import { call, copyExtension, ENTRY, fixtureServer, home, model, onCleanup } from "./support.ts";

export { PATIENCE_MS };

type Entry = Record<string, unknown>;

/** Returns an entry that runs test/fixtures/servers/live.mjs with these arguments and variables. */
export const live = (args: string[] = [], env: Record<string, string> = {}, more: Entry = {}): Entry => {
  const { args: script = [], ...entry } = fixtureServer("live.mjs", env);
  return { ...entry, args: [...(script as string[]), ...args], ...more };
};

/** The answer of live.mjs to a call. */
export interface LiveAnswer {
  pid: number;
  argv: string[];
  token: string;
}

type Turns = (ModelTurn | ((request: ModelRequest) => ModelTurn))[];

export interface Opened {
  at: PiHome;
  rpc: RpcSession;
  scripted: ScriptedModel;
  /** Sends one prompt, which the model answers with these turns. Resolves with the tool calls that ended. */
  prompt(...turns: Turns): Promise<RpcToolEnd[]>;
  /** Calls one tool of live.mjs. Throws if the call fails. */
  ask(tool: string): Promise<LiveAnswer>;
  /** Resolves with the first notice from record `since` on that fits; waits if there is none yet. */
  notice(fits: RegExp, since?: number): Promise<string>;
  /** Resolves with the first dialog from record `since` on; waits if there is none yet. */
  dialog(since?: number): Promise<RpcDialog>;
  answer(dialog: RpcDialog, answer: RpcAnswer): void;
  /** Waits for the status line, for example `MCP: 2 servers ready · 3 tools`. */
  statusLine(text: string | undefined, since?: number): Promise<RpcEvent>;
  /** Resolves with the text of `/mcp`. */
  status(): Promise<string>;
}

export interface OpenOptions extends HomeOptions, Pick<PiOptions, "args" | "env" | "runtime"> {
  /** The home of an earlier run; a new home if left out. */
  at?: PiHome;
  extensions?: readonly string[];
}

const isNotice = (event: RpcEvent): boolean => notices([event]).length > 0;

/** Starts Pi and waits until it is ready. */
export async function open(options: OpenOptions): Promise<Opened> {
  const turns: Turns = [];
  const scripted = await model((request) => {
    const turn = turns.shift();
    return typeof turn === "function" ? turn(request) : turn;
  });
  const at = options.at ?? (await home(options));
  const rpc = await startRpc({
    home: at,
    model: scripted,
    extensions: options.extensions ?? ENTRY,
    ...(options.args ? { args: options.args } : {}),
    ...(options.env ? { env: options.env } : {}),
    ...(options.runtime ? { runtime: options.runtime } : {}),
  });
  onCleanup(() => rpc.stop());
  await rpc.ready(PATIENCE_MS);

  const prompt: Opened["prompt"] = async (...next) => {
    // A turn that an earlier prompt left over answers nothing.
    turns.splice(0, turns.length, ...next);
    return toolEnds(await rpc.prompt("go", PATIENCE_MS));
  };
  return {
    at,
    rpc,
    scripted,
    prompt,
    ask: async (tool) => {
      const [end] = await prompt(call(tool, {}));
      if (!end || end.isError) throw new Error(`${tool} failed: ${end?.text}`);
      return JSON.parse(end.text) as LiveAnswer;
    },
    notice: async (fits, since = 0) => {
      const found = await rpc.waitFor(
        (event) => isNotice(event) && fits.test(String(event.message)),
        PATIENCE_MS,
        since,
      );
      return String(found.message);
    },
    dialog: async (since = 0) => {
      const found = await rpc.waitFor((event) => toDialog(event) !== undefined, PATIENCE_MS, since);
      return toDialog(found) as RpcDialog;
    },
    answer: ({ id }, answer) => rpc.send({ type: "extension_ui_response", id, ...answer }),
    statusLine: (text, since = 0) =>
      rpc.waitFor(
        (event) =>
          event.type === "extension_ui_request" && event.method === "setStatus" && event.statusText === text,
        PATIENCE_MS,
        since,
      ),
    status: async () =>
      notices(await rpc.command("/mcp", PATIENCE_MS))
        .map(({ message }) => message)
        .join("\n"),
  };
}

/** Returns the dialogs so far, from record `since` on. */
export const dialogsOf = (rpc: RpcSession, since = 0): RpcDialog[] =>
  rpc.events
    .slice(since)
    .map(toDialog)
    .filter((dialog) => dialog !== undefined);

/**
 * Answers the questions of one prompt in order, each when it has come, after which the model says `ok`. `texts`: the results
 * of the calls. `asked`: how many questions there were.
 */
export async function answering(pi: Opened, turns: readonly ModelTurn[], ...answers: string[]) {
  const from = pi.rpc.events.length;
  const ends = pi.prompt(...turns, { text: "ok" });
  const titles: string[] = [];
  for (const [at, value] of answers.entries()) {
    await expect.poll(() => dialogsOf(pi.rpc, from).length, { timeout: PATIENCE_MS }).toBe(at + 1);
    const dialog = dialogsOf(pi.rpc, from).at(-1);
    if (!dialog) throw new Error("no dialog");
    titles.push(dialog.title);
    pi.answer(dialog, { value });
  }
  const texts = (await ends).map(({ text }) => text);
  return { titles, texts, asked: dialogsOf(pi.rpc, from).length };
}

/** Returns the notices about the effect of an edit, from record `since` on. */
export const effectsOf = (rpc: RpcSession, since = 0): string[] =>
  notices(rpc.events.slice(since))
    .map(({ message }) => message)
    .filter((message) => message.startsWith("mcp.json: "));

/** A copy of the built extension, in the home's temp folder, whose connection worker ends at `breakWorker`. */
export async function breakableEntry(at: PiHome): Promise<string> {
  const folder = await copyExtension(at);
  const worker = (name: string): string => join(folder, "dist", "workers", name);
  await rename(worker("connection.js"), worker("real.js"));
  const lines = [
    'import { existsSync, rmSync } from "node:fs";',
    'import "./real.js";',
    `setInterval(() => { if (existsSync("${at.dir}/break")) { rmSync("${at.dir}/break"); process.exit(9); } }, 20);`,
  ];
  await writeFile(worker("connection.js"), lines.join("\n"));
  return join(folder, "index.js");
}
/** Ends the connection worker. Resolves when the notice about that end is there. */
export const breakWorker = async ({ at, notice }: Opened): Promise<void> => {
  await writeFile(join(at.dir, "break"), "");
  await notice(/^The MCP connection worker ended unexpectedly/);
};

/** Resolves with the pids of the running servers of test/fixtures/servers. */
export const serversOf = async (at: PiHome): Promise<number[]> =>
  (await processesWithMarker(`HOME=${at.dir}`))
    .filter(({ command }) => command.includes("fixtures/servers"))
    .map(({ pid }) => pid);

/** Expects a clean test: no error of a handler, no output outside the protocol, an empty stderr. */
export function expectClean({ rpc }: Opened): void {
  expect(extensionErrors(rpc.events)).toEqual([]);
  expect(rpc.strayLines).toEqual([]);
  expect(rpc.stderr).toBe("");
}
