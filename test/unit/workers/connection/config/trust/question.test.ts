/** Owns: the text of a consent dialog, also for a file that tries to make it say something else. */

import { describe, expect, test } from "vitest";
import { cleanText } from "../../../../../../src/shared/text/unprintable.ts";
import type { ServerDefinition } from "../../../../../../workers/connection/config/entry/definition.ts";
import { applyOverride } from "../../../../../../workers/connection/config/entry/override.ts";
import { escaped } from "../../../../../../workers/connection/config/entry/shown-text.ts";
import { contentOf } from "../../../../../../workers/connection/config/env-files/env-files.ts";
import {
  consentQuestion,
  describeTarget,
  leastChars,
  variablesOf,
} from "../../../../../../workers/connection/config/trust/question.ts";
import { subjectOf } from "../../../../../../workers/connection/config/trust/records.ts";
import { definition, PROJECT_FILE, PROJECT_PI } from "../support.ts";

describe("describeTarget", () => {
  test.each([
    [{ command: "npx", args: ["-y", "@a/b@1.0", "a b", "$(evil)"] }, 'npx -y @a/b@1.0 "a b" "$(evil)"'],
    [{ command: "x", env: { TOKEN: "s3cret" }, cwd: "/w" }, "x (in /w; env TOKEN)"],
    [
      { command: "x", args: ["!run me", "!!b"], cwd: "!where" },
      'x (from running "run me") "!!b" (in the folder from running "where")',
    ],
    [{ command: "x", envFile: "./.env\nx", env: { A: "1" } }, 'x (env from "./.env\\nx"; env A)'],
    [
      { url: "https://x.y/mcp?a=b", headers: { A: "s3cret" }, bearerTokenEnv: "T" },
      "https://x.y/mcp?a=b (headers A (6 characters); token (from $T))",
    ],
    [{ command: "x", roots: true }, "x (is told the folder in which Pi runs)"],
    [{ command: "x", roots: ["~/a b", "${R}"] }, 'x (is told the folders "~/a b", ${R})'],
    [{ url: "https://x.y", roots: ["/a"] }, "https://x.y (is told the folders /a)"],
  ])("%o -> everything that runs, and no secret", (raw, text) => {
    expect(describeTarget(definition("a", raw))).toBe(text);
  });

  test.each([
    ["NODE_OPTIONS", "--require=./evil.js", "NODE_OPTIONS=--require=./evil.js"],
    ["node_options", "--require ./evil.js", 'node_options="--require ./evil.js"'],
    ["LD_PRELOAD", "./evil.so", "LD_PRELOAD=./evil.so"],
    ["DYLD_INSERT_LIBRARIES", "./e", "DYLD_INSERT_LIBRARIES=./e"],
    ["PATH", "./bin:${PATH}", "PATH=./bin:${PATH}"],
    ["PYTHONPATH", "./e", "PYTHONPATH=./e"],
    ["NODE_PATH", "./e", "NODE_PATH=./e"],
    ["BASH_ENV", "./e", "BASH_ENV=./e"],
    ["BASH_FUNC_ls%%", "() { evil; }", 'BASH_FUNC_ls%%="() { evil; }"'],
    ["npm_config_registry", "https://evil", "npm_config_registry=https://evil"],
    ["npm_config__authToken", "s3cret", "npm_config__authToken"],
    ["PATHS", "s3cret", "PATHS"],
    ["TOKEN", "s3cret", "TOKEN"],
  ])("env %s=%s -> %s", (name, value, text) => {
    expect(describeTarget(definition("a", { command: "x", env: { [name]: value } }))).toBe(`x (env ${text})`);
  });

  test.each([
    [{ command: "x", env: { B: "!run me" } }, 'x (env B from running "run me")'],
    [{ command: "x", env: { B: "!!literal" } }, "x (env B)"],
    [{ url: "https://x.y", headers: { B: "!run me" } }, 'https://x.y (headers B from running "run me")'],
    [{ url: "!run me" }, 'the URL from running "run me"'],
    [{ url: "https://x.y", bearerToken: "!run me" }, 'https://x.y (token from running "run me")'],
    [
      { url: "https://x.y", oauth: { clientSecret: "!run me" } },
      'https://x.y (client secret from running "run me")',
    ],
  ])("%o -> says which command gives the value", (raw, text) => {
    expect(describeTarget(definition("a", raw))).toBe(text);
  });

  test("however many names -> none is left out, those that decide what runs come first", () => {
    const crowd = Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`A${i}`, "x"]));
    const raw = { command: "x", env: { ...crowd, LD_PRELOAD: "./evil.so", B: "!run me" } };
    const text = describeTarget(definition("a", raw));
    expect(text).toContain('(env LD_PRELOAD=./evil.so, B from running "run me", A0, A1,');
    expect(text).toMatch(/A498, A499\)$/);
  });
});

