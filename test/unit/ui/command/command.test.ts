/** Owns: `/mcp`: its subcommands, their completion, what each does, and the message when one fails. */
import { lstat, mkdir, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished, test, vi } from "vitest";
import { renderStatus, renderTools } from "../../../../src/report/status.ts";
import { renderTool } from "../../../../src/report/tool.ts";
import { ThreadsError } from "../../../../src/shared/protocol/errors.ts";
import { createMcpAuthCommand, createMcpCommand } from "../../../../src/ui/command/command.ts";
import { completeMcp } from "../../../../src/ui/command/complete.ts";
import { helpText, shellLines } from "../../../../src/ui/command/help.ts";
import { ABOUT, subcommand, WORDS } from "../../../../src/ui/command/words.ts";
import type { McpHost } from "../../../../src/ui/mcp-host.ts";
import { exitCodeOf } from "../../exit-code.ts";
import { makeCatalog } from "../../make-catalog.ts";
import {
  createRecordingContext,
  type RecordingContext,
  type RecordingOptions,
} from "../../recording-context.ts";
import { makeReport, makeStatus } from "../../server-status.ts";
import { tempFolder } from "../../temp-folder.ts";
import { type Answers, fakeHost } from "../fake-host.ts";

const SERVERS = [makeStatus("fs"), makeStatus("git"), makeStatus("github")];
const CATALOG = makeCatalog([{ name: "fs", tools: [{ tool: "read" }] }]);
const REPORT = makeReport({ servers: SERVERS });
const FILE = "/agent/mcp.json";
const AGENT_DIR = join(tmpdir(), `pmt-command-${process.pid}`);
const TEXT = '{"mcpServers": {}}\n';

interface Ran extends RecordingContext {
  /** Requests in order, with their parameters. */
  asked: [method: string, params: unknown][];
}

interface RunOptions extends RecordingOptions {
  answers?: Answers;
  servers?: McpHost["servers"];
}

const ANSWERS: Answers = {
  status: () => REPORT,
  reconnect: () => undefined,
  setEnabled: () => ({ file: FILE }),
  readConfig: () => ({ file: FILE, text: TEXT }),
  writeConfig: () => ({ file: FILE }),
  stats: () => ({ captured: false }),
  signOut: () => ({ text: "git: signed out." }),
};

function commandWith(answers: Answers, servers: McpHost["servers"]) {
  const { host, asked } = fakeHost(answers, { catalog: () => CATALOG, servers });
  return { command: createMcpCommand(host), authCommand: createMcpAuthCommand(host), asked };
}

async function run(args: string, { answers, servers, ...options }: RunOptions = {}): Promise<Ran> {
  const recording = createRecordingContext(options);
  const { command, asked } = commandWith({ ...ANSWERS, ...answers }, servers ?? (() => SERVERS));
  await command.handler(args, recording.ctx);
  return { ...recording, asked };
}

