/** Reading and appending at a path that others decide: only regular files, at once, up to a limit. */
import { execFile } from "node:child_process";
import { appendFile, chmod, mkdir, readFile, readlink, stat, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it, onTestFinished, test } from "vitest";
import {
  appendRegular,
  readRegular,
  readRegularText,
  readStart,
  readTextOrThrow,
  regularSize,
  remedyForUnread,
  whyUnread,
} from "../../../../../workers/shared/files/read-regular.ts";
import { tempFolder } from "../../../temp-folder.ts";

const run = promisify(execFile);
const LIMIT = 1024 * 1024;

async function place(): Promise<string> {
  return join(await tempFolder(), "mcp.json");
}

const text = (path: string, limitBytes = LIMIT) => readRegularText(path, limitBytes);

/** Each makes something at the path that is not a regular file, and answers the words for it. */
const IRREGULAR: Record<string, (path: string) => Promise<string>> = {
  "a folder": async (path) => {
    await mkdir(path);
    return "a folder";
  },
  "a named pipe that nobody opens": async (path) => {
    await run("mkfifo", [path]);
    return "a named pipe";
  },
  "a socket": async (path) => {
    const server = createServer().listen(path);
    onTestFinished(() => void server.close());
    await new Promise((resolve) => server.once("listening", resolve));
    return "a socket";
  },
  "a link to a named pipe": async (path) => {
    await run("mkfifo", [`${path}.pipe`]);
    await symlink(`${path}.pipe`, path);
    return "a named pipe";
  },
  "a link to a device without an end": async (path) => {
    await symlink("/dev/zero", path);
    return "a terminal or another device";
  },
  "a link to a device that takes everything": async (path) => {
    await symlink("/dev/null", path);
    return "a terminal or another device";
  },
  "a link to the terminal": async (path) => {
    await symlink("/dev/tty", path);
    return "a terminal or another device";
  },
  "a link to a folder": async (path) => {
    await symlink("/", path);
    return "a folder";
  },
};

describe("readRegularText", () => {
  test("a regular file -> its text, with its BOM", async () => {
    const path = await place();
    await writeFile(path, "\uFEFF{} é");
    expect(await text(path)).toEqual({ kind: "text", text: "\uFEFF{} é" });
  });

  test("an empty file -> an empty text", async () => {
    const path = await place();
    await writeFile(path, "");
    expect(await text(path)).toEqual({ kind: "text", text: "" });
  });

  test("links to a regular file -> its text", async () => {
    const path = await place();
    await writeFile(`${path}.real`, "x");
    await symlink(`${path}.real`, `${path}.link`);
    await symlink(`${path}.link`, path);
    expect(await text(path)).toEqual({ kind: "text", text: "x" });
    expect(await readlink(path)).toBe(`${path}.link`);
  });

  test.each([
    ["no file", async () => undefined],
    ["a link to nothing", (path: string) => symlink(`${path}.gone`, path)],
  ])("%s -> missing", async (_what, make) => {
    const path = await place();
    await make(path);
    expect(await text(path)).toEqual({ kind: "missing" });
  });

  test("a file in the place of a folder on the way -> missing", async () => {
    const path = await place();
    await writeFile(path, "");
    expect(await text(join(path, "below"))).toEqual({ kind: "missing" });
  });

  it.each(Object.entries(IRREGULAR))("%s -> reported at once, and not read", async (_what, make) => {
    const path = await place();
    const what = await make(path);
    const read = await text(path);
    expect(read).toEqual({ kind: "irregular", what });
    if (read.kind !== "irregular") throw new Error("it was read");
    expect(whyUnread(read)).toMatch(/^(EISDIR: )?it is .*, not a regular file$/);
    expect(remedyForUnread(read)).toBe("Put a regular file there, or delete it.");
    const thrown = await readTextOrThrow(path, LIMIT).catch((error: Error) => error);
    expect(thrown).toMatchObject({ message: whyUnread(read) });
  });

  test("a link that leads back to itself -> says so", async () => {
    const path = await place();
    await symlink(path, path);
    const read = await text(path);
    if (read.kind !== "unreadable") throw new Error(read.kind);
    expect(whyUnread(read)).toBe("ELOOP: it is a link that leads back to itself");
    expect(remedyForUnread(read)).toBe("Put a regular file there, or delete it.");
  });

  test.skipIf(process.getuid?.() === 0)("a file without permission -> its code", async () => {
    const path = await place();
    await writeFile(path, "x");
    await chmod(path, 0);
    expect(await text(path)).toMatchObject({ kind: "unreadable", code: "EACCES" });
  });
});

