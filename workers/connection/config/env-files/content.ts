/**
 * The part of an envFile to which the user has to agree: the names that it sets, and the values of all names that are
 * not known for data. Data may change without a question. Pure.
 */
import { createHash } from "node:crypto";
import { canonical } from "../../../shared/json.ts";
import type { ServerDefinition } from "../entry/definition.ts";
import { decidesWhatRuns, isData } from "./deciding-variables.ts";

type Entries = Readonly<Record<string, string>>;

export interface EnvContent {
  /** Sorted. */
  names: string[];
  /** Values of the names that decide what runs. */
  deciding: Record<string, string>;
  /** Hex SHA-256 of the names and of the values that are no data: contents with the same hash need no new answer. */
  hash: string;
  /** A lower bound for the characters of a text with the names and deciding values. */
  chars: number;
}

/** What was found at the path of a server's envFile. `changedAtMs`: when the file was written, if that is known. */
export type EnvSeen = { content: EnvContent; changedAtMs?: number } | { reason: string };

export function contentOf(entries: Entries): EnvContent {
  const names = Object.keys(entries).sort();
  const values = Object.entries(entries).filter(([name]) => decidesWhatRuns(name));
  const deciding = Object.fromEntries(values);
  const bound = Object.fromEntries(Object.entries(entries).filter(([name, value]) => !isData(name, value)));
  const hash = createHash("sha256")
    .update(canonical({ names, deciding: bound }))
    .digest("hex");
  return { names, deciding, hash, chars: names.reduce((sum, name) => sum + name.length, 0) };
}

/**
 * What the user's own server gets of a file in the session's folder: data, and the names that its entry lists. `dropped`:
 * the other names.
 */
export function forOwnServer(
  entries: Entries,
  listed: readonly string[] = [],
): { kept: Record<string, string>; dropped: string[] } {
  const isKept = ([name, value]: [string, string]): boolean => listed.includes(name) || isData(name, value);
  const kept = Object.fromEntries(Object.entries(entries).filter(isKept));
  const dropped = Object.keys(entries).filter((name) => !Object.hasOwn(kept, name));
  return { kept, dropped: dropped.sort() };
}

/** Whether the user's own files define the server, even if a project enabled it. */
export const isOwn = ({ project, enabledByProject }: ServerDefinition): boolean =>
  !project || enabledByProject !== undefined;
