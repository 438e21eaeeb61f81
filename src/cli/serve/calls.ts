/**
 * The calls of agents that are open: each goes on in the worker while its client answers questions, of the server or of the
 * user's rules, in between. A question about a call goes to the client of that call alone. A question of a server names no call,
 * so it goes to the oldest open call of that server whose client can show it. A cancelled call gets none, and what it was given
 * goes on to the next one. A call that ends while its client has a question is kept until the client has come back for the
 * result. Must not: know the protocol.
 */
import { randomUUID } from "node:crypto";
import type { AskAnswer, CallProgress } from "../../shared/protocol/calls.ts";
import type { Question } from "../../shared/protocol/contract.ts";
import { type Elicitation, elicitationOf } from "./questions.ts";

/** What the client of a call can show. */
export interface Shows {
  form: boolean;
  url: boolean;
}

export interface Asked extends Elicitation {
  /** An answer names the question, so that none counts for another one. */
  id: string;
  /** Aborts when nobody waits for the answer any more. */
  signal: AbortSignal;
}

/** `id`: of the call, which waits for the answer. */
export type Turn<Result> = { result: Result } | { asked: Asked; id: string };

interface Waiting {
  asked: Asked;
  settle: (answer: unknown) => void;
}

/** Calls that wait for an answer of their clients in a request of their own. */
const MOST_OPEN = 200;
/** Somewhat longer than the worker lets a question stand. */
const ANSWER_MS = 11 * 60 * 1_000;

export class OpenCall<Result> {
  readonly id = randomUUID();
  readonly server: string;
  readonly shows: Shows;
  /** Takes progress; undefined while no request of the client is open, or none wants it. */
  onProgress: ((progress: CallProgress) => void) | undefined;
  /** A question that the client could not show was declined. */
  wasUnasked = false;
  readonly #cancelled = new AbortController();
  readonly #result: Promise<Result>;
  #isRunning = true;
  /** The client has a question, with whose answer it comes back; settled when it does, or is not waited for any more. */
  #owed: PromiseWithResolvers<void> | undefined;
  #waiting: Waiting[] = [];
  #next = Promise.withResolvers<void>();
  #timer: NodeJS.Timeout | undefined;
  #lastAsked = "";

  constructor(
    { server, shows }: { server: string; shows: Shows },
    run: (call: OpenCall<Result>, signal: AbortSignal) => Promise<Result>,
  ) {
    this.server = server;
    this.shows = shows;
    this.#result = run(this, this.#cancelled.signal);
    void this.ended.then(() => {
      this.#isRunning = false;
    });
  }

  /** What a client of 2026-07-28 sends back with its answer: another one for each question. */
  get state(): string {
    return `${this.id}.${this.#lastAsked}`;
  }

  /** A question waits for its client. */
  get isAsked(): boolean {
    return this.#waiting.length > 0;
  }

  get ended(): Promise<unknown> {
    return this.#result.catch(() => undefined);
  }

  get isRunning(): boolean {
    return this.#isRunning;
  }

