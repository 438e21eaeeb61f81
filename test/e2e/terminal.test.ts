/**
 * Owns: tests of the screen: the real Pi in a real terminal that is narrow, then ordinary, then wide. Pi draws every row
 * again for each width, and ends with an error if a line is too wide, so a session that continues proves that no line is
 * too wide.
 */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { ModelTurn } from "../support/model.ts";
import { openTerminal, type Terminal } from "../support/terminal.ts";
import { call, ENTRY, fixtureServer, home, model, onCleanup, SERVERS, searchFor } from "./support.ts";

const LINES = Array.from({ length: 30 }, (_, i) => `line ${i} ${"word ".repeat(i * 2)}`).join("\n");
const MIXED = "日本語のテキスト 한국어 👩‍🚀 ".repeat(12);
const ESCAPES =
  "a \u001b]8;;https://x.test\u0007link\u001b]8;;\u0007 \u001b[31mred\u001b[0m \u009b2J\u001b[2J end";

const mcpServers = { everything: SERVERS.everything, own: fixtureServer("shows.mjs") };
const names = [
  ...["echo", "get-tiny-image"].map((name) => `everything__${name}`),
  ...["show", "steps", "count"].map((name) => `own__${name}`),
];

/** The escape sequence that sets the colour of the following text. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern finds control characters.
const COLOUR = /\u001b\[[\d;]*38;[\d;]+m/g;

/** Each prompt calls one tool; the answer's text marks its end. */
const CALLS: [string, Record<string, unknown>][] = [
  ["everything__echo", { message: "日本語 and 👨‍👩‍👧" }],
  ["own__show", { text: LINES }],
  ["everything__get-tiny-image", {}],
  ["own__show", { text: "it burns", isError: true }],
  ["own__show", { text: MIXED }],
  ["own__show", { text: ESCAPES }],
  ["own__steps", { file: "steps-end" }],
  ["own__count", { file: "count-ends" }],
  ["own__show", { text: "z".repeat(90_000) }],
];
const SCRIPT: ModelTurn[] = [
  searchFor(`select:${names.join(",")}`),
  { text: "searched." },
  ...CALLS.flatMap(([name, args], i) => [call(name, args), { text: `answer${i}.` }]),
];

const WIDTHS = [60, 80, 200] as const;
/** Enough for all rows at the smallest width. */
const ROWS = 250;

/**
 * Returns the rows of calls with this title, the oldest first: the lines from the title to the empty lines after it. An
 * empty line follows the title, which it does not in the table of `/mcp stats`.
 */
function rowsOf(screen: readonly string[], title: string): string[][] {
  return screen.flatMap((line, at) =>
    line.startsWith(` ${title}`) && screen[at + 1] === "" ? [rowAt(screen, at)] : [],
  );
}
const newestRow = (screen: readonly string[], title: string): string[] => rowsOf(screen, title).at(-1) ?? [];

function rowAt(screen: readonly string[], from: number): string[] {
  const row = screen.slice(from);
  const end = row.findIndex((line, i) => line === "" && row[i + 1] === "");
  return row.slice(0, end === -1 ? undefined : end).map((line) => line.slice(1));
}

const FOOTER = /^\d+(\.\d)? m?s · [\d.]+ [KM]?B/;

