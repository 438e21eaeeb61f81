/** A value that a person types is kept where nobody else can read it, or not at all. */
import { chmod, mkdir, readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { keepValue } from "../../../../../../workers/connection/config/edit/keep-value.ts";
import { refuseChmod } from "../../../../refused-chmod.ts";
import { tempFolder } from "../../../../temp-folder.ts";

const VALUE = { server: "s", name: "TOKEN", value: "hunter2" };

test("a folder that others may open -> made private first", async () => {
  const agentDir = await tempFolder();
  await mkdir(join(agentDir, "mcp-keys"));
  await chmod(join(agentDir, "mcp-keys"), 0o755);
  const { file } = await keepValue(agentDir, VALUE);
  expect(await readFile(file, "utf8")).toBe("hunter2\n");
  expect((await stat(join(agentDir, "mcp-keys"))).mode & 0o777).toBe(0o700);
});

test("a file system that refuses chmod, and a folder that others may open -> nothing is written", async () => {
  const agentDir = await tempFolder();
  await mkdir(join(agentDir, "mcp-keys"));
  await chmod(join(agentDir, "mcp-keys"), 0o755);
  await refuseChmod();
  await expect(keepValue(agentDir, VALUE)).rejects.toThrow("EPERM");
  expect(await readdir(join(agentDir, "mcp-keys"))).toEqual([]);
});

test("a file system that refuses chmod, and a private folder -> written", async () => {
  const agentDir = await tempFolder();
  await refuseChmod();
  const { file } = await keepValue(agentDir, VALUE);
  expect(await readFile(file, "utf8")).toBe("hunter2\n");
});
