import * as fs from "node:fs";
import { dirname, isAbsolute, join } from "node:path";
import { expect, test } from "vitest";
import { codeFolder } from "../../../../src/shared/process/code-folder.ts";
import { tempFolder } from "../../temp-folder.ts";

const uid = process.getuid?.() ?? 0;
const look = (agentDir: string, user = uid): string | undefined =>
  codeFolder(agentDir, { fs, path: { dirname, isAbsolute, join }, uid: user });

async function makeAgentFolder(): Promise<{ agentDir: string; code: string }> {
  const agentDir = join(await tempFolder(), "agent");
  fs.mkdirSync(agentDir);
  return { agentDir, code: join(agentDir, "mcp-code") };
}

/** The mode counts in full, without the umask. */
function makeFolder(path: string, mode: number): void {
  fs.mkdirSync(path);
  fs.chmodSync(path, mode);
}

test("no folder yet -> it is made, for the user alone", async () => {
  const { agentDir, code } = await makeAgentFolder();
  expect(look(agentDir)).toBe(code);
  expect(fs.statSync(code).mode & 0o777).toBe(0o700);
  expect(look(agentDir)).toBe(code);
});

test("no agent folder -> none is made", async () => {
  const { agentDir } = await makeAgentFolder();
  expect(look(join(agentDir, "none"))).toBeUndefined();
  expect(fs.readdirSync(agentDir)).toEqual([]);
});

test.each([
  ["the group may write the folder", 0o770],
  ["all may write the folder", 0o777],
  ["all may write the folder, which is sticky", 0o1777],
])("%s -> no cache", async (_name, mode) => {
  const { agentDir, code } = await makeAgentFolder();
  makeFolder(code, mode);
  expect(look(agentDir)).toBeUndefined();
});

test("the folder, or one above it, belongs to another user -> no cache", async () => {
  const { agentDir, code } = await makeAgentFolder();
  makeFolder(code, 0o700);
  expect(look(agentDir, uid + 1)).toBeUndefined();
  const other = { ...fs, lstatSync: (path: string) => withOwner(path, path === agentDir ? uid + 1 : uid) };
  expect(codeFolder(agentDir, { fs: other, path: { dirname, isAbsolute, join }, uid })).toBeUndefined();
});

const withOwner = (path: string, owner: number) => {
  const found = fs.lstatSync(path);
  return { uid: owner, mode: found.mode, isDirectory: () => found.isDirectory() };
};

test("all may write a folder above it -> no cache, unless that is sticky", async () => {
  const { agentDir, code } = await makeAgentFolder();
  fs.chmodSync(agentDir, 0o777);
  expect(look(agentDir)).toBeUndefined();
  fs.chmodSync(agentDir, 0o1777);
  expect(look(agentDir)).toBe(code);
});

test("a link -> the folder that it leads to counts", async () => {
  const { agentDir, code } = await makeAgentFolder();
  const open = join(agentDir, "open");
  makeFolder(open, 0o777);
  fs.symlinkSync(open, code);
  expect(look(agentDir)).toBeUndefined();
  fs.chmodSync(open, 0o700);
  expect(look(agentDir)).toBe(open);
});

test("a file in its place, a link to nothing -> no cache", async () => {
  const { agentDir, code } = await makeAgentFolder();
  fs.writeFileSync(code, "");
  expect(look(agentDir)).toBeUndefined();
  fs.rmSync(code);
  fs.symlinkSync(join(agentDir, "nothing"), code);
  expect(look(agentDir)).toBeUndefined();
});

test("a relative agent folder -> no cache, and nothing is made in the folder of the process", () => {
  const made = fs.existsSync("mcp-code");
  expect(look(".")).toBeUndefined();
  expect(look("")).toBeUndefined();
  expect(fs.existsSync("mcp-code")).toBe(made);
});
