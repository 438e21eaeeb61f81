/**
 * Answers the questions that a server puts into a result (MCP 2026-07-28, basic/patterns/mrtr; ext-tasks). Each goes to
 * the user as a question of the old era would, one after the other. A question of a kind that was not offered fails the
 * request.
 */
import { ThreadsError } from "../../../../src/shared/protocol/errors.ts";
import { isObject } from "../../../../src/shared/protocol/is-object.ts";
import type { ServerAsks } from "../../asks/asks.ts";
import { ROUND_QUESTIONS } from "./limits.ts";

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

async function answerOne(question: unknown, party: Party): Promise<unknown> {
  const { asks, roots, onNote, signal } = party;
  const { method, params } = isObject(question) ? question : {};
  if (method === "roots/list" && roots) return { roots };
  if (method !== "elicitation/create")
    throw outOfOrder(party, `asks for ${quoted(method)}, which this client does not offer`);
  if (asks) return await asks.create(params, signal);
  onNote("asks the user something although it was not told that it may; that is cancelled");
  return { action: "cancel" };
}

/** The answers by the keys of the questions, which may have any shape. Rejects with `ThreadsError`, or when aborted. */
export async function answerQuestions(questions: unknown, party: Party): Promise<[string, unknown][]> {
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
    answers.push([key, await answerOne(question, party)]);
  }
  party.signal.throwIfAborted();
  return answers;
}
