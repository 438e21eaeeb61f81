/** Owns: the servers of Pi's packages, of Agent Plugins and of Claude plugins: which count, under which names, and what is told. */
import { execFileSync } from "node:child_process";
import { mkdir, rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it, test } from "vitest";
import { LIMITS } from "../../../../../src/shared/protocol/limits.ts";
import type { ServerDefinition } from "../../../../../workers/connection/config/entry/definition.ts";
import {
  type ConfigFacts,
  PACKAGE_FILES,
  PACKAGES,
} from "../../../../../workers/connection/config/files/sources.ts";
import { type LoadedConfig, loadConfig } from "../../../../../workers/connection/config/merge/merge.ts";
import { folderOfSource } from "../../../../../workers/connection/config/packages/pi-packages.ts";
import { facts, put, temporaryFolder } from "./support.ts";

interface Place {
  at: ConfigFacts;
  home: string;
  /** `<agent folder>/npm/node_modules`. */
  npm: string;
  user: string;
}

async function place(over: Partial<ConfigFacts> = {}): Promise<Place> {
  const home = await temporaryFolder();
  const at = facts({ home, agentDir: join(home, "agent"), cwd: join(home, "work"), ...over });
  return { at, home, npm: join(at.agentDir, "npm", "node_modules"), user: join(at.agentDir, "mcp.json") };
}

const names = ({ servers }: LoadedConfig): string[] => servers.map(({ name }) => name);
const told = ({ problems }: LoadedConfig): string[] =>
  problems.map(({ file, line, key, message }) => `${file}:${line} ${key}: ${message}`);
const server = (command = "x") => ({ mcpServers: { docs: { command } } });
const one = async ({ at }: Place, name: string): Promise<ServerDefinition> => {
  const loaded = await loadConfig(at);
  const found = loaded.servers.find((definition) => definition.name === name);
  if (!found) throw new Error(`${names(loaded)} ${told(loaded).join("\n")}`);
  return found;
};

