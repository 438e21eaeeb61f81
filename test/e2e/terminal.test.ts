/**
 * Owns: tests of the screen: the real Pi in a narrow, an ordinary and a wide real terminal. Pi ends with an error if a
 * line is too wide, so a session that continues proves that no line is too wide.
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

/** Returns the lines of the newest row, from the call's title to the empty lines after it. */
function newestRow(screen: readonly string[], title: string): string[] {
  const from = screen.findLastIndex((line) => line.startsWith(` ${title}`));
  const row = screen.slice(from);
  const end = row.findIndex((line, i) => line === "" && row[i + 1] === "");
  return row.slice(0, end === -1 ? undefined : end).map((line) => line.slice(1));
}

test.each([60, 80, 200])("%i columns -> calls, progress, errors, a resumed session fit", async (columns) => {
  const at = await home({ mcp: { mcpServers, settings: { captureStats: true } } });
  const scripted = await model(SCRIPT);
  const opened: Terminal[] = [];
  onCleanup(() => Promise.all(opened.map((one) => one.close())));
  const open = async (args: string[] = []): Promise<Terminal> => {
    const one = await openTerminal({ home: at, model: scripted, extension: ENTRY, columns, args });
    opened.push(one);
    return one;
  };
  const terminal = await open();
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
  const FOOTER = /^\d+(\.\d)? m?s · [\d.]+ [KM]?B/;

  const echo = await shown(0, "everything · echo");
  expect(echo.slice(0, 3)).toEqual([
    'everything · echo  message: "日本語 and 👨‍👩‍👧"',
    "",
    "Echo: 日本語 and 👨‍👩‍👧",
  ]);
  expect(echo[3]).toMatch(FOOTER);

  const long = await shown(1, "own · show");
  expect(long[0]).toMatch(/^own · show {2}text: "line 0 .*…$/);
  expect(long[2]).toBe("line 0");
  expect(long.at(-2)).toMatch(/^… 25 more lines \(ctrl\+o to expand\)$/);
  expect(long.at(-1)).toMatch(FOOTER);
  await terminal.press("C-o");
  const expanded = await terminal.until(/line 29 word/);
  expect(expanded.join("\n")).not.toContain("more lines (");
  await terminal.press("C-o");
  await terminal.until(/… 25 more lines/);

  expect((await shown(2, "everything · get-tiny-image")).join("\n")).toMatch(
    /\n\[Image: image\/png, 3\.9 KB\]\n/,
  );

  const failed = await shown(3, "own · show");
  expect(failed.join(" ")).toContain(
    " it burns Expected parameters: own__show(text?: string, isError?: boolean)",
  );
  // The error has another colour of the theme than the row before.
  const colours = (await terminal.colours()).split("\n");
  const colourOf = (text: string): string | undefined =>
    colours
      .findLast((line) => line.includes(text))
      ?.match(COLOUR)
      ?.at(-1);
  expect(colourOf("it burns")).toBeDefined();
  expect(colourOf("it burns")).not.toBe(colourOf("[Image: image/png"));

  const mixed = (await shown(4, "own · show")).slice(2, -1);
  expect(mixed.join(" ")).toMatch(/^(日本語のテキスト 한국어 👩‍🚀 )+/);

  const escapes = (await shown(5, "own · show")).join("\n");
  expect(escapes).toContain("\na link red 2J end\n");

  const steps = await shown(6, "own · steps", [/^ step \d+ of unknown$/m, "steps-end"]);
  expect(steps.slice(2, 3)).toEqual(["steps is over"]);

  const counted = await shown(7, "own · count", [/^ █+░+ {1,2}\d+% 2 of 3$/m, "count-ends"]);
  expect(counted.slice(2, 3)).toEqual(["count is over"]);
  expect(counted.at(-1)).toMatch(FOOTER);

  const stored = (await shown(8, "own · show")).join("\n");
  expect(stored).toMatch(/\n\d+(\.\d)? m?s · 49\.\d KB of 87\.9 KB\nFull text: /);
  expect(stored.replaceAll("\n", "")).toMatch(/Full text: \/.*own-show-[0-9a-f]{8}\.txt$/);

  await terminal.prompt("/mcp stats");
  // The first Enter may only accept the completion; a second Enter on an empty line does nothing.
  await terminal.press("Enter");
  const stats = await terminal.until(/^ About [\d,]+ tokens saved\.$/m);
  const head = stats.findIndex((line) => /^ tool\b/.test(line));
  const [names = "", numbers = "", ...rows] = stats.slice(head);
  if (columns === 60) {
    expect([names, numbers]).toEqual([
      " tool",
      expect.stringMatching(/^ {3,}calls {2}errors {2}received +shown +mean$/),
    ]);
    expect(rows.slice(0, 2)).toEqual([
      " own · show",
      expect.stringMatching(/^ {3,}5 +1 +[\d.]+ KB +[\d.]+ KB +[\d.]+ m?s$/),
    ]);
  } else {
    expect(names).toMatch(/^ tool {3,}calls {2}errors {2}received +shown +mean$/);
    expect(numbers).toMatch(/^ own · show {3,}5 +1 +[\d.]+ KB +[\d.]+ KB +[\d.]+ m?s$/);
    expect(rows.findIndex((line) => line.startsWith(" About"))).toBe(4);
  }

  // A narrower terminal draws every row again.
  const narrow = Math.max(40, columns - 30);
  await terminal.resize(narrow);
  await terminal.until(new RegExp(`^─{${narrow}}$`, "m"));
  await terminal.close();

  // The resumed session has neither the servers nor the snapshot.
  await at.writeMcp({ mcpServers: {} });
  await rm(join(at.agentDir, "mcp-snapshots"), { recursive: true });
  const resumed = await open(["--continue"]);
  const screen = await resumed.until(/answer8\./);
  expect(newestRow(screen, "own · count").at(-1)).toMatch(FOOTER);
  expect(newestRow(screen, "own · show").join("\n")).toMatch(/49\.\d KB of 87\.9 KB\nFull text: /);
});
