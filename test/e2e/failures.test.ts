/** What the user and the model are told when something is wrong; the other servers go on working. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, describe, expect, test } from "vitest";
import { toolResultTexts } from "../support/model.ts";
import { unpackTarball } from "../support/package-under-node-modules.ts";
import { runPrint, startRpc } from "../support/pi-run.ts";
import { notices, toolEnds } from "../support/rpc-events.ts";
import {
  call,
  ENTRY,
  entryOf,
  fixtureServer,
  home,
  model,
  onCleanup,
  readLog,
  root,
  SERVERS,
  searchFor,
} from "./support.ts";

afterAll(async () => (await unpackTarball()).dispose());

/** Starts Pi over RPC, learns every server's fate with one search, and answers what `/mcp` says. */
async function statusWith(mcp: unknown): Promise<{ status: string; log: string; search: string }> {
  const scripted = await model([searchFor("read graph"), { text: "ok" }]);
  const at = await home({ mcp });
  const rpc = await startRpc({ home: at, model: scripted, extensions: ENTRY });
  onCleanup(() => rpc.stop());
  const ends = toolEnds(await rpc.prompt("go"));
  const status = notices(await rpc.command("/mcp"))
    .map(({ message }) => message)
    .join("\n");
  await rpc.stop();
  expect(rpc.stderr).toBe("");
  return {
    status: status.replaceAll(at.agentDir, "<agent>"),
    log: await readLog(at),
    search: ends[0]?.text ?? "",
  };
}

describe("bad configuration", () => {
  test.each([
    ["a file that is missing", undefined, " or <agent>/mcp.json or "],
    ["an empty file", "", "<agent>/mcp.json:1:1: the file is empty."],
    ["malformed JSON", '{\n  "mcpServers": {\n    "a": {,}\n  }\n}', "<agent>/mcp.json:3:11: not valid JSON"],
    ["a file that holds no object", "[]", "<agent>/mcp.json:1:1: expected an object, found a list"],
  ])("%s: one clear line with its place", async (_name, mcp, expected) => {
    const { status } = await statusWith(mcp);
    const lines = status.split("\n").filter((line) => line.includes(expected));
    expect(lines, status).toHaveLength(1);
  });

  test.each([
    ["an entry that is no object", 12, /bad: expected an object, found a number/],
    ["an entry without command and url", {}, /bad: neither command nor url is given/],
    ["args that are no list", { command: "x", args: "y" }, /bad\.args: expected a list/],
    ["a URL that is none", { url: "nowhere" }, /bad\.url: expected an http or https URL/],
  ])("%s: costs only itself", async (_name, bad, expected) => {
    const { status, log } = await statusWith({ mcpServers: { bad, memory: SERVERS.memory } });
    const lines = status.split("\n").filter((line) => expected.test(line));
    expect(lines, status).toHaveLength(1);
    expect(lines[0]).toMatch(/^<agent>\/mcp\.json:\d+:\d+: /);
    expect(log).toMatch(expected);
    expect(status).toContain("memory: connected");
  });
});

describe("servers that do not work", () => {
  test.each([
    [
      "a command that does not exist",
      { command: "no-such-command-here" },
      /bad: failed .*"no-such-command-here" was not found/,
    ],
    [
      "a server that exits at once",
      fixtureServer("exits.mjs"),
      /bad: failed .*exited with code 3.*no licence/,
    ],
    ["a server that prints only garbage", fixtureServer("garbage.mjs"), /bad: failed .*exited with code 0/],
  ])("%s: one clear line in /mcp and in the log", async (_name, bad, expected) => {
    const { status, log, search } = await statusWith({ mcpServers: { bad, memory: SERVERS.memory } });
    const lines = status.split("\n").filter((line) => expected.test(line));
    expect(lines, status).toHaveLength(1);
    expect(log).toContain("bad");
    expect(status).toContain("memory: connected");
    expect(search).toContain("memory__read_graph");
    expect(search).toContain("Not available: bad:");
  });

  test("an HTTP server that answers HTML: the line says so", async () => {
    const web = createServer((_request, response) => {
      response.writeHead(200, { "content-type": "text/html" }).end("<!doctype html><h1>Welcome</h1>");
    });
    await new Promise<void>((resolve) => web.listen(0, "127.0.0.1", resolve));
    onCleanup(async () => web.close());
    const url = `http://127.0.0.1:${(web.address() as AddressInfo).port}/?key=secret`;
    const { status, log } = await statusWith({ mcpServers: { bad: { url }, memory: SERVERS.memory } });
    expect(status).toMatch(/^bad: failed \(http, tools unknown\): .*web page \(HTML\)/m);
    expect(status).toContain("memory: connected");
    expect(status + log).not.toContain("key=secret");
  });
});

