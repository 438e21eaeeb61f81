/**
 * Owns: a conversation with one Pi in RPC mode: sending, collecting, waiting, answering dialogs, stopping.
 * Must not: start the process or interpret events beyond responses, `agent_settled` and dialogs.
 * Called by: pi-run.ts creates it; end-to-end tests use it.
 */
import type { PiExit, PiProcess } from "./pi-process.ts";
import { type RpcAnswer, type RpcDialog, type RpcEvent, toDialog } from "./rpc-events.ts";

/** Undefined leaves the dialog open. */
export type RpcAnswerer = (dialog: RpcDialog) => RpcAnswer | undefined;

/** This limit ends hangs only, so it is long enough for a busy machine. */
const DEFAULT_TIMEOUT_MS = 60_000;
const STDERR_TAIL_CHARS = 2_000;

interface Waiter {
  predicate: (event: RpcEvent) => boolean;
  resolve: (event: RpcEvent) => void;
  reject: (error: Error) => void;
}

export class RpcSession {
  /** Every record so far, responses included, oldest first. */
  readonly events: RpcEvent[] = [];
  /** Lines on stdout that are not records: some code wrote past the protocol. */
  readonly strayLines: string[] = [];
  readonly exited: Promise<PiExit>;
  readonly pid: number;
  readonly startedAtMs: number;
  stderr = "";
  #process: PiProcess;
  #waiters = new Set<Waiter>();
  #openDialogs: RpcDialog[] = [];
  #answerer: RpcAnswerer = () => undefined;
  #lastId = 0;
  /** Parts of an unfinished record. They are joined once, at its end, because one record may have many megabytes. */
  #parts: string[] = [];
  #exit: PiExit | undefined;

