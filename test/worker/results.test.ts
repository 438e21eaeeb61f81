/** Owns: results through the real connection worker, from server-everything and from a server that sends any JSON. */
import { mkdir, readdir, readFile, stat, truncate, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Runtime } from "../../src/runtime/contract.ts";
import { startRuntime } from "../../src/runtime/runtime.ts";
import type { CallResult } from "../../src/shared/protocol/calls.ts";
import type { WorkerEvent } from "../../src/shared/protocol/contract.ts";
import { ThreadsError } from "../../src/shared/protocol/errors.ts";
import { forWholeFile } from "../support/cleanup.ts";
import { answerWell, serve, startEvents } from "../support/http-server.ts";
import { amount } from "../support/long.ts";
import { PATIENCE_MS } from "../support/patience.ts";
import { waitGone } from "../support/processes.ts";
import { makeTempFolder, removeFolder } from "../support/temp-folder.ts";
import { builtWorker, everything } from "./support.ts";

const root = join(import.meta.dirname, "..", "..");
const SECRET = "s3cr3t-of-the-test";

let agentDir: string;
let runtime: Runtime;
const events: WorkerEvent[] = [];
let calls = 0;

const call = (
  server: string,
  tool: string,
  args: Record<string, unknown> = {},
  more: { wantsStructured?: boolean } = {},
): Promise<CallResult> =>
  runtime.callTool({ callId: `call-${++calls}`, server, tool, args, ...more }, undefined);
const textOf = ({ content }: CallResult): string =>
  content.map((part) => (part.type === "text" ? part.text : `<${part.mimeType}>`)).join("\n");

/** Servers whose answer to a call has the members that it names, as JSON and as an event. */
async function overHttp(): Promise<Record<string, { url: string }>> {
  const { origin } = await serve((asked, response) => {
    const { id, method, params } = asked.message;
    if (method !== "tools/call") return answerWell(asked, response);
    const { members } = (params as { arguments: { members: string } }).arguments;
    const answer = `{"jsonrpc":"2.0","id":${id},${members}}`;
    if (asked.path === "/events") startEvents(response).end(`data: ${answer}\n\n`);
    else response.writeHead(200, { "content-type": "application/json" }).end(answer);
  });
  return { json: { url: `${origin}/json` }, events: { url: `${origin}/events` } };
}

beforeAll(async () => {
  agentDir = await makeTempFolder("results-worker");
  const own = join(root, "test/fixtures/servers/results.mjs");
  const mcpServers = {
    everything: everything(),
    own: { command: process.execPath, args: [own], env: { SECRET } },
    ...(await forWholeFile(overHttp)),
  };
  await writeFile(join(agentDir, "mcp.json"), JSON.stringify({ mcpServers }));
  // This file stands for an old session's stored result.
  const old = join(agentDir, "mcp-results", "old-session", "old.txt");
  await mkdir(join(old, ".."), { recursive: true });
  await writeFile(old, "old");
  await utimes(old, 0, 0);
  runtime = startRuntime({
    logFile: join(agentDir, "mcp-threads.log"),
    workerUrl: builtWorker,
    onEvent: (event) => events.push(event),
    onCrash: ({ reason }) => events.push({ type: "progress", callId: "crash", message: reason }),
    onStartFailed: (error) => events.push({ type: "progress", callId: "start", message: error.message }),
    facts: () => ({
      cwd: agentDir,
      agentDir,
      projectTrusted: true,
      configPath: undefined,
      registered: [],
      canAsk: false,
      snapshotChecksum: undefined,
    }),
  });
  expect(await runtime.settleTools({ timeoutMs: PATIENCE_MS }, undefined)).toEqual([]);
});

afterAll(async () => {
  await runtime.stop();
  const pids = events.flatMap((event) => (event.type === "spawned" ? [event.pid] : []));
  await waitGone(pids);
  await removeFolder(agentDir);
});

test("stored results that would exceed 1 GiB -> the oldest go, and the person is told once", async () => {
  const [older, newer] = ["older.txt", "newer.txt"].map((name) =>
    join(agentDir, "mcp-results", "full", name),
  );
  await mkdir(join(agentDir, "mcp-results", "full"));
  for (const [path = "", ageSeconds] of [
    [older, 5_000],
    [newer, 4_000],
  ] as const) {
    // It takes no room on the disk.
    await writeFile(path, "");
    await truncate(path, 600 * 1024 * 1024);
    await utimes(path, Date.now() / 1_000 - ageSeconds, Date.now() / 1_000 - ageSeconds);
  }
  const { storedAt = "" } = await call("own", "big", { piece: "x\n", times: 50_000 });
  expect((await stat(storedAt)).size).toBe(100_000);
  // A disk with less than 4 GiB of room has a lower bound, and the second one goes, too.
  expect(await readdir(join(agentDir, "mcp-results", "full"))).not.toContain("older.txt");
  const told = events.filter(
    (event) => event.type === "notice" && event.text.includes("the oldest are removed"),
  );
  expect(told).toHaveLength(1);
});

