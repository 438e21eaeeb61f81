/** Owns: the snapshot of a bench's home: waiting until it holds what the servers list. */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { catalogFrom } from "../../src/catalog/catalog.ts";
import { SNAPSHOT_FOLDER } from "../../src/shared/snapshot/contract.ts";
import type { PiHome } from "../../test/support/pi-run.ts";

const LEARN_MS = 120_000;
const POLL_MS = 100;

/** The snapshot of a home that holds `tools` tools; undefined while there is none. */
export async function snapshotWith({ agentDir }: PiHome, tools: number): Promise<Uint8Array | undefined> {
  const folder = join(agentDir, SNAPSHOT_FOLDER);
  const names = await readdir(folder).catch(() => []);
  for (const name of names.filter((file) => file.endsWith(".bin"))) {
    const bytes = await readFile(join(folder, name)).catch(() => new Uint8Array());
    if (catalogFrom(bytes)?.count === tools) return bytes;
  }
  return undefined;
}

/** Waits for that snapshot. Throws after two minutes. */
export async function learnt(home: PiHome, tools: number): Promise<Uint8Array> {
  const until = performance.now() + LEARN_MS;
  for (;;) {
    const bytes = await snapshotWith(home, tools);
    if (bytes) return bytes;
    if (performance.now() > until) throw new Error(`no snapshot with ${tools} tools`);
    await sleep(POLL_MS);
  }
}
