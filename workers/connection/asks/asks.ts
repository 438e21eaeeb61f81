/**
 * Questions of servers to the user (MCP: elicitation) and, after the user's yes, to Pi's model (MCP: sampling). Owns: which
 * questions of a server are open, wait or are declined unseen, and the answer that a server gets. One question of a server is open, a few wait, and a server that nags is
 * declined unseen. Must not: know the protocol's client, lifecycles or dialogs; main shows the dialogs.
 * To add a kind of field: src/shared/protocol/calls.ts, read.ts, src/shared/asks/check.ts, src/ui/asks/form.ts.
 */
import type { AskAnswer, PromptAnswer } from "../../../src/shared/protocol/calls.ts";
import type { AnswerTo, Question, WorkerEvent } from "../../../src/shared/protocol/contract.ts";
import { isObject } from "../../../src/shared/protocol/values.ts";
import { type AwakeTimer, startAwakeTimer } from "../../shared/pace/awake.ts";
import type { Redactor } from "../secrets/redact.ts";
import { ASK_MS, DECLINES, URLS_OF_CALL, WAITING } from "./limits.ts";
import { readPrompt, replyOf } from "./prompt.ts";
import { contentOf, readAsk, type ServerAsk } from "./read.ts";

/**
 * Asks the person. Undefined: nobody answers, since there is no person, the dialog was closed, or the signal has aborted.
 * Does not reject.
 */
export type AskUser = <Q extends Question>(
  question: Q,
  signal: AbortSignal,
) => Promise<AnswerTo<Q> | undefined>;

interface AskingServer {
  name: string;
  redact: Redactor;
  /** Takes a note about the server, worded to follow the server's name. */
  onNote: (note: string) => void;
  /** Whether the user's file lets the server ask the user, and Pi's model. */
  may: { ask: boolean; sample: boolean };
}

/** The result of `elicitation/create`. */
export interface ElicitAnswer extends Record<string, unknown> {
  action: "accept" | "decline" | "cancel";
  content?: Record<string, unknown>;
}

/** `none`: the error named no address. */
export type RequiredOutcome = ElicitAnswer["action"] | "none";

/** While a question is open the server waits for a person, so the clocks of its calls stand still. */
export interface AskPauses {
  readonly isOpen: boolean;
  /** Calls the listener at each change of `isOpen`. Answers how to stop that. */
  watch(listener: () => void): () => void;
}

export interface ServerAsks extends AskPauses {
  /** What the server is told that it may do. */
  readonly may: AskingServer["may"];
  /**
   * Answers a question, which may have any shape. `signal`: the server no longer waits. `isAgain`: it waits for a page that the
   * user has agreed to before. Does not reject.
   */
  create(params: unknown, signal: AbortSignal, isAgain?: boolean): Promise<ElicitAnswer>;
  /** Answers `sampling/createMessage`, whose params may have any shape. Rejects with `NoReply`. */
  sample(params: unknown, signal: AbortSignal): Promise<Record<string, unknown>>;
  /** Asks for each address of the error -32042, whose data may have any shape. Does not reject. */
  required(data: unknown, signal: AbortSignal): Promise<RequiredOutcome>;
  /**
   * A call begins. Answers how to end it: a question of a call that was given up leaves the screen. Over stdio nothing
   * tells which call a question belongs to, so it stays as long as one of those calls is open that it may belong to.
   */
  callBegins(): (how: "done" | "given-up") => void;
}

/** A question of a server, of any shape. */
interface ServerQuestion {
  method?: unknown;
  params?: unknown;
}

interface Asking {
  asks?: ServerAsks | undefined;
  onNote: AskingServer["onNote"];
  isAgain?: boolean;
}

/** The answer; undefined: the server was told nothing of such a question. Rejects with `NoReply` about the model. */
export async function answerOf(
  { method, params }: ServerQuestion,
  { asks, onNote, isAgain = false }: Asking,
  signal: AbortSignal,
): Promise<Record<string, unknown> | undefined> {
  if (method === "sampling/createMessage" && asks?.may.sample) return asks.sample(params, signal);
  if (method !== "elicitation/create") return undefined;
  if (asks?.may.ask) return asks.create(params, signal, isAgain);
  onNote("asks the user something although it was not told that it may; that is cancelled");
  return CANCEL;
}

interface AsksContext {
  askUser: AskUser;
  /**
   * Several clients answer: as many questions of a server are open as would wait otherwise, and declines count until no call
   * of the server is open, since there is no turn of a model. Absent: one is open.
   */
  sideBySide?: boolean;
  emit: (event: WorkerEvent) => void;
  /** Opens an address in the user's browser. Does not reject. */
  openPage: (url: string, onNote: (note: string) => void) => Promise<"started" | "none">;
}

