/** Owns: what the doctor says about the extension's folder, its log, and files that others can read. */
import { chmod, mkdir, readdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import {
  checkPlace,
  judgeFolder,
  judgeLog,
  judgeModes,
} from "../../../../../workers/connection/doctor/configuration.ts";
import { type LookedAt, thisMachine } from "../../../../../workers/connection/doctor/machine.ts";
import { temporaryFolder } from "../config/support.ts";
import { makeInput } from "./support.ts";

describe("judgeFolder", () => {
  test.each([
    ["it can be written", undefined, 10 ** 9, undefined],
    ["the size is unknown", undefined, undefined, undefined],
    ["nearly full", undefined, 5 * 1024 * 1024, "warning: Only 5 MB are free on the disk."],
    ["full", "ENOSPC", 0, "error: Nothing can be written into the extension's folder: the disk is full."],
    [
      "no right",
      "EACCES",
      10 ** 9,
      "error: Nothing can be written into the extension's folder: you have no right to it.",
    ],
    [
      "read-only",
      "EROFS",
      10 ** 9,
      "error: Nothing can be written into the extension's folder: the file system is read-only.",
    ],
    [
      "another error",
      "EIO",
      10 ** 9,
      "error: Nothing can be written into the extension's folder: the system answers EIO.",
    ],
  ])("%s", (_title, code, free, expected) => {
    const found = judgeFolder("/a", code, free);
    expect(found && `${found.severity}: ${found.title}`).toBe(expected);
  });
});

const looked = (over: Partial<LookedAt>): LookedAt => ({
  kind: "file",
  mode: 0o100600,
  size: 10,
  canWrite: true,
  ...over,
});

describe("judgeModes", () => {
  test.each([
    ["private", [looked({})], undefined],
    ["nothing there", [undefined], undefined],
    ["others can read", [looked({ mode: 0o100644 }), looked({})], "/f0."],
    ["more than five", Array.from({ length: 7 }, () => looked({ mode: 0o100644 })), "/f4 and 2 more."],
  ])("%s", (_title, all, end) => {
    const found = judgeModes(all.map((one, i) => ({ path: `/f${i}`, found: one })));
    if (end === undefined) expect(found).toBeUndefined();
    else expect(found?.title.endsWith(end)).toBe(true);
  });
});

test.each([
  ["none", undefined, undefined],
  ["well", looked({}), undefined],
  ["a folder", looked({ kind: "folder" }), "The log is no regular file, so nothing is written."],
  ["not ours", looked({ canWrite: false }), "The log cannot be written."],
  ["too large", looked({ size: 11 * 1024 * 1024 }), "The log has 11 MB: it is not rotated."],
])("judgeLog: %s", (_title, found, expected) => {
  expect(judgeLog("/log", found)?.title).toBe(expected);
});

describe("checkPlace on this machine", () => {
  const machine = thisMachine({ env: {}, home: "/home/me", platform: "linux", cwd: "/" });
  const check = async (agentDir: string) => checkPlace(makeInput([], { agentDir, machine }));

  test("a private folder -> well, and nothing is left behind", async () => {
    const agentDir = await temporaryFolder();
    await writeFile(join(agentDir, "mcp-trust.json"), "{}", { mode: 0o600 });
    expect(await check(agentDir)).toMatchObject([{ severity: "ok" }]);
    expect(await readdir(agentDir)).toEqual(["mcp-trust.json"]);
  });

  test("tokens that others can read, a log that is a link -> both are told", async () => {
    const agentDir = await temporaryFolder();
    const folder = join(agentDir, "mcp-oauth", "s");
    await mkdir(folder, { recursive: true });
    await chmod(folder, 0o700);
    await writeFile(join(folder, "a.json"), "{}");
    await chmod(join(folder, "a.json"), 0o644);
    await symlink("/dev/null", join(agentDir, "mcp-threads.log"));
    const found = await check(agentDir);
    expect(found.map(({ id }) => id)).toEqual(["log", "file-modes"]);
    expect(found[1]?.title).toContain("/mcp-oauth/s/a.json");
  });

  test("no folder -> an error", async () => {
    expect(await check("/pmt/no/such/folder")).toMatchObject([{ id: "disk", severity: "error" }]);
  });
});
