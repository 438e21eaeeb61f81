import { chmod, lstat, readFile, stat, symlink } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { schemaText } from "../../../../../../scripts/key-tables.ts";
import {
  changeConfigFile,
  editAllowed,
  editableFile,
  editEnabled,
  fileToEdit,
  writeEnabled,
} from "../../../../../../workers/connection/config/edit/edit.ts";
import { applyOverride, type Override } from "../../../../../../workers/connection/config/entry/override.ts";
import { parseConfigText } from "../../../../../../workers/connection/config/files/files.ts";
import type { ConfigSource } from "../../../../../../workers/connection/config/files/sources.ts";
import { definition, facts, PROJECT_FILE, PROJECT_PI, put, temporaryFolder, USER } from "../support.ts";

const COMMENTED = `{
  // my servers
  "mcpServers": {
    "a": { "command": "x", "enabled": true }, // the first
    "b": {
      "url": "https://b.example.com/mcp",
    },
  },
}
`;

describe("editEnabled", () => {
  test("changes one word and keeps comments and formatting", () => {
    expect(editEnabled(COMMENTED, "a", false)).toBe(COMMENTED.replace("true", "false"));
    expect(editEnabled(COMMENTED, "a", true)).toBe(COMMENTED);
  });

  test("adds the key if it is missing", () => {
    const text = editEnabled(COMMENTED, "b", false);
    expect(text).toContain("// my servers");
    expect(text).toMatch(/"url": "https:\/\/b\.example\.com\/mcp",\n {6}"enabled": false/);
  });

  test.each([
    [undefined, '{\n  "mcpServers": {\n    "a": {\n      "enabled": false\n    }\n  }\n}\n'],
    ["", '{\n  "mcpServers": {\n    "a": {\n      "enabled": false\n    }\n  }\n}\n'],
    ["{}", '{\n  "mcpServers": {\n    "a": {\n      "enabled": false\n    }\n  }\n}'],
    ['{"mcp-servers": {"a": {"command": "x"}}}', undefined],
    ["\uFEFF{}", undefined],
    [
      '{\r\n\t"mcpServers": {}\r\n}',
      '{\r\n\t"mcpServers": {\r\n\t\t"a": {\r\n\t\t\t"enabled": false\r\n\t\t}\r\n\t}\r\n}',
    ],
  ])("%# -> a complete file with the server", (before, after) => {
    const text = editEnabled(before, "a", false);
    if (after !== undefined) expect(text).toBe(after);
    const parsed = JSON.parse(text.replace("\uFEFF", ""));
    const servers = parsed.mcpServers ?? parsed["mcp-servers"];
    expect(servers.a.enabled).toBe(false);
    expect(servers.a).not.toHaveProperty("disabled");
    expect(text.startsWith("\uFEFF")).toBe(before?.startsWith("\uFEFF") ?? false);
  });

  test.each<[what: string, before: string, after: string]>([
    [
      "compact",
      '{"mcpServers":{"a":{"command":"x"}}}',
      '{"mcpServers":{"a":{"command":"x","enabled":false}}}',
    ],
    [
      "one line",
      '{"mcpServers": {"a": {"command": "x"}}}',
      '{"mcpServers": {"a": {"command": "x", "enabled": false}}}',
    ],
    [
      "spaced braces",
      '{ "mcpServers": { "b": { "command": "x" } } }\n',
      '{ "mcpServers": { "b": { "command": "x" }, "a": { "enabled": false } } }\n',
    ],
    ["an empty object on one line", '{"mcpServers":{}}', '{"mcpServers":{"a":{"enabled":false}}}'],
    [
      "a comment alone inside",
      '{"mcpServers":{"a":{ /* none */ }}}',
      '{"mcpServers":{"a":{ /* none */ "enabled":false }}}',
    ],
    [
      "a trailing comma",
      '{"mcpServers": {"a": {"command": "x",}}}',
      '{"mcpServers": {"a": {"command": "x", "enabled": false,}}}',
    ],
    [
      "one line among lines",
      '{\n  "mcpServers": {\n    "a": { "command": "x" }, // first\n    "b": {}\n  }\n}\n',
      '{\n  "mcpServers": {\n    "a": { "command": "x", "enabled": false }, // first\n    "b": {}\n  }\n}\n',
    ],
    [
      "a new entry beside entries on one line",
      '{\n  "mcpServers": {\n    "b": { "command": "x" } // only\n  }\n}\n',
      '{\n  "mcpServers": {\n    "b": { "command": "x" }, // only\n    "a": { "enabled": false }\n  }\n}\n',
    ],
    [
      "a comment behind the last line, tabs",
      '{\n\t"mcpServers": {\n\t\t"a": {\n\t\t\t"command": "x" // why\n\t\t}\n\t}\n}',
      '{\n\t"mcpServers": {\n\t\t"a": {\n\t\t\t"command": "x", // why\n\t\t\t"enabled": false\n\t\t}\n\t}\n}',
    ],
    [
      "CRLF, a comma behind the last line",
      '{\r\n  "mcpServers": {\r\n    "a": {\r\n      "command": "x", // why\r\n    }\r\n  }\r\n}\r\n',
      '{\r\n  "mcpServers": {\r\n    "a": {\r\n      "command": "x", // why\r\n      "enabled": false,\r\n    }\r\n  }\r\n}\r\n',
    ],
    [
      "comments only",
      "// mine\n/* not yet */",
      '// mine\n/* not yet */\n{\n  "mcpServers": {\n    "a": {\n      "enabled": false\n    }\n  }\n}\n',
    ],
    [
      "a name given twice",
      '{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}',
      '{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y", "enabled": false}}}',
    ],
    [
      "a key given twice",
      '{"mcpServers": {"a": {"command": "x", "enabled": true, "enabled": true}}}',
      '{"mcpServers": {"a": {"command": "x", "enabled": true, "enabled": false}}}',
    ],
    [
      "both spellings",
      '{"mcp-servers": {"a": {"command": "y"}}, "mcpServers": {"a": {"command": "x"}}}',
      '{"mcp-servers": {"a": {"command": "y", "enabled": false}}, "mcpServers": {"a": {"command": "x"}}}',
    ],
    [
      "disabled",
      '{"mcpServers": {"a": {"command": "x", "disabled": false}}}',
      '{"mcpServers": {"a": {"command": "x", "disabled": true}}}',
    ],
    [
      "both words",
      '{"mcpServers": {"a": {"disabled": false, "enabled": true}}}',
      '{"mcpServers": {"a": {"disabled": true, "enabled": false}}}',
    ],
  ])(
    "%s -> keeps the existing style, and the server is disabled when the file is read",
    (_what, before, after) => {
      expect(editEnabled(before, "a", false)).toBe(after);
      const { entries } = parseConfigText(after, USER);
      const off = entries.flatMap((entry) =>
        entry.kind === "server"
          ? [[entry.definition.name, entry.definition.enabled]]
          : [[entry.name, entry.override.enabled]],
      );
      expect(off.findLast(([name]) => name === "a")).toEqual(["a", false]);
      expect(editEnabled(editEnabled(after, "a", true), "a", false)).toBe(after);
    },
  );

  test.each(["{", "[]", '{"mcpServers": []}', '{"mcpServers": {"a": "x"}}'])("%s is left alone", (text) => {
    expect(() => editEnabled(text, "a", false)).toThrow(/cannot be changed/);
  });
});

