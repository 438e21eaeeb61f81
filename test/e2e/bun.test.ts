/**
 * Owns: a test of the main job with Pi on Bun: the packed package, from the search to the end of every process; its hub.
 * @module-tag thorough
 */
import { execFileSync } from "node:child_process";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { processesWithMarker, waitGone } from "../support/processes.ts";
import { extensionErrors } from "../support/rpc-events.ts";
import { live, open } from "./rpc-support.ts";
import { call, entryOf, readLog, SERVERS, searchFor } from "./support.ts";

/** The install script of the package bun puts the program for this machine here. */
const BUN = join(dirname(createRequire(import.meta.url).resolve("bun/package.json")), "bin", "bun.exe");

/** An extension whose command shows the version of Bun that runs Pi. */
const TELLS_RUNTIME = `export default (pi) => pi.registerCommand("runtime", {
  description: "x", handler: async (args, ctx) => ctx.ui.notify(String(process.versions.bun)),
});`;

test("search, load, call, an edit of mcp.json while Pi runs, a hub of shared servers that Pi on Node uses too, and the end -> each works, and no process is left", async () => {
  const { everything } = SERVERS;
  const pi = await open({
    mcp: { mcpServers: { everything, s: live(["one"]) } },
    files: { "runtime.mjs": TELLS_RUNTIME },
    extensions: [await entryOf("packed package"), "runtime.mjs"],
    runtime: BUN,
  });
  await pi.rpc.command("/runtime");
  await pi.notice(new RegExp(`^${execFileSync(BUN, ["--version"], { encoding: "utf8" }).trim()}$`));

  const [searched] = await pi.prompt(searchFor("echo"));
  expect(pi.scripted.requests[0]?.toolNames).toEqual(["read", "bash", "edit", "write", "ToolSearch"]);
  expect(searched?.text).toContain("everything__echo(message: string)");
  expect(pi.scripted.requests[1]?.toolNames).toContain("everything__echo");
  const [echoed] = await pi.prompt(call("everything__echo", { message: "on Bun" }));
  expect(echoed).toMatchObject({ isError: false, text: "Echo: on Bun" });

  await pi.prompt(searchFor("select:s__work"));
  const first = await pi.ask("s__work");
  expect(first.argv).toEqual(["one"]);
  const since = pi.rpc.events.length;
  await pi.at.writeMcp({ mcpServers: { everything, s: live(["two"]), added: live(["three"]) } });
  expect(await pi.notice(/^mcp\.json: /, since)).toBe("mcp.json: ~ s (args), + added (1 tool)");
  const second = await pi.ask("s__work");
  expect(second.argv).toEqual(["two"]);
  expect(await waitGone([first.pid])).toEqual([]);
  await pi.prompt(searchFor("select:added__work"));
  expect((await pi.ask("added__work")).argv).toEqual(["three"]);
  expect(await pi.status()).toMatch(/^MCP: 3 of 3 servers connected/);

  // The hub of shared servers runs as the Pi that starts it, and serves Pi on Node as well.
  const from = pi.rpc.events.length;
  await pi.at.writeMcp({ mcpServers: { both: live(["both"], {}, { shared: true }) } });
  await pi.notice(/^mcp\.json: /, from);
  await pi.prompt(searchFor("select:both__work"));
  const shared = await pi.ask("both__work");
  const hubs = async () =>
    (await processesWithMarker(`HOME=${pi.at.dir}`)).filter(({ command }) => command.includes("hub.js"));
  expect((await hubs())[0]?.command).toContain("bun");
  const onNode = await open({ at: pi.at });
  await onNode.prompt(searchFor("select:both__work"));
  expect(await onNode.ask("both__work")).toEqual(shared);

  expect(extensionErrors(pi.rpc.events)).toEqual([]);
  expect(pi.rpc.strayLines).toEqual([]);
  expect(await pi.rpc.stop()).toMatchObject({ code: 0, signal: null });
  expect(pi.rpc.stderr).toBe("");
  expect(await onNode.ask("both__work")).toEqual(shared);
  expect(await onNode.rpc.stop()).toMatchObject({ code: 0 });
  const [hub, ...more] = await hubs();
  expect(more).toEqual([]);
  process.kill(hub?.pid ?? 0, "SIGTERM");
  expect(await waitGone([hub?.pid ?? 0, shared.pid])).toEqual([]);
  expect(await processesWithMarker(pi.at.dir)).toEqual([]);
  expect(await readLog(pi.at)).not.toMatch(/ error /i);
});
