/** Owns: a program that embeds Pi by its SDK, as docs/other-programs.md shows it: the same extension, servers of the program's own. */
import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { STUB_MODEL, STUB_PROVIDER } from "../support/pi-home.ts";
import { ensurePi } from "../support/pi-host.ts";
import { waitGone } from "../support/processes.ts";
import { live } from "./rpc-support.ts";
import { call, home, model, root, searchFor } from "./support.ts";

const run = promisify(execFile);

/** The program of the page, with this checkout and the bundle of the pinned Pi in the place of packages. */
async function programOf(entry: object, sessions = 1): Promise<string> {
  const { packageDir } = await ensurePi();
  const at = (...parts: string[]) => JSON.stringify(pathToFileURL(join(...parts)).href);
  return `
import { createAgentSession, DefaultResourceLoader, getAgentDir, SessionManager } from ${at(packageDir, "dist", "bundle", "index.js")};
import mcp from ${at(root, "index.js")};

const sessions = [];
for (let at = 0; at < ${sessions}; at++) {
  const resourceLoader = new DefaultResourceLoader({
    cwd: process.cwd(),
    agentDir: getAgentDir(),
    extensionFactories: [mcp, (pi) => pi.registerMcpServer("docs", ${JSON.stringify(entry)})],
  });
  await resourceLoader.reload();
  const { session } = await createAgentSession({ resourceLoader, sessionManager: SessionManager.inMemory() });
  await session.bindExtensions({});
  session.subscribe((event) => {
    if (event.type === "tool_execution_end") console.log(JSON.stringify([event.toolName, event.result.content]));
  });
  sessions.push(session);
}
for (const session of sessions) await session.prompt("go");
for (const session of sessions) session.dispose();
`;
}

async function runs(url: string, sessions = 1) {
  const at = await home({ mcp: { mcpServers: { mine: live(["mine"]), off: live(["off"]) } } });
  await at.useModel(url);
  await writeFile(
    join(at.agentDir, "settings.json"),
    JSON.stringify({ defaultProvider: STUB_PROVIDER, defaultModel: STUB_MODEL }),
  );
  const program = join(at.dir, "program.mjs");
  await writeFile(program, await programOf(live(["docs"]), sessions));
  const { stdout, stderr } = await run(process.execPath, [program], {
    cwd: at.cwd,
    env: at.env({ MCP_SERVERS: "docs,mine" }),
  });
  const lines = stdout.trim().split("\n");
  return { results: lines.map((line) => JSON.parse(line) as [string, { text: string }[]]), stderr };
}

test("the model finds and calls a server of the program and one of mcp.json, and the program ends with its servers", async () => {
  const script = await model([
    searchFor("select:docs__work"),
    call("docs__work", {}),
    searchFor("select:mine__work"),
    call("mine__work", {}),
    { text: "done." },
  ]);
  const { results, stderr } = await runs(script.url);
  expect(results.map(([tool]) => tool)).toEqual(["ToolSearch", "docs__work", "ToolSearch", "mine__work"]);
  const [docs, mine] = [1, 3].map((index) => JSON.parse(results[index]?.[1][0]?.text ?? "null"));
  expect([docs.argv, mine.argv]).toEqual([["docs"], ["mine"]]);
  expect(JSON.stringify(script.requests)).not.toContain("off__work");
  expect(stderr).not.toMatch(/also provides \/mcp|loaded twice|one at a time/);
  await waitGone([docs.pid, mine.pid], 10_000);
});

test("two sessions at once -> the second has the servers, and a line says that the first has them no more", async () => {
  const turn = [searchFor("select:docs__work"), call("docs__work", {}), { text: "done." }];
  const script = await model([...turn, ...turn]);
  const { results, stderr } = await runs(script.url, 2);
  expect(results[1]?.[1][0]?.text).toBe("Tool docs__work not found");
  expect(JSON.parse(results[3]?.[1][0]?.text ?? "null")).toMatchObject({ argv: ["docs"] });
  expect(
    stderr.match(/Another session of this process has the MCP servers now: one at a time has them\./g),
  ).toHaveLength(1);
});
