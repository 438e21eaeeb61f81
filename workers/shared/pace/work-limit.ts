/**
 * The limit of time for work in another thread, which cannot look at a clock while it parses. Counts processor time, so that
 * a busy machine ends no honest work, and no time in which that thread waits for this one.
 */

/** A machine that is busy gives the thread this part of the time that passes, at least. */
const BUSY = 15;
const LOOK_MS = 20;

export class WorkLimit {
  readonly #limitMs: number;
  readonly #onOver: () => void;
  readonly #processor = process.cpuUsage();
  readonly #startedAt = performance.now();
  #waitedMs = 0;
  #waitsSince: number | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(limitMs: number, onOver: () => void) {
    this.#limitMs = limitMs;
    this.#onOver = onOver;
    this.#look(limitMs);
  }

  #look(ms: number): void {
    this.#timer = setTimeout(() => {
      // The processor time of the whole process: that of one thread cannot be asked for from another.
      const { user, system } = process.cpuUsage(this.#processor);
      const now = performance.now();
      const waitedMs = this.#waitedMs + (this.#waitsSince === undefined ? 0 : now - this.#waitsSince);
      const passedMs = now - this.#startedAt - waitedMs;
      const workedMs = Math.min(passedMs, (user + system) / 1_000);
      if (workedMs >= this.#limitMs || passedMs >= BUSY * this.#limitMs) this.#onOver();
      else this.#look(Math.max(LOOK_MS, this.#limitMs - workedMs));
    }, ms);
    this.#timer.unref();
  }

  async during<T>(wait: Promise<T>): Promise<T> {
    this.#waitsSince = performance.now();
    try {
      return await wait;
    } finally {
      this.#waitedMs += performance.now() - this.#waitsSince;
      this.#waitsSince = undefined;
    }
  }

  /** Milliseconds since the start. */
  end(): number {
    clearTimeout(this.#timer);
    return performance.now() - this.#startedAt;
  }
}