describe("/mcp", () => {
  it.each(["", "  ", "status", " status  "])("%j -> one info notice with the status", async (args) => {
    const { notices, asked } = await run(args);
    expect(notices).toEqual([[renderStatus(REPORT), "info"]]);
    expect(asked).toEqual([["status", {}]]);
  });

  it.each([
    ["tools", undefined],
    ["tools fs", "fs"],
    [" tools   fs ", "fs"],
  ])("%j -> the tools, without asking the worker", async (args, server) => {
    const { notices, asked } = await run(args);
    expect(notices).toEqual([[renderTools(CATALOG, SERVERS, server), "info"]]);
    expect(asked).toEqual([]);
  });

  it.each([
    ["tools nope", "nope"],
    ["tools fs git", "fs git"],
  ])(
    "%j, no such server -> the worker is asked whether it waits for consent, then the notice says so",
    async (args, server) => {
      const { notices, asked } = await run(args);
      expect(notices).toEqual([[renderTools(CATALOG, SERVERS, server), "info"]]);
      expect(asked).toEqual([["status", {}]]);
    },
  );

  test("tool -> the worker is asked for the declared schema by the server's own names", async () => {
    const schema = '{"type":"object"}';
    const { notices, asked } = await run("tool fs__read", { answers: { declaredSchema: () => schema } });
    expect(asked).toEqual([["declaredSchema", { server: "fs", tool: "read" }]]);
    const found = CATALOG.get("fs__read");
    expect(notices).toEqual([[found && renderTool(found, schema), "info"]]);
    const short = await run("tool read", { answers: { declaredSchema: () => schema } });
    expect(short.notices).toEqual(notices);
    const near = await run("tool raed");
    expect(near.notices[0]?.[0]).toBe(
      "No tool named raed is known. Did you mean fs__read? /mcp tools lists them.",
    );
    const unknown = await run("tool nope");
    expect(unknown.asked).toEqual([]);
    expect(unknown.notices).toEqual([["No tool named nope is known. /mcp tools lists them.", "info"]]);
  });

  const DOC = { uri: "x://a", title: "A: what it holds" };
  const KNOWN = [
    { server: "fs", resources: [DOC], templates: [{ uri: "x://{id}", title: "One" }] },
    { server: "git", resources: undefined, templates: [] },
  ];
  it.each([
    [
      "resources",
      KNOWN,
      undefined,
      "fs: 1 resource and 1 template\n  @fs:x://a - A: what it holds\n  @fs:x://{id} - One (fill in the braces)\n" +
        "git: its resources are not known\nWrite such an @ into a message to hand the resource to the model.",
    ],
    ["resources git", KNOWN.slice(1), "git", "git: its resources are not known"],
    ["resources nope", [], "nope", "No server named nope is configured. Configured: fs, git, github."],
    ["resources", [], undefined, "No servers are configured."],
  ])(
    "%j -> the resources that the worker knows, each as it is written",
    async (args, known, server, text) => {
      const { notices, asked } = await run(args, { answers: { listResources: () => known } });
      expect(notices).toEqual([[text, "info"]]);
      expect(asked[0]).toEqual(["listResources", { server }]);
    },
  );

  const PDF = {
    uri: "skill://pdf/SKILL.md",
    name: "pdf",
    description: "Reads PDF files. ".repeat(20),
    size: "2 files, 1 KB",
    tool: "skill_pdf",
  };
  const BROKEN = {
    uri: "skill://x/SKILL.md",
    name: "x",
    description: "X",
    size: "",
    problem: "it has no description",
  };
  const HINT = "\nA skill is loaded when the model selects it, or by its command /mcp__<server>__<skill>.";
  const OFFERED = [
    { server: "fs", policy: "ask", skills: [PDF, BROKEN] },
    { server: "git", policy: "ask", skills: undefined },
  ];
  it.each([
    [
      "skills",
      OFFERED,
      undefined,
      `fs: 2 skills\n  pdf - ${PDF.description.slice(0, 99)}… (2 files, 1 KB)\n  x - cannot be loaded: it has no description${HINT}`,
    ],
    ["skills git", OFFERED.slice(1), "git", `git: serves no skills, or has never been connected${HINT}`],
    ["skills nope", [], "nope", "No server named nope is configured. Configured: fs, git, github."],
    ["skills", OFFERED.slice(1, 1), undefined, "No server offers a skill, as far as is known."],
  ])("%j -> the skills that the worker knows, in two lines each", async (args, known, server, text) => {
    const { notices, asked } = await run(args, { answers: { listSkills: () => known } });
    expect(notices).toEqual([[text, "info"]]);
    expect(asked[0]).toEqual(["listSkills", { server }]);
  });

  test("skills in a session of one command -> the servers' lists are waited for", async () => {
    const answers = { listSkills: () => OFFERED, settleTools: () => ({ pending: [] }) };
    const { asked } = await run("skills", { answers, hasUI: false });
    expect(asked.map(([method]) => method)).toEqual(["settleTools", "listSkills"]);
  });

  test("more resources than a notice holds -> cut, and how to see more", async () => {
    const resources = Array.from({ length: 400 }, () => DOC);
    const answers = { listResources: () => [{ server: "fs", resources, templates: [] }] };
    const [[text] = [""]] = (await run("resources", { answers })).notices;
    expect(text.split("\n")).toHaveLength(301);
    expect(text).toMatch(/\nand 101 more lines: \/mcp resources <server>$/);
    const long = resources.map(({ title }) => ({ title, uri: "x".repeat(2_000) }));
    const wide = { listResources: () => [{ server: "fs", resources: long, templates: [] }] };
    expect((await run("resources", { answers: wide })).notices[0]?.[0].length).toBeLessThan(51_000);
  });

  it.each([
    ["reconnect", undefined],
    ["reconnect git", "git"],
    ["reconnect my server", "my server"],
  ])("%j -> reconnects, then shows the status that it led to", async (args, server) => {
    const { notices, asked } = await run(args);
    expect(asked).toEqual([
      ["reconnect", { server }],
      ["status", {}],
    ]);
    expect(notices).toEqual([[renderStatus(REPORT), "info"]]);
  });

  const SHARED = [
    makeStatus("fs", { sharing: { sessions: 3, since: 0 } }),
    makeStatus("git", { sharing: { sessions: 1, since: 0 } }),
  ];
  it.each([
    ["reconnect fs", "Reconnect anyway", true],
    ["reconnect fs", "No, go back", false],
    ["reconnect fs", undefined, false],
    ["reconnect", "No, go back", false],
  ])("%j, other sessions use it, answer %j -> says how many before it does", async (args, answer, goesOn) => {
    const { asked, dialogs, notices } = await run(args, { servers: () => SHARED, select: () => answer });
    expect(dialogs).toHaveLength(1);
    expect(dialogs[0]?.title).toMatch(/^2 other sessions use fs, and a reconnect ends its process\. /);
    expect(dialogs[0]?.options?.[0]).toBe("No, go back");
    expect(asked.some(([method]) => method === "reconnect")).toBe(goesOn);
    if (!goesOn) expect(notices).toEqual([["Nothing is reconnected.", "info"]]);
  });

  test("reconnect of a server that this session alone uses -> no question", async () => {
    const { asked, dialogs } = await run("reconnect git", { servers: () => SHARED });
    expect(dialogs).toEqual([]);
    expect(asked[0]).toEqual(["reconnect", { server: "git" }]);
  });

  it.each(["reconnect", "reconnect fs"])("%j, nobody can be asked -> nobody is interrupted", async (args) => {
    const code = await exitCodeOf(async () => {
      const { asked, dialogs } = await run(args, { servers: () => SHARED, hasUI: false });
      expect([asked, dialogs]).toEqual([[], []]);
    });
    expect(code).toBe(1);
  });

  it.each([
    ["tools", undefined],
    ["tools git", undefined],
    ["tools off", 1],
    ["resources off", 1],
    ["tools nowhere", 2],
    ["tool nowhere", 2],
    ["resources nowhere", 2],
    ["skills nowhere", 2],
    ["try nowhere", 2],
  ])("%j in print mode -> code $1", async (args, code) => {
    const answers = { settleTools: () => [], listResources: () => [], listSkills: () => [] };
    const servers = () => [...SERVERS, makeStatus("off", { state: "disabled" })];
    expect(await exitCodeOf(() => run(args, { hasUI: false, answers, servers }))).toBe(code);
  });

  const HUB = { pid: 10, since: 0, servers: [] };
  it.each<[string, unknown, string]>([
    ["hub", {}, "The hub of shared servers: pid 10, "],
    ["hub stop", { stop: {} }, "The hub is ended."],
    ["hub  stop  my server", { stop: { server: "my server" } }, "my server is ended, "],
  ])("%j -> the hub is asked, and its answer is shown", async (args, params, text) => {
    const stopped = args.endsWith("server") ? 1 : 0;
    const { asked, notices } = await run(args, { answers: { hub: () => ({ report: HUB, stopped }) } });
    expect(asked).toEqual([["hub", params]]);
    expect(notices).toEqual([[expect.stringContaining(text), "info"]]);
  });

  it.each([
    ["enable git", { server: "git", enabled: true, project: false }, "git is enabled in /agent/mcp.json."],
    ["disable git", { server: "git", enabled: false, project: false }, "git is disabled in /agent/mcp.json."],
    [
      "disable git --project",
      { server: "git", enabled: false, project: true },
      "git is disabled in /agent/mcp.json.",
    ],
    [
      "enable --project my server",
      { server: "my server", enabled: true, project: true },
      "my server is enabled in /agent/mcp.json.",
    ],
  ])("%j -> switched in the file that the worker names", async (args, params, text) => {
    const { notices, asked } = await run(args);
    expect(asked).toEqual([["setEnabled", params]]);
    expect(notices).toEqual([[text, "info"]]);
  });

  it.each([true, false])("on, off -> %s for this session, in no file", async (on) => {
    const word = on ? "on" : "off";
    const { notices, asked } = await run(`${word} my server`);
    const params = { server: "my server", enabled: on, project: false, session: true };
    expect(asked).toEqual([["setEnabled", params]]);
    expect(notices).toEqual([[`my server is switched ${word} for this session.`, "info"]]);
    const usage = await run(word);
    expect(usage.notices[0]?.[0]).toContain(
      `Usage: /mcp ${word} <server>. ${on ? "Disabled" : "Enabled"} now: `,
    );
  });

  it.each([
    ["auth", undefined],
    ["auth git", "git"],
    ["login git", "git"],
    [" login  my server ", "my server"],
  ])("%j -> the sign-in begins, and tells the rest itself", async (args, server) => {
    const { notices, asked } = await run(args);
    expect(asked).toEqual([["signIn", server]]);
    expect(notices).toEqual([]);
  });

  it.each([
    ["logout git", "git"],
    ["unauth my server", "my server"],
  ])("%j -> signed out, and the worker's sentence is shown", async (args, server) => {
    const { notices, asked } = await run(args, { hasUI: false, answers: {} });
    expect(asked).toEqual([["signOut", { server }]]);
    // Without a UI a notice is a line on stderr.
    expect(notices).toEqual([]);
    expect((await run(args)).notices).toEqual([["git: signed out.", "info"]]);
  });

  test("tools without a person -> they are waited for, and the servers of a session that has just begun are named", async () => {
    const write = vi.spyOn(console, "error").mockReturnValue();
    onTestFinished(() => write.mockRestore());
    const { asked } = await run("tools", {
      hasUI: false,
      servers: () => [],
      answers: { settleTools: () => [] },
    });
    expect(asked.map(([method]) => method)).toEqual(["settleTools", "status"]);
    expect(write.mock.calls).toEqual([[renderTools(CATALOG, REPORT.servers, undefined)]]);
  });

  test("trust -> the questions are asked again; without a person the status says what waits", async () => {
    const report = makeReport({
      servers: SERVERS,
      questions: [{ server: "theirs", hash: "h", question: "Run it?" }],
    });
    const answers = { status: () => report };
    const { notices, asked } = await run("trust", { answers });
    expect(asked.map(([method]) => method)).toEqual(["status", "askConsents"]);
    expect(notices).toEqual([]);
    const printed = await run("trust", { hasUI: false, answers });
    expect(printed.asked.map(([method]) => method)).toEqual(["status", "askConsents", "status"]);
  });

  test("trust, where only Pi could decide -> why the servers do not run, in one line each", async () => {
    const report = makeReport({ servers: SERVERS, refused: [{ name: "long", reason: "it is too long" }] });
    const { notices, asked } = await run("trust", { answers: { status: () => report } });
    expect(asked.map(([method]) => method)).toEqual(["status"]);
    expect(notices).toEqual([["MCP server long is not started: it is too long.", "info"]]);
    const cwd = await tempFolder();
    await writeFile(join(cwd, ".mcp.json"), "{}");
    const untrusted = await run("trust", { cwd, trusted: false });
    const line =
      ".mcp.json: Pi does not trust this folder, so its servers are not read. /trust decides that, from the next start of Pi on.";
    expect(untrusted.notices).toEqual([[line, "info"]]);
    const shown = await run("status", { cwd, trusted: false });
    expect(shown.notices).toEqual([[`${renderStatus(REPORT)}\n${line}`, "info"]]);
  });

  test("trust without a question -> that, and nobody is asked", async () => {
    const { notices, asked } = await run("trust");
    expect(asked.map(([method]) => method)).toEqual(["status"]);
    const text = "No server of this project or of a package waits for your consent, and none was refused.";
    expect(notices).toEqual([[text, "info"]]);
  });

  test("doctor -> one notice with the findings of the worker and of main, and a private file for others", async () => {
    const report = {
      findings: [{ id: "config", severity: "error", title: "The file is broken." }],
      leftOut: 0,
      facts: { version: "1", runtime: "Node", platform: "p", proxies: [], servers: 0 },
      servers: [],
      stages: [],
      tookMs: 3,
    };
    await mkdir(AGENT_DIR, { recursive: true });
    onTestFinished(() => rm(AGENT_DIR, { recursive: true }));
    const file = join(AGENT_DIR, "mcp-doctor.md");
    await writeFile(join(AGENT_DIR, "elsewhere"), "kept");
    await symlink(join(AGENT_DIR, "elsewhere"), file);
    const { notices, asked } = await run("doctor git", { answers: { diagnose: () => report } });
    expect(asked).toEqual([["diagnose", { server: "git" }]]);
    const [[text] = [""]] = notices;
    expect(text.split("\n")).toEqual([
      "MCP doctor: 1 error, 2 warnings, in 3 ms",
      "error: The file is broken.",
      "warning: Another extension provides /mcp: two MCP clients run the same servers twice. (/ext/other.ts)",
      "  To do: Remove one of them: pi config.",
      "warning: The connection worker ended unexpectedly once in this session.",
      "  The last reason: exit code 9.",
      "  To do: If this keeps happening, please open an issue with this report.",
      `A report without secrets, for others to read: ${file}`,
    ]);
    expect(await readFile(file, "utf8")).toContain("error [config] The file is broken.");
    expect((await lstat(file)).mode & 0o777).toBe(0o600);
    expect(await readFile(join(AGENT_DIR, "elsewhere"), "utf8")).toBe("kept");
    expect((await readdir(AGENT_DIR)).sort()).toEqual(["elsewhere", "mcp-doctor.md"]);
  });

  test("doctor, the agent folder is gone -> the findings, and why there is no file", async () => {
    const report = { findings: [], leftOut: 0, facts: { proxies: [] }, servers: [], stages: [], tookMs: 3 };
    const { notices } = await run("doctor", { answers: { diagnose: () => report } });
    expect(notices[0]?.[0]).toMatch(/could not be written: ENOENT/);
  });

  test("stats -> one notice with the table", async () => {
    const { notices, asked } = await run("stats");
    expect(asked).toEqual([["stats", {}]]);
    expect(notices).toEqual([[expect.stringMatching(/^Calls are not counted: /), "info"]]);
  });

  it.each([
    "status fs",
    "status a b",
    "tool",
    "enable",
    "disable",
    "enable --project",
    "trust fs",
    "remove",
    "import x",
    "logout",
    "unauth",
    "logout fs --project",
    "auth --project",
    "edit fs",
    "stats fs",
    "hub fs",
    "hub stopfs",
    "hub --project",
    "status --project",
    "tools --project",
    "reconnect --project",
  ])("%j, words that do not fit -> the usage, and nothing is done", async (args) => {
    const { notices, asked } = await run(args);
    expect(notices).toEqual([
      [expect.stringMatching(`^Usage: /mcp ${subcommand(args.split(" ")[0] ?? "")}`), "warning"],
    ]);
    expect(asked).toEqual([]);
  });

  it.each(["nope", "Status", "constructor", "nope fs", "__proto__"])(
    "%j -> unknown, and how to see what is known",
    async (args) => {
      const { notices, asked } = await run(args);
      const meant = args === "Status" ? " Did you mean /mcp status?" : "";
      const text = `/mcp ${args.split(" ")[0]} is not known.${meant} /mcp help lists the words.`;
      expect(notices).toEqual([[text, "warning"]]);
      expect(asked).toEqual([]);
    },
  );

  test("enable and disable alone -> the servers that could be named", async () => {
    const servers = (): McpHost["servers"] => () => [
      makeStatus("on"),
      makeStatus("off", { state: "disabled" }),
    ];
    const texts = await Promise.all(
      ["enable", "disable", "remove"].map(
        async (args) => (await run(args, { servers: servers() })).notices[0]?.[0],
      ),
    );
    expect(texts).toEqual([
      "Usage: /mcp enable <server> [--project]. Disabled now: off.",
      "Usage: /mcp disable <server> [--project]. Enabled now: on.",
      "Usage: /mcp remove <server>. Servers: on, off.",
    ]);
  });

  test("in print mode a mistake of usage ends Pi with 2, a failure with 1, and an output is written as it is", async () => {
    expect(await exitCodeOf(() => run("nonsense", { hasUI: false }))).toBe(2);
    const answers = { stats: () => Promise.reject(error) };
    expect(await exitCodeOf(() => run("stats", { hasUI: false, answers }))).toBe(1);
  });

  test("help -> each word with what it does; every line fits into a terminal of 60 columns", async () => {
    const { notices } = await run("help");
    for (const word of Object.keys(WORDS))
      expect(notices[0]?.[0]).toMatch(new RegExp(`^ {2}${word} .*\\w`, "m"));
    for (const columns of [60, 80, 120]) {
      const text = helpText(columns);
      for (const line of text.split("\n").slice(0, -2)) expect(line.length).toBeLessThanOrEqual(columns);
      const flat = text.replaceAll(/\s+/g, " ");
      for (const about of Object.values(ABOUT)) expect(flat).toContain(about);
    }
  });

  test("how a shell finds the program: the folder beside the package, else the program itself", async () => {
    const folder = await tempFolder();
    const here = join(folder, "node_modules", "pi-mcp-threads", "dist");
    expect(shellLines(here)).toEqual([`In a shell: node ${join(here, "cli.js")} help`]);
    const bin = join(folder, "node_modules", ".bin");
    await mkdir(bin, { recursive: true });
    await writeFile(join(bin, "pi-mcp-threads"), "");
    expect(shellLines(here).at(-1)).toBe(`  export PATH="$PATH:${bin}"`);
  });

  test.each([
    ["logs", undefined, "The last lines of /"],
    ["logs fs", "fs", "The last lines about fs of /"],
    ["log fs", "fs", "The last lines about fs of /"],
  ])("%s -> the end of the log", async (args, server, start) => {
    const serverLog = () => ({ lines: ["one", "two\u001b[2J"], size: 9 });
    const { notices, asked } = await run(args, { answers: { serverLog } });
    expect(asked).toEqual([["serverLog", { server, seen: undefined }]]);
    expect(notices[0]?.[0]).toMatch(start);
    expect(notices[0]?.[0]).toMatch(/mcp-threads\.log:\none\ntwo$/);
  });

  test("logs of a server without entries -> that", async () => {
    const { notices } = await run("logs fs", { answers: { serverLog: () => ({ lines: [], size: 0 }) } });
    expect(notices[0]?.[0]).toMatch(/mcp-threads\.log has nothing about fs\.$/);
  });

  const error = new ThreadsError("unknown_server", "No server named x.", { remedy: "/mcp lists them." });
  it.each<[string, Answers]>([
    ["status", { status: () => Promise.reject(error) }],
    [
      "status",
      {
        status: () => {
          throw error;
        },
      },
    ],
    ["reconnect x", { reconnect: () => Promise.reject(error) }],
    ["enable x", { setEnabled: () => Promise.reject(error) }],
    ["auth x", { signIn: () => Promise.reject(error) }],
    ["logout x", { signOut: () => Promise.reject(error) }],
    ["edit", { readConfig: () => Promise.reject(error) }],
  ])("%j that fails -> one error notice with the remedy, and no throw", async (args, answers) => {
    const { notices } = await run(args, { answers });
    expect(notices).toEqual([["/mcp: No server named x. /mcp lists them.", "error"]]);
  });
});

