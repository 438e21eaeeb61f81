/**
 * `mcp-cache.json`: what servers said about their tools, so that the next start knows them without
 * connecting. Version 1; readable by other adapters, whose entries and unknown fields survive our writes.
 */
import { readFile } from "node:fs/promises";
import { messageOf } from "../../src/protocol/errors.ts";
import { writeFileAtomic } from "./atomic-file.ts";
import { type CachedTool, normalizeTools } from "./tool.ts";

export const CACHE_VERSION = 1;

export interface CacheEntry {
  configHash: string;
  tools: CachedTool[];
  resources: unknown[];
  instructions?: string;
  /** Milliseconds since 1970. */
  cachedAt: number;
}

type CacheFile = { version: number; servers: Record<string, unknown> } & Record<string, unknown>;

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** An entry of the file, checked; undefined for what is none. Other adapters write here too. */
function toEntry(value: unknown): CacheEntry | undefined {
  if (!isObject(value) || !Array.isArray(value.tools) || !Array.isArray(value.resources ?? []))
    return undefined;
  if (typeof value.configHash !== "string" || typeof value.cachedAt !== "number") return undefined;
  return {
    configHash: value.configHash,
    tools: normalizeTools(value.tools),
    resources: (value.resources as unknown[] | undefined) ?? [],
    ...(typeof value.instructions === "string" ? { instructions: value.instructions } : {}),
    cachedAt: value.cachedAt,
  };
}

/** The file's content, or an empty cache with the reason where it cannot be used. */
async function load(path: string): Promise<{ cache: CacheFile; problem?: string; foreign?: boolean }> {
  const empty: CacheFile = { version: CACHE_VERSION, servers: {} };
  try {
    const parsed: unknown = JSON.parse(await readFile(path, "utf8"));
    if (!isObject(parsed) || !isObject(parsed.servers))
      return { cache: empty, problem: "it is not a cache file" };
    if (parsed.version !== CACHE_VERSION) {
      const problem = `its version is ${String(parsed.version)}, not ${CACHE_VERSION}`;
      return { cache: empty, problem, foreign: true };
    }
    return { cache: parsed as CacheFile };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return { cache: empty };
    return { cache: empty, problem: messageOf(error) };
  }
}

/** Entries of the wanted servers whose hash is the wanted one. */
export async function readCache(query: {
  path: string;
  hashes: Record<string, string>;
}): Promise<{ entries: Record<string, CacheEntry>; problem?: string }> {
  const { cache, problem } = await load(query.path);
  const entries: Record<string, CacheEntry> = {};
  for (const [server, hash] of Object.entries(query.hashes)) {
    const entry = toEntry(Object.hasOwn(cache.servers, server) ? cache.servers[server] : undefined);
    if (entry?.configHash === hash) entries[server] = entry;
  }
  return problem === undefined ? { entries } : { entries, problem };
}

/** Our own fields of an entry: what a server no longer says must not survive a merge. */
const OWN_FIELDS = ["configHash", "tools", "resources", "instructions", "cachedAt"];

/**
 * Merges the entries into the file. Throws where the file belongs to another version, which stays as it is;
 * one that is no cache file at all is replaced.
 */
export async function writeCache(path: string, entries: Record<string, CacheEntry>): Promise<void> {
  const { cache, problem, foreign } = await load(path);
  if (foreign) throw new Error(problem);
  const servers = { ...cache.servers };
  for (const [server, entry] of Object.entries(entries)) {
    const before = servers[server];
    const kept = Object.entries(isObject(before) ? before : {}).filter(
      ([field]) => !OWN_FIELDS.includes(field),
    );
    servers[server] = { ...Object.fromEntries(kept), ...entry };
  }
  await writeFileAtomic(path, `${JSON.stringify({ ...cache, servers })}\n`);
}
