/** What our own files say of one server, and where a rule stands in them. */

import { isObject } from "../../../../src/shared/protocol/is-object.ts";
import type { RulePlace } from "../../../../src/shared/protocol/panel.ts";
import type { ServerDefinition } from "../entry/definition.ts";
import { type ConfigFacts, configSources, parseJsonc, readText, withoutBom } from "../files/files.ts";

export interface EntryIn {
  file: string;
  raw: Record<string, unknown>;
  /** Line of the value at this path below the entry; of the entry without a path. */
  line: (path?: readonly string[]) => number;
}

function entryIn(file: string, text: string, server: string): EntryIn[] {
  const parsed = parseJsonc(withoutBom(text));
  if ("problem" in parsed || !isObject(parsed.document.value)) return [];
  const { document } = parsed;
  const root = document.value as Record<string, unknown>;
  return ["mcpServers", "mcp-servers"].flatMap((key) => {
    const servers = root[key];
    const raw = isObject(servers) && Object.hasOwn(servers, server) ? servers[server] : undefined;
    return isObject(raw)
      ? [{ file, raw, line: (path = []) => document.at([key, server, ...path]).line }]
      : [];
  });
}

/** The server's entries and overrides, lowest precedence first. */
export async function entriesOf(server: string, facts: ConfigFacts): Promise<EntryIn[]> {
  const files = configSources(facts).map(({ file }) => file);
  const texts = await Promise.all(files.map((file) => readText(file)));
  return files.flatMap((file, i) => {
    const read = texts[i];
    return read?.kind === "text" ? entryIn(file, read.text, server) : [];
  });
}

/** A key of an entry, and a pattern within its list or object. */
export interface Rule {
  key: string;
  pattern?: string | undefined;
}

/** The path of the pattern below the key; undefined if the entry does not hold it. */
function pathOf(raw: Record<string, unknown>, { key, pattern }: Rule): string[] | undefined {
  if (!Object.hasOwn(raw, key)) return undefined;
  const value = raw[key];
  if (pattern === undefined) return [key];
  if (Array.isArray(value))
    return value.includes(pattern) ? [key, String(value.indexOf(pattern))] : undefined;
  return isObject(value) && Object.hasOwn(value, pattern) ? [key, pattern] : undefined;
}

/** Where the rule stands: in the last of our files that has it, or else in the file that defines the server. */
export function placeOf(rule: Rule, entries: readonly EntryIn[], definedIn: string): RulePlace {
  const text = rule.pattern === undefined ? rule.key : `${rule.key} ${JSON.stringify(rule.pattern)}`;
  for (const { file, raw, line } of entries.toReversed()) {
    const path = pathOf(raw, rule);
    if (path) return { rule: text, file, line: line(path) };
  }
  return { rule: text, file: rule.key === "settings.directTools" ? "settings" : definedIn };
}

/**
 * The file of the definition that has the value at this path below its entry, with the value's line if it can be told: a
 * file that overrides the entry comes before the one that defines it.
 */
export async function lineOf(
  { name, file, overrides }: Pick<ServerDefinition, "name" | "file" | "overrides">,
  path: readonly string[],
): Promise<string> {
  for (const one of [...overrides.toReversed(), file]) {
    const read = await readText(one);
    for (const { raw, line } of read.kind === "text" ? entryIn(one, read.text, name) : []) {
      const has = path.reduce<unknown>((at, key) => (isObject(at) ? at[key] : undefined), raw) !== undefined;
      if (has) return `${one}:${line(path)}`;
    }
  }
  return file;
}
