/** Owns: the forms that one configuration file may have, and the position of each mistake. */
import { describe, expect, it, test } from "vitest";
import { parseConfigText } from "../../../../../../workers/connection/config/files/files.ts";
import { PROJECT_PI } from "../support.ts";

const FILE = PROJECT_PI.file;
const parse = (text: string): { names: string[]; problems: unknown[] } => {
  const { entries, problems } = parseConfigText(text, PROJECT_PI);
  return {
    names: entries.flatMap((entry) => (entry.kind === "server" ? [entry.definition.name] : [])),
    problems,
  };
};

describe("parseConfigText: files that are fine", () => {
  it.each([
    ["plain", '{"mcpServers": {"a": {"command": "x"}}}', ["a"]],
    ["mcp-servers", '{"mcp-servers": {"a": {"command": "x"}}}', ["a"]],
    ["a BOM", '\uFEFF{"mcpServers": {"a": {"command": "x"}}}', ["a"]],
    ["line comments", '// head\n{"mcpServers": { // here\n"a": {"command": "x"}}}\n// end', ["a"]],
    ["block comments", '{/* a */"mcpServers": {"a": /* b */ {"command": "x"}}}', ["a"]],
    ["trailing commas", '{"mcpServers": {"a": {"command": "x", "args": ["1",],},},}', ["a"]],
    ["CRLF", '{\r\n"mcpServers": {\r\n"a": {"command": "x"}\r\n}\r\n}\r\n', ["a"]],
    ["two slashes in a text", '{"mcpServers": {"a": {"url": "https://x.test/mcp"}}}', ["a"]],
    ["no servers", '{"mcpServers": {}}', []],
    ["Pi's own key beside ours", '{"autoEnableCodemode": true}', []],
    ["an empty object", "{}", []],
    [
      "several, in the order of the file",
      '{"mcpServers": {"z": {"command": "x"}, "a": {"command": "x"}}}',
      ["z", "a"],
    ],
    ["names that objects inherit", '{"mcpServers": {"constructor": {"command": "x"}}}', ["constructor"]],
  ])("%s -> $2, no problem", (_name, text, names) => {
    expect(parse(text)).toEqual({ names, problems: [] });
  });
});

test("an unknown key -> a warning, the servers stay", () => {
  const { names, problems } = parse('{"other": 1, "mcpServers": {"a": {"command": "x"}}}');
  expect(names).toEqual(["a"]);
  expect(problems).toMatchObject([{ severity: "warning", line: 1, column: 11, key: "other" }]);
});

describe("parseConfigText: files that cannot be used", () => {
  it.each([
    ["empty", "", 1, 1, /empty/],
    ["blank", " \n\t\r\n", 1, 1, /empty/],
    ["a BOM only", "\uFEFF", 1, 1, /empty/],
    [
      "a missing comma",
      '{"mcpServers": {\n  "a": {"command": "x"}\n  "b": {"command": "x"}\n}}',
      3,
      3,
      /comma expected/,
    ],
    ["a missing brace at the end", '{"mcpServers": {\n}', 2, 2, /brace expected/],
    ["a missing value", '{"mcpServers": }', 1, 16, /value expected/],
    ["a key without quotes", "{mcpServers: {}}", 1, 2, /./],
    ["a missing colon", '{"mcpServers" {}}', 1, 15, /colon expected/],
    ["single quotes", "{'mcpServers': {}}", 1, 2, /./],
    ["a second value", '{"mcpServers": {}}\n{}', 2, 1, /end of file expected/],
    ["a mistake after a BOM", '\uFEFF{"mcpServers": }', 1, 16, /value expected/],
    ["a mistake after CRLF lines", '{\r\n"mcpServers": {},\r\n"x": }', 3, 6, /value expected/],
    ["an array", "\n[]", 2, 1, /expected an object, found a list/],
    ["null", "null", 1, 1, /expected an object, found null/],
    ["a text", '"x"', 1, 1, /expected an object, found a string/],
    ["a number", "  5", 1, 3, /expected an object, found a number/],
    ["a comment only", "// nothing", 1, 11, /./],
  ])("%s -> one problem at $2:$3, no servers", (_name, text, line, column, message) => {
    const { names, problems } = parse(text);
    expect(names).toEqual([]);
    expect(problems).toEqual([
      {
        severity: "error",
        file: FILE,
        line,
        column,
        message: expect.stringMatching(message),
        remedy: expect.stringMatching(/\.$/),
      },
    ]);
  });
});

