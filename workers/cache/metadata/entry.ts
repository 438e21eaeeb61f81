/**
 * One entry of the metadata cache: what a server said about itself under one definition, and for how long
 * that counts. Pure. Other adapters write entries too, so whatever is read is checked.
 */

import { isObject } from "../../../src/shared/protocol/is-object.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { type CachedTool, normalizeTools, TOOL_FIELDS } from "../../shared/listed/tool.ts";
import type { CacheEntry } from "../../shared/tasks.ts";

/** An entry as it stands in the file, with whatever others have put into it. */
export type StoredEntry = Record<string, unknown>;

const listOf = (value: unknown): unknown[] | undefined => (Array.isArray(value) ? value : undefined);

const timeOf = (value: unknown): number | undefined =>
  typeof value === "number" && Number.isFinite(value) ? value : undefined;

/** Younger than seven days, and not of a future that a clock can have been set back from. */
export function isFresh(entry: StoredEntry, nowMs: number): boolean {
  const cachedAt = timeOf(entry.cachedAt);
  if (cachedAt === undefined) return false;
  return cachedAt > nowMs - LIMITS.cacheEntryMs && cachedAt <= nowMs + LIMITS.clockSkewMs;
}

/** The entry if it is one, is of that definition, and counts now. */
export function readEntry(stored: unknown, configHash: string, nowMs: number): CacheEntry | undefined {
  if (!isObject(stored) || stored.configHash !== configHash || !isFresh(stored, nowMs)) return undefined;
  if (!Array.isArray(stored.tools)) return undefined;
  const tools = normalizeTools(stored.tools);
  // A server without tools is one thing, tools that nobody can read are another.
  if (tools.length === 0 && stored.tools.length > 0) return undefined;
  const resources = listOf(stored.resources);
  const resourceTemplates = listOf(stored.resourceTemplates);
  const prompts = listOf(stored.prompts);
  return {
    configHash,
    tools,
    ...(resources ? { resources } : {}),
    ...(resourceTemplates ? { resourceTemplates } : {}),
    ...(prompts ? { prompts } : {}),
    ...(typeof stored.instructions === "string" ? { instructions: stored.instructions } : {}),
    cachedAt: stored.cachedAt as number,
  };
}

/** When the entry was last of use; undefined where it does not say, or says a time to come. */
function lastUsed(entry: StoredEntry, nowMs: number): number | undefined {
  const times = [timeOf(entry.cachedAt), timeOf(entry.usedAt)].filter((time) => time !== undefined);
  const latest = Math.max(...times);
  return Number.isFinite(latest) && latest <= nowMs + LIMITS.clockSkewMs ? latest : undefined;
}

/** Whether it is time to write down that the entry was used: not at every start. */
export const isUseDue = (entry: StoredEntry, nowMs: number): boolean =>
  nowMs - (lastUsed(entry, nowMs) ?? 0) > LIMITS.usedEveryMs;

/** Whether a server that lists what it listed before is a reason to write: not at every start. */
export const isListingDue = (entry: StoredEntry, nowMs: number): boolean =>
  !isFresh(entry, nowMs) || nowMs - (entry.cachedAt as number) > LIMITS.usedEveryMs;

/** Whether nobody has used the entry for thirty days. What bears no time is not ours to judge. */
export function isUnused(entry: unknown, nowMs: number): boolean {
  const used = isObject(entry) ? lastUsed(entry, nowMs) : undefined;
  return used !== undefined && nowMs - used > LIMITS.unusedMs;
}

/** The tools of `fresh`; each keeps the fields that are not ours from the stored tool of its name. */
function mergeTools(fresh: readonly CachedTool[], stored: unknown): Record<string, unknown>[] {
  const before = new Map((listOf(stored) ?? []).filter(isObject).map((tool) => [tool.name, tool]));
  return fresh.map((tool) => {
    const foreign = Object.entries(before.get(tool.name) ?? {}).filter(([key]) => !TOOL_FIELDS.includes(key));
    return { ...tool, ...Object.fromEntries(foreign) };
  });
}

const OWN_FIELDS = [
  ...["configHash", "tools", "resources", "resourceTemplates", "prompts", "instructions"],
  ...["cachedAt", "usedAt"],
];

/** What the file shall hold: the new entry, with what others have put into the stored one of its definition. */
export function mergeEntry(fresh: CacheEntry, stored: StoredEntry): StoredEntry {
  const foreign = Object.entries(stored).filter(([key]) => !OWN_FIELDS.includes(key));
  const { tools, resources, resourceTemplates, prompts, ...rest } = fresh;
  const keptTemplates = resourceTemplates ?? listOf(stored.resourceTemplates);
  const keptPrompts = prompts ?? listOf(stored.prompts);
  return {
    ...Object.fromEntries(foreign),
    ...rest,
    tools: mergeTools(tools, stored.tools),
    // Not optional in the format.
    resources: resources ?? listOf(stored.resources) ?? [],
    ...(keptTemplates ? { resourceTemplates: keptTemplates } : {}),
    ...(keptPrompts ? { prompts: keptPrompts } : {}),
  };
}

/** Whether both say the same of a server, whenever they were made. */
export function sameContent(a: StoredEntry, b: StoredEntry): boolean {
  const content = (entry: StoredEntry): string =>
    JSON.stringify(OWN_FIELDS.slice(0, -2).map((field) => entry[field] ?? null));
  return content(a) === content(b);
}
