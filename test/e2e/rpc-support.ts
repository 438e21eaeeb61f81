/** Owns: a Pi over RPC whose model says what the test tells it next, and waits for what the user is shown. */
import { cp, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { ModelTurn, ScriptedModel } from "../support/model.ts";
import {
  type HomeOptions,
  type PiHome,
  type PiOptions,
  type RpcSession,
  startRpc,
} from "../support/pi-run.ts";
import {
  notices,
  type RpcAnswer,
  type RpcDialog,
  type RpcEvent,
  type RpcToolEnd,
  toDialog,
  toolEnds,
} from "../support/rpc-events.ts";
import { call, ENTRY, fixtureServer, home, model, onCleanup, root } from "./support.ts";

/** Against hangs only: Pi, its worker and servers start on two busy cores. */
export const PATIENCE_MS = 40_000;

type Entry = Record<string, unknown>;

/** test/fixtures/servers/live.mjs with these arguments and variables. */
export const live = (args: string[] = [], env: Record<string, string> = {}, more: Entry = {}): Entry => {
  const { args: script = [], ...entry } = fixtureServer("live.mjs", env);
  return { ...entry, args: [...(script as string[]), ...args], ...more };
};

/** What that server answers to a call. */
export interface LiveAnswer {
  pid: number;
  argv: string[];
  token: string;
}

export interface Opened {
  at: PiHome;
  rpc: RpcSession;
  scripted: ScriptedModel;
  /** Prompts; the model gives these turns, then ends. Answers the tool calls that ended. */
  prompt(...turns: ModelTurn[]): Promise<RpcToolEnd[]>;
  /** Calls one tool of the fixture above. */
  ask(tool: string): Promise<LiveAnswer>;
  /** The first notice, past or to come, at or behind record `since`, that fits. */
  notice(fits: RegExp, since?: number): Promise<string>;
  /** The first dialog at or behind record `since`. */
  dialog(since?: number): Promise<RpcDialog>;
  answer(dialog: RpcDialog, answer: RpcAnswer): void;
  /** Waits for the status line, for example `MCP 1/2 · 3 tools`. */
  statusLine(text: string | undefined, since?: number): Promise<RpcEvent>;
  /** What `/mcp` says. */
  status(): Promise<string>;
}

export interface OpenOptions extends HomeOptions, Pick<PiOptions, "args" | "env" | "runtime"> {
  /** A home of an earlier run. */
  at?: PiHome;
  extensions?: readonly string[];
}

const isNotice = (event: RpcEvent): boolean => notices([event]).length > 0;

/** Starts Pi and waits until it is ready. */
export async function open(options: OpenOptions): Promise<Opened> {
  const turns: ModelTurn[] = [];
  const scripted = await model(() => turns.shift());
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
    turns.push(...next);
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

/** Dialogs that Pi has asked for so far, at or behind record `since`. */
export const dialogsOf = (rpc: RpcSession, since = 0): RpcDialog[] =>
  rpc.events
    .slice(since)
    .map(toDialog)
    .filter((dialog) => dialog !== undefined);

/** Notices that tell the effect of a change, at or behind record `since`. */
export const effectsOf = (rpc: RpcSession, since = 0): string[] =>
  notices(rpc.events.slice(since))
    .map(({ message }) => message)
    .filter((message) => message.startsWith("mcp.json: "));

/** The packed extension, whose connection worker ends when `breakWorker` says so. */
export async function openBreakable(at: PiHome): Promise<Opened> {
  const folder = join(at.dir, "ext");
  await cp(join(root, "dist"), folder, { recursive: true });
  await writeFile(join(folder, "package.json"), '{"type":"module"}');
  const worker = (name: string): string => join(folder, "workers", name);
  await rename(worker("connection.js"), worker("real.js"));
  const lines = [
    'import { existsSync, rmSync } from "node:fs";',
    'import "./real.js";',
    `setInterval(() => { if (existsSync("${at.dir}/break")) { rmSync("${at.dir}/break"); process.exit(9); } }, 20);`,
  ];
  await writeFile(worker("connection.js"), lines.join("\n"));
  return open({ at, extensions: [join(folder, "index.js")] });
}
/** Settles when the user has been told. */
export const breakWorker = async ({ at, notice }: Opened): Promise<void> => {
  await writeFile(join(at.dir, "break"), "");
  await notice(/^The MCP connection worker ended unexpectedly/);
};
