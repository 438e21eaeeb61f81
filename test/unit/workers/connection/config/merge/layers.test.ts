import { describe, expect, test } from "vitest";
import { LIMITS } from "../../../../../../src/shared/protocol/limits.ts";
import type { ServerDefinition } from "../../../../../../workers/connection/config/entry/definition.ts";
import { exposureOf, verdictOn } from "../../../../../../workers/connection/config/entry/exposure.ts";
import type { Settings } from "../../../../../../workers/connection/config/entry/settings.ts";
import { type FileConfig, parseConfigText } from "../../../../../../workers/connection/config/files/files.ts";
import type { ConfigSource } from "../../../../../../workers/connection/config/files/sources.ts";
import { type Merged, mergeLayers } from "../../../../../../workers/connection/config/merge/layers.ts";
import { definition, PROJECT_FILE, PROJECT_PI, USER } from "../support.ts";

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
      { kind: "http", type: "sse", headers: {} },
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

  test("a project enables a server that the user disables -> it counts as the project's", () => {
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

  test("an override without a server is a mistake with its position", () => {
    const merged = merge([parseConfigText('{"mcpServers": {\n "a": {"enabled": false}}}', PROJECT_PI)]);
    expect(merged.servers).toEqual([]);
    expect(merged.problems).toMatchObject([
      { file: PROJECT_PI.file, line: 2, column: 7, key: "mcpServers.a" },
    ]);
  });

  test("imports count only if no file of ours defines the server; the first host wins", () => {
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

  test("nor the user's server of a later host, of which the first one counts", () => {
    const of = (host: string) => definition("a", { command: host }, { file: `/${host}`, origin: "import" });
    const project = (command: string) => definition("a", { command }, PROJECT_FILE);
    const hosts = [[project("one")], [of("two"), project("two")], [of("three")]];
    expect(server(merge([], { hosts }))).toMatchObject({
      target: { command: "one" },
      replaced: { file: "/two", replaced: undefined },
    });
    const extension = { name: "a", config: { command: "ext" }, extensionPath: "/ext.ts" };
    expect(
      server(merge([], { hosts: [[project("one")], [project("two")]], registered: [extension] })),
    ).toMatchObject({
      target: { command: "one" },
      replaced: { file: "/ext.ts", replaced: undefined },
    });
  });

  test("servers of extensions have the lowest precedence, and a wrong one is reported", () => {
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
      file(USER, {}, { idleTimeout: 3, catalog: "off", toolPrefix: "mcp" }),
      file(PROJECT_PI, {}, { idleTimeout: 2 }),
    ]);
    expect(merged.settings).toMatchObject({
      idleTimeout: 2,
      catalog: "off",
      toolPrefix: "mcp",
      hotReload: "on",
    });
  });

  test.each<[keyof Settings, unknown, unknown]>([
    ["toolPrefix", "none", "server"],
    ["proxyTool", true, false],
  ])("%s: %j of a project does not count, trusted or not, and is told", (key, wanted, own) => {
    for (const source of [PROJECT_PI, PROJECT_FILE]) {
      const text = `{\n "settings": {\n  "${key}": ${JSON.stringify(wanted)}}}`;
      const { settings, problems } = merge([parseConfigText(text, source)]);
      expect(settings[key]).toEqual(own);
      expect(problems).toMatchObject([
        { message: expect.stringContaining("a project's file may not decide this"), line: 3 },
      ]);
    }
  });

  test.each<[keyof Settings, unknown, unknown, unknown, boolean]>([
    ["hotReload", "off", "on", "off", true],
    ["hotReload", "ask", "on", "ask", true],
    ["hotReload", "on", "off", "off", false],
    ["hotReload", "ask", "off", "off", false],
    ["captureStats", undefined, { path: "/any/file" }, true, true],
    ["captureStats", true, false, true, true],
    ["captureStats", false, true, false, true],
    ["captureStats", true, true, true, false],
    ["autoAuth", undefined, true, false, true],
    ["autoAuth", true, false, true, true],
    ["caFile", undefined, "./ca.pem", "", true],
    ["caFile", "/own.pem", "./ca.pem", "/own.pem", true],
    ["maxMessageBytes", 10_000, 20_000, 10_000, true],
    ["maxMessageBytes", undefined, 2 ** 40, LIMITS.messageBytes, true],
    ["maxMessageBytes", 10_000, 5_000, 10_000, true],
    ["maxMessageBytes", undefined, 1_024, LIMITS.projectMessageBytes, true],
    ["maxMessageBytes", undefined, 2 ** 21, 2 ** 21, false],
    ["outputGuard", undefined, false, {}, true],
    ["outputGuard", undefined, { maxBytes: 10_000_000 }, {}, true],
    [
      "outputGuard",
      { maxBytes: 9_000 },
      { maxBytes: 8_000 },
      { maxBytes: 8_000, maxLines: LIMITS.resultLines },
      false,
    ],
    [
      "outputGuard",
      { maxBytes: 9_000, maxLines: 90 },
      { maxBytes: 8_000, maxLines: 100 },
      { maxBytes: 8_000, maxLines: 90 },
      true,
    ],
    ["outputGuard", false, { maxBytes: 8_000 }, { maxBytes: 8_000 }, false],
    ["outputGuard", undefined, { maxBytes: 1_000, maxLines: 10 }, { maxBytes: 4_000, maxLines: 50 }, true],
    ["outputGuard", { maxBytes: 2_000 }, { maxBytes: 1_000 }, { maxBytes: 2_000, maxLines: 2_000 }, true],
    ["idleTimeout", 5, 0, 5, true],
    ["idleTimeout", 0, 20, 20, false],
    ["idleTimeout", 5, 0.001, 1, true],
    ["toonEncode", false, true, true, false],
    ["directTools", false, true, true, false],
    ["search", "ranked", "weighted", "weighted", false],
    ["catalog", "tools", "off", "off", false],
  ])("%s: %j with %j in the project -> %j", (key, user, project, result, isTold) => {
    for (const source of [PROJECT_FILE, PROJECT_PI]) {
      const text = `{\n "settings": {\n  "${key}": ${JSON.stringify(project)}}}`;
      const merged = merge([file(USER, {}, { [key]: user }), parseConfigText(text, source)]);
      expect(merged.settings[key]).toEqual(result);
      const told = { severity: "warning", file: source.file, line: 3, key: `settings.${key}` };
      expect(merged.problems).toMatchObject(isTold ? [told] : []);
    }
  });
});

