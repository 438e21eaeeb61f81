/** Owns: tests of the messages to the user and the model after a failure; the other servers keep working. */
import { rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, test } from "vitest";
import { startRpc } from "../support/pi-run.ts";
import { notices, toolEnds } from "../support/rpc-events.ts";
import { inTurn } from "./in-turn.ts";
import { live, PATIENCE_MS } from "./rpc-support.ts";
import { tellTogether } from "./stories.ts";
import {
  call,
  entryOf,
  fixtureServer,
  home,
  model,
  onCleanup,
  once,
  readLog,
  root,
  SERVERS,
  searchFor,
} from "./support.ts";

const turn = inTurn();

const MALFORMED = '{\n  "mcpServers": {\n    "a": {,}\n  }\n}';

// test/unit/workers/connection/config/files/files.test.ts tests every mistake and its line.
test("a configuration file that cannot be used -> one clear line in /mcp with file, line and column, from the start and after each edit", async () => {
  const pi = await turn({ mcp: MALFORMED });
  const { agentDir, mcpFile } = pi.at;
  const told = async (expected: string): Promise<void> => {
    await expect.poll(() => pi.status(), { timeout: PATIENCE_MS }).toContain(expected);
    const status = await pi.status();
    expect(
      status.split("\n").filter((line) => line.includes(expected)),
      status,
    ).toHaveLength(1);
  };
  await told(`${mcpFile}:3:11: not valid JSON`);
  await pi.at.writeMcp("");
  await told(`${mcpFile}:1:1: the file is empty.`);
  await pi.at.writeMcp("[]");
  await told(`${mcpFile}:1:1: expected an object, found a list`);
  await rm(mcpFile);
  await told(` or ${agentDir}/mcp.json or `);
  expect(pi.rpc.stderr).toBe("");
});

describe("entries, servers and calls that do not work, beside a server that works, in one session", () => {
  const ENTRIES: [name: string, written: unknown, expected: RegExp][] = [
    ["number", 12, /number: expected an object, found a number/],
    ["nothing", {}, /nothing: neither command nor url is given/],
    ["args", { command: "x", args: "y" }, /args\.args: expected a list/],
    ["url", { url: "nowhere" }, /url\.url: expected an http or https URL/],
  ];
  const SERVERS_THAT_FAIL: [name: string, entry: unknown, expected: RegExp][] = [
    [
      "missing",
      { command: "no-such-command-here" },
      /missing: failed .*"no-such-command-here" was not found/,
    ],
    ["exits", fixtureServer("exits.mjs"), /exits: failed .*exited with code 3.*no licence/],
    ["garbage", fixtureServer("garbage.mjs"), /garbage: failed .*exited with code 0/],
  ];

  /** Begins the session. Resolves with the texts of `/mcp`, the log and the search after each server has settled. */
  const learned = once(async () => {
    const web = createServer((_request, response) => {
      response.writeHead(200, { "content-type": "text/html" }).end("<!doctype html><h1>Welcome</h1>");
    });
    await new Promise<void>((resolve) => web.listen(0, "127.0.0.1", resolve));
    onCleanup(async () => web.close());
    const url = `http://127.0.0.1:${(web.address() as AddressInfo).port}/?key=secret`;
    const bad = [...ENTRIES, ...SERVERS_THAT_FAIL].map(([name, entry]) => [name, entry] as const);
    const others = {
      html: { url },
      fs: SERVERS.filesystem,
      dies: fixtureServer("dies-in-call.mjs"),
      rejects: fixtureServer("rejects.mjs"),
    };
    const pi = await turn({ mcp: { mcpServers: { ...Object.fromEntries(bad), ...others } } });
    // A search waits only a limited time for servers that start.
    for (const name of [...SERVERS_THAT_FAIL.map(([failing]) => failing), ...Object.keys(others)]) {
      const settled = new RegExp(`^${name}: (connected|failed)`, "m");
      await expect.poll(() => pi.status(), { timeout: PATIENCE_MS }).toMatch(settled);
    }
    // Before a turn: at its end servers that have failed are tried again.
    const status = (await pi.status()).replaceAll(pi.at.agentDir, "<agent>");
    const [searched] = await pi.prompt(searchFor("read text file"));
    expect(pi.rpc.stderr).toBe("");
    return { pi, status, log: await readLog(pi.at), search: searched?.text ?? "" };
  });

  test.each(ENTRIES)(
    "a wrong entry, %s -> only this entry is lost, one clear line",
    async (_name, _written, expected) => {
      const { status, log } = await learned();
      const lines = status.split("\n").filter((line) => expected.test(line));
      expect(lines, status).toHaveLength(1);
      expect(lines[0]).toMatch(/^<agent>\/mcp\.json:\d+:\d+: /);
      expect(log).toMatch(expected);
      expect(status).toContain("fs: connected");
    },
  );

  test.each(SERVERS_THAT_FAIL)(
    "a server that fails, %s -> one clear line in /mcp and in the log",
    async (name, _entry, expected) => {
      const { status, log, search } = await learned();
      const lines = status.split("\n").filter((line) => expected.test(line));
      expect(lines, status).toHaveLength(1);
      expect(log).toContain(name);
      expect(status).toContain("fs: connected");
      expect(search).toContain("fs__read_text_file");
      expect(search).toMatch(new RegExp(`Not available: (.|\\n)*\\b${name}: `));
    },
  );

  test("an HTTP server that answers HTML -> the line says so, without the key in the URL", async () => {
    const { status, log } = await learned();
    expect(status).toMatch(/^html: failed \(http, tools unknown\): .*web page \(HTML\)/m);
    expect(status).toContain("fs: connected");
    expect(status + log).not.toContain("key=secret");
  });

  const told = tellTogether(
    {
      isError: [searchFor("select:fs__read_text_file"), call("fs__read_text_file", { path: "no-such-file" })],
      dies: [searchFor("select:dies__work"), call("dies__work", {})],
      rejects: [searchFor("select:rejects__work"), call("rejects__work", {})],
      unknown: [searchFor("select:fs__read_text_file,fs__read_text_fiel")],
      refused: [call("fs__read_text_file", { paht: "hi" })],
    },
    async (script) => {
      const { pi } = await learned();
      const before = pi.scripted.requests.length;
      await pi.prompt(...script);
      const requests = pi.scripted.requests.slice(before);
      return { stderr: pi.rpc.stderr, log: await readLog(pi.at), requests };
    },
  );

  test("a call, isError of a real server -> the text ends with the expected parameters", async () => {
    const { answers, stderr } = await told("isError");
    expect(answers[1]).toMatch(/ENOENT|no such file/i);
    expect(answers[1]).toMatch(/Expected parameters: fs__read_text_file\(path: string, .*\)$/);
    expect(stderr).toBe("");
  });

  test("a server that dies during the call -> the error says so, with the stderr, and that the call may have run", async () => {
    const { answers } = await told("dies");
    expect(answers[1]).toMatch(/dies\/work got no answer: it exited with code 7.*out of ink.*may have run/s);
    expect(answers[1]).not.toContain("Expected parameters");
  });

  test("a JSON-RPC error -> the server's own words, then the expected parameters", async () => {
    const { answers } = await told("rejects");
    expect(answers[1]).toMatch(
      /^rejects rejected work: the printer is on fire\n.*Expected parameters: rejects__work\(\)$/s,
    );
  });

  test("unknown names in select -> they are named, the other tools are loaded", async () => {
    const { answers, requests } = await told("unknown");
    expect(answers[0]).toContain("fs__read_text_file(path: string");
    expect(answers[0]).toContain("No such tool: fs__read_text_fiel");
    expect(requests[1]?.toolNames).toContain("fs__read_text_file");
  });

  test("arguments that do not fit the declared schema -> Pi refuses them, and the extension adds the expected parameters", async () => {
    const { answers } = await told("refused");
    expect(answers[0]).toMatch(
      /^Validation failed for tool "fs__read_text_file".*Expected parameters: fs__read_text_file\(path: string, .*\)$/s,
    );
  });
});

