/**
 * A session's connection to the hub: the proof that it is of the same user, what it asks, and what it is sent. Until the proof
 * it may send little, for a short time. A session that does not read loses its connection, and nobody waits for it.
 */
import type { Socket } from "node:net";
import { LIMITS } from "../../src/shared/protocol/limits.ts";
import {
  type Attach,
  controlFrame,
  FrameReader,
  type FromHub,
  HELLO_BYTES,
  headOf,
  isProof,
  NONCE_BYTES,
  newNonce,
  proofOf,
  type ToHub,
} from "../shared/hub/wire.ts";
import type { Leave } from "../shared/pace/pace.ts";
import { createReader, readInTurn } from "../shared/pace/turns.ts";
import { Lines } from "./lines.ts";
import type { Line } from "./routes.ts";
import type { User } from "./shared-process.ts";

/** More than this waits in a socket: whoever sends waits a moment for the session. */
const FULL_BYTES = 1024 * 1024;
/**
 * Bytes of the write under way that the system has not taken. Node counts a write when all of it is gone, and one write may have
 * many megabytes, so this tells a slow reader from one that reads nothing; Node's own `socket.setTimeout` goes by it, too.
 */
const queuedBytes = (socket: Socket): number | undefined =>
  (socket as { _handle?: { writeQueueSize?: number } | null })._handle?.writeQueueSize;

/** What comes while a session with too much unread is waited for: the message of each other server that it uses. */
const FULLEST = 3;
const NEWLINE = Buffer.from("\n");

/** What the hub does for a session. */
export interface Desk {
  attach(session: Session, wanted: Attach): void;
  line(session: Session, line: Line): void;
  leave(session: Session, how: Leave): void;
  list(session: Session): void;
  stop(session: Session, server: string | undefined): void;
  /** The connection is over. */
  gone(session: Session): void;
}

export class Session implements User {
  readonly #socket: Socket;
  readonly #desk: Desk;
  #attached: Attach | undefined;
  /** Bytes that were sent, and that the session has taken of them; when it took some for the last time. */
  #sent = 0;
  #taken = 0;
  #tookAt = 0;
  #queued: number | undefined;
  #isOver = false;
  /** Settles when the connection is closed. */
  readonly closed: Promise<unknown>;

