/**
 * Repeats a request until its result needs no more answers (MCP 2026-07-28, basic/patterns/mrtr). The repetition belongs to
 * the protocol: the server ended the request before with a result.
 */
import { answerQuestions, outOfOrder, type Party, quoted } from "./answers.ts";
import { ROUNDS, STATE_CHARS } from "./limits.ts";

export type Result = Record<string, unknown>;

/** `send` gets the parameters that the repeated request has besides its own. Answers the first result of another type. */
export async function throughRounds(
  send: (more: Record<string, unknown>) => Promise<Result>,
  party: Party,
): Promise<Result> {
  let more: Record<string, unknown> = {};
  for (let round = 0; ; round++) {
    const result = await send(more);
    if (result.resultType !== "input_required") return result;
    if (round === ROUNDS) throw outOfOrder(party, `needs answers again and again, more than ${ROUNDS} times`);
    const { inputRequests, requestState } = result;
    if (inputRequests === undefined && requestState === undefined)
      throw outOfOrder(party, "needs an answer and asks no question");
    if (
      requestState !== undefined &&
      !(typeof requestState === "string" && requestState.length <= STATE_CHARS)
    )
      throw outOfOrder(party, "has a state that cannot be sent back");
    const answers = inputRequests === undefined ? undefined : await answerQuestions(inputRequests, party);
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
