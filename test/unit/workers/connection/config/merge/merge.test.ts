/** Owns: which files are read, and how they add up. */

import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it, test } from "vitest";
import type { ConfigProblem } from "../../../../../../src/shared/protocol/session.ts";
import { describeProblem } from "../../../../../../src/shared/text/failure.ts";
import type { ServerDefinition } from "../../../../../../workers/connection/config/entry/definition.ts";
import {
  type ConfigFacts,
  cacheFile,
  configSources,
} from "../../../../../../workers/connection/config/files/sources.ts";
import { type LoadedConfig, loadConfig } from "../../../../../../workers/connection/config/merge/merge.ts";
import { facts, put, temporaryFolder } from "../support.ts";

interface Place {
  /** Facts whose files lie in a folder of the test. */
  at: ConfigFacts;
  user: string;
  project: string;
}

async function place(over: Partial<ConfigFacts> = {}): Promise<Place> {
  const home = await temporaryFolder();
  const at = facts({ home, agentDir: join(home, "agent"), cwd: join(home, "work"), ...over });
  return { at, user: join(at.agentDir, "mcp.json"), project: join(at.cwd, ".pi", "mcp.json") };
}

const names = ({ servers }: LoadedConfig): string[] => servers.map(({ name }) => name);

const SHARED = "/home/me/.config/mcp/mcp.json";
const AGENTS = ["/home/me/.agents/mcp.json", "/home/me/.agents/mcp/mcp.json"];
const AGENT = "/home/me/.pi/agent/mcp.json";
const PROJECT = ["/work/app/.mcp.json", "/work/app/.pi/mcp.json"];

describe("configSources", () => {
  it.each<[Partial<ConfigFacts>, string[], string[]]>([
    [
      {},
      [SHARED, ...AGENTS, AGENT, ...PROJECT],
      ["user", "user", "user", "user", "project-file", "project-pi"],
    ],
    [{ projectTrusted: false }, [SHARED, ...AGENTS, AGENT], ["user", "user", "user", "user"]],
    [
      { configPath: "/x.json" },
      [SHARED, ...AGENTS, "/x.json", ...PROJECT],
      ["user", "user", "user", "user", "project-file", "project-pi"],
    ],
    [
      { configPath: "~/x.json", projectTrusted: false },
      [SHARED, ...AGENTS, "/home/me/x.json"],
      ["user", "user", "user", "user"],
    ],
    [
      { configPath: "conf/x.json", projectTrusted: false },
      [SHARED, ...AGENTS, "/work/app/conf/x.json"],
      ["user", "user", "user", "user"],
    ],
    [
      { configPath: ".mcp.json" },
      [SHARED, ...AGENTS, ...PROJECT],
      ["user", "user", "user", "user", "project-pi"],
    ],
    [{ configPath: SHARED, projectTrusted: false }, [...AGENTS, SHARED], ["user", "user", "user"]],
  ])("%j -> %j", (over, files, origins) => {
    const sources = configSources(facts(over));
    expect(sources.map(({ file }) => file)).toEqual(files);
    expect(sources.map(({ origin }) => origin)).toEqual(origins);
    expect(sources.filter(({ required }) => required)).toHaveLength(over.configPath ? 1 : 0);
  });
});

test("cacheFile: the agent folder -> mcp-cache.json in it", () => {
  expect(cacheFile("/agent")).toBe("/agent/mcp-cache.json");
});