export class SessionAsks {
  readonly #context: AsksContext;
  readonly #servers = new Map<string, QuestionsOfServer>();

  constructor(context: AsksContext) {
    this.#context = context;
  }

  /**
   * The questions of a server, also over several connections: a server that nags may connect again. Undefined: it may ask
   * nobody.
   */
  of(server: AskingServer): ServerAsks | undefined {
    if (!server.may.ask && !server.may.sample) return undefined;
    const known = this.#servers.get(server.name) ?? new QuestionsOfServer(this.#context);
    this.#servers.set(server.name, known);
    return known.connected(server);
  }

  /** A turn of the model has ended: servers that were declined may ask again. */
  turnEnded(): void {
    for (const server of this.#servers.values()) server.turnEnded();
  }
}

interface OpenQuestion {
  /** Calls that were open when the question came. */
  readonly calls: Set<symbol>;
  /** One of those calls was given up. */
  wasGivenUp: boolean;
  /** Asks the user, until `settle` takes the question away. */
  show(): Promise<void>;
  settle(answer: ElicitAnswer): void;
}

const CANCEL = { action: "cancel" } as const;
const DECLINE = { action: "decline" } as const;

class QuestionsOfServer {
  readonly #context: AsksContext;
  readonly #calls = new Set<symbol>();
  readonly #listeners = new Set<() => void>();
  readonly #waiting: OpenQuestion[] = [];
  readonly #open = new Set<OpenQuestion>();
  #declines = 0;
  /** The log says once in a turn that the server is declined unseen. */
  #isNoted = false;

  constructor(context: AsksContext) {
    this.#context = context;
  }

  turnEnded(): void {
    this.#declines = 0;
    this.#isNoted = false;
  }

  connected(server: AskingServer): ServerAsks {
    const isOpen = (): boolean => this.#open.size > 0 || this.#waiting.length > 0;
    return {
      may: server.may,
      get isOpen() {
        return isOpen();
      },
      watch: (listener) => {
        this.#listeners.add(listener);
        return () => void this.#listeners.delete(listener);
      },
      create: (params, signal, isAgain) => this.#create(server, params, signal, isAgain),
      sample: (params, signal) => this.#sample(server, params, signal),
      required: (data, signal) => this.#required(server, data, signal),
      callBegins: () => this.#callBegins(),
    };
  }

  #callBegins(): ReturnType<ServerAsks["callBegins"]> {
    const call = Symbol();
    this.#calls.add(call);
    return (how) => {
      this.#calls.delete(call);
      for (const question of [...this.#open, ...this.#waiting]) {
        if (!question.calls.delete(call)) continue;
        if (how === "given-up") question.wasGivenUp = true;
        if (question.wasGivenUp && question.calls.size === 0) question.settle(CANCEL);
      }
      if (this.#context.sideBySide && this.#calls.size === 0) this.turnEnded();
    };
  }

  async #create(
    server: AskingServer,
    params: unknown,
    signal: AbortSignal,
    isAgain = false,
  ): Promise<ElicitAnswer> {
    const refused = this.#refusal(server);
    if (refused) return refused;
    const read = readAsk(params, server.redact);
    if ("problem" in read) {
      server.onNote(`asks the user something that is declined unseen: ${read.problem}`);
      return DECLINE;
    }
    const ask = isAgain && read.ask.kind === "url" ? { ...read.ask, again: true as const } : read.ask;
    const asked = { about: "server", server: server.name, ask } as const;
    return this.#ask<AskAnswer>(signal, {
      ask: async (over) => (await this.#context.askUser(asked, over)) ?? CANCEL,
      answer: (given) => this.#answerTo(server, read, given),
    });
  }

