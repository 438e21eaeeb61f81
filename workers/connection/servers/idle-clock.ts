/** Counts the uses of a connection that are open, and the idle time from the end of the last one. */
import { LIMITS } from "../../../src/shared/protocol/limits.ts";

export class IdleClock {
  readonly #timeoutMs: () => number;
  readonly #onExpired: () => void;
  #uses = 0;
  #isOpen = false;
  #timer: NodeJS.Timeout | undefined;
  #onUnused = Promise.withResolvers<void>();

  /** `timeoutMs`: the idle time that holds now; 0: never. */
  constructor(timeoutMs: () => number, onExpired: () => void) {
    this.#timeoutMs = timeoutMs;
    this.#onExpired = onExpired;
  }

  get isUsed(): boolean {
    return this.#uses > 0;
  }

  /** A use begins: the clock stands still until every use has ended. */
  begin(): void {
    this.#uses++;
    clearTimeout(this.#timer);
  }

  end(): void {
    this.#uses--;
    this.#restart();
    if (this.isUsed) return;
    this.#onUnused.resolve();
    this.#onUnused = Promise.withResolvers();
  }

  /** A connection is open: the clock runs if nothing uses it. */
  start(): void {
    this.#isOpen = true;
    this.#restart();
  }

  stop(): void {
    this.#isOpen = false;
    clearTimeout(this.#timer);
  }

  /** Settles as soon as no use is open. */
  async unused(): Promise<void> {
    if (this.isUsed) await this.#onUnused.promise;
  }

  #restart(): void {
    clearTimeout(this.#timer);
    const timeoutMs = this.#timeoutMs();
    if (this.#isOpen && !this.isUsed && timeoutMs > 0)
      this.#timer = setTimeout(this.#onExpired, Math.min(timeoutMs, LIMITS.longestTimerMs));
  }
}