test("the limit of messages says which of two project files lowered it; no file of the user is named", () => {
  const limits = (user: number, inFile: number, inPi: number) =>
    merge([
      file(USER, {}, { maxMessageBytes: user }),
      file(PROJECT_FILE, {}, { maxMessageBytes: inFile }),
      file(PROJECT_PI, {}, { maxMessageBytes: inPi }),
    ]).settings.messageLimitOf;
  expect(limits(9_000_000, 8_000_000, 8_000_000)).toBe(PROJECT_FILE.file);
  expect(limits(9_000_000, 8_000_000, 7_000_000)).toBe(PROJECT_PI.file);
  expect(limits(9_000_000, 9_500_000, 9_000_000)).toBeUndefined();
});

describe("the sign-in of a project's server", () => {
  const OAUTH = {
    clientId: "a",
    skipIssuerMetadataValidation: true,
    privateKeyFile: "~/.ssh/id",
    assertionFile: "/token",
  };
  const KEYS = ["skipIssuerMetadataValidation", "privateKeyFile", "assertionFile"];

  test.each([PROJECT_FILE, PROJECT_PI])(
    "keys that only the user may set, in $file -> left out and told",
    (source) => {
      const text = `{"mcpServers": {"a": {"url": "https://x.y",\n "oauth": ${JSON.stringify(OAUTH)}}}}`;
      const merged = merge([parseConfigText(text, source)]);
      expect(server(merged)?.oauth).toEqual({
        clientId: "a",
        grantType: "authorization_code",
        clientRegistration: "auto",
      });
      expect(merged.problems).toMatchObject(
        KEYS.map((key) => ({
          severity: "warning",
          file: source.file,
          line: 2,
          key: `mcpServers.a.oauth.${key}`,
          message: expect.stringMatching(/^a project's file may not set this: it /),
        })),
      );
    },
  );

  test.each([PROJECT_FILE, PROJECT_PI])(
    "the user's sign-in at the identity provider, in $file -> left out and told; other grants stay",
    (source) => {
      const entry = (grantType: string) => ({
        url: "https://x.y",
        oauth: { clientId: "a", clientSecret: "s", grantType },
      });
      const merged = merge([file(source, { a: entry("identity_provider"), b: entry("client_credentials") })]);
      expect(server(merged)?.oauth).toMatchObject({ clientId: "a", grantType: "authorization_code" });
      expect(merged.problems).toMatchObject([
        {
          key: "mcpServers.a.oauth.grantType",
          message: "a project's file may not set this: it uses your sign-in at your identity provider",
        },
      ]);
    },
  );

  test("the same keys in the user's own file, also if the project enables the server -> kept", () => {
    const own = file(USER, { a: { url: "https://x.y", oauth: OAUTH, enabled: false } });
    for (const merged of [merge([own]), merge([own, file(PROJECT_PI, { a: { enabled: true } })])]) {
      expect(server(merged)?.oauth).toMatchObject(OAUTH);
    }
    expect(merge([own]).problems).toMatchObject([]);
  });

  test("a project's entry with another URL under a user's name -> nothing of the user's sign-in", () => {
    const merged = merge([
      file(USER, { a: { url: "https://x.y", headers: { A: "b" }, oauth: OAUTH, caFile: "/own.pem" } }),
      file(PROJECT_FILE, { a: { url: "https://evil.test" } }),
    ]);
    expect(server(merged)).toMatchObject({
      target: { kind: "http", url: "https://evil.test", headers: {}, type: "http" },
      oauth: { grantType: "authorization_code", clientRegistration: "auto" },
      auth: { scheme: "auto" },
    });
    expect(server(merged)?.target).not.toHaveProperty("caFile");
    expect(Object.keys(server(merged)?.oauth ?? {})).toHaveLength(2);
  });
});

describe("a project's override of the user's server", () => {
  const OWN = {
    command: "x",
    excludeTools: ["drop_*"],
    toolExposure: { secret: "hidden", "admin_*": "hidden", read: "direct" },
  };
  const TOOLS = ["drop_all", "secret", "admin_x", "read", "other"];
  const hiddenOf = (merged: Merged): string[] =>
    TOOLS.filter((tool) => exposureOf(tool, server(merged) as ServerDefinition) === "hidden");
  const hidden = ["drop_all", "secret", "admin_x"];

  test.each<[object, string[], string[]]>([
    [{ excludeTools: [] }, hidden, ["excludeTools"]],
    [{ excludeTools: ["other"] }, [...hidden, "other"], []],
    [{ toolExposure: { secret: "direct" } }, hidden, ["toolExposure"]],
    [{ toolExposure: { "*": "direct" } }, hidden, []],
    [{ toolExposure: { admin_x: "deferred", read: "hidden" } }, [...hidden, "read"], ["toolExposure"]],
    [{ exposure: "direct" }, hidden, []],
    [{ exposure: "hidden" }, [...hidden, "other"], []],
    [{ directTools: ["drop_all", "secret"] }, hidden, []],
  ])("%j -> hides %j, warned at %j", (entry, expected, warned) => {
    for (const source of [PROJECT_FILE, PROJECT_PI]) {
      const merged = merge([file(USER, { a: OWN }), file(source, { a: entry })]);
      expect(hiddenOf(merged)).toEqual(expected);
      expect(merged.problems.map(({ key, severity }) => [key, severity])).toEqual(
        warned.map((key) => [`mcpServers.a.${key}`, "warning"]),
      );
    }
  });

  test.each<[object, string[]]>([
    [{ exposure: "direct" }, ["exposure"]],
    [{ directTools: true }, ["directTools"]],
    [{ directTools: ["read"] }, ["directTools"]],
    [{ toolExposure: { read: "direct" } }, ["toolExposure"]],
  ])("%j of a hidden server -> it stays hidden, warned at %j", (entry, warned) => {
    const merged = merge([
      file(USER, { a: { command: "x", exposure: "hidden" } }),
      file(PROJECT_PI, { a: entry }),
    ]);
    expect(hiddenOf(merged)).toEqual(TOOLS);
    expect(merged.problems.map(({ key }) => key)).toEqual(warned.map((key) => `mcpServers.a.${key}`));
  });

  test("the mistake names file, line and column of the key", () => {
    const text = '{"mcpServers": {"a": {\n  "lifecycle": "lazy",\n  "excludeTools": []}}}';
    const { problems } = merge([file(USER, { a: OWN }), parseConfigText(text, PROJECT_FILE)]);
    expect(problems).toMatchObject([{ file: PROJECT_FILE.file, line: 3, column: 19 }]);
  });

  test("both files of a project -> the second changes the first, neither the user's", () => {
    const merged = merge([
      file(USER, { a: OWN }),
      file(PROJECT_FILE, { a: { excludeTools: ["other"], enabled: false } }),
      file(PROJECT_PI, { a: { excludeTools: [], toolExposure: { secret: "direct" }, enabled: true } }),
    ]);
    expect(hiddenOf(merged)).toEqual(hidden);
    // Beside those of the user none is left; what they are is seen by whoever compares two configurations.
    expect(server(merged)?.excludeTools).toEqual(["drop_*"]);
    // The user's own file has it on.
    expect(server(merged)).toMatchObject({ enabled: true, project: false });
  });

  test("a server that the user disables, and the project enables and then changes -> still the project's", () => {
    const merged = merge([
      file(USER, { a: { ...OWN, enabled: false } }),
      file(PROJECT_FILE, { a: { enabled: true } }),
      file(PROJECT_PI, { a: { excludeTools: [], lifecycle: "eager" } }),
    ]);
    expect(hiddenOf(merged)).toEqual(hidden);
    expect(server(merged)).toMatchObject({
      project: true,
      enabledByProject: PROJECT_FILE.file,
      lifecycle: "lazy",
    });
  });

  test("the user's own second file may widen", () => {
    const shared = { ...USER, file: "/home/me/.config/mcp/mcp.json" };
    const merged = merge([
      file(shared, { a: OWN }),
      file(USER, { a: { excludeTools: [], toolExposure: {} } }),
    ]);
    expect(hiddenOf(merged)).toEqual([]);
    expect(merged.problems).toEqual([]);
  });

  test("a project's own server may not loosen the output guard either", () => {
    const text = '{"mcpServers": {"a": {"command": "x",\n "outputGuard": false}}}';
    const merged = merge([
      file(USER, {}, { outputGuard: { maxBytes: 9_000 } }),
      parseConfigText(text, PROJECT_PI),
    ]);
    expect(server(merged)?.outputGuard).toEqual({ maxBytes: 9_000 });
    expect(merged.problems).toMatchObject([{ key: "mcpServers.a.outputGuard", line: 2 }]);
    const own = merge([file(USER, { a: { command: "x", outputGuard: false } })]);
    expect(server(own)?.outputGuard).toBe(false);
  });
});

describe("a project's server that the user's own file changes", () => {
  const CURSOR = { file: "/work/app/.cursor/mcp.json", origin: "project-file" } as const;
  const INSTALLED = { file: "/home/me/plugin/mcp.json", origin: "package" } as const;
  const RUNS = { command: "db", excludeTools: ["theirs"] };
  const SAID = {
    ...{ enabled: false, approve: "always", excludeTools: ["drop_*"], skills: false, sandbox: true },
    ...{ inheritEnv: false, shared: false, lifecycle: "lazy", toolExposure: { secret: "hidden" } },
  };
  const WANTED = {
    ...{ enabled: true, approve: "never", excludeTools: [], skills: "allow", sandbox: false },
    ...{ inheritEnv: true, shared: true, lifecycle: "keep-alive", toolExposure: { secret: "direct" } },
  };
  const from = (source: typeof CURSOR | typeof INSTALLED) => {
    const theirs = [definition("a", RUNS, source)];
    return source === CURSOR ? { hosts: [theirs] } : { packages: theirs };
  };

  describe.each([CURSOR, INSTALLED])("$origin", (source) => {
    test.each([
      ["an override", WANTED],
      ["two overrides", { description: "x", lifecycle: "eager" }],
      ["a whole entry of the same server", { ...RUNS, ...WANTED }],
      ["a whole entry of another server", { url: "https://evil.test/mcp", ...WANTED }],
    ])("%s of .mcp.json lifts nothing of it", (_, entry) => {
      const files = [
        file(USER, { a: SAID }),
        file(PROJECT_FILE, { a: entry }),
        file(PROJECT_PI, { a: WANTED }),
      ];
      const merged = merge(files, from(source));
      const found = server(merged);
      const isLocal = found?.target.kind === "stdio";
      const judged = { server: "a", tool: "t", prefix: "server", annotations: undefined } as const;
      expect(verdictOn(judged, found as ServerDefinition, merged.settings.approve)).toBe("ask");
      expect(found).toMatchObject({
        ...{ enabled: false, skillPolicy: { use: false }, shared: false },
        ...{ sandbox: isLocal ? true : undefined, inheritEnv: isLocal ? false : undefined },
        ...{ lifecycle: "lazy", excludeTools: ["drop_*"], approveToo: expect.arrayContaining(["never"]) },
      });
      expect(exposureOf("secret", found as ServerDefinition)).toBe("hidden");
      const keys = merged.problems.map(({ key }) => key);
      expect(keys).toEqual(
        expect.arrayContaining(["enabled", "approve", "excludeTools"].map((key) => `mcpServers.a.${key}`)),
      );
    });
  });

  const STRICT = { approve: "always", skills: "ask", sandbox: true, inheritEnv: false };
  const LOOSE = { approve: "never", skills: "allow", sandbox: false, inheritEnv: true, shared: true };
  const verdictOf = ({ servers: [found], settings }: Merged) =>
    verdictOn(
      { server: "a", tool: "t", prefix: "server", annotations: undefined },
      found as ServerDefinition,
      settings.approve,
    );

  test.each<[string, Parameters<typeof merge>]>([
    [
      "a clone's entry with the name of a package's server",
      [[file(USER, { a: LOOSE }, STRICT), file(PROJECT_FILE, { a: { command: "evil" } })], from(INSTALLED)],
    ],
    ["a clone's file that is imported", [[file(USER, { a: LOOSE }, STRICT)], from(CURSOR)]],
  ])("%s is not loosened by what the user's file says of that name", (_, given) => {
    const merged = merge(...given);
    expect(server(merged)).toMatchObject({
      ...{ sandbox: true, inheritEnv: false, skillPolicy: { use: "ask" }, shared: false },
    });
    expect(verdictOf(merged)).toBe("ask");
  });

  test("a package's server is loosened by it", () => {
    const merged = merge([file(USER, { a: LOOSE }, STRICT)], from(INSTALLED));
    expect(server(merged)).toMatchObject({ sandbox: undefined, inheritEnv: undefined, shared: true });
    expect(verdictOf(merged)).toBe("allow");
  });

  test("what the user's file says of his own server is not said of a clone's server of that name", () => {
    const merged = merge([
      file({ ...USER, file: "/home/me/.config/mcp/mcp.json" }, { a: RUNS }),
      file(USER, { a: { approve: "never", enabled: false } }),
      file(PROJECT_FILE, { a: { command: "other" } }),
      file(PROJECT_PI, { a: { command: "another" } }),
    ]);
    expect(server(merged)).toMatchObject({ enabled: true, approve: undefined, overrides: [] });
  });
});

interface Written {
  source: ConfigSource;
  entry?: object;
  settings?: object;
}

const added = (...files: Written[]): Merged =>
  mergeLayers({
    registered: [],
    hosts: [],
    files: files.map(({ source, entry, settings = {} }) =>
      parseConfigText(JSON.stringify({ mcpServers: entry ? { s: entry } : {}, settings }), source),
    ),
  });

/** What a call of the tool `t` without hints meets. */
function found({ servers: [server], settings, problems }: Merged) {
  if (!server) throw new Error(problems.map(({ message }) => message).join());
  const judged = { server: "s", tool: "t", prefix: "server", annotations: undefined } as const;
  return verdictOn(judged, server, settings.approve);
}
const told = ({ problems }: Merged): (string | undefined)[][] =>
  problems.map(({ key, message }) => [key, message]);

const RUN = { command: "x" };

test("the user's later file replaces the word of an earlier one, also as an override", () => {
  const merged = added(
    { source: USER, entry: { ...RUN, approve: "always" }, settings: { approve: "always" } },
    { source: { ...USER, file: "/later" }, entry: { approve: "never" }, settings: { approve: "never" } },
  );
  expect([found(merged), merged.settings.approve, merged.problems]).toEqual(["allow", "never", []]);
});

describe.each([PROJECT_FILE, PROJECT_PI])("$file", (source) => {
  test.each([
    ["never", "always", "ask"],
    ["always", "never", "ask"],
    [{ t: "deny" }, { t: "allow" }, "deny"],
    [{ t: "allow" }, { "*": "deny" }, "deny"],
    [undefined, "destructive", "ask"],
  ])("the user's server says %o, the override %o -> %s", (own, project, expected) => {
    const merged = added(
      { source: USER, entry: { ...RUN, approve: own } },
      { source, entry: { approve: project } },
    );
    expect(found(merged)).toBe(expected);
  });

  test("an override of other keys keeps what an earlier file of the project adds", () => {
    const merged = added(
      { source: USER, entry: RUN },
      { source, entry: { approve: "always" } },
      { source: PROJECT_PI, entry: { lifecycle: "eager" } },
    );
    expect(found(merged)).toBe("ask");
  });

  test.each([
    ["always", "never", "ask"],
    ["never", "always", "ask"],
    [{ "*": "deny" }, { "*": "allow" }, "deny"],
  ])("the user's settings say %o, a server of the project %o -> %s", (own, project, expected) => {
    const merged = added(
      { source: USER, settings: { approve: own } },
      { source, entry: { ...RUN, approve: project } },
    );
    expect(found(merged)).toBe(expected);
  });

  test.each([
    ["always", "never", "ask"],
    ["never", "always", "ask"],
    [{ "*": "deny" }, { "*": "allow" }, "deny"],
    ["destructive", {}, "ask"],
  ])("the user's settings say %o, the project's %o -> %s", (own, project, expected) => {
    const merged = added(
      { source: USER, entry: RUN, settings: { approve: own } },
      { source, settings: { approve: project } },
    );
    expect(found(merged)).toBe(expected);
  });

  test("a word that asks less often than the user's -> told, wherever the file says it", () => {
    const user = { source: USER, entry: { ...RUN, approve: "always" }, settings: { approve: "always" } };
    const stricter = "a project's file may only make this stricter";
    expect(
      told(added(user, { source, entry: { approve: "never" }, settings: { approve: "destructive" } })),
    ).toEqual([
      ["mcpServers.s.approve", stricter],
      ["settings.approve", stricter],
    ]);
    expect(
      told(
        added(
          { source: USER, settings: { approve: "always" } },
          { source, entry: { ...RUN, approve: "never" } },
        ),
      ),
    ).toEqual([["mcpServers.s.approve", stricter]]);
    expect(
      told(added(user, { source, entry: { approve: "always" }, settings: { approve: { t: "deny" } } })),
    ).toEqual([]);
  });
});

describe("mistakes", () => {
  const WORDS = 'expected "never", "destructive", "always" or an object, found a string';
  test.each([
    ["sometimes", "mcpServers.s.approve", WORDS],
    [true, "mcpServers.s.approve", 'expected "never", "destructive", "always" or an object, found a boolean'],
    [{ "x_*": "yes" }, "mcpServers.s.approve.x_*", 'expected one of "allow", "ask", "destructive", "deny"'],
    [
      Object.fromEntries(Array.from({ length: LIMITS.toolRules + 1 }, (_, i) => [`t${i}`, "ask"])),
      "mcpServers.s.approve",
      "has 1,001 items, at most 1,000 are possible",
    ],
    [
      { ["x".repeat(LIMITS.toolRuleChars + 1)]: "ask" },
      "mcpServers.s.approve",
      "holds a name of more than 256 characters",
    ],
  ])("%o -> the server is left out, with the reason", (approve, key, message) => {
    const merged = added({ source: USER, entry: { ...RUN, approve } });
    const problems = parseConfigText(
      JSON.stringify({ mcpServers: { s: { ...RUN, approve } } }),
      USER,
    ).problems;
    expect([merged.servers, told({ ...merged, problems })]).toEqual([[], [[key, message]]]);
  });

  test("wrong settings -> told, and nothing of them counts", () => {
    const text = '{"settings": {"catalog": "maybe", "toolPrefx": ["never"]}}';
    const file = parseConfigText(text, USER);
    expect(file.problems.map(({ key }) => key)).toEqual(["settings.catalog", "settings.toolPrefx"]);
    expect(file.settings).toEqual({});
  });

  test.each<[string, unknown, unknown]>([
    ["sandbox", { writes: ["~/notes"], net: "all" }, true],
    ["sandbox", "yes", true],
    ["approve", { "*": "asks" }, "always"],
    ["inheritEnv", "no", false],
    ["skills", "never", false],
    ["hotReload", "Ask", "ask"],
  ])(
    "the user's setting %s is written wrong: %j -> counts as %j, which the mistake says",
    (key, value, counts) => {
      const text = JSON.stringify({ settings: { [key]: value } });
      const file = parseConfigText(text, USER);
      expect(file.settings).toEqual({ [key]: counts });
      expect(file.problems[0]?.remedy).toContain(`Until then ${key} counts as ${JSON.stringify(counts)}.`);
      // A project decides nothing by its mistakes.
      expect(parseConfigText(text, PROJECT_PI).settings).toEqual({});
    },
  );

  test.each<[string, string, unknown]>([
    ['{"sandbx": true}', "settings.sandbx", { sandbox: true }],
    ['{"sandbx": true, "sandbox": false}', "settings.sandbx", { sandbox: true }],
    ['{"aproveTools": true}', "settings.aproveTools", { approve: "always" }],
    ['{"inherit_env": false}', "settings.inherit_env", { inheritEnv: false }],
    ['{"approve": "always", "approve": "never"}', "settings.approve", { approve: "always" }],
    ['{"sandbox": {"write": ["a"], "write": ["~"]}}', "settings.sandbox.write", { sandbox: true }],
  ])(
    "the user's settings are %s -> the strictest of what was meant, and the mistake says so",
    (written, key, counts) => {
      const text = `{"settings": ${written}}`;
      const file = parseConfigText(text, USER);
      expect(file.settings).toEqual(counts);
      expect(file.problems).toMatchObject([
        { severity: "error", key, remedy: expect.stringContaining("Until then ") },
      ]);
      // A project decides nothing by its mistakes.
      expect(parseConfigText(text, PROJECT_PI).problems).toMatchObject([{ severity: "warning", key }]);
    },
  );

  test.each([
    '{"setings": {"sandbox": true}}',
    '{"settings": {"sandbox": true}, "settings": {"toolPrefix": "short"}}',
  ])("the user's file is %s -> its settings that protect count as their strictest", (text) => {
    const { settings, problems } = parseConfigText(text, USER);
    expect(settings).toMatchObject({
      ...{ sandbox: true, approve: "always", inheritEnv: false, skills: false, hotReload: "ask" },
    });
    expect(problems).toMatchObject([
      { severity: "error", remedy: expect.stringContaining("count as their strictest: ") },
    ]);
    const theirs = parseConfigText(text, PROJECT_PI);
    expect(theirs.settings).not.toHaveProperty("approve");
    expect(theirs.problems).toMatchObject([{ severity: "warning" }]);
  });

  test.each<[string, boolean]>([
    ['{"db": {"command": "own", "sandbx": true}}', false],
    ['{"db": {"command": "own", "disabledTools": ["drop_*"]}}', false],
    ['{"db": {"command": "own", "default_tools_approval_mode": "prompt"}}', false],
    ['{"db": {"lifecycle": "lazy", "excludTools": ["drop_*"]}}', false],
    ['{"db": {"command": "own", "excludeTools": ["drop_*"], "excludeTools": []}}', false],
    ['{"db": {"command": "own", "approve": {"drop": "ask", "drop": "allow"}}}', false],
    ['{"db": {"command": "own", "sandbox": true}, "db": {"command": "own"}}', false],
    ['{"db": {"command": "own", "alwaysAllow": ["get"]}}', true],
    ['{"db": {"command": "own", "trust": true}}', true],
    ['{"db": {"command": "own", "lifecyle": "lazy"}}', true],
    ['{"db": {"command": "own", "command": "own"}}', true],
  ])("the user's servers are %s -> the server is on: %s", (written, enabled) => {
    const text = `{"mcpServers": ${written}}`;
    const lower = file({ ...USER, file: "/home/.config/mcp/mcp.json" }, { db: { command: "lower" } });
    const own = parseConfigText(text, USER);
    expect(merge([lower, own]).servers).toMatchObject([{ name: "db", enabled }]);
    expect(own.problems).toMatchObject([{ severity: enabled ? "warning" : "error" }]);
    if (!enabled) expect(own.problems[0]?.remedy).toContain("Until then the server is off.");
    // A project decides nothing by its mistakes.
    const theirs = parseConfigText(text, PROJECT_PI);
    expect(theirs.problems).toMatchObject([{ severity: "warning" }]);
    expect(merge([lower, theirs]).servers).toMatchObject([{ enabled: true }]);
  });

  test("the user's settings are no object -> those that protect count as their strictest", () => {
    const { settings } = parseConfigText('{"settings": []}', USER);
    expect(settings).toMatchObject({ sandbox: true, approve: "always" });
    expect(parseConfigText('{"settings": []}', PROJECT_PI).settings).toEqual({});
  });

  test("what the user's file says of a server has a mistake -> the server is off, and the mistake says so", () => {
    const lower = file({ ...USER, file: "/home/.config/mcp/mcp.json" }, { docs: { command: "docs" } });
    const wrong = { docs: { excludeTools: "drop_*" } };
    const merged = merge([lower, file(USER, wrong)]);
    expect(merged.servers).toMatchObject([{ name: "docs", enabled: false }]);
    expect(file(USER, wrong).problems[0]).toMatchObject({
      key: "mcpServers.docs.excludeTools",
      remedy: expect.stringContaining("Until then the server is off."),
    });
    const projects = merge([lower, file(PROJECT_PI, wrong)]);
    expect(projects.servers).toMatchObject([{ name: "docs", enabled: true }]);
  });

  test.each<[string, unknown, string]>([
    ["of a wrong type", { command: "own", sandbox: true, excludeTools: "drop_*" }, "excludeTools"],
    ["that is no rule of an override", { includeTools: ["get_*"] }, ""],
    ["that counts in no override", { includeTools: ["get_*"], approve: "always" }, "includeTools"],
    ["about two targets", { command: "own", url: "https://x.y", sandbox: true }, "url"],
    ["of no object", "own", ""],
  ])(
    "the user's entry has a key %s -> no server of a lower file or an import runs in its place",
    (_, entry, key) => {
      const lower = file({ ...USER, file: "/home/.config/mcp/mcp.json" }, { db: { command: "lower" } });
      const own = file(USER, { db: entry });
      expect(merge([lower, own]).servers).toMatchObject([{ name: "db", enabled: false }]);
      const hosts = [[definition("db", { command: "host" }, { file: "/cursor.json", origin: "import" })]];
      expect(merge([own], { hosts }).servers).toMatchObject([{ name: "db", enabled: false }]);
      expect(own.problems).toMatchObject([
        {
          key: ["mcpServers.db", ...(key === "" ? [] : [key])].join("."),
          severity: "error",
          remedy: expect.stringContaining("Until then the server is off."),
        },
      ]);
      // A project decides nothing by its mistakes, and a server that nobody else defines is only told as wrong.
      expect(merge([lower, file(PROJECT_PI, { db: entry })]).servers).toMatchObject([{ enabled: true }]);
      const wrong = merge([own]);
      expect([wrong.servers, wrong.problems.filter(({ message }) => /override/.test(message))]).toEqual([
        [],
        key === "includeTools" ? [expect.anything()] : [],
      ]);
      // A file that comes later says what the user wants.
      const later = file({ ...USER, file: "/later.json" }, { db: { command: "later" } });
      expect(merge([lower, own, later]).servers).toMatchObject([{ enabled: true, file: "/later.json" }]);
    },
  );

  test.each<[unknown, boolean]>([
    [["get_*"], false],
    [["get_*", "*"], true],
    ["*", true],
    [{ get: {} }, true],
    [7, true],
  ])("the user's override has tools %j, which has no effect -> the server is on: %s", (tools, enabled) => {
    const lower = file({ ...USER, file: "/home/.config/mcp/mcp.json" }, { db: { command: "lower" } });
    const own = file(USER, { db: { lifecycle: "eager", tools } });
    expect(merge([lower, own]).servers).toMatchObject([{ name: "db", enabled }]);
    expect(own.problems).toMatchObject([{ severity: enabled ? "warning" : "error" }]);
  });
});