describe("pi.mcp of the packages that Pi's settings list", () => {
  /** A package with one file of servers. */
  const lay = async (
    folder: string,
    name: string,
    mcp: unknown = "./mcp.json",
    servers: unknown = server(),
  ) => {
    await put(join(folder, "package.json"), { name, pi: { mcp } });
    await put(join(folder, "mcp.json"), servers);
  };
  const list = (at: ConfigFacts, packages: unknown) => put(join(at.agentDir, "settings.json"), { packages });

  test("npm, git and local packages; no folder is searched", async () => {
    const { at, home, npm } = await place();
    await lay(join(npm, "@acme", "tools"), "@acme/tools");
    await lay(join(npm, "unlisted"), "unlisted");
    await lay(join(at.agentDir, "git", "github.com", "acme", "kit"), "kit");
    await lay(join(home, "mine"), "mine", ["mcp.json"]);
    await list(at, [
      "npm:@acme/tools@^1",
      { source: "git:github.com/acme/kit@v1", skills: [] },
      "../mine",
      "npm:not-installed",
    ]);
    const loaded = await loadConfig(at);
    expect(names(loaded)).toEqual(["acme_tools__docs", "kit__docs", "mine__docs"]);
    expect(told(loaded)).toEqual([]);
    expect(loaded.servers[0]).toMatchObject({
      origin: "package",
      project: true,
      definedByProject: false,
      file: join(npm, "@acme", "tools", "mcp.json"),
      base: { folder: join(npm, "@acme", "tools") },
    });
    expect(loaded.files).toContain(join(npm, "@acme", "tools", "package.json"));
    expect(loaded.files).not.toContain(join(at.agentDir, "settings.json"));
    expect(loaded.watched).toContain(join(at.agentDir, "settings.json"));
    expect(loaded.watched).toContain(join(npm, "not-installed", "package.json"));
  });

  test.each<[string, string, (home: string) => Record<string, string>]>([
    ["npm_config_prefix", "", (home) => ({ npm_config_prefix: join(home, "old") })],
    ["~/.npmrc", "a=1\r\nprefix = ~/old \r\n", () => ({})],
    ["a variable in ~/.npmrc", 'prefix="${OWN}/old"', (home) => ({ OWN: home })],
  ])(
    "%s: a package that an older Pi installed globally -> its servers, until Pi has it in its own folder",
    async (_by, npmrc, env) => {
      const { at: base, home, npm } = await place();
      const at = { ...base, env: env(home) };
      const old = join(home, "old", "lib", "node_modules", "@acme", "tools");
      await put(join(home, ".npmrc"), npmrc);
      await lay(old, "@acme/tools");
      await lay(join(home, "old", "lib", "node_modules", "unlisted"), "unlisted");
      await put(join(at.cwd, ".pi", "settings.json"), { packages: ["npm:unlisted"] });
      await list(at, ["npm:@acme/tools"]);
      const loaded = await loadConfig(at);
      expect(loaded.servers).toMatchObject([
        { name: "acme_tools__docs", origin: "package", project: true, file: join(old, "mcp.json") },
      ]);
      expect(told(loaded)).toEqual([]);
      const own = join(npm, "@acme", "tools");
      expect(loaded.watched).toContain(join(own, "package.json"));
      await lay(own, "@acme/tools");
      expect((await loadConfig(at)).servers).toMatchObject([{ file: join(own, "mcp.json") }]);
    },
  );

  test("a project's settings count only if Pi trusts the project, and its packages are the project's", async () => {
    const { at } = await place();
    await put(join(at.cwd, ".pi", "settings.json"), {
      packages: ["./pack", "npm:b", { source: "npm:c", autoload: false }],
    });
    await lay(join(at.cwd, ".pi", "pack"), "a");
    await lay(join(at.cwd, ".pi", "npm", "node_modules", "b"), "b");
    await lay(join(at.cwd, ".pi", "npm", "node_modules", "c"), "c");
    const loaded = await loadConfig(at);
    expect(loaded.servers.map(({ name, origin, base }) => [name, origin, base])).toEqual([
      ["a__docs", "project-file", undefined],
      ["b__docs", "project-file", undefined],
    ]);
    expect(names(await loadConfig({ ...at, projectTrusted: false }))).toEqual([]);
  });

  test("only server entries count; values mean what they mean in our own files", async () => {
    const { at, npm } = await place();
    const entry = { url: "https://a.example/mcp", headers: { Authorization: "Bearer ${TOKEN}" } };
    await lay(join(npm, "p"), "p", "./mcp.json", {
      mcpServers: { web: entry, rules: { enabled: false } },
      settings: { autoAuth: true },
      imports: ["cursor"],
      plugins: ["/"],
    });
    await list(at, ["npm:p"]);
    const loaded = await loadConfig(at);
    expect(loaded.servers).toMatchObject([{ name: "p__web", target: { headers: entry.headers } }]);
    expect([loaded.settings.autoAuth, loaded.imports]).toEqual([false, []]);
    expect(told(loaded)).toEqual([
      `${join(npm, "p", "mcp.json")}:1 mcpServers.rules: neither command nor url is given`,
    ]);
  });

  test("whoever else has the name wins; the user's file changes rules of a package's server, and no project lifts them", async () => {
    const { at, npm, user } = await place();
    await lay(join(npm, "p"), "p", "./mcp.json", {
      mcpServers: {
        a: { command: "a", approve: "never", shared: true },
        b: { command: "b" },
        c: { command: "c" },
      },
    });
    await list(at, ["npm:p"]);
    await put(user, {
      mcpServers: {
        p__a: { approve: "always", sandbox: false, excludeTools: ["x"] },
        p__b: { command: "own" },
        p__c: { enabled: false },
      },
      settings: { sandbox: true },
    });
    await put(join(at.cwd, ".pi", "mcp.json"), {
      mcpServers: { p__a: { approve: "never", excludeTools: [], shared: true }, p__c: { enabled: true } },
    });
    const { servers, problems } = await loadConfig(at);
    expect(servers).toMatchObject([
      {
        name: "p__a",
        origin: "package",
        shared: false,
        approve: "always",
        sandbox: undefined,
        excludeTools: ["x"],
        approveToo: ["never"],
      },
      { name: "p__b", origin: "user", project: false, target: { command: "own" } },
      { name: "p__c", origin: "package", enabled: false, enabledByProject: undefined },
    ]);
    expect(problems.map(({ key, severity }) => [key, severity])).toEqual([
      ["mcpServers.p__a.approve", "warning"],
      ["mcpServers.p__a.excludeTools", "warning"],
      ["mcpServers.p__c.enabled", "warning"],
    ]);
  });

  test("names with other characters or __ that become one -> the first counts, the other is told at its line", async () => {
    const { at, npm } = await place();
    await lay(join(npm, "a"), "a", "./mcp.json", { mcpServers: { b__c: { command: "1" } } });
    await lay(
      join(npm, "a__b"),
      "a__b",
      "./mcp.json",
      '{"mcpServers": {\n"c": {"command": "2"},\n"é c": {"command": "3"},\n"__proto__": {"command": "4"}}}',
    );
    await list(at, ["npm:a", "npm:a__b"]);
    const loaded = await loadConfig(at);
    expect(loaded.servers.map(({ name, raw }) => [name, raw.command])).toEqual([
      ["a__b__c", "1"],
      ["a__b__proto", "4"],
    ]);
    const file = join(npm, "a__b", "mcp.json");
    expect(told(loaded)).toEqual([
      `${file}:2 mcpServers.c: ${join(npm, "a", "mcp.json")} has a server a__b__c already, which counts`,
      `${file}:3 mcpServers.é c: ${join(npm, "a", "mcp.json")} has a server a__b__c already, which counts`,
    ]);
  });

  it.each<[what: string, mcp: unknown, told: string]>([
    ["a number", 5, "package.json:1 pi.mcp: expected the path of a file, or a list of paths, found a number"],
    ["a path upwards", "../../x.json", "package.json:1 pi.mcp: the path leads out of the package"],
    ["an absolute path", "/etc/passwd", "package.json:1 pi.mcp: the path leads out of the package"],
    [
      "a missing file",
      ["./mcp.json", "./none.json"],
      "package.json:1 pi.mcp.1: there is no file ./none.json in the package",
    ],
    [
      "a link to a file outside",
      "./out.json",
      "out.json:undefined undefined: a link leads out of the package, so it is not used",
    ],
    [
      "a file in a linked folder",
      "./away/x.json",
      "away/x.json:undefined undefined: a link leads out of the package, so it is not used",
    ],
    [
      "a folder",
      "./folder",
      "folder:1 undefined: cannot be read: EISDIR: it is a folder, not a regular file",
    ],
    ["a pipe", "./pipe", "pipe:1 undefined: cannot be read: it is a named pipe, not a regular file"],
    [
      "11 paths",
      Array.from({ length: 11 }, () => "./mcp.json"),
      "package.json:1 pi.mcp: has 11 items; the first 10 are used",
    ],
  ])("%s as a path -> told, nothing outside is read", async (_, mcp, message) => {
    const { at, npm, home } = await place();
    const folder = join(npm, "p");
    await lay(folder, "p", mcp);
    await put(join(home, "secret", "x.json"), server("secret"));
    await symlink(join(home, "secret", "x.json"), join(folder, "out.json"));
    await symlink(join(home, "secret"), join(folder, "away"));
    await mkdir(join(folder, "folder"));
    execFileSync("mkfifo", [join(folder, "pipe")]);
    await list(at, ["npm:p"]);
    const loaded = await loadConfig(at);
    expect(told(loaded).map((line) => line.replace(`${folder}/`, ""))).toContain(message);
    expect(loaded.servers.every(({ raw }) => raw.command !== "secret")).toBe(true);
  });

  test("a package.json that is a pipe, or of 100 MB, or no JSON -> told; the other packages count", async () => {
    const { at, npm } = await place();
    await lay(join(npm, "good"), "good");
    await mkdir(join(npm, "pipe"), { recursive: true });
    execFileSync("mkfifo", [join(npm, "pipe", "package.json")]);
    await put(join(npm, "big", "package.json"), "x");
    execFileSync("truncate", ["-s", "100M", join(npm, "big", "package.json")]);
    await put(join(npm, "broken", "package.json"), '{\n"pi": ');
    await list(at, ["npm:pipe", "npm:big", "npm:broken", "npm:good"]);
    const loaded = await loadConfig(at);
    expect(names(loaded)).toEqual(["good__docs"]);
    expect(loaded.problems.map(({ message, line }) => [message, line])).toEqual([
      ["cannot be read: it is a named pipe, not a regular file", 1],
      ["cannot be read: it is larger than 1 MiB", 1],
      ["not valid JSON: value expected", 2],
    ]);
  });

  test("10,000 servers, and more packages and files than are read -> bounded and told", async () => {
    const { at, home } = await place();
    const many = (count: number) => ({
      mcpServers: Object.fromEntries(Array.from({ length: count }, (_, i) => [`s${i}`, { command: "x" }])),
    });
    const folders = Array.from({ length: PACKAGES + 1 }, (_, i) => join(home, `p${i}`));
    for (const folder of folders) {
      await put(join(folder, "package.json"), {
        name: folder.slice(-4),
        pi: { mcp: Array.from({ length: 10 }, (_, i) => `./${i}.json`) },
      });
      await put(join(folder, "0.json"), many(folder === folders[0] ? 10_000 : 1));
    }
    await list(at, folders);
    const loaded = await loadConfig(at);
    expect(loaded.servers.length).toBeLessThanOrEqual(LIMITS.servers);
    expect(loaded.watched.length).toBeLessThan(PACKAGE_FILES + PACKAGES + 20);
    const text = loaded.problems.map(({ message }) => message).join("\n");
    expect(text).toContain("has 101 packages; servers of the first 100 are used");
    expect(text).toContain("the first 500 of a package's file are used");
    expect(text).toContain("packages and plugins have more than 500 files");
  });

  test("settings of Pi that are no JSON -> told; what they held before stays in use", async () => {
    const { at, npm } = await place();
    await lay(join(npm, "p"), "p");
    await list(at, ["npm:p"]);
    const first = await loadConfig(at);
    await put(join(at.agentDir, "settings.json"), '{"packages": [');
    const then = await loadConfig(at, first);
    expect([names(first), names(then)]).toEqual([["p__docs"], ["p__docs"]]);
    expect(then.problems).toMatchObject([{ file: join(at.agentDir, "settings.json"), line: 1 }]);
    await list(at, []);
    expect(names(await loadConfig(at, then))).toEqual([]);
  });

  test("a session that lists no package reads Pi's settings and nothing else more", async () => {
    const { at } = await place();
    const { reads, files } = await loadConfig(at);
    expect([...reads.keys()].filter((file) => !files.includes(file)).sort()).toEqual([
      join(at.agentDir, "settings.json"),
      join(at.cwd, ".pi", "settings.json"),
    ]);
  });
});

