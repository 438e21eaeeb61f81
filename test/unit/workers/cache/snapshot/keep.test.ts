/** The task that keeps a snapshot in its file: when it writes, which files it removes, and what may fail. */
import { execFile } from "node:child_process";
import { mkdir, readdir, readFile, rm, stat, utimes, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { crc32 } from "node:zlib";
import { describe, expect, it, test } from "vitest";
import { DEFAULT_CATALOG_SETTINGS } from "../../../../../src/shared/protocol/session.ts";
import { encodeSnapshot, SOURCE_BYTES } from "../../../../../src/shared/snapshot/snapshot.ts";
import {
  fingerprintMatches,
  type KeepContext,
  keepSnapshot,
} from "../../../../../workers/cache/snapshot/snapshot.ts";
import { nodeFiles } from "../../../../../workers/shared/files/file-system.ts";
import type { KeepTask } from "../../../../../workers/shared/tasks.ts";
import { tempFolder } from "../../../temp-folder.ts";
import { DAY, failingFiles, MINUTE, NOW, type Step } from "../support.ts";

const BYTES = new Uint8Array([1, 2, 3]);
const seconds = (ms: number): number => ms / 1_000;
const at = (rest: Partial<KeepContext> = {}): KeepContext => ({ files: nodeFiles, now: () => NOW, ...rest });

const task = async (rest: Partial<KeepTask> = {}): Promise<KeepTask> => ({
  path: join(await tempFolder(), "mcp-snapshots", "x.bin"),
  snapshot: BYTES,
  isNew: true,
  ...rest,
});

const bytesAt = async (path: string): Promise<Uint8Array> => new Uint8Array(await readFile(path));

describe("keepSnapshot", () => {
  test("new -> written, private", async () => {
    const asked = await task();
    expect(await keepSnapshot(asked)).toEqual([]);
    expect(await bytesAt(asked.path)).toEqual(BYTES);
    expect((await stat(asked.path)).mode & 0o777).toBe(0o600);
  });

  test("not new -> the file stays as it is; if the file is gone, it is written for the next start", async () => {
    const asked = await task();
    await keepSnapshot(asked);
    await writeFile(asked.path, "as it was");
    expect(await keepSnapshot({ ...asked, isNew: false })).toEqual([]);
    expect(await readFile(asked.path, "utf8")).toBe("as it was");
    await rm(asked.path);
    expect(await keepSnapshot({ ...asked, isNew: false })).toEqual([]);
    expect(await bytesAt(asked.path)).toEqual(BYTES);
  });

  test("a named pipe in the place of the file -> not waited for, and reported", async () => {
    const asked = await task();
    await mkdir(dirname(asked.path));
    await promisify(execFile)("mkfifo", [asked.path]);
    const source = new Uint8Array(SOURCE_BYTES);
    expect(await fingerprintMatches({ path: asked.path, checksum: 1 }, source)).toBe(false);
    expect(await keepSnapshot(asked)).toEqual([
      `${asked.path} could not be written: it is a named pipe, not a regular file`,
    ]);
  });

  test("not new, but with another fingerprint than the file -> written, so that the next start recognises it", async () => {
    const content = {
      settings: DEFAULT_CATALOG_SETTINGS,
      description: "",
      servers: [],
      tools: [],
      index: BYTES,
    };
    const made = (of: number) => encodeSnapshot(content, crc32, new Uint8Array(SOURCE_BYTES).fill(of));
    const asked = await task({ snapshot: made(1) });
    await keepSnapshot(asked, at());
    await utimes(asked.path, seconds(NOW - MINUTE), seconds(NOW - MINUTE));
    expect(await keepSnapshot({ ...asked, isNew: false }, at())).toEqual([]);
    expect((await stat(asked.path)).mtimeMs).toBe(NOW - MINUTE);
    expect(await keepSnapshot({ ...asked, snapshot: made(2), isNew: false }, at())).toEqual([]);
    expect(await bytesAt(asked.path)).toEqual(made(2));
  });

  test("known to be in the file -> the file stays; if the file is gone since, nothing is written", async () => {
    const asked = await task();
    await keepSnapshot(asked);
    const { path } = asked;
    expect(await keepSnapshot({ path, isNew: false })).toEqual([]);
    expect(await bytesAt(path)).toEqual(BYTES);
    await rm(path);
    expect(await keepSnapshot({ path, isNew: false })).toEqual([]);
    expect(await readdir(join(path, ".."))).toEqual([]);
  });

  test("a folder that cannot be made -> a problem", async () => {
    const folder = await tempFolder();
    await writeFile(join(folder, "file"), "");
    const path = join(folder, "file", "s");
    expect(await keepSnapshot(await task({ path }))).toEqual([expect.stringContaining(path)]);
    expect(await readdir(folder)).toEqual(["file"]);
  });

  test("a folder in the place of the snapshot -> a problem, no temp file stays", async () => {
    const asked = await task();
    await mkdir(join(asked.path, "x"), { recursive: true });
    expect(await keepSnapshot(asked)).toHaveLength(1);
    expect(await readdir(join(asked.path, ".."))).toEqual(["x.bin"]);
  });

  it.each([
    ["an hour ago", "left", 60 * MINUTE],
    ["two days ago", "touched", 2 * DAY],
  ])("not new, used %s -> %s", async (_name, outcome, ageMs) => {
    const asked = await task();
    await keepSnapshot(asked, at());
    const then = seconds(NOW - ageMs);
    await utimes(asked.path, then, then);
    await keepSnapshot({ ...asked, isNew: false }, at());
    const { mtimeMs } = await stat(asked.path);
    expect(mtimeMs === NOW - ageMs ? "left" : "touched").toBe(outcome);
  });

  test("a write -> snapshots unused for 30 days and old temp files are removed, all other files stay", async () => {
    const asked = await task();
    const folder = join(asked.path, "..");
    await mkdir(folder);
    const ages: Record<string, number> = {
      "old.bin": 31 * DAY,
      "young.bin": 29 * DAY,
      "old.txt": 99 * DAY,
      ".x.bin.0123456789ab.tmp": 2 * 60 * MINUTE,
      ".y.bin.0123456789ab.tmp": MINUTE,
    };
    for (const [name, ageMs] of Object.entries(ages)) {
      await writeFile(join(folder, name), "");
      await utimes(join(folder, name), seconds(NOW - ageMs), seconds(NOW - ageMs));
    }
    await keepSnapshot(asked, at());
    expect((await readdir(folder)).sort()).toEqual(
      [".y.bin.0123456789ab.tmp", "old.txt", "x.bin", "young.bin"].sort(),
    );
  });

  const steps: [Step, RegExp][] = [
    ["find", /x\.bin$/],
    ["create", /\.tmp$/],
    ["write", /\.tmp$/],
    ["sync", /\.tmp$/],
    ["close", /\.tmp$/],
    ["rename", /x\.bin$/],
  ];
  const faults = steps.flatMap(([step, path]) =>
    ["ENOSPC", "EACCES", "EIO"].map((code): [Step, string, RegExp] => [step, code, path]),
  );
  it.each(faults)(
    "%s fails with %s -> the old file is whole, one line, no temp file",
    async (step, code, path) => {
      const asked = await task();
      await keepSnapshot(asked, at());
      const files = failingFiles(step, code, path);
      const changed = { ...asked, snapshot: new Uint8Array([4]) };
      expect(await keepSnapshot(changed, at({ files }))).toEqual([expect.stringContaining(code)]);
      expect(files.failures).toBeGreaterThan(0);
      expect(await bytesAt(asked.path)).toEqual(BYTES);
      expect(await readdir(join(asked.path, ".."))).toEqual(["x.bin"]);
    },
  );

  it.each<[Step, RegExp]>([
    ["list", /mcp-snapshots$/],
    ["remove", /./],
    ["find", /old\.bin$/],
  ])("%s fails while old snapshots are pruned -> no problem, the snapshot is written", async (step, path) => {
    const asked = await task();
    const old = join(asked.path, "..", "old.bin");
    await mkdir(join(old, ".."));
    await writeFile(old, "");
    await utimes(old, 1, 1);
    const files = failingFiles(step, "EIO", path);
    expect(await keepSnapshot(asked, at({ files }))).toEqual([]);
    expect(files.failures).toBeGreaterThan(0);
    expect(await bytesAt(asked.path)).toEqual(BYTES);
  });

  test("touch fails -> one line, the file stays", async () => {
    const asked = await task();
    await keepSnapshot(asked, at());
    await utimes(asked.path, 1, 1);
    const files = failingFiles("touch", "EACCES", /./);
    const problems = await keepSnapshot({ ...asked, isNew: false }, at({ files }));
    expect(problems).toEqual([expect.stringContaining("EACCES")]);
    expect(await bytesAt(asked.path)).toEqual(BYTES);
  });
});
