import { describe, expect, it, test } from "vitest";
import type { NestedOutcome, PiToolContext } from "../../../src/pi/api.ts";
import type { WireError } from "../../../src/shared/protocol/errors.ts";
import type { ServerStatus } from "../../../src/shared/protocol/session.ts";
import { estimateTokens, proxyDescription } from "../../../src/shared/text/search-tool.ts";
import { createProxyTool } from "../../../src/tools/proxy.ts";
import { createPatternMatcher } from "../../../workers/connection/session/match-pattern.ts";
import { makeCatalog } from "../make-catalog.ts";
import { makeStatus } from "../server-status.ts";
import { toolHost } from "./tool-host.ts";

const patterns = createPatternMatcher();

const READ = { type: "object", properties: { path: { type: "string" } }, required: ["path"] };
const CATALOG = makeCatalog([
  {
    name: "fs",
    tools: [
      { tool: "read_file", description: "Reads a file. Nothing else.", schema: READ },
      { tool: "write_file", description: "Writes a file." },
    ],
  },
  {
    name: "many",
    tools: Array.from({ length: 320 }, (_, i) => ({ tool: `thing${i}`, description: "A thing." })),
  },
  { name: "web", tools: [{ tool: "search", description: "Finds pages." }] },
  { name: "papers", tools: [{ tool: "search", description: "Finds articles." }] },
]);
const SERVERS = ["fs", "many", "web", "papers"].map((name) => makeStatus(name));

interface World {
  servers?: ServerStatus[];
  pending?: string[];
  outcome?: "failed" | "did not run";
  /** Of `--tools`. */
  allows?: boolean;
  connect?: (server: string) => Promise<void>;
  /** The worker's reason for an unavailable tool. */
  missing?: WireError;
}

interface Answer {
  text: string;
  isError: boolean;
  /** What Pi was asked to run. */
  ran: { name: string; args: unknown }[];
  provided: string[];
  forModel: string[];
  waits: number;
}

async function ask(params: Record<string, unknown>, world: World = {}): Promise<Answer> {
  const seen: Omit<Answer, "text" | "isError"> = { ran: [], provided: [], forModel: [], waits: 0 };
  const host = toolHost({
    settle: async () => {
      seen.waits++;
      return world.pending ?? [];
    },
    catalog: () => CATALOG,
    servers: () => world.servers ?? SERVERS,
    provide: (tool) => {
      seen.provided.push(tool.name);
      return tool;
    },
    forModel: (callId, task) => {
      seen.forModel.push(callId);
      return task();
    },
    connect: world.connect ?? (async () => undefined),
    matchTools: (task) => patterns.match(task, new AbortController().signal),
    whyMissing: async () => world.missing,
  });
  const context = {
    tools: world.allows === false ? [] : CATALOG.tools.map(({ name }) => ({ name })),
    executeTool: async (name: string, args: unknown): Promise<NestedOutcome> => {
      seen.ran.push({ name, args });
      const result = { content: [{ type: "text" as const, text: "ran" }], details: { a: 1 } };
      const isError = world.outcome !== undefined;
      return { result, isError, ...(world.outcome === "did not run" ? {} : { durationMs: 1 }) };
    },
  } as unknown as PiToolContext;
  const result = await createProxyTool("d", host).execute("c1", params, undefined, undefined, context);
  const text = result.content.map((block) => (block.type === "text" ? block.text : "")).join("\n");
  return { text, isError: result.isError === true, ...seen };
}

