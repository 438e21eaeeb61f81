/** Owns: the text of `/mcp status` and `/mcp tools`. */

import { describe, expect, test } from "vitest";
import { renderStatus, renderTools } from "../../../src/report/status.ts";
import type { ConfigProblem } from "../../../src/shared/protocol/status.ts";
import { describeProblem } from "../../../src/shared/text/failure.ts";
import { makeCatalog } from "../make-catalog.ts";
import { makeReport as report, makeStatus as server } from "../server-status.ts";

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

  test("a failed server -> its error with remedy, in one line", () => {
    const error = { code: "connect_failed" as const, message: "x wrote:\nline 1\nline 2", remedy: "Look." };
    const servers = [server("x", { state: "failed", toolsKnown: false, toolCount: 0, error })];
    expect(renderStatus(report({ servers })).split("\n")).toEqual([
      "MCP: 0 of 1 server connected, 0 tools known",
      "x: failed (stdio, tools unknown): it wrote: | line 1 | line 2 Look.",
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

  test("more than 300 lines -> cut, with the number of the others and a way to see them", () => {
    const many = makeCatalog([
      { name: "m", tools: Array.from({ length: 1_000 }, (_, i) => ({ tool: `t${i}` })) },
    ]);
    const lines = renderTools(many, [], undefined).split("\n");
    expect(lines).toHaveLength(301);
    expect(lines.at(-1)).toBe("and 701 more lines: /mcp tools <server>");
  });

  test("one server of very many tools -> the first 2,000 lines and the number of the others", () => {
    const many = makeCatalog([
      { name: "m", tools: Array.from({ length: 3_000 }, (_, i) => ({ tool: `t${i}` })) },
    ]);
    const lines = renderTools(many, [], "m").split("\n");
    expect(lines).toHaveLength(2_001);
    expect(lines[0]).toBe("m: 3000 tools");
    expect(lines.at(-1)).toBe("and 1001 more lines");
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

  test("one server of more than 300 tools, named as the hint says -> the hint does not appear again", () => {
    const many = makeCatalog([
      { name: "m", tools: Array.from({ length: 1_000 }, (_, i) => ({ tool: `t${i}` })) },
    ]);
    expect(renderTools(many, [], "m").split("\n").at(-1)).not.toContain("/mcp tools <server>");
  });
});
