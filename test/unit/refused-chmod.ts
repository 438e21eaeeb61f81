/** Owns: a file system that keeps no modes of its own, as CIFS or `/mnt/c` of WSL: each chmod is refused, until the test ends. */
import fs from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { onCleanup } from "../support/cleanup.ts";

export async function refuseChmod(code = "EPERM"): Promise<void> {
  const refused = async (): Promise<never> => {
    throw Object.assign(new Error(`${code}: injected, chmod`), { code });
  };
  const some = await open(import.meta.filename);
  await some.close();
  const handles = Object.getPrototypeOf(some) as FileHandle;
  const { promises } = fs;
  const before = { handle: handles.chmod, path: promises.chmod };
  handles.chmod = refused;
  promises.chmod = refused;
  syncBuiltinESMExports();
  onCleanup(() => {
    handles.chmod = before.handle;
    promises.chmod = before.path;
    syncBuiltinESMExports();
  });
}