test("writeEnabled follows a link, keeps the mode, and makes a missing file", async () => {
  const folder = await temporaryFolder();
  const real = join(folder, "dotfiles", "mcp.json");
  await put(real, COMMENTED);
  await chmod(real, 0o640);
  await symlink(real, join(folder, "mcp.json"));
  await writeEnabled(join(folder, "mcp.json"), "a", false);
  expect(await readFile(real, "utf8")).toBe(COMMENTED.replace("true", "false"));
  expect((await stat(real)).mode & 0o777).toBe(0o640);
  expect((await lstat(join(folder, "mcp.json"))).isSymbolicLink()).toBe(true);
  await writeEnabled(join(folder, "new", "mcp.json"), "a", true);
  expect(JSON.parse(await readFile(join(folder, "new", "mcp.json"), "utf8"))).toEqual({
    mcpServers: { a: { enabled: true } },
  });
});

test.each([
  [USER, false, USER.file],
  [PROJECT_FILE, false, PROJECT_FILE.file],
  [{ file: "/home/me/.cursor/mcp.json", origin: "import" as const }, false, USER.file],
  [{ file: "/ext.ts", origin: "extension" as const }, false, USER.file],
  [USER, true, PROJECT_PI.file],
])("a server of %o, project %s -> changes %s", (source, project, file) => {
  expect(fileToEdit(definition("a", { command: "x" }, source), facts(), { project })).toBe(file);
});

test("a project that is not trusted -> nothing is written", () => {
  const untrusted = facts({ projectTrusted: false });
  expect(() => fileToEdit(definition("a", { command: "x" }), untrusted, { project: true })).toThrow(
    /not trusted/,
  );
});

test.each([
  ["the user's", {}, false, USER.file],
  ["the project's", {}, true, PROJECT_PI.file],
  ["that of --mcp-config, from the project's folder", { configPath: "my.json" }, false, "/work/app/my.json"],
  ["that of --mcp-config, from the home folder", { configPath: "~/my.json" }, false, "/home/me/my.json"],
])("/mcp edit opens %s", (_, over, project, file) => {
  expect(editableFile(facts(over), project)).toBe(file);
});

test("/mcp edit --project in a project that is not trusted -> bad_config, because the file would not be read", () => {
  expect(() => editableFile(facts({ projectTrusted: false }), true)).toThrow(/not trusted/);
});

