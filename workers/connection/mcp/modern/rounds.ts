/**
 * Questions that a server puts into a result (MCP 2026-07-28, basic/patterns/mrtr): each goes to the user as a question of
 * the old era would, one after the other, and the request is repeated with the answers until its result needs no more. The
 * repetition belongs to the protocol: the server ended the request before with a result.
 *
 * And calls that the server turned into a task (ext-tasks, tasks): looks at it until it is done, hands its status on,
 * answers its questions, and takes it back if the call is given up. A look repeats nothing, so one that gets no answer is
 * repeated.
 */

import { setTimeout as sleep } from "node:timers/promises";
import { ThreadsError } from "../../../../src/shared/protocol/errors.ts";
import { isObject } from "../../../../src/shared/protocol/values.ts";
import { answerOf, type ServerAsks } from "../../asks/asks.ts";
import { NoReply } from "../../asks/prompt.ts";
import {
  FAILED_POLLS,
  PATIENCE_MOST_MS,
  PATIENCE_MS,
  POLL_LEAST_MS,
  POLL_MOST_MS,
  ROUND_QUESTIONS,
  ROUNDS,
  STATE_CHARS,
  TASK_ID_CHARS,
} from "./limits.ts";

export type Result = Record<string, unknown>;

/** Settles after `ms` milliseconds, or rejects with the reason of the signal. */
type Wait = (ms: number, signal: AbortSignal) => Promise<unknown>;

const realWait: Wait = (ms, signal) =>
  sleep(ms, undefined, { signal }).catch(() => {
    // The timer's own error hides the reason, which says whether the call took too long.
    throw signal.reason;
  });

/**
 * `send` gets the parameters that the repeated request has besides its own. Answers the first result of another type. A
 * server that asks no question wants its request again a little later.
 */
export async function throughRounds(
  send: (more: Record<string, unknown>) => Promise<Result>,
  party: Party & { wait?: Wait },
): Promise<Result> {
  const { signal, wait = realWait } = party;
  const visited = new Set<string>();
  let more: Record<string, unknown> = {};
  let patienceMs = PATIENCE_MS;
  for (let round = 0; ; round++) {
    const result = await send(more);
    if (result.resultType !== "input_required") return result;
    if (round === ROUNDS) throw outOfOrder(party, `needs answers again and again, more than ${ROUNDS} times`);
    const { inputRequests, requestState } = result;
    const asksNothing =
      inputRequests === undefined || (isObject(inputRequests) && Object.keys(inputRequests).length === 0);
    if (asksNothing && requestState === undefined)
      throw outOfOrder(party, "needs an answer and asks no question");
    if (
      requestState !== undefined &&
      !(typeof requestState === "string" && requestState.length <= STATE_CHARS)
    )
      throw outOfOrder(party, "has a state that cannot be sent back");
    const answers = asksNothing ? undefined : await answerQuestions(inputRequests, party, visited);
    if (!answers) {
      await wait(patienceMs, signal);
      patienceMs = Math.min(2 * patienceMs, PATIENCE_MOST_MS);
    }
    more = {
      ...(answers ? { inputResponses: Object.fromEntries(answers) } : {}),
      ...(requestState === undefined ? {} : { requestState }),
    };
  }
}

/** The result, if it is the last one. A result without a type is one of an older revision. */
export function lastResult(result: Result, party: Pick<Party, "server" | "subject">): Result {
  const { resultType } = result;
  if (resultType === undefined || resultType === "complete") return result;
  throw outOfOrder(party, `got a result of the type ${quoted(resultType)}, which it cannot have`);
}

/** Who is asked, and for which request. */
export interface Party {
  server: string;
  /** The request in words, for example `docs/search`. */
  subject: string;
  /** Absent: nobody can answer, and the server was told so. */
  asks: ServerAsks | undefined;
  /** Folders that the server is told. Absent: it was told that it cannot ask. */
  roots?: readonly unknown[] | undefined;
  onNote: (note: string) => void;
  signal: AbortSignal;
}

const WORD_CHARS = 60;

/** The error of a request that the server does not carry on as the protocol says. `what` follows the subject. */
export const outOfOrder = (
  { server, subject }: Pick<Party, "server" | "subject">,
  what: string,
): ThreadsError =>
  new ThreadsError("call_rejected", `${subject} ${what}.`, {
    remedy: "This is a fault of the server. What it did until then has happened.",
    data: { server },
  });

/** A word of the server in an error, cut. */
export const quoted = (word: unknown): string =>
  JSON.stringify(typeof word === "string" ? word.slice(0, WORD_CHARS).toWellFormed() : typeof word);

/** The page to which a question leads. */
const pageOf = (params: unknown): string | undefined =>
  isObject(params) && params.mode === "url" && typeof params.url === "string" ? params.url : undefined;

async function answerOne(question: unknown, party: Party, visited: Set<string>): Promise<unknown> {
  const asked = isObject(question) ? question : {};
  if (asked.method === "roots/list" && party.roots) return { roots: party.roots };
  const url = pageOf(asked.params);
  const isAgain = url !== undefined && visited.has(url);
  const answer = await answerOf(asked, { ...party, isAgain }, party.signal).catch((error: unknown) => {
    // An answer of the model has no form that says no, so the call ends.
    if (!(error instanceof NoReply) || party.signal.aborted) throw error;
    throw new ThreadsError(
      "call_rejected",
      `${party.subject} needs an answer of your model: ${error.message.replace(/\.?$/, ".")}`,
      {
        remedy: "What the server did until then has happened.",
        data: { server: party.server },
        cause: error,
      },
    );
  });
  if (url !== undefined && answer?.action === "accept") visited.add(url);
  if (answer) return answer;
  throw outOfOrder(party, `asks for ${quoted(asked.method)}, which this client does not offer`);
}