describe("where Pi installs a source (package-manager.js, utils/git.js of Pi 1.5.2)", () => {
  it.each<[source: string, folder: string | undefined]>([
    ["npm:a", "/base/npm/node_modules/a"],
    ["npm:@s/a@1.2.3", "/base/npm/node_modules/@s/a"],
    ["npm:a@^1 || ^2", "/base/npm/node_modules/a"],
    ["npm:../../../etc", undefined],
    ["npm:@s/../../x", undefined],
    ["npm:..", undefined],
    ["git:github.com/u/r@v1", "/base/git/github.com/u/r"],
    ["git:git@github.com:u/r.git@v1", "/base/git/github.com/u/r"],
    ["git:u/r", "/base/git/github.com/u/r"],
    ["git:gitlab:g/r", "/base/git/gitlab.com/g/r"],
    ["https://github.com/u/r/tree/main/x", "/base/git/github.com/u/r"],
    ["https://gitlab.com/g/sub/r.git", "/base/git/gitlab.com/g/sub/r"],
    ["ssh://git@host.example:22/g/r@main", "/base/git/host.example/g/r"],
    ["git:host.example/../../x", undefined],
    ["git:github.com/u", undefined],
    ["https://host.example/%2e%2e/%2e%2e/x", undefined],
    ["./a", "/base/a"],
    ["../a", "/a"],
    ["~/a", "/home/me/a"],
    ["/x/a", "/x/a"],
    ["file:///x/a", "/x/a"],
    ["file://machine/share", undefined],
    ["builtin:mcp", undefined],
    ["github:u/r", undefined],
    ["", undefined],
  ])("%s -> %s", (source, folder) => {
    expect(folderOfSource(source, "/base", facts())).toBe(folder);
  });
});

