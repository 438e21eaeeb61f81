import { execFile } from "node:child_process";
import { mkdir, symlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it, test } from "vitest";
import { LIMITS } from "../../../../../../src/shared/protocol/limits.ts";
import { describeProblem } from "../../../../../../src/shared/text/failure.ts";
import { OVERRIDE_KEYS, SERVER_KEYS } from "../../../../../../workers/connection/config/entry/server-keys.ts";
import { readEnvFile } from "../../../../../../workers/connection/config/env-files/env-files.ts";
import { parseConfigText } from "../../../../../../workers/connection/config/files/files.ts";
import type { ConfigFacts } from "../../../../../../workers/connection/config/files/sources.ts";
import { loadConfig } from "../../../../../../workers/connection/config/merge/merge.ts";
import { loadTrust, remember } from "../../../../../../workers/connection/config/trust/file.ts";
import { facts, PROJECT_FILE, PROJECT_PI, put, temporaryFolder, USER } from "../support.ts";

const problemsOf = (text: string, source = USER): string[] =>
  parseConfigText(text, source).problems.map((problem) =>
    describeProblem(problem).replace(`${source.file}:`, `${problem.severity} `),
  );

const servers = (text: string): string[] =>
  parseConfigText(text, USER).entries.flatMap((entry) =>
    entry.kind === "server" ? [entry.definition.name] : entry.isWrong ? [] : [`override ${entry.name}`],
  );