test("a file that is read-only, a folder, or below a file -> bad_config with the file; it stays as it was", async () => {
  const folder = await temporaryFolder();
  const file = join(folder, "mcp.json");
  await put(file, COMMENTED);
  await chmod(file, 0o444);
  const failed = (path: string, why: RegExp) => ({
    code: "bad_config",
    message: expect.stringMatching(why),
    data: { file: path },
  });
  await expect(writeEnabled(file, "a", false)).rejects.toMatchObject(
    failed(file, /mcp\.json could not be written: it is read-only/),
  );
  await expect(changeConfigFile(file, () => "{}")).rejects.toMatchObject(failed(file, /it is read-only/));
  expect(await readFile(file, "utf8")).toBe(COMMENTED);
  await expect(writeEnabled(folder, "a", false)).rejects.toMatchObject(
    failed(folder, /cannot be read: .*EISDIR/),
  );
  const below = join(file, "mcp.json");
  await expect(changeConfigFile(below, () => "{}")).rejects.toMatchObject(
    failed(below, /could not be written: ENOTDIR/),
  );
});

test("a broken file -> the error names file and position", async () => {
  const file = join(await temporaryFolder(), "mcp.json");
  await put(file, '{\n  "mcpServers": }');
  await expect(writeEnabled(file, "a", false)).rejects.toThrow(
    `${file}:2:17 cannot be changed: not valid JSON`,
  );
});

test.each<[overrides: [ConfigSource, Override][], file: string]>([
  [[[PROJECT_PI, { enabled: false }]], PROJECT_PI.file],
  [[[PROJECT_FILE, { enabled: true }]], PROJECT_FILE.file],
  [[[PROJECT_PI, { lifecycle: "eager" }]], USER.file],
  [[[PROJECT_FILE, { excludeTools: ["x"] }]], USER.file],
  [
    [
      [PROJECT_FILE, { enabled: false }],
      [PROJECT_PI, { idleTimeout: 1 }],
    ],
    PROJECT_FILE.file,
  ],
])("overridden by %o -> changes %s, the file that counts", (overrides, file) => {
  const overridden = overrides.reduce(
    (server, [by, override]) => applyOverride(server, override, by),
    definition("a", { command: "x" }),
  );
  expect(fileToEdit(overridden, facts(), { project: false })).toBe(file);
});

test("schema/mcp.schema.json is up to date: npm run schema", async () => {
  const file = join(import.meta.dirname, "../../../../../../schema/mcp.schema.json");
  expect(await readFile(file, "utf8")).toBe(schemaText());
});

describe("editAllowed", () => {
  const allow = (text: string | undefined, rules: Record<string, string> = {}, tool = "t"): string =>
    editAllowed(text, { server: "a", tool, rules });

  test.each([
    [
      undefined,
      {},
      '{\n  "mcpServers": {\n    "a": {\n      "approve": {\n        "t": "allow"\n      }\n    }\n  }\n}\n',
    ],
    [
      '{"mcpServers": {"a": {"command": "x"}}}',
      {},
      '{"mcpServers": {"a": {"command": "x", "approve": {"t": "allow"}}}}',
    ],
    [
      '{"mcpServers": {"a": {"approve": "destructive", "command": "x"}}}',
      { "*": "destructive" },
      '{"mcpServers": {"a": {"approve": {"t": "allow", "*": "destructive"}, "command": "x"}}}',
    ],
    [
      '{"mcpServers": {"a": {"approve": {"*": "ask"}}}}',
      { "*": "ask" },
      '{"mcpServers": {"a": {"approve": {"*": "ask", "t": "allow"}}}}',
    ],
    [
      '{"mcpServers": {"a": {"approve": {"t": "ask"}}}}',
      { t: "ask" },
      '{"mcpServers": {"a": {"approve": {"t": "allow"}}}}',
    ],
    // The rules stand in an earlier file, whose place this entry takes.
    [
      '{"mcpServers": {}}',
      { "*": "ask", t: "ask", x: "deny" },
      '{"mcpServers": {"a": {"approve": {"t": "allow", "*": "ask", "x": "deny"}}}}',
    ],
  ])("%# -> the rule is added, and every other rule stays", (before, rules, after) => {
    expect(allow(before, rules)).toBe(after);
  });

  test("comments and formatting stay", () => {
    const text = `{
  // my servers
  "mcpServers": {
    "a": {
      "command": "x", // the program
      "approve": {
        "*": "ask", // all
      },
    },
  },
}
`;
    expect(allow(text)).toBe(text.replace('"*": "ask", // all', '"*": "ask", // all\n        "t": "allow",'));
    const word = text.replace(/\{\n {8}"\*.*\n {6}\}/, '"always" /* careful */');
    expect(allow(word, { "*": "ask" })).toBe(word.replace('"always"', '{"t": "allow", "*": "ask"}'));
  });

  test("a name with quotes and backslashes -> a key that holds the name", () => {
    const tool = 'a"b\\c';
    expect(JSON.parse(allow("{}", {}, tool)).mcpServers.a.approve).toEqual({ [tool]: "allow" });
  });

  test.each([['{"mcpServers": {"a": 1}}'], ['{"mcpServers": [}']])(
    "%s -> an error, and nothing is guessed",
    (text) => {
      expect(() => allow(text)).toThrow(/cannot be changed/);
    },
  );
});
