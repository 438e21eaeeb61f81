/**
 * Owns: changes of a configuration file on the user's word, as its owner would make them: `enabled` of one server, a
 * tool that runs unasked, servers that come or go, or the whole text. Comments and formatting stay. Chooses the file, too, and
 * owns the rule that nothing is lost: one process of ours writes at a time, and a text that another program saves between our
 * read and our write is read again. A link stays a link, and the mode is kept.
 */

import { stat } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { ThreadsError } from "../../../../src/shared/protocol/errors.ts";
import { isObject } from "../../../../src/shared/protocol/values.ts";
import { nodeFiles, reasonOf, sweepTemps, writeFileAtomic } from "../../../shared/files/file-system.ts";
import { withLock } from "../../../shared/files/lock.ts";
import { isWithin } from "../../../shared/programs/find-program.ts";
import { isProject, type ServerDefinition } from "../entry/definition.ts";
import { cloneOf } from "../env-files/scripts.ts";
import { endOf } from "../files/path-stops.ts";
import { type ConfigFacts, type ConfigSource, configSources, readText } from "../files/sources.ts";
import { editEntry } from "./entries.ts";

const OWNER_MAY_WRITE = 0o200;
/** How often a change is tried: an editor may save at the same moment once or twice. */
const ATTEMPTS = 5;
/** Milliseconds until an editor that writes in place has written the whole text. */
const RETRY_MS = 50;

/** Another program changed the file between our read and our write. */
class Overtaken extends Error {}

const unwritable = (file: string, reason: string): ThreadsError =>
  new ThreadsError("bad_config", `${file} could not be written: ${reason}.`, {
    remedy: "Make it writable, or edit it yourself.",
    data: { file },
  });

/**
 * The text of a file that is to be changed; undefined if there is no file. Throws `bad_config` if the file cannot be read, or
 * could not be written back as it is.
 */
export async function textOf(file: string): Promise<string | undefined> {
  const read = await readText(file);
  if (read.kind === "text" && read.isForeign) {
    const remedy = "Save it as UTF-8 first.";
    throw new ThreadsError("bad_config", `${file} is not UTF-8 text: it was not changed.`, {
      remedy,
      data: { file },
    });
  }
  if (read.kind !== "unreadable") return read.kind === "text" ? read.text : undefined;
  const { reason, remedy } = read;
  throw new ThreadsError("bad_config", `${file} cannot be read: ${reason}.`, { remedy, data: { file } });
}

/** Makes the new text of a file from the old one; undefined: the file stays. */
type Change = (text: string | undefined) => string | undefined;

async function changeOnce(file: string, change: Change, holds: () => Promise<boolean>): Promise<void> {
  const before = await textOf(file);
  const after = change(before);
  if (after === undefined || after === before) return;
  await writeFileAtomic(file, after, {
    beforeReplace: async () => {
      // The text is compared last, because an editor does not know the lock.
      if (!(await holds()) || (await textOf(file)) !== before) throw new Overtaken();
    },
  });
}

async function changeUnderLock(file: string, change: Change, holds: () => Promise<boolean>): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await changeOnce(file, change, holds);
    } catch (error) {
      if (!(error instanceof Overtaken)) throw error;
      if (attempt === ATTEMPTS || !(await holds())) throw new Error("other programs keep changing it");
      await sleep(RETRY_MS);
    }
  }
}

/**
 * Replaces the text of the file with the text that `change` makes of it. `change` is called again if another program
 * was faster. Throws what `change` throws, and `bad_config` if the file cannot be read or written.
 */
export async function changeConfigFile(file: string, change: Change): Promise<void> {
  const mode = await stat(file).then(
    (found) => found.mode,
    () => OWNER_MAY_WRITE,
  );
  // The file is replaced by rename, which would ignore that it is read-only.
  if ((mode & OWNER_MAY_WRITE) === 0) throw unwritable(file, "it is read-only");
  // Without a change there is no need for a lock or a new file.
  const before = await textOf(file);
  const after = change(before);
  if (after === undefined || after === before) return;
  try {
    const { target } = await nodeFiles.find(file);
    await withLock(target, { files: nodeFiles }, (holds) => changeUnderLock(file, change, holds));
    await sweepTemps(target, nodeFiles, Date.now());
  } catch (error) {
    throw error instanceof ThreadsError ? error : unwritable(file, reasonOf(error));
  }
}

