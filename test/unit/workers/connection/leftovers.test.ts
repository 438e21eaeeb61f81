/**
 * What others left: a temp file of a writer that was killed, which may hold a secret, goes with the next write there; compiled
 * code goes with its age. Nothing else does.
 */
import { lutimes, mkdir, readdir, symlink, utimes, writeFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { expect, test } from "vitest";
import { LIMITS } from "../../../../src/shared/protocol/limits.ts";
import { changeConfigFile } from "../../../../workers/connection/config/edit/edit.ts";
import { keepValue } from "../../../../workers/connection/config/edit/keep-value.ts";
import { remember } from "../../../../workers/connection/config/trust/file.ts";
import { AllowedSkills } from "../../../../workers/connection/skills/allowed.ts";
import { nodeFiles, sweepCompiled, sweepTemps } from "../../../../workers/shared/files/file-system.ts";
import { tempFolder } from "../../temp-folder.ts";
import { recordingLog } from "../recording-log.ts";

const LONG_AGO = new Date(Date.now() - LIMITS.leftoverMs - 60_000);

test.each<[file: string, write: (agentDir: string, file: string) => Promise<unknown>]>([
  ["mcp.json", (_, file) => changeConfigFile(file, () => "{}")],
  [
    "mcp-keys/s.TOKEN-01234567",
    (agentDir) => keepValue(agentDir, { server: "other", name: "KEY", value: "x" }),
  ],
  ["mcp-trust.json", (_, file) => remember(file, [])],
  [
    "mcp-skills.json",
    (_, file) =>
      new AllowedSkills(file, recordingLog().log).add({ server: "s", uri: "u", name: "n", content: "c" }),
  ],
])(
  "%s -> the temp file of a killed writer goes, those of a writer at work and of others stay",
  async (name, write) => {
    const agentDir = await tempFolder();
    const file = join(agentDir, name);
    const folder = dirname(file);
    const start = name.slice(name.lastIndexOf("/") + 1);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const names = [`.${start}.0123456789ab.tmp`, `.${start}.ba9876543210.tmp`, `${start}.tmp`];
    for (const one of names) await writeFile(join(folder, one), "secret");
    for (const at of [0, 2]) await utimes(join(folder, names[at] ?? ""), LONG_AGO, LONG_AGO);
    await write(agentDir, file);
    const left = await readdir(folder);
    expect(names.filter((one) => left.includes(one))).toEqual(names.slice(1));
  },
);

test("an old link with the name of a temp file -> it goes, what it leads to stays", async () => {
  const folder = await tempFolder();
  const link = join(folder, ".mcp.json.0123456789ab.tmp");
  await mkdir(join(folder, "other"));
  await writeFile(join(folder, "other", "file"), "");
  await symlink("other", link);
  await utimes(join(folder, "other"), LONG_AGO, LONG_AGO);
  await lutimes(link, LONG_AGO, LONG_AGO);
  await sweepTemps(join(folder, "mcp.json"), nodeFiles, Date.now());
  expect([await readdir(folder), await readdir(join(folder, "other"))]).toEqual([["other"], ["file"]]);
});

test("compiled code of a month ago goes, of all versions; newer code and everything else stays", async () => {
  const folder = await tempFolder();
  const monthAgo = new Date(Date.now() - LIMITS.unusedMs - 60_000);
  const put = async (path: string, isOld: boolean): Promise<void> => {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), "");
    if (isOld) await utimes(join(folder, path), monthAgo, monthAgo);
  };
  for (const path of ["v22.19.0-x64-2d1a3b86-0/0400ba51", "v24.1.0-x64-2d1a3b86-0/1b2.Xy12zw"])
    await put(path, true);
  const kept = ["pi-mcp-threads-abc/cache.js", "v24.1.0-x64-2d1a3b86-0/mine.txt"];
  for (const path of kept) await put(path, true);
  await put("v24.1.0-x64-2d1a3b86-0/0400ba51", false);
  await sweepCompiled(folder, nodeFiles, Date.now());
  const found = await readdir(folder, { recursive: true, withFileTypes: true });
  const left = found
    .filter((one) => one.isFile())
    .map((one) => relative(folder, join(one.parentPath, one.name)));
  expect(left.toSorted()).toEqual([...kept, "v24.1.0-x64-2d1a3b86-0/0400ba51"].toSorted());
});
