/** Owns: a change of a configuration file on the user's word loses no text that another program writes meanwhile. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { lstatSync, writeFileSync } from "node:fs";
import { lstat, readdir, readFile, readlink, symlink } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import {
  changeConfigFile,
  editEnabled,
  writeEdited,
  writeEnabled,
} from "../../../../../../workers/connection/config/edit/edit.ts";
import { oneFile } from "../../../../../support/one-file.ts";
import { put, temporaryFolder } from "../support.ts";

const EDITS = 12;
const PROGRAM = join(import.meta.dirname, "../../../../../fixtures/edits/switches-servers.ts");

const read = (file: string): Promise<string> => readFile(file, "utf8");

/** Names of the servers that the file disables. */
async function switchedOff(file: string): Promise<string[]> {
  const { mcpServers } = JSON.parse(await read(file)) as {
    mcpServers: Record<string, { enabled?: boolean }>;
  };
  return Object.keys(mcpServers).filter((name) => mcpServers[name]?.enabled === false);
}

test("two processes that each disable twelve servers at once -> all twenty-four are disabled", async () => {
  const folder = await temporaryFolder();
  const file = join(folder, "mcp.json");
  const names = ["a", "b"].flatMap((prefix) => Array.from({ length: EDITS }, (_, i) => `${prefix}${i}`));
  await put(file, { mcpServers: Object.fromEntries(names.map((name) => [name, { command: "x" }])) });
  const program = oneFile("switches-servers", PROGRAM).file;
  const writers = ["a", "b"].map((prefix) =>
    spawn(process.execPath, [program, file, prefix, String(EDITS)], { stdio: ["pipe", "pipe", "inherit"] }),
  );
  onTestFinished(() => {
    for (const writer of writers) writer.kill("SIGKILL");
  });
  await Promise.all(writers.map(({ stdout }) => once(stdout, "data")));
  const ends = writers.map((writer) => once(writer, "exit"));
  for (const { stdin } of writers) stdin.write("go\n");
  expect(await Promise.all(ends)).toEqual([
    [0, null],
    [0, null],
  ]);
  expect(await switchedOff(file)).toEqual(names);
  expect(await readdir(folder)).toEqual(["mcp.json"]);
});

test("an editor saves between our read and our write -> both changes are in the file", async () => {
  const file = join(await temporaryFolder(), "mcp.json");
  await put(file, { mcpServers: { a: { command: "x" } } });
  let calls = 0;
  await changeConfigFile(file, (text) => {
    // The second call is the one whose result is written.
    if (++calls === 2)
      writeFileSync(file, '{"mcpServers": {"a": {"command": "saved"}, "b": {"command": "new"}}}');
    return editEnabled(text, "a", false, file);
  });
  expect(JSON.parse(await read(file))).toEqual({
    mcpServers: { a: { command: "saved", enabled: false }, b: { command: "new" } },
  });
});

test("an editor breaks the file meanwhile -> the editor's text stays, and the error names the position", async () => {
  const file = join(await temporaryFolder(), "mcp.json");
  await put(file, { mcpServers: { a: { command: "x" } } });
  let calls = 0;
  const changing = changeConfigFile(file, (text) => {
    if (++calls === 2) writeFileSync(file, '{"mcpServers": ');
    return editEnabled(text, "a", false, file);
  });
  await expect(changing).rejects.toMatchObject({
    code: "bad_config",
    message: expect.stringContaining("not valid JSON"),
  });
  expect(await read(file)).toBe('{"mcpServers": ');
});

test("another program keeps changing the file -> the change is given up, the program's text stays", async () => {
  const folder = await temporaryFolder();
  const file = join(folder, "mcp.json");
  await put(file, "0");
  let calls = 0;
  const changing = changeConfigFile(file, () => {
    writeFileSync(file, String(++calls));
    return "mine";
  });
  await expect(changing).rejects.toMatchObject({
    code: "bad_config",
    message: `${file} could not be written: other programs keep changing it.`,
  });
  expect(await read(file)).toBe(String(calls));
  expect(await readdir(folder)).toEqual(["mcp.json"]);
});

test("another program saves while the user edits -> bad_config, the other program's text stays", async () => {
  const file = join(await temporaryFolder(), "mcp.json");
  await put(file, "saved meanwhile");
  await expect(writeEdited(file, { before: "as it was", text: "mine" })).rejects.toMatchObject({
    code: "bad_config",
    message: `${file} has changed meanwhile; nothing was written.`,
  });
  expect(await read(file)).toBe("saved meanwhile");
  await writeEdited(file, { before: "saved meanwhile", text: "mine" });
  expect(await read(file)).toBe("mine");
});

test("the file is a link -> the link stays, its target is changed", async () => {
  const folder = await temporaryFolder();
  const real = join(folder, "dotfiles", "pi", "mcp.json");
  await put(real, { mcpServers: { a: { command: "x" } } });
  const link = join(folder, "mcp.json");
  await symlink(join("dotfiles", "pi", "mcp.json"), link);
  await writeEnabled(link, "a", false);
  expect((await lstat(link)).isSymbolicLink()).toBe(true);
  expect(await readlink(link)).toBe(join("dotfiles", "pi", "mcp.json"));
  expect(await switchedOff(real)).toEqual(["a"]);
  expect([await readdir(folder), await readdir(join(folder, "dotfiles", "pi"))]).toEqual([
    ["dotfiles", "mcp.json"],
    ["mcp.json"],
  ]);
});

test("the file holds the change already -> it is not written again", async () => {
  const file = join(await temporaryFolder(), "mcp.json");
  await put(file, '{"mcpServers": {"a": {"enabled": false}}}');
  const { ino } = lstatSync(file);
  await writeEnabled(file, "a", false);
  expect(lstatSync(file).ino).toBe(ino);
});

test("a server with the name of a property that every object has -> changed like any other", async () => {
  const file = join(await temporaryFolder(), "mcp.json");
  await put(file, { mcpServers: {} });
  await writeEnabled(file, "constructor", false);
  expect(await switchedOff(file)).toEqual(["constructor"]);
});
