/**
 * Owns: edits of `.pi/mcp.json` at the two ends of a session, which no watcher sees. A model may have written the
 * file between the start of the session and the worker's first read, or as its last act.
 */
import { stat } from "node:fs/promises";
import { fileStamp } from "../../../../src/shared/protocol/file-stamp.ts";
import type { SessionFacts } from "../../../../src/shared/protocol/session.ts";
import { type ConfigFacts, projectPiFile, readText } from "../files/sources.ts";
import { type LoadedConfig, loadConfig } from "../merge/merge.ts";

/**
 * Whether the file is another than at the start of the session. Call it after the first read: an edit during that
 * read counts.
 */
export async function changedSinceStart(
  { cwd, projectFile }: SessionFacts,
  { unanswered }: Pick<LoadedConfig, "unanswered">,
): Promise<boolean> {
  if (projectFile === undefined) return false;
  // What it will say when it answers, nobody has seen.
  if (unanswered.has(projectPiFile(cwd))) return true;
  const found = await stat(projectPiFile(cwd)).catch(() => undefined);
  return fileStamp(found) !== projectFile;
}

/**
 * Remembers an edit that the watcher has not reported yet, so that the next start asks about it. `last`: what the
 * watcher last read. `consents` remembers what nobody has agreed to when it decides.
 */
export async function rememberLastEdit(
  session: SessionFacts,
  { facts, last }: { facts: ConfigFacts; last: LoadedConfig },
  consents: { envFiles: readonly string[]; decide(servers: LoadedConfig["servers"]): Promise<unknown> },
): Promise<void> {
  if (!session.projectTrusted) return;
  const file = projectPiFile(session.cwd);
  const read = await readText(file);
  const isEdited = read.kind === "text" && read.text !== last.texts.get(file);
  if (!isEdited && consents.envFiles.length === 0) return;
  await consents.decide((await loadConfig(facts, last)).servers);
}
