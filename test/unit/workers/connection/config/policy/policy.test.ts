/** Owns: the policy of a machine: who may write it, its mistakes, and which servers its rules fit in whatever spelling. */
import { describe, expect, test } from "vitest";
import {
  parseEntry,
  type ServerDefinition,
} from "../../../../../../workers/connection/config/entry/definition.ts";
import { parseHostText } from "../../../../../../workers/connection/config/hosts/hosts.ts";
import { configFacts } from "../../../../../../workers/connection/config/merge/merge.ts";
import {
  parsePolicy,
  underPolicy,
  whyNotAdministrators,
} from "../../../../../../workers/connection/config/policy/policy.ts";
import { reasonOf } from "../../../../../../workers/connection/config/policy/rules.ts";

const FILE = "/etc/pi-mcp-threads/policy.json";

function server(name: string, raw: object, origin: ServerDefinition["origin"] = "user"): ServerDefinition {
  const { definition, mistakes } = parseEntry(name, raw, { file: "/mcp.json", origin });
  if (!definition) throw new Error(JSON.stringify(mistakes));
  return definition;
}

const policyOf = (content: unknown) => parsePolicy(JSON.stringify(content), FILE);

function denied(content: unknown, name: string, raw: object): boolean {
  const policy = policyOf(content);
  expect(policy.problem).toBeUndefined();
  return underPolicy(policy, [server(name, raw)]).denied.length > 0;
}

test("a variable that Codex passes on is the environment's own -> the command is the allowed one", () => {
  const source = { file: "/codex.toml", origin: "import", required: false } as const;
  const text = '[mcp_servers.s]\ncommand = "kubectl-mcp"\nenv_vars = ["KUBECONFIG"]';
  const facts = { ...configFacts({ agentDir: "/a", cwd: "/c", projectTrusted: true }), home: "/h" };
  const { servers } = parseHostText(text, { host: "codex", source, facts, before: [] });
  const policy = policyOf({ allow: [{ command: ["kubectl-mcp"] }] });
  expect(policy.problem).toBeUndefined();
  expect(underPolicy(policy, servers)).toMatchObject({ servers: [{ name: "s" }], denied: [] });
});

describe("who may write it", () => {
  const stats = (uid: number, mode: number, isLink = false) => ({ uid, mode, isSymbolicLink: () => isLink });
  const ROOTS = {
    "/": stats(0, 0o755),
    "/etc": stats(0, 0o755),
    "/etc/p": stats(0, 0o755),
    "/etc/p/policy.json": stats(0, 0o644),
  };
  test.each<[string, Record<string, ReturnType<typeof stats>>, RegExp | undefined]>([
    ["root alone", {}, undefined],
    [
      "the file is another user's",
      { "/etc/p/policy.json": stats(1000, 0o644) },
      /^it does not belong to root/,
    ],
    ["its group writes it", { "/etc/p/policy.json": stats(0, 0o664) }, /^others than root can write to it/],
    ["all write it", { "/etc/p/policy.json": stats(0, 0o646) }, /can write/],
    ["it is a link", { "/etc/p/policy.json": stats(0, 0o644, true) }, /^it is a link/],
    [
      "its folder is another user's",
      { "/etc/p": stats(1000, 0o755) },
      /^the folder \/etc\/p does not belong/,
    ],
    ["its folder is a link", { "/etc/p": stats(0, 0o755, true) }, /^the folder \/etc\/p is a link/],
    ["a folder above can be written", { "/etc": stats(0, 0o1777) }, /can write the folder \/etc$/],
    ["the root can be written", { "/": stats(0, 0o777) }, /can write the folder \/$/],
  ])("%s -> %s", async (_name, over, why) => {
    const look = async (path: string) => ({ ...ROOTS, ...over })[path] as ReturnType<typeof stats>;
    const found = await whyNotAdministrators("/etc/p/policy.json", "linux", look);
    if (why) expect(found).toMatch(why);
    else expect(found).toBeUndefined();
  });
});