/** What a row shows at every width. */
const expectEcho = (row: string[]): void => {
  expect(row.slice(0, 3)).toEqual([
    'everything · echo  message: "日本語 and 👨‍👩‍👧"',
    "",
    "Echo: 日本語 and 👨‍👩‍👧",
  ]);
  expect(row[3]).toMatch(FOOTER);
};
const expectLong = (row: string[]): void => {
  expect(row[0]).toMatch(/^own · show {2}text: "line 0 .*…$/);
  expect(row[2]).toBe("line 0");
  expect(row.at(-2)).toMatch(/^… 25 more lines \(ctrl\+o to expand\)$/);
  expect(row.at(-1)).toMatch(FOOTER);
};
const expectImage = (row: string[]): void =>
  expect(row.join("\n")).toMatch(/\n\[Image: image\/png, 3\.9 KB\]\n/);
const expectFailed = (row: string[]): void =>
  expect(row.join(" ")).toContain(
    " it burns Expected parameters: own__show(text?: string, isError?: boolean)",
  );
const expectMixed = (row: string[]): void =>
  expect(row.slice(2, -1).join(" ")).toMatch(/^(日本語のテキスト 한국어 👩‍🚀 )+/);
const expectEscapes = (row: string[]): void => expect(row.join("\n")).toContain("\na link red 2J end\n");
const expectSteps = (row: string[]): void => expect(row.slice(2, 3)).toEqual(["steps is over"]);
const expectCounted = (row: string[]): void => {
  expect(row.slice(2, 3)).toEqual(["count is over"]);
  expect(row.at(-1)).toMatch(FOOTER);
};
const expectStored = (row: string[]): void => {
  const text = row.join("\n");
  expect(text).toMatch(/\n\d+(\.\d)? m?s · 49\.\d KB of 87\.9 KB\nFull text: /);
  expect(text.replaceAll("\n", "")).toMatch(/Full text: \/.*own-show-[0-9a-f]{8}\.txt$/);
};

/** Resolves when Pi has drawn the whole screen for a wider terminal. */
async function widen(terminal: Terminal, columns: number): Promise<string[]> {
  await terminal.resize(columns);
  // The editor and the footer come last, and no line of the old width becomes longer by itself.
  return terminal.until(new RegExp(`^─{${columns}}$[\\s\\S]*^─{${columns}}$[\\s\\S]*stub-model`, "m"));
}

/** Asks for the table of `/mcp stats` and reads it at the terminal's width. */
async function expectStats(terminal: Terminal, columns: number): Promise<void> {
  // The status stands behind an earlier table. The first Enter may only accept the completion; a second Enter on an
  // empty line does nothing.
  await terminal.prompt("/mcp status");
  await terminal.press("Enter");
  await terminal.until(/2 of 2 servers connected(?![\s\S]*tokens saved)/);
  await terminal.prompt("/mcp stats");
  await terminal.press("Enter");
  const narrow = columns === 60;
  const title = narrow ? "^ tool$" : "^ tool {3,}calls {2}errors {2}received +shown +mean$";
  const stats = await terminal.until(
    new RegExp(
      `servers connected[\\s\\S]*${title}[\\s\\S]*^ About [\\d,]+ tokens saved by shortening results\\.$`,
      "m",
    ),
  );
  const head = stats.findLastIndex((line) => /^ tool\b/.test(line));
  const [, numbers = "", ...rows] = stats.slice(head);
  if (narrow) {
    expect(numbers).toMatch(/^ {3,}calls {2}errors {2}received +shown +mean$/);
    expect(rows.slice(0, 2)).toEqual([
      " own · show",
      expect.stringMatching(/^ {3,}5 +1 +[\d.]+ KB +[\d.]+ KB +[\d.]+ m?s$/),
    ]);
  } else {
    expect(numbers).toMatch(/^ own · show {3,}5 +1 +[\d.]+ KB +[\d.]+ KB +[\d.]+ m?s$/);
    expect(rows.findIndex((line) => line.startsWith(" About"))).toBe(4);
  }
}

test("60, 80 and 200 columns -> calls, progress, errors, a resumed session fit", async () => {
  const [narrow, ...wider] = WIDTHS;
  const at = await home({ mcp: { mcpServers } });
  const scripted = await model(SCRIPT);
  const opened: Terminal[] = [];
  onCleanup(() => Promise.all(opened.map((one) => one.close())));
  const open = async (args: string[] = []): Promise<Terminal> => {
    const one = await openTerminal({
      home: at,
      model: scripted,
      extension: ENTRY,
      columns: narrow,
      rows: ROWS,
      args,
    });
    opened.push(one);
    return one;
  };
  const terminal = await open();
  await terminal.until(/MCP: 2 servers ready/);
  await terminal.prompt("go");
  const searched = newestRow(await terminal.until(/^ searched\./m), "ToolSearch");
  expect(searched[0]).toMatch(/^ToolSearch {2}query: "select:everything__/);
  expect(searched.at(-2)).toMatch(/^… \d+ more lines? \(ctrl\+o to expand\)$/);
  expect(searched.at(-1)).toMatch(/^[\d.]+ m?s$/);

  /** Resolves with the row of a finished call. A lasting call is first seen in progress, then its file ends it. */
  const shown = async (nth: number, title: string, lasting?: [RegExp, string]): Promise<string[]> => {
    await terminal.prompt(`call ${nth}`);
    if (lasting) {
      await terminal.until(lasting[0]);
      await at.writeFile(lasting[1], "");
    }
    const screen = await terminal.until(new RegExp(`^ answer${nth}\\.`, "m"));
    // The rest of the screen is still in place, so no escape sequence of a result took effect.
    expect(screen.join("\n")).toContain("stub-model");
    return newestRow(screen, title);
  };

  expectEcho(await shown(0, "everything · echo"));
  expectLong(await shown(1, "own · show"));
  await terminal.press("C-o");
  const expanded = await terminal.until(/line 29 word/);
  expect(expanded.join("\n")).not.toContain("more lines (");
  await terminal.press("C-o");
  await terminal.until(/… 25 more lines/);

  expectImage(await shown(2, "everything · get-tiny-image"));
  expectFailed(await shown(3, "own · show"));
  // The error has another colour of the theme than the row before.
  const colours = (await terminal.colours()).split("\n");
  const colourOf = (text: string): string | undefined =>
    colours
      .findLast((line) => line.includes(text))
      ?.match(COLOUR)
      ?.at(-1);
  expect(colourOf("it burns")).toBeDefined();
  expect(colourOf("it burns")).not.toBe(colourOf("[Image: image/png"));

  expectMixed(await shown(4, "own · show"));
  expectEscapes(await shown(5, "own · show"));
  expectSteps(await shown(6, "own · steps", [/^ step \d+ of unknown$/m, "steps-end"]));
  expectCounted(await shown(7, "own · count", [/^ █+░+ {1,2}\d+% 2 of 3$/m, "count-ends"]));
  expectStored(await shown(8, "own · show"));
  await expectStats(terminal, narrow);

  for (const columns of wider) {
    const screen = await widen(terminal, columns);
    expectEcho(newestRow(screen, "everything · echo"));
    const [long = [], failed = [], mixed = [], escapes = [], stored = []] = rowsOf(screen, "own · show");
    expectLong(long);
    expectImage(newestRow(screen, "everything · get-tiny-image"));
    expectFailed(failed);
    expectMixed(mixed);
    expectEscapes(escapes);
    expectSteps(newestRow(screen, "own · steps"));
    expectCounted(newestRow(screen, "own · count"));
    expectStored(stored);
    await expectStats(terminal, columns);
  }
  await terminal.resize(40);
  await terminal.until(/^─{40}$/m);
  await terminal.close();

  // The resumed session has neither the servers nor the snapshot.
  await at.writeMcp({ mcpServers: {} });
  await rm(join(at.agentDir, "mcp-snapshots"), { recursive: true });
  const resumed = await open(["--continue"]);
  let screen = await resumed.until(/answer8\.[\s\S]*stub-model/);
  for (const columns of WIDTHS) {
    if (columns !== narrow) screen = await widen(resumed, columns);
    expectCounted(newestRow(screen, "own · count"));
    expectStored(newestRow(screen, "own · show"));
  }
});
