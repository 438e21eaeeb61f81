/**
 * The part of an envFile to which the user has to agree: the names that it sets, and the values of the names that
 * decide what runs. Other values may change without a question, because they are the server's data. Pure.
 */
import { createHash } from "node:crypto";
import { canonical } from "../../../shared/json/canonical.ts";
import type { ServerDefinition } from "../entry/definition.ts";
import { decidesWhatRuns } from "./deciding-variables.ts";

type Entries = Readonly<Record<string, string>>;

export interface EnvContent {
  /** Sorted. */
  names: string[];
  /** Values of the names that decide what runs. */
  deciding: Record<string, string>;
  /** Hex SHA-256 of names and deciding values: contents with the same hash need no new answer. */
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
  const hash = createHash("sha256").update(canonical({ names, deciding })).digest("hex");
  return { names, deciding, hash, chars: names.reduce((sum, name) => sum + name.length, 0) };
}

/** The entries without those that decide what runs, and the names of those. */
export function withoutDeciding(entries: Entries): { kept: Record<string, string>; dropped: string[] } {
  const dropped = Object.keys(entries).filter(decidesWhatRuns).sort();
  const kept = Object.entries(entries).filter(([name]) => !decidesWhatRuns(name));
  return { kept: Object.fromEntries(kept), dropped };
}

/** Whether the user's own files define the server, even if a project enabled it. */
export const isOwn = ({ project, enabledByProject }: ServerDefinition): boolean =>
  !project || enabledByProject !== undefined;
