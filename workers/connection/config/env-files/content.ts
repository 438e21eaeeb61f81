/**
 * What an envFile brings to a server, as far as somebody has to agree to it: the names that it sets, and the values
 * of those that decide what runs. Other values may change without a question: they are the server's data. Pure.
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
  /** Hex SHA-256 of both: equal for contents that need no other answer. */
  hash: string;
  /** At least as many take a text of both. */
  chars: number;
}

/** What was found where a server's envFile should be. `changedAtMs`: when it was written, where that is known. */
export type EnvSeen = { content: EnvContent; changedAtMs?: number } | { reason: string };

export function contentOf(entries: Entries): EnvContent {
  const names = Object.keys(entries).sort();
  const values = Object.entries(entries).filter(([name]) => decidesWhatRuns(name));
  const deciding = Object.fromEntries(values);
  const hash = createHash("sha256").update(canonical({ names, deciding })).digest("hex");
  return { names, deciding, hash, chars: names.reduce((sum, name) => sum + name.length, 0) };
}

/** Takes out the entries that decide what runs, and answers their names. */
export function withoutDeciding(entries: Entries): { kept: Record<string, string>; dropped: string[] } {
  const dropped = Object.keys(entries).filter(decidesWhatRuns).sort();
  const kept = Object.entries(entries).filter(([name]) => !decidesWhatRuns(name));
  return { kept: Object.fromEntries(kept), dropped };
}

/** The user's own files define it, also where a project only switched it on. */
export const isOwn = ({ project, enabledByProject }: ServerDefinition): boolean =>
  !project || enabledByProject !== undefined;