/**
 * The text with the server enabled or disabled. `text`: undefined or empty for a new file. `file`: for errors. If the
 * entry has the key `disabled`, that key is changed.
 */
export function editEnabled(
  text: string | undefined,
  server: string,
  enabled: boolean,
  file = "The file",
): string {
  return editEntry(text, server, file, ({ entry, set }) => {
    const says = (word: string): boolean => Object.hasOwn(entry, word);
    if (says("disabled")) set(["disabled"], !enabled);
    if (says("enabled") || !says("disabled")) set(["enabled"], enabled);
  });
}

/**
 * The text with a rule that lets calls of this tool run unasked. `rules`: what the user's files say of the server so
 * far. They are written too if the entry has no rules of its own, because the entry then takes their place.
 */
export const editAllowed = (
  text: string | undefined,
  { server, tool, rules }: { server: string; tool: string; rules: Record<string, string> },
  file = "The file",
): string =>
  editEntry(text, server, file, ({ entry, set }) => {
    if (Object.hasOwn(entry, "approve") && isObject(entry.approve)) return set(["approve", tool], "allow");
    const others = Object.entries(rules).filter(([name]) => name !== tool);
    set(["approve"], { [tool]: "allow", ...Object.fromEntries(others) });
  });

function projectFile({ cwd }: ConfigFacts, sources: readonly ConfigSource[]): string {
  const source = sources.find(({ origin }) => origin === "project-pi");
  if (source) return source.file;
  throw new ThreadsError("bad_config", `The project in ${cwd} is not trusted, so its file is not read.`, {
    remedy: "Trust the project first.",
  });
}

/**
 * The file to change. With `project`: the project's own file, as an override. Otherwise: the last file that sets
 * `enabled`, because a change anywhere else would have no effect; or else the file that defines the server; or the
 * user's file if another program or an extension defines the server. A file that overrides only other keys stays as
 * it is, because it may be shared with others.
 */
export function fileToEdit(
  definition: ServerDefinition,
  facts: ConfigFacts,
  { project }: { project: boolean },
): string {
  const sources = configSources(facts);
  const own = (file: string): boolean => sources.some((source) => source.file === file);
  if (project) return projectFile(facts, sources);
  const { enabledIn } = definition;
  if (enabledIn !== undefined && own(enabledIn)) return enabledIn;
  if (own(definition.file)) return definition.file;
  return sources.findLast(({ origin }) => origin === "user")?.file ?? definition.file;
}

/**
 * The file that `/mcp edit` opens: the user's own, or the project's. Throws `bad_config` if the project is not
 * trusted.
 */
export function editableFile(facts: ConfigFacts, project: boolean): string {
  const sources = configSources(facts);
  if (project) return projectFile(facts, sources);
  // The last user file: `--mcp-config` takes the place of the agent folder's file.
  return sources.findLast(({ origin }) => origin === "user")?.file ?? "";
}

/**
 * Where a change of this file really goes, for every writer to ask before it writes. A clone can hold a link in the place
 * of its file: throws `bad_config` if a project's file lies outside of the project, or is one of the user's own files.
 */
export async function realFile(file: string, facts: ConfigFacts): Promise<string> {
  const sources = configSources(facts);
  if (!sources.some((source) => source.file === file && isProject(source.origin))) return file;
  const users = sources.filter(({ origin }) => !isProject(origin));
  const [real, clone, folder, own] = await Promise.all([
    endOf(file),
    cloneOf(facts),
    endOf(facts.cwd),
    Promise.all(users.map((source) => endOf(source.file))),
  ]);
  if (isWithin(real, clone ?? folder, facts.platform) && !own.includes(real)) return real;
  throw new ThreadsError(
    "bad_config",
    `${file} leads to ${real}, which is not a file of this project: nothing was written.`,
    {
      remedy: "Put a file in the place of the link, or leave out --project.",
      data: { file },
    },
  );
}

/**
 * Replaces the text `before` with the edited text. If the file holds another text by now, it stays, and that text is the answer.
 * Throws `bad_config` if the file cannot be read or written.
 */
export async function writeEdited(
  file: string,
  edited: { before: string; text: string },
): Promise<string | undefined> {
  let now: string | undefined;
  await changeConfigFile(file, (text = "") => {
    now = text === edited.before || text === edited.text ? undefined : text;
    return now === undefined ? edited.text : undefined;
  });
  return now;
}
