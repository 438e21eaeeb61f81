import { spawn } from "node:child_process";
import { once } from "node:events";
import { lstatSync, writeFileSync } from "node:fs";
import { chmod, readdir, readFile, readlink, rm, stat, symlink } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { policySchemaText, schemaText } from "../../../../../../scripts/key-tables.ts";
import { isObject } from "../../../../../../src/shared/protocol/values.ts";
import {
  changeConfigFile,
  editAllowed,
  editableFile,
  editEnabled,
  fileToEdit,
  writeEdited,
} from "../../../../../../workers/connection/config/edit/edit.ts";
import {
  editAdded,
  editImports,
  editRemoved,
  namesIn,
} from "../../../../../../workers/connection/config/edit/entries.ts";
import { applyOverride, type Override } from "../../../../../../workers/connection/config/entry/override.ts";
import { parseJsonc } from "../../../../../../workers/connection/config/files/document.ts";
import { parseConfigText } from "../../../../../../workers/connection/config/files/files.ts";
import type { ConfigSource } from "../../../../../../workers/connection/config/files/sources.ts";
import { configFacts, loadConfig } from "../../../../../../workers/connection/config/merge/merge.ts";
import { oneFile } from "../../../../../support/one-file.ts";
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

  const with_ = (servers: string): string => `{"mcpServers": ${servers}}`;
  test.each<[what: string, before: string, after: string]>([
    [
      "compact",
      '{"mcpServers":{"a":{"command":"x"}}}',
      '{"mcpServers":{"a":{"command":"x","enabled":false}}}',
    ],
    ["one line", with_('{"a": {"command": "x"}}'), with_('{"a": {"command": "x", "enabled": false}}')],
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
      with_('{"a": {"command": "x",}}'),
      with_('{"a": {"command": "x", "enabled": false,}}'),
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
      with_('{"a": {"command": "x"}, "a": {"command": "y"}}'),
      with_('{"a": {"command": "x"}, "a": {"command": "y", "enabled": false}}'),
    ],
    [
      "a key given twice",
      with_('{"a": {"command": "x", "enabled": true, "enabled": true}}'),
      with_('{"a": {"command": "x", "enabled": true, "enabled": false}}'),
    ],
    [
      "both spellings",
      '{"mcp-servers": {"a": {"command": "y"}}, "mcpServers": {"a": {"command": "x"}}}',
      '{"mcp-servers": {"a": {"command": "y", "enabled": false}}, "mcpServers": {"a": {"command": "x"}}}',
    ],
    [
      "disabled",
      with_('{"a": {"command": "x", "disabled": false}}'),
      with_('{"a": {"command": "x", "disabled": true}}'),
    ],
    [
      "both words",
      with_('{"a": {"disabled": false, "enabled": true}}'),
      with_('{"a": {"disabled": true, "enabled": false}}'),
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

const switched = (file: string, server: string, enabled: boolean): Promise<void> =>
  changeConfigFile(file, (text) => editEnabled(text, server, enabled, file));

test("changeConfigFile follows a link, keeps the mode, and makes a missing file", async () => {
  const folder = await temporaryFolder();
  const real = join(folder, "dotfiles", "mcp.json");
  await put(real, COMMENTED);
  await chmod(real, 0o640);
  await symlink(join("dotfiles", "mcp.json"), join(folder, "mcp.json"));
  await switched(join(folder, "mcp.json"), "a", false);
  expect(await readFile(real, "utf8")).toBe(COMMENTED.replace("true", "false"));
  expect((await stat(real)).mode & 0o777).toBe(0o640);
  expect(await readlink(join(folder, "mcp.json"))).toBe(join("dotfiles", "mcp.json"));
  expect([await readdir(folder), await readdir(join(folder, "dotfiles"))]).toEqual([
    ["dotfiles", "mcp.json"],
    ["mcp.json"],
  ]);
  await switched(join(folder, "new", "mcp.json"), "a", true);
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
  ["that of --mcp-config, an absolute path", { configPath: "/abs.json" }, false, "/abs.json"],
  ["that of --mcp-config, also the project's", { configPath: ".mcp.json" }, false, "/work/app/.mcp.json"],
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
  await expect(switched(file, "a", false)).rejects.toMatchObject(
    failed(file, /mcp\.json could not be written: it is read-only/),
  );
  await expect(changeConfigFile(file, () => "{}")).rejects.toMatchObject(failed(file, /it is read-only/));
  expect(await readFile(file, "utf8")).toBe(COMMENTED);
  await expect(switched(folder, "a", false)).rejects.toMatchObject(
    failed(folder, /cannot be read: .*EISDIR/),
  );
  const below = join(file, "mcp.json");
  await expect(changeConfigFile(below, () => "{}")).rejects.toMatchObject(
    failed(below, /could not be written: ENOTDIR/),
  );
});

test("a file that is not UTF-8 -> bad_config with what to do, its bytes stay, and its reader is told", async () => {
  const folder = await temporaryFolder();
  const file = join(folder, "mcp.json");
  const bytes = Buffer.from(COMMENTED.replace("my servers", "für später"), "latin1");
  writeFileSync(file, bytes);
  const refused = { code: "bad_config", message: `${file} is not UTF-8 text: it was not changed.` };
  await expect(switched(file, "a", false)).rejects.toMatchObject(refused);
  await expect(writeEdited(file, { before: "", text: "{}" })).rejects.toMatchObject(refused);
  expect(bytes.equals(await readFile(file))).toBe(true);
  expect(await readdir(folder)).toEqual(["mcp.json"]);
  const session = { agentDir: folder, cwd: join(folder, "project"), projectTrusted: false };
  const { servers, problems } = await loadConfig(configFacts(session));
  expect(servers.map(({ name }) => name)).toEqual(["a", "b"]);
  expect(problems).toMatchObject([{ severity: "warning", file, remedy: "Save it as UTF-8." }]);
});

test("a broken file -> the error names file and position", async () => {
  const file = join(await temporaryFolder(), "mcp.json");
  await put(file, '{\n  "mcpServers": }');
  await expect(switched(file, "a", false)).rejects.toThrow(`${file}:2:17 cannot be changed: not valid JSON`);
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

test.each([
  ["mcp", schemaText],
  ["policy", policySchemaText],
])("schema/%s.schema.json is up to date: npm run schema", async (name, text) => {
  const file = join(import.meta.dirname, `../../../../../../schema/${name}.schema.json`);
  expect(await readFile(file, "utf8")).toBe(text());
});

describe("editAllowed", () => {
  const allow = (text: string | undefined, rules: Record<string, string> = {}, tool = "t"): string =>
    editAllowed(text, { server: "a", tool, rules });
  const servers = (keys: string): string => `{"mcpServers": {"a": {${keys}}}}`;

  test.each([
    [
      undefined,
      {},
      '{\n  "mcpServers": {\n    "a": {\n      "approve": {\n        "t": "allow"\n      }\n    }\n  }\n}\n',
    ],
    [servers('"command": "x"'), {}, servers('"command": "x", "approve": {"t": "allow"}')],
    [
      servers('"approve": "destructive", "command": "x"'),
      { "*": "destructive" },
      servers('"approve": {"t": "allow", "*": "destructive"}, "command": "x"'),
    ],
    [servers('"approve": {"*": "ask"}'), { "*": "ask" }, servers('"approve": {"*": "ask", "t": "allow"}')],
    [servers('"approve": {"t": "ask"}'), { t: "ask" }, servers('"approve": {"t": "allow"}')],
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

const EDITS = 12;
const PROGRAM = join(import.meta.dirname, "../../../../../fixtures/edits/switches-servers.ts");

const read = (file: string): Promise<string> => readFile(file, "utf8");

/** Names of the servers that the file disables. */
async function switchedOff(file: string): Promise<string[]> {
  const { mcpServers } = JSON.parse(await read(file)) as {
    mcpServers: Record<string, { enabled?: boolean }>;
  };
  return Object.keys(mcpServers).filter((name) => mcpServers[name]?.enabled === false);
}

test("two processes that each disable twelve servers at once -> all twenty-four are disabled", async () => {
  const folder = await temporaryFolder();
  const file = join(folder, "mcp.json");
  const names = ["a", "b"].flatMap((prefix) => Array.from({ length: EDITS }, (_, i) => `${prefix}${i}`));
  await put(file, { mcpServers: Object.fromEntries(names.map((name) => [name, { command: "x" }])) });
  const program = oneFile("switches-servers", PROGRAM).file;
  const writers = ["a", "b"].map((prefix) =>
    spawn(process.execPath, [program, file, prefix, String(EDITS)], { stdio: ["pipe", "pipe", "inherit"] }),
  );
  onTestFinished(() => {
    for (const writer of writers) writer.kill("SIGKILL");
  });
  await Promise.all(writers.map(({ stdout }) => once(stdout, "data")));
  const ends = writers.map((writer) => once(writer, "exit"));
  for (const { stdin } of writers) stdin.write("go\n");
  expect(await Promise.all(ends)).toEqual([
    [0, null],
    [0, null],
  ]);
  expect(await switchedOff(file)).toEqual(names);
  expect(await readdir(folder)).toEqual(["mcp.json"]);
});

test("an editor saves between our read and our write -> both changes are in the file", async () => {
  const file = join(await temporaryFolder(), "mcp.json");
  await put(file, { mcpServers: { a: { command: "x" } } });
  let calls = 0;
  await changeConfigFile(file, (text) => {
    // The second call is the one whose result is written.
    if (++calls === 2)
      writeFileSync(file, '{"mcpServers": {"a": {"command": "saved"}, "b": {"command": "new"}}}');
    return editEnabled(text, "a", false, file);
  });
  expect(JSON.parse(await read(file))).toEqual({
    mcpServers: { a: { command: "saved", enabled: false }, b: { command: "new" } },
  });
});

test("an editor breaks the file meanwhile -> the editor's text stays, and the error names the position", async () => {
  const file = join(await temporaryFolder(), "mcp.json");
  await put(file, { mcpServers: { a: { command: "x" } } });
  let calls = 0;
  const changing = changeConfigFile(file, (text) => {
    if (++calls === 2) writeFileSync(file, '{"mcpServers": ');
    return editEnabled(text, "a", false, file);
  });
  await expect(changing).rejects.toMatchObject({
    code: "bad_config",
    message: expect.stringContaining("not valid JSON"),
  });
  expect(await read(file)).toBe('{"mcpServers": ');
});

test("another program keeps changing the file -> the change is given up, the program's text stays", async () => {
  const folder = await temporaryFolder();
  const file = join(folder, "mcp.json");
  await put(file, "0");
  let calls = 0;
  const changing = changeConfigFile(file, () => {
    writeFileSync(file, String(++calls));
    return "mine";
  });
  await expect(changing).rejects.toMatchObject({
    code: "bad_config",
    message: `${file} could not be written: other programs keep changing it.`,
  });
  expect(await read(file)).toBe(String(calls));
  expect(await readdir(folder)).toEqual(["mcp.json"]);
});

test("another program saves while the user edits -> its text stays, and is the answer", async () => {
  const file = join(await temporaryFolder(), "mcp.json");
  await put(file, "saved meanwhile");
  expect(await writeEdited(file, { before: "as it was", text: "mine" })).toBe("saved meanwhile");
  expect(await read(file)).toBe("saved meanwhile");
  expect(await writeEdited(file, { before: "saved meanwhile", text: "mine" })).toBeUndefined();
  expect(await read(file)).toBe("mine");
  expect(await writeEdited(file, { before: "saved meanwhile", text: "mine" })).toBeUndefined();
  await rm(file);
  expect(await writeEdited(file, { before: "mine", text: "another" })).toBe("");
  await expect(read(file)).rejects.toMatchObject({ code: "ENOENT" });
});

test("the file holds the change already -> it is not written again", async () => {
  const file = join(await temporaryFolder(), "mcp.json");
  await put(file, '{"mcpServers": {"a": {"enabled": false}}}');
  const { ino } = lstatSync(file);
  await switched(file, "a", false);
  expect(lstatSync(file).ino).toBe(ino);
});

test("a server with the name of a property that every object has -> changed like any other", async () => {
  const file = join(await temporaryFolder(), "mcp.json");
  await put(file, { mcpServers: {} });
  await switched(file, "constructor", false);
  expect(await switchedOff(file)).toEqual(["constructor"]);
});

const SEVERAL = `{
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
    const text = editAdded(SEVERAL, [{ name: "new", entry: ENTRY }]);
    expect(text.startsWith(SEVERAL.slice(0, SEVERAL.indexOf('"y" }') + 5))).toBe(true);
    expect(text.endsWith(SEVERAL.slice(SEVERAL.indexOf("\n  },\n")))).toBe(true);
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
    SEVERAL,
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
    expect(() => editAdded(SEVERAL, entries)).toThrow(/has a server named b already/);
    const text = editAdded(SEVERAL, entries, { replace: true });
    expect(dataOf(text).mcpServers?.b).toEqual(ENTRY);
    for (const comment of ["// my servers", "// the first one", "// beside a", "/* before c */"])
      expect(text).toContain(comment);
  });

  test.each<[before: object, over: object, after: object]>([
    [
      { approve: "always", excludeTools: ["drop_*"], sandbox: true },
      {},
      { approve: "always", excludeTools: ["drop_*"], sandbox: true },
    ],
    [
      { approve: "always", lifecycle: "eager" },
      { lifecycle: "lazy" },
      { approve: "always", lifecycle: "lazy" },
    ],
    [{ includeTools: ["get_*"] }, {}, { includeTools: ["get_*"] }],
    // The person who adds a server wants it on, and a key that had no effect gets none.
    [{ enabled: false, disabled: true, env: { A: "b" }, skills: false }, {}, { skills: false }],
    [{ url: "https://x.y", approve: "always" }, {}, {}],
    [{ socket: "/x.sock", approve: "always" }, {}, {}],
  ])("%j in the place of the server, which also says %j -> the rules %j stay", (before, over, rules) => {
    const entry = { ...ENTRY, ...over };
    const text = editAdded(JSON.stringify({ mcpServers: { a: before } }), [{ name: "a", entry }], {
      replace: true,
    });
    expect(dataOf(text).mcpServers?.a).toEqual({ ...ENTRY, ...rules });
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
    ["a", SEVERAL.replace('    "a": { "command": "x" }, // beside a\n', "")],
    ["b", SEVERAL.replace(/ {4}"b": \{\n.*\n {4}\},\n/, "")],
    ["c", SEVERAL.replace('    "c": { "command": "y" }\n', "").replace("    },\n    /*", "    }\n    /*")],
  ])("takes %s with its lines, and all else stays", (name, after) => {
    expect(editRemoved(SEVERAL, name)).toBe(after);
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
    const text = editAdded(SEVERAL, [{ name: "new", entry: ENTRY }]);
    expect(editRemoved(text, "new")).toBe(SEVERAL);
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
    expect(() => editImports('{"imports": "cursor"}', ["codex"])).toThrow(/imports is not a list/);
  });
});

test("the names of a text, also of wrong entries; none of a text that cannot be read", () => {
  expect([...namesIn('{"mcpServers": {"a": 1}, "mcp-servers": {"b": {}}}')]).toEqual(["b", "a"]);
  expect(namesIn("{").size + namesIn(undefined).size + namesIn("[]").size).toBe(0);
});
