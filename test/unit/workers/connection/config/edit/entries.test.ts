/** Owns: what a file's text becomes when whole entries come or go: nothing else in it changes. */
import { describe, expect, test } from "vitest";
import { isObject } from "../../../../../../src/shared/protocol/is-object.ts";
import {
  editAdded,
  editImports,
  editRemoved,
  namesIn,
} from "../../../../../../workers/connection/config/edit/entries.ts";
import { parseJsonc } from "../../../../../../workers/connection/config/files/document.ts";

const COMMENTED = `{
  // my servers
  "mcpServers": {
    // the first one
    "a": { "command": "x" }, // beside a
    "b": {
      "url": "https://b.example.com/mcp", // of b
    },
    /* before c */
    "c": { "command": "y" }
  },
  "settings": { "toolPrefix": "short" }
}
`;
const ENTRY = { command: "npx", args: ["-y", "server", 'it\'s "quoted"'], env: { TOKEN: "${TOKEN}" } };

/** What the text holds; fails if it is not valid. */
function dataOf(text: string): Record<string, Record<string, unknown>> {
  const parsed = parseJsonc(text.replace("\uFEFF", ""));
  if ("problem" in parsed || !isObject(parsed.document.value)) throw new Error(`not valid: ${text}`);
  return parsed.document.value as Record<string, Record<string, unknown>>;
}

describe("editAdded", () => {
  test("adds behind the last entry and keeps everything else", () => {
    const text = editAdded(COMMENTED, [{ name: "new", entry: ENTRY }]);
    expect(text.startsWith(COMMENTED.slice(0, COMMENTED.indexOf('"y" }') + 5))).toBe(true);
    expect(text.endsWith(COMMENTED.slice(COMMENTED.indexOf("\n  },\n")))).toBe(true);
    expect(dataOf(text).mcpServers?.new).toEqual(ENTRY);
  });

  test.each([
    undefined,
    "",
    "{}",
    "// mine\n",
    '{"mcpServers":{}}',
    '{ "mcp-servers": { "x": { "command": "y" } } }',
    '\uFEFF{\r\n\t"mcpServers": {\r\n\t}\r\n}\r\n',
    COMMENTED,
  ])("%j gets the entry, and stays valid", (before) => {
    const text = editAdded(before, [
      { name: "new", entry: ENTRY },
      { name: 'odd "name"', entry: { url: "https://x.example" } },
    ]);
    const root = dataOf(text);
    const servers = root.mcpServers ?? root["mcp-servers"];
    expect(servers).toMatchObject({ new: ENTRY, 'odd "name"': { url: "https://x.example" } });
    expect(text.startsWith("\uFEFF")).toBe(before?.startsWith("\uFEFF") ?? false);
    if (before?.includes("\r\n")) expect(text.replaceAll("\r\n", "")).not.toContain("\n");
  });

  test("a new file has one line for each key", () => {
    expect(editAdded(undefined, [{ name: "fs", entry: { command: "npx", args: ["-y", "x"] } }])).toBe(
      '{\n  "mcpServers": {\n    "fs": {\n      "command": "npx",\n      "args": ["-y", "x"]\n    }\n  }\n}\n',
    );
  });

  test("a name that is taken is refused, and replaced on demand", () => {
    const entries = [{ name: "b", entry: ENTRY }];
    expect(() => editAdded(COMMENTED, entries)).toThrow(/has a server named b already/);
    const text = editAdded(COMMENTED, entries, { replace: true });
    expect(dataOf(text).mcpServers?.b).toEqual(ENTRY);
    for (const comment of ["// my servers", "// the first one", "// beside a", "/* before c */"])
      expect(text).toContain(comment);
  });

  test("a long list of arguments has lines of its own", () => {
    const args = Array.from({ length: 20 }, (_, at) => `--option-${at}`);
    const text = editAdded("{}", [{ name: "a", entry: { command: "x", args } }]);
    expect(text).toContain('\n        "--option-0",\n        "--option-1",\n');
    expect(dataOf(text).mcpServers?.a).toEqual({ command: "x", args });
  });

  test.each(["{", "[]", '{"mcpServers": []}', '{"mcpServers": {"new": 1}}'])("%s is left alone", (text) => {
    expect(() => editAdded(text, [{ name: "new", entry: ENTRY }], { replace: true })).toThrow(
      /cannot be changed/,
    );
  });
});

