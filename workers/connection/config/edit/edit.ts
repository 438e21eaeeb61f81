/**
 * Changes a configuration file as its owner would: `enabled` of one server, everything else as it was,
 * comments and formatting too. Which file that is, is here as well.
 */
import * as jsonc from "jsonc-parser";
import { ThreadsError } from "../../../../src/shared/protocol/errors.ts";
import { isObject } from "../../../../src/shared/protocol/is-object.ts";
import type { ServerDefinition } from "../entry/definition.ts";
import { type ConfigFacts, type ConfigSource, configSources, parseJsonc } from "../files/files.ts";
import { changeConfigFile } from "./change-file.ts";
import { setValue } from "./insert.ts";

export { textOf } from "./change-file.ts";

const BOM = "\uFEFF";
const NEW_OBJECT = "{}\n";

/** Throws `bad_config` where the text is not one that can be changed without guessing. */
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

/** A text of nothing but comments gets an object behind them. */
function withObject(text: string): string {
  const scanner = jsonc.createScanner(text, true);
  if (scanner.scan() !== jsonc.SyntaxKind.EOF) return text;
  const eol = text.includes("\r\n") ? "\r\n" : "\n";
  if (text.trim() === "") return NEW_OBJECT;
  return text + (text.endsWith("\n") ? "" : eol) + NEW_OBJECT.replace("\n", eol);
}

/** Of two spellings the one that is read last, and so counts. */
const SERVER_KEYS = ["mcp-servers", "mcpServers"] as const;

/**
 * The text with the server switched on or off. `text`: undefined or empty for a new file. Where the entry
 * says `disabled`, that is what is changed. `file`: for errors.
 */
export function editEnabled(
  text: string | undefined,
  server: string,
  enabled: boolean,
  file = "The file",
): string {
  const bom = text?.startsWith(BOM) ? BOM : "";
  const before = withObject((text ?? "").slice(bom.length));
  const root = checked(before, file);
  const holds = (key: string): boolean => isObject(root[key]) && Object.hasOwn(root[key], server);
  const key = SERVER_KEYS.find(holds) ?? (isObject(root["mcp-servers"]) ? "mcp-servers" : "mcpServers");
  for (const path of [[key], [key, server]]) {
    const value = path.reduce<unknown>(
      (at, name) => (isObject(at) && Object.hasOwn(at, name) ? at[name] : undefined),
      root,
    );
    if (value !== undefined && !isObject(value)) {
      throw new ThreadsError("bad_config", `${file} cannot be changed: ${path.join(".")} is no object.`, {
        remedy: "Correct it first.",
      });
    }
  }
  const servers = root[key] as Record<string, Record<string, unknown> | undefined> | undefined;
  const entry = (servers !== undefined && Object.hasOwn(servers, server) && servers[server]) || {};
  const says = (word: string): boolean => Object.hasOwn(entry, word);
  const path = [key, server];
  let after = before;
  if (says("disabled")) after = setValue(after, [...path, "disabled"], !enabled);
  if (says("enabled") || !says("disabled")) after = setValue(after, [...path, "enabled"], enabled);
  return bom + after;
}

function projectFile({ cwd }: ConfigFacts, sources: readonly ConfigSource[]): string {
  const source = sources.find(({ origin }) => origin === "project-pi");
  if (source) return source.file;
  throw new ThreadsError("bad_config", `The project in ${cwd} is not trusted, so its file is not read.`, {
    remedy: "Trust the project first.",
  });
}

/**
 * The file to change: with `project` the project's own, as an override; else the one that defines the
 * server, or the user's where that is another program's file or an extension. A file further up that says
 * `enabled` itself must be the one that is changed, or nothing would happen; one that overrides only other
 * keys is left alone, since it may be shared with others.
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

/** What `/mcp edit` opens: the user's own file, or the project's. Throws `bad_config` where that is not read. */
export function editableFile(facts: ConfigFacts, project: boolean): string {
  const sources = configSources(facts);
  if (project) return projectFile(facts, sources);
  // The last one: `--mcp-config` stands in place of the agent folder's.
  return sources.findLast(({ origin }) => origin === "user")?.file ?? "";
}

/** Throws `bad_config` where the file cannot be read, changed or written. */
export const writeEnabled = (file: string, server: string, enabled: boolean): Promise<void> =>
  changeConfigFile(file, (text) => editEnabled(text, server, enabled, file));

/** Replaces the text that the user has edited, if it is still that one. Throws `bad_config`. */
export const writeEdited = (file: string, edited: { before: string; text: string }): Promise<void> =>
  changeConfigFile(file, (text = "") => {
    if (text === edited.before) return edited.text;
    throw new ThreadsError("bad_config", `${file} has changed meanwhile; nothing was written.`, {
      remedy: "Edit it again.",
      data: { file },
    });
  });
