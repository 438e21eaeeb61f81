/**
 * One entry of the metadata cache: what a server said about itself under one definition, and how long the entry counts.
 * Other adapters write entries too, so everything that is read is checked. Pure.
 */

import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { isObject } from "../../../src/shared/protocol/values.ts";
import { known } from "../../shared/json.ts";
import {
  type CachedTool,
  normalizeTools,
  StoredTools,
  TOOL_FIELDS,
  type ToolList,
} from "../../shared/listed.ts";
import { isAppOnly } from "../../shared/signs.ts";
import type { CacheEntry, KnownEntry, SlotChanges, StoredProtocol } from "../../shared/tasks.ts";

/** An entry as it stands in the file, with the fields of other adapters. */
type StoredEntry = Record<string, unknown>;

const listOf = (value: unknown): unknown[] | undefined => (Array.isArray(value) ? value : undefined);

const timeOf = (value: unknown): number | undefined =>
  typeof value === "number" && Number.isFinite(value) ? value : undefined;

const OFFERS = 20;
const WORD_CHARS = 50;

const isWord = (value: unknown): value is string => typeof value === "string" && value.length <= WORD_CHARS;

function protocolOf(value: unknown, nowMs: number): StoredProtocol | undefined {
  if (!isObject(value) || !isWord(value.version)) return undefined;
  const freshUntil = timeOf(value.freshUntil) ?? 0;
  return {
    version: value.version,
    offers: (listOf(value.offers) ?? []).slice(0, OFFERS).filter(isWord),
    freshUntil: Math.min(freshUntil, nowMs + LIMITS.clockSkewMs),
  };
}

/** Whether the entry is younger than seven days. A time in the future counts up to the skew that clocks have. */
function isFresh(entry: StoredEntry, nowMs: number): boolean {
  const cachedAt = timeOf(entry.cachedAt);
  if (cachedAt === undefined) return false;
  return cachedAt > nowMs - LIMITS.cacheEntryMs && cachedAt <= nowMs + LIMITS.clockSkewMs;
}

/**
 * Whether an earlier version of this package wrote the entry, which kept no signs: a tool of it may be one that no model may
 * have. Other adapters write neither templates nor the protocol, and pi-mcp-adapter a `uiVisibility` of its own.
 */
const lacksSigns = ({ signs, resourceTemplates, protocol }: StoredEntry): boolean =>
  signs !== true && (resourceTemplates !== undefined || protocol !== undefined);

function readTools(stored: unknown): ToolList | undefined {
  if (stored instanceof StoredTools) return stored;
  if (!Array.isArray(stored)) return undefined;
  const tools = normalizeTools(stored);
  // An empty list is a server without tools. A list without any readable tool is a broken entry.
  return tools.length === 0 && stored.length > 0 ? undefined : tools;
}

/** The entry; undefined if it is malformed, belongs to another definition, or no longer counts. */
export function readEntry(stored: unknown, configHash: string, nowMs: number): KnownEntry | undefined {
  if (!isObject(stored) || stored.configHash !== configHash || !isFresh(stored, nowMs)) return undefined;
  if (lacksSigns(stored)) return undefined;
  const tools = readTools(stored.tools);
  if (!tools) return undefined;
  const { instructions } = stored;
  return {
    configHash,
    tools,
    ...known({
      resources: listOf(stored.resources),
      resourceTemplates: listOf(stored.resourceTemplates),
      prompts: listOf(stored.prompts),
      skills: listOf(stored.skills),
      instructions: typeof instructions === "string" ? instructions : undefined,
      protocol: protocolOf(stored.protocol, nowMs),
      // An entry of another process is written as it is read here.
      signs: stored.signs === true ? true : undefined,
      unattended: stored.unattended === true ? true : undefined,
    }),
    cachedAt: stored.cachedAt as number,
  };
}

/** The time of the entry's last use; undefined if the entry has no time, or one in the future. */
function lastUsed(entry: StoredEntry, nowMs: number): number | undefined {
  const times = [timeOf(entry.cachedAt), timeOf(entry.usedAt)].filter((time) => time !== undefined);
  const latest = Math.max(...times);
  return Number.isFinite(latest) && latest <= nowMs + LIMITS.clockSkewMs ? latest : undefined;
}

