/**
 * `/mcp doctor`: the findings as a notice, and the report for an issue as a private file beside the log. Called by:
 * screens.ts.
 */
import { randomBytes } from "node:crypto";
import { rename, rm, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { renderDoctor, renderIssueReport, surroundingFindings, withFindings } from "../../report/doctor.ts";
import { messageOf } from "../../shared/protocol/errors.ts";
import type { McpCommandHost } from "./host.ts";

export const REPORT_FILE = "mcp-doctor.md";
/** Only the user may read it. */
const PRIVATE = 0o600;

/** Replaces the file in one step, so that a link at its place is replaced and not followed. */
async function writeReport(file: string, text: string): Promise<void> {
  const temp = `${file}.${randomBytes(6).toString("hex")}.tmp`;
  try {
    await writeFile(temp, text, { mode: PRIVATE, flag: "wx" });
    await rename(temp, file);
  } catch (error) {
    await rm(temp, { force: true });
    throw error;
  }
}

const shown = (file: string, home: string): string =>
  file.startsWith(`${home}/`) ? `~${file.slice(home.length)}` : file;

/** Answers the text of the notice. Rejects if the worker does not answer, or knows no such server. */
export async function runDoctor(
  server: string | undefined,
  host: Pick<McpCommandHost, "ask" | "surroundings">,
  columns: number,
): Promise<string> {
  const asked = await host.ask("diagnose", server === undefined ? {} : { server });
  const { agentDir, ...around } = host.surroundings();
  const home = homedir();
  const report = withFindings(asked, surroundingFindings(around, home));
  const file = join(agentDir, REPORT_FILE);
  const written = await writeReport(file, renderIssueReport(report)).then(
    () => `For an issue, without secrets: ${shown(file, home)}`,
    (error: unknown) => `The report for an issue could not be written: ${messageOf(error)}`,
  );
  return `${renderDoctor(report, columns)}\n${written}`;
}
