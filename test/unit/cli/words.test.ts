/** Owns: how a command line is read, and what the help says of each command. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { EXIT, exitCodeOf, Failure } from "../../../src/cli/console/failure.ts";
import {
  checkArguments,
  countOption,
  NO_OPTIONS,
  readCommandLine,
  timeoutMs,
  wantsJson,
} from "../../../src/cli/words/parse.ts";
import { GLOBAL_OPTIONS, helpOf, helpText, WORDS, type WordName } from "../../../src/cli/words/table.ts";
import { ERROR_CODES } from "../../../src/shared/protocol/errors.ts";

const root = join(import.meta.dirname, "..", "..", "..");

/** The message of the failure of usage. */
function refusal(task: () => unknown): string {
  try {
    task();
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    expect(error.exitCode).toBe(EXIT.usage);
    return `${error.message} ${error.remedy ?? ""}`.trim();
  }
  throw new Error("nothing was refused");
}

describe("a command line that can be read", () => {
  test.each([
    [["list"], "list", [], {}],
    [["--json", "list"], "list", [], { json: true }],
    [["ls", "-q"], "list", [], { quiet: true }],
    [["search", "read", "--limit", "3", "file"], "search", ["read", "file"], { limit: "3" }],
    [["search", "--limit=3", "--", "--json"], "search", ["--json"], { limit: "3" }],
    [["call", "s", "t", "a=1", "b=--x"], "call", ["s", "t", "a=1", "b=--x"], {}],
    [["call", "s", "t", "--json", '{"a":1}'], "call", ["s", "t"], { args: '{"a":1}' }],
    [["call", "s", "t", "--json", "@f"], "call", ["s", "t"], { args: "@f" }],
    [["call", "s", "t", "--json=-"], "call", ["s", "t"], { args: "-" }],
    [["call", "s", "t", "--json", "a=1"], "call", ["s", "t", "a=1"], { json: true }],
    [["call", "--json", "s", "t", "--json", "-"], "call", ["s", "t"], { json: true, args: "-" }],
    [["help", "call"], "call", [], { help: true }],
    [["call", "-h"], "call", [], { help: true }],
    [
      ["add", "-y", "--env", "A=1", "x", "npx", "-y", "--json"],
      "add",
      ["--env", "A=1", "x", "npx", "-y", "--json"],
      { yes: true },
    ],
    [
      ["--json", "add", "x", "https://a.example", "--header", "A=1", "-q"],
      "add",
      ["x", "https://a.example", "--header", "A=1"],
      { json: true, quiet: true },
    ],
    [
      ["add", "--cwd", "/x", "--no-test", "--timeout", "5", "x", "--", "cmd", "--yes"],
      "add",
      ["--cwd", "/x", "x", "--", "cmd", "--yes"],
      { "no-test": true, timeout: "5" },
    ],
    [["add", "--description", "--yes", "x", "cmd"], "add", ["--description", "--yes", "x", "cmd"], {}],
    [
      ["add", "--sandbox", "-y", "db", "my-server", "--config", "/etc/x.json", "-q"],
      "add",
      ["--sandbox", "db", "my-server", "--config", "/etc/x.json", "-q"],
      { yes: true },
    ],
    [
      ["add", "--sandbox", "--replace", "db", "my-server", "--json"],
      "add",
      ["--sandbox", "--replace", "db", "my-server", "--json"],
      {},
    ],
    [["-qy", "list"], "list", [], { quiet: true, yes: true }],
    [[], undefined, [], {}],
    [["call", "s", "--", "t", "--x"], "call", ["s", "t", "--x"], {}],
    [["tools", "--", "--yes"], "tools", ["--yes"], {}],
    [
      ["run", "--sandbox", "--write", "a", "--no-network", "--write=b", "--", "x", "--write", "--"],
      "run",
      ["x", "--write", "--"],
      { sandbox: true, write: ["a", "b"], "no-network": true },
    ],
    [["search", "https://a.example"], "search", ["https://a.example"], {}],
  ])("%j", (argv, word, given, options) => {
    expect(readCommandLine(argv)).toEqual({
      word,
      arguments: given,
      options: { ...NO_OPTIONS, ...options },
    });
  });
});

test.each([
  [
    ["call", "--", "npx", "-y", "@a/some-mcp", "--", "t", "a=1", "--json"],
    ["npx", "-y", "@a/some-mcp"],
    ["some", "t", "a=1"],
    { json: true },
  ],
  [["tools", "--", "node", "x.mjs", "-q"], ["node", "x.mjs", "-q"], ["x"], {}],
  [["call", "https://docs.example/mcp", "t"], ["https://docs.example/mcp"], ["docs", "t"], {}],
  [["call", "docs", "https://a.example"], undefined, ["docs", "https://a.example"], {}],
])("a server that no file names: %j", (argv, server, given, options) => {
  const line = readCommandLine(argv);
  expect([line.server, line.arguments]).toEqual([server, given]);
  expect(line.options).toMatchObject(options);
});

