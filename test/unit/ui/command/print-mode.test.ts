/** Owns: what a command of `/mcp` says and how it ends where nobody can be asked: whole lines on stderr, and the code of Pi's end. */
import { expect, onTestFinished, test, vi } from "vitest";
import { ThreadsError } from "../../../../src/shared/protocol/errors.ts";
import type { ConfigProblem } from "../../../../src/shared/protocol/session.ts";
import { createMcpCommand } from "../../../../src/ui/command/command.ts";
import type { McpHost } from "../../../../src/ui/mcp-host.ts";
import { exitCodeOf } from "../../exit-code.ts";
import { makeCatalog } from "../../make-catalog.ts";
import { createRecordingContext } from "../../recording-context.ts";
import { makeReport, makeStatus } from "../../server-status.ts";
import { type Answers, type FakeHost, fakeHost } from "../fake-host.ts";

interface Printed {
  code: typeof process.exitCode;
  stderr: string;
  asked: FakeHost["asked"];
}

async function print(args: string, answers: Answers, rest: Partial<McpHost> = {}): Promise<Printed> {
  const write = vi.spyOn(console, "error").mockReturnValue();
  onTestFinished(() => write.mockRestore());
  write.mockClear();
  const { host, asked } = fakeHost({ status: () => makeReport(), ...answers }, rest);
  const code = await exitCodeOf(() =>
    createMcpCommand(host).handler(args, createRecordingContext({ hasUI: false }).ctx),
  );
  return { code, asked, stderr: write.mock.calls.map(([text]) => `${text}\n`).join("") };
}

const absent = new ThreadsError("unknown_server", "No server named nosuch is configured.");
const fails = (): never => {
  throw absent;
};
const ASKS: Answers = {
  setEnabled: fails,
  removeServer: fails,
  signOut: fails,
  reconnect: fails,
  diagnose: fails,
  hub: fails,
  serverLog: () => ({ lines: [], size: 0 }),
};
const WORDS = [
  "off",
  "on",
  "enable",
  "disable",
  "remove",
  "logout",
  "reconnect",
  "doctor",
  "logs",
  "hub stop",
];

test.each(WORDS)("%s of a server that no file names -> code 2, and the sentence", async (word) => {
  const { code, stderr } = await print(`${word} nosuch`, ASKS);
  expect(code).toBe(2);
  expect(stderr).toContain("No server named nosuch is configured.");
});

test.each(WORDS.slice(0, -2))("%s of a server that waits for a yes -> code 1", async (word) => {
  const question = { server: "nosuch", hash: "h", question: "Run it?" };
  const answers = { ...ASKS, status: () => makeReport({ questions: [question] }) };
  expect((await print(`${word} nosuch`, answers)).code).toBe(1);
});

test("logs of a server that is there, or was -> code 0", async () => {
  const servers = () => [makeStatus("fs")];
  expect((await print("logs fs", ASKS, { servers })).code).toBeUndefined();
  const gone = await print("logs nosuch", { serverLog: () => ({ lines: ["nosuch ended"], size: 9 }) });
  expect([gone.code, gone.stderr]).toEqual([undefined, expect.stringContaining("\nnosuch ended\n")]);
});

const FAILED = makeStatus("bad", { state: "failed", error: { code: "connect_failed", message: "it ended" } });

test("status while a server connects -> it waits, and shows the failure", async () => {
  const listeners: ((event: undefined) => void)[] = [];
  const reports = [makeReport({ servers: [makeStatus("bad", { state: "connecting" })] })];
  const answers: Answers = {
    status: () => {
      const now = reports.shift();
      if (now) queueMicrotask(() => listeners.at(-1)?.(undefined));
      return now ?? makeReport({ servers: [FAILED] });
    },
  };
  const onChange: McpHost["onChange"] = (listener) => {
    listeners.push(listener);
    return () => undefined;
  };
  const { code, stderr, asked } = await print("status", answers, { onChange });
  expect(stderr).toMatch(/\nbad: failed \(.*\): it ended\n$/);
  expect([code, asked.length]).toEqual([1, 2]);
});

const PROBLEM: ConfigProblem = {
  severity: "error",
  file: "/mcp.json",
  line: 4,
  column: 5,
  message: "not valid JSON",
  remedy: "Correct it.",
};