describe("readRegular: never more than the limit", () => {
  test.each([
    ["as large as the limit", 100, "bytes"],
    ["one byte larger", 101, "too-large"],
  ])("%s -> %s bytes are %s", async (_what, size, kind) => {
    const path = await place();
    await writeFile(path, "x".repeat(size));
    expect((await readRegular(path, 100)).kind).toBe(kind);
  });

  test("a file of several chunks -> all of it", async () => {
    const path = await place();
    const whole = Buffer.from(Array.from({ length: 300_000 }, (_, i) => i % 251));
    await writeFile(path, whole);
    const read = await readRegular(path, LIMIT);
    expect(read.kind === "bytes" && Buffer.compare(read.bytes, whole)).toBe(0);
  });

  test.skipIf(process.platform !== "linux")(
    "a file of the kernel, which claims to be empty -> bounded by what is really read",
    async () => {
      expect((await stat("/proc/self/maps")).size).toBe(0);
      const read = await text("/proc/self/maps");
      expect(read.kind === "text" && read.text.length).toBeGreaterThan(100);
      expect(await text("/proc/self/maps", 100)).toEqual({ kind: "too-large", limitBytes: 100 });
    },
  );

  test("a file that grows while it is read -> never more than the limit", async () => {
    const path = await place();
    await writeFile(path, "x".repeat(1_000));
    let isRead = false;
    const growing = (async () => {
      while (!isRead) await appendFile(path, "x".repeat(1_000));
    })();
    let read = await readRegular(path, 5_000);
    while (read.kind === "bytes") {
      expect(read.bytes.length).toBeLessThanOrEqual(5_000);
      read = await readRegular(path, 5_000);
    }
    isRead = true;
    await growing;
    expect(read).toEqual({ kind: "too-large", limitBytes: 5_000 });
  });

  test.each([
    [1024 * 1024, "it is larger than 1 MiB"],
    [5_000, "it is larger than 5,000 bytes"],
  ])("a limit of %i bytes -> %s", (limitBytes, reason) => {
    expect(whyUnread({ kind: "too-large", limitBytes })).toBe(reason);
    expect(remedyForUnread({ kind: "too-large", limitBytes })).toBe("Make the file smaller, or delete it.");
  });
});

describe("readStart", () => {
  test.each([
    ["longer", 2, "ab"],
    ["shorter", 10, "abc"],
  ])("a file that is %s -> its start", async (_what, most, start) => {
    const path = await place();
    await writeFile(path, "abc");
    const read = await readStart(path, most);
    expect(read.kind === "bytes" && read.bytes.toString()).toBe(start);
  });
});

describe("appendRegular", () => {
  test("no file -> a private file with the text", async () => {
    const path = await place();
    await appendRegular(path, "one\n");
    expect(await readFile(path, "utf8")).toBe("one\n");
    expect((await stat(path)).mode & 0o777).toBe(0o600);
  });

  test("a file -> the text behind its own, the mode kept", async () => {
    const path = await place();
    await writeFile(path, "one\n");
    await chmod(path, 0o640);
    await appendRegular(path, "two é\n");
    expect(await readFile(path, "utf8")).toBe("one\ntwo é\n");
    expect((await stat(path)).mode & 0o777).toBe(0o640);
  });

  test("a link to a file -> the text in that file", async () => {
    const path = await place();
    await writeFile(`${path}.real`, "");
    await symlink(`${path}.real`, path);
    await appendRegular(path, "one\n");
    expect(await readFile(`${path}.real`, "utf8")).toBe("one\n");
  });

  it.each(Object.entries(IRREGULAR))("%s -> nothing is appended, and it has no size", async (_name, make) => {
    const path = await place();
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
    const path = await place();
    expect(await regularSize(path)).toBe(0);
    await writeFile(path, "é");
    expect(await regularSize(path)).toBe(2);
    await expect(regularSize(join(path, "x"))).rejects.toThrow("ENOTDIR");
  });
});

test.each([
  ["EMFILE", "raise the limit (ulimit)"],
  ["ENFILE", "raise the limit (ulimit)"],
  ["EACCES", "Make the file readable, or delete it."],
])("remedyForUnread: %s -> %s", (code, remedy) => {
  expect(
    remedyForUnread({ kind: "unreadable", code, error: Object.assign(new Error(code), { code }) }),
  ).toContain(remedy);
});