  async #sample(
    server: AskingServer,
    params: unknown,
    signal: AbortSignal,
  ): Promise<Record<string, unknown>> {
    const { name, redact, onNote } = server;
    if (this.#refusal(server)) return replyOf(DECLINE, { stops: [] });
    const read = readPrompt(params, redact);
    let given = CANCEL as PromptAnswer;
    const asked = { about: "prompt", server: name, prompt: read.prompt } as const;
    await this.#ask<PromptAnswer>(signal, {
      ask: async (over) => (await this.#context.askUser(asked, over)) ?? CANCEL,
      answer: (answer) => {
        given = answer;
        return answer.action === "failed" ? CANCEL : { action: answer.action };
      },
    });
    if (given.use) {
      const { model, tokens } = given.use;
      const got = given.action === "accept" ? "got" : "did not get";
      onNote(`${got} an answer of ${model}, which read ${tokens.read} tokens and wrote ${tokens.written}`);
    }
    return replyOf(given, read);
  }

  async #required(server: AskingServer, data: unknown, signal: AbortSignal): Promise<RequiredOutcome> {
    if (!server.may.ask) return "none";
    const items = isObject(data) && Array.isArray(data.elicitations) ? data.elicitations : [];
    let outcome: RequiredOutcome = "none";
    for (const item of items.slice(0, URLS_OF_CALL)) {
      if (!isObject(item) || item.mode !== "url") continue;
      outcome = (await this.#create(server, item, signal)).action;
      if (outcome !== "accept") return outcome;
    }
    return outcome;
  }

  get #atATime(): number {
    return this.#context.sideBySide ? WAITING + 1 : 1;
  }

  /** The answer to a question that nobody is shown. */
  #refusal({ onNote }: AskingServer): ElicitAnswer | undefined {
    if (this.#declines >= DECLINES) {
      if (!this.#isNoted) onNote("asks the user again and again, and is declined unseen until the turn ends");
      this.#isNoted = true;
      return DECLINE;
    }
    if (this.#open.size < this.#atATime || this.#waiting.length < WAITING) return undefined;
    onNote(`asks the user more than ${WAITING + 1} things at a time; the others are cancelled`);
    return CANCEL;
  }

  /** `ask`: asks main, until its signal aborts. `answer`: what the server gets of main's answer. */
  #ask<A extends AskAnswer | PromptAnswer>(
    signal: AbortSignal,
    { ask, answer }: { ask: (over: AbortSignal) => Promise<A>; answer: (given: A) => ElicitAnswer },
  ): Promise<ElicitAnswer> {
    if (signal.aborted) return Promise.resolve(CANCEL);
    const { promise, resolve } = Promise.withResolvers<ElicitAnswer>();
    const over = new AbortController();
    let timer: AwakeTimer | undefined;
    const question: OpenQuestion = {
      calls: new Set(this.#calls),
      wasGivenUp: false,
      show: async () => {
        timer = startAwakeTimer(ASK_MS, () => this.#expire(question));
        const given = await ask(over.signal);
        if (over.signal.aborted) return;
        const isNo = given.action === "decline" || given.action === "cancel";
        if (isNo && !("unseen" in given)) this.#declines++;
        question.settle(answer(given));
      },
      settle: (outcome) => {
        timer?.stop();
        signal.removeEventListener("abort", gone);
        over.abort();
        resolve(outcome);
        this.#remove(question);
      },
    };
    const gone = (): void => question.settle(CANCEL);
    signal.addEventListener("abort", gone, { once: true });
    this.#waiting.push(question);
    this.#next();
    return promise;
  }

  /** What the server gets of the user's answer. */
  #answerTo(server: AskingServer, { ask, fields }: ServerAsk, answer: AskAnswer): ElicitAnswer {
    if (answer.action !== "accept") return { action: answer.action };
    if (ask.kind === "url") {
      if ("open" in answer && answer.open) void this.#openPage(server, ask.url);
      return { action: "accept" };
    }
    const read = contentOf(fields, "values" in answer ? answer.values : []);
    if (read) return { action: "accept", content: read };
    // Main asks until each value fits, by the same rules.
    server.onNote("gets no answer: the values do not fit its form");
    return CANCEL;
  }

  async #openPage({ name, onNote }: AskingServer, url: string): Promise<void> {
    const { openPage, emit } = this.#context;
    if ((await openPage(url, onNote)) === "none") emit({ type: "unopened", server: name, url });
  }

  #remove(question: OpenQuestion): void {
    const position = this.#waiting.indexOf(question);
    if (position >= 0) this.#waiting.splice(position, 1);
    if (!this.#open.delete(question)) return;
    // A connection that ends withdraws all of its questions, one after the other: the next one must not show up between.
    queueMicrotask(() => this.#next());
  }

  /** Shows the next question, unless the user has declined often enough. */
  #next(): void {
    if (this.#open.size >= this.#atATime) return;
    if (this.#declines >= DECLINES) for (const unseen of [...this.#waiting]) unseen.settle(DECLINE);
    const next = this.#waiting.shift();
    if (next) this.#open.add(next);
    void next?.show();
    for (const listener of [...this.#listeners]) listener();
  }

  /** Nobody is there: whatever else the server asks in this turn would wait as long. */
  #expire(question: OpenQuestion): void {
    this.#declines = DECLINES;
    for (const one of [...this.#waiting, question]) one.settle(CANCEL);
  }
}