describe("loadConfig", () => {
  test("one server in both files -> the project's replaces the user's whole, the others stay", async () => {
    const { at, user, project } = await place();
    await put(user, { mcpServers: { a: { command: "user", env: { A: "1" } }, b: { command: "b" } } });
    await put(project, { mcpServers: { a: { command: "project" }, c: { command: "c" } } });
    const { servers, problems, files } = await loadConfig(at);
    expect(problems).toEqual([]);
    expect(files).toEqual(configSources(at).map(({ file }) => file));
    expect(servers.map(({ name, file }) => [name, file])).toEqual([
      ["a", project],
      ["b", user],
      ["c", project],
    ]);
    expect(servers[0]).toMatchObject({ project: true, target: { command: "project", env: {} } });
  });

  test("a broken file beside a good one -> the good one's servers and the broken one's problem", async () => {
    const { at, user, project } = await place();
    await put(user, { mcpServers: { a: { command: "a" } } });
    await put(project, "{");
    const loaded = await loadConfig(at);
    expect(names(loaded)).toEqual(["a"]);
    expect(loaded.problems).toMatchObject([{ file: project, line: 1, severity: "error" }]);
    expect(loaded.broken).toEqual([project]);
  });

  test("a broken entry in the project's file -> the user's server of that name stays", async () => {
    const { at, user, project } = await place();
    await put(user, { mcpServers: { a: { command: "user" } } });
    await put(project, { mcpServers: { a: { command: 5 } } });
    const { servers, problems } = await loadConfig(at);
    expect(servers).toMatchObject([{ name: "a", file: user }]);
    expect(problems).toHaveLength(1);
  });

  test("no file at all -> no servers, but the paths are listed", async () => {
    const { at } = await place();
    const files = configSources(at).map(({ file }) => file);
    expect(await loadConfig(at)).toMatchObject({ servers: [], problems: [], files, broken: [] });
  });

  test("--mcp-config names a missing file -> a problem", async () => {
    const { at } = await place({ configPath: "nowhere.json" });
    const { problems } = await loadConfig(at);
    expect(problems).toMatchObject([
      { file: join(at.cwd, "nowhere.json"), message: "there is no such file", severity: "error" },
    ]);
  });

  test("a text with a BOM -> read", async () => {
    const { at, user } = await place();
    await put(user, '\uFEFF{"mcpServers": {"a": {"command": "x"}}}');
    const loaded = await loadConfig(at);
    expect([names(loaded), loaded.problems]).toEqual([["a"], []]);
  });

  test("a folder at a file's path -> one problem with a remedy", async () => {
    const { at, user } = await place();
    await mkdir(user, { recursive: true });
    const { servers, problems } = await loadConfig(at);
    expect(servers).toEqual([]);
    expect(problems).toMatchObject([{ file: user, message: expect.stringContaining("cannot be read") }]);
  });

  test("a file that was whole and is broken now -> its last servers, and the position of the mistake", async () => {
    const { at, user } = await place();
    await put(user, { mcpServers: { a: { command: "a" } } });
    const first = await loadConfig(at);
    await put(user, '{"mcpServers": {');
    const second = await loadConfig(at, first);
    expect(names(second)).toEqual(["a"]);
    expect(second.problems).toMatchObject([{ file: user, line: 1, column: 17 }]);
    await put(user, { mcpServers: {} });
    expect(await loadConfig(at, second)).toMatchObject({ servers: [], problems: [], broken: [] });
  });

  test.each([
    ["a mistake in it", '{"settings": {"sandbox": true}, "mcpServers": {'],
    ["a list in it", "[]"],
  ])(
    "the user's file has %s at the first load -> settings that protect count as their strictest",
    async (_, text) => {
      const { at, user, project } = await place();
      await put(join(at.home, ".config", "mcp", "mcp.json"), { mcpServers: { a: { command: "a" } } });
      await put(user, text);
      const first = await loadConfig(at);
      const strictest = { sandbox: true, approve: "always", inheritEnv: false, skills: false };
      expect(first.settings).toMatchObject({ ...strictest, hotReload: "ask" });
      expect(first.servers).toMatchObject([{ name: "a", sandbox: true, inheritEnv: false }]);
      const [problem] = first.problems;
      expect(problem?.remedy).toContain(
        "Until then the settings count as their strictest: servers run in a sandbox",
      );
      await put(user, { mcpServers: {} });
      const mended = await loadConfig(at, first);
      expect([mended.settings.sandbox, mended.problems]).toEqual([false, []]);
      // What was once whole stays in use, and a project decides nothing by its mistakes.
      await put(user, text);
      await put(project, text);
      expect((await loadConfig(at, mended)).settings).toMatchObject({ sandbox: false, hotReload: "on" });
    },
  );

  test("the user's file holds white space alone -> a problem, and no setting; what it held before stays in use", async () => {
    const { at, user } = await place();
    await put(user, " \n");
    const first = await loadConfig(at);
    expect(first.problems).toMatchObject([{ message: "the file is empty", severity: "error" }]);
    expect(first.settings).toMatchObject({ sandbox: false, hotReload: "on" });
    await put(user, { settings: { sandbox: true } });
    const second = await loadConfig(at, first);
    await put(user, "");
    expect((await loadConfig(at, second)).settings.sandbox).toBe(true);
  });

  test.each([
    ["a folder", ".git/HEAD", ["outer", "inner"]],
    ["a file, in a linked worktree", ".git", ["outer", "inner"]],
    ["not there", "other", ["inner"]],
  ])("OpenCode below the root of a worktree, .git %s -> %s, servers %j", async (_what, git, found) => {
    const { at, user } = await place();
    const root = at.cwd;
    const cwd = join(root, "a", "b");
    const server = (name: string): object => ({ mcp: { [name]: { type: "local", command: ["x"] } } });
    await put(user, { imports: ["opencode"] });
    await put(join(root, git), "x");
    await put(join(root, "opencode.json"), server("outer"));
    await put(join(cwd, ".opencode", "opencode.jsonc"), server("inner"));
    await put(join(root, "..", "opencode.json"), server("outside"));
    const loaded = await loadConfig({ ...at, cwd });
    expect(names(loaded)).toEqual(found);
    expect(loaded.servers.every(({ origin }) => origin === "project-file")).toBe(true);
    // The file may appear later, so it is watched.
    expect(loaded.files.includes(join(root, "a", "opencode.json"))).toBe(found.includes("outer"));
    expect(names(await loadConfig({ ...at, cwd, projectTrusted: false }))).toEqual([]);
  });

  test("a file that was whole and is gone now -> its servers are gone", async () => {
    const { at, user } = await place();
    await put(user, { mcpServers: { a: { command: "a" } } });
    const first = await loadConfig(at);
    expect(names(await loadConfig({ ...at, agentDir: join(at.home, "other") }, first))).toEqual([]);
  });
});