test("everything: annotations -> text for the model, an image for the user only", async () => {
  const result = await call("everything", "get-annotated-message", {
    messageType: "error",
    includeImage: true,
  });
  expect(textOf(result)).toMatch(/^Error: Operation failed/);
  expect(result.forUser).toMatch(/^\[Image: image\/png, .* for you only; saved to .*\.png\]$/);
});

test("everything: an image -> an image for the model", async () => {
  const { content } = await call("everything", "get-tiny-image");
  expect(content[1]).toMatchObject({ type: "image", mimeType: "image/png" });
});

test("everything: resource links -> each with name, URI, description and the tool that reads it", async () => {
  const text = textOf(await call("everything", "get-resource-links", { count: 2 }));
  expect(text.match(/^\[Resource link: .*\] demo:\/\/resource\//gm)).toHaveLength(2);
  const readers = [...text.matchAll(/^Read it with the tool everything__(\w+) and (\{.*\})\.$/gm)];
  expect(readers.map(([, tool, args]) => [tool, JSON.parse(args ?? "")])).toEqual([
    ["get_dynamic_blob_resource", { resourceId: "1" }],
    ["get_dynamic_text_resource", { resourceId: "2" }],
  ]);
  // The named tool with the named arguments reads the resource.
  const [, tool = "", args = ""] = readers[1] ?? [];
  const read = textOf(await call("everything", tool, JSON.parse(args)));
  expect(read).toContain("[Resource: demo://resource/dynamic/text/2]");
});

test("everything: an embedded resource -> text with the URI", async () => {
  const text = textOf(
    await call("everything", "get-resource-reference", { resourceType: "Text", resourceId: 1 }),
  );
  expect(text).toMatch(/\[Resource: demo:\/\/resource\/dynamic\/text\/1\]\n/);
});

test("everything: structured content -> once for the model, unchanged for a caller that wants it", async () => {
  const args = { location: "Chicago" };
  const plain = await call("everything", "get-structured-content", args);
  expect(plain.content).toHaveLength(1);
  expect(plain).not.toHaveProperty("scriptResult");
  const asked = await call("everything", "get-structured-content", args, { wantsStructured: true });
  const whole = JSON.parse(Buffer.from(asked.scriptResult ?? []).toString()) as Record<string, unknown>;
  const { structuredContent: value } = whole;
  expect(value).toMatchObject({ temperature: expect.any(Number), conditions: expect.any(String) });
  expect(whole).toEqual({ content: [{ type: "text", text: textOf(asked) }], structuredContent: value });
  expect(JSON.parse(textOf(asked))).toEqual(value);
});

const progressOfLastCall = () =>
  events.filter((event) => event.type === "progress" && event.callId === `call-${calls}`);

test("everything: a call with steps -> progress with a total", async () => {
  await call("everything", "trigger-long-running-operation", { duration: 1, steps: 2 });
  await expect
    .poll(() => progressOfLastCall().at(-1))
    .toMatchObject({ total: 2, progress: expect.any(Number), message: expect.any(String) });
});

test("a thousand progress steps at once -> a few reach main, the last one among them", async () => {
  const ended = call("own", "steps");
  // The end of a call ends its progress, so the call goes on until the last step has come.
  await expect.poll(() => progressOfLastCall().at(-1)).toMatchObject({ progress: 1_000 });
  const told = progressOfLastCall();
  await call("own", "end");
  await ended;
  expect(told[0]).toMatchObject({ progress: 0, total: 1_000, message: "step 0" });
  expect(told.length).toBeLessThan(20);
});

test("megabytes of text -> start and end reach main, a private file of the session holds all", async () => {
  const piece = "a line of the log\n";
  const times = amount(233_017, 1_165_084);
  const result = await call("own", "big", { piece, times });
  const { storedAt = "", bytes } = result;
  expect(bytes?.received).toBe(times * piece.length);
  expect(Buffer.byteLength(textOf(result))).toBeLessThanOrEqual(51_200);
  expect((await stat(storedAt)).size).toBe(bytes?.received);
  expect((await stat(storedAt)).mode & 0o777).toBe(0o600);
  expect((await stat(join(storedAt, ".."))).mode & 0o777).toBe(0o700);
  expect((await readFile(storedAt, "utf8")).endsWith("log\n")).toBe(true);
});

test("results of any shape -> each arrives as text", async () => {
  const results: [Record<string, unknown>, RegExp][] = [
    [{}, /^\[The tool returned nothing\]$/],
    [{ content: null, structuredContent: [] }, /^\[\]$/],
    [{ content: [null, { type: 1 }] }, /^\[Content of an unknown kind/],
    [{ content: [{ type: "text", text: "x" }], isError: true }, /^x$/],
    [{ content: [], structuredContent: { a: 1 } }, /^\{"a":1\}$/],
  ];
  for (const [result, text] of results) expect(textOf(await call("own", "answer", result))).toMatch(text);
});

test.each<[string, Record<string, unknown>, RegExp]>([
  [
    "structured content 10,000 deep",
    { around: ['{"structuredContent":', "}"], open: '{"a":[', close: "]}", times: 5_000 },
    /^\{"a":\[\{"a":|^\[Structured content that cannot be shown/,
  ],
  [
    "structured content 1,000,000 deep",
    { around: ['{"structuredContent":', "}"], open: "[", close: "]", times: 1_000_000 },
    /^\[Structured content that cannot be shown: /,
  ],
  [
    "text of JSON 1,000,000 deep",
    { around: ['{"content":[{"type":"text","text":"', '"}]}'], open: "[", close: "]", times: 1_000_000 },
    /^\[2,000,000 bytes of JSON in 1 line, shown by its structure\. .*\narray, 1 item/,
  ],
  [
    "content 100,000 deep",
    { around: ['{"content":', "}"], open: "[", close: "]", times: 100_000 },
    /^\[Content of an unknown kind: none\]$/,
  ],
  [
    "annotations 100,000 deep",
    {
      around: ['{"content":[{"type":"text","text":"x","annotations":{"audience":', "}}]}"],
      open: "[",
      close: "]",
      times: 100_000,
    },
    /^x$/,
  ],
  [
    "more items than lines are shown",
    {
      around: ['{"content":[', "0]}"],
      open: '{"type":"text","text":"x"},',
      close: "",
      times: amount(30_000, 100_000),
    },
    /^(x\n)+\[\.\.\. .* left out here\. Full text: .*\]\n/,
  ],
])("%s -> arrives as text, and the next call works", async (_name, args, expected) => {
  const text = textOf(await call("own", "raw", args));
  expect(text).toMatch(expected);
  expect(Buffer.byteLength(text)).toBeLessThanOrEqual(51_200);
  expect(textOf(await call("own", "answer", { content: ["next"] }))).toBe("next");
});

const FINE = '"result":{"content":[{"type":"text","text":"fine"}]}';
const NO_ANSWER = "the answer is not one of JSON-RPC 2.0";

describe.each(["own", "json", "events"])("an answer of %s that breaks JSON-RPC 2.0", (server) => {
  test.each<[string, string]>([
    ["a null beside the result", `${FINE},"error":null`],
    ["nulls for all that it is not", `"method":null,"params":null,${FINE},"error":null`],
    ["another member", `${FINE},"took":5,"__proto__":{"a":1}`],
    ["an error beside the result", `${FINE},"error":"none"`],
    ["_meta null", '"result":{"_meta":null,"content":["fine"]}'],
    ["a list as _meta", '"result":{"_meta":[],"content":["fine"]}'],
    ["a token of null in _meta", '"result":{"_meta":{"progressToken":null},"content":["fine"]}'],
  ])("%s -> the result", async (_name, members) => {
    expect(textOf(await call(server, "echo", { members }))).toBe("fine");
  });

  test.each<[string, string, number, string]>([
    ["a null beside the error", '"result":null,"error":{"code":-5,"message":"no"}', -5, "no"],
    ["another member beside the error", '"error":{"code":-5,"message":"no"},"took":5', -5, "no"],
    ["a result of null", '"result":null', -32603, NO_ANSWER],
    ["a text as result", '"result":"fine"', -32603, NO_ANSWER],
    ["a list as result", '"result":[]', -32603, NO_ANSWER],
    ["neither result nor error", '"took":5', -32603, NO_ANSWER],
    ["a text as error", '"error":"boom"', -32603, `${NO_ANSWER}: boom`],
    ["a code of text", '"error":{"code":"E5","message":"boom"}', -32603, `${NO_ANSWER}: boom`],
    ["a code that is no integer", '"error":{"code":1e400,"message":"boom"}', -32603, `${NO_ANSWER}: boom`],
    ["an error without a message", '"error":{"code":-5}', -5, NO_ANSWER],
    ["an error of nothing", '"error":{}', -32603, NO_ANSWER],
  ])("%s -> an error at once", async (_name, members, rpcCode, said) => {
    const failure = await call(server, "echo", { members }).catch((error) => error);
    expect(failure).toMatchObject({
      code: "call_rejected",
      message: `${server} rejected echo: ${said}`,
      data: { rpcCode },
    });
  });

  test("more than 256 KiB of it -> the result, or the error at once", async () => {
    const long = "x".repeat(300_000);
    const members = `"result":{"content":["${long}"]},"error":null,"method":null`;
    expect((await call(server, "echo", { members })).bytes?.received).toBe(long.length);
    const failure = await call(server, "echo", { members: `"result":"${long}"` }).catch((error) => error);
    expect((failure as ThreadsError).message).toBe(`${server} rejected echo: ${NO_ANSWER}`);
  });
});

// The SDK itself uses -32001 for a timeout and -32000 for a closed connection.
test.each([-32001, -32000, -32602, 7])(
  "the server's error %i -> keeps its data within a limit, without secrets",
  async (rpcCode) => {
    const failure = await call("own", "fail", {
      code: rpcCode,
      reason: SECRET,
      more: "x".repeat(9_000),
    }).catch((error) => error);
    expect(failure).toBeInstanceOf(ThreadsError);
    const { code, message, data } = failure as ThreadsError;
    expect([code, message]).toEqual(["call_rejected", "own rejected fail: no: [redacted]"]);
    expect(data).toMatchObject({ rpcCode, rpcData: { truncated: true } });
    expect(JSON.stringify(data)).not.toContain(SECRET);
    expect(JSON.stringify(data).length).toBeLessThan(5_000);
  },
);

test("statistics off, then captured, then to a path that cannot be written -> one warning, the calls work", async () => {
  const configure = (settings: object): Promise<void> =>
    writeFile(
      join(agentDir, "mcp.json"),
      JSON.stringify({
        mcpServers: {
          own: { command: process.execPath, args: [join(root, "test/fixtures/servers/results.mjs")] },
        },
        settings,
      }),
    );
  const planned = async (change: () => Promise<void>): Promise<void> => {
    const since = events.length;
    await change();
    await expect.poll(() => events.slice(since).some(({ type }) => type === "planned")).toBe(true);
  };
  expect(await runtime.ask("stats", {})).toMatchObject({ captured: true });
  await planned(() => configure({ captureStats: false }));
  expect(await runtime.ask("stats", {})).toEqual({ captured: false });

  await planned(() => configure({ captureStats: { path: "own/stats.jsonl" } }));
  await call("own", "answer", { content: ["x"] });
  expect(await runtime.ask("stats", {})).toMatchObject({
    captured: true,
    summary: { tools: [{ server: "own", tool: "answer", calls: 1, errors: 0 }], moreTools: 0 },
  });
  expect(await readFile(join(agentDir, "own", "stats.jsonl"), "utf8")).toContain('"tool":"answer"');

  await planned(() => configure({ captureStats: { path: agentDir, flushDelayMs: 0 } }));
  for (let i = 0; i < 3; i++) expect(textOf(await call("own", "answer", { content: ["x"] }))).toBe("x");
  await expect(runtime.ask("stats", {})).rejects.toMatchObject({
    code: "bad_config",
    message: expect.stringContaining(`${agentDir} cannot be read: EISDIR`),
  });
  const warnings = events.filter((event) => event.type === "notice" && event.text.startsWith("Statistics"));
  expect(warnings).toEqual([
    expect.objectContaining({
      level: "warning",
      text: expect.stringMatching(
        /^Statistics of MCP calls cannot be written to \/.*EISDIR.* Set captureStats\.path/,
      ),
    }),
  ]);
});

test("a file of an old session -> deleted", async () => {
  await expect.poll(() => readdir(join(agentDir, "mcp-results", "old-session"))).toEqual([]);
});

test("structured content alone with numbers that JSON.parse changes -> the model and a script's file of JSON get them as they came", async () => {
  const json = '{"id":12345678901234567890,"far":1e400,"fine":0.1}';
  const args = { around: [`{"content":[],"structuredContent":${json}`, "}"], open: "", close: "", times: 0 };
  const result = await call("own", "raw", args, { wantsStructured: true });
  expect(textOf(result)).toBe(json);
  expect(Buffer.from(result.scriptResult ?? []).toString()).toBe(
    `{"content":[],"structuredContent":${json}}`,
  );
});