describe("a mistake makes all of it unusable, with line and column", () => {
  test.each([
    ['{\n  "allow": [],\n  x\n}', 3, /not valid JSON/],
    ["[]", 1, /expected an object/],
    ['{\n "alow": []\n}', 2, /is not known/],
    ['{\n "deny": {}\n}', 2, /expected a list/],
    ['{\n "deny": [\n  {}\n ]\n}', 3, /names nothing/],
    ['{"deny": [{"nam": "x"}]}', 1, /has the key "nam"/],
    ['{"deny": [{"name": 1}]}', 1, /has a name/],
    ['{"deny": [{"command": []}]}', 1, /has a command/],
    ['{"deny": [{"command": "x", "url": "https://x"}]}', 1, /command and url/],
    ['{"deny": [{"url": "x"}]}', 1, /no pattern/],
    ['{"deny": [{"url": "https://user@x/"}]}', 1, /no pattern/],
    ['{"deny": [{"url": "https://x/?a"}]}', 1, /no pattern/],
    ['{"deny": [], "deny": []}', 1, /given twice/],
    ['{"required": []}', 1, /expected an object of servers/],
    ['{\n "required": {\n  "a": {"args": 1}\n }\n}', 3, /./],
    [`{"allow": [${'{"name":"a"},'.repeat(1_000)}{"name":"a"}]}`, 1, /more than 1,000 rules/],
  ])("%s", (text, line, message) => {
    const policy = parsePolicy(text, FILE);
    expect(policy.problem).toMatchObject({
      file: FILE,
      severity: "error",
      line,
      message: expect.stringMatching(message),
    });
    const { servers, denied: left } = underPolicy(policy, [server("a", { command: "x" })]);
    expect(servers).toEqual([]);
    expect(left).toEqual([
      {
        name: "a",
        reason: expect.stringContaining(`the policy of this machine cannot be used (${FILE}:${line}:`),
      },
    ]);
  });
});

describe("deny fits every spelling", () => {
  const URLS = { deny: [{ url: "https://evil.example/mcp*" }] };
  test.each([
    "https://evil.example/mcp",
    "http://evil.example/mcp/x",
    "https://EVIL.example/MCP",
    "https://evil.example./mcp",
    "https://evil.example:8443/mcp",
    "https://user:pass@evil.example/mcp",
    "https://evil.example/%6dcp",
    "https://evil.example/%256dcp",
    "https://evil.example//mcp",
    "https://evil.example/a/../mcp",
    "https://evil.example/mcp?x#y",
    "https://ｅｖｉｌ.example/mcp",
    "https://ev%69l.example/mcp",
  ])("%s", (url) => expect(denied(URLS, "any", { url })).toBe(true));

  test.each(["https://evil.example.org/mcp", "https://notevil.example/mcp", "https://evil.example/other"])(
    "not %s",
    (url) => expect(denied(URLS, "any", { url })).toBe(false),
  );

  test("an IDN host, in both spellings; an address of numbers", () => {
    const content = { deny: [{ url: "https://*.bücher.example" }, { url: "http://127.0.0.1" }] };
    expect(denied(content, "a", { url: "https://x.xn--bcher-kva.example/" })).toBe(true);
    expect(denied(content, "a", { url: "https://x.BÜCHER.example/" })).toBe(true);
    expect(denied(content, "a", { url: "http://0x7f.1:99/mcp" })).toBe(true);
    expect(denied(content, "a", { url: "http://2130706433/" })).toBe(true);
  });

  const COMMANDS = { deny: [{ command: ["npx", "@evil/server"] }, { command: "evil-bin" }] };
  test.each([
    ["npx", ["@evil/server"]],
    ["npx", ["-y", "@evil/server@1.2.3"]],
    ["/usr/bin/npx", ["--yes", "--package=@evil/server", "--", "server"]],
    ["NPX.CMD", ["@Evil/Server"]],
    ["sh", ["-x", "npx", "@evil/server"]],
    ["/opt/evil-bin", []],
    ["env", ["A=1", "evil-bin"]],
    ["npx", ["-y", "@good/x@npm:@evil/server@1"]],
    ["npx", ["-y", "--package=x@NPM:@evil/server", "x"]],
    ["deno", ["run", "npx", "npm:/@evil/server@1.2.3"]],
  ])("%s %j", (command, args) => expect(denied(COMMANDS, "any", { command, args })).toBe(true));
  test("another package, another program", () => {
    expect(denied(COMMANDS, "any", { command: "npx", args: ["@good/server"] })).toBe(false);
    expect(denied(COMMANDS, "any", { command: "good" })).toBe(false);
  });

  test("a name, in other letters and signs; a name with a command denies that command alone", () => {
    expect(denied({ deny: [{ name: "git-hub" }] }, "Git_Hub", { command: "x" })).toBe(true);
    expect(denied({ deny: [{ name: "git*", command: "x" }] }, "github", { command: "y" })).toBe(false);
  });
});

