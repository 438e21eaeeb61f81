/** `doctor` and `stats`: reports that the worker makes and src/report words. */
import { renderDoctor, renderIssueReport } from "../../report/doctor.ts";
import { renderStats } from "../../report/stats.ts";
import { EXIT } from "../console/console.ts";
import type { Command } from "./context.ts";
import { asked } from "./known.ts";

/** Lines in a pipe are as wide as a usual terminal. */
const COLUMNS = 100;

export const doctor: Command = async (context) => {
  const { console, options, signal } = context;
  const { session, server } = await asked(context, context.arguments[0], () => false);
  const report = await session.runtime.ask("diagnose", server === undefined ? {} : { server }, signal);
  if (console.json) console.document(report);
  else {
    const text = options.report
      ? renderIssueReport(report)
      : renderDoctor(report, console.columns ?? COLUMNS);
    console.lines([text.trimEnd()]);
  }
  return report.findings.some(({ severity }) => severity === "error") ? EXIT.toolError : EXIT.ok;
};

export const stats: Command = async (context) => {
  const { console } = context;
  const session = await context.session();
  await session.planned();
  const report = await session.runtime.ask("stats", {});
  if (console.json) console.document(report);
  else console.lines([renderStats(report, console.columns ?? COLUMNS)]);
  return EXIT.ok;
};