const SCHEMAS = "https://agent-plugins.org/schemas/1.0.0";
const AGENT = { $schema: `${SCHEMAS}/plugin.schema.json`, name: "acme.tools" };
const agentServers = (mcpServers: unknown) => ({ $schema: `${SCHEMAS}/mcp.schema.json`, mcpServers });

describe("an Agent Plugin that the user's file names", () => {
  /** The plugin in `~/plugin`, named by the user's file. */
  async function lay(servers: unknown, manifest: unknown = AGENT) {
    const its = await place({ env: { TOKEN: "secret" } });
    const folder = join(its.home, "plugin");
    await put(join(folder, "plugin.json"), manifest);
    await put(join(folder, "mcp.json"), servers);
    await put(its.user, { plugins: ["~/plugin"] });
    return { ...its, folder };
  }

  test("its placeholders are filled in, everything else is literal (9.2); it runs in its own folder, with both variables", async () => {
    const its = await lay(
      agentServers({
        db: {
          type: "stdio",
          command: "./bin/db",
          args: ["${PLUGIN_DATA}/x", "${TOKEN}", "!rm", "~/y"],
          env: { A: "${PLUGIN_ROOT}", B: "$env:TOKEN" },
        },
        npx: { type: "stdio", command: "npx", cwd: "${PLUGIN_DATA}/deep" },
      }),
    );
    const { folder } = its;
    const { target, base, origin } = await one(its, "acme_tools__db");
    const data = base?.data ?? "";
    expect(data).toMatch(new RegExp(`^${join(its.at.agentDir, "mcp-plugin-data")}/acme_tools-[0-9a-f]{8}$`));
    expect([origin, base?.folder]).toEqual(["package", folder]);
    expect(target).toEqual({
      kind: "stdio",
      command: join(folder, "bin", "db"),
      args: [`${data}/x`, "$${TOKEN}", "!!rm", "~~/y"],
      env: { A: folder, B: "$$env:TOKEN", PLUGIN_ROOT: folder, PLUGIN_DATA: data },
      cwd: folder,
    });
    expect((await one(its, "acme_tools__npx")).target).toMatchObject({
      command: "npx",
      cwd: join(data, "deep"),
    });
  });

  it.each<[entry: object, why: string]>([
    [{ command: "x" }, 'its type is not "stdio"'],
    [{ type: "stdio", command: "../x" }, "its command is neither a bare name"],
    [{ type: "stdio", command: "./../x" }, "its command leads out of the plugin"],
    [{ type: "stdio", command: "/bin/sh" }, "its command is neither a bare name"],
    [{ type: "stdio", command: "${PLUGIN_ROOT}/x" }, "its command is neither a bare name"],
    [{ type: "stdio", command: "x", cwd: "data" }, "its cwd is no path in the plugin"],
    [{ type: "stdio", command: "x", cwd: "./../.." }, "its cwd is no path in the plugin"],
    [{ type: "stdio", command: "x", cwd: "${PLUGIN_DATA}/../../" }, "its cwd is no path in the plugin"],
    [{ type: "stdio", command: "x", env: { plugin_root: "/" } }, "its env sets PLUGIN_ROOT"],
    [{ type: "stdio", command: "x", url: "https://a.example" }, "Agent Plugins have no key url"],
    [{ type: "sse", url: "https://a.example", env: {} }, "Agent Plugins have no key env"],
    [{ type: "streamable-http", url: "http://a.example" }, "its url is http to another machine"],
    [{ type: "streamable-http", url: "https://u:p@a.example" }, "its url holds a user"],
    [
      { type: "streamable-http", url: "https://a.example#x" },
      "its url holds a user, a password or a fragment",
    ],
    [{ type: "streamable-http", url: "${X}" }, "its url is no http or https URL"],
    [
      { type: "streamable-http", url: "https://a.example", headers: { A: "1", a: "2" } },
      "it has a header twice",
    ],
  ])("%j -> left out, the others count (7.2.2)", async (entry, why) => {
    const its = await lay(agentServers({ bad: entry, good: { type: "stdio", command: "x" } }));
    const loaded = await loadConfig(its.at);
    expect(names(loaded)).toEqual(["acme_tools__good"]);
    expect(told(loaded)).toEqual([
      expect.stringContaining(`${join(its.folder, "mcp.json")}:1 mcpServers.bad: cannot be imported: ${why}`),
    ]);
  });

  test("url and headers are literal, and http is allowed to this machine", async () => {
    const its = await lay(
      agentServers({
        web: {
          type: "streamable-http",
          url: "http://127.0.0.1:1/${TOKEN}",
          headers: { A: "${PLUGIN_ROOT} ${TOKEN}" },
        },
      }),
    );
    expect((await one(its, "acme_tools__web")).target).toMatchObject({
      url: "http://127.0.0.1:1/$${TOKEN}",
      headers: { A: "$${PLUGIN_ROOT} $${TOKEN}" },
    });
  });

  test("a command or cwd behind a link that leads out -> left out", async () => {
    const its = await lay(
      agentServers({
        a: { type: "stdio", command: "./out" },
        b: { type: "stdio", command: "x", cwd: "./away" },
        c: { type: "stdio", command: "./in" },
      }),
    );
    await put(join(its.folder, "real"), "");
    await symlink("/bin/sh", join(its.folder, "out"));
    await symlink("/tmp", join(its.folder, "away"));
    await symlink("real", join(its.folder, "in"));
    const loaded = await loadConfig(its.at);
    expect(names(loaded)).toEqual(["acme_tools__c"]);
    expect(loaded.problems.map(({ key, message }) => [key, message])).toEqual([
      ["mcpServers.a", "a link leads out of the package, so it is not used"],
      ["mcpServers.b", "a link leads out of the package, so it is not used"],
    ]);
  });

  it.each<[manifest: object, told: string]>([
    [{ name: "a" }, "$schema is missing"],
    [{ $schema: AGENT.$schema }, "name is missing"],
    [{ ...AGENT, name: "Not-A-Name" }, "is not a name of an Agent Plugin"],
    [{ ...AGENT, name: "a".repeat(65) }, "is not a name of an Agent Plugin"],
    [{ ...AGENT, $schema: "https://agent-plugins.org/schemas/9.0.0/plugin.schema.json" }, "expected one of"],
    [{ ...AGENT, author: { nick: "x" } }, "author"],
    [{ ...AGENT, keywords: "x" }, "expected a list"],
  ])("the manifest %j -> rejected (5.2)", async (manifest, message) => {
    const its = await lay(agentServers({ a: { type: "stdio", command: "x" } }), manifest);
    const loaded = await loadConfig(its.at);
    expect(names(loaded)).toEqual([]);
    expect(told(loaded).join("\n")).toContain(message);
    expect(loaded.problems[0]).toMatchObject({
      file: join(its.folder, "plugin.json"),
      line: 1,
      severity: "warning",
    });
  });

  it.each<[servers: unknown, told: string]>([
    [{ mcpServers: {} }, "its $schema is not"],
    [{ ...agentServers({}), settings: {} }, "has no key settings"],
    [agentServers([]), "mcpServers is a list"],
    ["{", "not valid JSON"],
  ])("mcp.json %j -> no server counts, and it is told (7.2.2)", async (servers, message) => {
    const its = await lay(servers);
    const loaded = await loadConfig(its.at);
    expect(names(loaded)).toEqual([]);
    expect(told(loaded).join("\n")).toContain(message);
  });

  test("an unknown key and wrong extensions are told, and cost nothing; a plugin without servers is none of a mistake", async () => {
    const its = await lay(agentServers({ a: { type: "stdio", command: "x" } }), {
      ...AGENT,
      hooks: {},
      extensions: 5,
    });
    const loaded = await loadConfig(its.at);
    expect(names(loaded)).toEqual(["acme_tools__a"]);
    expect(loaded.problems.map(({ key }) => key)).toEqual(["hooks", "extensions"]);
    await put(join(its.folder, "plugin.json"), AGENT);
    await rm(join(its.folder, "mcp.json"));
    expect(await loadConfig(its.at)).toMatchObject({ servers: [], problems: [] });
  });
});

