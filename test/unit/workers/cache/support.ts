/** Entries, contexts and failing file systems for the tests of the metadata cache. */

import type { CacheContext } from "../../../../workers/cache/metadata/metadata.ts";
import { type FileSystem, nodeFiles } from "../../../../workers/shared/files/file-system.ts";
import type { CacheEntry } from "../../../../workers/shared/tasks.ts";

export const NOW = Date.UTC(2026, 0, 15, 12);
export const MINUTE = 60_000;
export const DAY = 24 * 60 * MINUTE;

export const entry = (configHash: string, rest: Partial<CacheEntry> = {}): CacheEntry => ({
  configHash,
  tools: [{ name: "t", description: "d", inputSchema: { type: "object" } }],
  resources: [],
  cachedAt: NOW - MINUTE,
  ...rest,
});

/** The JSON of a cache file without what it says of each list of tools, which is a matter of the layout alone. */
export const withoutMarks = (text: string): unknown =>
  JSON.parse(text, (key, value: unknown) => (key === "toolsMark" ? undefined : value));

/** Short times, so that a lock is taken from a dead holder without seconds of waiting. */
export const context = (rest: Partial<CacheContext> = {}): CacheContext => ({
  files: nodeFiles,
  limitBytes: 2 ** 20,
  now: () => NOW,
  lockTimes: { waitMs: 30_000, beatMs: 20, silentMs: 150 },
  ...rest,
});

export type Step = keyof FileSystem | "write" | "sync" | "close";

/** The real file system, but every step of that kind on a matching path fails. */
export function failingFiles(step: Step, code: string, path: RegExp): FileSystem & { failures: number } {
  const check = (at: Step, on: string): void => {
    if (at !== step || !path.test(on)) return;
    files.failures++;
    throw Object.assign(new Error(`${code}: injected, ${at}`), { code });
  };
  const files: FileSystem & { failures: number } = {
    failures: 0,
    find: async (on) => {
      check("find", on);
      return nodeFiles.find(on);
    },
    readBytes: async (on, limitBytes) => {
      check("readBytes", on);
      return nodeFiles.readBytes(on, limitBytes);
    },
    create: async (on, mode) => {
      check("create", on);
      const file = await nodeFiles.create(on, mode);
      return {
        write: async (data) => {
          // A full disk takes a part of the data.
          await file.write(data.slice(0, data.length / 2));
          check("write", on);
          await file.write(data.slice(data.length / 2));
        },
        sync: async () => {
          check("sync", on);
          await file.sync();
        },
        close: async () => {
          await file.close();
          check("close", on);
        },
      };
    },
    rename: async (from, to) => {
      check("rename", to);
      await nodeFiles.rename(from, to);
    },
    remove: async (on) => {
      check("remove", on);
      await nodeFiles.remove(on);
    },
    list: async (on) => {
      check("list", on);
      return nodeFiles.list(on);
    },
    touch: async (on) => {
      check("touch", on);
      await nodeFiles.touch(on);
    },
  };
  return files;
}
