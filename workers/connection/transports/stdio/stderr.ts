/**
 * The stderr of a server: its last part for errors, and its lines for the log. A line is handed on whole, and the last
 * part begins with a whole line, because neither half of a secret that is cut in two would be found.
 */
import { LIMITS } from "../../../../src/shared/protocol/limits.ts";
import type { Steps } from "../../../shared/pace/turns.ts";
import { boundEnd, type Redactor } from "../../secrets/redact.ts";

const LF = 0x0a;
const CR = 0x0d;
/**
 * Bytes kept of the last part, and of one line: more than is shown, by the length of the longest secret
 * (`LONGEST_MATCH`) in characters of three bytes.
 */
const KEPT_BYTES = 5 * LIMITS.stderrTailBytes;
/** Limit for pieces that are kept apart: a server may write byte by byte. */
const MOST_PIECES = 1_000;

/** Keeps the last `KEPT_BYTES` or a little more. */
class Tail {
  #pieces: Buffer[] = [];
  #bytes = 0;
  #isCut = false;

  push(chunk: Buffer): void {
    this.#pieces.push(chunk);
    this.#bytes += chunk.length;
    while (this.#pieces.length > 1 && this.#bytes - (this.#pieces[0]?.length ?? 0) >= KEPT_BYTES) {
      this.#bytes -= this.#pieces.shift()?.length ?? 0;
      this.#isCut = true;
    }
    if (this.#pieces.length > MOST_PIECES) this.#pieces = [Buffer.concat(this.#pieces)];
  }

  shown(redact: Redactor): string {
    const text = Buffer.concat(this.#pieces).toString("utf8");
    return boundEnd(text, LIMITS.stderrTailBytes, { isCut: this.#isCut, redact }).trim();
  }
}

/** Hands on whole lines. Of a long line it hands on the beginning and the length. */
class Lines {
  readonly #onLine: (line: string) => void;
  #pieces: Buffer[] = [];
  #keptBytes = 0;
  #bytes = 0;

  constructor(onLine: (line: string) => void) {
    this.#onLine = onLine;
  }

  *push(chunk: Buffer): Steps {
    let start = 0;
    for (let i = 0; i < chunk.length; i++) {
      // A progress bar ends its lines with only CR.
      if (chunk[i] !== LF && chunk[i] !== CR) continue;
      this.#keep(chunk.subarray(start, i));
      yield this.end();
      start = i + 1;
    }
    this.#keep(chunk.subarray(start));
  }

  #keep(piece: Buffer): void {
    this.#bytes += piece.length;
    const kept = piece.subarray(0, KEPT_BYTES - this.#keptBytes);
    if (kept.length === 0) return;
    this.#keptBytes += kept.length;
    this.#pieces.push(kept);
    if (this.#pieces.length > MOST_PIECES) this.#pieces = [Buffer.concat(this.#pieces)];
  }

  end(): undefined {
    if (this.#bytes === 0) return;
    const line = Buffer.concat(this.#pieces).toString("utf8").trimEnd();
    const length = `[a line of ${this.#bytes.toLocaleString("en")} bytes] `;
    const isWhole = this.#keptBytes === this.#bytes;
    this.#pieces = [];
    this.#keptBytes = 0;
    this.#bytes = 0;
    if (line !== "") this.#onLine(isWhole ? line : `${length}${line}`);
  }
}

export class ServerStderr {
  readonly #tail = new Tail();
  readonly #lines: Lines | undefined;

  /** `onLine` has to redact and cut each line. Without `onLine` no lines are looked for. */
  constructor(onLine: ((line: string) => void) | undefined) {
    this.#lines = onLine && new Lines(onLine);
  }

  /** Each step is one line, for `readInTurn`. */
  *push(chunk: Buffer): Steps {
    this.#tail.push(chunk);
    if (this.#lines) yield* this.#lines.push(chunk);
  }

  /** Call this when stderr has ended: the last line may have no line end. */
  end(): void {
    this.#lines?.end();
  }

  /** The last part, without secrets. */
  tail(redact: Redactor): string {
    return this.#tail.shown(redact);
  }
}
