/**
 * Owns: where and how a wish about one server is written, on real files: the effect is the wished one also where other
 * rules decide today, comments stay, a change back leaves the file as it was, and a rule that forbids it is named.
 */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { ThreadsError } from "../../../../../../src/shared/protocol/errors.ts";
import { changeConfigFile } from "../../../../../../workers/connection/config/edit/edit.ts";
import {
  decideIn,
  entriesOf,
  exposureEdits,
  findEffectiveFile,
  keyEdit,
  placeOf,
} from "../../../../../../workers/connection/config/edit/setting-change.ts";
import type { Exposure } from "../../../../../../workers/connection/config/entry/exposure.ts";
import type { ConfigFacts } from "../../../../../../workers/connection/config/files/sources.ts";
import { loadConfig } from "../../../../../../workers/connection/config/merge/merge.ts";
import { tempFolder } from "../../../../temp-folder.ts";

const TOOLS = ["read", "write", "delete_all"];
const USER = "agent/mcp.json";
const SHARED = ".config/mcp/mcp.json";
const PROJECT = "project/.pi/mcp.json";
const MCP_JSON = "project/.mcp.json";

async function place(files: Record<string, string>): Promise<{ facts: ConfigFacts; dir: string }> {
  const dir = await tempFolder();
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(dir, path)), { recursive: true });
    await writeFile(join(dir, path), text);
  }
  const facts: ConfigFacts = {
    agentDir: join(dir, "agent"),
    cwd: join(dir, "project"),
    projectTrusted: true,
    platform: "linux",
    home: dir,
    env: {},
  };
  return { facts, dir };
}

const entry = (rules: string): string => `{"mcpServers": {"s": {"command": "x"${rules}}}}`;
const override = (rules: string): string => `{"mcpServers": {"s": {${rules}}}}`;

interface Wished {
  tools?: string[] | undefined;
  to: Exposure;
  project?: boolean;
}

/** Carries the wish out on the files. Answers what decides about each tool then. */
async function expose(
  at: Awaited<ReturnType<typeof place>>,
  { tools, to, project = false }: Wished,
): Promise<Exposure[]> {
  const { facts } = at;
  const applied = await loadConfig(facts);
  const change = {
    server: "s",
    tools: tools ?? TOOLS,
    all: tools === undefined,
    to,
    settings: applied.settings,
  };
  const entries = await entriesOf("s", facts);
  const { file, edit } = await findEffectiveFile(
    {
      server: "s",
      project,
      key: "toolExposure",
      edits: (path, definition) => exposureEdits(path, definition, change),
      whyNoEffect: (definition, settings) => {
        const decide = decideIn(definition, settings);
        const other = change.tools.find((tool) => decide(tool).exposure !== to);
        const by = other === undefined ? undefined : decide(other).by;
        return other === undefined
          ? undefined
          : new ThreadsError("bad_config", JSON.stringify(by && placeOf(by, entries, definition.file)));
      },
    },
    { facts, applied },
  );
  await changeConfigFile(file, edit);
  const after = await loadConfig(facts);
  const definition = after.servers.find(({ name }) => name === "s");
  if (!definition) throw new Error("the server is gone");
  expect(after.problems).toEqual(applied.problems);
  return TOOLS.map((tool) => decideIn(definition, after.settings)(tool).exposure);
}

const textOf = (at: { dir: string }, path: string): Promise<string> => readFile(join(at.dir, path), "utf8");