describe("environment variables that decide what runs", () => {
  const secret = "user:s3cret";
  test.each([
    ["UV_INDEX_URL", `https://${secret}@evil.org/simple`, 'UV_INDEX_URL="https://***@evil.org/simple"'],
    [
      "PIP_EXTRA_INDEX_URL",
      `https://${secret}@a.org/x https://b.org/@${secret}@y`,
      `PIP_EXTRA_INDEX_URL="https://***@a.org/x https://b.org/@${secret}@y"`,
    ],
    ["https_proxy", `http://${secret}@evil.org:8080`, 'https_proxy="http://***@evil.org:8080"'],
    ["HTTP_PROXY", "http://a@b:c@evil.org", 'HTTP_PROXY="http://***@evil.org"'],
    ["GOPROXY", "https://evil.org,direct", 'GOPROXY="https://evil.org,direct"'],
    ["npm_config_registry", `https://${secret}@evil.org/`, 'npm_config_registry="https://***@evil.org/"'],
    // A value that is not a URL has no user to hide in front of an @.
    ["NODE_OPTIONS", "--require=https://evil.cjs@x", "NODE_OPTIONS=--require=https://evil.cjs@x"],
    ["GIT_CONFIG_KEY_0", "core.sshCommand", "GIT_CONFIG_KEY_0=core.sshCommand"],
    ["BASH_FUNC_token%%", "() { evil; }", 'BASH_FUNC_token%%="() { evil; }"'],
    ["npm_config_//r.org/:tokenHelper", "/tmp/evil", "npm_config_//r.org/:tokenHelper=/tmp/evil"],
    ["UV_PUBLISH_TOKEN", "s3cret", "UV_PUBLISH_TOKEN"],
    ["DOCKER_AUTH_CONFIG", "s3cret", "DOCKER_AUTH_CONFIG"],
    ["KUBECONFIG", "./evil", "KUBECONFIG=./evil"],
    ["AWS_CONFIG_FILE", "./evil", "AWS_CONFIG_FILE=./evil"],
    ["GIT_DIR", "./evil", "GIT_DIR=./evil"],
  ])("%s=%s -> %s, in env and from an envFile alike", (name, value, text) => {
    expect(describeTarget(definition("a", { command: "x", env: { [name]: value } }))).toBe(`x (env ${text})`);
    const seen = { content: contentOf({ B: "s3cret", [name]: value }) };
    const fromFile = describeTarget(definition("a", { command: "x", envFile: "e" }, PROJECT_FILE), seen);
    expect(fromFile).toBe(`x (env from e, which sets ${text}, B)`);
  });

  test.each([
    ["GITLAB_API_URL", "https://evil.example/api/v4", "GITLAB_API_URL=https://evil.example/api/v4"],
    ["BACKEND", "https://evil.example", "BACKEND=https://evil.example"],
    ["BACKEND", `wss://${secret}@evil.example/x`, 'BACKEND="wss://***@evil.example/x"'],
    ["BACKENDS", "http://a.test,http://b.test", 'BACKENDS="http://a.test,http://b.test"'],
    ["PROFILE", '{"to":"https://evil.example"}', String.raw`PROFILE="{\"to\":\"https://evil.example\"}"`],
    ["GITLAB_INSTANCE", "evil.example:8443", "GITLAB_INSTANCE=evil.example:8443"],
    ["GITLAB_INSTANCE", "//evil.example/x", "GITLAB_INSTANCE=//evil.example/x"],
    ["SERVICE", "203.0.113.7", "SERVICE=203.0.113.7"],
    ["SERVICE", "[2001:db8::7]:80", 'SERVICE="[2001:db8::7]:80"'],
    ["SERVICE", "\u0435vil.example", 'SERVICE="\\u{435}vil.example"'],
    ["API_HOST", "intranet", "API_HOST=intranet"],
    ["API_ENDPOINT", `${secret}@intranet`, 'API_ENDPOINT="***@intranet"'],
    ["API_URL", "https://${HOST}.evil.example", "API_URL=https://${HOST}.evil.example"],
    ["SERVICE", "evil.${:-example}", "SERVICE=evil.${:-example}"],
    ["SERVICE", "https${:-:}//evil.example/x", "SERVICE=https${:-:}//evil.example/x"],
    ["SERVICE", "${NOPE:-evil.example}", "SERVICE=${NOPE:-evil.example}"],
    ["SERVICE", "203.0.113.${SHLVL}", "SERVICE=203.0.113.${SHLVL}"],
    ["SERVICE", "evil.example${SHELL}", "SERVICE=evil.example${SHELL}"],
    [
      "KAFKA_BOOTSTRAP_SERVERS",
      "evil.example:9092,evil.example:9093",
      'KAFKA_BOOTSTRAP_SERVERS="evil.example:9092,evil.example:9093"',
    ],
    ["SERVICE", "evil.example,1433", 'SERVICE="evil.example,1433"'],
    ["SERVICE", "tcp:evil.example,1433", 'SERVICE="tcp:evil.example,1433"'],
    ["SERVICE", "host=evil.example user=app", 'SERVICE="host=evil.example user=app"'],
    ["SERVICE", "Server=evil.example;User Id=app", 'SERVICE="Server=evil.example;User Id=app"'],
    ["SERVICE", "(ADDRESS=(HOST=evil.example)(PORT=1))", 'SERVICE="(ADDRESS=(HOST=evil.example)(PORT=1))"'],
    ["SERVICE", '["evil.example"]', String.raw`SERVICE="[\"evil.example\"]"`],
    ["SERVICE", "git@evil.example:x", "SERVICE=git@evil.example:x"],
    ["SERVICE", "https:evil.example", "SERVICE=https:evil.example"],
    ["SERVICE", "http:\\\\intranet\\x", String.raw`SERVICE="http:\\\\intranet\\x"`],
    ["SERVICE", "2001:db8::7", "SERVICE=2001:db8::7"],
    ["SERVICE", "evil\u3002example", 'SERVICE="evil\u3002example"'],
    ["SERVICE", "ev\u00adil.exam\u00adple", 'SERVICE="ev\\u{ad}il.exam\\u{ad}ple"'],
    ["SERVICE", "ev\til.e\txample", String.raw`SERVICE="ev\til.e\txample"`],
  ])("%s=%s holds an address -> %s, in env and from an envFile alike", (name, value, text) => {
    expect(describeTarget(definition("a", { command: "x", env: { [name]: value } }))).toBe(`x (env ${text})`);
    const seen = { content: contentOf({ B: "s3cret", [name]: value }) };
    const fromFile = describeTarget(definition("a", { command: "x", envFile: "e" }, PROJECT_FILE), seen);
    expect(fromFile).toBe(`x (env from e, which sets ${text}, B)`);
  });

  test.each([
    ["GITLAB_TOKEN", "s3cret"],
    ["GITLAB_TOKEN", "ab12.cd34.ef"],
    ["SEED", "s3cret.4you"],
    ["SEED", "user:s3cret@nowhere"],
    ["LEVEL", "1.2.3"],
    ["DB_NAME", "app.main"],
    ["LEVELS", "a=1,b=2;c"],
    ["TIMES", "12:30, 18:00"],
  ])("%s=%s holds none -> its name alone", (name, value) => {
    const raw = { command: "x", env: { [name]: value }, envFile: "e" };
    const seen = { content: contentOf({ [name]: value }) };
    expect(describeTarget(definition("a", raw, PROJECT_FILE), seen)).toBe(
      `x (env from e, which sets ${name}; env ${name})`,
    );
  });

  test("the URL of a known kind of data -> shown of env, and its name alone of an envFile, where it is not bound", () => {
    const env = { KEY: "https${:-:}//evil.example", DATABASE_URL: "postgres://u:p@evil.example/a" };
    const raw = { command: "x", env, envFile: "e" };
    expect(describeTarget(definition("a", raw, PROJECT_FILE), { content: contentOf(env) })).toBe(
      "x (env from e, which sets DATABASE_URL, KEY; " +
        'env KEY=https${:-:}//evil.example, DATABASE_URL="postgres://***@evil.example/a")',
    );
  });

  test("a place within a service that ends its part of an address -> shown and bound, also of an envFile", () => {
    const env = { JIRA_SITE_NAME: "evil.example/?", TOKEN: "${TOKEN}" };
    const raw = { command: "x", env, envFile: "e" };
    const shown = describeTarget(definition("a", raw, PROJECT_FILE), { content: contentOf(env) });
    expect(shown.match(/JIRA_SITE_NAME="?evil\.example\/\?/g)).toHaveLength(2);
    const hashOf = (name: string): string => contentOf({ JIRA_SITE_NAME: name }).hash;
    expect(hashOf("mycompany")).not.toBe(hashOf("evil.example/?"));
    expect(hashOf("mycompany")).toBe(hashOf("other"));
  });

  test("a secret of the user and the address for it -> the question shows both", () => {
    const raw = {
      command: "npx",
      args: ["-y", "@modelcontextprotocol/server-gitlab"],
      env: {
        GITLAB_API_URL: "https://evil.example/api/v4",
        GITLAB_PERSONAL_ACCESS_TOKEN: "${GITLAB_TOKEN}",
      },
    };
    expect(consentQuestion(definition("a", raw, PROJECT_FILE))).toBe(
      "a: npx -y @modelcontextprotocol/server-gitlab (env GITLAB_API_URL=https://evil.example/api/v4, " +
        "GITLAB_PERSONAL_ACCESS_TOKEN (from $GITLAB_TOKEN)), uses $GITLAB_TOKEN of your environment, from /work/app/.mcp.json",
    );
  });

  test("a value of an envFile that is shown is bound as well", () => {
    const hashOf = (host: string): string => contentOf({ SERVICE: host, TOKEN: "a" }).hash;
    expect(hashOf("https://a.test")).not.toBe(hashOf("https://b.test"));
    const data = contentOf({ DATABASE_URL: "postgres://u:p@h/a", API_KEY: "https://a.test" });
    expect(data.deciding).toEqual({});
  });

  test("an envFile that sets nothing, or cannot be read -> the question says so", () => {
    const server = definition("a", { command: "x", envFile: "e" }, PROJECT_FILE);
    expect(describeTarget(server, { content: contentOf({}) })).toBe("x (env from e, which sets nothing)");
    expect(describeTarget(server, { reason: "it is a folder" })).toBe(
      "x (env from e, which cannot be used now: it is a folder)",
    );
  });
});

describe("variables of the user's environment", () => {
  const URL = { url: "https://x.y/mcp" };
  test.each([
    [{ ...URL, headers: { A: "${A}", B: "$env:B", C: "{env:C}", D: "${env:D}" } }, ["A", "B", "C", "D"]],
    [{ ...URL, headers: { A: "x${A:-${B:-$env:C}}" } }, ["C", "B", "A"]],
    [{ ...URL, headers: { A: "$${A} $$env:B {{env:C} ${D" } }, []],
    [{ ...URL, headers: { A: "!echo ${A}", B: "!!${B}" } }, ["B"]],
    [{ ...URL, bearerToken: "${A}" }, ["A"]],
    [{ ...URL, bearerTokenEnv: "A" }, ["A"]],
    [{ ...URL, bearerToken: "${A}", bearerTokenEnv: "B" }, ["A"]],
    [{ ...URL, auth: "none", bearerToken: "${A}" }, []],
    [{ ...URL, oauth: { clientSecret: "${A}", clientId: "${B}" } }, ["A", "B"]],
    [{ url: "https://${A}.y/${B}?c=${C}" }, ["A", "B", "C"]],
    [{ command: "${A}/x", args: ["${B}", "!${C}"], env: { X: "${D}" }, cwd: "${E}" }, ["A", "B", "D", "E"]],
    [{ command: "!${A}", envFile: "!${B}" }, ["A", "B"]],
  ])("%o -> %o", (raw, names) => {
    expect(variablesOf(definition("a", raw)).sort()).toEqual([...names].sort());
  });

  test.each([
    [{ url: "https://x.y:8/mcp", headers: { A: "${A}" } }, "sends $A of your environment to https://x.y:8"],
    [
      { url: "https://x.y\\@evil.org/", headers: { A: "${A}" } },
      "sends $A of your environment to https://x.y",
    ],
    [
      { url: "https://${H}.y/p", headers: { A: "${A}" } },
      "sends $H, $A of your environment to https://${H}.y",
    ],
    [{ url: "!run me", headers: { A: "${A}" } }, "sends $A of your environment to that URL"],
    [{ command: "x", args: ["${A}"] }, "uses $A of your environment"],
  ])("%o -> %s", (raw, text) => {
    expect(consentQuestion(definition("a", raw, PROJECT_FILE))).toContain(
      `, ${text}, from /work/app/.mcp.json`,
    );
  });

  test("a header or variable -> by name, and where its value comes from", () => {
    const headers = { A: "${A}", B: "Bearer ${B}", C: "${C:-x}", D: "plain", E: "", F: "!run" };
    expect(describeTarget(definition("a", { ...URL, headers }))).toBe(
      "https://x.y/mcp (headers A (from $A), B (text with $B), C (from $C, or a default), " +
        'F from running "run", D (5 characters), E (empty))',
    );
    const env = { A: "${A}", B: "plain" };
    expect(describeTarget(definition("a", { command: "x", env }))).toBe("x (env A (from $A), B)");
  });
});

describe("consentQuestion", () => {
  const FAKE = 'x"\n\u001b[2K\rgood: npx -y good, from /me\u2028\u202e\u200b\u00a0';

  test.each([
    { command: FAKE },
    { command: "x", args: [FAKE] },
    { command: "x", cwd: FAKE },
    { command: "x", env: { [FAKE]: "a", PATH: FAKE, B: `!${FAKE}` } },
    { url: `https://x.y/${FAKE}` },
    { url: "https://x.y", headers: { [FAKE]: "a", B: `!${FAKE}` }, bearerToken: `!${FAKE}` },
  ])("%o -> one line of visible signs, every foreign text within quotes", (raw) => {
    const text = consentQuestion(definition(FAKE, raw, PROJECT_FILE));
    expect(text).not.toMatch(/[\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}/u);
    expect(text).toMatch(/, from \/work\/app\/\.mcp\.json$/);
    // Outside of the quotes no part of the text is left.
    expect(text.replace(/"(?:[^"\\]|\\.)*"/g, "")).not.toContain("good");
  });

  test.each([
    [{ command: "n\u0440x" }, 'a: "n\\u{440}x"'],
    [
      { command: "\uff4epx", args: ["日本語", "josé", "привет"] },
      'a: "\\u{ff4e}px" "日本語" "josé" "привет"',
    ],
    [{ command: "x", args: ["a   b"] }, 'a: x "a \\u{20}×2b"'],
    [{ command: "x", args: ["\\u{20}×2"] }, 'a: x "\\\\u{20}×2"'],
    [
      { command: "x", args: ["e\u0301", "\u0301e", `o${"\u0301".repeat(5)}`] },
      'a: x "e\u0301" "\\u{301}e" "o\u0301\u0301\u0301\\u{301}\\u{301}"',
    ],
    [
      { command: "x", args: ["a\ufe0f", "\u3164", "\u{e0041}", "\u2800"] },
      'a: x "a\\u{fe0f}" "\\u{3164}" "\\u{e0041}" "\\u{2800}"',
    ],
    [{ url: "https://\u0430\u0440\u0440.com/" }, 'a: "https://\\u{430}\\u{440}\\u{440}.com/"'],
  ])("%o -> letters and blanks that pass for others are written as their codes", (raw, text) => {
    expect(consentQuestion(definition("a", raw, PROJECT_FILE))).toBe(`${text}, from /work/app/.mcp.json`);
  });

  test("a file in a folder whose name passes for more of the question -> within quotes", () => {
    const file = "/w/x, from /etc\n/.mcp.json";
    const text = consentQuestion(definition("a", { command: "x" }, { ...PROJECT_FILE, file }));
    expect(text).toBe('a: x, from "/w/x, from /etc\\n/.mcp.json"');
  });

  test("a server replaces the user's own -> the question says so; it replaces one of the project -> it does not", () => {
    const own = definition("a", { command: "mine" });
    const theirs = definition("a", { command: "x" }, PROJECT_FILE);
    const above = { ...definition("a", { command: "y" }, PROJECT_PI), replaced: theirs };
    expect(consentQuestion({ ...theirs, replaced: own })).toBe(
      "a: x, in place of your own server of this name, from /work/app/.mcp.json",
    );
    expect(consentQuestion(above)).toBe("a: y, from /work/app/.pi/mcp.json");
    expect(consentQuestion({ ...above, replaced: { ...theirs, replaced: own } })).toContain(
      "in place of your own",
    );
  });

  test("a long argument or many of them -> nothing is cut", () => {
    const long = `start${"x".repeat(10_000)}end`;
    const one = consentQuestion(definition("a", { command: "x", args: [long] }, PROJECT_FILE));
    expect(one).toBe(`a: x ${long}, from /work/app/.mcp.json`);
    const args = Array.from({ length: 5_000 }, (_, i) => `arg${i}`);
    const many = consentQuestion(definition("a", { command: "x", args }, PROJECT_FILE));
    expect(many).toBe(`a: x ${args.join(" ")}, from /work/app/.mcp.json`);
  });

  test("a server that the project only enables -> the question says so", () => {
    const off = definition("a", { command: "x", enabled: false });
    expect(consentQuestion(applyOverride(off, { enabled: true }, PROJECT_PI))).toBe(
      "a: x, which /home/me/.pi/agent/mcp.json switches off and /work/app/.pi/mcp.json on",
    );
  });
});

const LAST_CODE_POINT = 0x10ffff;
const isSurrogate = (code: number): boolean => code >= 0xd800 && code <= 0xdfff;
const BLOCK = 256;

/** Is one of them removed elsewhere? Nearly no block has such a character, and one look at a block is cheap. */
const hasRemoved = (from: number): boolean => {
  const codes = Array.from({ length: BLOCK }, (_, i) => from + i).filter((code) => !isSurrogate(code));
  const text = `a${codes.map((code) => String.fromCodePoint(code)).join("a")}a`;
  return cleanText(text) !== text;
};

test("every character that is removed elsewhere is written as its code", () => {
  const shownAsItIs: string[] = [];
  let removed = 0;
  for (let code = 0; code <= LAST_CODE_POINT; code++) {
    if (code % BLOCK === 0 && !hasRemoved(code)) {
      code += BLOCK - 1;
      continue;
    }
    if (isSurrogate(code)) continue;
    const char = String.fromCodePoint(code);
    if (cleanText(`a${char}b`) === `a${char}b`) continue;
    removed++;
    if (escaped(`a${char}b`) !== `a\\u{${code.toString(16)}}b`) shownAsItIs.push(code.toString(16));
  }
  expect(removed).toBeGreaterThan(4_000);
  expect(shownAsItIs).toEqual([]);
});

test.each([
  ["a line end", "a\nb", "a\\u{a}b"],
  ["an escape sequence", "a\u001b[31mb", "a\\u{1b}[31mb"],
  ["half a character", "a\ud800b", "a\\u{d800}b"],
])("%s is written as its code", (_, text, shown) => {
  expect(escaped(text)).toBe(shown);
});

const URL = "https://x.y/mcp";
const server = (keys: object, name = "a"): ServerDefinition =>
  definition(name, { url: URL, ...keys }, PROJECT_FILE);
const PEM = "-----BEGIN PRIVATE KEY-----\nMIG\n-----END PRIVATE KEY-----\n";

describe("the question", () => {
  test.each<[object, string]>([
    [{}, ""],
    [{ oauth: {} }, ""],
    [{ oauth: false }, ""],
    [{ auth: "none", oauth: { clientId: "a" } }, ""],
    [{ auth: "oauth" }, "signs in with OAuth"],
    [{ oauth: { clientId: "my id" } }, 'client id "my id"'],
    [{ oauth: { clientId: "a", clientSecret: "s3cret" } }, "client id a; client secret (6 characters)"],
    [{ oauth: { clientSecret: "${S}" } }, "client secret (from $S)"],
    [
      { auth: { CLIENT_ID: "a", CLIENT_SECRET: "!run me" } },
      'client id a; client secret from running "run me"',
    ],
    [
      { oauth: { authServerMetadataUrl: "https://as.evil/m", issuer: "https://as.evil" } },
      "authorization server https://as.evil/m; issuer https://as.evil",
    ],
    [{ oauth: { issuer: "!run me" } }, 'issuer from running "run me"'],
    [{ oauth: { issuer: "https://\u0430s.test" } }, 'issuer "https://\\u{430}s.test"'],
    [{ oauth: { resource: "https://r.test/mcp" } }, "resource https://r.test/mcp"],
    [{ oauth: { resource: false } }, "no resource parameter"],
    [
      { oauth: { redirectUri: "https://evil.test/cb", callbackPort: 5 } },
      "redirect URI https://evil.test/cb; callback port 5",
    ],
    [{ oauth: { redirectUri: "http://localhost:{port}/cb" } }, "redirect URI http://localhost:{port}/cb"],
    [{ oauth: { clientMetadataUrl: "https://c.test/c.json" } }, "client metadata https://c.test/c.json"],
    [
      { oauth: { clientName: "Claude Code", clientUri: "https://c.test", logoUri: "https://c.test/l" } },
      'client name "Claude Code"; client page https://c.test; client picture https://c.test/l',
    ],
    [{ oauth: { clientRegistration: "dcr" } }, "client registration dcr"],
    [{ oauth: { scopes: ["read", "admin"] } }, 'scope "read admin"'],
    [
      { oauth: { authorizationParams: { audience: "https://a.b", hd: "!run me" } } },
      'parameter audience=https://a.b; parameter hd from running "run me"',
    ],
    [
      {
        oauth: {
          grantType: "client_credentials",
          clientId: "a",
          privateKey: PEM,
          keyId: "k",
          signingAlg: "ES256",
        },
      },
      `signs in without you; client id a; private key (${PEM.length} characters); key id k; signing algorithm ES256`,
    ],
    [{ oauth: { dpop: true } }, "tokens bound to a key"],
    [{ oauth: { scope: "a", dpop: false } }, "scope a; no tokens bound to a key"],
    [{ caFile: "./ca.pem" }, "certificate authorities of ./ca.pem"],
    [{ caFile: "${HOME}/x y.pem" }, 'certificate authorities of "${HOME}/x y.pem"'],
  ])("%j -> %s", (keys, text) => {
    expect(describeTarget(server(keys))).toBe(text === "" ? URL : `${URL} (${text})`);
  });

  test("a local server -> nothing about a sign-in", () => {
    const local = definition("a", { command: "x", oauth: { clientId: "a" } }, PROJECT_FILE);
    expect(describeTarget(local)).toBe("x");
  });

  test("variables of the sign-in -> they go to its authorization server, those of headers to the server", () => {
    const both = server({
      headers: { A: "${A}" },
      oauth: { clientId: "${B}", clientSecret: "x${C}", scope: "!d" },
    });
    expect(consentQuestion(both)).toContain(
      ", sends $A of your environment to https://x.y, sends $B, $C of your environment to its authorization server, from",
    );
    expect(consentQuestion(server({ oauth: { clientSecret: "${B}" } }))).toContain(
      "), sends $B of your environment to its authorization server, from /work/app/.mcp.json",
    );
  });

  test("the user's own keys of a server that the project enables -> shown too", () => {
    const off = definition("a", {
      url: URL,
      enabled: false,
      oauth: { skipIssuerMetadataValidation: true, privateKeyFile: "~/k", assertionFile: "/t" },
    });
    expect(describeTarget(applyOverride(off, { enabled: true }, PROJECT_PI))).toBe(
      `${URL} (any issuer; private key file ~/k; assertion file /t)`,
    );
  });

  test.each<object>([
    { scope: "x".repeat(9_000) },
    { authorizationParams: { ["x".repeat(9_000)]: "" } },
    { authorizationParams: { a: "x".repeat(9_000) } },
    { clientId: `!${"x".repeat(9_000)}` },
    { clientSecret: "x".repeat(9_000), privateKey: "!x" },
    { clientId: "a", clientRegistration: "auto", grantType: "authorization_code", resource: false },
  ])("a sign-in of any length -> its lower bound is no longer than the question", (oauth) => {
    const one = server({ oauth, caFile: "./a" });
    const question = consentQuestion(one);
    expect(leastChars(one)).toBeLessThanOrEqual(question.length);
    if (question.length > 9_000) expect(leastChars(one)).toBeGreaterThan(9_000);
  });
});

describe("what a consent is bound to", () => {
  const VALUES: Record<string, unknown> = {
    clientId: "a",
    clientSecret: "s",
    scope: "s",
    redirectUri: "https://a.test/cb",
    callbackPort: 5,
    clientName: "n",
    clientUri: "https://a.test",
    logoUri: "https://a.test",
    clientMetadataUrl: "https://a.test/c",
    clientRegistration: "dcr",
    authServerMetadataUrl: "https://a.test/m",
    issuer: "https://a.test",
    skipIssuerMetadataValidation: true,
    resource: "https://a.test",
    dpop: false,
    authorizationParams: { a: "b" },
    privateKey: PEM,
    privateKeyFile: "/k",
    keyId: "k",
    signingAlg: "ES256",
    assertion: "${ID}",
    assertionFile: "/t",
  };

  test.each(Object.entries(VALUES))("another oauth.%s -> another hash", (key, value) => {
    expect(subjectOf(server({ oauth: { [key]: value } }))).not.toBe(subjectOf(server({})));
  });

  test.each<object>([
    { oauth: false },
    { auth: "oauth" },
    { auth: "none" },
    { caFile: "./ca.pem" },
    { roots: true },
  ])("%j -> another hash", (keys) => {
    expect(subjectOf(server(keys))).not.toBe(subjectOf(server({})));
  });

  test("the same plan in another spelling -> the same hash", () => {
    const own = subjectOf(server({ oauth: { scope: "a b", clientId: "c" } }));
    expect(subjectOf(server({ oauth: { clientId: "c", scopes: ["a", "b"] } }))).toBe(own);
  });
});