  /** Settles when the call has ended and its client does not come back for the result any more. */
  async over(): Promise<void> {
    await this.ended;
    while (this.#owed) await this.#owed.promise;
  }

  get isCancelled(): boolean {
    return this.#cancelled.signal.aborted;
  }

  #settleOwed(): void {
    clearTimeout(this.#timer);
    this.#owed?.resolve();
    this.#owed = undefined;
  }

  /** What its client was asked is open again. */
  cancel(): void {
    this.#settleOwed();
    this.#cancelled.abort();
    for (const { settle } of this.#waiting.splice(0)) settle(undefined);
  }

  /** Settles with the next question, or with the result. Rejects as the call does. */
  async turn(): Promise<Turn<Result>> {
    this.#settleOwed();
    for (;;) {
      const [first] = this.#waiting;
      if (first) {
        // A client that never comes back would leave the call open.
        this.#timer = setTimeout(() => this.cancel(), ANSWER_MS).unref();
        this.#owed = Promise.withResolvers();
        this.#lastAsked = first.asked.id;
        return { asked: first.asked, id: this.id };
      }
      const result = this.#result.then((value) => ({ result: value }));
      const next = await Promise.race([result, this.#next.promise]);
      if (next) return next;
    }
  }

  /** Takes the client's answer to the question of this id, of any shape. Does nothing if that one is no longer open. */
  answer(id: string, result: unknown): void {
    const waiting = this.#waiting.find(({ asked }) => asked.id === id);
    if (!waiting) return;
    this.#waiting = this.#waiting.filter((one) => one !== waiting);
    waiting.settle(waiting.asked.read(result));
  }

  /** Undefined: nobody waits for the answer any more, or the call has been cancelled. */
  ask(elicitation: Elicitation, signal: AbortSignal): Promise<unknown> {
    return new Promise((resolve) => {
      const asked: Asked = { ...elicitation, id: randomUUID(), signal };
      const settle = (answer: unknown): void => {
        signal.removeEventListener("abort", withdraw);
        resolve(answer);
      };
      const withdraw = (): void => {
        this.#waiting = this.#waiting.filter((one) => one.asked !== asked);
        resolve(undefined);
      };
      signal.addEventListener("abort", withdraw, { once: true });
      this.#waiting.push({ asked, settle });
      this.#next.resolve();
      this.#next = Promise.withResolvers();
    });
  }
}

const needs = ({ params }: Elicitation): keyof Shows => params.mode;

export class OpenCalls<Result> {
  readonly #open = new Map<string, OpenCall<Result>>();

  /** Undefined: too many are open. */
  begin(...about: ConstructorParameters<typeof OpenCall<Result>>): OpenCall<Result> | undefined {
    if (this.#open.size >= MOST_OPEN) return undefined;
    const call = new OpenCall<Result>(...about);
    this.#open.set(call.id, call);
    void call.over().then(() => this.#open.delete(call.id));
    return call;
  }

  /** No call runs. */
  get isIdle(): boolean {
    return ![...this.#open.values()].some(({ isRunning }) => isRunning);
  }

  get(id: string): OpenCall<Result> | undefined {
    return this.#open.get(id);
  }

  /** The call whose `state` that is. */
  withState(state: string): OpenCall<Result> | undefined {
    const call = this.#open.get(state.split(".", 1)[0] ?? "");
    return call?.state === state ? call : undefined;
  }

  /** Asks through the client of a call. Nobody can be asked: the answer is a no. */
  async ask(question: Question, signal: AbortSignal): Promise<unknown> {
    if (question.about === "provider") return { problem: "needs-pi" };
    // Only Pi has a model. A server that was not told of one would list other tools, and the list is shared. It is no no
    // of the person: after a few of those the server's questions are not shown either.
    if (question.about === "prompt") return { action: "failed" };
    const elicitation = elicitationOf(question);
    const isWaiting = ({ id, server }: OpenCall<Result>): boolean =>
      question.about === "server" ? server === question.server : id === question.callId;
    const calls = [...this.#open.values()].filter(
      (call) => isWaiting(call) && call.isRunning && !call.isCancelled,
    );
    const all = calls.filter(({ shows }) => shows[needs(elicitation)]);
    const able = all.find(({ isAsked }) => !isAsked) ?? all[0];
    if (able) {
      const answer = await able.ask(elicitation, signal);
      if (answer !== undefined || signal.aborted) return answer;
      // The question of a server may be another call's.
      return question.about === "server" ? this.ask(question, signal) : elicitation.read(undefined);
    }
    for (const call of calls) call.wasUnasked = true;
    if (question.about === "server") return { action: "decline", unseen: true } satisfies AskAnswer;
    return elicitation.read({ action: "decline" });
  }
}
