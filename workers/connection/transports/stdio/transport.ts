/**
 * MCP over the stdin and stdout of a child process (MCP 2025-11-25, basic/transports, stdio): one JSON
 * message a line. Implements the SDK's `Transport`; unlike the SDK's own it ends the whole process tree,
 * copies each byte once and has a size limit of its own.
 */

import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { ThreadsError } from "../../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../../src/shared/protocol/limits.ts";
import {
  type Killed,
  killTree,
  type Launch,
  type ServerProcess,
  spawnServer,
} from "../../../shared/programs/processes.ts";
import { spawnFailure } from "../../../shared/programs/spawn-failure.ts";
import type { CloseTimes } from "../../mcp/mcp.ts";
import type { JSONRPCMessage, Transport } from "../../mcp/wire/wire.ts";
import type { TooLarge } from "../../messages/messages.ts";
import { createStdioInbox, type StdioInbox } from "./inbox.ts";
import { ServerStderr } from "./stderr.ts";

export interface StdioOptions {
  server: string;
  /** As the definition names it, for the errors. */
  command: string;
  launch: Launch;
  maxMessageBytes: number;
  onSpawn: (pid: number) => void;
  onExit: (pid: number) => void;
  /** Told of each piece of its output before that is looked at. */
  onBytes?: ((bytes: number) => void) | undefined;
  /** One line about something odd that is not an error. */
  onNote: (note: string) => void;
  /** Takes secrets out of what is kept of stderr. */
  redact: (text: string) => string;
  /** Each line that it writes to stderr, where somebody wants them. */
  onStderr?: ((line: string) => void) | undefined;
}

/** After a server has exited, its last output is waited for this long. */
const LAST_OUTPUT_MS = 250;