describe("calls that fail", () => {
  /** Loads a tool, calls it, and answers what the model reads. */
  async function resultOf(
    server: Record<string, unknown>,
    tool: string,
    args: Record<string, unknown>,
    build: "raw TypeScript" | "packed package" = "raw TypeScript",
  ): Promise<string> {
    const scripted = await model([searchFor(`select:${tool}`), call(tool, args), { text: "ok" }]);
    const at = await home({ mcp: { mcpServers: { s: server } } });
    const run = await runPrint({ home: at, model: scripted, extensions: await entryOf(build), prompt: "go" });
    expect(run).toMatchObject({ code: 0, stdout: "ok\n", stderr: "" });
    return scripted.requests[2] ? (toolResultTexts(scripted.requests[2])[1] ?? "") : "";
  }

  test.each(["raw TypeScript", "packed package"] as const)(
    "isError of a real server ends with the expected parameters (%s)",
    async (build) => {
      const text = await resultOf(SERVERS.filesystem, "s__read_text_file", { path: "no-such-file" }, build);
      expect(text).toMatch(/ENOENT|no such file/i);
      expect(text).toMatch(/Expected parameters: s__read_text_file\(path: string, .*\)$/);
    },
  );

  test("a server that dies during the call: says so, with its stderr, and that the call may have run", async () => {
    const text = await resultOf(fixtureServer("dies-in-call.mjs"), "s__work", {});
    expect(text).toMatch(/s\/work got no answer: it exited with code 7.*out of ink.*may have run/s);
    expect(text).toMatch(/Expected parameters: s__work\(\)$/);
  });

  test("a JSON-RPC error: the server's own words, then the expected parameters", async () => {
    const text = await resultOf(fixtureServer("rejects.mjs"), "s__work", {});
    expect(text).toMatch(/^s rejected work: the printer is on fire\n.*Expected parameters: s__work\(\)$/s);
  });

  test("arguments that do not fit the schema are refused by Pi, by the declared schema; we add the parameters", async () => {
    const text = await resultOf(SERVERS.everything, "s__echo", { massage: "hi" });
    expect(text).toMatch(
      /^Validation failed for tool "s__echo".*Expected parameters: s__echo\(message: string\)$/s,
    );
  });

  test.each<[string, Parameters<typeof home>[0], RegExp]>([
    [
      "excluded",
      { mcp: { mcpServers: { s: { ...SERVERS.everything, excludeTools: ["echo"] } } } },
      /^Tool s__echo not found: s offers echo, but the configuration excludes it\. Only the user can allow it: excludeTools, .*mcp\.json\.$/,
    ],
    [
      "of a server that is switched off",
      { mcp: { mcpServers: { s: { ...SERVERS.everything, enabled: false } } } },
      /^Tool s__echo not found: s is disabled in .*mcp\.json\. Set "enabled": true for it there\.$/,
    ],
    [
      "of a server that is not trusted",
      { trusted: true, files: { ".mcp.json": { mcpServers: { s: SERVERS.everything } } } },
      /^Tool s__echo not found: s is not started: nobody can be asked for consent here\. Only the user can allow it\.$/,
    ],
  ])("a tool that is %s, called all the same: says why", async (_name, options, expected) => {
    const scripted = await model([
      searchFor("select:s__echo"),
      call("s__echo", { message: "hi" }),
      { text: "ok" },
    ]);
    const at = await home(options);
    await runPrint({ home: at, model: scripted, extensions: ENTRY, prompt: "go" });
    const [search = "", answer = ""] = scripted.requests[2] ? toolResultTexts(scripted.requests[2]) : [];
    expect(answer).toMatch(expected);
    expect(search).toContain(`s__echo: ${answer.replace("Tool s__echo not found: ", "")}`);
  });

  test("unknown names in select: are named, the others are loaded", async () => {
    const scripted = await model([searchFor("select:s__echo,s__ecko"), { text: "ok" }]);
    const at = await home({ mcp: { mcpServers: { s: SERVERS.everything } } });
    await runPrint({ home: at, model: scripted, extensions: ENTRY, prompt: "go" });
    const answer = scripted.requests[1] ? (toolResultTexts(scripted.requests[1])[0] ?? "") : "";
    expect(answer).toContain("s__echo(message: string)");
    expect(answer).toContain("No such tool: s__ecko");
    expect(scripted.requests[1]?.toolNames).toContain("s__echo");
  });
});