it.each<[Omit<ConfigProblem, "severity">, string]>([
  [
    { file: "/m", line: 2, column: 5, key: "mcpServers.a", message: "wrong", remedy: "Fix it." },
    "/m:2:5: mcpServers.a: wrong. Fix it.",
  ],
  [
    { file: "/m", line: 1, column: 1, message: "the file is empty", remedy: "Write." },
    "/m:1:1: the file is empty. Write.",
  ],
  [{ file: "/m", message: "cannot be read", remedy: "Allow it." }, "/m: cannot be read. Allow it."],
])("describeProblem: %j -> %s", (problem, line) => {
  expect(describeProblem({ severity: "error", ...problem })).toBe(line);
});

const SERVER = { command: "npx", args: ["-y", "p"] };
const LOCAL = { type: "local", command: ["npx", "-y", "p"] };
const servers = (entry: object, more: object = {}): object => ({ mcpServers: { s: entry }, ...more });
const opencode = (entry: object): object => ({ mcp: { s: entry } });
const imports = (host: string): object => ({ imports: [host] });

/** The server `s` of these files, which are given by their path below the home folder. */
async function load(
  files: Record<string, object>,
  over: Partial<ConfigFacts> = {},
): Promise<ServerDefinition> {
  const home = await temporaryFolder();
  for (const [path, content] of Object.entries(files)) await put(join(home, path), content);
  const at = facts({ home, agentDir: join(home, "agent"), cwd: join(home, "clone"), ...over });
  const { servers: loaded } = await loadConfig(at);
  const found = loaded.find(({ name }) => name === "s");
  if (!found) throw new Error("the server is not defined");
  return found;
}

const USERS = "agent/mcp.json";
const OF_ALL = "clone/.mcp.json";
const PI_FILE = "clone/.pi/mcp.json";

const registered = [{ name: "s", config: SERVER, extensionPath: "/ext.ts" }];
const OFF = servers({ ...SERVER, enabled: false });
const CHANGES = servers({ directTools: ["x"] });
const [CURSOR, OPENCODE] = [imports("cursor"), imports("opencode")];
const OWN_OPENCODE = { [USERS]: OPENCODE, ".config/opencode/opencode.json": opencode(LOCAL) };
type Files = Record<string, object>;