describe("allow fits one spelling", () => {
  const URLS = { allow: [{ url: "https://*.example.com/mcp/*" }, { url: "http://localhost:*" }] };
  test.each([
    ["https://a.example.com/mcp/x", false],
    ["https://a.example.com:443/mcp/x", false],
    ["http://localhost:8080/any", false],
    ["http://a.example.com/mcp/x", true],
    ["https://a.example.com:8443/mcp/x", true],
    ["https://example.com/mcp/x", true],
    ["https://a.example.com.evil.test/mcp/x", true],
    ["https://evil.test/a.example.com/mcp/x", true],
    ["https://evil.test\\@a.example.com/mcp/x", true],
    ["https://a.example.com/mcp/%2e%2e/x", true],
    ["https://a.example.com/other/../mcp//x", true],
  ])("%s -> denied: %s", (url, isDenied) => expect(denied(URLS, "any", { url })).toBe(isDenied));

  const COMMANDS = {
    allow: [
      { command: ["npx", "-y", "@acme/*"] },
      { command: ["/opt/acme/*", "**"] },
      { name: "docs", command: "uvx" },
      { command: ["npm", "exec", "--package=@acme/*@1.*", "--", "*"] },
      { command: ["uvx", "acme-*", "--dir", "/srv/*", "--note=*"] },
      { command: ["npx", "mcp-remote", "https://*.example.com/mcp/*"] },
      { command: ["npx", "@acme/../x"] },
    ],
  };
  test.each<[string, string, object, boolean]>([
    ["a", "npx", { args: ["-y", "@acme/x"] }, false],
    ["a", "npx", { args: ["-y", "@acme/x", "--more"] }, true],
    ["a", "/tmp/npx", { args: ["-y", "@acme/x"] }, true],
    ["a", "npx", { args: ["-y", "@acme/x"], env: { PATH: "/tmp" } }, true],
    ["a", "npx", { args: ["-y", "@acme/x"], env: { ACME_TOKEN: "x" } }, false],
    ["a", "/opt/acme/server", { args: ["any", "thing"] }, false],
    ["docs", "uvx", { args: ["x"] }, false],
    ["other", "uvx", { args: ["x"] }, true],
    ["a", "npx", { args: ["-y", "@acme/x@1.2.3"] }, true],
    ["a", "npx", { args: ["-y", "@acme/x@https://evil.example/x.tgz"] }, true],
    ["a", "npx", { args: ["-y", "@acme/x@npm:@evil/pkg@1"] }, true],
    ["a", "npx", { args: ["-y", "@acme/x@npm:evil"] }, true],
    ["a", "npx", { args: ["-y", "@acme/x@git+https://evil.example/x"] }, true],
    ["a", "npx", { args: ["-y", "@acme/x@file:evil"] }, true],
    ["a", "npx", { args: ["-y", "@acme/x/y"] }, true],
    ["a", "npx", { args: ["-y", "@acme/../evil"] }, true],
    ["a", "npx", { args: ["@acme/../x"] }, false],
    ["a", "npm", { args: ["exec", "--package=@acme/x@1.2.3", "--", "any/thing"] }, false],
    ["a", "npm", { args: ["exec", "--package=@acme/x@2.0.0", "--", "x"] }, true],
    ["a", "npm", { args: ["exec", "--package=@acme/x@1.x@npm:@evil/x", "--", "x"] }, true],
    ["a", "uvx", { args: ["acme-x", "--dir", "/srv/a@b/c", "--note=../a"] }, false],
    ["a", "uvx", { args: ["acme-x", "--dir", "/srv/../etc", "--note=a"] }, true],
    ["a", "uvx", { args: ["acme-x", "--dir", "/srv/%2E./etc", "--note=a"] }, true],
    ["a", "uvx", { args: ["acme-x@https://evil.example/x.whl", "--dir", "/srv/a", "--note=a"] }, true],
    ["a", "uvx", { args: ["acme-x/evil", "--dir", "/srv/a", "--note=a"] }, true],
    ["a", "npx", { args: ["mcp-remote", "https://a.example.com/mcp/x"] }, false],
    ["a", "npx", { args: ["mcp-remote", "https://evil.test/.example.com/mcp/x"] }, true],
    ["a", "npx", { args: ["mcp-remote", "https://a.example.com\\@evil.test/mcp/x"] }, true],
    ["a", "npx", { args: ["mcp-remote", "https://a.example.com/mcp/../x"] }, true],
    ["a", "/opt/acme/../../home/u/clone/evil", {}, true],
    ["a", "/opt/acme/x\\..\\..\\evil", {}, true],
    ["a", "/opt/acme/..", {}, true],
    ["a", "/opt/acme/..x", {}, false],
  ])("%s: %s %j -> denied: %s", (name, command, more, isDenied) =>
    expect(denied(COMMANDS, name, { command, ...more })).toBe(isDenied),
  );

  test.each([
    ["@acme/x@1.2.3", false],
    ["@acme/x@beta.1", false],
    ["@acme/x@.evil", true],
    ["@acme/x@..", true],
    ["@acme/x@~evil", true],
  ])("a rule with versions: npx -y %s -> denied: %s", (spec, isDenied) =>
    expect(
      denied({ allow: [{ command: ["npx", "-y", "@acme/*@*"] }] }, "a", {
        command: "npx",
        args: ["-y", spec],
      }),
    ).toBe(isDenied),
  );

  test("an option with a value at once is no package", () => {
    const allow = [{ command: ["x", "--port*", "-e*"] }];
    expect(denied({ allow }, "a", { command: "x", args: ["--port=3000", "-eA=b"] })).toBe(false);
    expect(denied({ allow }, "a", { command: "x", args: ["--port=3000", "A=b"] })).toBe(true);
  });

  test("an empty list lets nothing run; none lets all run that is not denied", () => {
    expect(denied({ allow: [] }, "a", { command: "x" })).toBe(true);
    expect(denied({}, "a", { command: "x" })).toBe(false);
  });
});

