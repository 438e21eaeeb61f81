/** Owns: tests of the messages to the user and the model after a failure; the other servers keep working. */
import { rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, test } from "vitest";
import { type ModelRequest, toolResultTexts } from "../support/model.ts";
import { runPrint, startRpc } from "../support/pi-run.ts";
import { notices, toolEnds } from "../support/rpc-events.ts";
import { inTurn } from "./in-turn.ts";
import { PATIENCE_MS } from "./rpc-support.ts";
import { inPrintMode, inSession, tellTogether } from "./stories.ts";
import {
  call,
  ENTRY,
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

describe("entries and servers that do not work, beside a server that works", () => {
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

  /** Resolves with the texts of `/mcp`, the log and the search after each server has connected or failed. */
  const learned = once(async () => {
    const web = createServer((_request, response) => {
      response.writeHead(200, { "content-type": "text/html" }).end("<!doctype html><h1>Welcome</h1>");
    });
    await new Promise<void>((resolve) => web.listen(0, "127.0.0.1", resolve));
    onCleanup(async () => web.close());
    const url = `http://127.0.0.1:${(web.address() as AddressInfo).port}/?key=secret`;
    const bad = [...ENTRIES, ...SERVERS_THAT_FAIL].map(([name, entry]) => [name, entry] as const);
    const mcpServers = { ...Object.fromEntries(bad), html: { url }, memory: SERVERS.memory };
    const pi = await turn({ mcp: { mcpServers } });
    const [searched] = await pi.prompt(searchFor("read graph"));
    const status = (await pi.status()).replaceAll(pi.at.agentDir, "<agent>");
    expect(pi.rpc.stderr).toBe("");
    return { status, log: await readLog(pi.at), search: searched?.text ?? "" };
  });

  test.each(ENTRIES)(
    "a wrong entry, %s -> only this entry is lost, one clear line",
    async (_name, _written, expected) => {
      const { status, log } = await learned();
      const lines = status.split("\n").filter((line) => expected.test(line));
      expect(lines, status).toHaveLength(1);
      expect(lines[0]).toMatch(/^<agent>\/mcp\.json:\d+:\d+: /);
      expect(log).toMatch(expected);
      expect(status).toContain("memory: connected");
    },
  );

  test.each(SERVERS_THAT_FAIL)(
    "a server that fails, %s -> one clear line in /mcp and in the log",
    async (name, _entry, expected) => {
      const { status, log, search } = await learned();
      const lines = status.split("\n").filter((line) => expected.test(line));
      expect(lines, status).toHaveLength(1);
      expect(log).toContain(name);
      expect(status).toContain("memory: connected");
      expect(search).toContain("memory__read_graph");
      expect(search).toMatch(new RegExp(`Not available: (.|\\n)*\\b${name}: `));
    },
  );

  test("an HTTP server that answers HTML -> the line says so, without the key in the URL", async () => {
    const { status, log } = await learned();
    expect(status).toMatch(/^html: failed \(http, tools unknown\): .*web page \(HTML\)/m);
    expect(status).toContain("memory: connected");
    expect(status + log).not.toContain("key=secret");
  });
});

describe("calls that fail, in one session", () => {
  const told = tellTogether(
    {
      isError: [searchFor("select:fs__read_text_file"), call("fs__read_text_file", { path: "no-such-file" })],
      dies: [searchFor("select:dies__work"), call("dies__work", {})],
      rejects: [searchFor("select:rejects__work"), call("rejects__work", {})],
      unknown: [searchFor("select:real__echo,real__ecko")],
      refused: [call("real__echo", { massage: "hi" })],
    },
    inSession(turn, {
      mcp: {
        mcpServers: {
          fs: SERVERS.filesystem,
          dies: fixtureServer("dies-in-call.mjs"),
          rejects: fixtureServer("rejects.mjs"),
          real: SERVERS.everything,
        },
      },
    }),
  );

  test("isError of a real server -> the text ends with the expected parameters", async () => {
    const { answers, stderr } = await told("isError");
    expect(answers[1]).toMatch(/ENOENT|no such file/i);
    expect(answers[1]).toMatch(/Expected parameters: fs__read_text_file\(path: string, .*\)$/);
    expect(stderr).toBe("");
  });

  test("a server that dies during the call -> the error says so, with the stderr, and that the call may have run", async () => {
    const { answers } = await told("dies");
    expect(answers[1]).toMatch(/dies\/work got no answer: it exited with code 7.*out of ink.*may have run/s);
    expect(answers[1]).toMatch(/Expected parameters: dies__work\(\)$/);
  });

  test("a JSON-RPC error -> the server's own words, then the expected parameters", async () => {
    const { answers } = await told("rejects");
    expect(answers[1]).toMatch(
      /^rejects rejected work: the printer is on fire\n.*Expected parameters: rejects__work\(\)$/s,
    );
  });

  test("unknown names in select -> they are named, the other tools are loaded", async () => {
    const { answers, requests } = await told("unknown");
    expect(answers[0]).toContain("real__echo(message: string)");
    expect(answers[0]).toContain("No such tool: real__ecko");
    expect(requests[1]?.toolNames).toContain("real__echo");
  });

  test("arguments that do not fit the declared schema -> Pi refuses them, and the extension adds the expected parameters", async () => {
    const { answers } = await told("refused");
    expect(answers[0]).toMatch(
      /^Validation failed for tool "real__echo".*Expected parameters: real__echo\(message: string\)$/s,
    );
  });
});

describe("a call of a tool that is not available", () => {
  const ROWS: [server: string, why: string, expected: RegExp][] = [
    [
      "less",
      "excluded",
      /^Tool less__echo not found: less offers echo, but the configuration excludes it\. Only the user can allow it: excludeTools, .*mcp\.json\.$/,
    ],
    [
      "off",
      "of a server that is switched off",
      /^Tool off__echo not found: off is disabled in .*mcp\.json\. Set "enabled": true for it there\.$/,
    ],
    [
      "theirs",
      "of a server that is not trusted",
      /^Tool theirs__echo not found: theirs is not started: nobody can be asked for consent here\. Only the user can allow it\.$/,
    ],
  ];
  const told = tellTogether(
    Object.fromEntries(
      ROWS.map(([server]) => [
        server,
        [searchFor(`select:${server}__echo`), call(`${server}__echo`, { message: "hi" })],
      ]),
    ),
    // Over RPC, somebody could be asked for consent.
    inPrintMode({
      trusted: true,
      files: { ".mcp.json": { mcpServers: { theirs: SERVERS.everything } } },
      mcp: {
        mcpServers: {
          less: { ...SERVERS.everything, excludeTools: ["echo"] },
          off: { ...SERVERS.everything, enabled: false },
        },
      },
    }),
  );

  test.each(ROWS)("%s__echo, %s -> the answer and the search say why", async (server, _why, expected) => {
    const [search = "", answer = ""] = (await told(server)).answers;
    expect(answer).toMatch(expected);
    expect(search).toContain(`${server}__echo: ${answer.replace(`Tool ${server}__echo not found: `, "")}`);
  });

  test("print mode, a project's server -> refused with one line on stderr, no server runs", async () => {
    const { stderr, log } = await told("theirs");
    expect(stderr).toBe(
      "MCP server theirs of this project is not started: nobody can be asked for consent here.\n",
    );
    expect(log).not.toContain("theirs connected over");
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
  });
});

describe("other extensions and projects", () => {
  const memoryOfProject = { ".pi/mcp.json": { mcpServers: { project: SERVERS.memory } } };
  /** Resolves with the name of the project's tool that a search finds. */
  const found = (requests: readonly ModelRequest[]): string | undefined =>
    requests[1]?.toolNames.find((name) => name.startsWith("project__read_graph"));

  test("print mode, a second copy of the extension, another extension with /mcp, a project that is not trusted -> one line for each extension, the second copy does nothing, the project's .pi/mcp.json does not count", async () => {
    const scripted = await model([
      searchFor("read graph"),
      searchFor("echo"),
      call("everything__echo", { message: "one" }),
    ]);
    const at = await home({
      mcp: { mcpServers: { everything: SERVERS.everything } },
      trusted: false,
      files: memoryOfProject,
    });
    const packed = await entryOf("packed package");
    const other = await at.writeFile(
      "other.mjs",
      'export default (pi) => pi.registerCommand("mcp", { description: "x", handler: async () => {} });',
    );
    const run = await runPrint({
      home: at,
      model: scripted,
      extensions: [ENTRY, packed, other],
      prompt: "go",
    });
    expect(run).toMatchObject({ code: 0, stdout: "done\n" });
    const lines = run.stderr.trimEnd().split("\n");
    expect(lines).toHaveLength(2);
    expect(lines).toContain(
      `pi-mcp-threads is loaded twice: ${ENTRY} is in use, ${packed} does nothing. Remove one.`,
    );
    const [told, ...others] = lines.filter((line) => line.includes(other));
    expect(told).toContain("also provides /mcp");
    expect(others).toEqual([]);
    expect(scripted.requests[3] && toolResultTexts(scripted.requests[3])[2]).toBe("Echo: one");
    expect(found(scripted.requests)).toBeUndefined();
    expect(await readLog(at)).not.toContain("server-memory");
  });

  test("a second copy over RPC, and new sessions -> it says so once", async () => {
    const at = await home({ mcp: { mcpServers: {} } });
    const packed = await entryOf("packed package");
    const rpc = await startRpc({ home: at, model: await model([]), extensions: [ENTRY, packed] });
    onCleanup(() => rpc.stop());
    await rpc.ready();
    for (let session = 0; session < 2; session++) {
      await rpc.request({ type: "new_session" });
      await rpc.ready();
    }
    const told = notices(rpc.events).filter(({ message }) => message.includes("is loaded twice"));
    expect(told).toHaveLength(1);
  });

  test("a project's .pi/mcp.json, trusted: true -> it counts", async () => {
    const pi = await turn({ trusted: true, files: memoryOfProject });
    await pi.prompt(searchFor("read graph"));
    expect(found(pi.scripted.requests)).toBe("project__read_graph");
  });
});
