/**
 * How the process of a server ends. Owns: waiting for its exit and its last output; the steps end of stdin, SIGTERM,
 * SIGKILL; giving up on a process that the system does not let us end. Knows nothing of MCP.
 */

import { once } from "node:events";
import type { Readable } from "node:stream";
import { setImmediate as nextTurn } from "node:timers/promises";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { settledWithin } from "../pace/abort.ts";
import type { CloseTimes } from "../pace/pace.ts";
import { findStrays, type Killed, killStrays, killTree, onWindows, type ServerProcess } from "./processes.ts";

/** Time to read the last output of a server that has exited: the output may still be in the pipe. */
const LAST_OUTPUT_MS = 250;
/**
 * Turns of the event loop in which nothing comes, behind that time: in a thread that got no processor time a timer fires before
 * the loop has looked what came. Half of a secret that is written in two pieces is not recognized as one.
 */
const QUIET_TURNS = 20;
/** No program writes for so long behind its exit; a program that it has left behind may. */
const MOST_TURNS = 1_000;

/** Bytes of the stream that have come, and that nobody has taken yet. */
const stateOf = (stream: Readable & { bytesRead?: number }): string =>
  `${stream.bytesRead} ${stream.readableLength}`;

/** For example `exited with code 1` or `was ended by SIGTERM`. */
export const describeExit = (code: number | null, signal: NodeJS.Signals | null): string =>
  signal === null ? `exited with code ${code}` : `was ended by ${signal}`;

export interface ProcessEndOptions {
  /** The process has exited, and its last output has been read. */
  onExit: (pid: number) => void;
  /** The process is over, or nobody waits for it any more. Called once, and never before `onExit`. */
  onEnd: () => void;
  /** Gets one line about something odd that is not an error. */
  onNote: (note: string) => void;
  /** Settles when the output that has come has been read. Absent: nobody reads it. */
  read?: () => Promise<unknown>;
  /** Signals the whole process group. */
  kill?: (pid: number, signal: "SIGTERM" | "SIGKILL") => Killed;
}

export class ProcessEnd {
  readonly #child: ServerProcess;
  readonly #options: ProcessEndOptions;
  readonly #signalGroup: NonNullable<ProcessEndOptions["kill"]>;
  #exit = "";
  /** What has left the group. */
  #strays: Awaited<ReturnType<typeof findStrays>> = [];
  #isOver = false;
  #isClosing = false;
  #why: string | undefined;
  /** Settles when the process has exited and its last output has been read, or when it could not be started. */
  readonly exited: Promise<void>;

  constructor(child: ServerProcess, options: ProcessEndOptions) {
    this.#child = child;
    this.#options = options;
    this.#signalGroup = options.kill ?? killTree;
    this.exited = new Promise((resolve) => {
      // Not "close": a child of the server may hold the server's stdout open long after the server is gone.
      child.once("exit", (code: number | null, signal: NodeJS.Signals | null, why?: string) => {
        this.#onProcessEnd(why ?? this.#why ?? describeExit(code, signal)).then(resolve, resolve);
      });
      child.once("error", () => resolve());
    });
    child.stdout.once("end", () => void this.#onPipeEnd("closed its output"));
    // That of a shared one ends with this session's use of it.
    if (!child.leave) child.stdin.once("close", () => void this.#onPipeEnd("closed its input"));
  }

  /** For example `exited with code 1`; empty while the process runs. */
  get exit(): string {
    return this.#exit;
  }

  /** Why this side ends it, if nobody asked for that: it no longer says anything, or no longer hears anything. */
  get why(): string | undefined {
    return this.#why;
  }

  /** This side has begun to end it. */
  get isClosing(): boolean {
    return this.#isClosing;
  }

  /** Signals the process and everything that it has started. */
  kill(signal: "SIGTERM" | "SIGKILL"): Killed {
    const { pid, leave } = this.#child;
    if (leave) {
      leave.call(this.#child, "retire");
      return "sent";
    }
    return pid === undefined ? "gone" : this.#signalGroup(pid, signal);
  }

  /** Kills the process without waiting for it. */
  killNow(): void {
    if (this.kill("SIGKILL") === "refused") this.#abandon();
  }

  /** Whether the process has ended by then, in milliseconds from now. */
  endsWithin(ms: number): Promise<boolean> {
    return settledWithin(this.exited, ms);
  }

  /** Ends stdin, then sends SIGTERM to the group after `termMs` and SIGKILL after `killMs`, both from now. */
  async closeWithin({ termMs, killMs, isLast = false, leave = "keep" }: CloseTimes): Promise<void> {
    const { pid } = this.#child;
    this.#isClosing = true;
    if (this.#child.leave) {
      this.#child.leave(leave);
      await this.exited;
      return;
    }
    if (pid === undefined || this.#isOver) return;
    this.#strays = await findStrays(pid);
    this.#child.stdin.end();
    if (!(await this.endsWithin(termMs))) {
      this.kill("SIGTERM");
      if (!(await this.endsWithin(killMs - termMs))) {
        const killed = this.kill("SIGKILL");
        // At once: this thread may be ended next, and without their parent nobody else finds them.
        await killStrays(this.#strays);
        // macOS also refuses for a process that has just ended.
        if (killed === "refused" && !(await this.endsWithin(LAST_OUTPUT_MS)) && this.#exit === "") {
          this.#abandon();
          return;
        }
      }
    }
    if (!isLast) await this.exited;
  }

  /** The exit of a process that ends comes with the end of its pipes. One that lives on would never answer again. */
  async #onPipeEnd(why: string): Promise<void> {
    await this.endsWithin(LAST_OUTPUT_MS);
    for (let turn = 0; turn < QUIET_TURNS && this.#exit === ""; turn++) await nextTurn();
    if (this.#exit !== "" || this.#isClosing || this.#isOver || this.#child.pid === undefined) return;
    this.#why = why;
    await this.closeWithin({ termMs: LIMITS.closeTermMs, killMs: LIMITS.closeKillMs });
  }

  async #onProcessEnd(exit: string): Promise<void> {
    const child = this.#child;
    this.#exit = exit;
    await Promise.all([this.#lastOutput(), killStrays(this.#strays)]);
    child.stdout.destroy();
    child.stderr.destroy();
    await this.#options.read?.();
    if (!child.leave) {
      // What the server started may still be in its group, and nobody else would end it. Windows has no groups, and the number
      // of the process may already be another one's.
      if (!onWindows) this.kill("SIGKILL");
      // Those that were still being looked for.
      await killStrays(this.#strays);
    }
    if (child.pid !== undefined) this.#options.onExit(child.pid);
    this.#end();
  }

  async #lastOutput(): Promise<void> {
    let isClosed = false;
    const closed = once(this.#child, "close").then(
      () => {
        isClosed = true;
      },
      () => undefined,
    );
    await settledWithin(closed, LAST_OUTPUT_MS);
    let before = "";
    let quiet = 0;
    for (let turn = 0; turn < MOST_TURNS && quiet < QUIET_TURNS && !isClosed; turn++) {
      const now = `${stateOf(this.#child.stdout)} ${stateOf(this.#child.stderr)}`;
      quiet = now === before ? quiet + 1 : 0;
      before = now;
      await nextTurn();
    }
  }

  /** For a process that the system does not let us end: nobody waits for its end. */
  #abandon(): void {
    const child = this.#child;
    if (this.#exit === "") {
      this.#options.onNote(`still runs as process ${child.pid}: the system refuses to end it`);
      for (const stream of [child.stdin, child.stdout, child.stderr]) stream.destroy();
      child.unref();
    }
    this.#end();
  }

  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#options.onEnd();
  }
}
