/** Owns: the folder in which npm runs for servers of the user holds our own files, whatever lay there before. */
import { execFile } from "node:child_process";
import { mkdir, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { beforeEach, describe, expect, test } from "vitest";
import { neutralFolder } from "../../../../../workers/connection/npx/launch.ts";
import { tempFolder } from "../../../temp-folder.ts";

const FILES = ["package.json", "shell.sh"];

let folder: string;
beforeEach(async () => {
  folder = join(await tempFolder(), "mcp-npm");
});

const contents = (): Promise<string[]> =>
  Promise.all(FILES.map((name) => readFile(join(folder, name), "utf8")));

test("a new folder -> a package of its own and a shell, for the user alone", async () => {
  expect(await neutralFolder(folder)).toEqual({ path: folder, shell: join(folder, "shell.sh") });
  expect((await readdir(folder)).toSorted()).toEqual(FILES);
  expect((await stat(folder)).mode & 0o777).toBe(0o700);
  expect((await stat(join(folder, "package.json"))).mode & 0o777).toBe(0o600);
  expect((await stat(join(folder, "shell.sh"))).mode & 0o777).toBe(0o700);
});

test("made before -> its files are not written again", async () => {
  await neutralFolder(folder);
  const inodes = (): Promise<number[]> =>
    Promise.all(FILES.map(async (name) => (await stat(join(folder, name))).ino));
  const before = await inodes();
  await neutralFolder(folder);
  expect(await inodes()).toEqual(before);
});

describe("a file that is not ours lies there -> replaced", () => {
  test.each<[string, (path: string) => Promise<unknown>]>([
    ["another text", (path) => writeFile(path, '{"workspaces":["/evil"]}')],
    ["a text of 2 MiB", (path) => writeFile(path, "x".repeat(2 ** 21))],
    ["a named pipe that nobody writes to", (path) => promisify(execFile)("mkfifo", [path])],
  ])("%s", async (_name, put) => {
    await neutralFolder(folder);
    const ours = await contents();
    for (const name of FILES) {
      await rm(join(folder, name));
      await put(join(folder, name));
    }
    expect((await neutralFolder(folder)).shell).toBe(join(folder, "shell.sh"));
    expect(await contents()).toEqual(ours);
    expect((await readdir(folder)).toSorted()).toEqual(FILES);
  });
});

test("a folder where a file should be -> npm runs in the home folder, without a shell of ours", async () => {
  await mkdir(join(folder, "package.json"), { recursive: true });
  expect(await neutralFolder(folder)).toEqual({ path: homedir(), shell: undefined });
});