describe("plugins of the user's file", () => {
  test("a folder that is not there, or holds no plugin -> told at its line; one that comes is noticed", async () => {
    const { at, home, user } = await place();
    await mkdir(join(home, "empty"));
    await put(user, '{"plugins": [\n"~/none",\n"~/empty", 5]}');
    const loaded = await loadConfig(at);
    expect(told(loaded)).toEqual([
      `${user}:2 plugins.0: there is no such folder`,
      `${user}:3 plugins.1: no plugin is in this folder: it has neither plugin.json nor .claude-plugin/plugin.json`,
      `${user}:3 plugins.2: expected the path of a folder`,
    ]);
    expect(loaded.watched).toContain(join(home, "none", "plugin.json"));
  });

  test("a project's file names none", async () => {
    const { at, home } = await place();
    await put(join(home, "plugin", ".mcp.json"), server());
    await put(join(at.cwd, ".pi", "mcp.json"), { plugins: [join(home, "plugin")] });
    const loaded = await loadConfig(at);
    expect([names(loaded), told(loaded)]).toEqual([
      [],
      [expect.stringContaining("a project's file may not name plugins")],
    ]);
  });

  test("a Claude plugin: .mcp.json bare or below mcpServers, manifest with a path, a list and servers; its variables", async () => {
    const its = await place();
    const folder = join(its.home, "plugin");
    await put(its.user, { plugins: ["../plugin"] });
    const command = "${CLAUDE_PLUGIN_ROOT}/run";
    await put(join(folder, ".mcp.json"), {
      docs: { command, args: ["${CLAUDE_PLUGIN_DATA}/x", "${X:-y}", "${CLAUDE_PROJECT_DIR}"] },
    });
    await put(join(folder, "more.json"), {
      mcpServers: { web: { type: "http", url: "https://a.example/${TENANT}" } },
    });
    const inline = { local: { command: "x", env: { A: "1" } }, docs: { command: "manifest" } };
    await put(join(folder, ".claude-plugin", "plugin.json"), {
      name: "My Plugin",
      mcpServers: ["./more.json", inline, "../out.json", "./x.mcpb", "./none.json", 5, "https://a.example/x"],
    });
    const loaded = await loadConfig(its.at);
    expect(loaded.servers.map(({ name, file }) => [name, file.slice(folder.length + 1)])).toEqual([
      ["My_Plugin__local", ".claude-plugin/plugin.json"],
      ["My_Plugin__docs", ".claude-plugin/plugin.json"],
      ["My_Plugin__web", "more.json"],
    ]);
    expect(loaded.problems.map(({ key, message }) => `${key}: ${message}`)).toEqual([
      "mcpServers.2: the path leads out of the plugin",
      "mcpServers.3: names a bundle of a server, and bundles are not installed here",
      "mcpServers.5: expected a path or an object of servers, found a number",
      "mcpServers.6: names an address, and files of servers are not downloaded",
      expect.stringContaining(`names ${join(folder, "none.json")}`),
      expect.stringContaining("has a server My_Plugin__docs already, which counts"),
    ]);
    await put(join(folder, ".claude-plugin", "plugin.json"), { name: "p" });
    const { target, base } = await one(its, "p__docs");
    expect(target).toMatchObject({
      command: join(folder, "run"),
      args: [`${base?.data}/x`, "${X:-y}", its.at.cwd],
      env: { CLAUDE_PLUGIN_ROOT: folder, CLAUDE_PLUGIN_DATA: base?.data },
      cwd: undefined,
    });
  });

  test("a bundle among plugins, and in a manifest -> what to do with it", async () => {
    const { at, home, user } = await place();
    await put(user, { plugins: ["~/x.mcpb", "~/plugin"] });
    await put(join(home, "x.mcpb"), "PK");
    await put(join(home, "plugin", ".claude-plugin", "plugin.json"), {
      mcpServers: "https://a.example/x.mcpb?v=1",
    });
    const { problems } = await loadConfig(at);
    expect(problems.map(({ file, line, key }) => [file, line, key])).toEqual([
      [user, 1, "plugins.0"],
      [join(home, "plugin", ".claude-plugin", "plugin.json"), 1, "mcpServers"],
    ]);
    for (const { message, remedy } of problems)
      expect(`${message}. ${remedy}`).toMatch(/bundle.* not installed here\. Unpack it, .*manifest\.json/);
  });

  test("a value that the person told Claude Code -> the server is left out, and it is told", async () => {
    const { at, home, user } = await place();
    await put(user, { plugins: ["~/plugin"] });
    await put(join(home, "plugin", ".mcp.json"), {
      a: { url: "https://a.example", headers: { K: "${user_config.key}" } },
    });
    const loaded = await loadConfig(at);
    expect(names(loaded)).toEqual([]);
    expect(loaded.problems).toMatchObject([
      {
        file: join(home, "plugin", ".mcp.json"),
        line: 1,
        key: "a",
        message:
          "cannot be imported: Claude Code alone has the value of ${user_config.key}, for which it asked its user",
        remedy: "Write the server into your own mcp.json.",
      },
    ]);
  });
});

