/**
 * Changes of one server that have the effect that the person wishes, or none. Owns: which file is changed, and the trial:
 * each candidate is loaded as if it were written, with all the other files, and the first one counts that has the effect.
 * So precedence, narrowing by projects and patterns need no second set of rules here. Must not: write. Called by:
 * session/panel-edits.ts. To wish for another key: `keyEdit`, or an edit of its own like those in exposures.ts.
 */

import { ThreadsError } from "../../../../src/shared/protocol/errors.ts";
import { advice } from "../../../shared/commands.ts";
import { editableFile } from "../edit/edit.ts";
import type { ServerDefinition } from "../entry/definition.ts";
import type { Settings } from "../entry/settings.ts";
import { type ConfigFacts, configSources, readText } from "../files/files.ts";
import { type LoadedConfig, loadConfig } from "../merge/merge.ts";
import type { Edit } from "./edit-type.ts";
import { type EntryIn, entriesOf } from "./entries.ts";

export type { Edit } from "./edit-type.ts";
export { type EntryIn, entriesOf, lineOf, placeOf } from "./entries.ts";
export { decideIn, exposureEdits, type Judged } from "./exposures.ts";
export { keyEdit, sourceEdit, writtenSource } from "./key.ts";

export interface Wish {
  server: string;
  project: boolean;
  /** The key that is set; the file that sets it last is tried first. */
  key: string;
  /** Edits of one file, the smallest first. `own`: the file's entry of the server, if it has one. */
  edits: (file: string, definition: ServerDefinition) => readonly Edit[];
  /** Undefined: the effect is there. Else why it is not, as an error for the person. */
  fails: (definition: ServerDefinition, settings: Settings) => ThreadsError | undefined;
}

export interface Fulfilled {
  file: string;
  edit: Edit;
}

interface Reading {
  facts: ConfigFacts;
  /** What runs: a broken file counts as it was when it was last whole. */
  applied: LoadedConfig;
}

/** Files to try, the best first. */
function candidates(
  { server, project, key }: Wish,
  { file }: ServerDefinition,
  { facts }: Reading,
  entries: readonly EntryIn[],
): string[] {
  if (project) return [editableFile(facts, true)];
  const setting = entries.filter((entry) => Object.hasOwn(entry.raw, key)).map((entry) => entry.file);
  const isOwn = configSources(facts).some((source) => source.file === file);
  return [...new Set([...setting.toReversed(), ...(isOwn ? [file] : []), editableFile(facts, false)])].filter(
    (one) => one !== "" && server !== "",
  );
}

const find = ({ servers }: LoadedConfig, name: string): ServerDefinition | undefined =>
  servers.find((server) => server.name === name);

/** The configuration as it would be with this text in the file. */
const loadedWith = ({ facts, applied }: Reading, file: string, text: string): Promise<LoadedConfig> =>
  loadConfig(facts, applied, async (path, limit) =>
    path === file ? { kind: "text", text } : readText(path, limit),
  );

/**
 * The file and the edit that fulfil the wish. Throws `unknown_server`, what a file that cannot be edited throws, or the
 * error of the wish for the best candidate.
 */
export async function fulfil(wish: Wish, reading: Reading): Promise<Fulfilled> {
  const { server, edits, fails } = wish;
  const now = await loadConfig(reading.facts, reading.applied);
  const definition = find(now, server);
  if (!definition) {
    throw new ThreadsError("unknown_server", `No server named ${server} is configured.`, {
      data: { known: [] },
    });
  }
  const entries = await entriesOf(server, reading.facts);
  let why: Error | undefined;
  for (const file of candidates(wish, definition, reading, entries)) {
    const read = await readText(file);
    const before = read.kind === "text" ? read.text : undefined;
    for (const edit of edits(file, definition)) {
      try {
        const after = await loadedWith(reading, file, edit(before));
        const changed = find(after, server);
        const mistake = newMistake(file, now, after);
        const failure = mistake ?? (changed ? fails(changed, after.settings) : unusable(file));
        if (!failure) return { file, edit };
        why ??= failure;
      } catch (error) {
        if (!(error instanceof ThreadsError)) throw error;
        why ??= error;
      }
    }
  }
  throw why ?? unusable(definition.file);
}

/** A mistake that the edit would make in the file. */
function newMistake(file: string, before: LoadedConfig, after: LoadedConfig): ThreadsError | undefined {
  const known = new Set(before.problems.map(({ key, message }) => `${key} ${message}`));
  const made = after.problems.find((one) => one.file === file && !known.has(`${one.key} ${one.message}`));
  return (
    made &&
    new ThreadsError("bad_config", `${made.key ?? "This"} in ${file} ${made.message}.`, {
      remedy: made.remedy,
      data: { file },
    })
  );
}

const unusable = (file: string): ThreadsError =>
  new ThreadsError("bad_config", `${file} cannot decide this.`, {
    remedy: advice("edit"),
    data: { file },
  });
