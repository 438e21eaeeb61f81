/** Owns: finding and reading the snapshot of a working directory, whatever kind of file is there. */
import { execFile } from "node:child_process";
import { mkdir, rename, symlink, writeFile } from "node:fs/promises";
import { basename, dirname } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it, test } from "vitest";
import { readCatalog, snapshotPath } from "../../../src/catalog/store.ts";
import { makeSnapshotBytes } from "../make-catalog.ts";
import { tempFolder } from "../temp-folder.ts";

const BYTES = makeSnapshotBytes([{ name: "fs", tools: [{ tool: "read" }] }]);

async function store(content: Uint8Array | string, cwd = "/project"): Promise<string> {
  const agentDir = await tempFolder();
  const path = snapshotPath(agentDir, { cwd });
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, content);
  return agentDir;
}

describe("snapshotPath", () => {
  test("a working directory -> a .bin file below mcp-snapshots with a fixed-length name", () => {
    const path = snapshotPath("/agent", { cwd: "/some/long/folder".repeat(50) });
    expect(dirname(path)).toBe("/agent/mcp-snapshots");
    expect(basename(path)).toMatch(/^[0-9a-f]{32}\.bin$/);
  });

  test("two working directories -> two files", () => {
    expect(snapshotPath("/agent", { cwd: "/a" })).not.toBe(snapshotPath("/agent", { cwd: "/b" }));
    const other = snapshotPath("/agent", { cwd: "/a", configFile: "/x.json" });
    expect(other).not.toBe(snapshotPath("/agent", { cwd: "/a" }));
    expect(other).not.toBe(snapshotPath("/agent", { cwd: "/a", configFile: "/y.json" }));
  });
});

describe("readCatalog", () => {
  test("a stored snapshot -> its catalog", async () => {
    const catalog = readCatalog(await store(BYTES), { cwd: "/project" });
    expect(catalog.tools.map((tool) => tool.name)).toEqual(["fs__read"]);
    expect(catalog.checksum).toBeTypeOf("number");
  });

  test("a snapshot of another working directory -> empty", async () => {
    expect(readCatalog(await store(BYTES), { cwd: "/other" }).checksum).toBeUndefined();
  });

  it.each([
    ["an empty file", ""],
    ["text", "no snapshot"],
    ["half a snapshot", BYTES.subarray(0, BYTES.length / 2)],
    ["a snapshot with more behind it", Buffer.concat([BYTES, BYTES])],
  ])("%s -> empty", async (_name, content) => {
    expect(readCatalog(await store(content), { cwd: "/project" })).toMatchObject({
      checksum: undefined,
      tools: [],
    });
  });

  test("no folder at all -> empty", async () => {
    expect(readCatalog(`${await tempFolder()}/nowhere`, { cwd: "/project" }).checksum).toBeUndefined();
  });

  test("a folder instead of the file -> empty", async () => {
    const agentDir = await tempFolder();
    await mkdir(snapshotPath(agentDir, { cwd: "/project" }), { recursive: true });
    expect(readCatalog(agentDir, { cwd: "/project" }).checksum).toBeUndefined();
  });

  test.each([
    ["a named pipe that nobody writes to", (path: string) => promisify(execFile)("mkfifo", [path])],
    ["a link to a device without an end", (path: string) => symlink("/dev/zero", path)],
    ["a link to itself", (path: string) => symlink(path, path)],
  ])("%s in the place of the file -> empty, at once", async (_name, make) => {
    const agentDir = await tempFolder();
    const path = snapshotPath(agentDir, { cwd: "/project" });
    await mkdir(dirname(path), { recursive: true });
    await make(path);
    expect(readCatalog(agentDir, { cwd: "/project" }).checksum).toBeUndefined();
  });

  test("a link to a snapshot -> its catalog", async () => {
    const agentDir = await store(BYTES);
    const path = snapshotPath(agentDir, { cwd: "/project" });
    await rename(path, `${path}.real`);
    await symlink(`${path}.real`, path);
    expect(readCatalog(agentDir, { cwd: "/project" }).checksum).toBeTypeOf("number");
  });

  test("a file instead of the agent folder -> empty", async () => {
    const file = `${await tempFolder()}/file`;
    await writeFile(file, "");
    expect(readCatalog(file, { cwd: "/project" }).checksum).toBeUndefined();
  });
});
