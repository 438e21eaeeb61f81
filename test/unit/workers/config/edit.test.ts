import { chmod, lstat, readFile, stat, symlink } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { editEnabled, fileToEdit, writeEnabled } from "../../../../workers/connection/config/edit.ts";
import { schemaText } from "../../../../workers/connection/config/json-schema.ts";
import { applyOverride } from "../../../../workers/connection/config/override.ts";
import { definition, facts, PROJECT_FILE, PROJECT_PI, put, temporaryFolder, USER } from "./support.ts";

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

  test("adds the key where it is missing", () => {
    const text = editEnabled(COMMENTED, "b", false);
    expect(text).toContain("// my servers");
    expect(text).toMatch(/"url": "https:\/\/b\.example\.com\/mcp",\n {6}"enabled": false/);
  });

  test.each([
    [undefined, '{\n  "mcpServers": {\n    "a": {\n      "enabled": false\n    }\n  }\n}\n'],
    ["", '{\n  "mcpServers": {\n    "a": {\n      "enabled": false\n    }\n  }\n}\n'],
    ["{}", '{\n  "mcpServers": {\n    "a": {\n      "enabled": false\n    }\n  }\n}'],
    ['{"mcp-servers": {"a": {"command": "x"}}}', undefined],
    ['{"mcpServers": {"a": {"command": "x", "disabled": false}}}', undefined],
    ["\uFEFF{}", undefined],
    [
      '{\r\n\t"mcpServers": {}\r\n}',
      '{\r\n\t"mcpServers": {\r\n\t\t"a": {\r\n\t\t\t"enabled": false\r\n\t\t}\r\n\t}\r\n}',
    ],
  ])("%# -> a whole file that says so", (before, after) => {
    const text = editEnabled(before, "a", false);
    if (after !== undefined) expect(text).toBe(after);
    const parsed = JSON.parse(text.replace("\uFEFF", ""));
    const servers = parsed.mcpServers ?? parsed["mcp-servers"];
    expect(servers.a.enabled).toBe(false);
    expect(servers.a).not.toHaveProperty("disabled");
    expect(text.startsWith("\uFEFF")).toBe(before?.startsWith("\uFEFF") ?? false);
  });

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

test("in a project that is not trusted nothing is written", () => {
  const untrusted = facts({ projectTrusted: false });
  expect(() => fileToEdit(definition("a", { command: "x" }), untrusted, { project: true })).toThrow(
    /not trusted/,
  );
});

test("where a project overrides a server, that override is what is changed", () => {
  const overridden = applyOverride(definition("a", { command: "x" }), { enabled: false }, PROJECT_PI);
  expect(fileToEdit(overridden, facts(), { project: false })).toBe(PROJECT_PI.file);
});

test("schema/mcp.schema.json is up to date: npm run schema", async () => {
  const file = join(import.meta.dirname, "../../../../schema/mcp.schema.json");
  expect(await readFile(file, "utf8")).toBe(schemaText());
});