/** The use is written to the file at most once a day, not at every start. */
const isUseDue = (entry: StoredEntry, nowMs: number): boolean =>
  nowMs - (lastUsed(entry, nowMs) ?? 0) > LIMITS.usedEveryMs;

/** An unchanged listing is written to the file at most once a day, not at every start, and never if it is no younger. */
const isListingDue = (entry: StoredEntry, { cachedAt }: CacheEntry, nowMs: number): boolean =>
  entry.cachedAt !== cachedAt &&
  (!isFresh(entry, nowMs) || nowMs - (entry.cachedAt as number) > LIMITS.usedEveryMs);

/** Whether nobody has used the entry for thirty days. An entry without a time belongs to others and stays. */
function isUnused(entry: unknown, nowMs: number): boolean {
  const used = isObject(entry) ? lastUsed(entry, nowMs) : undefined;
  return used !== undefined && nowMs - used > LIMITS.unusedMs;
}

/** The field in which pi-mcp-adapter keeps and looks for MCP Apps' visibility: so it does not show the tool either. */
const ADAPTERS_VISIBILITY = "uiVisibility";

/** The tools of `fresh`. Each tool keeps the foreign fields of the stored tool with its name. */
function mergeTools(fresh: readonly CachedTool[], stored: unknown): Record<string, unknown>[] {
  const before = new Map((listOf(stored) ?? []).filter(isObject).map((tool) => [tool.name, tool]));
  return fresh.map((tool) => {
    const foreign = Object.entries(before.get(tool.name) ?? {}).filter(
      ([key]) => !TOOL_FIELDS.includes(key) && key !== ADAPTERS_VISIBILITY,
    );
    const visibility = isAppOnly(tool) ? { [ADAPTERS_VISIBILITY]: tool._meta?.ui?.visibility } : {};
    return { ...tool, ...visibility, ...Object.fromEntries(foreign) };
  });
}

const OWN_FIELDS = [
  ...["configHash", "tools", "resources", "resourceTemplates", "prompts", "instructions", "signs"],
  ...["unattended"],
  ...["skills", "protocol", "cachedAt", "usedAt"],
];

/** What an entry says of the protocol, without its time. */
const spokenIn = ({ protocol }: StoredEntry): unknown =>
  isObject(protocol) ? [protocol.version, protocol.offers] : null;

/** Whether the new list counts as fresh for longer than the stored one, by the server's own words. */
const staysFresher = (stored: StoredEntry, { protocol }: CacheEntry, nowMs: number): boolean => {
  const until = isObject(stored.protocol) ? (timeOf(stored.protocol.freshUntil) ?? 0) : 0;
  return protocol !== undefined && until <= nowMs && protocol.freshUntil > nowMs;
};

/** The entry for the file: the new entry with the foreign fields of the stored entry. */
function mergeEntry(fresh: CacheEntry, stored: StoredEntry): StoredEntry {
  const foreign = Object.entries(stored).filter(([key]) => !OWN_FIELDS.includes(key));
  const { tools, resources, resourceTemplates, prompts, skills, ...rest } = fresh;
  return {
    ...Object.fromEntries(foreign),
    ...rest,
    tools: mergeTools(tools, stored.tools),
    // The format requires `resources`.
    resources: resources ?? listOf(stored.resources) ?? [],
    ...known({
      resourceTemplates: resourceTemplates ?? listOf(stored.resourceTemplates),
      prompts: prompts ?? listOf(stored.prompts),
      skills,
    }),
  };
}

/** Whether two entries are equal apart from their times and foreign fields. */
function sameContent(a: StoredEntry, b: StoredEntry): boolean {
  const content = (entry: StoredEntry): string =>
    JSON.stringify([...OWN_FIELDS.slice(0, -3).map((field) => entry[field] ?? null), spokenIn(entry)]);
  return content(a) === content(b);
}

/** The `servers` of the file. A map, since a server may have the name of a property that every object has. */
export type Slots = Map<string, unknown>;

const HASH_CHARS = 16;

export const variantKey = (server: string, configHash: string): string =>
  `${server}#${configHash.slice(0, HASH_CHARS)}`;

const hasHash = (stored: unknown, configHash: string): stored is StoredEntry =>
  isObject(stored) && stored.configHash === configHash;

