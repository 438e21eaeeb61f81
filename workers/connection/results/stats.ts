/**
 * Statistics of calls, unless `settings.captureStats` is false: one JSON line for each call, appended in the background, and
 * the summary of such a file. The file stays on this machine and holds names, sizes and times, never arguments or results.
 */
import { homedir } from "node:os";
import { dirname, join, resolve } from "node:path";
import type { StatsSummary, ToolStats } from "../../../src/shared/protocol/calls.ts";
import { messageOf, ThreadsError } from "../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { nodeFiles } from "../../shared/files/file-system.ts";
import { makeFolder } from "../../shared/files/owner.ts";
import { readTextOrThrow } from "../../shared/files/read-regular.ts";
import { appendRotated } from "../../shared/files/rotate.ts";
import { expandHome } from "../config/entry/interpolate.ts";

const FLUSH_DELAY_MS = 1_000;
/** Common estimate for English text and JSON. A table of savings needs no tokenizer. */
const BYTES_PER_TOKEN = 4;
/** Tools that a summary lists. */
const TOOLS_LISTED = 30;

export interface StatsEntry {
  /** Milliseconds since 1970. */
  at: number;
  server: string;
  tool: string;
  failed: boolean;
  receivedBytes: number;
  shownBytes: number;
  /** The text in the difference of the two sizes: audio in a file saves no tokens. Absent in older files. */
  savedTextBytes?: number;
  durationMs: number;
}

export interface Stats {
  record(entry: StatsEntry): void;
  /** Settles when all entries so far are in the file, or could not be written. */
  flush(): Promise<void>;
}

export interface StatsSettings {
  path: string;
  flushDelayMs: number;
}

/**
 * Reads `settings.captureStats`: `true`, or `{path?, flushDelayMs?}`. A relative path starts from the agent folder.
 * Undefined if the settings do not ask for statistics.
 */
export function statsSettings(setting: unknown, agentDir: string): StatsSettings | undefined {
  const preset = { path: join(agentDir, "mcp-stats.jsonl"), flushDelayMs: FLUSH_DELAY_MS };
  if (setting === true) return preset;
  if (typeof setting !== "object" || setting === null) return undefined;
  const { path, flushDelayMs } = setting as { path?: unknown; flushDelayMs?: unknown };
  const written = typeof path === "string" && path !== "" ? path : preset.path;
  return {
    path: resolve(agentDir, expandHome(written, { home: homedir(), platform: process.platform })),
    flushDelayMs:
      typeof flushDelayMs === "number" && flushDelayMs >= 0
        ? Math.min(flushDelayMs, LIMITS.longestTimerMs)
        : preset.flushDelayMs,
  };
}

/** `onProblem` gets the first failed write only: statistics are a courtesy. Only a regular file is written to. */
export function createStats({
  path,
  flushDelayMs,
  onProblem,
}: StatsSettings & { onProblem: (message: string) => void }): Stats {
  let lines: string[] = [];
  let timer: NodeJS.Timeout | undefined;
  let writing: Promise<void> = Promise.resolve();
  let failed = false;

  const write = async (text: string): Promise<void> => {
    try {
      await makeFolder(dirname(path));
      await appendRotated(path, text, LIMITS.logBytes);
    } catch (error) {
      if (!failed) {
        const why = messageOf(error).replace(`${path}: `, "");
        const problem = `Statistics of MCP calls cannot be written to ${path}: ${why}.`;
        onProblem(`${problem} Set captureStats.path under settings in mcp.json to a file that can be.`);
      }
      failed = true;
    }
  };
  const flush = (): Promise<void> => {
    clearTimeout(timer);
    timer = undefined;
    if (lines.length > 0) {
      const text = lines.join("");
      lines = [];
      writing = writing.then(() => write(text));
    }
    return writing;
  };
  return {
    record: (entry) => {
      lines.push(`${JSON.stringify(entry)}\n`);
      timer ??= setTimeout(flush, flushDelayMs).unref();
    },
    flush,
  };
}

const isEntry = (value: unknown): value is StatsEntry => {
  if (typeof value !== "object" || value === null) return false;
  const { server, tool, receivedBytes, shownBytes, durationMs } = value as Partial<StatsEntry>;
  const numbers = [receivedBytes, shownBytes, durationMs];
  return typeof server === "string" && typeof tool === "string" && numbers.every(Number.isFinite);
};

/** Entries in the text of a file. Any other line, such as one that is half written, is skipped. */
export function parseStats(text: string): StatsEntry[] {
  const entries: StatsEntry[] = [];
  for (const line of text.split("\n")) {
    try {
      const value: unknown = JSON.parse(line);
      if (isEntry(value)) entries.push(value);
    } catch {
      // The line is not one of ours.
    }
  }
  return entries;
}

export function summarizeStats(entries: readonly StatsEntry[]): StatsSummary {
  const groups = Map.groupBy(entries, ({ server, tool }) => JSON.stringify([server, tool]));
  const tools = [...groups.values()].map((group): ToolStats => {
    const sum = (of: (entry: StatsEntry) => number): number =>
      group.reduce((all, entry) => all + of(entry), 0);
    return {
      server: group[0]?.server ?? "",
      tool: group[0]?.tool ?? "",
      calls: group.length,
      errors: group.filter(({ failed }) => failed).length,
      receivedBytes: sum(({ receivedBytes }) => receivedBytes),
      shownBytes: sum(({ shownBytes }) => shownBytes),
      meanMs: sum(({ durationMs }) => durationMs) / group.length,
    };
  });
  tools.sort((a, b) => b.receivedBytes - a.receivedBytes);
  const savedBytes = entries.reduce(
    (all, { receivedBytes, shownBytes, savedTextBytes }) =>
      all + (savedTextBytes ?? receivedBytes - shownBytes),
    0,
  );
  return {
    tools: tools.slice(0, TOOLS_LISTED),
    moreTools: Math.max(0, tools.length - TOOLS_LISTED),
    tokensSaved: Math.max(0, Math.round(savedBytes / BYTES_PER_TOKEN)),
  };
}

/** Node's longest string. */
const FILE_BYTES = 512 * 1024 * 1024;

/** Summary of a file and of the older one beside it, behind any link; empty if there is none. Throws `bad_config` if the file cannot be read. */
export async function readStats(path: string): Promise<StatsSummary> {
  const entriesOf = async (file: string): Promise<StatsEntry[]> => {
    const text = await readTextOrThrow(file, FILE_BYTES).catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return "";
      throw new ThreadsError("bad_config", `${file} cannot be read: ${error.message}.`, {
        remedy: "Set captureStats.path under settings in mcp.json to a file.",
        data: { file },
      });
    });
    return parseStats(text);
  };
  const { target } = await nodeFiles.find(path).catch(() => ({ target: path }));
  const [older, newer] = await Promise.all([entriesOf(`${target}.1`), entriesOf(path)]);
  return summarizeStats([...older, ...newer]);
}
