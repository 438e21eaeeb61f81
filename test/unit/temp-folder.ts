/** Owns: one temp folder per test, removed after it. */
import { rm } from "node:fs/promises";
import { onCleanup } from "../support/cleanup.ts";
import { makeTempFolder } from "../support/temp-folder.ts";

export async function tempFolder(): Promise<string> {
  const folder = await makeTempFolder("pmt-unit");
  onCleanup(() => rm(folder, { recursive: true, force: true }));
  return folder;
}
