/** The log file: its lines and its rotation. A log that fails costs nothing else. */

import { execFile } from "node:child_process";
import { mkdir, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it, test, vi } from "vitest";
import { LIMITS } from "../../../../src/shared/protocol/limits.ts";
import { createLog, isFileGone } from "../../../../workers/shared/log.ts";
import { PATIENCE_MS } from "../../../support/patience.ts";
import { tempFolder } from "../../temp-folder.ts";

const run = promisify(execFile);
const logFile = async (): Promise<string> => join(await tempFolder(), "agent", "mcp-threads.log");
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/;

describe("createLog", () => {
  test("each level -> one line with time, level and label, in a private file", async () => {
    const file = await logFile();
    const log = createLog({ file, label: "connection#1" });
    log.debug("one");
    log.info("two");
    log.warn("three");
    log.error("four");
    log.write("info", "five", "main");
    await log.flush();
    const lines = (await readFile(file, "utf8")).split("\n");
    expect(lines.pop()).toBe("");
    for (const line of lines) expect(line).toMatch(TIME);
    expect(lines.map((line) => line.replace(TIME, ""))).toEqual([
      " debug [connection#1] one",
      " info  [connection#1] two",
      " warn  [connection#1] three",
      " error [connection#1] four",
      " info  [main] five",
    ]);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
  });

  it.each([
    [
      "a newline",
      "a\n2026-01-01T00:00:00.000Z info  [main] forged",
      "a\n    2026-01-01T00:00:00.000Z info  [main] forged",
    ],
    ["CRLF", "a\r\nb", "a\n    b"],
    ["a carriage return alone", "a\rb", "a\\x0db"],
    ["an escape sequence", "\u001b[31mred", "\\x1b[31mred"],
    ["a null byte", "a\u0000b", "a\\x00b"],
    ["DEL and C1 controls", "\u007f\u009b", "\\x7f\\x9b"],
    ["a tab", "a\tb", "a\tb"],
    ["line ends of Unicode", "a\u2028b\u2029", "a\\u2028b\\u2029"],
    ["what turns text around", "\u202eabc\u2066", "\\u202eabc\\u2066"],
    ["what nobody sees", "a\u200bb\u{e0041}", "a\\u200bb\\udb40\\udc41"],
    ["marks that turn text around", "\u200fabc\u200e\u061c", "\\u200fabc\\u200e\\u061c"],
    ["text of several scripts", "é漢😀", "é漢😀"],
  ])("%s in a message -> cannot forge a line", async (_name, message, written) => {
    const file = await logFile();
    const log = createLog({ file, label: "x" });
    log.info(message);
    await log.flush();
    expect((await readFile(file, "utf8")).replace(TIME, "")).toBe(` info  [x] ${written}\n`);
  });

  test("a very long message -> cut", async () => {
    const file = await logFile();
    const log = createLog({ file, label: "x" });
    log.info("y".repeat(100_000));
    await log.flush();
    expect((await stat(file)).size).toBeLessThan(5_000);
  });

  test("an existing file -> appended to", async () => {
    const file = await logFile();
    for (const message of ["one", "two"]) {
      const log = createLog({ file, label: "x" });
      log.info(message);
      await log.flush();
    }
    expect((await readFile(file, "utf8")).split("\n")).toHaveLength(3);
  });

  test("a line and a flush right behind it, as at the end of a session -> no pause of a burst", async () => {
    const file = await logFile();
    const log = createLog({ file, label: "x" });
    // A pause would never end.
    vi.useFakeTimers({ toFake: ["setTimeout"] });
    try {
      log.info("stopped");
      await log.flush();
    } finally {
      vi.useRealTimers();
    }
    expect(await readFile(file, "utf8")).toContain("stopped");
  });

  test("writes after a flush, and a flush of nothing -> settle", async () => {
    const file = await logFile();
    const log = createLog({ file, label: "x" });
    await log.flush();
    log.info("one");
    await log.flush();
    log.info("two");
    await log.flush();
    expect((await readFile(file, "utf8")).match(/one|two/g)).toEqual(["one", "two"]);
  });

  test("a burst of lines -> the first one at once, the others with the next that is urgent, all in order", async () => {
    const file = await logFile();
    const log = createLog({ file, label: "x" });
    const lines = async (): Promise<string[]> =>
      (await readFile(file, "utf8").catch(() => "")).match(/\d+$/gm) ?? [];
    const expected = Array.from({ length: 20 }, (_, i) => String(i));
    log.info("0");
    await vi.waitFor(async () => expect(await lines()).toEqual(["0"]), PATIENCE_MS);
    for (const line of expected.slice(1)) {
      log.info(line);
      await Promise.resolve();
    }
    log.error("20");
    await vi.waitFor(async () => expect(await lines()).toEqual([...expected, "20"]), PATIENCE_MS);
    log.info("21");
    await log.flush();
    expect(await lines()).toEqual([...expected, "20", "21"]);
  });

  test("lines that nobody flushes -> in the file when the process ends by itself", async () => {
    const file = await logFile();
    const url = new URL("../../../../workers/shared/log.ts", import.meta.url).href;
    const code = `const { createLog } = await import(${JSON.stringify(url)});
      const log = createLog({ file: ${JSON.stringify(file)}, label: "x" });
      for (let i = 0; i < 5; i++) { log.info("line"); await new Promise((done) => setTimeout(done, 5)); }`;
    await run(process.execPath, ["--input-type=module", "-e", code]);
    expect((await readFile(file, "utf8")).match(/line/g)).toHaveLength(5);
  });

  test("a file at its limit -> rotated, one older file kept", async () => {
    const file = await logFile();
    await mkdir(join(file, ".."), { recursive: true });
    await writeFile(`${file}.1`, "oldest");
    await writeFile(file, "o".repeat(LIMITS.logBytes));
    const log = createLog({ file, label: "x" });
    log.info("fresh");
    await log.flush();
    expect(await readdir(join(file, ".."))).toEqual(["mcp-threads.log", "mcp-threads.log.1"]);
    expect((await stat(`${file}.1`)).size).toBe(LIMITS.logBytes);
    expect((await readFile(file, "utf8")).split("\n")).toHaveLength(2);
  });

  test("a file with room for the characters but not for their bytes -> rotated", async () => {
    const file = await logFile();
    await mkdir(join(file, ".."), { recursive: true });
    await writeFile(file, "o".repeat(LIMITS.logBytes - 150));
    const log = createLog({ file, label: "x" });
    log.info("漢".repeat(90));
    await log.flush();
    expect((await stat(`${file}.1`)).size).toBe(LIMITS.logBytes - 150);
  });

  test("a burst larger than the limit into a new file -> nothing is lost", async () => {
    const file = await logFile();
    const log = createLog({ file, label: "x" });
    const count = Math.ceil(LIMITS.logBytes / 4_000) + 5;
    for (let i = 0; i < count; i++) log.info("y".repeat(4_000));
    await log.flush();
    const files = await readdir(join(file, ".."));
    const sizes = await Promise.all(files.map(async (name) => (await stat(join(file, "..", name))).size));
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeGreaterThan(count * 4_000);
  });

  test("a path that cannot be written -> neither throws nor rejects, flush settles", async () => {
    const folder = await tempFolder();
    await writeFile(join(folder, "file"), "");
    const log = createLog({ file: join(folder, "file", "x.log"), label: "x" });
    log.info("one");
    await log.flush();
    log.info("two");
    await log.flush();
    expect(await readdir(folder)).toEqual(["file"]);
  });

  test.each<[string, (file: string) => Promise<unknown>]>([
    ["a named pipe that nobody reads", (file) => run("mkfifo", [file])],
    ["a link to a device", (file) => symlink("/dev/null", file)],
  ])(
    "%s in the place of the file -> nothing is written, flush settles, no file is rotated",
    async (_name, make) => {
      const file = await logFile();
      await mkdir(dirname(file), { recursive: true });
      await make(file);
      const log = createLog({ file, label: "x" });
      log.info("one");
      await log.flush();
      expect(await readdir(dirname(file))).toEqual(["mcp-threads.log"]);
      expect((await stat(file)).isFile()).toBe(false);
    },
  );

  test("a path that can be written again -> later lines get there", async () => {
    const file = await logFile();
    await mkdir(file, { recursive: true });
    const log = createLog({ file, label: "x" });
    log.info("lost");
    await log.flush();
    await rm(file, { recursive: true });
    log.info("kept");
    await log.flush();
    expect(await readFile(file, "utf8")).toMatch(/kept\n$/);
  });
});

const gone = Object.assign(new Error("Cannot find module"), { code: "ERR_MODULE_NOT_FOUND" });

test.each<[string, unknown, boolean]>([
  ["the error of an import()", gone, true],
  ["of a thread", Object.assign(new Error("no worker.js"), { code: "MODULE_NOT_FOUND" }), true],
  ["an error that it caused", new Error("web: failed", { cause: new Error("inner", { cause: gone }) }), true],
  ["a file of the user that is not there", Object.assign(new Error("no"), { code: "ENOENT" }), false],
  [
    "an error that causes itself",
    Object.assign(new Error("a"), {
      get cause() {
        return this;
      },
    }),
    false,
  ],
  ["no error", undefined, false],
])("%s -> %#", (_, error, expected) => {
  expect(isFileGone(error)).toBe(expected);
});
