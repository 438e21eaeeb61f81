/**
 * `mcp-cache.json`: what servers said about their tools, so that the next start knows them without
 * connecting. Version 1; readable by other adapters, whose entries and unknown fields survive our writes.
 */
import { readFile } from "node:fs/promises";
import { messageOf } from "../../src/protocol/errors.ts";
import { writeFileAtomic } from "./atomic-file.ts";

export const CACHE_VERSION = 1;

/** A tool as the server listed it (MCP 2025-11-25, server/tools), reduced to what is kept. */
export interface CachedTool {
  name: string;
  title?: string;
  description?: string;
  inputSchema?: unknown;
  outputSchema?: unknown;
  annotations?: Record<string, unknown>;
}

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

function isEntry(value: unknown): value is CacheEntry {
  return (
    isObject(value) &&
    typeof value.configHash === "string" &&
    typeof value.cachedAt === "number" &&
    Array.isArray(value.tools) &&
    value.tools.every((tool) => isObject(tool) && typeof tool.name === "string")
  );
}

/** The file's content, or an empty cache with the reason where it cannot be used. */
async function load(path: string): Promise<{ cache: CacheFile; problem?: string }> {
  const empty: CacheFile = { version: CACHE_VERSION, servers: {} };
  try {
    const parsed: unknown = JSON.parse(await readFile(path, "utf8"));
    if (!isObject(parsed) || !isObject(parsed.servers))
      return { cache: empty, problem: "it is not a cache file" };
    if (parsed.version !== CACHE_VERSION) {
      return { cache: empty, problem: `its version is ${String(parsed.version)}, not ${CACHE_VERSION}` };
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
    const entry = Object.hasOwn(cache.servers, server) ? cache.servers[server] : undefined;
    if (isEntry(entry) && entry.configHash === hash) entries[server] = entry;
  }
  return problem === undefined ? { entries } : { entries, problem };
}

/** Merges the entries into the file. A file that cannot be read is replaced only if it is no cache at all. */
export async function writeCache(path: string, entries: Record<string, CacheEntry>): Promise<void> {
  const { cache } = await load(path);
  const servers = { ...cache.servers };
  for (const [server, entry] of Object.entries(entries)) {
    const before = servers[server];
    servers[server] = { ...(isObject(before) ? before : {}), ...entry };
  }
  await writeFileAtomic(path, `${JSON.stringify({ ...cache, servers })}\n`);
}
