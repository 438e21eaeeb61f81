/** The servers of another program's parsed file as entries of our own shape. Pure. */
import { isObject } from "../../../../src/shared/protocol/is-object.ts";
import type { HostName } from "../entry/schema.ts";
import type { ConfigFacts } from "../files/files.ts";
import { compact, type Data, type Dialect } from "./dialect.ts";
import { DIALECTS } from "./dialects.ts";
import { headerVariable, translateEntry, unusableReason } from "./values.ts";

export interface HostEntry {
  /** The path of the entry's keys in the file. */
  path: string[];
  name: string;
  /** An entry of our own shape; if it is no object, what the file holds. */
  raw: unknown;
  /** Why the entry cannot be used here. */
  unusable?: string;
}

function toOwnEntry(
  dialect: Dialect,
  entry: Data,
  { root, facts }: { root: Data; facts: ConfigFacts },
): Data {
  const translated = translateEntry(dialect, dialect.convert(entry, root), facts);
  const named = dialect.headersFromEnv?.(entry);
  const variables = Object.entries(isObject(named) ? named : {});
  if (variables.length === 0) return compact(translated);
  const headers = isObject(translated.headers) ? translated.headers : {};
  const fromEnv = variables.map(([header, name]) => [header, headerVariable(name)]);
  return compact({ ...translated, headers: { ...headers, ...Object.fromEntries(fromEnv) } });
}

/**
 * The first `most` entries of a parsed file. `given`: how many the file has. Skips what is not an object of servers.
 */
export function hostEntries(
  host: HostName,
  root: unknown,
  facts: ConfigFacts,
  most: number = Number.POSITIVE_INFINITY,
): { entries: HostEntry[]; given: number } {
  if (!isObject(root)) return { entries: [], given: 0 };
  const dialect = DIALECTS[host];
  const disabled = dialect.disabled?.(root, facts);
  const written = dialect
    .groups(root, facts)
    .flatMap(({ path, servers }) =>
      Object.entries(isObject(servers) ? servers : {}).map(([name, entry]) => ({ path, name, entry })),
    );
  const entries = written.slice(0, most).map(({ path, name, entry }): HostEntry => {
    const at = { path: [...path, name], name };
    if (!isObject(entry)) return { ...at, raw: entry };
    const unusable = unusableReason(dialect, entry);
    const converted = toOwnEntry(dialect, entry, { root, facts });
    const raw = disabled?.has(name) ? { ...converted, enabled: false } : converted;
    return unusable === undefined ? { ...at, raw } : { ...at, raw, unusable };
  });
  return { entries, given: written.length };
}
