/** A writer that was killed leaves a temp file, which may hold a secret: the next one that writes there removes it, and nothing else. */
import { lutimes, mkdir, readdir, symlink, utimes, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { LIMITS } from "../../../../src/shared/protocol/limits.ts";
import { changeConfigFile } from "../../../../workers/connection/config/edit/edit.ts";
import { keepValue } from "../../../../workers/connection/config/edit/keep-value.ts";
import { remember } from "../../../../workers/connection/config/trust/file.ts";
import { AllowedSkills } from "../../../../workers/connection/skills/allowed.ts";
import { nodeFiles, sweepTemps } from "../../../../workers/shared/files/file-system.ts";
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
