/**
 * Owns: the check that the tables of docs/limits.md, and the ten rows of docs/security.md, have the numbers of the code.
 * support/limits.txt names the constant of each row, in the order of the page: `<key>` of LIMITS, or `<file>: <NAME>` for a
 * constant in another file, whose path starts in workers/connection unless it starts with `src` or `workers`.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { LIMITS } from "../../src/shared/protocol/limits.ts";
import { tableRows } from "./support/markdown.ts";

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
  /** The heading above the table. */
  section: string;
  input: string;
  bound: string;
}

/** `8 MiB` -> bytes, `30 s` -> milliseconds, `2,000 tools` -> the number. The first number and its unit count. */
function amountOf(bound: string): number {
  const [, digits = "", unit = ""] = /^([\d,.]+)\s*([A-Za-z]*)/.exec(bound.trim()) ?? [];
  return Number(digits.replaceAll(",", "")) * (UNITS[unit] ?? 1);
}

/** The rows of all tables whose second column is a limit. */
function limitsOf(page: string): Row[] {
  return page.split(/^## /m).flatMap((part) => {
    const section = part.slice(0, part.indexOf("\n"));
    const [heads, ...cells] = tableRows(part);
    if (heads?.[1] !== "limit") return [];
    return cells.map(([input = "", bound = ""]) => ({ section, input, bound }));
  });
}

/** What a line of support/limits.txt says: `# <heading>`, or `<row> -> <constant>`. */
function readNames(text: string): { row: string; constant: string }[] {
  let section = "";
  return text.split("\n").flatMap((line) => {
    if (line.startsWith("# ")) section = line.slice(2);
    const [, input, constant] = /^(.*) -> (.*)$/.exec(line) ?? [];
    return input === undefined || constant === undefined ? [] : [{ row: `${section}: ${input}`, constant }];
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

const read = (path: string): Promise<string> => readFile(join(root, path), "utf8");
const rows = limitsOf(await read("docs/limits.md"));
const names = readNames(await read("test/boundary/support/limits.txt"));

describe("docs/limits.md", () => {
  test("the tables have the rows of support/limits.txt, in its order", () => {
    expect(rows.length).toBeGreaterThan(200);
    expect(rows.map(({ section, input }) => `${section}: ${input}`)).toEqual(names.map(({ row }) => row));
  });

  test.each(rows.map((row, i) => [row.input, row.bound, names[i]?.constant ?? ""] as const))(
    "%s: %s",
    async (_input, bound, constant) => {
      expect(amountOf(bound), `${constant} in docs/limits.md`).toBe(await numberOf(constant));
    },
  );

  test("each limit of the code -> it has a row, or sets the extension's own pace", () => {
    const named = new Set(names.map(({ constant }) => constant));
    const missing = Object.keys(LIMITS).filter(
      (key) => !named.has(key) && !OWN_PACE.includes(key as keyof typeof LIMITS),
    );
    expect(missing).toEqual([]);
  });
});

test("docs/security.md repeats ten limits of docs/limits.md, with the same numbers", async () => {
  const repeated = limitsOf(await read("docs/security.md"));
  expect(repeated).toHaveLength(10);
  const known = rows.map(({ input, bound }) => `${input}: ${bound}`);
  expect(
    repeated.map(({ input, bound }) => `${input}: ${bound}`).filter((row) => !known.includes(row)),
  ).toEqual([]);
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
    const [row] = limitsOf(
      "## Names\n\n| what | limit | beyond it |\n| --- | --- | --- |\n| a name | 65 characters | cut |\n",
    );
    expect(row).toMatchObject({ section: "Names", input: "a name" });
    expect(amountOf(row?.bound ?? "")).not.toBe(LIMITS.toolNameChars);
    expect(readNames("# Names\na name -> toolNameChars\n")).toEqual([
      { row: "Names: a name", constant: "toolNameChars" },
    ]);
  });
});
