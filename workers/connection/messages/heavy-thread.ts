/**
 * Long messages of servers, each read in a thread that can be ended: what it holds may take any time to parse, to check and
 * to shape, and meanwhile the connection worker serves the others. Owns: the thread (workers/heavy.ts), the order of the
 * messages, the limit of time, and results that stay in the thread until they are shaped there.
 *
 * One message is in the thread at a time, so a message that ends the thread ends no other. The next one is that of the
 * server whose messages have taken the least time so far: a server that is heavy on purpose waits behind all others.
 */
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import { messageOf } from "../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { isFileGone } from "../../shared/log.ts";
import { OwnFile } from "../../shared/own-file.ts";
import { WorkLimit } from "../../shared/pace/turns.ts";
import type { RequestId } from "../mcp/wire/wire.ts";
import type { ResultKind } from "./as-tool-result.ts";
import { type TooLarge, tooLaborious, unreadable } from "./too-large.ts";

/** What the thread gets. `job` numbers the work; an answer to a question of the thread has its number. */
export type ToHeavy =
  | {
      job: number;
      read: { bytes: ArrayBuffer; length: number; batches: boolean; asked: [string, string][] };
    }
  | { job: number; shape: { of: number; index: number; task: ShapeTask } }
  | { answer: number; value: unknown };

/** What the thread says. `about`: the request that the message answers. */
export type FromHeavy =
  | { ready: true }
  | { job: number; about: RequestId }
  | { job: number; ask: number; args: unknown }
  /** `held`: results that stay in the thread. */
  | { job: number; done: unknown; held: number }
  | { job: number; failed: string };

type Question = Extract<FromHeavy, { ask: number }>;

/** What a held result is, and the options with which it is shaped: plain data. */
export interface ShapeTask {
  as: ResultKind;
  options: Record<string, unknown>;
}

/** Answers a question that the thread has while it shapes, such as to store a file. */
export type AnswerHeavy = (args: never) => Promise<unknown>;

/** A held result is asked for in the turn in which it is delivered. One that nobody wants delays the next message. */
const CLAIM_MS = 1_000;
/** The next thread waits this long for the end of one in native code. */
const END_MS = 5_000;

/** `id`: the request that the message answers, if that is known. */
export class HeavyFailure extends Error {
  readonly excess: TooLarge;
  readonly id: RequestId | undefined;

  constructor(excess: TooLarge, id: RequestId | undefined) {
    super(excess.message);
    this.excess = excess;
    this.id = id;
  }
}

interface Job {
  server: string;
  bytes: number;
  message: ToHeavy & { job: number };
  transfer: ArrayBuffer[];
  answer?: AnswerHeavy;
  /** Of the connection. */
  isOver: () => boolean;
  settle: { resolve: (value: unknown) => void; reject: (error: HeavyFailure) => void };
  about?: RequestId;
}

const isRaw = import.meta.url.endsWith(".ts");
const heavyFile = new OwnFile(
  fileURLToPath(new URL(isRaw ? "../../heavy.ts" : "./heavy.js", import.meta.url)),
);

let compileCache: string | undefined;

/** The folder of Node's compile cache, if the environment does not name it: half of what the thread loads is compiled there. */
export const compileHeavyIn = (folder: string | undefined): void => {
  compileCache = folder;
};

/** Remembers which code belongs to this worker. */
export const rememberHeavyFile = (): void => heavyFile.remember();

export interface HeavyLimits {
  /** Processor time of one job, and the time without one after which the thread ends, in milliseconds. */
  workMs: number;
  idleMs: number;
}

const LIMITS_OF_HEAVY: HeavyLimits = { workMs: LIMITS.heavyWorkMs, idleMs: LIMITS.heavyIdleMs };

export class HeavyThread {
  readonly #limits: HeavyLimits;
  #thread: Worker | undefined;
  #isReady = false;
  #isFinding = false;
  #ending: Promise<unknown> | undefined;
  #queue: Job[] = [];
  #running: { job: Job; watch: WorkLimit } | undefined;
  /** Results that are held and have not been asked for yet; `read`: the job that read them. */
  #held: { read: number; open: number; timer: NodeJS.Timeout } | undefined;
  #idle: NodeJS.Timeout | undefined;
  #jobs = 0;
  readonly #spentMs = new Map<string, number>();

  constructor(limits = LIMITS_OF_HEAVY) {
    this.#limits = limits;
  }

