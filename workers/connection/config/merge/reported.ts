/**
 * Limits how many mistakes of one file are reported. A file of another person or program can hold thousands, and each
 * would be a line on the screen and in the log. The others are counted, so that nothing is lost silently. Pure.
 */
import { LIMITS } from "../../../../src/shared/protocol/limits.ts";
import type { ConfigProblem } from "../../../../src/shared/protocol/status.ts";

/** The problems of one file. Errors count before warnings, because they leave something out; the order stays. */
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

/** At most `most` problems of each file, in the order of the files, and one more that counts the others. */
export function boundProblems(
  problems: readonly ConfigProblem[],
  most: number = LIMITS.problemsPerFile,
): ConfigProblem[] {
  const byFile = Map.groupBy(problems, ({ file }) => file);
  return [...byFile].flatMap(([file, its]) => ofFile(file, its, most));
}
