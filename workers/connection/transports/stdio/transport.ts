/**
 * MCP over the stdin and stdout of a child process (MCP 2025-11-25, basic/transports, stdio): one JSON message a
 * line. Implements the SDK's `Transport`. Unlike the SDK's own transport it ends the whole process tree, copies each
 * byte once and has its own size limit.
 */

import { once } from "node:events";
import type { Readable } from "node:stream";
import { ThreadsError } from "../../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../../src/shared/protocol/limits.ts";
import type { Sharing } from "../../../../src/shared/protocol/session.ts";
import { oneLine as oneLineText } from "../../../../src/shared/text/unprintable.ts";
import type { CloseTimes } from "../../../shared/pace/pace.ts";
import { createReader, type Reader, readInTurn, type Steps } from "../../../shared/pace/turns.ts";
import { ProcessEnd } from "../../../shared/programs/end.ts";
import { spawnFailure } from "../../../shared/programs/launch.ts";
import type { ServerProcess } from "../../../shared/programs/processes.ts";
import type { JSONRPCMessage, Transport } from "../../mcp/wire/wire.ts";
import { TooLarge } from "../../messages/too-large.ts";
import { boundText } from "../../secrets/redact.ts";
import { createStdioInbox, type StdioInbox } from "./inbox.ts";
import { ServerStderr } from "./stderr.ts";

/** Of what a server prints where only messages belong, for the error of its start. */
const PRINTED_LINES = 2;
const PRINTED_CHARS = 200;

export interface StdioOptions {
  server: string;
  /** The command as the definition writes it, for errors. */
  command: string;
  /** Its working folder, for errors. */
  cwd: string;
  /** Starts the process. */
  spawn: () => ServerProcess;
  maxMessageBytes: number;
  onSpawn: (pid: number) => void;
  onExit: (pid: number) => void;
  /** Whose output is read. */
  reader?: Reader | undefined;
  /** Gets one line about something odd that is not an error. */
  onNote: (note: string) => void;
  /** Takes secrets out of the last part of stderr. */
  redact: (text: string) => string;
  /** Gets each line of stderr. Absent: nobody wants the lines. */
  onStderr?: ((line: string) => void) | undefined;
}