  /** Starts the thread, which takes as long as some MB need to arrive. */
  warm(): void {
    clearTimeout(this.#idle);
    if (!this.#thread && !this.#ending) this.#start();
    if (!this.#running && this.#queue.length === 0) this.#rest();
  }

  /** Ends the thread now. The next message starts another one. */
  close(): void {
    clearTimeout(this.#idle);
    this.#end();
  }

  newJob(): number {
    return ++this.#jobs;
  }

  run(job: Omit<Job, "settle">): Promise<unknown> {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    this.#queue.push({ ...job, settle: { resolve, reject } });
    this.#next();
    return promise;
  }

  /** This many results of the job wait to be asked for. */
  #hold(read: number, open: number): void {
    const timer = setTimeout(() => {
      this.#held = undefined;
      this.#next();
    }, CLAIM_MS);
    this.#held = { read, open, timer };
  }

  #fail(job: Job, why: TooLarge): void {
    job.settle.reject(new HeavyFailure(why, job.about));
  }

  claimed(read: number): void {
    const held = this.#held;
    if (held?.read !== read || --held.open > 0) return;
    clearTimeout(held.timer);
    this.#held = undefined;
  }

  #next(): void {
    this.#queue = this.#queue.filter((job) => {
      if (job.isOver()) this.#fail(job, unreadable(job.bytes, "the connection was closed"));
      return !job.isOver();
    });
    if (this.#running || this.#ending) return;
    if (this.#queue.length === 0) {
      this.#rest();
      return;
    }
    if (!this.#thread) this.#start();
    if (!this.#isReady) return;
    const job = this.#choose();
    if (!job) return;
    this.#queue.splice(this.#queue.indexOf(job), 1);
    clearTimeout(this.#idle);
    this.#running = { job, watch: new WorkLimit(this.#limits.workMs, () => this.#giveUp(tooLaborious)) };
    this.#thread?.postMessage(job.message, job.transfer);
  }

  /** A result that the thread holds is shaped before the next message is read, which would take its place. */
  #choose(): Job | undefined {
    const shaping = this.#queue.find(({ message }) => "shape" in message);
    if (shaping || this.#held) return shaping;
    const spent = ({ server }: Job): number => this.#spentMs.get(server) ?? 0;
    return this.#queue.reduce((least, job) => (spent(job) < spent(least) ? job : least));
  }

  #rest(): void {
    clearTimeout(this.#idle);
    this.#idle = setTimeout(() => {
      this.#spentMs.clear();
      this.#end();
    }, this.#limits.idleMs);
    this.#idle.unref();
  }

  /** Does not throw: a message that cannot be read fails. */
  #start(): void {
    if (this.#isFinding) return;
    try {
      if (heavyFile.isKnown()) this.#begin();
      else this.#find();
    } catch (error) {
      // Node throws it at once where the system gives no more threads.
      this.#giveUp((bytes) => unreadable(bytes, messageOf(error)));
    }
  }

  #begin(): void {
    const thread = new Worker(heavyFile.path, {
      name: "pi-mcp-threads heavy",
      ...(compileCache && { env: { ...process.env, NODE_COMPILE_CACHE: compileCache } }),
      stdout: true,
      stderr: true,
      resourceLimits: { maxOldGenerationSizeMb: LIMITS.workerHeapMebibytes },
    });
    thread.unref();
    this.#thread = thread;
    this.#isReady = false;
    const isCurrent = (): boolean => this.#thread === thread;
    thread.on("message", (message: FromHeavy) => {
      if (isCurrent()) this.#onMessage(message);
    });
    const broken = (why: string): void => {
      if (isCurrent()) this.#giveUp((bytes) => unreadable(bytes, why));
    };
    thread.on("error", (error) => {
      // What the file imports is gone: main is asked before the next start.
      if (isFileGone(error)) heavyFile.distrust();
      broken(messageOf(error));
    });
    thread.on("exit", (code) => broken(`code ${code}`));
  }

  /** Without an answer of main's the first message that waits fails, and main is asked again for the next one. */
  #find(): void {
    this.#isFinding = true;
    heavyFile
      .find()
      .finally(() => {
        this.#isFinding = false;
      })
      .then(
        () => this.#next(),
        (error: unknown) => this.#giveUp((bytes) => unreadable(bytes, messageOf(error))),
      );
  }

  #onMessage(message: FromHeavy): void {
    if ("ready" in message) {
      this.#isReady = true;
      this.#next();
      return;
    }
    const { job, watch } = this.#running ?? {};
    if (!job || !watch || job.message.job !== message.job) return;
    if ("about" in message) job.about = message.about;
    else if ("ask" in message)
      this.#answer(job, watch, message).catch((error: unknown) =>
        this.#giveUp((bytes) => unreadable(bytes, messageOf(error))),
      );
    else {
      this.#settled();
      if ("failed" in message) this.#fail(job, unreadable(job.bytes, message.failed));
      else {
        if (message.held > 0) this.#hold(message.job, message.held);
        job.settle.resolve(message.done);
      }
      this.#next();
    }
  }

  async #answer(job: Job, watch: WorkLimit, { ask, args }: Question): Promise<void> {
    const thread = this.#thread;
    const value = await watch.during(job.answer?.(args as never) ?? Promise.resolve(undefined));
    thread?.postMessage({ answer: ask, value } satisfies ToHeavy);
  }

  #settled(): void {
    if (!this.#running) return;
    const { job, watch } = this.#running;
    this.#running = undefined;
    this.#spentMs.set(job.server, (this.#spentMs.get(job.server) ?? 0) + watch.end());
  }

  /** The thread is lost, and with it the message that is in it. If none is, the first that waits will not fare better. */
  #giveUp(why: (bytes: number) => TooLarge): void {
    const job = this.#running?.job ?? this.#queue.shift();
    this.#settled();
    this.#end();
    if (job) this.#fail(job, why(job.bytes));
    this.#next();
  }

  #end(): void {
    const thread = this.#thread;
    if (!thread) return;
    this.#thread = undefined;
    this.#isReady = false;
    if (this.#held) clearTimeout(this.#held.timer);
    this.#held = undefined;
    const late = Promise.withResolvers<void>();
    const timer = setTimeout(late.resolve, END_MS).unref();
    this.#ending = Promise.race([thread.terminate().catch(() => undefined), late.promise]).then(() => {
      clearTimeout(timer);
      this.#ending = undefined;
      if (this.#queue.length > 0) this.#next();
    });
  }
}
