/**
 * Counts what comes over a connection and is of no use: lines that are no message, empty ones, and on a stream of events all
 * lines that belong to no event. Some servers print a banner there; one that does nothing else is cut off.
 */
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { mebibytesOf, TooLarge } from "./too-large.ts";

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
