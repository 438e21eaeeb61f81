/** Owns: the texts of `/mcp`: status, tools, one tool, sign-ins and statistics, bounded and safe for a terminal. */

import { describe, expect, it, test } from "vitest";
import {
  canSignIn,
  lacksKey,
  needsText,
  renderStats,
  renderStatus,
  renderTools,
  signInText,
} from "../../../src/report/status.ts";
import { renderTool, unknownToolText } from "../../../src/report/tool.ts";
import type { StatsSummary, ToolStats } from "../../../src/shared/protocol/calls.ts";
import type { ConfigProblem, ServerState, SignInStatus } from "../../../src/shared/protocol/session.ts";
import { describeProblem } from "../../../src/shared/text/failure.ts";
import { visibleWidth } from "../../../src/shared/text/width.ts";
import { type StatsEntry, summarizeStats } from "../../../workers/connection/results/stats.ts";
import { makeCatalog, makeTool } from "../make-catalog.ts";
import { makeReport, makeStatus, makeReport as report, makeStatus as server } from "../server-status.ts";

describe("renderStatus", () => {
  test("nothing configured -> says where to add servers", () => {
    expect(renderStatus(report({ files: ["/home/mcp.json", "/p/.pi/mcp.json"] }))).toBe(
      "MCP: 0 of 0 servers connected, 0 tools known\nNo servers are configured. Add them to /home/mcp.json or /p/.pi/mcp.json.",
    );
  });

  test("one server, one tool -> singular", () => {
    expect(renderStatus(report({ servers: [server("fs", { toolCount: 1 })] }))).toBe(
      "MCP: 1 of 1 server connected, 1 tool known\nfs: connected (stdio, 1 tool)",
    );
  });

  test("the longest possible question -> its start, its end and the number of characters between", () => {
    const question = `docs: sh -c ${"x".repeat(8_000)}, from /p/.mcp.json`;
    const status = renderStatus(report({ questions: [{ server: "docs", hash: "h", question }] }));
    expect(status).toMatch(
      /\nwaits for your consent: docs: sh -c x+… 7231 more characters …x+, from \/p\/\.mcp\.json$/,
    );
    expect(status.length).toBeLessThan(1_000);
  });

  test("an error with thousands of a server's own lines -> cut, with its remedy", () => {
    const error = { code: "connect_failed" as const, message: "no\n".repeat(10_000), remedy: "Run it." };
    const status = renderStatus(report({ servers: [server("s", { state: "failed", error })] }));
    expect(status).toMatch(/\| no \| .*Run it\.$/);
    expect(status.length).toBeLessThan(8_000);
  });

  test("several servers -> one line each in their order; only connected ones are counted", () => {
    const servers = [
      server("z", { transport: "sse", protocol: "2026-07-28" }),
      server("a", { state: "idle", transport: "http", toolCount: 5, resourceCount: 2 }),
      server("n", { state: "connecting", toolsKnown: false, toolCount: 0 }),
    ];
    expect(renderStatus(report({ servers })).split("\n")).toEqual([
      "MCP: 1 of 3 servers connected, 7 tools known",
      "z: connected (sse, 2 tools, MCP 2026-07-28)",
      "a: idle (http, 5 tools, 2 resources)",
      "n: connecting (stdio, tools unknown)",
    ]);
  });

  test("a shared server -> by how many sessions, since when, and its process", () => {
    const sharing = { sessions: 3, since: 1_000_000 };
    const status = renderStatus(report({ servers: [server("fs", { sharing, pid: 77 })] }), {
      now: 3_520_000,
    });
    expect(status.split("\n")[1]).toBe(
      "fs: connected (stdio, 2 tools, shared by 3 sessions, up 42 min, pid 77)",
    );
  });

  test("a failed server -> its error with remedy, in one line", () => {
    const error = { code: "connect_failed" as const, message: "x wrote:\nline 1\nline 2", remedy: "Look." };
    const servers = [server("x", { state: "failed", toolsKnown: false, toolCount: 0, error })];
    expect(renderStatus(report({ servers })).split("\n")).toEqual([
      "MCP: 0 of 1 server connected, 0 tools known",
      "x: failed (stdio, tools unknown): it wrote: line 1 | line 2 | Look.",
    ]);
  });

  test("an error that begins with the server's name -> the name once", () => {
    const error = { code: "spawn_failed" as const, message: "x: not found." };
    expect(renderStatus(report({ servers: [server("x", { state: "failed", error })] }))).toMatch(
      /^x: failed \(stdio, 2 tools\): not found\.$/m,
    );
  });

  test("lifecycles other than lazy -> named", () => {
    const servers = [
      server("l"),
      server("e", { lifecycle: "eager" }),
      server("k", { lifecycle: "keep-alive" }),
    ];
    expect(renderStatus(report({ servers })).split("\n").slice(1)).toEqual([
      "l: connected (stdio, 2 tools)",
      "e: connected (stdio, 2 tools, eager)",
      "k: connected (stdio, 2 tools, keep-alive)",
    ]);
  });

  test("mistakes in a file -> position, key, mistake and remedy; also without any server", () => {
    const problems: ConfigProblem[] = [
      {
        severity: "error",
        file: "/m.json",
        line: 3,
        column: 7,
        key: "mcpServers.a.args",
        message: "expected array",
        remedy: "Correct it.",
      },
      { severity: "error", file: "/m.json", message: "cannot be read: EACCES", remedy: "Make it readable." },
    ];
    const lines = [
      "/m.json:3:7: mcpServers.a.args: expected array. Correct it.",
      "/m.json: cannot be read: EACCES. Make it readable.",
    ];
    expect(renderStatus(report({ problems })).split("\n").slice(1)).toEqual(lines);
    expect(problems.map(describeProblem)).toEqual(lines);
  });
});

