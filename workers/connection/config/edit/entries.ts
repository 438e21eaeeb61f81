/**
 * Whole entries that come or go: servers in `mcpServers`, and names of programs in `imports`. Comments and formatting
 * stay. Pure.
 */
import { ThreadsError } from "../../../../src/shared/protocol/errors.ts";
import { isObject } from "../../../../src/shared/protocol/is-object.ts";
import { entryAt, rooted, SERVER_KEYS } from "./entry-at.ts";
import { appendItems, type Plain, setValue } from "./insert.ts";
import { removeValue } from "./remove.ts";

export interface NewEntry {
  name: string;
  /** As it is to stand in the file. */
  entry: { readonly [key: string]: Plain };
}

const exists = (name: string, file: string): ThreadsError =>
  new ThreadsError("bad_config", `${file} has a server named ${name} already.`, {
    remedy: "Choose another name, or replace it with --replace.",
    data: { file },
  });

/** Names of the entries in a text: servers and overrides, also wrong ones. None if the text cannot be read. */
export function namesIn(text: string | undefined): Set<string> {
  const names = new Set<string>();
  try {
    const { root } = rooted(text, "");
    for (const key of SERVER_KEYS)
      if (isObject(root[key])) for (const name of Object.keys(root[key])) names.add(name);
  } catch (error) {
    if (!(error instanceof ThreadsError)) throw error;
  }
  return names;
}

/** The text with these entries. Throws `bad_config` if a name is taken and may not be replaced. */
export function editAdded(
  text: string | undefined,
  entries: readonly NewEntry[],
  { file = "The file", replace = false }: { file?: string; replace?: boolean } = {},
): string {
  let after = text;
  const before = namesIn(text);
  for (const { name, entry } of entries) {
    if (!replace && before.has(name)) throw exists(name, file);
    const at = entryAt(after, name, file);
    after = at.bom + setValue(at.text, at.path, entry);
  }
  return after ?? "";
}

/** The text without the server's entries, under both spellings of `mcpServers`. */
export function editRemoved(text: string | undefined, server: string, file = "The file"): string {
  const { bom, text: before } = rooted(text, file);
  return bom + SERVER_KEYS.reduce((after, key) => removeValue(after, [key, server]), before);
}

/** The text whose `imports` names these programs, too. Throws `bad_config` if `imports` is no list. */
export function editImports(text: string | undefined, hosts: readonly string[], file = "The file"): string {
  const { bom, text: before, root } = rooted(text, file);
  const { imports = [] } = root;
  if (!Array.isArray(imports)) {
    throw new ThreadsError("bad_config", `${file} cannot be changed: imports is no list.`, {
      remedy: "Correct it first.",
      data: { file },
    });
  }
  const added = hosts.filter((host) => !imports.includes(host));
  if (added.length === 0) return text ?? bom + before;
  if (imports.length === 0) return bom + setValue(before, ["imports"], added);
  return bom + appendItems(before, ["imports"], added);
}