export class StdioTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;

  readonly #options: StdioOptions;
  readonly #inbox: StdioInbox;
  #process: ServerProcess | undefined;
  readonly #stderr: ServerStderr;
  #exited: Promise<void> = Promise.resolve();
  #ended = false;
  #failure: ThreadsError | undefined;
  #exit = "";

  constructor(options: StdioOptions) {
    this.#options = options;
    this.#stderr = new ServerStderr(options.onStderr);
    this.#inbox = createStdioInbox({
      maxMessageBytes: options.maxMessageBytes,
      onMessage: (message) => this.onmessage?.(message),
      onTooLarge: (error) => this.#refuse(error),
      onNote: options.onNote,
    });
  }

  /** Why the connection ended, where the reason was ours to see; otherwise how the process ended. */
  get failure(): ThreadsError | undefined {
    return this.#failure;
  }

  /** For example `exited with code 1`; empty while it runs. */
  get exit(): string {
    return this.#exit;
  }

  get pid(): number | undefined {
    return this.#process?.pid;
  }

  /** The end of what the server wrote to stderr. */
  get stderrTail(): string {
    return this.#stderr.tail(this.#options.redact);
  }

  /** Settles when the process runs. Throws `spawn_failed` where it cannot be started. */
  async start(): Promise<void> {
    const { server, command, launch } = this.#options;
    const child = spawnServer(launch);
    this.#process = child;
    this.#exited = new Promise((resolve) => {
      // Not "close": a child of the server may hold its stdout open long after the server is gone.
      child.once("exit", (code, signal) => {
        this.#onProcessEnd(child, code, signal).then(resolve, resolve);
      });
      child.once("error", () => resolve(undefined));
    });
    this.#listen(child);
    try {
      await once(child, "spawn");
    } catch (error) {
      throw await spawnFailure({ server, command, cwd: launch.cwd, error });
    }
    if (child.pid !== undefined) this.#options.onSpawn(child.pid);
  }

  #listen(child: ServerProcess): void {
    child.stdout.on("data", (chunk: Buffer) => {
      this.#options.onBytes?.(chunk.length);
      const turn = this.#inbox.push(chunk);
      if (!turn) return;
      child.stdout.pause();
      turn.then(() => child.stdout.resume());
    });
    child.stderr.on("data", (chunk: Buffer) => this.#stderr.push(chunk));
    // A server that closes its stdin answers writes with EPIPE; its end is told by "close".
    child.stdin.on("error", (error) => this.onerror?.(error));
    child.stdout.on("error", (error) => this.onerror?.(error));
    child.stderr.on("error", (error) => this.onerror?.(error));
    child.on("error", (error) => this.onerror?.(error));
  }

  #refuse({ excess: { what, remedy, data } }: TooLarge): void {
    const { server } = this.#options;
    this.fail(
      new ThreadsError("message_too_large", `${server} sent ${what}; the connection was closed.`, {
        remedy,
        data: { server, ...data },
      }),
    );
  }

  /** Ends the process at once, and the connection with it. */
  fail(reason: ThreadsError): void {
    this.#failure ??= reason;
    this.#inbox.stop();
    if (this.#kill("SIGKILL") === "refused") this.#abandon();
  }

  async #onProcessEnd(
    child: ServerProcess,
    code: number | null,
    signal: NodeJS.Signals | null,
  ): Promise<void> {
    this.#exit = signal === null ? `exited with code ${code}` : `was ended by ${signal}`;
    // What it wrote last may still lie in the pipe.
    await within(LAST_OUTPUT_MS, once(child, "close"));
    child.stdout.destroy();
    child.stderr.destroy();
    this.#stderr.end();
    // What it started may still be in its group, and nobody else would end it.
    this.#kill("SIGKILL");
    if (child.pid !== undefined) this.#options.onExit(child.pid);
    this.#end();
  }

  #end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#inbox.stop();
    this.onclose?.();
  }

  /** Rejects where the process no longer reads. Waits while its pipe is full. */
  async send(message: JSONRPCMessage): Promise<void> {
    const stdin = this.#process?.stdin;
    if (!stdin?.writable) throw new Error(`${this.#options.server} ${this.#exit || "is not running"}`);
    this.#inbox.sent(message);
    // By the callback of this very write: a listener for "drain" would be one more for each message that waits.
    const { promise: taken, resolve } = Promise.withResolvers<void>();
    if (stdin.write(`${oneLine(message)}\n`, () => resolve())) return;
    await Promise.race([taken, this.#exited]);
  }

  /** Whether the process has ended by then, in milliseconds from now. */
  endsWithin(ms: number): Promise<boolean> {
    return within(ms, this.#exited);
  }

  #kill(signal: "SIGTERM" | "SIGKILL"): Killed {
    const pid = this.pid;
    return pid === undefined ? "gone" : killTree(pid, signal);
  }

  /** For a process that the system does not let us end: its end is not waited for. */
  #abandon(): void {
    const child = this.#process;
    if (child && this.#exit === "") {
      this.#options.onNote(`still runs as process ${child.pid}: the system refuses to end it`);
      for (const stream of [child.stdin, child.stdout, child.stderr]) stream.destroy();
      child.unref();
    }
    this.#end();
  }

  async close(): Promise<void> {
    await this.closeWithin({ termMs: LIMITS.closeTermMs, killMs: LIMITS.closeKillMs });
  }

  /** Ends stdin, then SIGTERM to the group after `termMs`, SIGKILL after `killMs`, both from now. */
  async closeWithin({ termMs, killMs }: CloseTimes): Promise<void> {
    if (this.pid !== undefined && !this.#ended) {
      this.#process?.stdin.end();
      if (!(await within(termMs, this.#exited))) {
        this.#kill("SIGTERM");
        if (!(await within(killMs - termMs, this.#exited)) && this.#kill("SIGKILL") === "refused") {
          // macOS also refuses for a process that has just ended.
          await within(LAST_OUTPUT_MS, this.#exited);
          if (this.#exit === "") return this.#abandon();
        }
      }
      await this.#exited;
    }
    this.#end();
  }
}

/** JSON may hold these line ends of Unicode as they are, and a server that reads with Node's readline ends a line there. */
const oneLine = (message: JSONRPCMessage): string =>
  JSON.stringify(message).replaceAll("\u2028", "\\u2028").replaceAll("\u2029", "\\u2029");

/** Whether the promise settles within the time. */
async function within(ms: number, promise: Promise<unknown>): Promise<boolean> {
  const timer = new AbortController();
  const late = sleep(ms, false, { signal: timer.signal }).catch(() => false);
  const settled = await Promise.race([
    promise.then(
      () => true,
      () => true,
    ),
    late,
  ]);
  timer.abort();
  return settled;
}
