/**
 * Limits how many long messages come in at a time, over all servers of a thread or process, so that their bytes stay bounded. A
 * reader that finds no slot free stops reading, which holds its server up. A reader that has a slot and hardly uses it loses
 * the slot to readers that wait.
 */

/** Shorter messages need no slot. */
const LONG_BYTES = 1024 * 1024;
/** While others wait, a reader with a slot must be faster than this on average, after `SLOW_AFTER_MS`. */
const SLOW_BYTES_A_SECOND = 256 * 1024;
const SLOW_AFTER_MS = 10_000;
const LOOK_MS = SLOW_AFTER_MS / 4;

/** The reader of one stream of messages. */
export class LongReader {
  readonly #long: LongMessages;
  /** Called at most once, when the reader loses its slot to another one. The reader must stop then. */
  readonly giveUp: (bytes: number) => void;
  bytes = 0;
  /** Time and bytes of the reader when it got its slot; undefined: it has no slot. */
  slot: { sinceMs: number; fromBytes: number } | undefined;
  /** Lets the reader go on. */
  resume: (() => void) | undefined;
  #isOver = false;

  constructor(long: LongMessages, giveUp: (bytes: number) => void) {
    this.#long = long;
    this.giveUp = giveUp;
  }

  /**
   * The reader holds this many bytes of a message that is not complete. If this returns a promise, nothing more may be
   * read until the promise settles.
   */
  hold(bytes: number): Promise<void> | undefined {
    const long = this.#long;
    if (bytes > long.longBytes && this.bytes <= long.longBytes) long.onLong();
    this.bytes = bytes;
    if (this.#isOver) return undefined;
    if (bytes >= LONG_BYTES) return this.slot ? undefined : long.take(this);
    if (this.slot) long.leave(this);
    return undefined;
  }

  /** Nothing more comes, so the reader waits for nothing any more. It may still hold what came. */
  readonly closed = (): void => {
    this.#isOver = true;
    this.#long.waiting.delete(this);
    this.resume?.();
  };

  /** The reader holds nothing and waits for nothing any more. */
  end(): void {
    this.closed();
    this.#long.leave(this);
  }

  get isSlow(): boolean {
    if (!this.slot) return false;
    const tookMs = performance.now() - this.slot.sinceMs;
    const came = this.bytes - this.slot.fromBytes;
    return tookMs >= SLOW_AFTER_MS && came * 1_000 < SLOW_BYTES_A_SECOND * tookMs;
  }
}

export class LongMessages {
  readonly #slots: number;
  /** A message of more bytes is told to `onLong`. */
  readonly longBytes: number;
  readonly onLong: () => void;
  readonly #withSlot = new Set<LongReader>();
  readonly waiting = new Set<LongReader>();
  #timer: NodeJS.Timeout | undefined;
  #lookedAt = 0;

  constructor(slots: number, { longBytes, onLong } = { longBytes: LONG_BYTES, onLong: () => {} }) {
    this.#slots = slots;
    this.longBytes = longBytes;
    this.onLong = onLong;
  }

  open(giveUp: (bytes: number) => void): LongReader {
    return new LongReader(this, giveUp);
  }

  /** Settles when the reader has a slot; undefined: it has one. */
  take(reader: LongReader): Promise<void> | undefined {
    if (this.#withSlot.size < this.#slots) {
      this.#give(reader);
      return undefined;
    }
    this.waiting.add(reader);
    return new Promise((resolve) => {
      reader.resume = resolve;
    });
  }

  leave(reader: LongReader): void {
    if (this.#withSlot.delete(reader)) {
      reader.slot = undefined;
      const [next] = this.waiting;
      if (next) {
        this.waiting.delete(next);
        this.#give(next);
        next.resume?.();
      }
    }
    if (this.#withSlot.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #give(reader: LongReader): void {
    const now = performance.now();
    this.#withSlot.add(reader);
    reader.slot = { sinceMs: now, fromBytes: reader.bytes };
    if (this.#timer) return;
    this.#lookedAt = now;
    this.#timer = setInterval(() => this.#look(), LOOK_MS).unref();
  }

  #look(): void {
    const now = performance.now();
    const hasSlept = now - this.#lookedAt > 2 * LOOK_MS;
    this.#lookedAt = now;
    // What came meanwhile, as on a laptop that slept, is still to be read: the readers are measured anew.
    if (hasSlept)
      for (const reader of this.#withSlot) reader.slot = { sinceMs: now, fromBytes: reader.bytes };
    if (this.waiting.size === 0) return;
    for (const reader of [...this.#withSlot].filter(({ isSlow }) => isSlow)) {
      reader.end();
      reader.giveUp(reader.bytes);
    }
  }
}
