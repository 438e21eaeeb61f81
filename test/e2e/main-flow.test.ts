/**
 * Owns: tests of the main job in the real Pi: search, load, call. The builds of the extension are a family: each story
 * runs with the packed package, which users have, and under `ALL_ROWS=1` with the raw TypeScript too, whose start costs a
 * second of processor time.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { family } from "../support/long.ts";
import { toolResultTexts } from "../support/model.ts";
import { runPrint, startRpc } from "../support/pi-run.ts";
import { processesWithMarker } from "../support/processes.ts";
import { extensionErrors, notices, toolEnds } from "../support/rpc-events.ts";
import { BUILDS, call, entryOf, home, model, onCleanup, readLog, SERVERS, searchFor } from "./support.ts";

describe("the main flow", () => {
  test.each(family(BUILDS))(
    "%s, the model finds, loads and calls a tool of a real server, also in parallel, in print mode; then RPC, a call with an image, /mcp and a new session -> each call is answered; the next start knows the tools from the snapshot and connects nothing until a call; the image arrives, /mcp shows the state, no old process is left; a project that is not trusted does not count",
    async (build) => {
      const scripted = await model([
        searchFor("echo"),
        call("everything__echo", { message: "through threads" }),
        {
          toolCalls: [
            ...Array.from({ length: 8 }, (_, i) => ({
              name: "everything__echo",
              args: { message: `m${i}` },
            })),
            { name: "everything__get-sum", args: { a: 2, b: 40 } },
          ],
        },
        { text: "finished" },
      ]);
      const everything = { ...SERVERS.everything, directTools: ["get-sum"] };
      const { memory } = SERVERS;
      const at = await home({
        mcp: { mcpServers: { everything, memory } },
        trusted: false,
        files: { ".pi/mcp.json": { mcpServers: { project: SERVERS.memory } } },
      });
      const entry = await entryOf(build);
      const run = await runPrint({ home: at, model: scripted, extensions: entry, prompt: "go" });

      expect(run).toMatchObject({
        code: 0,
        stdout: "finished\n",
        stderr:
          ".pi/mcp.json: Pi does not trust this folder, so its servers are not read. /trust in Pi, or --approve, decides that.\n",
      });
      const [first, second] = scripted.requests;
      const builtIn = ["read", "bash", "edit", "write", "ToolSearch"];
      expect(first?.toolNames).toEqual([...builtIn, "everything__get-sum"]);
      expect(second?.toolNames).toContain("everything__echo");
      const declared = second?.tools.find((tool) => tool.function.name === "everything__echo");
      expect(declared?.function.parameters).toMatchObject({
        type: "object",
        properties: { message: { type: "string" } },
        required: ["message"],
      });
      const last = scripted.requests.at(-1);
      const [searched, echoed, ...sideBySide] = last ? toolResultTexts(last) : [];
      expect(searched).toContain("everything__echo(message: string)");
      expect(await readLog(at)).not.toContain("project connected over");
      // The server's instructions come once, with the answer that loads its first tool, and in no declaration.
      expect(searched).toMatch(
        /\nInstructions of the MCP server everything, in the server's own words .*\n> #/,
      );
      expect(JSON.stringify(last?.messages).match(/Instructions of the MCP server/g)).toHaveLength(1);
      expect(JSON.stringify(last?.tools)).not.toContain("Key Features");
      expect(echoed).toBe("Echo: through threads");
      expect(sideBySide.slice(0, 8)).toEqual(Array.from({ length: 8 }, (_, i) => `Echo: m${i}`));
      expect(sideBySide[8]).toContain("42");
      expect(await processesWithMarker(at.dir)).toEqual([]);
      expect(existsSync(join(at.agentDir, "mcp-cache.json"))).toBe(true);

      const before = (await readLog(at)).length;
      const later = await model([
        // A direct tool of the snapshot is called without a search.
        call("everything__get-sum", { a: 1, b: 2 }),
        searchFor("select:memory__read_graph,everything__get-tiny-image,project__read_graph"),
        call("everything__get-tiny-image", {}),
        { text: "seen" },
        call("everything__get-tiny-image", {}),
      ]);
      const rpc = await startRpc({ home: at, model: later, extensions: entry });
      onCleanup(() => rpc.stop());
      const ends = toolEnds(await rpc.prompt("show me"));
      expect(later.requests[0]?.toolNames).toEqual([...builtIn, "everything__get-sum"]);
      expect(later.requests[2]?.toolNames).toContain("memory__read_graph");
      const [sum, found] = later.requests[2] ? toolResultTexts(later.requests[2]) : [];
      expect(sum).toMatch(/\b3\b[\s\S]*\nInstructions of the MCP server everything, .*\n> #/);
      expect(found).toContain("No such tool: project__read_graph");
      const image = ends.find((end) => end.toolName === "everything__get-tiny-image");
      expect(image?.isError).toBe(false);
      expect(JSON.stringify(image?.result)).toContain('"mimeType":"image/png"');
      const log = (await readLog(at)).slice(before);
      expect(log).toContain("started");
      expect(log.match(/\w+ connected over/g)).toEqual(["everything connected over"]);

      const [status] = notices(await rpc.command("/mcp"));
      expect(status?.message).toMatch(
        /^MCP: 1 of 2 servers connected, \d+ tools known\neverything: connected \(stdio, \d+ tools, \d+ resources, MCP [\d-]+\)\n/,
      );

      await rpc.request({ type: "new_session" });
      const again = toolEnds(await rpc.prompt("again"));
      expect(again.map((end) => end.isError)).toEqual([true]);
      await rpc.command("/mcp");
      const servers = (await processesWithMarker(at.dir)).filter(({ command }) =>
        command.includes("server-everything"),
      );
      expect(servers.length).toBeLessThanOrEqual(1);

      expect(extensionErrors(rpc.events)).toEqual([]);
      expect(rpc.strayLines).toEqual([]);
      const exit = await rpc.stop();
      expect(exit.code).toBe(0);
      expect(await processesWithMarker(at.dir)).toEqual([]);
      expect(rpc.stderr).toBe("");
    },
  );
});