  constructor(child: PiProcess) {
    this.#process = child;
    this.pid = child.pid;
    this.startedAtMs = child.startedAtMs;
    this.exited = child.exited.then((exit) => this.#onExit(exit));
    child.stdout.on("data", (chunk: string) => this.#onData(chunk));
    child.stderr.on("data", (chunk: string) => {
      this.stderr += chunk;
    });
    // The waiter reports a write after the exit; the EPIPE error itself must not end the test process.
    child.stdin?.on("error", () => {});
  }

  /**
   * Sends a prompt and resolves with all records since then, once Pi has settled.
   * If an extension handles the prompt, no run starts and the promise resolves after the response.
   */
  async prompt(text: string, timeoutMs: number = DEFAULT_TIMEOUT_MS): Promise<RpcEvent[]> {
    const since = this.events.length;
    const response = await this.request({ type: "prompt", message: text }, timeoutMs);
    if (dispositionOf(response) !== "handled") {
      await this.waitFor((event) => event.type === "agent_settled", timeoutMs, since);
    }
    return this.events.slice(since);
  }

  /**
   * Runs a slash command and resolves with all records since then, once its handler has returned: Pi sends the response
   * after that. Throws if no extension handles the command, because Pi then shows the text to the model.
   */
  async command(text: string, timeoutMs: number = DEFAULT_TIMEOUT_MS): Promise<RpcEvent[]> {
    const since = this.events.length;
    const response = await this.request({ type: "prompt", message: text }, timeoutMs);
    if (dispositionOf(response) !== "handled") throw this.#failure(`no extension handled ${text}`);
    return this.events.slice(since);
  }

  /** Sends a command under a new id and resolves with the response. Throws if the response says `success: false`. */
  async request(record: RpcEvent, timeoutMs: number = DEFAULT_TIMEOUT_MS): Promise<RpcEvent> {
    this.#lastId += 1;
    const id = `request-${this.#lastId}`;
    const since = this.events.length;
    this.send({ ...record, id });
    const isResponse = (event: RpcEvent): boolean => event.type === "response" && event.id === id;
    const response = await this.waitFor(isResponse, timeoutMs, since);
    if (response.success !== true) {
      throw this.#failure(`Pi refused ${JSON.stringify(record)}: ${String(response.error)}`);
    }
    return response;
  }

  /** Resolves once Pi has loaded its extensions and awaited their `session_start` handlers. */
  async ready(timeoutMs: number = DEFAULT_TIMEOUT_MS): Promise<void> {
    await this.request({ type: "get_state" }, timeoutMs);
  }

  /** Writes one record without an id. */
  send(record: RpcEvent): void {
    this.#process.stdin?.write(`${JSON.stringify(record)}\n`);
  }

  /** The first record at or after index `since` that the predicate accepts; rejects on timeout or exit. */
  waitFor(
    predicate: (event: RpcEvent) => boolean,
    timeoutMs: number = DEFAULT_TIMEOUT_MS,
    since = 0,
  ): Promise<RpcEvent> {
    const known = this.events.slice(since).find(predicate);
    if (known !== undefined) return Promise.resolve(known);
    if (this.#exit !== undefined) return Promise.reject(this.#failure("Pi has exited"));
    return new Promise((resolve, reject) => {
      const waiter: Waiter = { predicate, resolve: settle(resolve), reject: settle(reject) };
      const timer = setTimeout(() => waiter.reject(this.#failure(`nothing in ${timeoutMs} ms`)), timeoutMs);
      const waiters = this.#waiters;
      waiters.add(waiter);
      function settle<T>(inner: (value: T) => void): (value: T) => void {
        return (value) => {
          clearTimeout(timer);
          waiters.delete(waiter);
          inner(value);
        };
      }
    });
  }

  /** Answers open and later dialogs, until the next call of this method. Without an answerer dialogs stay open. */
  answerUi(answer: RpcAnswer | RpcAnswerer): void {
    this.#answerer = typeof answer === "function" ? answer : () => answer;
    const open = this.#openDialogs;
    this.#openDialogs = [];
    for (const dialog of open) this.#onDialog(dialog);
  }

  /** Forgets the first `count` records, what Pi wrote beside them, and every dialog among them. Nobody answers later ones. */
  forget(count: number): void {
    const gone = new Set(this.events.splice(0, count).map((event) => toDialog(event)?.id));
    this.#openDialogs = this.#openDialogs.filter(({ id }) => !gone.has(id));
    this.#answerer = () => undefined;
    this.strayLines.length = 0;
    this.stderr = "";
  }

  /** Dialogs without an answer, oldest first. */
  get openDialogs(): readonly RpcDialog[] {
    return this.#openDialogs;
  }

  kill(signal: NodeJS.Signals): void {
    this.#process.kill(signal);
  }

  /** Closes stdin, which asks Pi to shut down, and kills Pi if it still runs after the timeout. */
  async stop(timeoutMs = 30_000): Promise<PiExit> {
    this.#process.stdin?.end();
    const timer = setTimeout(() => this.kill("SIGKILL"), timeoutMs);
    const exit = await this.exited;
    clearTimeout(timer);
    return exit;
  }

  /** Splits at LF only: `readline` also splits at U+2028, which JSON strings may contain. */
  #onData(chunk: string): void {
    const [first = "", ...more] = chunk.split("\n");
    this.#parts.push(first);
    for (const part of more) {
      this.#onLine(this.#parts.join(""));
      this.#parts = [part];
    }
  }

  #onLine(line: string): void {
    const event = parseRecord(line);
    if (event === undefined) {
      this.strayLines.push(line);
      return;
    }
    this.events.push(event);
    const dialog = toDialog(event);
    if (dialog !== undefined) this.#onDialog(dialog);
    for (const waiter of [...this.#waiters]) {
      if (waiter.predicate(event)) waiter.resolve(event);
    }
  }

  #onDialog(dialog: RpcDialog): void {
    const answer = this.#answerer(dialog);
    if (answer === undefined) this.#openDialogs.push(dialog);
    else this.send({ type: "extension_ui_response", id: dialog.id, ...answer });
  }

  #onExit(exit: PiExit): PiExit {
    this.#exit = exit;
    for (const waiter of [...this.#waiters]) waiter.reject(this.#failure("Pi exited meanwhile"));
    return exit;
  }

  #failure(reason: string): Error {
    const exit = this.#exit === undefined ? "" : ` (code ${this.#exit.code}, signal ${this.#exit.signal})`;
    const lastTypes = this.events.slice(-8).map((event) => event.type);
    const dialogs = this.#openDialogs.map((dialog) => `${dialog.method} "${dialog.title}"`);
    return new Error(
      [
        `${reason}${exit}`,
        `last records: ${lastTypes.join(", ")}`,
        `open dialogs: ${dialogs.join(", ")}`,
        `stderr: ${this.stderr.slice(-STDERR_TAIL_CHARS)}`,
      ].join("\n"),
    );
  }
}

function parseRecord(line: string): RpcEvent | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === "object" && value !== null && "type" in value ? (value as RpcEvent) : undefined;
  } catch {
    // Not JSON: the caller keeps the line.
    return undefined;
  }
}

function dispositionOf(response: RpcEvent): unknown {
  return (response.data as { disposition?: unknown } | undefined)?.disposition;
}