test("a server behind a socket is judged by its name alone", () => {
  const socket = { socket: "/run/s.sock" };
  expect(denied({ deny: [{ name: "s" }] }, "s", socket)).toBe(true);
  expect(denied({ deny: [{ command: "npx" }, { url: "https://*" }] }, "s", socket)).toBe(false);
  expect(denied({ allow: [{ command: ["npx", "**"] }, { url: "https://*" }] }, "s", socket)).toBe(true);
  expect(denied({ allow: [{ name: "s" }] }, "s", socket)).toBe(false);
});

describe("what is known only at connect", () => {
  test.each([
    [{ url: "${EVIL}" }, { kind: "http", url: "https://evil.example/" }],
    [
      { command: "sh", args: ["!echo evil"] },
      { kind: "stdio", command: "sh", args: ["evil"], env: {} },
    ],
  ] as const)("%j -> allowed until then, and judged then", (raw, target) => {
    const policy = policyOf({ deny: [{ url: "https://evil.example" }, { command: "evil" }] });
    const { servers } = underPolicy(policy, [server("a", raw)]);
    const [rules] = servers.map((one) => one.policy);
    expect(rules && reasonOf(rules, { name: "a", target, isResolved: true })).toMatch(/denies it/);
  });
});

describe("what counts", () => {
  test("a project's denied server -> the user's own one that it replaced; both denied -> none", () => {
    const own = server("a", { command: "own" });
    const project = { ...server("a", { command: "evil" }, "project-file"), replaced: own };
    const under = (command: string) => underPolicy(policyOf({ deny: [{ command }] }), [project]).servers;
    expect(under("evil").map(({ target }) => target)).toMatchObject([{ command: "own" }]);
    expect(under("*")).toEqual([]);
    expect(under("own").map(({ target, replaced }) => [target, replaced])).toMatchObject([
      [{ command: "evil" }, undefined],
    ]);
  });

  test("a required server -> in the place of any of that name, whatever the rules and its enabled say", () => {
    const required = { company: { command: "/opt/company", enabled: false } };
    const policy = policyOf({ required, allow: [], deny: [{ name: "*" }] });
    const { servers, denied: left } = underPolicy(policy, [
      server("company", { command: "mine" }),
      server("b", { command: "x" }),
    ]);
    expect(servers).toMatchObject([
      { name: "company", enabled: true, isRequired: true, target: { command: "/opt/company" } },
    ]);
    expect(left).toEqual([{ name: "b", reason: `the policy of this machine denies it (${FILE}:1)` }]);
  });
});