describe('"claude-plugins" among imports', () => {
  /** Two installed plugins. */
  async function lay(enabled: object, over: Partial<ConfigFacts> = {}) {
    const its = await place(over);
    const claude = join(its.home, ".claude");
    const cache = (name: string) => join(claude, "plugins", "cache", name, "1.0.0");
    for (const name of ["a", "b", "c"]) await put(join(cache(name), ".mcp.json"), server(name));
    await put(join(claude, "plugins", "installed_plugins.json"), {
      version: 2,
      plugins: {
        "a@market": [{ scope: "user", installPath: cache("a") }],
        "b@market": [
          { scope: "project", projectPath: join(its.home, "elsewhere"), installPath: cache("b") },
          { scope: "local", projectPath: its.at.cwd, installPath: cache("c") },
        ],
        "c@market": [{ scope: "project", projectPath: join(its.home, "elsewhere"), installPath: cache("c") }],
        "gone@market": [{ scope: "user", installPath: cache("gone") }],
        "odd@market": [{ scope: "user", installPath: "relative" }, 5],
      },
    });
    await put(join(claude, "settings.json"), { enabledPlugins: enabled });
    await put(its.user, { imports: ["claude-plugins"] });
    return { ...its, claude };
  }
  const ALL = {
    "a@market": true,
    "b@market": true,
    "c@market": true,
    "gone@market": true,
    "odd@market": true,
  };

  test("those that are installed for this folder and enabled; their data is where Claude Code keeps it", async () => {
    const its = await lay(ALL);
    const loaded = await loadConfig(its.at);
    expect(loaded.servers.map(({ name, raw }) => [name, raw.command])).toEqual([
      ["a__docs", "a"],
      ["b__docs", "c"],
    ]);
    expect(loaded.problems).toEqual([]);
    expect(loaded.servers[0]).toMatchObject({
      origin: "package",
      base: { data: join(its.claude, "plugins", "data", "a-market") },
    });
    expect(loaded.imports).toEqual(["claude-plugins"]);
  });

  test("a project disables for itself, and only if it is trusted", async () => {
    const its = await lay(ALL);
    await put(join(its.at.cwd, ".claude", "settings.json"), { enabledPlugins: { "a@market": false } });
    await put(join(its.at.cwd, ".claude", "settings.local.json"), { enabledPlugins: { "b@market": false } });
    expect(names(await loadConfig(its.at))).toEqual([]);
    expect(names(await loadConfig({ ...its.at, projectTrusted: false }))).toEqual(["a__docs", "b__docs"]);
  });

  test("a project enables what the user's own file does not name, and nothing that the user has disabled", async () => {
    const its = await lay({ "a@market": false });
    const enabledPlugins = { "a@market": true, "b@market": true };
    await put(join(its.at.cwd, ".claude", "settings.json"), { enabledPlugins });
    expect(names(await loadConfig(its.at))).toEqual(["b__docs"]);
  });

  test("an installation that is not enabled does not count; version 1 of the list; CLAUDE_CONFIG_DIR", async () => {
    const its = await lay({ "a@market": false });
    expect(names(await loadConfig(its.at))).toEqual([]);
    const moved = join(its.home, "moved");
    await put(join(moved, "plugins", "installed_plugins.json"), {
      version: 1,
      plugins: { "a@m": { installPath: join(its.claude, "plugins", "cache", "a", "1.0.0") } },
    });
    await put(join(moved, "settings.json"), { enabledPlugins: { "a@m": ["^1"] } });
    expect(names(await loadConfig({ ...its.at, env: { CLAUDE_CONFIG_DIR: moved } }))).toEqual(["a__docs"]);
  });
});