describe("a server whose message ends the connection worker", () => {
  test("a message of that server -> Pi lives, the server is named once and not connected again, the healthy server answers", async () => {
    const eager = (name: string) => ({ ...fixtureServer(name), lifecycle: "eager" });
    const scripted = await model([searchFor("work"), call("good__work", {}), { text: "ok" }, { text: "ok" }]);
    const at = await home({
      mcp: { mcpServers: { bad: eager("breaks-worker.mjs"), good: eager("noisy.mjs") } },
    });
    const fault = pathToFileURL(join(root, "test/fixtures/break-on-message.mjs")).href;
    const rpc = await startRpc({
      home: at,
      model: scripted,
      extensions: await entryOf("packed package"),
      env: { NODE_OPTIONS: `--import=${fault}` },
    });
    onCleanup(() => rpc.stop());
    const named = await rpc.waitFor((event) => JSON.stringify(event).includes("MCP server bad: "));
    expect(JSON.stringify(named)).toContain(
      "MCP server bad: the connection worker ended while it handled a message of this server (exit code 9). " +
        "The server is no longer connected by itself. " +
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
    expect(status).toMatch(/^bad: failed .*no longer connected by itself/m);
    expect(status).toContain("good: connected");
    expect(await rpc.stop()).toMatchObject({ code: 0 });
    expect(rpc.stderr).toBe("");
    const workers = (await readLog(at)).match(/\[connection#\d+\] started$/gm) ?? [];
    expect(workers).toHaveLength(2);
  });
});

test("a project's .pi/mcp.json, trusted: true -> it counts", async () => {
  const pi = await turn({
    trusted: true,
    files: { ".pi/mcp.json": { mcpServers: { project: live([], { TOOLS: "read_graph" }) } } },
  });
  await pi.prompt(searchFor("read graph"));
  expect(pi.scripted.requests[1]?.toolNames).toContain("project__read_graph");
});
