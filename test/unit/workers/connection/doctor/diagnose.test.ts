/** Owns: the order of findings, the bounds of the whole, what is taken out of texts, and checks of configuration files. */
import { describe, expect, test } from "vitest";
import type { Finding } from "../../../../../src/shared/protocol/doctor.ts";
import { isMentioned, judgeConfiguration } from "../../../../../workers/connection/doctor/configuration.ts";
import {
  cleanFinding,
  diagnose,
  inOrder,
  withoutHome,
  withoutQueries,
} from "../../../../../workers/connection/doctor/diagnose.ts";
import { makeReport } from "../../../server-status.ts";
import { examined, makeInput, makeMachine } from "./support.ts";

const finding = (over: Partial<Finding>): Finding => ({
  id: "connect",
  severity: "error",
  title: "t",
  ...over,
});

describe("inOrder", () => {
  test("the worst first, and a later check does not repeat the cause of a server's trouble", () => {
    const found = inOrder([
      [
        finding({ severity: "ok", title: "ok" }),
        finding({ id: "port", server: "a", title: "first" }),
        finding({ id: "variable", server: "a", title: "A" }),
        finding({ id: "variable", server: "a", title: "B" }),
        finding({ id: "tls", severity: "note", server: "b", title: "note" }),
      ],
      [
        finding({ id: "port", server: "a", title: "again" }),
        finding({ id: "port", server: "b", title: "b" }),
        finding({ id: "tls", server: "b", title: "tls" }),
        finding({ severity: "warning", title: "warning" }),
      ],
    ]);
    expect(found.map(({ title }) => title)).toEqual(["first", "A", "B", "b", "tls", "warning", "note", "ok"]);
  });
});

describe("texts", () => {
  test.each([
    ["/home/me/x and /home/me", "~/x and ~"],
    ["/home/meg/x", "/home/meg/x"],
    ['"/home/me", (/home/me)', '"~", (~)'],
  ])("%s -> %s", (text, expected) => {
    expect(withoutHome(text, "/home/me")).toBe(expected);
  });

  test("a home that is no folder of its own -> nothing is replaced", () => {
    expect(withoutHome("/x", "/")).toBe("/x");
  });

  test.each([
    ["see https://u:p@h.example/a/b?key=s#f now", "see https://h.example/a/b now"],
    ["https://h.example:8443/mcp", "https://h.example:8443/mcp"],
    ["(http://h?x=1)", "(http://h"],
  ])("%s -> %s", (text, expected) => {
    expect(withoutQueries(text)).toBe(expected);
  });

  test("a forged line, a secret and a long text -> one line, without the secret, cut", () => {
    const redact = (text: string) => text.replaceAll("hunter2", "[redacted]");
    const title = "x\nerror: forged\u001b[31m hunter2";
    const clean = cleanFinding(finding({ title, detail: "y".repeat(5_000) }), { home: "/h", redact });
    expect(clean.title).toBe("x error: forged [redacted]");
    expect(clean.detail?.length).toBe(1_000);
  });
});

describe("configuration", () => {
  const problem = { severity: "error" as const, file: "/m.json", message: "is wrong", remedy: "Mend it." };

  test("a mistake, a question and a refusal -> one finding each", () => {
    const state = makeReport({
      problems: [{ ...problem, line: 3, column: 5, key: "mcpServers.a.args" }],
      questions: [{ server: "b", hash: "h", question: "q" }],
      refused: [{ name: "c", reason: "you refused it" }],
    });
    const found = judgeConfiguration(state, [{ file: "/m.json", isThere: true }]);
    expect(found.map(({ id, severity, server }) => `${id} ${severity} ${server}`)).toEqual([
      "config error undefined",
      "consent warning b",
      "consent note c",
      "config ok undefined",
    ]);
    expect(found[0]).toMatchObject({ title: "mcpServers.a.args: is wrong.", file: "/m.json", line: 3 });
  });

  test("no file exists -> a note that says where", () => {
    const [found] = judgeConfiguration(makeReport(), [{ file: "/a/mcp.json", isThere: false }]);
    expect(found).toMatchObject({ severity: "note", detail: "Looked for /a/mcp.json." });
  });

  test.each([
    ["mcpServers.a", true],
    ["mcpServers.a.args", true],
    ["mcp-servers.a.b.args", true],
    ["mcpServers.ab.args", false],
    ["settings.a", false],
    [undefined, true],
  ])("a problem of %j concerns the server a: %s", (key, expected) => {
    const state = makeReport({ problems: [{ ...problem, ...(key ? { key } : {}) }] });
    expect(isMentioned(state, "a")).toBe(expected);
  });
});

describe("diagnose", () => {
  test("findings beyond the limit -> counted", async () => {
    const servers = Array.from({ length: 300 }, (_, i) =>
      examined(`s${i}`, { command: "c", args: [`\${V${i}}`] }),
    );
    const report = await diagnose(makeInput(servers));
    expect(report.findings.length).toBe(200);
    expect(report.servers.length).toBe(200);
    expect(report.leftOut).toBeGreaterThanOrEqual(200);
    expect(report.facts).toMatchObject({ servers: 300, connected: 300, tools: 600 });
  });

  test("a check that fails -> a note, and the other checks count", async () => {
    const machine = makeMachine({
      kindOf: async () => {
        throw new Error("the disk is gone");
      },
    });
    const report = await diagnose(makeInput([examined("s", { command: "c", args: [`\${A}`] })], { machine }));
    const titles = report.findings.map(({ title }) => title);
    expect(titles).toContain("The check of commands failed: the disk is gone.");
    expect(titles[0]).toMatch(/^The variable A/);
  });

  test("the person gives up while a check hangs -> cancelled at once", async () => {
    const stop = new AbortController();
    const machine = makeMachine({ kindOf: () => new Promise(() => undefined) });
    const asked = diagnose(makeInput([examined("s", { command: "c" })], { machine, signal: stop.signal }));
    stop.abort();
    await expect(asked).rejects.toMatchObject({ code: "cancelled" });
  });

  test("proxies -> the names of the variables, never their values", async () => {
    const machine = makeMachine({ env: { HTTPS_PROXY: "http://u:secret@p" } });
    const report = await diagnose(makeInput([], { machine }));
    expect(report.facts.proxies).toEqual(["HTTPS_PROXY"]);
    expect(JSON.stringify(report)).not.toContain("secret");
  });
});
