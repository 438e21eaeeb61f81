/**
 * One process of a server that sessions share: its start, who uses it, what goes between it and them, and its end. What is for
 * whom is decided in routes.ts. Ends the process `idleMs` after the last session has left, as that session said.
 */
import { once } from "node:events";
import { messageOf } from "../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../src/shared/protocol/limits.ts";
import { LongMessages, type LongReader } from "../shared/pace/long-messages.ts";
import { type Leave, RequestWindow, UNUSED_TIMES } from "../shared/pace/pace.ts";
import { createReader, readInTurn } from "../shared/pace/turns.ts";
import { ProcessEnd } from "../shared/programs/end.ts";
import { type Launch, type ServerProcess, spawnServer } from "../shared/programs/processes.ts";
import { Lines, mayBeMessage } from "./lines.ts";
import { type Line, type Party, Routes } from "./routes.ts";

/** A session as a process sees it. */
export interface User extends Party {
  readonly pid: number;
  readonly label: string;
  readonly idleMs: number;
  readonly maxMessageBytes: number;
  /** Sends a piece of the server's stderr. */
  complain(piece: Buffer): void;
  /** Settles when the session has taken what was sent; undefined: it has. */
  room(): Promise<unknown> | undefined;
  /** Another session came or left. */
  shared(sessions: number): void;
  exited(code: number | null, signal: NodeJS.Signals | null): void;
  refused(message: string, code?: string): void;
  /** Ends the session's connection, not the server. `why`: follows the server's name. `isTooLong`: a message was. */
  drop(why: string, isTooLong?: boolean): void;
}

const NEWLINE = Buffer.from("\n");

/** The one of the hub: it guards its memory. */
const longMessages = new LongMessages(LIMITS.longMessagesAtATime);

interface SharedProcessOptions {
  launch: Launch;
  onNote: (note: string) => void;
  /** The process runs. */
  onStart: () => void;
  /** The process has ended, or could not be started. */
  onGone: (end: { livedMs: number; isBroken: boolean }) => void;
}

export class SharedProcess {
  readonly launch: Launch;
  readonly since = Date.now();
  readonly #startedMs = performance.now();
  readonly #options: SharedProcessOptions;
  readonly #child: ServerProcess;
  readonly #end: ProcessEnd;
  readonly #users = new Set<User>();
  readonly #routes: Routes<User>;
  readonly #labels = new Set<string>();
  readonly #reader;
  #idle: NodeJS.Timeout | undefined;
  #isRetired = false;
  /** The hub ends it. */
  #isEnding = false;
  #exit: { code: number | null; signal: NodeJS.Signals | null } | undefined;
  #maxLine = 0;
  /** Until then it is of no use to anybody. */
  #hasAnswered = false;
  /** Questions that the hub itself answers. */
  readonly #replies = new RequestWindow();
  #reads: Promise<unknown> = Promise.resolve();
  /** Rejects with the system's error if the process cannot be started. */
  readonly started: Promise<unknown>;
  /** Settles when the process has ended. */
  readonly ended: Promise<void>;