export class StdioTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;

  readonly #options: StdioOptions;
  readonly #inbox: StdioInbox;
  readonly #stderr: ServerStderr;
  readonly #reader: Reader;
  /** Settles when stdout and stderr have been read, as far as they are read at all. Never rejects. */
  #read: Promise<unknown> = Promise.resolve();
  #process: ServerProcess | undefined;
  #spawned: Promise<void> | undefined;
  #end: ProcessEnd | undefined;
  #isOver = false;
  #heard = 0;
  #failure: ThreadsError | undefined;
  /** The first lines of stdout that are no messages. */
  readonly #printed: string[] = [];

  constructor(options: StdioOptions) {
    this.#options = options;
    this.#reader = options.reader ?? createReader();
    this.#stderr = new ServerStderr(options.onStderr);
    this.#inbox = createStdioInbox({
      server: options.server,
      maxMessageBytes: options.maxMessageBytes,
      onMessage: (message) => this.onmessage?.(message),
      onTooLarge: (error) => this.#refuse(error),
      onNote: options.onNote,
      onText: (line) => {
        if (this.#printed.length < PRINTED_LINES) this.#printed.push(line);
      },
    });
  }

  /** Why this side ended the connection; undefined if this side did not. */
  get failure(): ThreadsError | undefined {
    return this.#failure;
  }

  /** For example `exited with code 1`; empty while the process runs. */
  get exit(): string {
    return this.#end?.exit ?? "";
  }

  get pid(): number | undefined {
    return this.#process?.pid;
  }

  /** Bytes of stdout that were read so far. */
  get heard(): number {
    return this.#heard;
  }

  /** Undefined: the process is this session's own. */
  get sharing(): Sharing | undefined {
    return this.#process?.sharing;
  }

  /** The hub of shared servers has gone, and nothing is known of the server. */
  get isLost(): boolean {
    return this.#process?.isLost ?? false;
  }

  /** The last part of stderr, without secrets. */
  get stderrTail(): string {
    return this.#stderr.tail(this.#options.redact);
  }

  /** The start of the first lines of stdout that were no messages, without secrets. */
  get printed(): string[] {
    return this.#printed.map((line) =>
      oneLineText(boundText(line, PRINTED_CHARS, this.#options.redact), PRINTED_CHARS),
    );
  }

  /**
   * Starts the process, whose output waits until `start`. Settles when the process runs. Throws `spawn_failed` if the
   * process cannot be started, `connect_failed` if the hub does not start it.
   */
  spawn(): Promise<void> {
    this.#spawned ??= this.#spawn();
    return this.#spawned;
  }

  /** Reads the output from now on, as soon as there is somebody who wants it. Throws what `spawn` throws. */
  async start(): Promise<void> {
    const spawned = this.spawn();
    const { stdout } = this.#process ?? {};
    // A message that is not complete waits for nothing any more.
    stdout?.once("close", () => this.#inbox.end());
    if (stdout)
      this.#follow(stdout, (piece) => {
        this.#heard += piece.length;
        return this.#inbox.push(piece);
      });
    await spawned;
  }

  #follow(output: Readable, take: (piece: Buffer) => Steps): void {
    const read = readInTurn(output, this.#reader, take).catch((error: unknown) => {
      // How else the output ends is reported by the end of the process.
      if (error instanceof TooLarge) this.#refuse(error);
    });
    this.#read = Promise.all([this.#read, read]);
  }

  async #spawn(): Promise<void> {
    let child: ServerProcess;
    try {
      child = this.#options.spawn();
    } catch (error) {
      throw await this.#notStarted(error);
    }
    this.#process = child;
    const isOwn = child.leave === undefined;
    // At once: whoever ends Pi from here on has to know of the process. A shared one goes on.
    if (isOwn && child.pid !== undefined) this.#options.onSpawn(child.pid);
    this.#end = new ProcessEnd(child, {
      onExit: (pid) => {
        this.#stderr.end();
        if (isOwn) this.#options.onExit(pid);
      },
      onEnd: () => this.#finish(),
      read: () => this.#read,
      onNote: this.#options.onNote,
    });
    this.#listen(child);
    try {
      await once(child, "spawn");
    } catch (error) {
      throw await this.#notStarted(error);
    }
  }

  async #notStarted(error: unknown): Promise<ThreadsError> {
    const { server, command, cwd } = this.#options;
    return error instanceof ThreadsError ? error : spawnFailure({ server, command, cwd, error });
  }

  #listen(child: ServerProcess): void {
    this.#follow(child.stderr, (piece) => this.#stderr.push(piece));
    // A write to a server that has closed its stdin fails with EPIPE. `ProcessEnd` ends such a server.
    child.stdin.on("error", (error) => this.onerror?.(error));
    child.stdout.on("error", (error) => this.onerror?.(error));
    child.stderr.on("error", (error) => this.onerror?.(error));
    child.on("error", (error) => this.onerror?.(error));
  }

  #refuse({ excess: { code = "message_too_large", what, remedy, data } }: TooLarge): void {
    const { server } = this.#options;
    this.fail(
      new ThreadsError(code, `${server} sent ${what}; the connection was closed.`, {
        remedy,
        data: { server, ...data },
      }),
    );
  }

  /** Ends the process at once, and the connection with it. */
  fail(reason: ThreadsError): void {
    this.#failure ??= reason;
    this.#inbox.stop();
    this.#end?.killNow();
  }

  #finish(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#inbox.stop();
    this.onclose?.();
  }

  /** Rejects if the process no longer reads. Waits while the pipe is full. */
  async send(message: JSONRPCMessage): Promise<void> {
    const stdin = this.#process?.stdin;
    if (!stdin?.writable || !this.#end) {
      // As the system reports a write that comes a moment later.
      throw Object.assign(new Error(`${this.#options.server} ${this.exit || "is not running"}`), {
        code: "EPIPE",
      });
    }
    this.#inbox.sent(message);
    // The callback of this write is enough: a listener for "drain" would be one more for each message that waits.
    const { promise: taken, resolve } = Promise.withResolvers<void>();
    // What is sent in one turn reaches the server by one write.
    if (stdin.writableCorked === 0) {
      stdin.cork();
      process.nextTick(() => stdin.uncork());
    }
    if (stdin.write(`${oneLine(message)}\n`, () => resolve())) return;
    await Promise.race([taken, this.#end.exited]);
  }

  /** Whether the process has ended by then, in milliseconds from now. True if it was never started. */
  async endsWithin(ms: number): Promise<boolean> {
    return this.#end?.endsWithin(ms) ?? true;
  }

  async close(): Promise<void> {
    await this.closeWithin({ termMs: LIMITS.closeTermMs, killMs: LIMITS.closeKillMs });
  }

  /** Ends stdin, then sends SIGTERM to the group after `termMs` and SIGKILL after `killMs`, both from now. */
  async closeWithin(times: CloseTimes): Promise<void> {
    await this.#end?.closeWithin(times);
    this.#finish();
  }
}

/** JSON may hold these line ends of Unicode, but a server that reads with Node's readline would end the line there. */
const oneLine = (message: JSONRPCMessage): string =>
  JSON.stringify(message).replaceAll("\u2028", "\\u2028").replaceAll("\u2029", "\\u2029");
