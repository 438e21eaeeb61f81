/**
 * The keys of entries in the cache file, and what a write changes. Pure.
 *
 * The newest entry of a server stands under the server's name, where every adapter looks. Projects may give one name to
 * different servers: an older entry that still counts then moves to `<name>#<start of its hash>`, where only we look,
 * and returns to the name when its server lists its tools again. No reader confuses the two, since each compares the
 * whole hash.
 */

import { isObject } from "../../../src/shared/protocol/is-object.ts";
import type { CacheEntry, SlotChanges } from "../../shared/tasks.ts";
import {
  isFresh,
  isListingDue,
  isUnused,
  isUseDue,
  mergeEntry,
  readEntry,
  type StoredEntry,
  sameContent,
  staysFresher,
} from "./entry.ts";

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
): { entry: CacheEntry; useDue: boolean } | undefined {
  for (const hash of hashes) {
    const key = keyOf(slots, server, hash);
    if (key === undefined) continue;
    const stored = slots.get(key) as StoredEntry;
    const entry = readEntry(stored, hash, nowMs);
    if (entry) return { entry, useDue: isUseDue(stored, nowMs) };
  }
  return undefined;
}

/** Puts a new entry under its server's name, unless an equal one is there. Answers whether the slots changed. */
function put(slots: Slots, server: string, entry: CacheEntry, nowMs: number): boolean {
  const key = keyOf(slots, server, entry.configHash);
  const current = slots.get(server);
  const displaced = isObject(current) && typeof current.configHash === "string" && key !== server;
  const before = key === undefined ? undefined : (slots.get(key) as StoredEntry);
  const merged = mergeEntry(entry, before ?? (isObject(current) && !displaced ? current : {}));
  if (
    before &&
    sameContent(before, merged) &&
    !isListingDue(before, nowMs) &&
    !staysFresher(before, entry, nowMs)
  )
    return false;
  if (displaced && isFresh(current, nowMs)) {
    slots.set(variantKey(server, current.configHash as string), current);
  }
  slots.delete(variantKey(server, entry.configHash));
  slots.set(server, merged);
  return true;
}

function markUsed(slots: Slots, server: string, configHash: string, nowMs: number): boolean {
  const key = keyOf(slots, server, configHash);
  const stored = key === undefined ? undefined : slots.get(key);
  if (key === undefined || !isObject(stored) || !isUseDue(stored, nowMs)) return false;
  slots.set(key, { ...stored, usedAt: nowMs });
  return true;
}

const isVariant = (key: string, stored: unknown): stored is StoredEntry =>
  isObject(stored) &&
  typeof stored.configHash === "string" &&
  key.endsWith(`#${stored.configHash.slice(0, HASH_CHARS)}`);

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
