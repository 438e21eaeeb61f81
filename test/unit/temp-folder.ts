/** Owns: one temp folder per test, removed after it. */
import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach } from "vitest";

const folders: string[] = [];

afterEach(async () => {
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true, force: true });
});

export async function tempFolder(): Promise<string> {
  const folder = await mkdtemp(join(await realpath(tmpdir()), "pmt-unit-"));
  folders.push(folder);
  return folder;
}
