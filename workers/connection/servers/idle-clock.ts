/** Knows the uses of a server that are open, and counts the idle time of its connection from the end of the last one. */
import { LIMITS } from "../../../src/shared/protocol/limits.ts";

export class IdleClock {
  readonly #timeoutMs: () => number;
  readonly #onExpired: () => void;
  /** The open uses: each settles when it ends. */
  readonly #uses = new Set<Promise<void>>();
  #isOpen = false;
  #timer: NodeJS.Timeout | undefined;

  /** `timeoutMs`: the idle time that holds now; 0: never. */
  constructor(timeoutMs: () => number, onExpired: () => void) {
    this.#timeoutMs = timeoutMs;
    this.#onExpired = onExpired;
  }

  get isUsed(): boolean {
    return this.#uses.size > 0;
  }

  /** A use begins: the clock stands still until every use has ended. Answers what ends this one. */
  begin(): () => void {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#uses.add(promise);
    clearTimeout(this.#timer);
    return () => {
      this.#uses.delete(promise);
      this.#restart();
      resolve();
    };
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

  /** Settles as soon as the uses have ended that are open now. Those that begin later have another connection. */
  async unused(): Promise<void> {
    await Promise.all(this.#uses);
  }

  #restart(): void {
    clearTimeout(this.#timer);
    const timeoutMs = this.#timeoutMs();
    if (this.#isOpen && !this.isUsed && timeoutMs > 0)
      this.#timer = setTimeout(this.#onExpired, Math.min(timeoutMs, LIMITS.longestTimerMs));
  }
}
