/** Owns: which lines the statistics of calls write, when, to which files, and their summary. */
import { execFile } from "node:child_process";
import { appendFile, mkdir, readFile, stat, symlink } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { LIMITS } from "../../../../../src/shared/protocol/limits.ts";
import {
  createStats,
  readStats,
  type StatsEntry,
  statsSettings,
  summarizeStats,
} from "../../../../../workers/connection/results/stats.ts";
import { tempFolder } from "./support.ts";

const entry = (more: Partial<StatsEntry> = {}): StatsEntry => ({
  at: 1,
  server: "s",
  tool: "t",
  failed: false,
  receivedBytes: 1_000,
  shownBytes: 200,
  durationMs: 10,
  ...more,
});
const never = (message: string): never => {
  throw new Error(message);
};

test.each<[unknown, unknown]>([
  [true, { path: "/agent/mcp-stats.jsonl", flushDelayMs: 1_000 }],
  [
    { path: "/x", flushDelayMs: 0 },
    { path: "/x", flushDelayMs: 0 },
  ],
  [
    { flushDelayMs: -1, path: "" },
    { path: "/agent/mcp-stats.jsonl", flushDelayMs: 1_000 },
  ],
  [{ path: "own/stats.jsonl" }, { path: "/agent/own/stats.jsonl", flushDelayMs: 1_000 }],
  [{ path: "~/stats.jsonl" }, { path: join(homedir(), "stats.jsonl"), flushDelayMs: 1_000 }],
  [false, undefined],
  [undefined, undefined],
  ["yes", undefined],
])("settings.captureStats %j -> %j", (setting, expected) => {
  expect(statsSettings(setting, "/agent")).toEqual(expected);
});

test.each<[string, (path: string) => Promise<unknown>, string]>([
  ["a named pipe that nobody reads", (path) => promisify(execFile)("mkfifo", [path]), "it is a named pipe"],
  ["a link to a device", (path) => symlink("/dev/null", path), "it is a terminal or another device"],
  ["a folder", (path) => mkdir(path), "EISDIR: it is a folder"],
])(
  "the path leads to %s -> nothing is written or waited for, the user hears of it once",
  async (_name, put, what) => {
    const path = join(await tempFolder(), "stats.jsonl");
    await put(path);
    const problems: string[] = [];
    const stats = createStats({ path, flushDelayMs: 60_000, onProblem: (problem) => problems.push(problem) });
    for (let at = 0; at < 3; at++) {
      stats.record(entry({ at }));
      await stats.flush();
    }
    expect(problems).toEqual([
      `Statistics of MCP calls cannot be written to ${path}: ${what}, not a regular file. ` +
        "Set captureStats.path under settings in mcp.json to a file that can be.",
    ]);
  },
);

test("a link to a regular file -> the lines go there", async () => {
  const folder = await tempFolder();
  const [path, real] = [join(folder, "link"), join(folder, "real")];
  await appendFile(real, "");
  await symlink(real, path);
  const stats = createStats({ path, flushDelayMs: 60_000, onProblem: never });
  stats.record(entry());
  await stats.flush();
  expect(JSON.parse(await readFile(real, "utf8"))).toMatchObject({ server: "s" });
});

test("a hundred calls -> appended as lines in order, to a private file", async () => {
  const path = join(await tempFolder(), "below", "stats.jsonl");
  const stats = createStats({ path, flushDelayMs: 60_000, onProblem: never });
  for (let at = 0; at < 100; at++) {
    stats.record(entry({ at }));
    if (at === 50) stats.flush();
  }
  await stats.flush();
  const lines = (await readFile(path, "utf8")).trimEnd().split("\n");
  expect(lines.map((line) => (JSON.parse(line) as StatsEntry).at)).toEqual([...Array(100).keys()]);
  expect((await stat(path)).mode & 0o777).toBe(0o600);
  await appendFile(path, '{"server":"half');
  expect((await readStats(path)).tools).toMatchObject([{ calls: 100 }]);
});

test("a file that cannot be written -> the user hears of it once, and nothing else changes", async () => {
  const problems: string[] = [];
  const file = join(await tempFolder(), "file");
  await appendFile(file, "");
  const stats = createStats({
    path: join(file, "stats.jsonl"),
    flushDelayMs: 0,
    onProblem: (text) => problems.push(text),
  });
  for (let i = 0; i < 3; i++) {
    stats.record(entry());
    await stats.flush();
  }
  expect(problems).toEqual([
    expect.stringMatching(
      /^Statistics of MCP calls cannot be written to \/.*: (EEXIST|ENOTDIR).* Set captureStats\.path/,
    ),
  ]);
});

test("a summary -> by tool, the tool that received most first, with the tokens saved", () => {
  const summary = summarizeStats([
    entry(),
    entry({ failed: true, receivedBytes: 0, shownBytes: 0, durationMs: 30 }),
    entry({ tool: "big", receivedBytes: 9_000_000, shownBytes: 50_000, durationMs: 1_500 }),
  ]);
  expect(summary.tools.map(({ tool, calls, errors, meanMs }) => [tool, calls, errors, meanMs])).toEqual([
    ["big", 1, 0, 1_500],
    ["t", 2, 1, 20],
  ]);
  expect(summary.tokensSaved).toBe((9_000_000 - 50_000 + 800) / 4);
});

test.each(["itself", "behind a link"])(
  "a file at its limit, %s -> one older file is kept, and both count",
  async (where) => {
    const folder = await tempFolder();
    const path = join(folder, "real", "stats.jsonl");
    await mkdir(join(folder, "real"));
    const named = where === "itself" ? path : join(folder, "link");
    if (named !== path) await symlink(path, named);
    const line = `${JSON.stringify(entry({ tool: "old" }))}\n`;
    const old = line.repeat(Math.floor(LIMITS.logBytes / line.length));
    await appendFile(path, old);
    await appendFile(`${path}.1`, line);
    const stats = createStats({ path: named, flushDelayMs: 60_000, onProblem: never });
    for (let at = 0; at < 3; at++) stats.record(entry({ at }));
    await stats.flush();
    expect((await stat(`${path}.1`)).size).toBe(old.length);
    expect((await readFile(path, "utf8")).trimEnd().split("\n")).toHaveLength(3);
    const { tools } = await readStats(named);
    expect(tools.map(({ tool, calls }) => [tool, calls])).toEqual([
      ["old", old.length / line.length],
      ["t", 3],
    ]);
  },
);

test("no file -> no calls", async () => {
  const path = join(await tempFolder(), "none");
  expect(await readStats(path)).toEqual({ tools: [], moreTools: 0, tokensSaved: 0 });
});

test("a file that cannot be read -> an error that names the file and the setting", async () => {
  const path = await tempFolder();
  await expect(readStats(path)).rejects.toMatchObject({
    code: "bad_config",
    message: expect.stringContaining(`${path} cannot be read: EISDIR`),
  });
});
