/** Statistics: what is written, when, and what it adds up to. */
import { appendFile, readFile, stat } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
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

test("calls are gathered and appended as lines, in order, privately", async () => {
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

test("a file that cannot be written is told once and costs nothing else", async () => {
  const problems: string[] = [];
  const stats = createStats({
    path: await tempFolder(),
    flushDelayMs: 0,
    onProblem: (text) => problems.push(text),
  });
  for (let i = 0; i < 3; i++) {
    stats.record(entry());
    await stats.flush();
  }
  expect(problems).toEqual([
    expect.stringMatching(
      /^Statistics of MCP calls cannot be written to \/.*: EISDIR.* Set captureStats\.path/,
    ),
  ]);
});

test("by tool, the one that received most first, with tokens saved", () => {
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

test("no file, no calls", async () => {
  const path = join(await tempFolder(), "none");
  expect(await readStats(path)).toEqual({ tools: [], moreTools: 0, tokensSaved: 0 });
});

test("a file that cannot be read -> says which, and what to set", async () => {
  const path = await tempFolder();
  await expect(readStats(path)).rejects.toMatchObject({
    code: "bad_config",
    message: expect.stringContaining(`${path} cannot be read: EISDIR`),
  });
});
