/**
 * Owns: one tmux server with one terminal, and the commands that it gets. The commands go over the pipe of one client in
 * control mode (tmux(1), CONTROL MODE), because a process for each look at the screen costs more than what Pi draws.
 * Must not: know what runs in the terminal.
 * Called by: terminal.ts for Pi, and cli/tmux.ts for a shell.
 */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { PATIENCE_MS } from "./patience.ts";

const POLL_MS = 50;

export interface TmuxOptions {
  columns: number;
  rows: number;
  cwd: string;
  env: NodeJS.ProcessEnv;
  /** The program of the terminal and its arguments. */
  program: readonly string[];
}

export interface Tmux {
  /** Runs one command of tmux and resolves with its lines. Rejects with its error, or once the terminal has ended. */
  run(...command: readonly string[]): Promise<string[]>;
  /** Ends the server and what runs in its terminal. */
  kill(): Promise<void>;
}

interface Running {
  resolve(lines: string[]): void;
  reject(error: Error): void;
}

/** An argument for tmux's own parser: between single quotes every character stands for itself. */
function quoted(argument: string): string {
  if (/[\r\n]/.test(argument)) throw new Error(`a line of tmux cannot hold ${JSON.stringify(argument)}`);
  return `'${argument.replaceAll("'", `'\\''`)}'`;
}

/** An answer is a block: `%begin <time> <number> <flags>`, lines, and `%end` or `%error` with the same three. */
const BEGINS = /^%begin (\d+ \d+) (\d+)$/;
/** The block answers a command of this client. */
const OWN = "1";

/** Reads the answers of the client and hands each one to the command that has waited longest. */
class Answers {
  readonly #waiting: Running[] = [];
  #rest = "";
  #block: { id: string; isOwn: boolean; lines: string[] } | undefined;
  #ended = false;

  wait(command: Running): void {
    if (this.#ended) command.reject(new Error("the terminal has ended"));
    else this.#waiting.push(command);
  }

  take(chunk: string): void {
    const lines = (this.#rest + chunk).split("\n");
    this.#rest = lines.pop() ?? "";
    for (const line of lines) this.#line(line);
  }

  end(): void {
    this.#ended = true;
    for (const command of this.#waiting.splice(0)) command.reject(new Error("the terminal has ended"));
  }

  #line(line: string): void {
    if (this.#block === undefined) {
      const [, id, flags] = BEGINS.exec(line) ?? [];
      // Other lines tell of events.
      if (id !== undefined) this.#block = { id, isOwn: flags === OWN, lines: [] };
      return;
    }
    const { id, isOwn, lines } = this.#block;
    const isEnd = line.startsWith(`%end ${id} `);
    if (!isEnd && !line.startsWith(`%error ${id} `)) {
      lines.push(line);
      return;
    }
    this.#block = undefined;
    const command = isOwn ? this.#waiting.shift() : undefined;
    if (isEnd) command?.resolve(lines);
    else command?.reject(new Error(`tmux: ${lines.join("\n")}`));
  }
}

/** Starts a server with one terminal, in which the program runs. */
export async function openTmux({ columns, rows, cwd, env, program }: TmuxOptions): Promise<Tmux> {
  const server = ["-u", "-L", `pmt-${randomBytes(8).toString("hex")}`, "-f", "/dev/null"];
  const size = ["-x", String(columns), "-y", String(rows)];
  await promisify(execFile)("tmux", [...server, "new-session", "-d", ...size, "-c", cwd, ...program], {
    env,
  });
  const client: ChildProcess = spawn("tmux", [...server, "-C", "attach", "-f", "no-output"], {
    env,
    stdio: ["pipe", "pipe", "ignore"],
  });
  const answers = new Answers();
  const closed = new Promise<void>((resolve) => {
    const end = (): void => {
      answers.end();
      resolve();
    };
    client.once("close", end);
    client.once("error", end);
  });
  client.stdout?.setEncoding("utf8").on("data", (chunk: string) => answers.take(chunk));
  // A command after the end is rejected; the failed write has nothing to add.
  client.stdin?.on("error", () => {});
  const run: Tmux["run"] = (...command) =>
    new Promise((resolve, reject) => {
      const line = command.map(quoted).join(" ");
      answers.wait({ resolve, reject });
      client.stdin?.write(`${line}\n`);
    });
  return {
    run,
    kill: async () => {
      // The server's end is the end of the client, often before the answer; after the terminal's own end there is none.
      run("kill-server").catch(() => undefined);
      await closed;
    },
  };
}

/** Looks after the first one that matches: a screen that is read while it is drawn lacks its end, or has that of an old one. */
const MORE_LOOKS = 5;

/**
 * Looks until the screen matches and stands still, then answers its lines. After 30 s it throws an error with the screen's text.
 */
export async function untilShown(look: () => Promise<string[]>, expected: RegExp): Promise<string[]> {
  const endsAt = performance.now() + PATIENCE_MS;
  let before: string | undefined;
  let looks = 0;
  for (;;) {
    const lines = await look();
    const text = lines.join("\n");
    if (expected.test(text)) {
      // What always moves, such as a clock, never stands still.
      if (text === before || looks++ === MORE_LOOKS) return lines;
      before = text;
    } else if (before !== undefined) return before.split("\n");
    if (performance.now() > endsAt) throw new Error(`the screen never showed ${expected}:\n${text}`);
    await sleep(POLL_MS);
  }
}