/** The key of a server's entry with that hash, or undefined. */
const keyOf = (slots: Slots, server: string, configHash: string): string | undefined =>
  [server, variantKey(server, configHash)].find((key) => hasHash(slots.get(key), configHash));

/** The entry of a server that counts now, for the first of the hashes that has one. */
export function findEntry(
  slots: Slots,
  server: string,
  hashes: readonly string[],
  nowMs: number,
): { entry: KnownEntry; useDue: boolean } | undefined {
  for (const hash of hashes) {
    const key = keyOf(slots, server, hash);
    if (key === undefined) continue;
    const stored = slots.get(key) as StoredEntry;
    const entry = readEntry(stored, hash, nowMs);
    if (entry) return { entry, useDue: isUseDue(stored, nowMs) };
  }
  return undefined;
}

const isVariant = (key: string, stored: unknown): stored is StoredEntry =>
  isObject(stored) &&
  typeof stored.configHash === "string" &&
  key.endsWith(`#${stored.configHash.slice(0, HASH_CHARS)}`);

/** Other definitions of a server whose entries stay: a definition that depends on its folder has one in each folder. */
const VARIANTS = 20;

/** Removes the entries of other definitions whose use is the oldest. */
function dropVariants(slots: Slots, server: string, nowMs: number): void {
  const used = (stored: unknown): number => lastUsed(stored as StoredEntry, nowMs) ?? 0;
  const variants = [...slots].filter(
    ([key, stored]) => isVariant(key, stored) && key === variantKey(server, stored.configHash as string),
  );
  variants.sort(([, one], [, other]) => used(other) - used(one));
  for (const [key] of variants.slice(VARIANTS)) slots.delete(key);
}

/** The slots without the entries of other definitions. */
export const withoutVariants = (slots: Slots): Slots =>
  new Map([...slots].filter(([key, stored]) => !isVariant(key, stored)));

/** Puts a new entry under its server's name, unless an equal one is there. Answers whether the slots changed. */
function put(slots: Slots, server: string, entry: CacheEntry, nowMs: number): boolean {
  const key = keyOf(slots, server, entry.configHash);
  const current = slots.get(server);
  const displaced = isObject(current) && typeof current.configHash === "string" && key !== server;
  const before = key === undefined ? undefined : (slots.get(key) as StoredEntry);
  // Another session may have asked the server later than the one that stores.
  if (before && isFresh(before, nowMs) && entry.cachedAt < (before.cachedAt as number)) return false;
  const merged = mergeEntry(entry, before ?? (isObject(current) && !displaced ? current : {}));
  if (
    before &&
    sameContent(before, merged) &&
    !isListingDue(before, entry, nowMs) &&
    !staysFresher(before, entry, nowMs)
  )
    return false;
  if (displaced && isFresh(current, nowMs)) {
    slots.set(variantKey(server, current.configHash as string), current);
  }
  slots.delete(variantKey(server, entry.configHash));
  slots.set(server, merged);
  dropVariants(slots, server, nowMs);
  return true;
}

function markUsed(slots: Slots, server: string, configHash: string, nowMs: number): boolean {
  const key = keyOf(slots, server, configHash);
  const stored = key === undefined ? undefined : slots.get(key);
  if (key === undefined || !isObject(stored) || !isUseDue(stored, nowMs)) return false;
  slots.set(key, { ...stored, usedAt: nowMs });
  return true;
}

/** Removes entries that nobody used for long, and moved entries that no longer count, which nothing else removes. */
function prune(slots: Slots, nowMs: number): void {
  for (const [key, stored] of slots) {
    if (isUnused(stored, nowMs) || (isVariant(key, stored) && !isFresh(stored, nowMs))) slots.delete(key);
  }
}

/** The slots after the changes, or undefined if nothing has to be written. */
export function changeSlots(stored: Slots, changes: SlotChanges, nowMs: number): Slots | undefined {
  const slots = new Map(stored);
  let changed = false;
  for (const [server, entry] of Object.entries(changes.entries)) {
    changed = put(slots, server, entry, nowMs) || changed;
  }
  for (const [server, hash] of Object.entries(changes.used)) {
    changed = markUsed(slots, server, hash, nowMs) || changed;
  }
  if (!changed) return undefined;
  prune(slots, nowMs);
  return slots;
}