describe("renderTools", () => {
  const catalog = makeCatalog([
    { name: "fs", tools: [{ tool: "read", description: "Reads a file. And more." }, { tool: "write" }] },
    { name: "git", tools: [{ tool: "log", description: "Shows the log.\nLong." }] },
  ]);
  const servers = [server("git"), server("fs"), server("none", { toolsKnown: false })];

  test("no server named -> all servers in the order of the configuration, also those without tools", () => {
    expect(renderTools(catalog, servers, undefined).split("\n")).toEqual([
      "git: 1 tool",
      "  git__log - Shows the log.",
      "fs: 2 tools",
      "  fs__read - Reads a file.",
      "  fs__write - write it.",
      "none: 0 tools",
    ]);
  });

  test("a server named -> only its tools", () => {
    expect(renderTools(catalog, servers, "git")).toBe("git: 1 tool\n  git__log - Shows the log.");
  });

  test("before the first plan -> the servers of the snapshot", () => {
    expect(renderTools(catalog, [], undefined).split("\n")).toHaveLength(5);
  });

  test("an unknown server -> the names of the configured ones", () => {
    expect(renderTools(catalog, servers, "nope")).toBe(
      "No server named nope is configured. Configured: git, fs, none.",
    );
    expect(renderTools(makeCatalog([]), [], "nope")).toBe(
      "No server named nope is configured. Configured: none.",
    );
  });

  /** Of a server m with so many tools. */
  const linesOf = (count: number, server?: string): string[] => {
    const tools = Array.from({ length: count }, (_, i) => ({ tool: `t${i}` }));
    return renderTools(makeCatalog([{ name: "m", tools }]), [], server).split("\n");
  };
  test.each<[tools: number, server: string | undefined, lines: number, last: string]>([
    [1_000, undefined, 301, "and 701 more lines: /mcp tools <server>"],
    // Named as the hint says: the hint does not appear again.
    [1_000, "m", 1_001, "  m__t999 - t999 it."],
    [3_000, "m", 2_001, "and 1001 more lines"],
  ])("%i tools, server %s -> %i lines, the last one: %s", (tools, named, count, last) => {
    const lines = linesOf(tools, named);
    expect([lines.length, lines.at(-1)]).toEqual([count, last]);
    if (named) expect(lines[0]).toBe(`m: ${tools} tools`);
  });

  test("words of a server -> they cannot make a line, nor act on a terminal", () => {
    const evil = `evil\n\n# Rules\u2028\u001b[2J`;
    const error = { code: "connect_failed" as const, message: `refused\nby it\u2028or not\u001b[2J` };
    const text = renderStatus(report({ servers: [server(evil, { state: "failed", error })] }));
    expect(text.split("\n")).toEqual([
      expect.stringMatching(/^MCP: 0 of 1 server/),
      expect.stringMatching(/^evil # Rules: failed .*: refused \| by it \| or not$/),
    ]);
  });
});

const NOW = Date.UTC(2026, 0, 1);
const MINUTE = 60_000;
const signedIn = (expiresInMs: number | undefined, renews: boolean): SignInStatus => ({
  state: "signed-in",
  renews,
  ...(expiresInMs === undefined ? {} : { expiresAt: NOW + expiresInMs }),
});

describe("signInText", () => {
  it.each<[SignInStatus, string]>([
    [{ state: "needed" }, "needs sign-in"],
    [{ state: "running" }, "signing in"],
    [signedIn(42 * MINUTE + 59_000, true), "signed in, expires in 42 min, renews itself"],
    [signedIn(42 * MINUTE, false), "signed in, expires in 42 min, cannot renew"],
    [signedIn(undefined, true), "signed in, renews itself"],
    [{ state: "signed-in", renews: true, byItself: true }, "signed in by itself, renews itself"],
    [
      { state: "signed-in", renews: true, through: "idp.example.com" },
      "signed in through idp.example.com, renews itself",
    ],
    [signedIn(undefined, false), "signed in, cannot renew"],
    [signedIn(59_999, true), "signed in, expires in less than a min, renews itself"],
    [signedIn(MINUTE, true), "signed in, expires in 1 min, renews itself"],
    [signedIn(119 * MINUTE, true), "signed in, expires in 119 min, renews itself"],
    [signedIn(120 * MINUTE, true), "signed in, expires in 2 h, renews itself"],
    [signedIn(47.9 * 60 * MINUTE, true), "signed in, expires in 47 h, renews itself"],
    [signedIn(48 * 60 * MINUTE, true), "signed in, expires in 2 days, renews itself"],
    [signedIn(0, true), "signed in, expired, renews itself"],
    [signedIn(-MINUTE, false), "signed in, expired, cannot renew"],
    [
      { state: "signed-in", renews: true, isBound: true, expiresAt: NOW + MINUTE },
      "signed in, bound to a key, expires in 1 min, renews itself",
    ],
    [{ state: "signed-in", renews: false, isBound: true }, "signed in, bound to a key, cannot renew"],
  ])("%j -> %s", (signIn, text) => {
    expect(signInText(signIn, NOW)).toBe(text);
  });
});

describe("canSignIn", () => {
  it.each<[ServerState, SignInStatus | undefined, boolean]>([
    ["needs-auth", { state: "needed" }, true],
    ["idle", { state: "needed" }, true],
    ["needs-auth", signedIn(MINUTE, true), true],
    ["needs-auth", { state: "running" }, true],
    ["connected", signedIn(MINUTE, true), false],
    ["needs-auth", undefined, false],
    ["connected", undefined, false],
  ])("%s, %j -> %s", (state, signIn, can) => {
    expect(canSignIn(makeStatus("s", { state, ...(signIn ? { signIn } : {}) }))).toBe(can);
  });
});

describe("/mcp", () => {
  const error = {
    code: "needs_auth" as const,
    message: "s: it needs a sign-in.",
    remedy: "Run pi and /mcp auth s.",
  };
  it.each<[ServerState, SignInStatus | undefined, string]>([
    ["needs-auth", { state: "needed" }, "s: needs sign-in (http, 2 tools)"],
    ["needs-auth", { state: "running" }, "s: signing in (http, 2 tools)"],
    ["needs-auth", signedIn(MINUTE, true), "s: needs sign-in (http, 2 tools)"],
    ["needs-auth", undefined, "s: needs sign-in (http, 2 tools)"],
    ["idle", { state: "needed" }, "s: idle (http, 2 tools, needs sign-in)"],
    [
      "connected",
      signedIn(42 * MINUTE, true),
      "s: connected (http, 2 tools, signed in, expires in 42 min, renews itself)",
    ],
    ["idle", signedIn(undefined, false), "s: idle (http, 2 tools, signed in, cannot renew)"],
    ["connected", undefined, "s: connected (http, 2 tools)"],
  ])("a server that is %s, %j -> %s", (state, signIn, line) => {
    const servers = [makeStatus("s", { state, transport: "http", ...(signIn ? { signIn } : {}) })];
    expect(renderStatus(makeReport({ servers }), { now: NOW }).split("\n")[1]).toBe(line);
  });

  test("a server that needs a sign-in -> its error stands behind the words", () => {
    const servers = [makeStatus("s", { state: "needs-auth", signIn: { state: "needed" }, error })];
    expect(renderStatus(makeReport({ servers }), { now: NOW }).split("\n")[1]).toBe(
      "s: needs sign-in (stdio, 2 tools): it needs a sign-in. Run pi and /mcp auth s.",
    );
  });
});

test.each<[reason: string | undefined, words: string, isKey: boolean]>([
  ["key-wanted", "needs a key", true],
  ["key-refused", "key refused", true],
  ["not-signed-in", "needs sign-in", false],
  [undefined, "needs sign-in", false],
])("a server that answers 401, for the reason %s -> %s", (reason, words, isKey) => {
  const error = {
    code: "needs_auth",
    message: "s: answered 401.",
    ...(reason && { data: { reason } }),
  } as const;
  const status = makeStatus("s", { state: "needs-auth", error });
  expect([needsText(status), lacksKey(status)]).toEqual([words, isKey]);
  expect(lacksKey(makeStatus("s", { state: "failed", error }))).toBe(false);
});

const stats = (server: string, tool: string, more: Partial<ToolStats> = {}): ToolStats => ({
  server,
  tool,
  calls: 1,
  errors: 0,
  receivedBytes: 9_000_000,
  shownBytes: 50_000,
  meanMs: 1_500,
  ...more,
});
const shown = (tools: ToolStats[], columns: number, more: Partial<StatsSummary> = {}): string[] =>
  renderStats(
    { captured: true, summary: { tools, moreTools: 0, tokensSaved: 2_237_700, ...more } },
    columns,
  ).split("\n");

const KEPT_WRAPPED = [
  'Counted on this machine alone; "captureStats": false under "settings" in',
  "mcp.json stops it.",
];

const TWO = [
  stats("s", "big"),
  stats("s", "t", { calls: 2, errors: 1, receivedBytes: 1_000, shownBytes: 200, meanMs: 20 }),
];

test("wide enough -> names and numbers side by side", () => {
  for (const columns of [78, 198, Number.MAX_SAFE_INTEGER]) {
    expect(shown(TWO, columns)).toEqual([
      "tool     calls  errors  received    shown   mean",
      "s · big      1       0    8.6 MB  48.8 KB  1.5 s",
      "s · t        2       1    1000 B    200 B  20 ms",
      "About 2,237,700 tokens saved by shortening results.",
      ...(columns === 78 ? KEPT_WRAPPED : [KEPT_WRAPPED.join(" ")]),
    ]);
  }
});

test("60 columns -> one line per name, the numbers below it", () => {
  expect(shown([stats("everything", "trigger-long-running-operation"), ...TWO.slice(1)], 58)).toEqual([
    "tool",
    "  calls  errors  received    shown   mean",
    "everything · trigger-long-running-operation",
    "      1       0    8.6 MB  48.8 KB  1.5 s",
    "s · t",
    "      2       1    1000 B    200 B  20 ms",
    "About 2,237,700 tokens saved by shortening results.",
    'Counted on this machine alone; "captureStats": false under',
    '"settings" in mcp.json stops it.',
  ]);
});

test("CJK and emoji -> columns line up by cells", () => {
  const lines = shown([stats("服务器", "查询数据库"), stats("👩‍🚀", "go"), ...TWO], 100).slice(0, -2);
  expect(new Set(lines.map(visibleWidth)).size).toBe(1);
  expect(lines[1]).toBe("服务器 · 查询数据库      1       0    8.6 MB  48.8 KB  1.5 s");
});

describe("any width", () => {
  const many = Array.from({ length: 30 }, (_, i) =>
    stats("服务".repeat(i), `tool-${"long-".repeat(i)}`, {
      calls: 10 ** (i % 9),
      receivedBytes: 10 ** (i % 12),
    }),
  );
  test.each([45, 58, 78, 198])("%i -> no line is wider", (columns) => {
    for (const line of shown(many, columns, { moreTools: 170 })) {
      expect(visibleWidth(line)).toBeLessThanOrEqual(columns);
    }
  });
});

test("200 tools -> thirty of them and the number of the others; the tokens count all", () => {
  const entries = Array.from(
    { length: 200 },
    (_, i): StatsEntry => ({
      at: 1,
      server: "s",
      tool: `t${i}`,
      failed: false,
      receivedBytes: 1_000 + i,
      shownBytes: 0,
      durationMs: 1,
    }),
  );
  const summary = summarizeStats(entries);
  const lines = renderStats({ captured: true, summary }, 80).split("\n");
  expect(lines).toHaveLength(35);
  expect(lines[1]).toMatch(/^s · t199 /);
  expect(lines.slice(-4, -2)).toEqual([
    "and 170 more tools",
    "About 54,975 tokens saved by shortening results.",
  ]);
});

test("names that a server wrote -> one line without escapes", () => {
  const lines = shown([stats("s", "a\u001b[2J\nb\u202e")], 80);
  expect(lines[1]).toMatch(/^s · a b {2}/);
});

test("no calls, nothing captured -> the table says so", () => {
  expect(shown([], 58)).toEqual(["No calls are recorded yet."]);
  expect(shown(TWO, 78, { tokensSaved: 0 }).slice(3)).toEqual(KEPT_WRAPPED);
  expect(renderStats({ captured: false }, 58)).toBe(
    'Calls are not counted: "captureStats": false under "settings" in mcp.json.',
  );
});

const schema = { type: "object", properties: { path: { type: "string" } } };
const tool = makeTool({ tool: "read", schema });
const json = (value: unknown): string => JSON.stringify(value, undefined, 2);

test("a schema that needed no repair -> shown once", () => {
  expect(renderTool(tool, json(schema))).toBe(
    `srv__read\nServer: srv\nread it.\nParameters:\n  path (string)\nThe schema, as the server declares it:\n${json(schema)}`,
  );
});

test("a schema that was repaired -> shown as it came, and as the model gets it", () => {
  const declared = { ...schema, $schema: "https://json-schema.org/draft/2020-12/schema", if: true };
  const text = renderTool(tool, json(declared));
  expect(text).toContain(`\nThe schema as the server declares it:\n${json(declared)}\n`);
  expect(text.endsWith(`providers need:\n${json(schema)}`)).toBe(true);
});

test("no schema that could be kept -> said", () => {
  expect(renderTool(tool, undefined)).toContain(
    "\nThe schema as the server declares it:\nnone that could be kept\n",
  );
});

test("a long schema with escape sequences -> cut, and printable", () => {
  const text = renderTool(tool, `\u001b[2J\u202e${"x".repeat(100_000)}`);
  expect(text.length).toBeLessThan(21_000);
  expect([..."\u001b\u202e"].filter((char) => text.includes(char))).toEqual([]);
  const unknown = unknownToolText(`a\nb\u001b[2J${"x".repeat(1_000)}`, []);
  expect(unknown).toMatch(/^No tool named a b/);
  expect(unknown.length).toBeLessThan(300);
  expect(unknown).not.toContain("\u001b");
});
