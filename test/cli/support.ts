/** Owns: one run of the packed command as a child process, in a pipe, and the servers of such runs. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { npmServer } from "../support/npm-server.ts";
import type { PiHome } from "../support/pi-home.ts";

const root = join(import.meta.dirname, "..", "..");
export const CLI = join(root, "dist", "cli.js");

/** Room for what a worker makes at its start: nothing is collected meanwhile. As in vitest.config.ts. */
const ROOM_AT_START = "--min-semi-space-size=16";

export interface Run {
  code: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
}

export interface RunOptions {
  /** Text for stdin; without it stdin is empty. */
  stdin?: string;
  env?: Readonly<Record<string, string | undefined>>;
  /** Arguments of Node before the command's file. */
  node?: readonly string[];
  /** A program and its arguments that run Node with the command. */
  within?: readonly string[];
}

export interface Running {
  child: ChildProcess;
  /** Settles when the process has ended and its output is read. */
  ended: Promise<Run>;
}

export function startCli(home: PiHome, args: readonly string[], options: RunOptions = {}): Running {
  const node = [process.execPath, ROOM_AT_START, ...(options.node ?? []), CLI, ...args];
  const [program = "", ...words] = [...(options.within ?? []), ...node];
  const child = spawn(program, words, {
    cwd: home.cwd,
    env: home.env(options.env),
  });
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
    stdout += chunk;
  });
  child.stderr.setEncoding("utf8").on("data", (chunk: string) => {
    stderr += chunk;
  });
  // A command that ends early does not read its stdin.
  child.stdin.on("error", () => undefined);
  child.stdin.end(options.stdin ?? "");
  const ended = once(child, "close").then(
    ([code, signal]): Run => ({
      code: code as number | null,
      signal: signal as Run["signal"],
      stdout,
      stderr,
    }),
  );
  return { child, ended };
}

export const runCli = (home: PiHome, args: readonly string[], options?: RunOptions): Promise<Run> =>
  startCli(home, args, options).ended;

export const everything = () => npmServer("server-everything");
export const filesystem = (folder: string) => npmServer("server-filesystem", folder);
export const fixtureServer = (name: string, ...args: string[]) => ({
  command: process.execPath,
  args: [join(root, "test", "fixtures", "servers", name), ...args],
});
