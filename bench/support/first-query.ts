/**
 * Owns: the first query of a session: a new process reads a snapshot and makes one query. Prints the elapsed time and
 * the CPU time, which other processes do not affect, in milliseconds.
 * Called by: the search scenario. Argument: the snapshot file.
 */
import { readFileSync } from "node:fs";
import { catalogFrom } from "../../src/catalog/catalog.ts";
import { searchCatalog } from "../../src/catalog/search.ts";
import { LIMITS } from "../../src/shared/protocol/limits.ts";

const cpuMs = (): number => {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
};

const catalog = catalogFrom(readFileSync(process.argv[2] ?? ""));
const [startMs, startCpuMs] = [performance.now(), cpuMs()];
if (catalog)
  searchCatalog(catalog, "show me the open pull requests of my repository on GitHub", LIMITS.searchResults);
process.stdout.write(JSON.stringify({ wallMs: performance.now() - startMs, cpuMs: cpuMs() - startCpuMs }));