describe("parseConfigText: entries that cannot be used", () => {
  /** One entry on line 3, beside two good ones; `@` marks the position of the problem. */
  const withEntry = (entry: string): { text: string; column: number } => {
    const line = `  ${entry}`;
    const text = `{"mcpServers": {\n  "good": {"command": "x"},\n${line.replace("@", "")},\n  "last": {"command": "x"}\n}}`;
    return { text, column: line.indexOf("@") + 1 };
  };
  it.each([
    ["null", '"bad": @null', "bad", /found null/],
    ["an array", '"bad": @[]', "bad", /found a list/],
    ["a text", '"bad": @"npx x"', "bad", /found a string/],
    ["a number", '"bad": @7', "bad", /found a number/],
    ["an empty entry", '"bad": @{}', "bad", /neither command nor url/],
    [
      "both command and url",
      '"bad": {"command": "x", "url": @"https://x.test"}',
      "bad.url",
      /both command and url/,
    ],
    ["a wrong command", '"bad": {"command": @5}', "bad.command", /string/],
    ["wrong args", '"bad": {"command": "x", "args": @"y"}', "bad.args", /list/],
    ["one wrong argument", '"bad": {"command": "x", "args": ["y", @5]}', "bad.args.1", /string/],
    ["a wrong variable", '"bad": {"command": "x", "env": {"A": "1", "B": @2}}', "bad.env.B", /string/],
    ["a wrong url", '"bad": {"url": @"ftp://x.test"}', "bad.url", /http or https/],
    [
      "a wrong header",
      '"bad": {"url": "https://x.test", "headers": {"k": @true}}',
      "bad.headers.k",
      /string/,
    ],
    ["a wrong type", '"bad": {"type": @"ws", "url": "https://x.test"}', "bad.type", /stdio/],
    ["a wrong timeout", '"bad": {"command": "x", "timeout": @"5"}', "bad.timeout", /number/],
    ["a wrong switch", '"bad": {"command": "x", "enabled": @"no"}', "bad.enabled", /true or false/],
    ["the name __proto__", '"__proto__": @{"command": "x"}', "__proto__", /usable server name/],
    ["an empty name", '"": @{"command": "x"}', "", /usable server name/],
  ])("%s -> one problem at its position, the other servers stay", (_name, entry, key, message) => {
    const { text, column } = withEntry(entry);
    const { names, problems } = parse(text);
    expect(names).toEqual(["good", "last"]);
    expect(problems).toEqual([
      {
        severity: "error",
        file: FILE,
        line: 3,
        column,
        key: `mcpServers.${key}`,
        message: expect.stringMatching(message),
        remedy: expect.stringMatching(/\.$/),
      },
    ]);
  });

  it.each([
    ["an array", '{"mcpServers": []}', "mcpServers", 16],
    ["null", '{"mcp-servers": null}', "mcp-servers", 17],
    ["a text", '{"mcpServers": "x"}', "mcpServers", 16],
  ])("servers that are %s -> one problem there", (_name, text, key, column) => {
    expect(parse(text)).toMatchObject({ names: [], problems: [{ line: 1, column, key }] });
  });

  test("a name is given twice -> the last one counts, as in JSON.parse", () => {
    const { entries } = parseConfigText(
      '{"mcpServers": {"a": {"command": "1"}, "a": {"command": "2"}}}',
      PROJECT_PI,
    );
    expect(entries.at(-1)).toMatchObject({ definition: { target: { command: "2" } } });
  });

  test("a variable named __proto__ -> nothing inherits from it", () => {
    parse('{"mcpServers": {"a": {"command": "x", "env": {"__proto__": {"polluted": "1"}}}}}');
    expect(({} as { polluted?: string }).polluted).toBeUndefined();
  });
});