/**
 * The answers by the keys of the questions, which may have any shape. Rejects with `ThreadsError`, or when aborted. `visited`:
 * pages that the user has agreed to for this call.
 */
async function answerQuestions(
  questions: unknown,
  party: Party,
  visited: Set<string>,
): Promise<[string, unknown][]> {
  if (!isObject(questions)) throw outOfOrder(party, "asks questions that are not an object");
  const open = Object.entries(questions);
  if (open.length > ROUND_QUESTIONS)
    throw outOfOrder(
      party,
      `asks ${open.length.toLocaleString("en")} questions at once, more than ${ROUND_QUESTIONS}`,
    );
  const answers: [string, unknown][] = [];
  for (const [key, question] of open) {
    party.signal.throwIfAborted();
    answers.push([key, await answerOne(question, party, visited)]);
  }
  party.signal.throwIfAborted();
  return answers;
}

interface TaskOptions {
  party: Party;
  request: (method: string, params: Record<string, unknown>) => Promise<Result>;
  /** Tells the server that nobody wants the task any more. Does not reject. */
  cancel: (taskId: string) => void;
  /** Whether the request got no answer, as opposed to one that says no. */
  isUnanswered: (error: unknown) => boolean;
  /** The error for the JSON-RPC error with which the task failed. */
  failure: (error: unknown) => Error;
  /** The server told the status of the task, perhaps the same as before; `message` is the server's, or the status. */
  onStatus: (message: string) => void;
  wait?: Wait;
}

/** The pause before the next look. `failed`: looks in a row that got no answer. */
export function pollMs(wanted: unknown, failed: number): number {
  const named = typeof wanted === "number" && wanted > 0 ? wanted : POLL_LEAST_MS;
  return Math.min(Math.max(named, POLL_LEAST_MS) * 2 ** failed, POLL_MOST_MS);
}

/** `created`: the result of the call, of the type `task`. Answers the result of the finished task. */
export async function followTask(created: Result, options: TaskOptions): Promise<Result> {
  const { party, cancel } = options;
  const { taskId } = created;
  if (typeof taskId !== "string" || taskId === "" || taskId.length > TASK_ID_CHARS)
    throw outOfOrder(party, "became a task without a usable id");
  try {
    return await new FollowedTask(taskId, options).follow(created);
  } catch (error) {
    // A task that waits for an answer of the model would wait for ever.
    const isUnanswered = error instanceof ThreadsError && error.cause instanceof NoReply;
    if (party.signal.aborted || isUnanswered) cancel(taskId);
    throw error;
  }
}

class FollowedTask {
  readonly #id: string;
  readonly #options: TaskOptions;
  /** Answers by key; a key stands for one question as long as the task lives. */
  readonly #answers = new Map<string, unknown>();
  readonly #delivered = new Set<string>();
  readonly #visited = new Set<string>();
  #rounds = 0;
  #failed = 0;

  constructor(id: string, options: TaskOptions) {
    this.#id = id;
    this.#options = options;
  }

  async follow(created: Result): Promise<Result> {
    const { party, failure, wait = realWait } = this.#options;
    let [task, isNews] = [created, true];
    while (true) {
      // A server that still says "working" is at work, so each answer counts as progress.
      if (isNews) this.#tell(task);
      const { status, result } = task;
      if (status === "completed") {
        if (isObject(result)) return result;
        throw outOfOrder(party, "was completed as a task without a result");
      }
      if (status === "failed") throw failure(task.error);
      if (status === "cancelled") throw outOfOrder(party, "was cancelled by the server");
      if (status === "input_required") await this.#answer(task.inputRequests);
      else if (status !== "working")
        throw outOfOrder(party, `became a task of the unknown status ${quoted(status)}`);
      await wait(pollMs(task.pollIntervalMs, this.#failed), party.signal);
      const next = await this.#ask("tasks/get", {});
      [task, isNews] = [next ?? task, next !== undefined];
    }
  }

  #tell({ status, statusMessage }: Result): void {
    this.#options.onStatus(
      typeof statusMessage === "string" && statusMessage !== "" ? statusMessage : String(status),
    );
  }

  async #answer(questions: unknown): Promise<void> {
    const { party } = this.#options;
    if (!isObject(questions)) return;
    const open = Object.entries(questions).filter(([key]) => !this.#delivered.has(key));
    const asked = open.filter(([key]) => !this.#answers.has(key));
    if (asked.length > 0) {
      if (++this.#rounds > ROUNDS)
        throw outOfOrder(party, `needs answers again and again, more than ${ROUNDS} times`);
      const answers = await answerQuestions(Object.fromEntries(asked), party, this.#visited);
      for (const [key, answer] of answers) this.#answers.set(key, answer);
    }
    if (open.length === 0) return;
    const inputResponses = Object.fromEntries(open.map(([key]) => [key, this.#answers.get(key)]));
    if (await this.#ask("tasks/update", { inputResponses }))
      for (const [key] of open) this.#delivered.add(key);
  }

  /** Undefined: there was no answer, and there may be one to the next look. */
  async #ask(method: string, params: Record<string, unknown>): Promise<Result | undefined> {
    const { request, isUnanswered, party } = this.#options;
    try {
      const result = await request(method, { ...params, taskId: this.#id });
      this.#failed = 0;
      return result;
    } catch (error) {
      if (party.signal.aborted || !isUnanswered(error) || ++this.#failed >= FAILED_POLLS) throw error;
      return undefined;
    }
  }
}
