/**
 * Explains why a server that the user named does not exist although some file names it: the server waits for consent or
 * was refused, its entry is wrong, or a whole file is wrong. Pure.
 */
import { ThreadsError } from "../../../src/shared/protocol/errors.ts";
import { describeProblem } from "../../../src/shared/text/problem.ts";
import type { ConfigState } from "../config/config.ts";

/** Undefined if nothing explains the absence. */
export function explainAbsent(
  name: string,
  { questions, refused, problems }: Pick<ConfigState, "questions" | "refused" | "problems">,
): ThreadsError | undefined {
  const because = (message: string, remedy: string): ThreadsError =>
    new ThreadsError("unknown_server", message, { remedy, data: { known: [] } });
  if (questions.some(({ server }) => server === name)) {
    return because(`The server ${name} waits for your consent.`, "/mcp trust asks for it.");
  }
  const refusal = refused.find((one) => one.name === name);
  if (refusal) return because(`The server ${name} is not started: ${refusal.reason}.`, "/mcp says more.");
  const errors = problems.filter(({ severity }) => severity === "error");
  const own = errors.find(({ key }) => /^mcp-?servers\.(.*)$/i.exec(key ?? "")?.[1] === name);
  if (own) return because(`The server ${name} cannot be used.`, describeProblem(own));
  const [broken] = errors.filter(({ key }) => key === undefined);
  return (
    broken &&
    because(`No server named ${name} is configured in a file that can be read.`, describeProblem(broken))
  );
}
