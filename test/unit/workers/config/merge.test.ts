import { describe, expect, test } from "vitest";
import { type Merged, mergeLayers } from "../../../../workers/connection/config/merge.ts";
import type { ConfigSource } from "../../../../workers/connection/config/paths.ts";
import { type FileConfig, parseConfigText } from "../../../../workers/connection/config/read.ts";
import { definition, PROJECT_FILE, PROJECT_PI, USER } from "./support.ts";

const file = (source: ConfigSource, servers: object, settings: object = {}): FileConfig =>
  parseConfigText(JSON.stringify({ mcpServers: servers, settings }), source);

const merge = (files: FileConfig[], over: Partial<Parameters<typeof mergeLayers>[0]> = {}): Merged =>
  mergeLayers({ registered: [], hosts: [], files, ...over });

const server = (merged: Merged, name = "a") => merged.servers.find((candidate) => candidate.name === name);

const GITHUB = {
  url: "https://github.example.com/mcp",
  headers: { Authorization: "Bearer t" },
  bearerToken: "t",
};

describe("mergeLayers", () => {
  test.each([
    [
      { url: "https://other.example.com/mcp" },
      { kind: "http", url: "https://other.example.com/mcp", headers: {} },
    ],
    [{ command: "x" }, { kind: "stdio", command: "x" }],
    [
      { type: "sse", url: "https://s.example.com" },
      { kind: "http", sseOnly: true, headers: {} },
    ],
  ])("%o replaces the whole server: credentials stay with their URL", (entry, target) => {
    for (const source of [PROJECT_FILE, PROJECT_PI]) {
      const found = server(merge([file(USER, { a: GITHUB }), file(source, { a: entry })]));
      expect(found).toMatchObject({ file: source.file, project: true, target, auth: { token: undefined } });
      expect(found?.replaced).toMatchObject({ file: USER.file, target: { headers: GITHUB.headers } });
    }
  });

  test.each([
    [{ enabled: false }, { enabled: false }],
    [{ disabled: true }, { enabled: false }],
    [{ lifecycle: "eager" }, { lifecycle: "eager" }],
    [{ idleTimeout: 3 }, { idleTimeoutMinutes: 3 }],
    [{ directTools: ["x"] }, { directTools: ["x"] }],
    [{ exposure: "direct" }, { exposure: "direct" }],
    [{ toolExposure: { x: "hidden" } }, { toolExposure: { x: "hidden" } }],
    [{ excludeTools: ["x"] }, { excludeTools: ["x"] }],
  ])("%o overrides that key and nothing else", (entry, changed) => {
    const base = definition("a", GITHUB);
    const found = server(merge([file(USER, { a: GITHUB }), file(PROJECT_PI, { a: entry })]));
    expect(found).toMatchObject({
      ...changed,
      file: USER.file,
      project: false,
      overrides: [PROJECT_PI.file],
    });
    expect(found).toMatchObject({ target: base.target, auth: base.auth });
  });

  test("an override cannot bring credentials or a target", () => {
    const entry = {
      enabled: true,
      headers: { X: "evil" },
      env: { X: "evil" },
      bearerToken: "evil",
      timeout: 5,
    };
    const merged = merge([file(USER, { a: GITHUB }), file(PROJECT_FILE, { a: entry })]);
    expect(server(merged)).toMatchObject({ target: { headers: GITHUB.headers }, auth: { token: "t" } });
    expect(server(merged)?.requestTimeoutMs).toBeUndefined();
  });

  test("switching on a server that the user switched off counts as the project's own", () => {
    const merged = merge([
      file(USER, { a: { ...GITHUB, enabled: false } }),
      file(PROJECT_FILE, { a: { enabled: true } }),
    ]);
    expect(server(merged)).toMatchObject({
      enabled: true,
      project: true,
      origin: "project-file",
      replaced: { enabled: false },
    });
  });

  test("an override reaches the server below one that may not run", () => {
    const files = [
      file(USER, { a: GITHUB }),
      file(PROJECT_FILE, { a: { command: "x" } }),
      file(PROJECT_PI, { a: { enabled: false } }),
    ];
    expect(server(merge(files))).toMatchObject({
      enabled: false,
      replaced: { enabled: false, file: USER.file },
    });
  });

  test("an override of nothing is a mistake with its place", () => {
    const merged = merge([parseConfigText('{"mcpServers": {\n "a": {"enabled": false}}}', PROJECT_PI)]);
    expect(merged.servers).toEqual([]);
    expect(merged.problems).toMatchObject([
      { file: PROJECT_PI.file, line: 2, column: 7, key: "mcpServers.a" },
    ]);
  });

  test("imports count only where no own file defines the server; the first host wins", () => {
    const import_ = (name: string, command: string, host: string) =>
      definition(name, { command }, { file: `/${host}`, origin: "import" });
    const hosts = [
      [import_("a", "first", "one"), import_("b", "one", "one")],
      [import_("b", "two", "two"), import_("c", "two", "two")],
    ];
    const merged = merge([file(USER, { a: { command: "own" }, c: { enabled: false } })], { hosts });
    expect(
      merged.servers.map(({ name, target, enabled }) => [name, Reflect.get(target, "command"), enabled]),
    ).toEqual([
      ["a", "own", true],
      ["b", "one", true],
      ["c", "two", false],
    ]);
  });

  test("a host's project file never hides the user's server for good", () => {
    const hosts = [
      [
        definition("a", { command: "user" }, { file: "/u", origin: "import" }),
        definition("a", { command: "project" }, PROJECT_FILE),
      ],
    ];
    expect(server(merge([], { hosts }))).toMatchObject({ file: PROJECT_FILE.file, replaced: { file: "/u" } });
  });

  test("servers of extensions are lowest, and a wrong one is told", () => {
    const registered = [
      { name: "a", config: { command: "ext" }, extensionPath: "/ext.ts" },
      { name: "b", config: { command: "ext" }, extensionPath: "/ext.ts" },
      { name: "c", config: 5, extensionPath: "/ext.ts" },
    ];
    const merged = merge([file(USER, { a: { command: "own" } })], { registered });
    expect(server(merged, "a")).toMatchObject({ file: USER.file });
    expect(server(merged, "b")).toMatchObject({ file: "/ext.ts", origin: "extension", project: false });
    expect(merged.problems).toMatchObject([{ file: "/ext.ts", key: "c" }]);
  });

  test("settings merge per key", () => {
    const merged = merge([
      file(USER, {}, { idleTimeout: 1, catalog: "off", toolPrefix: "mcp" }),
      file(PROJECT_PI, {}, { idleTimeout: 2 }),
    ]);
    expect(merged.settings).toMatchObject({
      idleTimeout: 2,
      catalog: "off",
      toolPrefix: "mcp",
      hotReload: "on",
    });
  });

  test.each([
    ["off", "on", "off"],
    ["ask", "on", "ask"],
    ["on", "off", "off"],
    ["ask", "off", "off"],
  ])("hotReload %s with %s in the project -> %s", (user, project, result) => {
    const merged = merge([file(USER, {}, { hotReload: user }), file(PROJECT_PI, {}, { hotReload: project })]);
    expect(merged.settings.hotReload).toBe(result);
  });
});