describe("parseConfigText", () => {
  test("reads comments, trailing commas and both spellings of the servers", () => {
    const text = `{
      // a comment
      "mcpServers": { "a": { "command": "x", }, },
      "mcp-servers": { "b": { "url": "https://b.example.com/mcp" } /* another */ },
    }`;
    expect(servers(text)).toEqual(["a", "b"]);
    expect(problemsOf(text)).toEqual([]);
  });

  test("every key of the format is known", () => {
    const entry = {
      enabled: true,
      disabled: false,
      command: "x",
      args: ["y"],
      env: { A: "b" },
      cwd: "~/z",
      type: "stdio",
      auth: "bearer",
      bearerToken: "t",
      bearerTokenEnv: "T",
      lifecycle: "keep-alive",
      idleTimeout: 0,
      startupTimeoutMs: 1,
      timeout: 2,
      requestTimeoutMs: 3,
      exposeResources: false,
      directTools: ["a"],
      exposure: "codemode",
      toolExposure: { "a*": "direct" },
      excludeTools: ["b"],
      includeTools: ["a*"],
      description: "d",
      debug: true,
      // An object is read too, but has no effect yet.
      oauth: false,
      envFile: ".env",
      headers: {},
      toolPrefix: "short",
    };
    const settings = {
      toolPrefix: "mcp",
      idleTimeout: 1,
      toonEncode: ["a"],
      captureStats: { path: "x" },
      directTools: true,
      maxMessageBytes: 2_048,
      hotReload: "ask",
      catalog: "off",
    };
    const text = JSON.stringify({ $schema: "x", mcpServers: { a: entry }, settings, imports: ["codex"] });
    const config = parseConfigText(text, USER);
    expect(config.problems).toEqual([]);
    expect(config.settings).toEqual(settings);
    expect(config.imports).toEqual(["codex"]);
    expect(config.entries).toHaveLength(1);
    expect(config.entries[0]).toMatchObject({
      definition: {
        enabled: true,
        lifecycle: "keep-alive",
        idleTimeoutMinutes: 0,
        requestTimeoutMs: 3,
        startupTimeoutMs: 1,
        exposeResources: false,
        directTools: ["a"],
        exposure: "search",
        toolExposure: { "a*": "direct" },
        auth: { scheme: "bearer", token: "t", tokenEnv: "T" },
        debug: true,
        toolPrefix: "short",
      },
    });
  });

  test.each([
    ["an empty file", "", "error 1:1: the file is empty. Write"],
    ["a list", "[]", "error 1:1: expected an object, found a list. Write"],
    [
      "a cut text",
      '{"mcpServers": {\n  "a": ',
      "error 2:8: not valid JSON: value expected. Correct it there;",
    ],
    [
      "servers as a list",
      '{"mcpServers": []}',
      "error 1:16: mcpServers: expected an object of servers, found a list.",
    ],
    [
      "a server as text",
      '{"mcpServers": {"a": "x"}}',
      "error 1:22: mcpServers.a: expected an object, found a string.",
    ],
    [
      "no target",
      '{"mcpServers": {"a": {}}}',
      "error 1:22: mcpServers.a: neither command nor url is given. Write",
    ],
    [
      "two targets",
      '{"mcpServers": {"a": {"command": "x", "url": "https://x.y"}}}',
      "error 1:46: mcpServers.a.url: both command and url are given. Remove one",
    ],
    [
      "a type without its key",
      '{"mcpServers": {"a": {"type": "http", "command": "x"}}}',
      "error 1:31: mcpServers.a.type: url is missing.",
    ],
    [
      "the new era over sse",
      '{"mcpServers": {"a": {"type": "sse", "url": "https://x.y", "protocol": "2026-07-28"}}}',
      "error 1:72: mcpServers.a.protocol: no server speaks this revision over sse. Remove type or protocol.",
    ],
    [
      "a number in env",
      '{"mcpServers": {"a": {"command": "x", "env": {"PORT": 3000}}}}',
      "error 1:55: mcpServers.a.env.PORT: expected a string, found a number. Put the value in quotes.",
    ],
    [
      "args as text",
      '{"mcpServers": {"a": {"command": "x", "args": "y"}}}',
      'error 1:47: mcpServers.a.args: expected a list, found a string. Write for example "args": ["-y"',
    ],
    [
      "an unknown word",
      '{"mcpServers": {"a": {"command": "x", "lifecycle": "always"}}}',
      'error 1:52: mcpServers.a.lifecycle: expected one of "lazy", "eager", "keep-alive", "lazy-keep-alive".',
    ],
    [
      "a negative timeout",
      '{"mcpServers": {"a": {"command": "x", "timeout": -1}}}',
      "error 1:50: mcpServers.a.timeout: must be more than 0. Write",
    ],
    [
      "another protocol",
      '{"mcpServers": {"a": {"url": "ftp://x.y"}}}',
      "error 1:30: mcpServers.a.url: expected an http or https URL. Write",
    ],
    [
      "bearer without token",
      '{"mcpServers": {"a": {"url": "https://x.y", "auth": "bearer"}}}',
      "error 1:53: mcpServers.a.auth: there is no bearer token.",
    ],
    [
      "a wrong inner key",
      '{"mcpServers": {"a": {"url": "https://x.y", "oauth": {"clientId": 5}}}}',
      "error 1:67: mcpServers.a.oauth.clientId: expected a string, found a number.",
    ],
    [
      "a choice of shapes",
      '{"mcpServers": {"a": {"command": "x", "directTools": 5}}}',
      'error 1:54: mcpServers.a.directTools: expected true or false or a list or "search", found a number.',
    ],
    [
      "an unknown key",
      '{"mcpServers": {"a": {"command": "x", "lifecyle": "lazy"}}}',
      'warning 1:51: mcpServers.a.lifecyle: unknown key, did you mean "lifecycle"? Write "lifecycle".',
    ],
    [
      "a key of another program",
      '{"mcpServers": {"a": {"command": "x", "environment": {}}}}',
      'warning 1:54: mcpServers.a.environment: unknown key, did you mean "env"?',
    ],
    [
      "the tools that Cline and Roo run unasked",
      '{"mcpServers": {"a": {"command": "x", "alwaysAllow": ["t"]}}}',
      "warning 1:54: mcpServers.a.alwaysAllow: this list of tools that run unasked is unknown here: every tool does, unless approve says otherwise. Remove it; or,",
    ],
    [
      "a time in another unit",
      '{"mcpServers": {"a": {"command": "x", "timeoutMs": 5}}}',
      'warning 1:52: mcpServers.a.timeoutMs: unknown key: the limit of a call is timeout, in seconds and not in milliseconds. Write for example "timeout": 60, which is one minute.',
    ],
    [
      "the values that VS Code asks for",
      '{"inputs": []}',
      "warning 1:12: inputs: unknown key: nothing here asks for ${input:...}. Write ${NAME_OF_VARIABLE} in place",
    ],
    [
      "a key like no other",
      '{"mcpServers": {"a": {"command": "x", "zzz": {}}}}',
      "warning 1:46: mcpServers.a.zzz: unknown key, it has no effect. Remove it.",
    ],
    [
      "servers under VS Code's name",
      '{"servers": {}}',
      'warning 1:13: servers: unknown key, did you mean "mcpServers"?',
    ],
    [
      "a server given twice",
      '{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}',
      "error 1:45: mcpServers.a: is given twice. Remove the other one. Until then the server is off.",
    ],
    [
      "a key given twice that protects nobody",
      '{"mcpServers": {"a": {"command": "x", "command": "y"}}}',
      "warning 1:50: mcpServers.a.command: is given twice, this one counts.",
    ],
    [
      "a setting of another form",
      '{"settings": {"clientMetadataUrl": "http://example.com/client.json"}}',
      "error 1:36: settings.clientMetadataUrl: is not an https URL with a path.",
    ],
    [
      "a setting out of range",
      '{"settings": {"maxMessageBytes": 5}}',
      "error 1:34: settings.maxMessageBytes: must be at least 1024.",
    ],
    [
      "an unknown setting",
      '{"settings": {"toolPrefx": "server"}}',
      'warning 1:28: settings.toolPrefx: unknown key, did you mean "toolPrefix"?',
    ],
    [
      "an unknown key below outputGuard",
      '{"mcpServers": {"a": {"command": "x", "outputGuard": {"maxlines": 9}}}}',
      'warning 1:67: mcpServers.a.outputGuard.maxlines: unknown key, did you mean "maxLines"? Write "maxLines".',
    ],
    [
      "an unknown key below a setting",
      '{"settings": {"captureStats": {"pth": "x"}}}',
      'warning 1:39: settings.captureStats.pth: unknown key, did you mean "path"?',
    ],
    [
      "a !command as command",
      '{"mcpServers": {"a": {"command": "!which x"}}}',
      "warning 1:34: mcpServers.a.command: a !command is not run here: this is taken for a program's name. Write",
    ],
    [
      "a sign-in of a local server",
      '{"mcpServers": {"a": {"command": "x", "oauth": {"scope": "s"}}}}',
      "warning 1:48: mcpServers.a.oauth: has no effect: a local server needs no sign-in. Remove it.",
    ],
    [
      "a wrong address of a sign-in",
      '{"mcpServers": {"a": {"url": "https://x.y", "oauth": {"issuer": "auth.x.y"}}}}',
      'error 1:65: mcpServers.a.oauth.issuer: is not an https URL without a query. Write for example "https://auth.example.com".',
    ],
    [
      "an unknown host",
      '{"imports": ["cursr"]}',
      'error 1:14: imports.0: this is not a program whose servers can be imported. Write "cursor".',
    ],
    [
      "an override with more",
      '{"mcpServers": {"a": {"enabled": false, "env": {}}}}',
      "warning 1:48: mcpServers.a.env: has no effect in an entry without command, url or socket.",
    ],
  ])("%s -> one message with the position and a remedy", (_, text, message) => {
    const [first, ...more] = problemsOf(text);
    expect(first).toContain(message);
    expect(more).toEqual([]);
  });

  test.each(OVERRIDE_KEYS)("%s beside a socket, a command or a url -> a server, not an override", (key) => {
    const { examples } = SERVER_KEYS[key];
    for (const target of [{ socket: "~/n.sock" }, { command: "x" }, { url: "https://x.y" }]) {
      const text = JSON.stringify({ mcpServers: { notes: { ...target, [key]: examples?.[0] } } });
      expect(servers(text)).toEqual(["notes"]);
    }
  });

  test("a token beside a sign-in, and a key below one -> each on its own line", () => {
    const text = `{"mcpServers": {"a": {"url": "https://x.y",
      "auth": "oauth",
      "bearerToken": "t",
      "bearerTokenEnv": "T",
      "oauth": {
        "client_id": "x" }}}}`;
    expect(problemsOf(text).map((line) => line.replace(/\. .*/, ""))).toEqual([
      'warning 6:22: mcpServers.a.oauth.client_id: unknown key, did you mean "clientId"? Write "clientId".',
      'warning 3:22: mcpServers.a.bearerToken: is not sent with "auth": "oauth"',
      'warning 4:25: mcpServers.a.bearerTokenEnv: is not sent with "auth": "oauth"',
    ]);
    expect(servers(text)).toEqual(["a"]);
  });

  test("a bad entry, setting or import costs only itself", () => {
    const text = `{"mcpServers": {"bad": 5, "good": {"command": "x"}}, "imports": ["nothing", "codex"],
      "settings": {"catalog": "all", "idleTimeout": 5}}`;
    const config = parseConfigText(text, USER);
    expect(servers(text)).toEqual(["good"]);
    expect(config.settings).toEqual({ idleTimeout: 5 });
    expect(config.imports).toEqual(["codex"]);
    expect(config.problems).toHaveLength(3);
  });

  test("a value behind a variable or a command is not judged by its text", () => {
    const text = JSON.stringify({
      mcpServers: { a: { url: "${BASE}/mcp" }, b: { url: "!get-url" }, c: { url: "$env:URL" } },
    });
    expect(servers(text)).toEqual(["a", "b", "c"]);
    expect(problemsOf('{"mcpServers": {"d": {"url": "!!no"}}}')).toHaveLength(1);
  });

  test("no key becomes a prototype", () => {
    const text =
      '{"mcpServers": {"a": {"__proto__": {"command": "evil"}}, "__proto__": {"command": "evil"}}}';
    expect(servers(text)).toEqual([]);
    expect(Object.hasOwn(Object.prototype, "command")).toBe(false);
  });

  test.each([PROJECT_FILE, PROJECT_PI])("a project's $file may not import", (source) => {
    expect(parseConfigText('{"imports": ["codex"]}', source).imports).toEqual([]);
    expect(problemsOf('{"imports": ["codex"]}', source)).toEqual([
      "warning 1:13: imports: a project's file may not import. Write imports into your own mcp.json.",
    ]);
  });

  test("messages hold no values", () => {
    const text = JSON.stringify({
      mcpServers: {
        a: { command: "x", env: { T: ["s3cret"] }, headers: "s3cret", bearerTokenEnv: "s3-cret" },
      },
    });
    expect(problemsOf(text).join("\n")).not.toMatch(/s3.?cret/);
  });
});

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

