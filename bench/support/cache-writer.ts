/**
 * Owns: one process of the cache-write scenario. It writes its entries one after the other, like a session of the
 * client, and prints the duration of each write, in milliseconds, as JSON.
 * Called by: the scenario, as `cache-writer.ts <ours|adapter> <module> <cache file> <writer> <entries> <start at>`.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { syntheticTools } from "./synthetic-tools.ts";

const TOOLS = 50;

type Write = (server: string, entry: Record<string, unknown>) => Promise<void> | void;

/** Loads the client's write function. The adapter finds its file through PI_CODING_AGENT_DIR. */
async function load(client: string, modulePath: string, cacheFile: string): Promise<Write> {
  const loaded = (await import(pathToFileURL(modulePath).href)) as Record<string, unknown>;
  const [name, write] =
    client === "ours"
      ? ["storeEntries", loaded.storeEntries]
      : ["saveMetadataCache", loaded.saveMetadataCache];
  if (typeof write !== "function") throw new Error(`${modulePath} exports no ${name}`);
  if (client === "ours") {
    return (server, entry) =>
      write({ path: cacheFile, entries: { [server]: entry }, used: {} }) as Promise<void>;
  }
  return (server, entry) => write({ version: 1, servers: { [server]: entry } }) as undefined;
}

const [client = "", modulePath = "", cacheFile = "", writer = "", entries = "", startAt = ""] =
  process.argv.slice(2);
const write = await load(client, modulePath, cacheFile);
const tools = syntheticTools(TOOLS, Number(writer) + 1);
// All writers begin at the same moment, after all have loaded their modules.
await sleep(Math.max(Number(startAt) - Date.now(), 0));
const writesMs: number[] = [];
for (let index = 0; index < Number(entries); index++) {
  const startedMs = performance.now();
  const entry = { configHash: `hash-${writer}-${index}`, tools, resources: [], cachedAt: Date.now() };
  await write(`server-${writer}-${index}`, entry);
  writesMs.push(performance.now() - startedMs);
}
process.stdout.write(JSON.stringify(writesMs));
