/**
 * The questions of one server: one is open, a few wait, and a server that nags is declined unseen. Called by: asks.ts.
 */
import type { Ask, AskAnswer, AskReply } from "../../../src/shared/protocol/ask.ts";
import { isObject } from "../../../src/shared/protocol/is-object.ts";
import type { AskingServer, ElicitAnswer, RequiredOutcome, ServerAsks } from "./contract.ts";
import { ASK_MS, DECLINES, URLS_OF_CALL, WAITING } from "./limits.ts";
import { contentOf, readAsk, type ServerAsk } from "./read.ts";

/** A question as the session sees it. */
export interface OpenAsk {
  server: string;
  ask: Ask;
  onNote: AskingServer["onNote"];
  take(answer: AskAnswer): Exclude<AskReply, { over: true }>;
}

export interface Screen {
  /** Shows the question and answers its id. */
  show(one: OpenAsk): string;
  /** Takes the question away if it is still shown. */
  hide(askId: string): void;
}

interface Question extends OpenAsk {
  /** Calls that were open when the question came. */
  readonly calls: Set<symbol>;
  /** One of those calls was given up. */
  wasGivenUp: boolean;
  settle(answer: ElicitAnswer): void;
}

const CANCEL: ElicitAnswer = { action: "cancel" };
const DECLINE: ElicitAnswer = { action: "decline" };

export class QuestionsOfServer {
  readonly #screen: Screen;
  readonly #calls = new Set<symbol>();
  readonly #listeners = new Set<() => void>();
  readonly #waiting: Question[] = [];
  #open: { question: Question; askId: string; timer: NodeJS.Timeout } | undefined;
  #declines = 0;
  /** The log says once in a turn that the server is declined unseen. */
  #isNoted = false;

  constructor(screen: Screen) {
    this.#screen = screen;
  }

  turnEnded(): void {
    this.#declines = 0;
    this.#isNoted = false;
  }

  connected(server: AskingServer): ServerAsks {
    const isOpen = (): boolean => this.#open !== undefined || this.#waiting.length > 0;
    return {
      get isOpen() {
        return isOpen();
      },
      watch: (listener) => {
        this.#listeners.add(listener);
        return () => void this.#listeners.delete(listener);
      },
      create: (params, signal) => this.#create(server, params, signal),
      required: (data, signal) => this.#required(server, data, signal),
      callBegins: () => this.#callBegins(),
    };
  }

  #callBegins(): ReturnType<ServerAsks["callBegins"]> {
    const call = Symbol();
    this.#calls.add(call);
    return (how) => {
      this.#calls.delete(call);
      for (const question of this.#all()) {
        if (!question.calls.delete(call)) continue;
        if (how === "given-up") question.wasGivenUp = true;
        if (question.wasGivenUp && question.calls.size === 0) question.settle(CANCEL);
      }
    };
  }

  #all(): Question[] {
    return [...(this.#open ? [this.#open.question] : []), ...this.#waiting];
  }

  async #create(server: AskingServer, params: unknown, signal: AbortSignal): Promise<ElicitAnswer> {
    const refused = this.#refusal(server);
    if (refused) return refused;
    const read = readAsk(params, server.redact);
    if (!("problem" in read)) return this.#ask(server, read, signal);
    server.onNote(`asks the user something that is declined unseen: ${read.problem}`);
    return DECLINE;
  }

  async #required(server: AskingServer, data: unknown, signal: AbortSignal): Promise<RequiredOutcome> {
    const items = isObject(data) && Array.isArray(data.elicitations) ? data.elicitations : [];
    let outcome: RequiredOutcome = "none";
    for (const item of items.slice(0, URLS_OF_CALL)) {
      if (!isObject(item) || item.mode !== "url") continue;
      outcome = (await this.#create(server, item, signal)).action;
      if (outcome !== "accept") return outcome;
    }
    return outcome;
  }

  /** The answer to a question that nobody is shown. */
  #refusal({ onNote }: AskingServer): ElicitAnswer | undefined {
    if (this.#declines >= DECLINES) {
      if (!this.#isNoted) onNote("asks the user again and again, and is declined unseen until the turn ends");
      this.#isNoted = true;
      return DECLINE;
    }
    if (!this.#open || this.#waiting.length < WAITING) return undefined;
    onNote(`asks the user more than ${WAITING + 1} things at a time; the others are cancelled`);
    return CANCEL;
  }

  #ask(server: AskingServer, read: ServerAsk, signal: AbortSignal): Promise<ElicitAnswer> {
    if (signal.aborted) return Promise.resolve(CANCEL);
    return new Promise((resolve) => {
      const gone = (): void => question.settle(CANCEL);
      const question: Question = {
        server: server.name,
        ask: read.ask,
        onNote: server.onNote,
        calls: new Set(this.#calls),
        wasGivenUp: false,
        take: (answer) => this.#take(question, read, answer),
        settle: (answer) => {
          signal.removeEventListener("abort", gone);
          resolve(answer);
          this.#remove(question);
        },
      };
      signal.addEventListener("abort", gone, { once: true });
      this.#waiting.push(question);
      this.#next();
    });
  }

  #take(question: Question, { fields }: ServerAsk, answer: AskAnswer): Exclude<AskReply, { over: true }> {
    if (answer.action !== "accept") {
      this.#declines++;
      question.settle({ action: answer.action });
      return { taken: true };
    }
    if (question.ask.kind === "url") {
      question.settle({ action: "accept" });
      return { taken: true };
    }
    const read = contentOf(fields, "values" in answer ? answer.values : []);
    if ("refused" in read) return { taken: false, refused: read.refused };
    question.settle({ action: "accept", content: read.content });
    return { taken: true };
  }

  #remove(question: Question): void {
    const position = this.#waiting.indexOf(question);
    if (position >= 0) this.#waiting.splice(position, 1);
    if (this.#open?.question !== question) return;
    const { askId, timer } = this.#open;
    clearTimeout(timer);
    this.#open = undefined;
    this.#screen.hide(askId);
    // A connection that ends withdraws all of its questions, one after the other: the next one must not show up between.
    queueMicrotask(() => this.#next());
  }

  /** Shows the next question, unless the user has declined often enough. */
  #next(): void {
    if (this.#open) return;
    if (this.#declines >= DECLINES) for (const unseen of [...this.#waiting]) unseen.settle(DECLINE);
    const question = this.#waiting.shift();
    if (question) {
      const timer = setTimeout(() => this.#expire(question), ASK_MS).unref();
      this.#open = { question, askId: this.#screen.show(question), timer };
    }
    this.#tell();
  }

  /** Nobody is there: whatever else the server asks in this turn would wait as long. */
  #expire(question: Question): void {
    this.#declines = DECLINES;
    for (const one of [...this.#waiting, question]) one.settle(CANCEL);
  }

  #tell(): void {
    for (const listener of [...this.#listeners]) listener();
  }
}
