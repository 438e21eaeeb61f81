/**
 * Owns: a session that needs no thread: what the real Pi runs while its lazy servers are known and nothing has changed, and what
 * ends that rest. Threads are those that the system lists, by the names that Node gives them.
 */
import { readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { toolResultTexts } from "../support/model.ts";
import { type PiHome, runPrint } from "../support/pi-run.ts";
import { processesWithMarker, waitGone } from "../support/processes.ts";
import { dialogsOf, expectClean, live, type Opened, open, PATIENCE_MS, serversOf } from "./rpc-support.ts";
import { call, ENTRY, fixtureServer, home, model, searchFor } from "./support.ts";

/** The names of the process's threads that are workers of this package. */
async function workersOf({ rpc }: Opened): Promise<string[]> {
  const folder = `/proc/${rpc.pid}/task`;
  const names = (await readdir(folder)).map((id) =>
    readFile(join(folder, id, "comm"), "utf8").catch(() => ""),
  );
  return (await Promise.all(names)).map((name) => name.trim()).filter((name) => name.startsWith("pi-mcp"));
}

const restFiles = async ({ agentDir }: PiHome): Promise<string[]> =>
  (await readdir(join(agentDir, "mcp-snapshots")).catch(() => [])).filter((name) =>
    name.endsWith(".rest.json"),
  );

const SERVERS = { s: live([], { TOOLS: "work,other" }), off: live([], {}, { enabled: false }) };

/** A home in which an earlier session has learned the tools. */
async function known(options: Parameters<typeof home>[0] = {}): Promise<PiHome> {
  const at = await home({ mcp: { mcpServers: SERVERS }, ...options });
  const pi = await open({ at });
  await expect.poll(() => restFiles(at), { timeout: PATIENCE_MS }).toHaveLength(1);
  expect(await workersOf(pi)).not.toEqual([]);
  await pi.rpc.stop();
  return at;
}

/** A session in that home that has made a request and runs no worker. */
async function atRest(at: PiHome): Promise<Opened> {
  const pi = await open({ at });
  await pi.statusLine("MCP: 1 server ready · 2 tools");
  await pi.prompt({ text: "ok" });
  expect(await workersOf(pi)).toEqual([]);
  return pi;
}

// The names of threads are where Linux lists them.
describe.skipIf(process.platform !== "linux")("a session whose lazy servers are known", () => {
  test("prompts, a search and a call -> no thread before the search; the call works", async () => {
    const pi = await atRest(await known());
    expect(await serversOf(pi.at)).toEqual([]);
    const [, called] = await pi.prompt(searchFor("select:s__work"), call("s__work", {}));
    expect(called).toMatchObject({ isError: false });
    expect(await workersOf(pi)).not.toEqual([]);
    const request = pi.scripted.requests.at(-2);
    expect(request && toolResultTexts(request).at(-1)).toContain("s__work");
    expectClean(pi);
  });

  test("a search that finds a tool -> the worker starts behind it, before the call", {
    tags: "thorough",
  }, async () => {
    const pi = await atRest(await known());
    await pi.prompt(searchFor("select:s__work"));
    await expect.poll(() => workersOf(pi), { timeout: PATIENCE_MS }).not.toEqual([]);
    expect(await serversOf(pi.at)).toEqual([]);
  });

  test("/mcp -> the whole list, from a worker that starts for it", { tags: "thorough" }, async () => {
    const pi = await atRest(await known());
    const text = await pi.status();
    expect(text).toContain("s: idle (stdio, 2 tools");
    expect(text).toContain("off: disabled");
    expect(await workersOf(pi)).not.toEqual([]);
  });

  test("an edit of mcp.json -> the same notice as at any time, and the new server's tools are found", async () => {
    const pi = await atRest(await known());
    const docs = live([], { TOOLS: "page" });
    await pi.at.writeMcp({ mcpServers: { s: live(["new"], { TOOLS: "work,other" }), docs } });
    expect(await pi.notice(/^mcp\.json: /)).toBe("mcp.json: ~ s (args), + docs (1 tool), - off");
    const [found] = await pi.prompt(searchFor("select:docs__page"));
    expect(found?.text).toContain("docs__page");
    expect((await pi.ask("docs__page")).argv).toEqual([]);
    expectClean(pi);
  });

  test("a search right after an edit -> waits for the worker that reads it, also where it names the new server", {
    tags: "thorough",
  }, async () => {
    const pi = await atRest(await known());
    await pi.at.writeMcp({ mcpServers: { ...SERVERS, docs: live([], { TOOLS: "page" }) } });
    const [found] = await pi.prompt(call("ToolSearch", { query: "page", server: "docs" }));
    expect(found?.text).toContain("docs__page");
  });

  test("an edit while nobody ran, and a touched file -> a worker looks, and says nothing of what it finds at a start", {
    tags: "thorough",
  }, async () => {
    const at = await known();
    await at.writeMcp({ mcpServers: { ...SERVERS, docs: live([], { TOOLS: "page" }) } });
    const pi = await open({ at });
    await pi.statusLine("MCP: 2 servers ready · 3 tools");
    expect(await workersOf(pi)).not.toEqual([]);
  });

  test("a project's file that appears -> the person is asked, and nothing of it runs before", async () => {
    const pi = await atRest(await known({ trusted: true }));
    await pi.at.writeFile(".mcp.json", { mcpServers: { theirs: live([], { TOOLS: "work" }) } });
    const dialog = await pi.dialog();
    expect(JSON.stringify(dialog)).toContain("theirs");
    expect(await serversOf(pi.at)).toEqual([]);
    expect(dialogsOf(pi.rpc)).toHaveLength(1);
  });

  test("the project is trusted by now, a server is direct, or the snapshot is gone -> a worker as before", {
    tags: "thorough",
  }, async () => {
    const at = await known({ trusted: false });
    await at.writeFile("../.pi/agent/trust.json", { [at.cwd]: true });
    const trusted = await open({ at });
    await expect.poll(() => workersOf(trusted), { timeout: PATIENCE_MS }).not.toEqual([]);
    await trusted.rpc.stop();
    await rm(join(at.agentDir, "mcp-snapshots"), { recursive: true });
    const direct = { s: live([], { TOOLS: "work" }, { directTools: true }) };
    await at.writeMcp({ mcpServers: direct });
    for (const _ of [1, 2]) {
      const pi = await open({ at });
      await pi.statusLine("MCP: 1 server ready · 1 tool");
      await expect.poll(() => workersOf(pi), { timeout: PATIENCE_MS }).not.toEqual([]);
      await pi.rpc.stop();
    }
  });

  test("a session that goes on with tools of a server -> a worker before the model calls one", {
    tags: "thorough",
  }, async () => {
    const at = await known();
    const first = await open({ at, args: ["--continue"] });
    await first.prompt(searchFor("select:s__work"), call("s__work", {}), { text: "ok" });
    await first.rpc.stop();
    await expect.poll(() => restFiles(at)).toHaveLength(1);
    const next = await open({ at, args: ["--continue"] });
    await next.prompt({ text: "ok" });
    await expect.poll(() => workersOf(next), { timeout: PATIENCE_MS }).not.toEqual([]);
    expect((await next.ask("s__work")).argv).toEqual([]);
  });
});

test("pi -p with an eager server that is known: answered at once -> ends; later -> the server is there, and gone at the end", async () => {
  const at = await home({});
  const RECORD = join(at.dir, "record");
  const s = fixtureServer("counts.mjs", { RECORD });
  await at.writeMcp({ mcpServers: { s } });
  const starts = async (): Promise<number> =>
    (await readFile(RECORD, "utf8").catch(() => "")).split("\n").filter((line) => line === "start").length;
  const first = await open({ at });
  await expect.poll(() => restFiles(at), { timeout: PATIENCE_MS }).toHaveLength(1);
  await at.writeMcp({ mcpServers: { s: { ...s, lifecycle: "eager" } } });
  // What a session of lazy servers left does not stay.
  await expect.poll(() => restFiles(at), { timeout: PATIENCE_MS }).toEqual([]);
  await first.rpc.stop();
  const runAnswered = async (answer: () => Promise<{ text: string }>) => {
    const scripted = await model([answer]);
    const run = await runPrint({ home: at, model: scripted, extensions: [ENTRY], prompt: "go" });
    expect(run).toMatchObject({ code: 0, stdout: "ok\n", stderr: "" });
    // ToolSearch is declared, whoever starts later.
    expect(JSON.stringify(scripted.requests[0])).toContain("ToolSearch");
    expect(await waitGone((await processesWithMarker(at.dir)).map(({ pid }) => pid))).toEqual([]);
  };
  // How far the worker has come by then is a matter of time.
  await runAnswered(async () => ({ text: "ok" }));
  const before = await starts();
  await runAnswered(async () => {
    await expect.poll(starts, { timeout: PATIENCE_MS }).toBe(before + 1);
    return { text: "ok" };
  });
});