test.each<[string, Parameters<typeof makeReport>[0], number | undefined]>([
  ["all is well", { servers: [makeStatus("fs")] }, undefined],
  ["a server failed", { servers: [FAILED] }, 1],
  ["a server wants a sign-in", { servers: [makeStatus("a", { state: "needs-auth" })] }, 1],
  ["a file is broken", { problems: [PROBLEM] }, 1],
  ["an entry is wrong", { problems: [{ ...PROBLEM, key: "mcpServers.a" }] }, undefined],
])("status, %s -> code $2, as list says it", async (_what, report, code) => {
  expect((await print("status", { status: () => makeReport(report) })).code).toBe(code);
});

test("status -> what the notices have told of the files is not told twice; what they have cut is", async () => {
  const report = makeReport({
    problems: [PROBLEM],
    refused: [{ name: "theirs", reason: "nobody can be asked" }],
  });
  const short = await print("status", { status: () => report });
  expect(short.stderr).toMatch(/^MCP: 0 of 0 servers connected, 0 tools known\n$/);
  const many = Array.from({ length: 11 }, (_, at) => ({ ...PROBLEM, line: at + 1 }));
  const long = await print("status", { status: () => makeReport({ problems: many }) });
  expect(long.stderr.match(/not valid JSON/g)).toHaveLength(11);
});

test.each([
  ["error", 1],
  ["warning", undefined],
])("doctor with an %s -> code %s", async (severity, code) => {
  const facts = { version: "1", runtime: "Node", platform: "p", proxies: [], servers: 0 };
  const findings = [{ id: "config", severity, title: "It is so." }];
  const diagnose = () => ({ findings, leftOut: 0, facts, servers: [], stages: [], tookMs: 3 });
  expect((await print("doctor", { diagnose })).code).toBe(code);
});

const QUESTION = { server: "theirs", hash: "h", question: "Run it?" };
test.each([
  ["reconnect", 1],
  ["reconnect fine", undefined],
  ["reconnect bad", 1],
  ["trust", undefined],
])("%s, where one server of two has failed -> code %s", async (args, code) => {
  const servers = [FAILED, makeStatus("fine", { state: "connected" })];
  const report = { ...makeReport({ servers }), questions: args === "trust" ? [QUESTION] : [] };
  const { code: found } = await print(args, {
    reconnect: () => undefined,
    status: () => report,
    askConsents: () => undefined,
  });
  expect(found).toBe(code);
});

test.each<[string, Answers]>([
  ["reconnect", { reconnect: () => undefined, status: () => makeReport({ servers: [FAILED] }) }],
  ["add", {}],
  ["import", { findImports: () => ({ file: "/mcp.json", hosts: [], problems: [PROBLEM] }) }],
  ["reconnect x", { reconnect: () => Promise.reject(new ThreadsError("internal", "two\nlines")) }],
])("%s -> its lines stay lines", async (args, answers) => {
  const { stderr } = await print(args, answers);
  expect(stderr.trimEnd().split("\n").length).toBeGreaterThan(1);
  expect(stderr).not.toContain(" | ");
});

test("import -> every program that is found and not followed yet, and how a list that is there is kept", async () => {
  const host = (name: string, imported: boolean) => ({ host: name, title: name, imported, files: [] });
  const hosts = [host("cursor", false), host("codex", true), host("vscode", false)];
  const found = { file: "/mcp.json", problems: [], hosts };
  const { stderr } = await print("import", { findImports: () => found });
  expect(stderr).toContain(
    'To use them, run pi-mcp-threads import cursor vscode, or add "cursor", "vscode" to "imports" in /mcp.json, or run /mcp import in Pi.\n',
  );
  const none = await print("import", { findImports: () => ({ ...found, hosts: hosts.slice(1, 2) }) });
  expect(none.stderr).not.toContain("To use them");
});

test("auth of a local server -> that it needs no sign-in, and nothing is asked", async () => {
  const servers = () => [makeStatus("fs", { transport: "stdio" }), makeStatus("web", { transport: "http" })];
  const { code, stderr, asked } = await print("auth fs", {}, { servers });
  expect([code, stderr, asked]).toEqual([2, "fs is a local program and needs no sign-in.\n", []]);
  expect((await print("auth web", { signIn: () => undefined }, { servers })).asked).toContainEqual([
    "signIn",
    "web",
  ]);
});

test.each([
  [{ type: "object", properties: { text: { type: "string" } } }, "Nobody can fill in its arguments here."],
  [{ type: "object" }, "Nobody can say yes to the call here."],
])("try of a tool that takes %j -> why nobody can call it here", async (inputSchema, text) => {
  const catalog = makeCatalog([{ name: "fs", tools: [{ tool: "read", schema: inputSchema }] }]);
  const { code, stderr } = await print("try fs__read", {}, { catalog: () => catalog });
  expect(code).toBe(1);
  expect(stderr).toContain(text);
});
