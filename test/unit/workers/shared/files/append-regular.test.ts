/** A text is appended only to a regular file, without waiting. */
import { execFile } from "node:child_process";
import { mkdir, readFile, stat, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it, onTestFinished, test } from "vitest";
import { appendRegular, regularSize } from "../../../../../workers/shared/files/read-regular.ts";
import { tempFolder } from "../../../temp-folder.ts";

const run = promisify(execFile);
const logPath = async (): Promise<string> => join(await tempFolder(), "x.log");

/** Each makes something at the path that is not a regular file, and answers the words of the error for it. */
const IRREGULAR: Record<string, (path: string) => Promise<string>> = {
  "a folder": async (path) => {
    await mkdir(path);
    return "a folder";
  },
  "a named pipe that nobody reads": async (path) => {
    await run("mkfifo", [path]);
    return "a named pipe";
  },
  "a link to a named pipe": async (path) => {
    await run("mkfifo", [`${path}.pipe`]);
    await symlink(`${path}.pipe`, path);
    return "a named pipe";
  },
  "a socket": async (path) => {
    const server = createServer().listen(path);
    onTestFinished(() => void server.close());
    await new Promise((resolve) => server.once("listening", resolve));
    return "a socket";
  },
  "a link to a device": async (path) => {
    await symlink("/dev/null", path);
    return "a terminal or another device";
  },
  "a link to the terminal": async (path) => {
    await symlink("/dev/tty", path);
    return "a terminal or another device";
  },
};

describe("appendRegular", () => {
  test("no file -> a private file with the text", async () => {
    const path = await logPath();
    await appendRegular(path, "one\n");
    expect(await readFile(path, "utf8")).toBe("one\n");
    expect((await stat(path)).mode & 0o777).toBe(0o600);
  });

  test("a file -> the text behind its own, the mode kept", async () => {
    const path = await logPath();
    await writeFile(path, "one\n", { mode: 0o640 });
    await appendRegular(path, "two é\n");
    expect(await readFile(path, "utf8")).toBe("one\ntwo é\n");
    expect((await stat(path)).mode & 0o777).toBe(0o640);
  });

  test("a link to a file -> the text in that file", async () => {
    const path = await logPath();
    await writeFile(`${path}.real`, "");
    await symlink(`${path}.real`, path);
    await appendRegular(path, "one\n");
    expect(await readFile(`${path}.real`, "utf8")).toBe("one\n");
  });

  it.each(Object.entries(IRREGULAR))("%s -> refused at once, and so is its size", async (_name, make) => {
    const path = await logPath();
    const what = await make(path);
    // People search for the code of the system.
    const code = what === "a folder" ? "EISDIR: " : "";
    const refusal = `${path}: ${code}it is ${what}, not a regular file`;
    await expect(appendRegular(path, "one\n")).rejects.toThrow(refusal);
    await expect(regularSize(path)).rejects.toThrow(refusal);
  });
});

describe("regularSize", () => {
  test("no file -> 0; a file -> its bytes; no folder on the way -> what the file system says", async () => {
    const path = await logPath();
    expect(await regularSize(path)).toBe(0);
    await writeFile(path, "é");
    expect(await regularSize(path)).toBe(2);
    await expect(regularSize(join(path, "x"))).rejects.toThrow("ENOTDIR");
  });
});
