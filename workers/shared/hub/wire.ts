/**
 * What the hub and a session say to each other over the hub's socket. First each proves that it knows the secret of the user:
 * Node tells no credentials of a peer, and a name of a Windows pipe can be taken by another program. Then frames of both:
 * a kind, a length, and the bytes of the server's stdin, stdout or stderr, or a control message as JSON. Pure but for random
 * values.
 */
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import type { HubReport } from "../../../src/shared/protocol/person.ts";
import type { Leave } from "../pace/pace.ts";
import type { Launch } from "../programs/processes.ts";

/** The session's first bytes, the hub's answer, and the session's second bytes. */
export const NONCE_BYTES = 32;
const PROOF_BYTES = 32;
export const HELLO_BYTES = NONCE_BYTES + PROOF_BYTES;

export const newNonce = (): Buffer => randomBytes(NONCE_BYTES);

/** That this side, of the two, knows the secret. Nonces of both sides: an old proof proves nothing. */
export const proofOf = (
  side: "hub" | "session",
  key: Buffer,
  nonces: { hub: Buffer; session: Buffer },
): Buffer =>
  createHmac("sha256", key).update(`pi-mcp-hub ${side}`).update(nonces.session).update(nonces.hub).digest();

export const isProof = (proof: Buffer, expected: Buffer): boolean =>
  proof.length === expected.length && timingSafeEqual(proof, expected);

/** What a session asks. One message on a connection, but for `leave`, which follows `attach`. */
export type ToHub =
  | ({ do: "attach" } & Attach)
  | { do: "leave"; how: Leave }
  | { do: "list" }
  /** Ends the servers of this name, or all and the hub itself. */
  | { do: "stop"; server?: string };

export interface Attach {
  launch: Launch;
  /** What decides beside the launch whether two sessions may use one process: see `keyOf`. */
  offer: string;
  /** The server's name, which is shown and decides nothing. */
  label: string;
  /** How long the server stays when this session was its last one. */
  idleMs: number;
  /** The longest message of the server that the session takes. */
  maxMessageBytes: number;
  /** A person waits: the pause after early ends does not count. */
  isWanted: boolean;
  pid: number;
}

export type FromHub =
  /** `since`: milliseconds since the epoch. */
  | { is: "attached"; pid: number; since: number; sessions: number }
  /** Another session came or left. */
  | { is: "sessions"; sessions: number }
  /** The process cannot be started: `code` as the system says it. */
  | { is: "refused"; message: string; code?: string }
  | { is: "exit"; code: number | null; signal: NodeJS.Signals | null }
  /** This session's connection ends. `why`: follows the server's name. `isTooLong`: a message of the server was. */
  | { is: "dropped"; why: string; isTooLong?: boolean }
  | ({ is: "servers" } & HubReport)
  | { is: "stopped"; servers: number };

/**
 * In `_meta` of a progress notification of the hub's own: whether the call waits for one of another session, so that the server
 * has not seen it. Such a notification reaches the very call, which no frame could name.
 */
export const WAITS = "pi-mcp-threads/waits";

export const KINDS = { control: 0, data: 1, errors: 2 } as const;
type Kind = keyof typeof KINDS;
const NAMES: readonly Kind[] = ["control", "data", "errors"];

const HEAD_BYTES = 5;
/** The environment of a process has 128 KiB to 2 MiB, and JSON writes some characters as six. */
const CONTROL_BYTES = 16 * 1024 * 1024;
const MOST_BYTES = 2 ** 32 - 1;

export function headOf(kind: Kind, bytes: number): Buffer {
  if (bytes > MOST_BYTES) throw new Error(`a frame of ${bytes} bytes`);
  const head = Buffer.allocUnsafe(HEAD_BYTES);
  head.writeUInt8(KINDS[kind], 0);
  head.writeUInt32BE(bytes, 1);
  return head;
}

export function controlFrame(message: ToHub | FromHub): Buffer {
  const body = Buffer.from(JSON.stringify(message));
  return Buffer.concat([headOf("control", body.length), body]);
}

/** What came: a piece of a stream, or a whole control message. */
export type Came<M> = { kind: "data" | "errors"; piece: Buffer } | { kind: "control"; message: M };

/** Cuts a connection's bytes into frames. Pieces are handed on as they come, so no long message is held. */
export class FrameReader<M extends ToHub | FromHub> {
  readonly #mostControl: number;
  #head = Buffer.alloc(0);
  #kind: Kind | undefined;
  #left = 0;
  #control: Buffer[] = [];

  constructor(mostControl = CONTROL_BYTES) {
    this.#mostControl = mostControl;
  }

  /** Throws if the bytes are no frames. */
  *push(chunk: Buffer): Generator<Came<M>> {
    let at = 0;
    while (at < chunk.length) {
      if (this.#kind === undefined) {
        const missing = HEAD_BYTES - this.#head.length;
        this.#head = Buffer.concat([this.#head, chunk.subarray(at, at + missing)]);
        at += missing;
        if (this.#head.length < HEAD_BYTES) return;
        this.#open();
        if (this.#left > 0) continue;
      }
      const piece = chunk.subarray(at, at + this.#left);
      at += piece.length;
      this.#left -= piece.length;
      const kind: Kind | undefined = this.#kind;
      if (kind === "control") this.#control.push(piece);
      else if (kind && piece.length > 0) yield { kind, piece };
      if (this.#left > 0) return;
      this.#kind = undefined;
      if (kind === "control") {
        const message = JSON.parse(Buffer.concat(this.#control).toString("utf8")) as M;
        this.#control = [];
        yield { kind, message };
      }
    }
  }

  #open(): void {
    this.#kind = NAMES[this.#head.readUInt8(0)];
    this.#left = this.#head.readUInt32BE(1);
    this.#head = Buffer.alloc(0);
    if (this.#kind === undefined) throw new Error("an unknown kind of frame");
    if (this.#kind === "control" && this.#left > this.#mostControl)
      throw new Error("a control frame that is too long");
  }
}