describe("tool", () => {
  it.each<[string, unknown, unknown]>([
    ["an object", { path: "a" }, { path: "a" }],
    ["JSON", '{"path":"a"}', { path: "a" }],
    ["left out", undefined, {}],
    ["null", null, {}],
    ["an empty string", "  ", {}],
    ["JSON null", "null", {}],
  ])("args: %s -> Pi runs the tool with an object", async (_name, args, expected) => {
    const answer = await ask({ tool: "fs__read_file", args });
    expect(answer).toMatchObject({ text: "ran", isError: false, provided: ["fs__read_file"] });
    expect(answer.ran).toEqual([{ name: "fs__read_file", args: expected }]);
    expect(answer.forModel).toEqual(["c1"]);
  });

  it.each<[string, unknown, RegExp]>([
    ["broken JSON", "{", /^args is not valid JSON: /],
    [
      "a number of too many digits",
      '{"id":9007199254740993}',
      /^args cannot be sent: the number 9007199254740993 would/,
    ],
    ["a list", [1], /^args must be a JSON object\./],
    ["JSON of a list", "[1]", /^args must be a JSON object\./],
    ["a number", 5, /^args must be a JSON object\./],
  ])("args: %s -> refused, nothing runs", async (_name, args, expected) => {
    const answer = await ask({ tool: "fs__read_file", args });
    expect(answer.text).toMatch(expected);
    expect(answer).toMatchObject({ isError: true, ran: [], provided: [] });
  });

  it.each<[string, Record<string, unknown>, string]>([
    ["its own name", { tool: "read_file" }, "fs__read_file"],
    ["with mcp and camelCase", { tool: "mcp__fs__readFile" }, "fs__read_file"],
    ["one name on two servers, with server", { tool: "search", server: "papers" }, "papers__search"],
    ["before all other parameters", { tool: "read_file", search: "x", connect: "web" }, "fs__read_file"],
  ])("%s -> %j", async (_name, params, expected) => {
    expect((await ask(params)).ran.map(({ name }) => name)).toEqual([expected]);
  });

  it.each<[string, Record<string, unknown>, RegExp, number]>([
    ["two servers have it", { tool: "search" }, /^search is the name of several tools: web__.*, papers__/, 0],
    ["a slip", { tool: "fs__raed_file" }, /^No tool named fs__raed_file\.\nNearest: fs__read_file/, 1],
    ["not of that server", { tool: "read_file", server: "web" }, /^No tool named read_file\./, 1],
    ["an unknown server", { tool: "x", server: "gone" }, /^No server named gone\. Servers: fs, many/, 0],
  ])("%s -> refused", async (_name, params, expected, waits) => {
    const answer = await ask(params);
    expect(answer.text).toMatch(expected);
    expect(answer).toMatchObject({ isError: true, ran: [], waits });
  });

  test("a tool that the configuration makes unavailable -> the reason with its code", async () => {
    const missing = { code: "tool_excluded" as const, message: "fs offers drop, but it is excluded." };
    const answer = await ask({ tool: "fs__drop" }, { missing });
    expect(answer).toMatchObject({ isError: true, text: missing.message, ran: [] });
  });

  it.each<[string, World, RegExp]>([
    ["failed", { outcome: "failed" }, /^ran$/],
    ["did not run", { outcome: "did not run" }, /^ran\nExpected parameters: fs__re/],
    [
      "is not allowed",
      { outcome: "did not run", allows: false },
      /^Pi does not allow fs__read_file in this session \(--tools, --exclude-tools\)\.$/,
    ],
  ])("that %s -> an error", async (_name, world, expected) => {
    const answer = await ask({ tool: "fs__read_file", args: {} }, world);
    expect(answer.text).toMatch(expected);
    expect(answer.isError).toBe(true);
  });
});

