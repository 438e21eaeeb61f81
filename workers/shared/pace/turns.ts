/**
 * The thread's time for bytes from outside: every stream of a server, of npm or of an authorization server is read by
 * `readInTurn`. Work for such bytes ends after `SLICE_MS` in a turn of the event loop, whoever sent them. Who wants more
 * waits in one queue, from which the reader goes first that has used the least. After a reader that has used much the thread
 * is free for as long as its work took. So floods take half of the thread at most, however many they are, and one long
 * message is not held up.
 */

import type { Readable } from "node:stream";
import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";

/** Work for bytes from outside in one turn of the event loop, in milliseconds. */
export const SLICE_MS = 4;
/** A single piece of work that took longer is no stream of work, and counts as much. */
const LONGEST_MS = 25;
/** A reader that uses less than this share of the thread's time is never held up for what it has used. */
const FREE_SHARE = 0.02;
/**
 * Time used beyond that share: up to the first a reader goes at once; from the second on a pause follows its work, and the log
 * names it; the last is all that is remembered.
 */
const LIGHT_MS = SLICE_MS;
const HEAVY_MS = 50;
const MOST_MS = 250;

const HEAVY =
  "sends more than can be read at once beside other servers: what it sends waits, so that their calls do not";

interface ReaderOptions {
  /** Gets the length of each piece before the work for the piece, and 0 when that work goes on after a wait. */
  onBytes?: ((bytes: number) => void) | undefined;
  /** Gets a line, to follow the name of who is read, when the reader is held up for the first time. */
  onNote?: ((note: string) => void) | undefined;
}

/** Who is read: one for all streams of one connection, so that more streams bring no more time. */
export interface Reader extends ReaderOptions {
  /** Milliseconds used beyond the free share, as of `usedAt`. */
  used: number;
  usedAt: number;
  isHeavy: boolean;
}

export const createReader = (options: ReaderOptions = {}): Reader => ({
  ...options,
  used: 0,
  usedAt: 0,
  isHeavy: false,
});

/** What is done with a piece, step by step. A step that answers a promise is waited for before the next one. */
export type Steps = Iterable<undefined | Promise<unknown>>;

interface Clock {
  now: () => number;
  /** Settles in the next turn of the event loop. */
  nextTurn: () => Promise<unknown>;
  sleep: (ms: number) => Promise<unknown>;
}

const REAL: Clock = {
  now: () => performance.now(),
  nextTurn: () => nextTurn(),
  sleep: (ms) => sleep(ms, undefined, { ref: false }),
};

export class Turns {
  readonly #clock: Clock;
  readonly #waiting: { reader: Reader; go: () => void }[] = [];
  /** Start of the work for bytes in this turn of the event loop; undefined: none yet. */
  #startedAt: number | undefined;
  #turn = 0;
  #isServing = false;

  constructor(clock: Clock = REAL) {
    this.#clock = clock;
  }

  /** Settles when work for this reader may begin. */
  async enter(reader: Reader, bytes: number): Promise<void> {
    if (this.#isOver() || (this.#isServing && !this.#isLight(reader))) await this.#wait(reader);
    reader.onBytes?.(bytes);
  }

  /** Does the steps, and lets others have their turn between them. Rejects as a step does. */
  async work(reader: Reader, steps: Steps): Promise<void> {
    let since = this.#clock.now();
    for (const step of steps) {
      if (step) {
        const turn = this.#turn;
        await step;
        // The time of another thread is not the time of this one.
        if (turn !== this.#turn) since = this.#clock.now();
      }
      if (!this.#isOver()) continue;
      this.#charge(reader, since);
      await this.#wait(reader);
      reader.onBytes?.(0);
      since = this.#clock.now();
    }
    this.#charge(reader, since);
  }

  /**
   * Does work that cannot be done in steps. Answers undefined, or a promise: until it settles, the reader must not bring more.
   */
  whole(reader: Reader, work: () => void): Promise<void> | undefined {
    this.#isOver();
    const since = this.#clock.now();
    reader.onBytes?.(0);
    work();
    this.#charge(reader, since);
    return this.#isOver() ? this.#wait(reader) : undefined;
  }

  #isOver(): boolean {
    const now = this.#clock.now();
    if (this.#startedAt === undefined) this.#begin(now);
    return now - (this.#startedAt ?? now) >= SLICE_MS;
  }

  #begin(now: number): void {
    this.#startedAt = now;
    const turn = ++this.#turn;
    void this.#clock.nextTurn().then(() => {
      if (turn !== this.#turn) return;
      this.#turn++;
      this.#startedAt = undefined;
    });
  }

  #usedBy(reader: Reader, now: number): number {
    return Math.max(0, reader.used - (now - reader.usedAt) * FREE_SHARE);
  }

  #isLight(reader: Reader): boolean {
    return this.#usedBy(reader, this.#clock.now()) < LIGHT_MS;
  }

