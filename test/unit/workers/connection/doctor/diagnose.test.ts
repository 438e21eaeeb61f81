/** Owns: the order of findings, the bounds of the whole, what is taken out of texts, and checks of configuration files. */

import { chmod, mkdir, readdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { Finding } from "../../../../../src/shared/protocol/person.ts";
import { type CatalogFacts, catalogFacts } from "../../../../../workers/connection/catalog/notices.ts";
import {
  checkConfiguration,
  checkPlace,
  isMentioned,
  judgeConfiguration,
  judgeFolder,
  judgeLog,
  judgeModes,
} from "../../../../../workers/connection/doctor/configuration.ts";
import {
  cleanFinding,
  diagnose,
  inOrder,
  withoutHome,
  withoutQueries,
} from "../../../../../workers/connection/doctor/diagnose.ts";
import { type LookedAt, thisMachine } from "../../../../../workers/connection/doctor/machine.ts";
import { checkTools, judgeTools } from "../../../../../workers/connection/doctor/tools.ts";
import { refuseChmod } from "../../../refused-chmod.ts";
import { makeReport } from "../../../server-status.ts";
import { temporaryFolder } from "../config/support.ts";
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

  test("a failure -> beside a warning of the same cause, and in its place if the same is to be done", () => {
    const found = inOrder([
      [
        finding({ id: "npx", server: "a", severity: "warning", title: "might fail", remedy: "network" }),
        finding({ id: "npx", server: "b", severity: "warning", title: "broken", remedy: "remove" }),
      ],
      [
        finding({ id: "npx", server: "a", title: "failed", remedy: "network" }),
        finding({ id: "npx", server: "b", title: "failed too", remedy: "network" }),
      ],
    ]);
    expect(found.map(({ title }) => title)).toEqual(["failed", "failed too", "broken"]);
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

  test("files of a folder that is not trusted -> a warning names those that are there and not read", async () => {
    const cwd = await temporaryFolder();
    await mkdir(join(cwd, ".pi"));
    for (const file of [".mcp.json", ".pi/mcp.json"]) await writeFile(join(cwd, file), "{}");
    const found = async (facts: object, over: Parameters<typeof makeInput>[1] = {}) =>
      (
        await checkConfiguration(makeInput([], { facts: { cwd, projectTrusted: false, ...facts }, ...over }))
      ).filter(({ severity }) => severity !== "ok" && severity !== "note");
    expect(await found({})).toEqual([
      {
        id: "consent",
        severity: "warning",
        title: "This folder is not trusted, so the servers of .mcp.json and .pi/mcp.json are not read.",
        remedy: "/trust decides that, from the next start of Pi on.",
      },
    ]);
    const [one] = await found({ configPath: join(".pi", "mcp.json") });
    expect(one?.title).toContain("the servers of .mcp.json are not read");
    expect(await found({}, { named: "a" })).toEqual([]);
    expect(await found({ projectTrusted: true })).toEqual([]);
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

  test("a finding about an entry -> the line of its key, or of the entry; an override's file comes first", async () => {
    const folder = await temporaryFolder();
    const [file, override] = [join(folder, "mcp.json"), join(folder, "project.json")];
    const entries = {
      gone: { command: "no-such" },
      unset: { command: "c", args: [`\${A}`] },
      moved: { command: "c" },
    };
    await writeFile(file, JSON.stringify({ mcpServers: entries }, null, 1));
    await writeFile(override, '{\n"mcpServers": {"moved": {\n"cwd": "/gone"}}}');
    const servers = Object.entries(entries).map(([name, entry]) => {
      const one = examined(name, name === "moved" ? { ...entry, cwd: "/gone" } : entry);
      const overrides = name === "moved" ? [override] : [];
      return { ...one, definition: { ...one.definition, file, overrides } };
    });
    const kindOf = async (path: string) => (path === "/gone" ? "missing" : "folder");
    const { findings } = await diagnose(makeInput(servers, { machine: makeMachine({ kindOf }) }));
    const errors = findings.filter(({ severity }) => severity === "error");
    expect(errors.map(({ id, server, line }) => `${id} ${server}:${line}`)).toEqual([
      "variable unset:6",
      "command gone:4",
      "command unset:7",
      "folder moved:3",
    ]);
    expect(errors.map((one) => one.file)).toEqual([file, file, file, override]);
  });

  test("proxies -> the names of the variables, never their values", async () => {
    const machine = makeMachine({ env: { HTTPS_PROXY: "http://u:secret@p" } });
    const report = await diagnose(makeInput([], { machine }));
    expect(report.facts.proxies).toEqual(["HTTPS_PROXY"]);
    expect(JSON.stringify(report)).not.toContain("secret");
  });
});

describe("judgeFolder", () => {
  test.each([
    ["it can be written", undefined, 10 ** 9, undefined],
    ["the size is unknown", undefined, undefined, undefined],
    ["nearly full", undefined, 5 * 1024 * 1024, "warning: Only 5 MB are free on the disk."],
    ["full", "ENOSPC", 0, "error: Nothing can be written into the extension's folder: the disk is full."],
    [
      "no right",
      "EACCES",
      10 ** 9,
      "error: Nothing can be written into the extension's folder: you have no right to it.",
    ],
    [
      "read-only",
      "EROFS",
      10 ** 9,
      "error: Nothing can be written into the extension's folder: the file system is read-only.",
    ],
    [
      "another error",
      "EIO",
      10 ** 9,
      "error: Nothing can be written into the extension's folder: the system answers EIO.",
    ],
  ])("%s", (_title, code, free, expected) => {
    const found = judgeFolder("/a", code, free);
    expect(found && `${found.severity}: ${found.title}`).toBe(expected);
  });
});

const looked = (over: Partial<LookedAt>): LookedAt => ({
  kind: "file",
  mode: 0o100600,
  size: 10,
  canWrite: true,
  ...over,
});

describe("judgeModes", () => {
  test.each([
    ["private", [looked({})], undefined],
    ["nothing there", [undefined], undefined],
    ["others can read", [looked({ mode: 0o100644 }), looked({})], "/f0."],
    ["more than five", Array.from({ length: 7 }, () => looked({ mode: 0o100644 })), "/f4 and 2 more."],
  ])("%s", (_title, all, end) => {
    const found = judgeModes(all.map((one, i) => ({ path: `/f${i}`, found: one })));
    if (end === undefined) expect(found).toBeUndefined();
    else expect(found?.title.endsWith(end)).toBe(true);
  });
});

test.each([
  ["none", undefined, undefined],
  ["well", looked({}), undefined],
  ["a folder", looked({ kind: "folder" }), "The log is not a regular file, so nothing is written."],
  ["not ours", looked({ canWrite: false }), "The log cannot be written."],
  ["too large", looked({ size: 11 * 1024 * 1024 }), "The log has 11 MB: it is not rotated."],
])("judgeLog: %s", (_title, found, expected) => {
  expect(judgeLog("/log", found)?.title).toBe(expected);
});

describe("checkPlace on this machine", () => {
  const machine = thisMachine({ env: {}, home: "/home/me", platform: "linux", cwd: "/" });
  const check = async (agentDir: string) => checkPlace(makeInput([], { agentDir, machine }));

  test("a private folder -> well, and nothing is left behind", async () => {
    const agentDir = await temporaryFolder();
    await writeFile(join(agentDir, "mcp-trust.json"), "{}", { mode: 0o600 });
    expect(await check(agentDir)).toMatchObject([{ severity: "ok" }]);
    expect(await readdir(agentDir)).toEqual(["mcp-trust.json"]);
  });

  test("tokens that others can read, a log that is a link -> both are told", async () => {
    const agentDir = await temporaryFolder();
    const folder = join(agentDir, "mcp-oauth", "s");
    await mkdir(folder, { recursive: true });
    await chmod(folder, 0o700);
    await writeFile(join(folder, "a.json"), "{}");
    await chmod(join(folder, "a.json"), 0o644);
    await symlink("/dev/null", join(agentDir, "mcp-threads.log"));
    const found = await check(agentDir);
    expect(found.map(({ id }) => id)).toEqual(["log", "file-modes"]);
    expect(found[1]?.title).toContain("/mcp-oauth/s/a.json");
  });

  test("a file system that fails as only our own writes see -> told", async () => {
    const agentDir = await temporaryFolder();
    await refuseChmod("EIO");
    expect(await check(agentDir)).toMatchObject([{ id: "disk", severity: "error" }]);
    expect(await readdir(agentDir)).toEqual([]);
  });

  test("no folder -> an error, and none is made", async () => {
    const folder = join(await temporaryFolder(), "none");
    expect(await check(folder)).toMatchObject([{ id: "disk", severity: "error" }]);
    await expect(readdir(folder)).rejects.toThrow("ENOENT");
  });
});

const FACTS: CatalogFacts = { tools: [], taken: [], repairs: [], leftOut: [], problems: [] };
const tool = (server: string, over: Partial<CatalogFacts["tools"][number]> = {}) => ({
  server,
  direct: 0,
  directTokens: 0,
  cut: undefined,
  ...over,
});

describe("judgeTools", () => {
  const told = (over: Partial<CatalogFacts>): string[] =>
    judgeTools({ ...FACTS, ...over }, new Set(["a"])).map(
      ({ severity, id, server, title }) => `${severity} ${id} ${server}: ${title}`,
    );

  test.each<[string, Partial<CatalogFacts>, string[]]>([
    ["nothing", {}, []],
    ["within the budget", { tools: [tool("a", { direct: 9, directTokens: 5_000 })] }, []],
    [
      "over the budget",
      { tools: [tool("a", { direct: 9, directTokens: 12_345 })] },
      ["warning tokens a: Its 9 tools declared from the start cost about 12,345 tokens of each request."],
    ],
    [
      "cut names",
      { tools: [tool("a", { cut: { count: 2, tool: "x\ny", name: "a__x_1" } })] },
      ["note tool-names a: 2 tool names too long for providers, cut and marked: x y is a__x_1."],
    ],
    [
      "taken names",
      { taken: [{ server: "a", text: "names" }] },
      ["note tool-names a: Tools are renamed: names."],
    ],
    [
      "repairs",
      { repairs: [{ server: "a", text: "schemas repaired" }] },
      ["note schemas a: Schemas repaired."],
    ],
    [
      "left out",
      { leftOut: ["a", "b"], problems: ["the tool catalog exceeds 1 MB"] },
      [
        "warning left-out a: Its tools are left out: preparing them fails or takes too long.",
        "warning left-out undefined: the tool catalog exceeds 1 MB.",
      ],
    ],
    [
      "another server",
      { repairs: [{ server: "b", text: "x" }], tools: [tool("b", { directTokens: 10 ** 6 })] },
      [],
    ],
  ])("%s", (_title, facts, expected) => {
    expect(told(facts)).toEqual(expected);
  });
});

test("catalogFacts: tokens of direct tools, long names, lines by server", () => {
  const long = "x".repeat(80);
  const task = {
    servers: [
      {
        name: "a",
        project: false,
        toolsKnown: true,
        tools: [
          { name: long, description: "d".repeat(400), inputSchema: { type: "object" }, direct: true },
          { name: "b", inputSchema: { type: "object" }, direct: false },
        ],
      },
    ],
    settings: {} as never,
  };
  const facts = catalogFacts(
    task as never,
    {
      checksum: 1,
      problems: ["p"],
      notices: [{ server: "a", text: "names that are taken: x" }],
      repairs: [{ server: "a", text: "schemas repaired" }],
      threadId: 1,
    },
    ["z"],
  );
  const [first] = facts.tools;
  expect(first).toMatchObject({ server: "a", direct: 1, cut: { count: 1, tool: long } });
  expect(first?.directTokens).toBeGreaterThan(120);
  expect(first?.directTokens).toBeLessThan(160);
  expect(first?.cut?.name).toMatch(/^a__x+_[0-9a-z]{6}$/);
  expect(facts).toMatchObject({
    taken: [{ server: "a", text: "names that are taken: x" }],
    repairs: [{ server: "a", text: "schemas repaired" }],
    leftOut: ["z"],
    problems: ["p"],
  });
});

test("checkTools: the catalog cannot be made -> a note", async () => {
  const input = makeInput([examined("a", { command: "c" })], { catalog: { inspect: async () => undefined } });
  expect(await checkTools(input, new AbortController().signal)).toMatchObject([{ id: "unfinished" }]);
});