describe("the other modes", () => {
  it.each<[string, Record<string, unknown>, RegExp]>([
    ["connect before describe", { connect: "web", describe: "x", search: "y" }, /^web: connected, 2 tools$/],
    ["describe before search", { describe: "read_file", search: "y" }, /^fs__read_file\nServer: fs\n/],
    ["search before server", { search: "finds articles", server: "papers" }, /^papers__search - Finds art/],
    ["server", { server: "web" }, /^web: 1 tool\nweb__search - Finds pages\.$/],
    ["server, with schemas", { server: "fs", includeSchemas: true }, /\n {2}path \(string\) \*required\*/],
    ["a long server", { server: "many" }, /^many: 320 tools\n(.*\n){300}and 20 more: search with server\.$/],
    ["a pattern with many results", { search: "thing", regex: true }, /\nand 270 more: make the pattern/],
    ["a pattern within a server", { search: "search", regex: true, server: "web" }, /^web__search/],
    [
      "a pattern over names at servers",
      { search: "^search$", regex: true },
      /^web__search.*\n.*\npapers__search/,
    ],
    ["a pattern over first sentences", { search: "nothing else", regex: true }, /^No tools found\.$/],
    ["words that no tool has", { search: "zzz" }, /^No tools found\.\nNo tool matches: zzz/],
    ["nothing", {}, /^MCP: 4\/4 servers, 8 tools\nfs: connected, 2 tools\n/],
    ["blank parameters", { tool: " ", search: "" }, /^MCP: 4\/4 servers/],
  ])("%s", async (_name, params, expected) => {
    const answer = await ask(params);
    expect(answer.text).toMatch(expected);
    expect(answer).toMatchObject({ isError: false, ran: [] });
  });

  it.each<[string, string, RegExp]>([
    [
      "is wrong",
      "read_(file",
      /^The pattern cannot be used: Unterminated group at character 6: "read_\("\.$/,
    ],
    [
      "would take an engine years",
      "((\\w|\\w)*)*#",
      /^The pattern cannot be used: it took longer than 200 ms\. Make it simpler/,
    ],
    ["is too long", "a".repeat(501), /^The pattern cannot be used: it is longer than 500 characters\.$/],
  ])("a pattern that %s -> refused, with the reason", async (_name, search, expected) => {
    const answer = await ask({ search, regex: true });
    expect(answer.text).toMatch(expected);
    expect(answer.isError).toBe(true);
  });

  test("search while a server connects -> the search waits, and names the server", async () => {
    const servers = [...SERVERS, makeStatus("slow", { state: "connecting", toolsKnown: false })];
    const answer = await ask({ search: "read file" }, { servers, pending: ["slow"] });
    expect(answer.waits).toBe(1);
    expect(answer.text).toMatch(/slow/);
  });

  it.each([
    ["that has listed its tools", "fs", 0],
    ["that has listed tools which the catalog lacks", "new", 1],
  ])("the tools of a server %s (%s) -> waits %i times", async (_name, server, waits) => {
    const answer = await ask({ server }, { servers: [...SERVERS, makeStatus("new")] });
    expect(answer.waits).toBe(waits);
  });

  test("connect that fails -> the reason, as an error", async () => {
    const error = { code: "connect_failed" as const, message: "nobody listens" };
    const servers = [makeStatus("web", { state: "failed", toolsKnown: false, error })];
    const answer = await ask({ connect: "web" }, { servers });
    expect(answer).toMatchObject({ isError: true });
    expect(answer.text).toMatch(/^web: failed, tools unknown: nobody listens/);
  });

  test("connect of a server that other sessions use -> its state, and nobody is interrupted", async () => {
    const connected: string[] = [];
    const connect = async (server: string) => void connected.push(server);
    const servers = [2, 1].map((sessions) =>
      makeStatus(`by-${sessions}`, { sharing: { sessions, since: 0 } }),
    );
    const answer = await ask({ connect: "by-2" }, { servers, connect });
    expect(answer).toMatchObject({ isError: false, text: "by-2: connected, 2 tools" });
    await ask({ connect: "by-1" }, { servers, connect });
    expect(connected).toEqual(["by-1"]);
  });

  test("a worker that cannot be reached -> an error result with the worker's words", async () => {
    const connect = () => Promise.reject(new Error("The MCP servers of this session are stopped."));
    const answer = await ask({ connect: "web" }, { connect });
    expect(answer).toMatchObject({ isError: true, text: "The MCP servers of this session are stopped." });
  });
});

test("its description names servers within its budget, and counts the rest", () => {
  const servers = Array.from({ length: 60 }, (_, i) => ({ name: `server-number-${i}` }));
  const description = proxyDescription(servers);
  expect(description).toMatch(/Servers: server-number-0, .* \d+ more\.$/);
  expect(estimateTokens(description) - estimateTokens(proxyDescription([]))).toBeLessThan(100);
  expect(proxyDescription([])).not.toContain("Servers:");
});
