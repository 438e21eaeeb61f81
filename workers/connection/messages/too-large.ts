/**
 * Owns: the reasons for which a message is refused because of its size, with the numbers and the remedy. And counts what
 * comes over a connection and is of no use: lines that are no message, empty ones, and on a stream of events all lines that
 * belong to no event. Some servers print a banner there; one that does nothing else is cut off.
 */

import { type ErrorCode, type ErrorData, ThreadsError } from "../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";

export interface Excess {
  /** Absent: `message_too_large`. */
  code?: ErrorCode;
  /** Follows "sent". */
  what: string;
  remedy: string;
  data: ErrorData;
}

const MEBIBYTE = 1024 * 1024;

/** For example `64 MiB` or `900 bytes`. */
export const mebibytesOf = (bytes: number): string =>
  bytes < MEBIBYTE / 10
    ? `${bytes.toLocaleString("en")} bytes`
    : `${Number((bytes / MEBIBYTE).toFixed(1))} MiB`;

const ASK_LESS = "Ask the server for less at a time";

/** A message, or the part of it that has come, is refused. The error never holds anything of the message. */
export class TooLarge extends Error {
  readonly excess: Excess;

  /** `excess` as a number: the limit in bytes that the message exceeds. */
  constructor(excess: number | Excess) {
    const known = typeof excess === "number" ? moreBytesThan(excess) : excess;
    super(known.what);
    this.name = "TooLarge";
    this.excess = known;
  }

  /** Whether it is no message that is refused, but too much of what is none. */
  get isNoise(): boolean {
    return this.excess.code !== undefined;
  }
}

/** The project's file that lowered `maxMessageBytes`, as the settings say that run: this thread has one session. */
let loweredIn: string | undefined;

export const messageLimitIsOf = (projectFile: string | undefined): void => {
  loweredIn = projectFile;
};

const moreBytesThan = (limitBytes: number): Excess => ({
  what: `one message of more than ${mebibytesOf(limitBytes)}`,
  remedy: `${ASK_LESS}, or raise maxMessageBytes in the settings of ${loweredIn === undefined ? "mcp.json" : `${loweredIn}, which lowers it`}.`,
  data: { limitBytes },
});

/** A notification or a request of the server. */
export const unaskedTooLong = (bytes: number, limitBytes: number): TooLarge =>
  new TooLarge({
    what: `a notification or request of ${mebibytesOf(bytes)}, more than ${mebibytesOf(limitBytes)}`,
    remedy: "This is a fault of the server: only answers to requests may be longer.",
    data: { limitBytes },
  });

export const tooManyValues = (values: number): TooLarge =>
  new TooLarge({
    what: `one message of some ${values.toLocaleString("en")} keys and values, more than ${LIMITS.messageValues.toLocaleString("en")}`,
    remedy: `${ASK_LESS}. Text may be longer: it counts as one value.`,
    data: { limitValues: LIMITS.messageValues, values },
  });

export const tooDeep = (depth: number): TooLarge =>
  new TooLarge({
    what: `a notification or request ${depth.toLocaleString("en")} levels deep, more than ${LIMITS.unaskedDepth.toLocaleString("en")}`,
    remedy: "This is a fault of the server.",
    data: { limitDepth: LIMITS.unaskedDepth, depth },
  });

export const tooManyMessages = (messages: number): TooLarge =>
  new TooLarge({
    what: `${messages.toLocaleString("en")} messages at once, more than ${LIMITS.batchMessages}`,
    remedy: "This is a fault of the server.",
    data: { limitMessages: LIMITS.batchMessages, messages },
  });

/** The message is within the limits of size, and the thread that read it was ended after the limit of time. */
export const tooLaborious = (bytes: number): TooLarge =>
  new TooLarge({
    what: `one message of ${mebibytesOf(bytes)} that takes more than ${LIMITS.heavyWorkMs / 1_000} s to read`,
    remedy: `${ASK_LESS}.`,
    data: { limitMs: LIMITS.heavyWorkMs, bytes },
  });

/** The thread for long messages ended under this message. `why`: for example what the system says. */
export const unreadable = (bytes: number, why: string): TooLarge =>
  new TooLarge({
    what: `one message of ${mebibytesOf(bytes)}, and the thread that reads long messages ended: ${why}`,
    remedy: `${ASK_LESS}.`,
    data: { bytes },
  });

/** The message comes too slowly, while long messages of other servers wait for their turn. */
export const tooSlow = (bytes: number): TooLarge =>
  new TooLarge({
    what: `${mebibytesOf(bytes)} of a message and then hardly more, while long messages of other servers wait`,
    remedy: "Call it again when fewer large calls run at the same time.",
    data: { bytes },
  });

/** The error of a call whose answer was refused. */
export const callTooLarge = (server: string, tool: string, { excess }: TooLarge): ThreadsError =>
  new ThreadsError(
    excess.code ?? "message_too_large",
    `${server}/${tool} got no answer: ${server} sent ${excess.what}.`,
    {
      remedy: excess.remedy,
      data: { server, ...excess.data },
    },
  );

const tooMuchNoise = (amount: string): TooLarge =>
  new TooLarge({
    code: "server_died",
    what: `${amount} within ${LIMITS.noiseWindowMs / 1_000} s that hold no message`,
    remedy: "This is a fault of the server: something in it prints where only messages may be.",
    data: {},
  });

export class Noise {
  readonly #onNote: (note: string) => void;
  readonly #now: () => number;
  #windowEndsAt = -Infinity;
  #lines = 0;
  #bytes = 0;

  constructor(onNote: (note: string) => void, now: () => number = () => performance.now()) {
    this.#onNote = onNote;
    this.#now = now;
  }

  /** So much noise came lately that it is no longer looked at more closely, and told to nobody. */
  get isLoud(): boolean {
    return this.#lines > LIMITS.noiseLinesRead && this.#now() < this.#windowEndsAt;
  }

  /** Throws `TooLarge` beyond the limits. */
  add(lines: number, bytes: number): void {
    const now = this.#now();
    if (now >= this.#windowEndsAt) {
      this.#windowEndsAt = now + LIMITS.noiseWindowMs;
      this.#lines = 0;
      this.#bytes = 0;
    }
    this.#lines += lines;
    this.#bytes += bytes;
    if (this.#lines > LIMITS.noiseLines)
      this.#end(`more than ${LIMITS.noiseLines.toLocaleString("en")} lines`);
    if (this.#bytes > LIMITS.noiseBytes) this.#end(`more than ${mebibytesOf(LIMITS.noiseBytes)}`);
  }

  #end(amount: string): never {
    const error = tooMuchNoise(amount);
    this.#onNote(`sent ${error.excess.what}; nothing more of that is read`);
    throw error;
  }
}