describe("/mcp edit", () => {
  it.each([
    ["edit", false],
    ["edit --project", true],
  ])("%j, edited -> written over what was read", async (args, project) => {
    const { asked, dialogs, notices } = await run(args, { editor: (_title, text) => `${text}// mine\n` });
    expect(dialogs).toEqual([{ method: "editor", title: FILE, prefill: TEXT }]);
    expect(asked).toEqual([
      ["readConfig", { project }],
      ["writeConfig", { project, before: TEXT, text: `${TEXT}// mine\n` }],
    ]);
    expect(notices).toEqual([[`${FILE} is written.`, "info"]]);
  });

  it.each<[string, RecordingOptions["editor"]]>([
    ["closed", () => undefined],
    ["left unchanged", (_title, text) => text],
  ])("%s -> nothing is written", async (_name, editor) => {
    const { asked, notices } = await run("edit", editor ? { editor } : {});
    expect(asked.map(([method]) => method)).toEqual(["readConfig"]);
    expect(notices).toEqual([[`${FILE} is unchanged.`, "info"]]);
  });

  test.each<[string, (string | undefined)[], string]>([
    ["corrected", ["{]", "{}"], `${FILE} is written.`],
    ["left", ["{]", undefined], `${FILE} stays as it is: what you typed is not saved.`],
  ])("nothing could be used of the text -> it comes back with the reason; %s", async (_name, typed, told) => {
    const problem = "1:2: not valid JSON: value expected.";
    const answers = [{ file: FILE, problem }, { file: FILE }];
    const { dialogs, notices } = await run("edit", {
      answers: { writeConfig: () => answers.shift() },
      editor: () => typed.shift(),
    });
    expect(dialogs).toEqual([
      { method: "editor", title: FILE, prefill: TEXT },
      {
        method: "editor",
        title: `Not saved yet: ${FILE}: ${problem} Escape leaves the file as it is.`,
        prefill: "{]",
      },
    ]);
    expect(notices).toEqual([[told, "info"]]);
  });

  /** The answer of Pi's editor to this text, after the person's change of what it shows. */
  const inPisEditor =
    (change: (shown: string) => string): NonNullable<RecordingOptions["editor"]> =>
    (_title, text = "") =>
      change(text.replace(/\r\n?/g, "\n").replaceAll("\t", "    ")).trim();
  const TABBED = '\uFEFF{\r\n\t"mcpServers": {\r\n\t\t"a": {\t"command": "x" }\r\n\t}\r\n}\r\n';

  test.each([
    ["line ends, tabs and a last line end", TABBED],
    ["spaces", '  {\n  "mcpServers": {}\n}\n\n'],
    ["no last line end", "{}"],
    ["no file yet", ""],
  ])("Enter in Pi's editor, nothing changed, %s -> the file is unchanged", async (_what, text) => {
    const readConfig = () => ({ file: FILE, text });
    const { asked, notices } = await run("edit", {
      answers: { readConfig },
      editor: inPisEditor((shown) => shown),
    });
    expect(asked.map(([method]) => method)).toEqual(["readConfig"]);
    expect(notices).toEqual([[`${FILE} is unchanged.`, "info"]]);
  });

  test.each<[string, (shown: string) => string, string]>([
    [
      "a word",
      (shown) => shown.replace('"x"', '"y"'),
      TABBED.replace('{\t"command": "x"', '{    "command": "y"'),
    ],
    [
      "a line more",
      (shown) => shown.replace("    }\n", '    },\n    "settings": {}\n'),
      TABBED.replace("\t}\r\n", '\t},\r\n\t"settings": {}\r\n'),
    ],
    ["a line less", (shown) => shown.replace(/ *"a".*\n/, ""), TABBED.replace(/\t\t"a".*\r\n/, "")],
    ["nothing left", () => "{}", "\uFEFF{}\r\n"],
  ])("edited in Pi's editor, %s -> only the edited lines differ", async (_what, change, text) => {
    const readConfig = () => ({ file: FILE, text: TABBED });
    const { asked } = await run("edit", { answers: { readConfig }, editor: inPisEditor(change) });
    expect(asked.at(-1)).toEqual(["writeConfig", { project: false, before: TABBED, text }]);
  });

  test("edited in a program behind RPC, which keeps every character -> written as it is", async () => {
    const readConfig = () => ({ file: FILE, text: TABBED });
    const text = '{\n  "mcpServers": {}\n}\n';
    const { asked } = await run("edit", { answers: { readConfig }, editor: () => text });
    expect(asked.at(-1)).toEqual(["writeConfig", { project: false, before: TABBED, text: `\uFEFF${text}` }]);
  });

  test("a file with a BOM -> edited without the BOM, written with it", async () => {
    const readConfig = () => ({ file: FILE, text: `\uFEFF${TEXT}` });
    const { asked, dialogs } = await run("edit", { answers: { readConfig }, editor: () => "{}" });
    expect(dialogs).toMatchObject([{ prefill: TEXT }]);
    expect(asked.at(-1)).toEqual([
      "writeConfig",
      { project: false, before: `\uFEFF${TEXT}`, text: "\uFEFF{}\n" },
    ]);
  });

  test("no file yet -> the editor holds the start of a file", async () => {
    const readConfig = () => ({ file: FILE, text: "" });
    const { dialogs } = await run("edit", { answers: { readConfig } });
    expect(JSON.parse(dialogs[0]?.prefill ?? "")).toEqual({ mcpServers: {} });
  });

  test("without a UI -> a message names the file", async () => {
    const { asked, dialogs } = await run("edit", { hasUI: false });
    expect(asked.map(([method]) => method)).toEqual(["readConfig"]);
    expect(dialogs).toEqual([]);
  });

  const GO_ON = "Go on editing mine";
  const OVER = "Write mine over it";
  const SHOW = "Show the file as it is now";
  const CHANGED = `${FILE} has changed while you edited it.`;
  const NOW = '{ "mcpServers": {} }';

  test.each<[string, (string | undefined)[], string[], boolean]>([
    ["goes on", [GO_ON], [CHANGED], false],
    ["presses Escape", [undefined], [CHANGED], false],
    ["writes over it", [OVER], [CHANGED], true],
    ["looks, then goes on", [SHOW, GO_ON], [CHANGED, `${CHANGED} Now it is:\n${NOW}`], false],
    ["looks, then writes over it", [SHOW, OVER], [CHANGED, `${CHANGED} Now it is:\n${NOW}`], true],
  ])(
    "the file has changed meanwhile, the person %s -> nothing is lost",
    async (_who, chosen, titles, over) => {
      const typed = ["mine", undefined];
      const { asked, dialogs, notices } = await run("edit", {
        answers: {
          writeConfig: ({ before }: { before: string }) => ({
            file: FILE,
            ...(before === NOW ? {} : { now: NOW }),
          }),
        },
        editor: () => typed.shift(),
        select: () => chosen.shift(),
      });
      const questions = dialogs.filter(({ method }) => method === "select");
      expect(questions.map(({ title }) => title)).toEqual(titles);
      expect(questions[0]?.options).toEqual([GO_ON, OVER, SHOW]);
      const text = expect.stringContaining("mine");
      const written = [TEXT, ...(over ? [NOW] : [])].map((before) => [
        "writeConfig",
        { project: false, before, text },
      ]);
      expect(asked.slice(1)).toEqual(written);
      const back = {
        method: "editor",
        title: "Not saved yet: the file has changed meanwhile. Escape leaves the file as it is.",
        prefill: "mine",
      };
      expect(dialogs.slice(1 + titles.length)).toEqual(over ? [] : [back]);
      expect(notices).toEqual([
        [over ? `${FILE} is written.` : `${FILE} stays as it is: what you typed is not saved.`, "info"],
      ]);
    },
  );

  test("the file cannot be written -> the text comes back with the reason", async () => {
    const typed = ["mine", undefined];
    const failure = new ThreadsError("bad_config", `${FILE} could not be written: it is read-only.`);
    const { dialogs } = await run("edit", {
      answers: { writeConfig: () => Promise.reject(failure) },
      editor: () => typed.shift(),
    });
    const title = `Not saved yet: ${failure.message} Escape leaves the file as it is.`;
    expect(dialogs.slice(1)).toEqual([{ method: "editor", title, prefill: "mine" }]);
  });
});