/** Who defines it: nobody of the project; the project only changes it, and needs trust; or a file of the project does. */
const CASES: [
  title: string,
  who: "user" | "changed" | "project",
  files: Files,
  over?: Partial<ConfigFacts>,
][] = [
  ["the user's file", "user", { [USERS]: servers(SERVER) }],
  ["the user's file for several programs", "user", { ".config/mcp/mcp.json": servers(SERVER) }],
  [
    "a file below the project that --mcp-config names",
    "user",
    { "clone/other.json": servers(SERVER) },
    { configPath: "other.json" },
  ],
  [
    "the project's own file that --mcp-config names",
    "user",
    { [OF_ALL]: servers(SERVER) },
    { configPath: ".mcp.json" },
  ],
  ["an extension", "user", {}, { registered }],
  [".mcp.json", "project", { [OF_ALL]: servers(SERVER) }],
  [".pi/mcp.json", "project", { [PI_FILE]: servers(SERVER) }],
  [".mcp.json, overridden by .pi/mcp.json", "project", { [OF_ALL]: servers(SERVER), [PI_FILE]: CHANGES }],
  ["the user's, overridden by the project", "user", { [USERS]: servers(SERVER), [OF_ALL]: CHANGES }],
  ["the user's, replaced by the project", "project", { [USERS]: servers(SERVER), [OF_ALL]: servers(SERVER) }],
  ["the user's, off, and the project on", "changed", { [USERS]: OFF, [PI_FILE]: servers({ enabled: true }) }],
  [
    "switched on by one file of the project and overridden by another",
    "changed",
    { [USERS]: OFF, [OF_ALL]: servers({ enabled: true }), [PI_FILE]: servers({ excludeTools: ["x"] }) },
  ],
  ["another program's file of the user", "user", { [USERS]: CURSOR, ".cursor/mcp.json": servers(SERVER) }],
  [
    "another program's file of the project",
    "project",
    { [USERS]: CURSOR, "clone/.cursor/mcp.json": servers(SERVER) },
  ],
  [
    "another program's files of the user and of the project",
    "project",
    { [USERS]: CURSOR, ".cursor/mcp.json": servers(SERVER), "clone/.cursor/mcp.json": servers(SERVER) },
  ],
  [
    "OpenCode: the user's command, other keys of the project",
    "changed",
    { ...OWN_OPENCODE, "clone/opencode.json": opencode({ environment: { PATH: "./bin" } }) },
  ],
  [
    "OpenCode: the user's command, and the project only narrows it",
    "user",
    { ...OWN_OPENCODE, "clone/opencode.json": { ...opencode({ enabled: true }), tools: { s_x: false } } },
  ],
  [
    "OpenCode: the user's command, off, and the project on",
    "changed",
    {
      [USERS]: OPENCODE,
      ".config/opencode/opencode.json": opencode({ ...LOCAL, enabled: false }),
      "clone/opencode.json": opencode({ enabled: true }),
    },
  ],
  [
    "OpenCode: the user's command, other keys of the project, then of the user",
    "changed",
    {
      ...OWN_OPENCODE,
      "clone/opencode.json": opencode({ environment: { PATH: "./bin" } }),
      ".opencode/opencode.json": opencode({ timeout: 5_000 }),
    },
  ],
  [
    "OpenCode: the project's command, other keys of the user",
    "project",
    {
      [USERS]: OPENCODE,
      "clone/opencode.json": opencode(LOCAL),
      ".opencode/opencode.json": opencode({ environment: { A: "1" } }),
    },
  ],
];

describe("loadConfig: whether the project defines a server", () => {
  test.each(CASES)("%s -> %s", async (_title, who, files, over) => {
    const { definedByProject, project } = await load(files, over);
    expect([definedByProject, project]).toEqual([who === "project", who !== "user"]);
  });

  test("a server that a project's entry replaces is still the user's", async () => {
    const server = await load({ [USERS]: servers(SERVER), [OF_ALL]: servers(SERVER) });
    expect(server.replaced).toMatchObject({ definedByProject: false, project: false });
  });

  test("a project that is not trusted defines nothing", async () => {
    const files = { [USERS]: servers(SERVER), [OF_ALL]: servers(SERVER) };
    const server = await load(files, { projectTrusted: false });
    expect(server).toMatchObject({ definedByProject: false, project: false });
  });
});