describe("editRemoved", () => {
  test.each<[string, string]>([
    ["a", COMMENTED.replace('    "a": { "command": "x" }, // beside a\n', "")],
    ["b", COMMENTED.replace(/ {4}"b": \{\n.*\n {4}\},\n/, "")],
    ["c", COMMENTED.replace('    "c": { "command": "y" }\n', "").replace("    },\n    /*", "    }\n    /*")],
  ])("takes %s with its lines, and all else stays", (name, after) => {
    expect(editRemoved(COMMENTED, name)).toBe(after);
    expect(Object.keys(dataOf(after).mcpServers ?? {})).toEqual(
      ["a", "b", "c"].filter((one) => one !== name),
    );
  });

  test.each<[string, string]>([
    ['{"mcpServers": {"a": {"command": "x"}, "b": {}}}', '{"mcpServers": {"b": {}}}'],
    ['{"mcpServers": {"b": {}, "a": {"command": "x"}}}', '{"mcpServers": {"b": {}}}'],
    ['{"mcpServers": { "b": {}, "a": {}, }}', '{"mcpServers": { "b": {} }}'],
    ['{"mcpServers": { "a": {} }}', '{"mcpServers": {}}'],
    ['{"mcpServers": {"a": {}, // one\n"b": {}}}', '{"mcpServers": { // one\n"b": {}}}'],
    ['{"mcpServers": {"b": {}, /* of a, */ "a": {}}}', '{"mcpServers": {"b": {} /* of a, */ }}'],
    ['{"mcp-servers": {"a": {}}, "mcpServers": {"a": {}, "a": {}}}', '{"mcp-servers": {}, "mcpServers": {}}'],
    ['{"mcpServers": {"b": {}}}', '{"mcpServers": {"b": {}}}'],
    ['\uFEFF{"mcpServers": {"a": {}}}', '\uFEFF{"mcpServers": {}}'],
    [
      '{\r\n "mcpServers": {\r\n  "b": {},\r\n  "a": {}\r\n }\r\n}',
      '{\r\n "mcpServers": {\r\n  "b": {}\r\n }\r\n}',
    ],
  ])("%j -> %j", (before, after) => {
    expect(editRemoved(before, "a")).toBe(after);
  });

  test("what was added is removed without a trace", () => {
    const text = editAdded(COMMENTED, [{ name: "new", entry: ENTRY }]);
    expect(editRemoved(text, "new")).toBe(COMMENTED);
  });
});

describe("editImports", () => {
  test.each<[string | undefined, string]>([
    ['{"imports": ["cursor"]}', '{"imports": ["cursor", "codex"]}'],
    ['{"imports": ["cursor", /* mine */]}', '{"imports": ["cursor", "codex", /* mine */]}'],
    ['{"imports": []}', '{"imports": ["codex"]}'],
    ['{"imports": ["codex"]}', '{"imports": ["codex"]}'],
    [
      '{\n  "imports": [\n    "cursor" // mine\n  ]\n}',
      '{\n  "imports": [\n    "cursor",\n    "codex" // mine\n  ]\n}',
    ],
    [undefined, '{\n  "imports": ["codex"]\n}\n'],
  ])("%j -> %j", (before, after) => {
    expect(editImports(before, ["codex"])).toBe(after);
  });

  test("imports that is no list is left alone", () => {
    expect(() => editImports('{"imports": "cursor"}', ["codex"])).toThrow(/imports is no list/);
  });
});

test("the names of a text, also of wrong entries; none of a text that cannot be read", () => {
  expect([...namesIn('{"mcpServers": {"a": 1}, "mcp-servers": {"b": {}}}')]).toEqual(["b", "a"]);
  expect(namesIn("{").size + namesIn(undefined).size + namesIn("[]").size).toBe(0);
});