describe("completeMcp", () => {
  const off = makeStatus("gone", { state: "disabled" });
  const KNOWN = { servers: () => [...SERVERS, off], catalog: () => CATALOG };
  const ALL =
    "status|tools|tool|try|resources|skills|reconnect|auth|logout|add|import|remove|on|off|enable|disable|edit|trust|stats|hub|logs|doctor|help";
  it.each([
    ["", ALL],
    ["s", "status|skills|stats"],
    ["too", "tools|tool"],
    ["tools ", "tools fs|tools git|tools github|tools gone"],
    ["tools gi", "tools git|tools github"],
    ["tools  f", "tools fs"],
    ["tool ", "tool fs__read"],
    ["tool fs", "tool fs__read"],
    ["tool re", "tool fs__read"],
    ["try re", "try fs__read"],
    ["reconnect githu", "reconnect github"],
    ["enable ", "enable gone"],
    ["disable g", "disable git|disable github"],
    ["on ", "on gone"],
    ["off g", "off git|off github"],
    ["auth gi", "auth git|auth github"],
    ["login gi", "login git|login github"],
    ["logout f", "logout fs"],
    ["unauth f", "unauth fs"],
    ["logs f", "logs fs"],
    ["hub s", "hub stop"],
    ["a", "auth|add"],
  ])("%j -> %s", (prefix, values) => {
    const found = completeMcp(prefix, KNOWN) ?? [];
    expect(found.map(({ value }) => value)).toEqual(values.split("|"));
    for (const { description } of found) expect(description).toMatch(/\w/);
  });

  test("a server -> its state and what it offers", () => {
    const [first] = completeMcp("tools ", KNOWN) ?? [];
    expect(first).toEqual({ value: "tools fs", label: "fs", description: "connected, 2 tools" });
  });

  const NONE = ["tools", "x", "S", "reconnect github", "reconnect git", "edit ", "trust f", "tools x"];
  it.each([...NONE, "status ", "status f", "constructor ", "tools fs ", "tool x"])(
    "%j -> nothing",
    (prefix) => {
      expect(completeMcp(prefix, KNOWN)).toBeNull();
    },
  );

  test("10,000 tools that fit -> only the descriptions of those that are suggested are made", () => {
    let made = 0;
    const tools = Array.from({ length: 10_000 }, (_, at) => ({
      ...CATALOG.tool(0),
      name: `fs__read${at}`,
      get description() {
        made++;
        return "Reads.";
      },
    }));
    expect(completeMcp("tool fs", { ...KNOWN, catalog: () => ({ tools }) })).toHaveLength(100);
    expect(made).toBe(100);
    expect(completeMcp("try fs__read9999", { ...KNOWN, catalog: () => ({ tools }) })).toBeNull();
    expect(made).toBe(100);
  });

  test("a server whose name holds a space -> the completed command works", async () => {
    const spaced = [makeStatus("my server")];
    const [completion] = completeMcp("tools my", { servers: () => spaced, catalog: () => CATALOG }) ?? [];
    const { notices } = await run(completion?.value ?? "", { servers: () => spaced });
    expect(notices).toEqual([[renderTools(CATALOG, spaced, "my server"), "info"]]);
  });

  test("the command's completions -> the servers that are configured now", async () => {
    const { command } = commandWith({}, () => SERVERS);
    const completed = await command.getArgumentCompletions?.("reconnect g");
    expect(completed?.map(({ value }) => value)).toEqual(["reconnect git", "reconnect github"]);
  });
});

