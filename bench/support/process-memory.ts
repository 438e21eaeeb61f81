/**
 * Owns: how many processes a home has, and the memory of all of them together. Memory is the proportional set size: what
 * several processes map, such as Node's own code, counts once (Linux, Documentation/filesystems/proc.rst, smaps_rollup).
 * Must not: start or end processes.
 */
import { readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { processesWithMarker } from "../../test/support/processes.ts";

const POLL_MS = 500;

/** MB of 1,000,000 bytes; NaN where the system does not tell. A process that has ended counts nothing. */
export async function pssMb(pids: readonly number[]): Promise<number> {
  if (process.platform !== "linux") return Number.NaN;
  const each = pids.map(async (pid) => {
    const rollup = await readFile(`/proc/${pid}/smaps_rollup`, "utf8").catch(() => "");
    return Number(/^Pss: +(\d+) kB$/m.exec(rollup)?.[1] ?? 0);
  });
  return ((await Promise.all(each)).reduce((sum, kib) => sum + kib, 0) * 1024) / 1_000_000;
}

/** All processes of a home, by the `HOME` in their environment: also those that outlive what started them. */
export const processesOf = (homeDir: string) => processesWithMarker(`HOME=${homeDir}`);

/** The pids of a home, once none has come or gone for `quietMs`, or after `longestMs`. */
export async function settledPids(
  homeDir: string,
  { quietMs, longestMs }: { quietMs: number; longestMs: number },
): Promise<number[]> {
  const startedMs = performance.now();
  let known = "";
  let quietSinceMs = startedMs;
  for (;;) {
    const pids = (await processesOf(homeDir)).map(({ pid }) => pid);
    const now = performance.now();
    const seen = pids.toSorted().join();
    if (seen !== known) [known, quietSinceMs] = [seen, now];
    if (now - quietSinceMs >= quietMs || now - startedMs >= longestMs) return pids;
    await sleep(POLL_MS);
  }
}
