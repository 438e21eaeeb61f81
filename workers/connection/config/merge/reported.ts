/**
 * How many mistakes of one file are told. A file of another person, or of a program, can hold thousands, and each
 * would be a line on the screen and in the log. Nothing is lost silently: the others are counted. Pure.
 */
import { LIMITS } from "../../../../src/shared/protocol/limits.ts";
import type { ConfigProblem } from "../../../../src/shared/protocol/status.ts";

/** Of one file: errors before warnings, since they left something out; what is told keeps its order. */
function ofFile(file: string, problems: readonly ConfigProblem[], most: number): ConfigProblem[] {
  if (problems.length <= most) return [...problems];
  const errors = problems.filter(({ severity }) => severity === "error");
  const warnings = problems.filter(({ severity }) => severity === "warning");
  const reported = new Set([...errors, ...warnings].slice(0, most));
  const count = problems.length - reported.size;
  const more: ConfigProblem = {
    severity: errors.length > most ? "error" : "warning",
    file,
    message: `and ${count.toLocaleString("en")} more ${count === 1 ? "mistake" : "mistakes"}`,
    remedy: "Correct these first; the others are told then.",
  };
  return [...problems.filter((problem) => reported.has(problem)), more];
}

/** At most so many problems of each file, in the order of the files, and one that counts the others. */
export function boundProblems(
  problems: readonly ConfigProblem[],
  most: number = LIMITS.problemsPerFile,
): ConfigProblem[] {
  const byFile = Map.groupBy(problems, ({ file }) => file);
  return [...byFile].flatMap(([file, its]) => ofFile(file, its, most));
}