describe("one tool", () => {
  test.each<[before: string, to: Exposure, after: string]>([
    ["", "direct", ', "toolExposure": {"read": "direct"}'],
    [
      ', "toolExposure": {"read": "direct", "w*": "hidden"}',
      "hidden",
      ', "toolExposure": {"read": "hidden", "w*": "hidden"}',
    ],
    // Without the rule the tool is found by search anyway.
    [', "toolExposure": {"read": "direct"}', "search", ""],
    [', "directTools": true', "search", ', "directTools": true, "toolExposure": {"read": "deferred"}'],
    [', "toolExposure": {"*": "hidden"}', "direct", ', "toolExposure": {"*": "hidden", "read": "direct"}'],
    [', "excludeTools": ["write", "read"]', "search", ', "excludeTools": ["write"]'],
    [', "includeTools": ["write"]', "search", ', "includeTools": ["write", "read"]'],
  ])("%s, read to %s -> %s", async (before, to, after) => {
    const at = await place({ [USER]: entry(before) });
    expect((await expose(at, { tools: ["read"], to }))[0]).toBe(to);
    expect(await textOf(at, USER)).toBe(entry(after));
  });

  test.each<[files: Record<string, string>, wish: Wished, file: string, after: string]>([
    // The file that has the rules last is changed, and a file that defines the server for others stays.
    [
      { [SHARED]: entry(""), [USER]: override('"toolExposure": {"w*": "hidden"}') },
      { tools: ["read"], to: "direct" },
      USER,
      override('"toolExposure": {"w*": "hidden", "read": "direct"}'),
    ],
    // The project's override replaces the rules of the user's file, so it repeats them.
    [
      { [USER]: entry(', "toolExposure": {"w*": "hidden"}') },
      { tools: ["read"], to: "direct", project: true },
      PROJECT,
      '{\n  "mcpServers": {\n    "s": {\n      "toolExposure": {\n        "read": "direct",\n        "w*": "hidden"\n      }\n    }\n  }\n}\n',
    ],
    [
      { [MCP_JSON]: entry("") },
      { tools: ["read"], to: "hidden" },
      MCP_JSON,
      entry(', "toolExposure": {"read": "hidden"}'),
    ],
  ])("%j, %j -> %s", async (files, wish, file, after) => {
    const at = await place(files);
    const exposures = await expose(at, wish);
    expect(exposures[0]).toBe(wish.to);
    expect(await textOf(at, file)).toBe(after);
  });

  test("direct, hidden and back -> the file is as it was, with its comments", async () => {
    const text = `{
  // My servers.
  "mcpServers": {
    "s": {
      "command": "x", // It runs x.
      "args": ["a", /* b */ "c"],
    },
  },
}
`;
    const at = await place({ [USER]: text });
    await expose(at, { tools: ["read"], to: "direct" });
    expect(await textOf(at, USER)).toContain('"read": "direct"');
    await expose(at, { tools: ["read"], to: "hidden" });
    await expose(at, { tools: ["read"], to: "search" });
    expect(await textOf(at, USER)).toBe(text);
  });

  test("an override that held only this rule -> gone without a trace", async () => {
    const at = await place({ [SHARED]: entry(""), [USER]: override('"toolExposure": {"read": "hidden"}') });
    await expose(at, { tools: ["read"], to: "search" });
    expect(JSON.parse(await textOf(at, USER))).toEqual({ mcpServers: {} });
  });

  test("an item of a list of many lines -> it goes, and the comments of the others stay", async () => {
    const at = await place({
      [USER]: `{"mcpServers": {"s": {"command": "x", "excludeTools": [\n  "write", // writes\n  "read"\n]}}}`,
    });
    await expose(at, { tools: ["read"], to: "search" });
    expect(await textOf(at, USER)).toContain('"write"');
    expect(await textOf(at, USER)).toContain("// writes");
    expect(await textOf(at, USER)).not.toContain("read");
  });
});

describe("all tools", () => {
  test.each<[before: string, to: Exposure, after: string]>([
    ["", "direct", ', "exposure": "direct"'],
    [', "exposure": "hidden"', "search", ', "exposure": "deferred"'],
    [', "directTools": true, "toolExposure": {"read": "hidden"}', "direct", ', "directTools": true'],
    [
      ', "toolExposure": {"w*": "hidden"}',
      "direct",
      ', "toolExposure": {"w*": "hidden", "write": "direct"}, "exposure": "direct"',
    ],
  ])("%s, all %s -> %s", async (before, to, after) => {
    const at = await place({ [USER]: entry(before) });
    expect(await expose(at, { to })).toEqual([to, to, to]);
    expect(await textOf(at, USER)).toBe(entry(after));
  });
});

