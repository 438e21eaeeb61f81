/**
 * Whole entries that come or go: servers in `mcpServers`, and names of programs in `imports`. Comments and formatting
 * stay. Pure.
 */
import * as jsonc from "jsonc-parser";
import { ThreadsError } from "../../../../src/shared/protocol/errors.ts";
import { isObject } from "../../../../src/shared/protocol/values.ts";
import { BOM } from "../../../../src/shared/text/reading.ts";
import { definesServer } from "../entry/override.ts";
import { OVERRIDE_KEYS } from "../entry/server-keys.ts";
import { parseJsonc } from "../files/document.ts";
import { appendItems, type Plain, removeItem, removeValue, setValue } from "./text.ts";

const NEW_OBJECT = "{}\n";

/** The root object. Throws `bad_config` if the text cannot be changed without guessing. */
function checked(text: string, file: string): Record<string, unknown> {
  const parsed = parseJsonc(text);
  if ("problem" in parsed) {
    const { message, line = 1, column = 1 } = parsed.problem;
    throw new ThreadsError("bad_config", `${file}:${line}:${column} cannot be changed: ${message}.`, {
      remedy: "Correct it first.",
      data: { file, line, column },
    });
  }
  if (isObject(parsed.document.value)) return parsed.document.value;
  throw new ThreadsError("bad_config", `${file} cannot be changed: it holds no object.`, {
    remedy: 'Write {"mcpServers": {}} first.',
  });
}

/** A text that is empty or holds only comments gets an empty object at its end. */
function withObject(text: string): string {
  const scanner = jsonc.createScanner(text, true);
  if (scanner.scan() !== jsonc.SyntaxKind.EOF) return text;
  const eol = text.includes("\r\n") ? "\r\n" : "\n";
  if (text.trim() === "") return NEW_OBJECT;
  return text + (text.endsWith("\n") ? "" : eol) + NEW_OBJECT.replace("\n", eol);
}

/** The text without its BOM and with a root object. Throws `bad_config` if it cannot be changed without guessing. */
function rooted(
  given: string | undefined,
  file: string,
): { bom: string; text: string; root: Record<string, unknown> } {
  const bom = given?.startsWith(BOM) ? BOM : "";
  const text = withObject((given ?? "").slice(bom.length));
  return { bom, text, root: checked(text, file) };
}

/** Both spellings; the one that is read last, and so counts, comes first. */
const SERVER_KEYS = ["mcp-servers", "mcpServers"] as const;

interface EntryAt {
  bom: string;
  /** The text without the BOM, with a root object. */
  text: string;
  path: [key: string, server: string];
  /** Empty if there is no such entry yet. */
  entry: Record<string, unknown>;
}

/** Where the server's entry is, or is to be. Throws `bad_config` if the text cannot be changed without guessing. */
function entryAt(given: string | undefined, server: string, file: string): EntryAt {
  const { bom, text, root } = rooted(given, file);
  const holds = (key: string): boolean => isObject(root[key]) && Object.hasOwn(root[key], server);
  const key = SERVER_KEYS.find(holds) ?? (isObject(root["mcp-servers"]) ? "mcp-servers" : "mcpServers");
  for (const path of [[key], [key, server]]) {
    const value = path.reduce<unknown>(
      (at, name) => (isObject(at) && Object.hasOwn(at, name) ? at[name] : undefined),
      root,
    );
    if (value !== undefined && !isObject(value)) {
      throw new ThreadsError("bad_config", `${file} cannot be changed: ${path.join(".")} is not an object.`, {
        remedy: "Correct it first.",
      });
    }
  }
  const servers = root[key] as Record<string, Record<string, unknown> | undefined> | undefined;
  const entry = (servers !== undefined && Object.hasOwn(servers, server) && servers[server]) || {};
  return { bom, text, path: [key, server], entry };
}

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

/** Whether it was to run is no rule for the server that a person adds. */
const KEPT = [...OVERRIDE_KEYS, "includeTools", "tools"].filter(
  (key) => key !== "enabled" && key !== "disabled",
);

/** The rules of an entry that only changes the server of another file: they are for the name, whoever defines it. */
const rulesOf = (before: Record<string, unknown>): { [key: string]: Plain } =>
  definesServer(before)
    ? {}
    : Object.fromEntries(
        KEPT.filter((key) => Object.hasOwn(before, key)).map((key) => [key, before[key] as Plain]),
      );

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
    after = at.bom + setValue(at.text, at.path, { ...rulesOf(at.entry), ...entry });
  }
  return after ?? "";
}

/** The text without the server's entries, under both spellings of `mcpServers`. */
export function editRemoved(text: string | undefined, server: string, file = "The file"): string {
  const { bom, text: before } = rooted(text, file);
  return bom + SERVER_KEYS.reduce((after, key) => removeValue(after, [key, server]), before);
}

/** The text with this setting. Throws `bad_config` if `settings` is no object. */
export function editSetting(text: string | undefined, key: string, value: Plain, file = "The file"): string {
  const { bom, text: before, root } = rooted(text, file);
  if (root.settings !== undefined && !isObject(root.settings)) {
    throw new ThreadsError("bad_config", `${file} cannot be changed: settings is not an object.`, {
      remedy: "Correct it first.",
      data: { file },
    });
  }
  return bom + setValue(before, ["settings", key], value);
}

/** The text whose `imports` names these programs, too. Throws `bad_config` if `imports` is no list. */
export function editImports(text: string | undefined, hosts: readonly string[], file = "The file"): string {
  const { bom, text: before, root } = rooted(text, file);
  const { imports = [] } = root;
  if (!Array.isArray(imports)) {
    throw new ThreadsError("bad_config", `${file} cannot be changed: imports is not a list.`, {
      remedy: "Correct it first.",
      data: { file },
    });
  }
  const added = hosts.filter((host) => !imports.includes(host));
  if (added.length === 0) return text ?? bom + before;
  if (imports.length === 0) return bom + setValue(before, ["imports"], added);
  return bom + appendItems(before, ["imports"], added);
}

type Path = readonly [...string[], string];

export interface EntryEdit {
  /** The entry before the edit; empty if there is none. */
  entry: Record<string, unknown>;
  /** Paths are below the entry. */
  set(path: Path, value: Plain): void;
  remove(path: Path): void;
  /** Adds items to a list that exists. */
  append(path: Path, items: readonly Plain[]): void;
  /** Takes an item out of a list. Later items move up. */
  removeItem(path: Path, at: number): void;
}

/** The text after `change`. `text`: undefined for a new file. Throws `bad_config` if it cannot be changed without guessing. */
export function editEntry(
  text: string | undefined,
  server: string,
  file: string,
  change: (edit: EntryEdit) => void,
): string {
  const { bom, text: before, path: place, entry } = entryAt(text, server, file);
  let after = before;
  const below = (path: Path): [...string[], string] => [...place, ...path];
  change({
    entry,
    set: (path, value) => {
      after = setValue(after, below(path), value);
    },
    remove: (path) => {
      after = removeValue(after, below(path));
    },
    append: (path, items) => {
      after = appendItems(after, below(path), items);
    },
    removeItem: (path, at) => {
      after = removeItem(after, below(path), at);
    },
  });
  // An override without a key would be a mistake.
  const isEmpty =
    Object.keys(entry).length > 0 && Object.keys(entryAt(after, server, file).entry).length === 0;
  return bom + (isEmpty ? removeValue(after, place) : after);
}