  constructor(socket: Socket, desk: Desk) {
    this.#socket = socket;
    this.#desk = desk;
    this.closed = new Promise((resolve) => socket.once("close", resolve));
    // Without a listener an error of the socket would end the hub.
    socket.on("error", () => undefined);
    socket.on("close", () => this.#end());
  }

  get pid(): number {
    return this.#attached?.pid ?? 0;
  }

  get label(): string {
    return this.#attached?.label ?? "";
  }

  get idleMs(): number {
    return this.#attached?.idleMs ?? 0;
  }

  get maxMessageBytes(): number {
    return this.#attached?.maxMessageBytes ?? 0;
  }

  /** Settles when the session has proved that it is of the same user, or has lost its connection. */
  async prove(key: Buffer): Promise<void> {
    const socket = this.#socket;
    const limit = setTimeout(() => socket.destroy(), LIMITS.hubUnprovenMs);
    try {
      const theirs = await this.#readExactly(NONCE_BYTES);
      const ours = newNonce();
      const nonces = { hub: ours, session: theirs };
      socket.write(Buffer.concat([ours, proofOf("hub", key, nonces)]));
      const proof = await this.#readExactly(HELLO_BYTES - NONCE_BYTES);
      if (!isProof(proof, proofOf("session", key, nonces))) throw new Error("a wrong proof");
    } catch (error) {
      socket.destroy();
      throw error;
    } finally {
      clearTimeout(limit);
    }
  }

  /** Reads what the session asks from now on. */
  async serve(): Promise<void> {
    const frames = new FrameReader<ToHub>();
    const lines = new Lines();
    try {
      await readInTurn(this.#socket, createReader(), (chunk) => this.#steps(frames, lines, chunk));
    } catch {
      // No frames, or a connection that breaks: either way the session is gone.
      this.#socket.destroy();
    }
    this.#socket.end();
  }

  deliver(pieces: readonly Buffer[]): void {
    let bytes = NEWLINE.length;
    for (const piece of pieces) bytes += piece.length;
    this.#send([headOf("data", bytes), ...pieces, NEWLINE]);
  }

  complain(piece: Buffer): void {
    this.#send([headOf("errors", piece.length), piece]);
  }

  tell(message: FromHub): void {
    this.#send([controlFrame(message)]);
  }

  shared(sessions: number): void {
    this.tell({ is: "sessions", sessions });
  }

  exited(code: number | null, signal: NodeJS.Signals | null): void {
    this.tell({ is: "exit", code, signal });
    this.#socket.end();
  }

  refused(message: string, code?: string): void {
    this.tell({ is: "refused", message, ...(code === undefined ? {} : { code }) });
    this.#socket.end();
  }

  drop(why: string, isTooLong = false): void {
    this.tell({ is: "dropped", why, ...(isTooLong ? { isTooLong } : {}) });
    this.#socket.end();
    this.#end();
  }

  /** Ends the connection as the hub's own end does: the session looks for another hub. */
  lose(): void {
    this.#socket.end();
  }

  /** For how long the session has taken nothing, in milliseconds. */
  #stalledMs(): number {
    const now = performance.now();
    const taken = this.#sent - this.#socket.writableLength;
    const queued = queuedBytes(this.#socket);
    if (taken > this.#taken || queued !== this.#queued) {
      this.#taken = taken;
      this.#queued = queued;
      this.#tookAt = now;
    }
    return now - this.#tookAt;
  }

  room(): Promise<unknown> | undefined {
    const socket = this.#socket;
    if (socket.writableLength < FULL_BYTES || socket.destroyed) return undefined;
    // Whoever takes nothing for so long is not waited for until it takes something. On a busy machine that may be a session
    // which is well: before it is dropped for what it has not read, it is waited for longer.
    const isFull = socket.writableLength > LIMITS.hubUnreadBytes;
    const leftMs = (isFull ? LIMITS.hubDropMs : LIMITS.hubStallMs) - this.#stalledMs();
    if (leftMs <= 0) return undefined;
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        for (const event of ["drain", "close"]) socket.off(event, done);
        resolve(undefined);
      };
      const timer = setTimeout(done, leftMs);
      for (const event of ["drain", "close"]) socket.on(event, done);
    });
  }

  *#steps(frames: FrameReader<ToHub>, lines: Lines, chunk: Buffer): Generator<undefined> {
    for (const came of frames.push(chunk)) {
      if (came.kind === "control") this.#asked(came.message);
      else if (came.kind === "data" && this.#attached) {
        for (const line of lines.push(came.piece)) {
          if (line) this.#desk.line(this, line);
          yield;
        }
        if (lines.pendingBytes > LIMITS.hubRequestBytes) {
          this.drop(`sent a message of more than ${LIMITS.hubRequestBytes.toLocaleString("en")} bytes`);
        }
      }
      if (this.#isOver) return;
      yield;
    }
  }

  #asked(message: ToHub): void {
    if (message.do === "attach") {
      if (this.#attached) throw new Error("a second server on one connection");
      this.#attached = message;
      this.#desk.attach(this, message);
    } else if (message.do === "leave") {
      this.#desk.leave(this, message.how);
      this.#socket.end();
    } else if (message.do === "list") this.#desk.list(this);
    else if (message.do === "stop") this.#desk.stop(this, message.server);
    else throw new Error("an unknown request");
  }

  #send(pieces: readonly Buffer[]): void {
    const socket = this.#socket;
    if (!socket.writable || this.#isOver) return;
    const unread = socket.writableLength;
    const isFull = unread > LIMITS.hubUnreadBytes && this.#stalledMs() > LIMITS.hubDropMs;
    if (isFull || unread > FULLEST * LIMITS.hubUnreadBytes) {
      // It would not read a reason either.
      socket.destroy();
      return;
    }
    if (socket.writableCorked === 0) {
      socket.cork();
      process.nextTick(() => socket.uncork());
    }
    for (const piece of pieces) {
      this.#sent += piece.length;
      socket.write(piece);
    }
  }

  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#desk.gone(this);
  }

  /** Rejects if the connection ends before. What follows stays in the socket. */
  async #readExactly(bytes: number): Promise<Buffer> {
    const socket = this.#socket;
    for (;;) {
      const piece: Buffer | null = socket.read(bytes);
      if (piece) {
        if (piece.length < bytes) throw new Error("the connection ended");
        return piece;
      }
      if (socket.readableLength > LIMITS.hubUnprovenBytes || socket.readableEnded || socket.destroyed)
        throw new Error("no proof came");
      await new Promise<void>((resolve, reject) => {
        const settle = (): void => {
          socket.off("readable", settle);
          socket.off("end", settle);
          socket.off("close", closed);
          resolve();
        };
        const closed = (): void => reject(new Error("the connection ended"));
        socket.once("readable", settle);
        socket.once("end", settle);
        socket.once("close", closed);
      });
    }
  }
}