  #isHeavy(reader: Reader): boolean {
    return this.#usedBy(reader, this.#clock.now()) >= HEAVY_MS;
  }

  #charge(reader: Reader, since: number): void {
    const now = this.#clock.now();
    const used = this.#usedBy(reader, now) + Math.min(now - since, LONGEST_MS);
    reader.used = Math.min(used, MOST_MS);
    reader.usedAt = now;
    if (used < HEAVY_MS || reader.isHeavy) return;
    reader.isHeavy = true;
    reader.onNote?.(HEAVY);
  }

  #wait(reader: Reader): Promise<void> {
    const waited = new Promise<void>((go) => this.#waiting.push({ reader, go }));
    if (!this.#isServing) void this.#serve();
    return waited;
  }

  #next(): { reader: Reader; go: () => void } | undefined {
    const now = this.#clock.now();
    let best = 0;
    let least = Number.POSITIVE_INFINITY;
    for (const [i, { reader }] of this.#waiting.entries()) {
      const used = this.#usedBy(reader, now);
      if (used >= least) continue;
      least = used;
      best = i;
    }
    return this.#waiting[best];
  }

  async #serve(): Promise<void> {
    this.#isServing = true;
    /** Milliseconds of work without a pause, of readers that used much. */
    let owed = 0;
    await this.#clock.nextTurn();
    while (this.#waiting.length > 0 || owed >= SLICE_MS) {
      const next = this.#next();
      // The pause is there for others: one of them may come in it, or wait already.
      if (owed >= SLICE_MS && !(next && !this.#isHeavy(next.reader))) {
        await this.#clock.sleep(Math.min(owed, LONGEST_MS));
        owed = 0;
      } else if (next) {
        this.#waiting.splice(this.#waiting.indexOf(next), 1);
        const before = this.#clock.now();
        this.#begin(before);
        next.go();
        // What the work has begun, such as handlers of messages, counts as well.
        await this.#clock.nextTurn();
        if (this.#isHeavy(next.reader)) owed += this.#clock.now() - before;
      }
    }
    this.#isServing = false;
  }
}

/** The one of this thread. */
const turns = new Turns();

/**
 * Reads a stream from outside to its end. `take` does something with each piece, at once or in steps; what it throws ends
 * the stream. Rejects with that, and if the stream breaks.
 */
export async function readInTurn(
  source: Readable,
  reader: Reader,
  take: (piece: Buffer) => Steps | undefined,
): Promise<void> {
  for await (const piece of source as AsyncIterable<Buffer>) {
    await turns.enter(reader, piece.length);
    await turns.work(reader, take(piece) ?? []);
  }
}

/** Settles when work that may take long, such as parsing a whole body, may begin. */
export const inTurn = (reader: Reader): Promise<void> => turns.enter(reader, 0);

/** For work that cannot be done in steps: see `Turns.whole`. */
export const wholeInTurn = (reader: Reader, work: () => void): Promise<void> | undefined =>
  turns.whole(reader, work);

/** A machine that is busy gives the thread this part of the time that passes, at least. */
const BUSY = 15;
const LOOK_MS = 20;

const millisecondsOf = ({ user, system }: NodeJS.CpuUsage): number => (user + system) / 1_000;

/**
 * Processor time of the process without that of this thread, which Node tells from 23.9 on. That of one thread cannot be asked
 * for from another.
 */
function othersProcessorMs(): number {
  const { threadCpuUsage } = process as { threadCpuUsage?: () => NodeJS.CpuUsage };
  return millisecondsOf(process.cpuUsage()) - (threadCpuUsage ? millisecondsOf(threadCpuUsage()) : 0);
}

export class WorkLimit {
  readonly #limitMs: number;
  readonly #onOver: () => void;
  readonly #processorMs = othersProcessorMs();
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
      const now = performance.now();
      const waitedMs = this.#waitedMs + (this.#waitsSince === undefined ? 0 : now - this.#waitsSince);
      const passedMs = now - this.#startedAt - waitedMs;
      const workedMs = Math.min(passedMs, othersProcessorMs() - this.#processorMs);
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
