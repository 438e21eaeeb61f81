/**
 * Owns: the check that the tables of limits in docs/security.md have the numbers of the code. A row names its constant:
 * `<key>` or `LIMITS.<key>`, or `<file>: <NAME>` for a constant in another file, whose path starts in workers/connection
 * unless it starts with `src` or `workers`.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { LIMITS } from "../../src/shared/protocol/limits.ts";

const root = join(import.meta.dirname, "..", "..");

const UNITS: Record<string, number> = {
  KiB: 1024,
  MiB: 1024 ** 2,
  ms: 1,
  s: 1_000,
  min: 60_000,
  h: 3_600_000,
  days: 86_400_000,
};

/** Limits that bound no input; they set how often or how long the extension itself does something. */
const OWN_PACE: readonly (keyof typeof LIMITS)[] = [
  "searchResults",
  "searchResultsMost",
  "searchNamesMore",
  "searchWaitMs",
  "directWaitMs",
  "firstPlanWaitMs",
  "firstRequestMs",
  "longestTimerMs",
  "rpcGraceMs",
  "rpcShortMs",
  "connectsAtATime",
  "idleTimeoutMs",
  "refreshDelayMs",
  "drainMs",
  "npxFreshMs",
  "shutdownTermMs",
  "shutdownKillMs",
  "respawnMs",
  "catalogDebounceMs",
  "cacheEntryMs",
  "clockSkewMs",
  "unusedMs",
  "usedEveryMs",
  "leftoverMs",
  "corruptCopies",
  "publishFinishMs",
  "lockBeatMs",
  "heavyIdleMs",
  "hubEndMs",
  "hubLookMs",
];

interface Row {
  input: string;
  bound: string;
  constant: string;
}

/** `8 MiB` -> bytes, `30 s` -> milliseconds, `2,000 tools` -> the number. The first number and its unit count. */
function amountOf(bound: string): number {
  const [, digits = "", unit = ""] = /^([\d,.]+)\s*([A-Za-z]*)/.exec(bound.trim()) ?? [];
  return Number(digits.replaceAll(",", "")) * (UNITS[unit] ?? 1);
}

function readTable(text: string): Row[] {
  const rows = text
    .split("\n")
    .filter((line) => /^\|[^|]*\| [\d,.]+[^|]*\| `(?:LIMITS\.)?\w+` \||^\|.*`[\w/.-]+\.ts: /.test(line));
  return rows.map((line) => {
    const [, input = "", bound = "", constant = ""] = line.split("|").map((cell) => cell.trim());
    return { input, bound, constant: constant.replaceAll("`", "").replace("LIMITS.", "") };
  });
}

/** Returns the number of a constant in a source file. The constant must be a product or sum of numbers. */
function constantIn(source: string, name: string): number {
  const [, expression = ""] = new RegExp(`\\b${name}(?:: \\w+)? = ([^;]+);`).exec(source) ?? [];
  if (!/^[\d_.\s*+()]+$/.test(expression)) throw new Error(`${name} is not a number: ${expression}`);
  return Number(new Function(`return ${expression};`)());
}

async function numberOf(constant: string): Promise<unknown> {
  if (!constant.includes(": ")) return LIMITS[constant as keyof typeof LIMITS];
  const [file = "", name = ""] = constant.split(": ");
  const folder = /^(?:src|workers)\//.test(file) ? root : join(root, "workers", "connection");
  return constantIn(await readFile(join(folder, file), "utf8"), name);
}

const rows = readTable(await readFile(join(root, "docs", "security.md"), "utf8"));

describe("docs/security.md", () => {
  test("the table has rows", () => {
    expect(rows.length).toBeGreaterThan(40);
  });

  test.each(rows.map((row) => [row.input, row] as const))("%s", async (_input, { bound, constant }) => {
    expect(amountOf(bound), `${constant} in docs/security.md`).toBe(await numberOf(constant));
  });

  test("each limit of the code -> it has a row, or sets the extension's own pace", () => {
    const named = new Set(rows.map(({ constant }) => constant));
    const missing = Object.keys(LIMITS).filter(
      (key) => !named.has(key) && !OWN_PACE.includes(key as keyof typeof LIMITS),
    );
    expect(missing).toEqual([]);
  });
});

describe("the check itself", () => {
  test.each([
    ["64 MiB", 64 * 1024 * 1024],
    ["30 s", 30_000],
    ["10,000 tools", 10_000],
    ["2.5 s", 2_500],
    ["30 days", 30 * 86_400_000],
  ])("%s -> %d", (bound, value) => {
    expect(amountOf(bound)).toBe(value);
  });

  test("a number that differs, a constant that is missing -> the check finds it", () => {
    expect(constantIn("const A = 4 * 1_024;\n", "A")).toBe(4096);
    expect(() => constantIn("const A = 4;\n", "B")).toThrow("B is not a number");
    const [row] = readTable("| a name | 65 characters | `LIMITS.toolNameChars` | cut |");
    expect(amountOf(row?.bound ?? "")).not.toBe(LIMITS.toolNameChars);
  });
});