describe("a rule forbids it", () => {
  test.each<
    [files: Record<string, string>, wish: Wished, place: { rule: string; file: string; line: number }]
  >([
    [
      { [USER]: '{"mcpServers": {"s": {"command": "x",\n"excludeTools": ["w",\n"delete_*"]}}}' },
      { tools: ["delete_all"], to: "search" },
      { rule: 'excludeTools "delete_*"', file: USER, line: 3 },
    ],
    // The project's exclusion adds to the user's rules.
    [
      { [USER]: entry(""), [PROJECT]: override('\n"excludeTools": ["rea*"]') },
      { tools: ["read"], to: "direct" },
      { rule: 'excludeTools "rea*"', file: PROJECT, line: 2 },
    ],
    // A project's file cannot show what the user's own file hides.
    [
      { [USER]: entry(', "toolExposure": {"read": "hidden"}') },
      { tools: ["read"], to: "direct", project: true },
      { rule: 'toolExposure "read"', file: USER, line: 1 },
    ],
  ])(
    "%j, %j -> an error that names it, and nothing is written",
    async (files, wish, { rule, file, line }) => {
      const at = await place(files);
      const error = await expose(at, wish).catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(ThreadsError);
      expect(JSON.parse((error as Error).message)).toEqual({ rule, file: join(at.dir, file), line });
      for (const [path, text] of Object.entries(files)) expect(await textOf(at, path)).toBe(text);
    },
  );
});

describe("a key", () => {
  const LAZY = override('"lifecycle": "lazy"');
  const set = async (
    at: Awaited<ReturnType<typeof place>>,
    key: "lifecycle" | "approve" | "toolPrefix",
    value: string,
    project = false,
  ) => {
    const { facts } = at;
    const found = await findEffectiveFile(
      {
        server: "s",
        project,
        key,
        edits: (file) => [keyEdit(file, "s", key, value)],
        whyNoEffect: (definition) =>
          definition[key] === value ? undefined : new ThreadsError("bad_config", "it does not count"),
      },
      { facts, applied: await loadConfig(facts) },
    );
    await changeConfigFile(found.file, found.edit);
    return found.file.slice(at.dir.length + 1);
  };

  test.each<[Record<string, string>, "lifecycle" | "approve" | "toolPrefix", string, string, string]>([
    [{ [USER]: entry("") }, "lifecycle", "eager", USER, entry(', "lifecycle": "eager"')],
    [{ [USER]: entry(', "approve": "never"') }, "approve", "always", USER, entry(', "approve": "always"')],
    [{ [SHARED]: entry("") }, "toolPrefix", "short", SHARED, entry(', "toolPrefix": "short"')],
    [{ [SHARED]: entry(""), [USER]: LAZY }, "lifecycle", "eager", USER, override('"lifecycle": "eager"')],
    [
      { [USER]: entry(', "lifecycle": "eager"'), [PROJECT]: LAZY },
      "lifecycle",
      "eager",
      PROJECT,
      override('"lifecycle": "eager"'),
    ],
  ])("%j, %s: %s -> written where it has an effect", async (files, key, value, file, after) => {
    const at = await place(files);
    expect(await set(at, key, value)).toBe(file);
    expect(await textOf(at, file)).toBe(after);
  });

  test("an override cannot hold the key -> refused with the file's own words, nothing is written", async () => {
    const at = await place({ [USER]: entry("") });
    await expect(set(at, "toolPrefix", "short", true)).rejects.toThrow(/neither command nor url is given/);
    await expect(textOf(at, PROJECT)).rejects.toThrow(/ENOENT/);
  });

  test("rules that somebody wrote -> not replaced by a word", async () => {
    const text = entry(', "approve": {"write": "ask"}');
    const at = await place({ [USER]: text });
    await expect(set(at, "approve", "always")).rejects.toThrow(/approve of s in .*mcp\.json holds rules/);
    expect(await textOf(at, USER)).toBe(text);
  });
});
