/**
 * Owns: `pi-mcp-threads serve` over stdio: what an agent gets, in both eras of the protocol, with the SDK's client and with one that
 * writes its own lines. serve-http.test.ts has HTTP.
 */
import { once as onceOf } from "node:events";
import { existsSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { ElicitRequest, ElicitResult } from "@modelcontextprotocol/sdk/types.js";
import { beforeAll, describe, expect, test } from "vitest";
import { once } from "../e2e/support.ts";
import { forWholeFile } from "../support/cleanup.ts";
import { makeHome } from "../support/make-home.ts";
import type { PiHome } from "../support/pi-home.ts";
import { processesWithMarker } from "../support/processes.ts";
import { type Agent, greet, modern, rawAgent, sdkAgent } from "./serve-support.ts";
import { CLI, fixtureServer, runCli } from "./support.ts";

const TOOLS = [
  {
    name: "look_up",
    title: "Look up",
    description: "Finds a person in the address book.",
    inputSchema: {
      type: "object",
      properties: { name: { type: "string", pattern: "^(?i)[a-z" }, x: { $ref: "#/$defs/none" } },
      "x-own": 1,
    },
    outputSchema: { type: "object", properties: { age: { type: "number" } } },
    annotations: { readOnlyHint: true },
  },
];

const ASK = {
  message: "Which one?",
  requestedSchema: {
    type: "object",
    properties: {
      name: { type: "string", title: "Your name", minLength: 2 },
      size: { type: "string", enum: ["s", "m"], enumNames: ["Small", "Medium"] },
      tags: { type: "array", items: { type: "string", enum: ["a", "b", "c"] } },
      many: { type: "integer", minimum: 1 },
      sure: { type: "boolean", default: true },
    },
    required: ["name"],
  },
};

let home: PiHome;
beforeAll(async () => {
  home = await forWholeFile(() => makeHome());
  await home.writeMcp({
    mcpServers: {
      people: { ...fixtureServer("listed.mjs"), env: { TOOLS: JSON.stringify(TOOLS) } },
      results: fixtureServer("results.mjs"),
      asks: fixtureServer("asks-user.mjs"),
      samples: { ...fixtureServer("asks-user.mjs"), sampling: true },
      waits: fixtureServer("waits.mjs"),
      gated: { ...fixtureServer("shows.mjs"), approve: "always" },
      denied: { ...fixtureServer("shows.mjs"), approve: { "*": "deny" } },
      off: { ...fixtureServer("shows.mjs"), enabled: false },
    },
  });
  // The tools of all servers are known, as they are after a first session.
  await runCli(home, ["list"]);
});

/** For all tests of a client that shows no questions. */
const silent = once(() => sdkAgent(home));

let answers: (asked: ElicitRequest["params"]) => ElicitResult;
const questioned = once(() => sdkAgent(home, [], (asked) => answers(asked)));
/** The client of all tests that show questions: from now on `answer` answers them. */
function asking(answer: typeof answers): Promise<Agent> {
  answers = answer;
  return questioned();
}

/** Speaks 2026-07-28, whose requests know nothing of each other. */
const stateless = once(async () => rawAgent(home));

describe("the SDK's client", () => {
  test("a search -> its tools are listed as their servers list them, and can be called by their own names", async () => {
    const agent = await silent();
    expect(await agent.names()).toEqual(["ToolSearch", "call"]);
    const changed = agent.listChanged();
    const { text } = await agent.call("ToolSearch", { query: "find a person in the address book" });
    await changed;
    expect(text).toContain("people__look_up(");
    const { tools } = await agent.client.listTools();
    expect(tools.map(({ name }) => name)).toContain("people__look_up");
    const found = tools.find(({ name }) => name === "people__look_up");
    const { name: _name, ...declared } = TOOLS[0] ?? { name: "" };
    expect(found).toEqual({ name: "people__look_up", ...declared });
    expect(await agent.call("call", { tool: "people.look_up", arguments: { name: "Ann" } })).toEqual({
      text: 'look_up {"name":"Ann"}',
      isError: false,
    });
    await agent.client.ping();
  });

  test("a result -> its content, structured content and errors come as the server sent them", async () => {
    const agent = await silent();
    const result = {
      content: [
        { type: "text", text: "a\u001b[31m\u202e" },
        { type: "image", data: "aGk=", mimeType: "image/png" },
        { type: "audio", data: "aGk=", mimeType: "audio/wav" },
        { type: "resource", resource: { uri: "file:///a", text: "b" } },
        { type: "resource_link", uri: "file:///c", name: "c" },
      ],
      structuredContent: { a: [1, { b: null }] },
      isError: true,
    };
    const answer = await agent.client.callTool({ name: "results__answer", arguments: result });
    expect(answer).toEqual(result);
    const failed = await agent.call("results__fail", { code: -32022, words: 3 });
    expect(failed.isError).toBe(true);
    expect(failed.text).toContain("no: ");
    const gone = await agent.call("results__exit");
    expect(gone.isError).toBe(true);
    expect(await agent.call("call", { tool: "results__anwser" })).toMatchObject({
      isError: true,
      text: expect.stringContaining("Nearest: results__answer"),
    });
    expect((await agent.call("call", { tool: "off__show" })).text).toContain("off");
    expect((await agent.call("call", { tool: "call" })).isError).toBe(true);
  });

  test("a question of a server -> the client shows it, and the server gets its answer", async () => {
    const seen: unknown[] = [];
    const agent = await asking((params) => {
      seen.push(params);
      return {
        action: "accept",
        content: { name: "Ann", size: "m", tags: ["c", "a"], many: 3, sure: false },
      };
    });
    const { text } = await agent.call("asks__ask", { ask: ASK });
    expect(JSON.parse(text)).toEqual([
      { action: "accept", content: { name: "Ann", size: "m", tags: ["c", "a"], many: 3, sure: false } },
    ]);
    expect(seen).toMatchObject([
      {
        message: "The MCP server asks asks: Which one?",
        requestedSchema: {
          required: ["name"],
          properties: {
            name: { type: "string", title: "Your name", minLength: 2 },
            size: { enum: ["s", "m"], enumNames: ["Small", "Medium"] },
            tags: { type: "array", items: { enum: ["a", "b", "c"] } },
            many: { type: "integer", minimum: 1 },
            sure: { type: "boolean", default: true },
          },
        },
      },
    ]);
    const page = { mode: "url", message: "Sign in", url: "https://example.com/in", elicitationId: "1" };
    const opened = await agent.call("asks__ask", { ask: page });
    expect(JSON.parse(opened.text)).toEqual([{ action: "accept" }]);
    expect(seen.at(-1)).toMatchObject({ mode: "url", url: "https://example.com/in" });
  });

  test("an answer that does not fit, or none -> the server gets a cancel", async () => {
    let content: Record<string, string> = { name: "Ann", size: "Huge" };
    const agent = await asking(() => {
      if (content.name === "throw") throw new Error("no screen");
      return { action: "accept", content };
    });
    expect(JSON.parse((await agent.call("asks__ask", { ask: ASK })).text)).toEqual([{ action: "cancel" }]);
    content = { name: "throw" };
    expect(JSON.parse((await agent.call("asks__ask", { ask: ASK })).text)).toEqual([{ action: "cancel" }]);
  });

  test("a client without questions -> the server is declined, and a call that needs a yes is not made", async () => {
    const agent = await silent();
    expect(JSON.parse((await agent.call("asks__ask", { ask: ASK })).text)).toEqual([{ action: "decline" }]);
    const gated = await agent.call("gated__show", { text: "done" });
    expect(gated).toMatchObject({ isError: true, text: expect.stringContaining("shows no questions") });
  });

  test("a server that wants a model -> it gets none, as often as it asks, and its questions reach the client all the same", async () => {
    const agent = await asking(() => ({ action: "accept", content: { name: "Ann" } }));
    const prompt = { messages: [{ role: "user", content: { type: "text", text: "Hi?" } }], maxTokens: 9 };
    const before = { ask: prompt, method: "sampling/createMessage", times: 4 };
    const { text } = await agent.call("samples__ask", { ask: ASK, before });
    const none = { code: -32_603, message: "The model gave no answer." };
    expect(JSON.parse(text)).toEqual([
      none,
      none,
      none,
      none,
      { action: "accept", content: { name: "Ann" } },
    ]);
  });

  test("a call that a rule asks about -> the client asks; a yes counts once, or until serve ends; deny stays deny", async () => {
    const asked: string[] = [];
    const given: ElicitResult[] = [
      { action: "decline" },
      { action: "accept", content: {} },
      { action: "accept", content: { how_long: "until serve ends" } },
    ];
    const agent = await asking(({ message }) => {
      asked.push(message);
      return given.shift() ?? { action: "cancel" };
    });
    expect((await agent.call("gated__show", { text: "one" })).isError).toBe(true);
    for (const text of ["two", "three", "four"])
      expect(await agent.call("gated__show", { text })).toEqual({ text, isError: false });
    expect(asked).toHaveLength(3);
    expect(asked[0]).toBe('Run show of the MCP server gated?\ntext: "one"');
    expect((await agent.call("denied__show", { text: "x" })).isError).toBe(true);
    expect(asked).toHaveLength(3);
  });

  test("progress comes, and a cancelled call ends at the server", async () => {
    const agent = await silent();
    const arrived = join(home.dir, "arrived");
    const file = join(home.dir, "never");
    const call = new AbortController();
    const waits = agent.client.callTool({ name: "waits__work", arguments: { file, arrived } }, undefined, {
      signal: call.signal,
    });
    await expect.poll(() => existsSync(arrived)).toBe(true);
    call.abort();
    await expect(waits).rejects.toThrow();
    const steps: number[] = [];
    const done = agent.client.callTool({ name: "results__steps", arguments: {} }, undefined, {
      onprogress: ({ progress }) => void steps.push(progress),
    });
    await expect.poll(() => steps.length).toBeGreaterThan(0);
    await agent.call("results__end");
    await done;
    expect(steps).toEqual([...steps].sort((a, b) => a - b));
  });
});

describe("the configuration", () => {
  test("--mcp-servers -> these alone are found and called; after the end of stdin none of them is left", {
    tags: "thorough",
  }, async () => {
    const own = await makeHome();
    await writeFile(own.mcpFile, await readFile(home.mcpFile));
    const agent = await sdkAgent(own, ["--mcp-servers", "people,gated"]);
    const { text } = await agent.call("ToolSearch", { query: "select:results__answer" });
    expect(text).toContain("No such tool: results__answer");
    expect((await agent.call("results__answer")).isError).toBe(true);
    expect((await agent.call("people__look_up")).isError).toBe(false);
    expect((await processesWithMarker(own.dir)).length).toBeGreaterThan(1);
    await agent.client.close();
    await expect.poll(() => processesWithMarker(own.dir)).toEqual([]);
  });

  test.each(["{", ""])(
    "mcp.json holds %j at the start, and is mended, and edited -> its server is found, and the list changes",
    { tags: "thorough" },
    async (broken) => {
      const own = await makeHome({ mcp: broken });
      const agent = await sdkAgent(own);
      await agent.names();
      const listed = { ...fixtureServer("listed.mjs"), env: { TOOLS: JSON.stringify(TOOLS) } };
      const text = async () => (await agent.call("ToolSearch", { query: "person address book" })).text;
      await own.writeMcp({ mcpServers: { one: listed } });
      await expect.poll(text).toContain("one__look_up(");
      expect(await agent.names()).toContain("one__look_up");
      await own.writeMcp({ mcpServers: { two: listed } });
      await expect.poll(text).toContain("two__look_up(");
      await expect.poll(agent.names).toEqual(["ToolSearch", "call", "two__look_up"]);
      await own.writeMcp({ mcpServers: {} });
      await expect.poll(agent.names).toEqual(["ToolSearch", "call"]);
    },
  );

  test("a server of the project without a yes -> it does not start, and the person and the agent are told", async () => {
    const own = await makeHome({
      trusted: true,
      files: { ".mcp.json": { mcpServers: { theirs: fixtureServer("shows.mjs") } } },
    });
    const agent = await sdkAgent(own);
    const { text } = await agent.call("ToolSearch", { query: "show" });
    expect(text).toContain("Waiting for the user's consent, which only the user can give: theirs");
    expect((await agent.call("theirs__show")).isError).toBe(true);
    expect(agent.stderr()).toContain("theirs waits for your consent");
    expect(await processesWithMarker(`shows.mjs\u0000${own.dir}`)).toEqual([]);
  });

  test("--yes, --json, a port without --http -> a mistake of usage", async () => {
    for (const [args, words] of [
      [["serve", "--yes"], "serve takes no --yes"],
      [["serve", "--json"], "serve takes no --json"],
      [["serve", "8080"], "serve takes a port with --http only"],
      [["serve", "--token-file", "x"], "--token-file needs --http"],
      [["serve", "--http", "99999"], "is no port"],
    ] as const) {
      const { code, stderr, stdout } = await runCli(home, args);
      expect([code, `${stderr}${stdout}`]).toEqual([2, expect.stringContaining(words)]);
    }
  });
});

describe("an agent that writes its own lines", () => {
  test("2025-11-25: probe, initialize, list, call, list_changed, ping, cancel -> each line is the protocol's", async () => {
    const agent = rawAgent(home);
    const probe = await agent.ask("server/discover", modern());
    expect(probe.result?.supportedVersions).toEqual(["2026-07-28"]);
    const { result } = await greet(agent);
    expect(result).toMatchObject({
      protocolVersion: "2025-11-25",
      serverInfo: { name: "pi-mcp-threads" },
      capabilities: { tools: { listChanged: true } },
      instructions: expect.stringContaining("ToolSearch"),
    });
    expect((await agent.ask("ping")).result).toEqual({});
    await agent.ask("tools/call", { name: "ToolSearch", arguments: { query: "select:people__look_up" } });
    await agent.told("notifications/tools/list_changed");
    const listed = await agent.ask("tools/list");
    expect(JSON.stringify(listed.result)).toContain('"people__look_up"');
    const open = agent.begin("tools/call", {
      name: "waits__work",
      arguments: { file: join(home.dir, "never") },
    });
    agent.send({ method: "notifications/cancelled", params: { requestId: open } });
    expect((await agent.ask("ping")).result).toEqual({});
    expect((await agent.ask("prompts/list")).error?.code).toBe(-32601);
    expect((await agent.ask("tools/call", { name: 3 })).error?.code).toBe(-32602);
    agent.child.stdin?.write("not json\n\n[]\n");
    expect((await agent.ask("ping")).result).toEqual({});
    for (const line of agent.lines) expect(JSON.parse(line)).toMatchObject({ jsonrpc: "2.0" });
    agent.child.stdin?.end();
    expect(await onceOf(agent.child, "exit")).toEqual([0, null]);
  });

  test("a line that is longer than the limit -> serve ends, though its client keeps stdin open", async () => {
    const { child } = rawAgent(home);
    const exit = onceOf(child, "exit");
    // The pipe breaks when the process ends.
    child.stdin?.on("error", () => undefined);
    child.stdin?.write("x".repeat(11 * 1024 * 1024));
    expect(await exit).toEqual([0, null]);
  });

  test("two calls of a server, the older one is cancelled while it shows the other's question -> the other one is asked", {
    tags: "thorough",
  }, async () => {
    const agent = rawAgent(home);
    await greet(agent, { elicitation: { form: {} } });
    const older = agent.begin("tools/call", {
      name: "asks__ask",
      arguments: { file: join(home.dir, "never"), ask: ASK },
    });
    const newer = agent.begin("tools/call", { name: "asks__ask", arguments: { ask: ASK } });
    const asked = await agent.told("elicitation/create");
    agent.send({ method: "notifications/cancelled", params: { requestId: older } });
    const again = await agent.told("elicitation/create", asked.id);
    expect((await agent.told("notifications/cancelled")).params?.requestId).toBe(asked.id);
    agent.send({ id: again.id, result: { action: "accept", content: { name: "Ann" } } } as never);
    const { content } = (await agent.answerOf(newer)).result as { content: { text: string }[] };
    expect(JSON.parse(content[0]?.text ?? "")).toEqual([{ action: "accept", content: { name: "Ann" } }]);
  });

  test("2026-07-28: a call that needs an answer ends with the question, and goes on where the client calls again", async () => {
    const agent = await stateless();
    const shows = { elicitation: { form: {} } };
    const call = { name: "gated__show", arguments: { text: "done" } };
    const { result } = await agent.ask("tools/call", modern(call, shows));
    expect(result).toMatchObject({ resultType: "input_required", requestState: expect.any(String) });
    const { inputRequests = {}, requestState } = result as {
      inputRequests?: Record<string, { method: string }>;
      requestState: string;
    };
    const [[key = "", { method = "" } = {}] = []] = Object.entries(inputRequests);
    expect(method).toBe("elicitation/create");
    // The answer to another question counts for none.
    const other = { ...call, requestState, inputResponses: { other: { action: "accept", content: {} } } };
    expect((await agent.ask("tools/call", modern(other, shows))).result).toMatchObject({
      resultType: "input_required",
      inputRequests: { [key]: { method } },
    });
    const yes = { ...call, requestState, inputResponses: { [key]: { action: "accept", content: {} } } };
    expect((await agent.ask("tools/call", modern(yes, shows))).result).toMatchObject({
      resultType: "complete",
      content: [{ type: "text", text: "done" }],
    });
    // The call is over: its id opens nothing.
    expect((await agent.ask("tools/call", modern(yes, shows))).error?.code).toBe(-32602);
    const listed = await agent.ask("tools/list", modern());
    expect(listed.result).toMatchObject({ resultType: "complete", cacheScope: "private" });
  });

  test("2026-07-28: a call ends while its client shows the question -> the client that comes back gets its result", async () => {
    const agent = await stateless();
    const shows = { elicitation: { form: {} } };
    const call = { name: "asks__ask", arguments: { ask: ASK } };
    const { result } = await agent.ask("tools/call", modern(call, shows));
    expect(result).toMatchObject({ resultType: "input_required" });
    const { inputRequests = {}, requestState } = result as {
      inputRequests?: Record<string, unknown>;
      requestState: string;
    };
    await agent.ask("tools/call", modern({ name: "asks__seen", arguments: { takesBack: true } }, shows));
    const [key = ""] = Object.keys(inputRequests);
    const late = { action: "accept", content: { name: "Ann" } };
    const again = { ...call, requestState, inputResponses: { [key]: late } };
    expect((await agent.ask("tools/call", modern(again, shows))).result).toMatchObject({
      resultType: "complete",
      content: [{ type: "text", text: '["taken back"]' }],
    });
    expect((await agent.ask("tools/call", modern(again, shows))).error?.code).toBe(-32602);
  });

  test("2026-07-28: a search changes no list, and its answer says how to call what it has found", async () => {
    const agent = await stateless();
    const called = async (name: string, args: object): Promise<string> => {
      const { result } = await agent.ask("tools/call", modern({ name, arguments: args }));
      return (result as { content: { text: string }[] }).content.map(({ text }) => text).join("\n");
    };
    const listed = async (): Promise<string[]> => {
      const { result } = await agent.ask("tools/list", modern());
      const { tools } = result as { tools: { name: string; description: string }[] };
      expect(tools[0]?.description).toMatch(/^Finds MCP tools\. What is found is called with call\.\n/);
      return tools.map(({ name }) => name);
    };
    expect(await called("ToolSearch", { query: "select:people__look_up" })).toMatch(
      /^Found\. Call them with call, by their names and these parameters:\n- people__look_up\(/,
    );
    expect(await listed()).toEqual(["ToolSearch", "call"]);
    const text = 'look_up {"name":"Ann"}';
    expect(await called("call", { tool: "people__look_up", arguments: { name: "Ann" } })).toBe(text);
    expect(await called("people__look_up", { name: "Ann" })).toBe(text);
  });
});

test("a result with keys of the protocol's own -> they do not reach the client", async () => {
  const agent = await stateless();
  const trap = {
    resultType: "input_required",
    requestState: "x",
    inputRequests: { a: { method: "sampling/createMessage", params: {} } },
    content: [{ type: "text", text: "hi" }, { type: "odd", a: 1 }, { type: "image", data: 7 }, 3],
    _meta: { "io.modelcontextprotocol/serverInfo": { name: "other" } },
  };
  const capabilities = { sampling: {}, elicitation: {} };
  const call = { name: "results__answer", arguments: trap };
  const { result } = await agent.ask("tools/call", modern(call, capabilities));
  expect(result).toMatchObject({
    resultType: "complete",
    content: [
      { type: "text", text: "hi" },
      { type: "text", text: '{"type":"odd","a":1}' },
      { type: "text", text: '{"type":"image","data":7}' },
      { type: "text", text: "3" },
    ],
    _meta: { "io.modelcontextprotocol/serverInfo": { name: "pi-mcp-threads" } },
  });
  expect(result).not.toHaveProperty("inputRequests");
});

/** With all variables, with none of its own choice, and in one process for all sessions. */
const ITSELF = [{}, { inheritEnv: false }, { shared: true }];

test("serve in a file that it reads itself, however its entry stands there -> it is not started again; the reason is told", async () => {
  const own = await makeHome();
  const pi = { command: process.execPath, args: [CLI, "serve"], lifecycle: "eager" };
  const entries = ITSELF.map((more, at) => [`pi${at}`, { ...pi, ...more }] as const);
  await own.writeMcp({ mcpServers: { ...Object.fromEntries(entries), shows: fixtureServer("shows.mjs") } });
  const agent = await sdkAgent(own);
  for (const [server, entry] of entries) {
    const { text } = await agent.call("ToolSearch", { query: "show", server });
    expect([entry, text]).toEqual([entry, expect.stringContaining("serve runs below another serve")]);
  }
  expect(await agent.call("call", { tool: "shows.show", arguments: {} })).toMatchObject({ isError: false });
});
