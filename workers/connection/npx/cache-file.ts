/**
 * Owns `mcp-npx-cache.json`, version 1: the packages for which npm was asked in the last 24 hours, and the folders in
 * which npm keeps them. The file holds no path of a server: every entry is checked against the installed package again.
 * A file that is corrupt, foreign or unreadable counts as empty. Several Pi processes may write the file: each write is
 * atomic, and npm is asked again for an entry that another process has overwritten.
 */

import { isAbsolute } from "node:path";
import { isObject } from "../../../src/shared/protocol/is-object.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { writeFileAtomic } from "../../shared/files/file-system.ts";
import { readTextOrThrow, SMALL_FILE_BYTES } from "../../shared/files/read-regular.ts";
import type { NpmFacts, Tree } from "./tree.ts";

export const NPX_CACHE_VERSION = 1;
const MAX_ENTRIES = 500;
/** The clocks of two machines that share a home folder may differ by this much. */
const CLOCK_SKEW_MS = 60_000;

export interface NpxCacheEntry extends NpmFacts {
  /** As the command line writes them; for people who read the file. */
  packages: string[];
  /** The tree from which npx takes them. */
  from: Tree["kind"];
  /** When npm was asked, in milliseconds since 1970. */
  checkedAt: number;
}

type Entries = Record<string, NpxCacheEntry>;

const isEntry = (value: unknown): value is NpxCacheEntry =>
  isObject(value) &&
  typeof value.checkedAt === "number" &&
  Array.isArray(value.packages) &&
  typeof value.from === "string" &&
  [value.cacheDir, value.globalPrefix, value.node].every(
    (path) => typeof path === "string" && isAbsolute(path),
  );

const isFresh = ({ checkedAt }: NpxCacheEntry, now: number): boolean =>
  now - checkedAt < LIMITS.npxFreshMs && checkedAt - now < CLOCK_SKEW_MS;

async function readFresh(file: string, now: number): Promise<Entries> {
  try {
    const parsed: unknown = JSON.parse(await readTextOrThrow(file, SMALL_FILE_BYTES));
    if (!isObject(parsed) || parsed.version !== NPX_CACHE_VERSION || !isObject(parsed.entries)) return {};
    const entries = Object.entries(parsed.entries).filter(
      (entry): entry is [string, NpxCacheEntry] => isEntry(entry[1]) && isFresh(entry[1], now),
    );
    return Object.fromEntries(entries);
  } catch {
    return {};
  }
}

export async function readNpxEntry(
  file: string,
  key: string,
  now: number,
): Promise<NpxCacheEntry | undefined> {
  const entries = await readFresh(file, now);
  return Object.hasOwn(entries, key) ? entries[key] : undefined;
}

/** Writes of this process run one after another, because each one reads the result of the last. */
let writing: Promise<unknown> = Promise.resolve();

/** Adds an entry and drops the old ones. Rejects with the error of the file system. */
export function writeNpxEntry(file: string, key: string, entry: NpxCacheEntry): Promise<void> {
  const write = async (): Promise<void> => {
    const others = Object.entries(await readFresh(file, entry.checkedAt)).filter(([other]) => other !== key);
    const entries = Object.fromEntries([...others, [key, entry] as const].slice(-MAX_ENTRIES));
    await writeFileAtomic(file, `${JSON.stringify({ version: NPX_CACHE_VERSION, entries })}\n`);
  };
  const written = writing.then(write);
  writing = written.catch(() => undefined);
  return written;
}
