/**
 * Explains why a server that the user named does not exist although some file names it: the server waits for consent or
 * was refused, its entry is wrong, or a whole file is wrong. Pure.
 */

import { ThreadsError } from "../../../src/shared/protocol/errors.ts";
import { describeProblem } from "../../../src/shared/text/failure.ts";
import { advice } from "../../shared/commands.ts";
import type { ConfigState } from "../config/config.ts";

/** `mcpServers.name.command` -> `name.command`; undefined for a key that is in no server's entry. */
const belowServers = (key: string | undefined): string | undefined =>
  /^mcp-?servers\.(.*)$/i.exec(key ?? "")?.[1];

/** Undefined if nothing explains the absence. */
export function explainAbsent(
  name: string,
  { questions, refused, problems }: Pick<ConfigState, "questions" | "refused" | "problems">,
): ThreadsError | undefined {
  const because = (message: string, remedy: string): ThreadsError =>
    new ThreadsError("unknown_server", message, { remedy, data: { known: [] } });
  if (questions.some(({ server }) => server === name)) {
    return because(`The server ${name} waits for your consent.`, advice("consent"));
  }
  const refusal = refused.find((one) => one.name === name);
  if (refusal) return because(`The server ${name} is not started: ${refusal.reason}.`, advice("more"));
  const errors = problems.filter(({ severity }) => severity === "error");
  const own =
    errors.find(({ key }) => belowServers(key) === name) ??
    // A name may hold dots, so the mistake of the whole entry comes first.
    errors.find(({ key }) => belowServers(key)?.startsWith(`${name}.`));
  if (own) return because(`The server ${name} cannot be used.`, describeProblem(own));
  const [broken] = errors.filter(({ key }) => key === undefined);
  return (
    broken &&
    because(`No server named ${name} is configured in a file that can be read.`, describeProblem(broken))
  );
}