describe("a server at whose message the connection worker ends", () => {
  test.each(["raw TypeScript", "packed package"] as const)(
    "Pi lives, the server is named once and not connected again, the healthy one answers (%s)",
    async (build) => {
      const eager = (name: string) => ({ ...fixtureServer(name), lifecycle: "eager" });
      const scripted = await model([
        searchFor("work"),
        call("good__work", {}),
        { text: "ok" },
        { text: "ok" },
      ]);
      const at = await home({
        mcp: { mcpServers: { bad: eager("breaks-worker.mjs"), good: eager("noisy.mjs") } },
      });
      const fault = pathToFileURL(join(root, "test/fixtures/break-on-message.mjs")).href;
      const rpc = await startRpc({
        home: at,
        model: scripted,
        extensions: await entryOf(build),
        env: { NODE_OPTIONS: `--import=${fault}` },
      });
      onCleanup(() => rpc.stop());
      const named = await rpc.waitFor((event) => JSON.stringify(event).includes("MCP server bad: "));
      expect(JSON.stringify(named)).toContain(
        "MCP server bad: the connection worker ended while it handled a message of bad (exit code 9). " +
          "The server is not connected by itself any more. " +
          "A call of one of its tools or /mcp reconnect bad connects it.",
      );
      const [, answer] = toolEnds(await rpc.prompt("go"));
      expect(answer).toMatchObject({ toolName: "good__work", isError: false, text: "through the noise" });
      await rpc.prompt("again");
      const told = notices(rpc.events).filter(({ message }) => /worker|bad/.test(message));
      expect(told.map(({ level }) => level).sort()).toEqual(["error", "warning"]);
      const status = notices(await rpc.command("/mcp"))
        .map(({ message }) => message)
        .join("\n");
      expect(status).toMatch(/^bad: failed .*not connected by itself/m);
      expect(status).toContain("good: connected");
      expect(await rpc.stop()).toMatchObject({ code: 0 });
      expect(rpc.stderr).toBe("");
      const workers = (await readLog(at)).match(/\[connection#\d+\] started$/gm) ?? [];
      expect(workers).toHaveLength(2);
    },
  );
});

describe("other extensions and projects", () => {
  test("a second copy stays inert and says so once", async () => {
    const scripted = await model([
      searchFor("echo"),
      call("everything__echo", { message: "one" }),
      { text: "ok" },
    ]);
    const at = await home({ mcp: { mcpServers: { everything: SERVERS.everything } } });
    const packed = await entryOf("packed package");
    const run = await runPrint({ home: at, model: scripted, extensions: [ENTRY, packed], prompt: "go" });
    expect(run).toMatchObject({ code: 0, stdout: "ok\n" });
    expect(run.stderr).toBe(
      `pi-mcp-threads is loaded twice: ${ENTRY} is in use, ${packed} does nothing. Remove one.\n`,
    );
    expect(scripted.requests[2] && toolResultTexts(scripted.requests[2])[1]).toBe("Echo: one");
  });

  test("another owner of /mcp: one notice names it", async () => {
    const scripted = await model([{ text: "ok" }]);
    const at = await home({ mcp: { mcpServers: {} } });
    const other = await at.writeFile(
      "other.mjs",
      'export default (pi) => pi.registerCommand("mcp", { description: "x", handler: async () => {} });',
    );
    const run = await runPrint({ home: at, model: scripted, extensions: [ENTRY, other], prompt: "go" });
    expect(run.code).toBe(0);
    expect(run.stderr.split("\n").filter((line) => line.includes(other))).toHaveLength(1);
    expect(run.stderr).toContain("also provides /mcp");
  });

  test.each([
    [true, "project__read_graph"],
    [false, undefined],
  ])("a project's .pi/mcp.json counts only where Pi trusts it: trusted %s", async (trusted, expected) => {
    const scripted = await model([searchFor("read graph"), { text: "ok" }]);
    const at = await home({
      trusted,
      files: { ".pi/mcp.json": { mcpServers: { project: SERVERS.memory } } },
    });
    await runPrint({ home: at, model: scripted, extensions: ENTRY, prompt: "go" });
    const loaded = scripted.requests[1]?.toolNames.find((name) => name.startsWith("project__read_graph"));
    expect(loaded).toBe(expected);
    if (!trusted) expect(await readLog(at)).not.toContain(join("server-memory"));
  });
});
