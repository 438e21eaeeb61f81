/**
 * Follows a call that the server turned into a task (ext-tasks, tasks): looks at it until it is done, hands its status on,
 * answers its questions, and takes it back if the call is given up. A look repeats nothing, so one that gets no answer is
 * repeated.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { isObject } from "../../../../src/shared/protocol/is-object.ts";
import { answerQuestions, outOfOrder, type Party, quoted } from "./answers.ts";
import { FAILED_POLLS, POLL_LEAST_MS, POLL_MOST_MS, ROUNDS, TASK_ID_CHARS } from "./limits.ts";
import type { Result } from "./rounds.ts";

export interface TaskOptions {
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
  wait?: (ms: number, signal: AbortSignal) => Promise<unknown>;
}

const realWait = (ms: number, signal: AbortSignal): Promise<unknown> => sleep(ms, undefined, { signal });

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
    if (party.signal.aborted) cancel(taskId);
    throw error;
  }
}

class FollowedTask {
  readonly #id: string;
  readonly #options: TaskOptions;
  /** Answers by key; a key stands for one question as long as the task lives. */
  readonly #answers = new Map<string, unknown>();
  readonly #delivered = new Set<string>();
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
      const answers = await answerQuestions(Object.fromEntries(asked), party);
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
