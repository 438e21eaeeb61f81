/** Owns: which servers are remembered as left out, and for how long. */
import { execFile } from "node:child_process";
import { readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { LIMITS } from "../../../../../src/shared/protocol/limits.ts";
import { LeftOutServers, leftOutPath } from "../../../../../workers/connection/catalog/left-out.ts";
import { tempFolder } from "../../../temp-folder.ts";
import { recordingLog } from "../../recording-log.ts";

async function open(folder: string, hashes: Record<string, string> = { evil: "h1", good: "h2" }) {
  const path = leftOutPath(join(folder, "abc.bin"));
  const { log, lines } = recordingLog();
  const leftOut = new LeftOutServers({ path: () => path, hashOf: (name) => hashes[name] ?? "", log });
  await leftOut.load();
  return { path, leftOut, lines, hashes };
}

const mark = (at: number, configHash = "h1") => ({ version: 1, servers: { evil: { configHash, at } } });

describe("LeftOutServers", () => {
  test("a server that was left out -> left out in the next session, too; the file is private", async () => {
    const folder = await tempFolder();
    const { leftOut, path } = await open(folder);
    expect(leftOut.has("evil")).toBe(false);
    leftOut.add("evil");
    await leftOut.saved();
    expect([leftOut.has("evil"), leftOut.has("good")]).toEqual([true, false]);
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    const next = await open(folder);
    expect([next.leftOut.has("evil"), next.leftOut.has("good")]).toEqual([true, false]);
  });

  test("another definition, or the user asks for it -> tried again", async () => {
    const folder = await tempFolder();
    const first = await open(folder);
    first.leftOut.add("evil");
    first.leftOut.add("good");
    first.hashes.evil = "h3";
    expect([first.leftOut.has("evil"), first.leftOut.has("good")]).toEqual([false, true]);
    expect([first.leftOut.forget("good"), first.leftOut.forget("good")]).toEqual([true, false]);
    expect(first.leftOut.has("good")).toBe(false);
    await first.leftOut.saved();
    expect((await open(folder)).leftOut.has("good")).toBe(false);
  });

  test("a definition whose hash is unknown -> remembered in this session only", async () => {
    const folder = await tempFolder();
    const { leftOut, path } = await open(folder, {});
    leftOut.add("evil");
    await leftOut.saved();
    expect(leftOut.has("evil")).toBe(true);
    expect(JSON.parse(await readFile(path, "utf8"))).toEqual({ version: 1, servers: {} });
  });

  test.each<[string, boolean, string]>([
    ["recent", true, JSON.stringify(mark(Date.now() - 1_000))],
    ["a day old", false, JSON.stringify(mark(Date.now() - LIMITS.leftOutMs))],
    ["from the future", false, JSON.stringify(mark(Date.now() + 2 * LIMITS.clockSkewMs))],
    ["of another definition", false, JSON.stringify(mark(Date.now(), "h9"))],
    ["of another version", false, JSON.stringify({ ...mark(Date.now()), version: 2 })],
    ["not JSON", false, "{"],
    ["not an object", false, "[]"],
    ["without a time", false, JSON.stringify({ version: 1, servers: { evil: { configHash: "h1" } } })],
    ["larger than any real one", false, JSON.stringify({ ...mark(Date.now()), more: "x".repeat(70_000) })],
  ])("a file that is %s -> left out: %s", async (_name, isLeftOut, text) => {
    const folder = await tempFolder();
    await writeFile(leftOutPath(join(folder, "abc.bin")), text);
    const { leftOut, lines } = await open(folder);
    expect([leftOut.has("evil"), lines]).toEqual([isLeftOut, []]);
  });

  test("a named pipe in the place of the file -> not waited for, each server is tried", async () => {
    const folder = await tempFolder();
    await promisify(execFile)("mkfifo", [leftOutPath(join(folder, "abc.bin"))]);
    const { leftOut } = await open(folder);
    expect(leftOut.has("evil")).toBe(false);
  });

  test("a file that cannot be written -> one line in the log, remembered all the same", async () => {
    const file = join(await tempFolder(), "file");
    await writeFile(file, "");
    const { leftOut, lines } = await open(file);
    leftOut.add("evil");
    await leftOut.saved();
    expect(leftOut.has("evil")).toBe(true);
    expect(lines).toEqual([expect.stringContaining("could not be written")]);
  });
});