describe("a command line that cannot be read -> what is wrong with it", () => {
  test.each([
    [["serch"], 'There is no command "serch". Did you mean search? pi-mcp-threads --help lists them.'],
    [["\u001b[2J"], 'There is no command "\\u001b[2J". pi-mcp-threads --help lists them.'],
    [["list", "--refesh"], "list has no option --refesh. Did you mean --refresh?"],
    [["--refresh", "list"], "There is no option --refresh."],
    [["list", "-x"], "list has no option -x."],
    [["list", "--json=1"], "--json takes no value."],
    [["--cwd"], "--cwd needs a value: --cwd DIR"],
    [["--cwd=", "list"], "--cwd needs a value: --cwd DIR"],
    [["run", "--sandbox", "ls", "--", "a"], 'run takes its command behind --: "ls" stands before it.'],
    [["run", "--write", ""], "--write needs a value: --write PATH"],
    [["--cwd", "a", "--cwd", "b"], "--cwd is given twice."],
  ])("%j", (argv, message) => {
    expect(refusal(() => readCommandLine(argv))).toContain(message);
  });

  test.each([
    [["call"], "call needs <server>. pi-mcp-threads help call shows how it is used."],
    [["search"], "search needs <words>."],
    [["list", "x"], 'list takes no argument "x".'],
    [["tools", "a", "b"], 'tools takes no argument "b".'],
  ])("%j", (argv, message) => {
    expect(refusal(() => checkArguments(readCommandLine(argv)))).toContain(message);
  });

  test.each(["0", "-1", "x", "1e99", "", "Infinity", "99999999"])("--timeout %s", (timeout) => {
    expect(refusal(() => timeoutMs({ ...NO_OPTIONS, timeout }))).toContain("--timeout takes a number");
  });

  test.each(["0", "1.5", "x", "-3", "9999999999"])("--limit %s", (limit) => {
    expect(refusal(() => countOption({ ...NO_OPTIONS, limit }, "limit", 1))).toContain("a whole number");
  });
});

test("--timeout and --limit that can be read", () => {
  expect(timeoutMs({ ...NO_OPTIONS, timeout: "1.5" })).toBe(1_500);
  expect(timeoutMs(NO_OPTIONS)).toBeUndefined();
  expect(countOption({ ...NO_OPTIONS, limit: "7" }, "limit", 1)).toBe(7);
  expect(countOption(NO_OPTIONS, "limit", 10)).toBe(10);
});

test("whether a line that cannot be read wants JSON", () => {
  expect(wantsJson(["nope", "--json"])).toBe(true);
  expect(wantsJson(["call", "s", "t", "--json", "{}", "--nope"])).toBe(false);
  expect(wantsJson(["call", "--json", "--nope"])).toBe(true);
});

describe("help", () => {
  test("names every command and every option", () => {
    for (const name of Object.keys(WORDS)) expect(helpText(100)).toContain(`  ${name}`);
    for (const { name } of GLOBAL_OPTIONS) expect(helpText(100)).toContain(`--${name}`);
  });

  test.each([60, 80, 120])("no line is wider than a terminal of %d columns, examples apart", (columns) => {
    const texts = [
      helpText(columns),
      ...(Object.keys(WORDS) as WordName[]).map((name) => helpOf(name, columns)),
    ];
    const lines = texts.join("\n").split("\n");
    const wide = lines.filter(
      (line) => line.length > columns && !/^(Usage: | {2}pi-mcp-threads )/.test(line),
    );
    expect(wide).toEqual([]);
  });

  test.each(Object.keys(WORDS) as WordName[])("the examples of %s can be read", (name) => {
    for (const example of WORDS[name].examples) {
      const words = [...example.matchAll(/'([^']*)'|(\S+)/g)].map(
        ([, quoted, plain]) => quoted ?? plain ?? "",
      );
      const line = readCommandLine(words);
      checkArguments(line);
      expect(line.word).toBe(name);
      expect(helpOf(name, 100)).toContain(example);
    }
  });
});

test("every error of the worker -> an exit code that the page explains", async () => {
  const page = await readFile(join(root, "docs", "command-line.md"), "utf8");
  const explained = [...page.matchAll(/^\| `(\d+)` +\|/gm)].map(([, code]) => Number(code));
  expect(explained).toEqual(Object.values(EXIT));
  for (const code of ERROR_CODES) expect(explained).toContain(exitCodeOf(code));
});

test("every command and option -> the page has it", async () => {
  const page = await readFile(join(root, "docs", "command-line.md"), "utf8");
  for (const [name, { options = [] }] of Object.entries(WORDS)) {
    expect(page).toMatch(new RegExp(`^\\|.*\`${name}\\b`, "m"));
    for (const option of options) expect(page).toContain(`--${option.name}`);
  }
  for (const { name } of GLOBAL_OPTIONS) expect(page).toContain(`--${name}`);
});
