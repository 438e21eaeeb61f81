/** Owns: the reasons for which a message is refused because of its size, with the numbers and the remedy. */
import type { ErrorData } from "../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";

export interface Excess {
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
}

const moreBytesThan = (limitBytes: number): Excess => ({
  what: `one message of more than ${mebibytesOf(limitBytes)}`,
  remedy: `${ASK_LESS}, or raise maxMessageBytes in the settings of mcp.json.`,
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

/** The message itself is within the limits, but would not fit beside the results that the worker holds already. */
export const noMemoryFor = (bytes: number): TooLarge =>
  new TooLarge({
    what: `one message of ${mebibytesOf(bytes)}, for which the MCP worker has no memory left beside other results`,
    remedy: "Call it again when fewer large calls run at the same time.",
    data: { bytes },
  });

/** The message comes too slowly, while long messages of other servers wait for their turn. */
export const tooSlow = (bytes: number): TooLarge =>
  new TooLarge({
    what: `${mebibytesOf(bytes)} of a message and then hardly more, while long messages of other servers wait`,
    remedy: "Call it again when fewer large calls run at the same time.",
    data: { bytes },
  });