describe("/mcp-auth", () => {
  it.each([
    ["", undefined],
    ["git", "git"],
    [" my server ", "my server"],
  ])("%j -> the same as /mcp auth", async (args, server) => {
    const { authCommand, asked } = commandWith({}, () => SERVERS);
    await authCommand.handler(args, createRecordingContext().ctx);
    expect(asked).toEqual([["signIn", server]]);
  });

  test("its completions -> the servers", async () => {
    const { authCommand } = commandWith({}, () => SERVERS);
    const complete = (prefix: string) => authCommand.getArgumentCompletions?.(prefix);
    expect((await complete("gi"))?.map(({ value }) => value)).toEqual(["git", "github"]);
    expect(await complete("")).toHaveLength(3);
    expect(await complete("git")).toBeNull();
    expect(await complete("x")).toBeNull();
  });
});

// Pi takes the dialogs of a session away when it replaces the session, and leaves their promises open.
describe("the session ends while a dialog is open", () => {
  /** What takes keys in this process, with what other tests have left. */
  const taken = (): number =>
    (globalThis as { [key: symbol]: Set<object> | undefined })[Symbol.for("pi-mcp-threads.keys-taken")]
      ?.size ?? 0;

  it.each([
    ["add", "that asks for a choice", undefined],
    ["add", "that asks for a text", "A remote server (URL)"],
    ["edit", "with Pi's editor", undefined],
    ["", "of its own screen", undefined],
  ] as const)(
    "/mcp %s, a dialog %s -> the command ends without a word, asks nothing more, and the keys are free",
    async (words, _what, choice) => {
      const never = new Promise<never>(() => undefined);
      const { ctx, notices, dialogs, screens } = createRecordingContext({
        mode: "tui",
        select: () => choice ?? never,
        input: () => never,
        editor: () => never as unknown as string,
      });
      const { host, tell, listeners, asked } = fakeHost(ANSWERS, { servers: () => SERVERS });
      const takenBefore = taken();
      const done = createMcpCommand(host).handler(words, ctx);
      await vi.waitFor(() => expect(dialogs.length + screens.length).toBe(choice === undefined ? 1 : 2));
      const before = [asked.length, dialogs.length];
      tell(undefined);
      await done;
      expect([asked.length, dialogs.length]).toEqual(before);
      expect(notices).toEqual([]);
      expect(taken()).toBe(takenBefore);
      expect(listeners()).toBe(0);
    },
  );
});
