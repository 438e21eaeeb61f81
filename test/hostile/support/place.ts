/**
 * Owns: the home of one attack, or of several attacks in turn: folders, canaries, and the programs of hostile HTTP servers.
 * Must not: start Pi.
 * Called by: run-row.ts and the bench scenario `hostile`.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Readable } from "node:stream";
import type { Registry } from "../../support/npm-registry.ts";
import { createHome, type HomeOptions } from "../../support/pi-home.ts";
import { type Canary, startCanary } from "./canary.ts";
import { PACKAGE, startUserRegistry } from "./registry.ts";
import type { Entry, Place } from "./row.ts";

const SERVERS = join(import.meta.dirname, "..", "servers");
export const PROBE = join(import.meta.dirname, "probe.mjs");
export const STAGE = join(import.meta.dirname, "stage.mjs");
/** A module for Node's --require; its own comment says what it does. */
export const SILENT = join(import.meta.dirname, "silent.cjs");
export const EMPTY_EXTENSION = join(import.meta.dirname, "empty.mjs");

export interface OpenPlace extends Place {
  /** Begins another attack in the same home, beside the attacks that it has. */
  next(server: string): Promise<void>;
  /** Turns to an attack that has begun: what the place says from now on is about this attack. */
  turnTo(server: string): void;
  /** Ends the programs of all attacks. */
  clear(): Promise<void>;
  dispose(): Promise<void>;
}

const program = (name: string, args: readonly string[], env: Record<string, string> = {}): Entry => ({
  command: process.execPath,
  args: [join(SERVERS, name), ...args],
  env,
});

/**
 * The entry of the healthy server, which runs beside every attack; its tool `echo` answers with its text. `seenFile`: a
 * file that gets a line for each message that it receives.
 */
export const healthyServer = (seenFile?: string): Entry =>
  program("healthy.mjs", [], seenFile === undefined ? {} : { SEEN: seenFile });

/** The lines that a server has written to its `SEEN` file. */
export const linesIn = async (seenFile: string): Promise<string[]> =>
  (await readFile(seenFile, "utf8").catch(() => "")).split("\n").filter(Boolean);

function startHttp(name: string, args: readonly string[], env: Record<string, string>) {
  const child = spawn(process.execPath, [join(SERVERS, "http", name), ...args], {
    env: { ...process.env, ...env },
    // The program ends when the pipe ends, so no program survives a killed test run.
    stdio: ["pipe", "pipe", "inherit"],
  });
  child.stdout.setEncoding("utf8");
  return child;
}

/** The address that the program tells on the next line of its output. */
async function nextUrl({ stdout }: { stdout: Readable }): Promise<{ url: string }> {
  const [line] = (await once(stdout, "data")) as [string];
  return { url: `http://127.0.0.1:${Number(line)}/mcp` };
}

export async function openPlace(options: HomeOptions = {}): Promise<OpenPlace> {
  const home = await createHome(options);
  let server = "evil";
  const canaries = new Map<string, Canary>([[server, await startCanary()]]);
  const children: ChildProcess[] = [];
  const shared = new Map<string, ReturnType<typeof startHttp>>();
  let registry: Registry | undefined;
  const seenFile = (): string => join(home.dir, `seen-${server}`);
  const canaryFile = join(home.dir, "canary");
  const canary = (): Canary => {
    const found = canaries.get(server);
    if (found === undefined) throw new Error(`the attack of ${server} is over`);
    return found;
  };
  const env = (): Record<string, string> => ({
    SEEN: seenFile(),
    CANARY_FILE: canaryFile,
    CANARY_URL: canary().origin,
  });
  const clear = async (): Promise<void> => {
    for (const child of [...children.splice(0), ...shared.values()]) child.kill("SIGKILL");
    shared.clear();
    const open = [...canaries.values()];
    canaries.clear();
    await Promise.all(open.map(({ close }) => close()));
  };
  return {
    home,
    canaryFile,
    get canary() {
      return canary();
    },
    get server() {
      return server;
    },
    get seenFile() {
      return seenFile();
    },
    seen: () => linesIn(seenFile()),
    hostile: (name, ...args) => program(name, args, env()),
    http: async (name, ...args) => {
      const child = startHttp(name, args, env());
      children.push(child);
      return nextUrl(child);
    },
    sharedHttp: async (name, ...args) => {
      const child = shared.get(name) ?? startHttp(name, [], {});
      shared.set(name, child);
      child.stdin.write(`${JSON.stringify({ args, env: env() })}\n`);
      return nextUrl(child);
    },
    npx: async () => {
      registry ??= await startUserRegistry();
      const npmrc = `registry=${registry.url}\nupdate-notifier=false\naudit=false\nfund=false\n`;
      await writeFile(join(home.dir, ".npmrc"), npmrc);
      return { command: "npx", args: ["-y", PACKAGE, "."] };
    },
    file: async (name, content) => {
      const path = join(home.dir, name);
      await mkdir(dirname(path), { recursive: true });
      if (content !== undefined)
        await writeFile(path, typeof content === "string" ? content : JSON.stringify(content));
      return path;
    },
    next: async (name) => {
      server = name;
      canaries.set(name, await startCanary());
    },
    turnTo: (name) => {
      server = name;
    },
    clear,
    dispose: async () => {
      await clear();
      await registry?.close();
      await home.dispose();
    },
  };
}
