/**
 * Owns: sessions that a program makes by Pi's SDK: one that embeds Pi, as docs/other-programs.md shows it, with servers of its own,
 * and an extension that runs subagents in Pi's process.
 */
import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { STUB_MODEL, STUB_PROVIDER } from "../support/pi-home.ts";
import { ensurePi } from "../support/pi-host.ts";
import { waitGone } from "../support/processes.ts";
import { expectClean, live, open } from "./rpc-support.ts";
import { call, ENTRY, home, model, root, searchFor } from "./support.ts";

const run = promisify(execFile);

/** Waits until the server of the session's last call has ended, and says so. */
const GONE = `
const lives = () => { try { return process.kill(pid, 0); } catch { return false; } };
const until = Date.now() + 20_000;
while (lives() && Date.now() < until) await new Promise((resolve) => setTimeout(resolve, 50));
console.log(JSON.stringify([lives() ? "lives" : "gone", pid]));
`;

interface ProgramOptions {
  sessions?: number;
  /** What the program does at its end, with the `pid` of the server that it called last. */
  last?: string;
  /** What the program gives its sessions as flags, without a command line. */
  flags?: Record<string, string>;
}

/** The program of the page, with this checkout and the bundle of the pinned Pi in the place of packages. */
async function programOf(entry: object, { sessions = 1, last = "", flags }: ProgramOptions): Promise<string> {
  const { packageDir } = await ensurePi();
  const at = (...parts: string[]) => JSON.stringify(pathToFileURL(join(...parts)).href);
  return `
import {
  createAgentSession,
  createAgentSessionFromServices,
  createAgentSessionServices,
  DefaultResourceLoader,
  getAgentDir,
  SessionManager,
} from ${at(packageDir, "dist", "bundle", "index.js")};
import mcp from ${at(root, "index.js")};

const cwd = process.cwd();
const extensionFactories = [mcp, (pi) => pi.registerMcpServer("docs", ${JSON.stringify(entry)})];
async function usual() {
  const resourceLoader = new DefaultResourceLoader({ cwd, agentDir: getAgentDir(), extensionFactories });
  await resourceLoader.reload();
  return createAgentSession({ resourceLoader, sessionManager: SessionManager.inMemory() });
}
async function withFlags(flags) {
  const extensionFlagValues = new Map(Object.entries(flags));
  const services = await createAgentSessionServices({ cwd, extensionFlagValues, resourceLoaderOptions: { extensionFactories } });
  for (const { message } of services.diagnostics) console.error(message);
  return createAgentSessionFromServices({ services, sessionManager: SessionManager.inMemory() });
}
const flags = ${JSON.stringify(flags ?? null)};
const sessions = [];
let pid;
for (let at = 0; at < ${sessions}; at++) {
  const { session } = await (flags ? withFlags(flags) : usual());
  await session.bindExtensions({});
  session.subscribe((event) => {
    if (event.type !== "tool_execution_end") return;
    console.log(JSON.stringify([event.toolName, event.result.content]));
    pid = Number(/"pid":(\\d+)/.exec(event.result.content[0].text)?.[1]);
  });
  sessions.push(session);
}
for (const session of sessions) await session.prompt("go");
for (const session of sessions) session.dispose();
${last}`;
}

async function runs(url: string, options: ProgramOptions = {}) {
  const at = await home({ mcp: { mcpServers: { mine: live(["mine"]), off: live(["off"]) } } });
  await at.useModel(url);
  await writeFile(
    join(at.agentDir, "settings.json"),
    JSON.stringify({ defaultProvider: STUB_PROVIDER, defaultModel: STUB_MODEL }),
  );
  const program = join(at.dir, "program.mjs");
  await writeFile(program, await programOf(live(["docs"]), options));
  const { stdout, stderr } = await run(process.execPath, [program], {
    cwd: at.cwd,
    env: at.env({ MCP_SERVERS: "docs,mine" }),
  });
  const lines = stdout.trim().split("\n");
  return { results: lines.map((line) => JSON.parse(line) as [string, { text: string }[]]), stderr };
}

/** The answers of live.mjs in the lines of a program. */
const answersIn = (results: [string, { text: string }[]][]) =>
  results
    .filter(([tool]) => tool.endsWith("__work"))
    .map(([, content]): { pid: number; argv: string[] } => JSON.parse(content[0]?.text ?? "null"));

