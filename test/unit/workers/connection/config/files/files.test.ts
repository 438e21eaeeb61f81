import { describe, expect, test } from "vitest";
import { describeProblem } from "../../../../../../src/shared/text/failure.ts";
import { parseConfigText } from "../../../../../../workers/connection/config/files/files.ts";
import { PROJECT_FILE, PROJECT_PI, USER } from "../support.ts";

const problemsOf = (text: string, source = USER): string[] =>
  parseConfigText(text, source).problems.map((problem) =>
    describeProblem(problem).replace(`${source.file}:`, `${problem.severity} `),
  );

const servers = (text: string): string[] =>
  parseConfigText(text, USER).entries.map((entry) =>
    entry.kind === "server" ? entry.definition.name : `override ${entry.name}`,
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
      'error 1:52: mcpServers.a.lifecycle: expected one of "lazy", "eager", "keep-alive".',
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
      "error 1:54: mcpServers.a.directTools: expected true or false or a list, found a number.",
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
      "warning 1:45: mcpServers.a: is given twice, this one counts.",
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
      "warning 1:48: mcpServers.a.oauth: has no effect: a local server is not signed in to. Remove it.",
    ],
    [
      "a wrong address of a sign-in",
      '{"mcpServers": {"a": {"url": "https://x.y", "oauth": {"issuer": "auth.x.y"}}}}',
      'error 1:65: mcpServers.a.oauth.issuer: is not an https URL without a query. Write for example "https://auth.example.com".',
    ],
    [
      "an unknown host",
      '{"imports": ["cursr"]}',
      'error 1:14: imports.0: this is no program whose servers can be imported. Write "cursor".',
    ],
    [
      "an override with more",
      '{"mcpServers": {"a": {"enabled": false, "env": {}}}}',
      "warning 1:48: mcpServers.a.env: has no effect in an entry without command or url.",
    ],
  ])("%s -> one message with the position and a remedy", (_, text, message) => {
    const [first, ...more] = problemsOf(text);
    expect(first).toContain(message);
    expect(more).toEqual([]);
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