interface Place {
  at: ConfigFacts;
  user: string;
}

async function place(): Promise<Place> {
  const home = await temporaryFolder();
  const at = facts({ home, agentDir: join(home, "agent"), cwd: join(home, "work") });
  return { at, user: join(at.agentDir, "mcp.json") };
}

const pipe = async (path: string): Promise<unknown> => promisify(execFile)("mkfifo", [path]);

/** The thing at the path, how it is made, and how it is reported. */
const CASES: [string, (path: string) => Promise<unknown>, string][] = [
  ["a named pipe", pipe, "it is a named pipe, not a regular file"],
  [
    "a link to the terminal",
    (path) => symlink("/dev/tty", path),
    "it is a terminal or another device, not a regular file",
  ],
  [
    "a link to a device without an end",
    (path) => symlink("/dev/zero", path),
    "it is a terminal or another device, not a regular file",
  ],
  ["a folder", (path) => mkdir(path), "EISDIR: it is a folder, not a regular file"],
  ["a link to itself", (path) => symlink(path, path), "ELOOP: it is a link that leads back to itself"],
];

describe("loadConfig", () => {
  it.each(CASES)("%s as .mcp.json -> one problem, the user's servers start", async (_what, make, told) => {
    const { at, user } = await place();
    await put(user, { mcpServers: { healthy: { command: "x" } } });
    await mkdir(at.cwd);
    const file = join(at.cwd, ".mcp.json");
    await make(file);
    const { servers, problems, broken } = await loadConfig(at);
    expect(servers.map(({ name }) => name)).toEqual(["healthy"]);
    expect(problems.map(describeProblem)).toEqual([
      `${file}:1:1: cannot be read: ${told}. Put a regular file there, or delete it.`,
    ]);
    expect(broken).toEqual([file]);
  });

  it.each([
    [".pi/mcp.json", {}],
    [".cursor/mcp.json", { imports: ["cursor"] }],
    [".codex/config.toml", { imports: ["codex"] }],
    [".vscode/mcp.json", { imports: ["vscode"] }],
    ["opencode.json", { imports: ["opencode"] }],
  ])("a named pipe as %s -> one problem, the user's servers start", async (name, imports) => {
    const { at, user } = await place();
    await put(user, { mcpServers: { healthy: { command: "x" } }, ...imports });
    const file = join(at.cwd, name);
    await mkdir(dirname(file), { recursive: true });
    await pipe(file);
    const { servers, problems } = await loadConfig(at);
    expect(servers.map((server) => server.name)).toEqual(["healthy"]);
    expect(problems).toMatchObject([{ file, message: expect.stringContaining("it is a named pipe") }]);
  });

  test("a link to a regular file -> read", async () => {
    const { at, user } = await place();
    await put(join(at.home, "dotfiles", "mcp.json"), { mcpServers: { linked: { command: "x" } } });
    await mkdir(at.agentDir);
    await symlink(join("..", "dotfiles", "mcp.json"), user);
    const { servers, problems } = await loadConfig(at);
    expect([servers.map(({ name }) => name), problems]).toEqual([["linked"], []]);
  });

  test("a project's file over the project's limit -> reported; the user's own file may be larger", async () => {
    const { at, user } = await place();
    const large = (name: string): string =>
      `${JSON.stringify({ mcpServers: { [name]: { command: "x" } } })}${" ".repeat(LIMITS.projectFileBytes)}`;
    await put(user, large("own"));
    await put(join(at.cwd, ".mcp.json"), large("project"));
    const { servers, problems } = await loadConfig(at);
    expect(servers.map(({ name }) => name)).toEqual(["own"]);
    expect(problems.map(describeProblem)).toEqual([
      `${join(at.cwd, ".mcp.json")}:1:1: cannot be read: it is larger than 1 MiB. Make the file smaller, or delete it.`,
    ]);
  });
});

test("a named pipe as envFile -> a reason, at once", async () => {
  const file = join(await temporaryFolder(), ".env");
  await pipe(file);
  expect(await readEnvFile(file)).toEqual({ reason: "it is a named pipe, not a regular file" });
});

test("a named pipe as mcp-trust.json -> no consent counts, at once, and none is written", async () => {
  const file = join(await temporaryFolder(), "mcp-trust.json");
  await pipe(file);
  const { consents, problem } = await loadTrust(file);
  expect(consents).toEqual([]);
  expect(problem?.message).toBe(
    "no consent in it counts: it cannot be read (it is a named pipe, not a regular file)",
  );
  await expect(remember(file, [])).rejects.toThrow("it is a named pipe");
});