test("two sessions at once: the model finds and calls a server of the program and one of mcp.json -> each session has servers of its own, and the program ends with them", {
  tags: "thorough",
}, async () => {
  const useDocs = [searchFor("select:docs__work"), call("docs__work", {})];
  const useMine = [searchFor("select:mine__work"), call("mine__work", {})];
  const done = { text: "done." };
  const script = await model([...useDocs, ...useMine, done, ...useDocs, done]);
  const { results, stderr } = await runs(script.url, { sessions: 2 });
  const used = ["ToolSearch", "docs__work"];
  expect(results.map(([tool]) => tool)).toEqual([...used, "ToolSearch", "mine__work", ...used]);
  const answers = answersIn(results);
  expect(answers.map(({ argv }) => argv)).toEqual([["docs"], ["mine"], ["docs"]]);
  expect(new Set(answers.map(({ pid }) => pid)).size).toBe(3);
  expect(JSON.stringify(script.requests)).not.toContain("off__work");
  expect(stderr).toBe("");
  expect(await waitGone(answers.map(({ pid }) => pid))).toEqual([]);
});

test("a program gives its session the flags of the command line -> they count, and Pi knows them; it disposes of the session and goes on -> its servers end, while the program runs", {
  tags: "thorough",
}, async () => {
  const use = [searchFor("select:mine__work,docs__work"), call("mine__work", {})];
  const script = await model([...use, { text: "done." }]);
  const flags = { "mcp-servers": "mine" };
  const { results, stderr } = await runs(script.url, { flags, last: GONE });
  expect(results[0]?.[1][0]?.text).toContain("mine__work");
  const [, request] = script.requests;
  expect(JSON.stringify(request?.tools)).toContain("mine__work");
  expect(JSON.stringify(request?.tools)).not.toContain("docs__work");
  expect(results.at(-1)).toEqual(["gone", answersIn(results)[0]?.pid]);
  expect(stderr).toBe("");
});

/** A tool that runs a subagent with all extensions in this process, and answers what its last call answered. */
const SUBAGENTS = `
import { createAgentSession, DefaultResourceLoader, getAgentDir, SessionManager } from "@earendil-works/pi-coding-agent";

async function run({ cwd, model }) {
  const resourceLoader = new DefaultResourceLoader({
    cwd,
    agentDir: getAgentDir(),
    additionalExtensionPaths: [${JSON.stringify(ENTRY)}],
  });
  await resourceLoader.reload();
  const sessionManager = SessionManager.inMemory(cwd);
  const { session } = await createAgentSession({ cwd, model, resourceLoader, sessionManager });
  await session.bindExtensions({});
  let last;
  session.subscribe((event) => {
    if (event.type === "tool_execution_end") last = event.result;
  });
  await session.prompt("go");
  session.dispose();
  return { content: last.content, details: {} };
}

export default (pi) =>
  pi.registerTool({
    name: "subagent",
    label: "Subagent",
    description: "Runs a subagent",
    parameters: { type: "object", properties: {} },
    execute: (_id, _params, _signal, _onUpdate, ctx) => run(ctx),
  });
`;

test("a subagent runs in Pi's process -> it has servers of its own, which end with it, under Pi's --mcp-servers; the person's go on", async () => {
  const at = await home({ mcp: { mcpServers: { docs: live(["docs"]), off: live(["off"]) } } });
  const subagents = join(at.tmpDir, "subagents.mjs");
  await writeFile(subagents, SUBAGENTS);
  const pi = await open({ at, extensions: [ENTRY, subagents], args: ["--mcp-servers", "docs"] });
  await pi.prompt(searchFor("select:docs__work"));
  const mine = await pi.ask("docs__work");
  const turn = [searchFor("select:docs__work,off__work"), call("docs__work", {}), { text: "done." }];
  const [ended] = await pi.prompt(call("subagent", {}), ...turn);
  const theirs = JSON.parse(ended?.text ?? "null");
  expect(theirs).toMatchObject({ argv: ["docs"] });
  expect(theirs.pid).not.toBe(mine.pid);
  expect(await waitGone([theirs.pid])).toEqual([]);
  expect((await pi.ask("docs__work")).pid).toBe(mine.pid);
  expect(JSON.stringify(pi.scripted.requests.map(({ tools }) => tools))).not.toContain("off__work");
  expectClean(pi);
});
