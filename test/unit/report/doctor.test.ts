/** Owns: the doctor's findings as a person reads them, and the report for others. */
import { describe, expect, test } from "vitest";
import { renderDoctor, renderIssueReport, withFindings } from "../../../src/report/doctor.ts";
import type { DoctorReport, Finding } from "../../../src/shared/protocol/person.ts";

const WRONG: Finding = {
  id: "command",
  severity: "error",
  server: "git",
  title: 'The command "npx" is not on PATH.',
  detail: "PATH has /usr/local/bin, /usr/bin, /bin, /usr/local/sbin, /usr/sbin, /sbin.",
  remedy: "Install Node.js from https://nodejs.org, and start Pi from a shell that finds npx.",
  file: "~/.pi/agent/mcp.json",
  line: 3,
};

const report = (over: Partial<DoctorReport> = {}): DoctorReport => ({
  findings: [],
  leftOut: 0,
  facts: {
    version: "1.2.3",
    runtime: "Node 24.0.0",
    platform: "linux x64 6",
    proxies: [],
    servers: 2,
    connected: 1,
    waiting: 0,
    tools: 4,
  },
  servers: [],
  stages: [],
  tookMs: 12,
  ...over,
});

describe("renderDoctor", () => {
  test("nothing is wrong -> said so, and what is well is not listed", () => {
    const text = renderDoctor(report({ findings: [{ id: "config", severity: "ok", title: "1 file." }] }), 60);
    expect(text).toBe("MCP doctor: nothing wrong was found, in 12 ms");
  });

  test("findings at 60 columns -> no line is wider, and what to do stands below", () => {
    const text = renderDoctor(report({ findings: [WRONG] }), 60);
    expect(text).toMatchInlineSnapshot(`
      "MCP doctor: 1 error, in 12 ms
      error: git: The command "npx" is not on PATH.
        (~/.pi/agent/mcp.json:3)
        PATH has /usr/local/bin, /usr/bin, /bin, /usr/local/sbin,
        /usr/sbin, /sbin.
        To do: Install Node.js from https://nodejs.org, and start
        Pi from a shell that finds npx."
    `);
    expect(Math.max(...text.split("\n").map(({ length }) => length))).toBeLessThanOrEqual(60);
  });

  test("stages and left out findings are told", () => {
    const stages = [{ name: "start", ms: 1_234, ok: true }];
    expect(renderDoctor(report({ stages, leftOut: 7 }), 60)).toBe(
      "MCP doctor: nothing wrong was found, in 12 ms\n  ok: start, 1.2 s\nand 7 more",
    );
  });

  test("what is well -> shown if it is said of a server", () => {
    const holds: Finding = {
      id: "sandbox",
      severity: "ok",
      server: "git",
      title: "It holds.",
      detail: "It can write /tmp.",
    };
    const findings: Finding[] = [
      holds,
      { id: "npx", severity: "ok", title: "All is there.", detail: "In /usr/bin." },
    ];
    expect(renderDoctor(report({ findings }), 60)).toBe(
      "MCP doctor: nothing wrong was found, in 12 ms\nok: git: It holds.\n  It can write /tmp.",
    );
  });

  test("findings that main adds -> in order", () => {
    const note: Finding = { id: "other-client", severity: "warning", title: "Two." };
    const all = withFindings(report({ findings: [WRONG, { ...WRONG, severity: "note" }] }), [note]);
    expect(all.findings.map(({ severity }) => severity)).toEqual(["error", "warning", "note"]);
  });
});

describe("renderIssueReport", () => {
  test("facts, servers and all findings in one block", () => {
    const server = { name: "git", transport: "stdio", state: "failed", lifecycle: "lazy", tools: 3 } as const;
    const text = renderIssueReport(report({ findings: [WRONG], servers: [server] }));
    expect(text).toMatchInlineSnapshot(`
      "\`\`\`text
      pi-mcp-threads 1.2.3, Node 24.0.0, linux x64 6
      1 of 2 servers connected, 0 waiting, 4 tools

      git: stdio, failed, lazy, 3 tools

      error [command] git: The command "npx" is not on PATH. PATH has /usr/local/bin, /usr/bin, /bin, /usr/local/sbin, /usr/sbin, /sbin. Install Node.js from https://nodejs.org, and start Pi from a shell that finds npx. (~/.pi/agent/mcp.json:3)
      \`\`\`
      "
    `);
  });

  test.each([
    [undefined, "needs sign-in"],
    ["key-wanted", "needs a key"],
    ["key-refused", "key refused"],
  ])("a server that answers 401, %s -> %s", (reason, word) => {
    const state = { state: "needs-auth", ...(reason === undefined ? {} : { reason }) } as const;
    const server = { name: "web", transport: "http", ...state, lifecycle: "lazy", tools: 0 } as const;
    expect(renderIssueReport(report({ servers: [server] }))).toContain(`web: http, ${word}, lazy, 0 tools`);
  });

  test("a server whose name or words end the block -> they do not", () => {
    const name = "a```\n# forged";
    const server = { name, transport: "stdio", state: "failed", lifecycle: "lazy", tools: 0 } as const;
    const forged: Finding = { id: "connect", severity: "error", server: name, title: "``` x" };
    const text = renderIssueReport(report({ findings: [forged], servers: [server] }));
    expect(text.match(/```/g)).toHaveLength(2);
    expect(text).not.toMatch(/^# forged/m);
  });
});