  constructor(options: SharedProcessOptions) {
    this.#options = options;
    this.launch = options.launch;
    this.#reader = createReader({ onNote: options.onNote });
    const child = spawnServer(options.launch);
    // Without a listener it would end the hub. Where the system has no file descriptors left, what follows throws.
    child.on("error", () => undefined);
    this.#child = child;
    this.#routes = new Routes<User>({
      toServer: (pieces) => this.#write(pieces),
      reply: (pieces) => this.#reply(pieces),
      onNote: options.onNote,
      parties: () => this.#users,
      now: () => performance.now(),
    });
    const gone = Promise.withResolvers<void>();
    this.ended = gone.promise;
    child.once("exit", (code, signal) => {
      this.#exit = { code, signal };
    });
    this.#end = new ProcessEnd(child, {
      onExit: () => undefined,
      onEnd: () => {
        this.#onGone();
        gone.resolve();
      },
      read: () => this.#reads,
      onNote: options.onNote,
    });
    for (const stream of [child.stdin, child.stdout, child.stderr]) stream.on("error", () => undefined);
    this.started = once(child, "spawn").then(
      () => options.onStart(),
      (error: unknown) => {
        this.#isRetired = true;
        const code = error instanceof Error && "code" in error ? String(error.code) : undefined;
        for (const user of this.#users) user.refused(messageOf(error), code);
        this.#users.clear();
        gone.resolve();
        this.#options.onGone({ livedMs: 0, isBroken: false });
      },
    );
    this.#follow();
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  get labels(): string[] {
    return [...this.#labels];
  }

  get users(): readonly User[] {
    return [...this.#users];
  }

  /** It gets no more sessions. */
  get isRetired(): boolean {
    return this.#isRetired || this.isEnding;
  }

  /** It is being ended, or has exited already. */
  get isEnding(): boolean {
    return this.#isEnding || this.#end.isClosing || this.#end.exit !== "";
  }

  attach(user: User): void {
    clearTimeout(this.#idle);
    this.#users.add(user);
    this.#labels.add(user.label);
    this.#maxLine = Math.max(this.#maxLine, user.maxMessageBytes);
    this.#tellUsers();
  }

  /** A message of a session. */
  take(user: User, line: Line): void {
    if (!mayBeMessage(line)) return;
    if (this.#child.stdin.writableLength > LIMITS.hubUnreadBytes) user.drop("does not read what it is sent");
    else this.#routes.fromSession(user, line);
  }

  leave(user: User, how: Leave): void {
    if (!this.#users.delete(user)) return;
    this.#routes.leave(user);
    if (how === "retire") this.#isRetired = true;
    if (how === "end") this.end();
    else if (this.#users.size === 0) this.#rest(how === "keep" && !this.#isRetired ? user.idleMs : 0);
    this.#tellUsers();
  }

  /** Ends the process, whoever uses it. */
  end(): void {
    clearTimeout(this.#idle);
    this.#isRetired = true;
    this.#isEnding = true;
    const times = { termMs: LIMITS.closeTermMs, killMs: LIMITS.closeKillMs };
    this.#end.closeWithin(this.#hasAnswered ? times : UNUSED_TIMES).catch((error: unknown) => {
      this.#options.onNote(`could not be ended: ${messageOf(error)}`);
    });
  }

  #rest(idleMs: number): void {
    if (idleMs === 0 || !this.#hasAnswered) this.end();
    else this.#idle = setTimeout(() => this.end(), Math.min(idleMs, LIMITS.longestTimerMs));
  }

  #tellUsers(): void {
    for (const user of this.#users) user.shared(this.#users.size);
  }

  #write(pieces: readonly Buffer[]): void {
    const { stdin } = this.#child;
    if (!stdin.writable) return;
    // One write for a message, and one for all of a turn.
    if (stdin.writableCorked === 0) {
      stdin.cork();
      process.nextTick(() => stdin.uncork());
    }
    for (const piece of pieces) stdin.write(piece);
    stdin.write(NEWLINE);
  }

  /** As for a server of one session: see connection/messages/server-requests.ts. */
  #reply(pieces: readonly Buffer[]): void {
    const tooMany = this.#replies.add(performance.now());
    if (this.#child.stdin.writableLength > LIMITS.unsentReplyBytes)
      this.#giveUp("does not take the answers to its requests");
    else if (tooMany !== undefined) this.#giveUp(tooMany);
    else this.#write(pieces);
  }

  #follow(): void {
    const { stdout, stderr } = this.#child;
    const lines = new Lines();
    const slot = longMessages.open(() => this.#giveUp("sent a long message too slowly while others waited"));
    stdout.once("close", slot.closed);
    const out = readInTurn(stdout, this.#reader, (chunk) => this.#steps(lines, slot, chunk)).finally(() =>
      slot.end(),
    );
    const errors = readInTurn(stderr, this.#reader, (chunk) => {
      for (const user of this.#users) user.complain(chunk);
      return [this.#room()];
    });
    // How else the output ends is reported by the end of the process.
    this.#reads = Promise.all([out.catch(() => undefined), errors.catch(() => undefined)]);
  }

  *#steps(lines: Lines, slot: LongReader, chunk: Buffer): Generator<Promise<unknown> | undefined> {
    for (const line of lines.push(chunk)) {
      if (lines.pendingBytes > this.#maxLine || (line && line.bytes > this.#maxLine)) {
        this.#tooLong();
        return;
      }
      if (line) this.#fromServer(line);
      yield line && this.#room();
    }
    if (lines.pendingBytes > this.#maxLine) this.#tooLong();
    else yield slot.hold(lines.pendingBytes);
  }

  #fromServer(line: Line): void {
    if (mayBeMessage(line)) {
      this.#hasAnswered ||= line.envelope.method === undefined;
      this.#routes.fromServer(line);
    } else for (const user of this.#users) user.deliver(line.pieces);
  }

  /** Nobody waits for a session that reads nothing: see `User.room`. */
  #room(): Promise<unknown> | undefined {
    const waits = [...this.#users].flatMap((user) => user.room() ?? []);
    return waits.length === 0 ? undefined : Promise.all(waits);
  }

  #tooLong(): void {
    this.#giveUp(`sent a message of more than ${this.#maxLine.toLocaleString("en")} bytes`, true);
  }

  /** Ends the process at once, because of what it sends. */
  #giveUp(why: string, isTooLong = false): void {
    for (const user of this.#users) user.drop(why, isTooLong);
    this.#options.onNote(`${why}, and is ended`);
    this.#isRetired = true;
    this.#isEnding = true;
    this.#end.killNow();
  }

  #onGone(): void {
    clearTimeout(this.#idle);
    this.#isRetired = true;
    const { code, signal } = this.#exit ?? { code: null, signal: null };
    const users = [...this.#users];
    this.#users.clear();
    for (const user of users) {
      if (this.#end.why !== undefined) user.drop(this.#end.why);
      else user.exited(code, signal);
    }
    this.#options.onGone({
      livedMs: performance.now() - this.#startedMs,
      isBroken: !this.#isEnding && !this.#hasAnswered,
    });
  }
}
