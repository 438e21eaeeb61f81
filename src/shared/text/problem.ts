/** A mistake in a configuration file as one line, in one form for the log and the user. Pure. */
import type { ConfigProblem } from "../protocol/status.ts";

/** File, position, key, what is wrong, what to do. */
export function describeProblem(problem: ConfigProblem): string {
  const at = problem.line === undefined ? problem.file : `${problem.file}:${problem.line}:${problem.column}`;
  const stop = problem.message.endsWith("?") ? "" : ".";
  return `${at}: ${problem.key ? `${problem.key}: ` : ""}${problem.message}${stop} ${problem.remedy}`;
}