describe("ancestorConfigRoots", () => {
  async function lay() {
    const its = await place();
    const repo = join(its.home, "work", "mono");
    const cwd = join(repo, "packages", "api");
    await mkdir(join(repo, ".git"), { recursive: true });
    await put(join(its.home, "work", ".mcp.json"), { mcpServers: { outside: { command: "x" } } });
    await put(join(repo, ".mcp.json"), {
      mcpServers: {
        root: { command: "node", args: ["./s.js"], envFile: ".env" },
        both: { command: "root" },
        web: { url: "https://a.example" },
      },
    });
    await put(join(repo, "packages", ".mcp.json"), {
      mcpServers: { both: { command: "packages", cwd: "sub" } },
    });
    await put(join(cwd, ".mcp.json"), { mcpServers: { own: { command: "own" } } });
    return { ...its, at: { ...its.at, cwd }, repo };
  }
  const allow = (its: Place, roots: string[]) => put(its.user, { settings: { ancestorConfigRoots: roots } });

  test("up to the repository's root, the nearest wins; they run in the folder of their file, to which a yes is bound", async () => {
    const its = await lay();
    await allow(its, ["~/work"]);
    const loaded = await loadConfig(its.at);
    expect(loaded.problems).toEqual([]);
    expect(
      loaded.servers.map(({ name, file, origin, base }) => [
        name,
        file.slice(its.repo.length),
        origin,
        base?.folder.slice(its.repo.length),
      ]),
    ).toEqual([
      ["root", "/.mcp.json", "project-file", ""],
      ["both", "/packages/.mcp.json", "project-file", "/packages"],
      ["web", "/.mcp.json", "project-file", ""],
      ["own", "/packages/api/.mcp.json", "project-file", undefined],
    ]);
    expect(loaded.servers[0]?.target).toMatchObject({ cwd: its.repo, envFile: join(its.repo, ".env") });
    expect(loaded.servers[1]).toMatchObject({
      target: { cwd: join(its.repo, "packages", "sub") },
      replaced: { target: { command: "root" } },
    });
    expect(loaded.ancestors).toEqual([its.repo, join(its.repo, "packages")]);
  });

  it.each<[what: string, roots: string[], over: Partial<ConfigFacts>, expected: string[]]>([
    ["no folder is named", [], {}, ["own"]],
    ["another folder is named", ["~/other"], {}, ["own"]],
    ["a folder in the repository is named", ["~/work/mono/packages"], {}, ["both", "own"]],
    ["the project is not trusted", ["~/work"], { projectTrusted: false }, []],
  ])("%s -> %j", async (_, roots, over, expected) => {
    const its = await lay();
    await allow(its, roots);
    expect(names(await loadConfig({ ...its.at, ...over }))).toEqual(expected);
  });

  test("a project's file cannot name folders; outside of a repository there are none", async () => {
    const its = await lay();
    await put(join(its.at.cwd, ".pi", "mcp.json"), { settings: { ancestorConfigRoots: ["/"] } });
    const loaded = await loadConfig(its.at);
    expect(names(loaded)).toEqual(["own"]);
    expect(loaded.problems).toMatchObject([{ key: "settings.ancestorConfigRoots", severity: "warning" }]);
    await allow(its, ["/"]);
    await rm(join(its.repo, ".git"), { recursive: true });
    expect(names(await loadConfig(its.at))).toEqual(["own"]);
  });

  test("a link to a folder outside of what the user named does not count", async () => {
    const its = await lay();
    await allow(its, ["~/allowed"]);
    await mkdir(join(its.home, "allowed"));
    await symlink(its.repo, join(its.home, "allowed", "mono"));
    expect(
      names(await loadConfig({ ...its.at, cwd: join(its.home, "allowed", "mono", "packages", "api") })),
    ).toEqual(["own"]);
  });
});
