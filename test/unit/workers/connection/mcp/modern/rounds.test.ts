/** Owns: how a request is repeated with answers, and how a task is followed, with a server that is a list of results. */

import { describe, expect, test } from "vitest";
import { ThreadsError } from "../../../../../../src/shared/protocol/errors.ts";
import { NoReply } from "../../../../../../workers/connection/asks/prompt.ts";
import {
  ChangeStream,
  changesFilter,
  followChanges,
  listenAgainMs,
} from "../../../../../../workers/connection/mcp/modern/changes.ts";
import {
  headerValue,
  MirroredHeaders,
  mirroredParameters,
  parameterHeaders,
  standardHeaders,
} from "../../../../../../workers/connection/mcp/modern/headers.ts";
import { FRESH_LEAST_MS, FRESH_MOST_MS } from "../../../../../../workers/connection/mcp/modern/limits.ts";
import {
  followTask,
  type Party,
  pollMs,
  type Result,
  throughRounds,
} from "../../../../../../workers/connection/mcp/modern/rounds.ts";
import {
  afterPage,
  EVERY_LIST,
  type Freshness,
  isStale,
  readDiscovered,
  tooNew,
} from "../../../../../../workers/connection/mcp/modern/server.ts";
import { MODERN_VERSION } from "../../../../../../workers/connection/mcp/wire/wire.ts";
import { settle } from "../../servers/support.ts";

interface Asked extends Party {
  asked: unknown[];
  notes: string[];
}

function party(more: Partial<Party> = {}): Asked {
  const asked: unknown[] = [];
  const notes: string[] = [];
  const asks = {
    may: { ask: true, sample: false },
    create: async (params: unknown) => {
      asked.push(params);
      return { action: "accept", content: { confirmed: true } };
    },
  } as unknown as Party["asks"];
  const signal = new AbortController().signal;
  return {
    server: "s",
    subject: "s/t",
    asks,
    onNote: (note) => notes.push(note),
    signal,
    asked,
    notes,
    ...more,
  };
}

const needs = (more: object): Result => ({ resultType: "input_required", ...more });
const ask = (message: string) => ({ method: "elicitation/create", params: { message } });
const accepted = { action: "accept", content: { confirmed: true } };

/** A server that answers these results in turn; what it was sent is kept. */
function server(results: Result[]) {
  const sent: unknown[] = [];
  return {
    sent,
    send: async (more: unknown) => {
      sent.push(more);
      return results[Math.min(sent.length, results.length) - 1] ?? {};
    },
  };
}

/** The server's patience costs the tests no time; what it would have cost is kept. */
function waiter() {
  const waits: number[] = [];
  return { waits, wait: async (ms: number) => void waits.push(ms) };
}

test("throughRounds: only patience is asked for -> a pause before each repetition, ever longer; none where a question was answered", async () => {
  const { waits, wait } = waiter();
  const later = needs({ requestState: "s" });
  const { sent, send } = server([
    later,
    needs({ inputRequests: {}, requestState: "s" }),
    needs({ inputRequests: { a: ask("one") }, requestState: "s" }),
    ...Array.from({ length: 4 }, () => later),
    { content: [] },
  ]);
  expect(await throughRounds(send, { ...party(), wait })).toEqual({ content: [] });
  expect(sent).toHaveLength(8);
  expect(sent.slice(1, 3)).toEqual([{ requestState: "s" }, { requestState: "s" }]);
  expect(waits).toEqual([250, 500, 1_000, 2_000, 2_000, 2_000]);
});

const GIVEN_UP = new Error("given up");
test.each<[string, (who: Party) => Promise<unknown>]>([
  [
    "the pause of a server that asks for patience",
    (who) => throughRounds(server([needs({ requestState: "s" })]).send, who),
  ],
  [
    "the pause between two looks at a task",
    (who) =>
      followTask(
        { resultType: "task", taskId: "1", status: "working" },
        {
          party: who,
          request: async () => ({}),
          cancel: () => undefined,
          isUnanswered: () => false,
          failure: () => new Error("failed"),
          onStatus: () => undefined,
        },
      ),
  ],
])("given up in %s -> the reason of that", async (_when, run) => {
  await expect(run(party({ signal: AbortSignal.abort(GIVEN_UP) }))).rejects.toBe(GIVEN_UP);
});

test("throughRounds: a page that the user has agreed to is asked for again -> that is said; another page is a new one", async () => {
  const wants = (url: string, mode = "url") => {
    const p = { method: "elicitation/create", params: { mode, url } };
    return needs({ inputRequests: { p }, requestState: "s" });
  };
  // A form is no page, whatever it names.
  const { send } = server([
    wants("a:1", "form"),
    wants("a:1"),
    wants("a:1"),
    wants("b:2"),
    wants("b:2"),
    { content: [] },
  ]);
  const said: unknown[] = [];
  const answers = ["accept", "accept", "accept", "decline", "accept"];
  const asks = {
    may: { ask: true, sample: false },
    create: async (params: { url: string }, _signal: AbortSignal, isAgain: boolean) => {
      said.push([params.url, isAgain]);
      return { action: answers[said.length - 1] };
    },
  } as unknown as Party["asks"];
  await throughRounds(send, party({ asks }));
  expect(said).toEqual([
    ["a:1", false],
    ["a:1", false],
    ["a:1", true],
    ["b:2", false],
    ["b:2", false],
  ]);
});

test("throughRounds: answers and the state as it came -> the request is repeated with them, and only with them", async () => {
  const state = 'eyJ9\u0000 ü \\ud800 "';
  const { sent, send } = server([
    needs({ inputRequests: { a: ask("one"), b: ask("two") }, requestState: state }),
    needs({ requestState: "" }),
    needs({ inputRequests: { a: ask("three") } }),
    { content: [] },
  ]);
  const who = { ...party(), wait: waiter().wait };
  expect(await throughRounds(send, who)).toEqual({ content: [] });
  expect(sent).toEqual([
    {},
    { inputResponses: { a: accepted, b: accepted }, requestState: state },
    { requestState: "" },
    { inputResponses: { a: accepted } },
  ]);
  expect(who.asked).toEqual([{ message: "one" }, { message: "two" }, { message: "three" }]);
});

test.each<[string, Result, string]>([
  ["questions without end", needs({ requestState: "x" }), "more than 10 times"],
  ["neither a question nor a state", needs({}), "asks no question"],
  ["no question and no state", needs({ inputRequests: {} }), "asks no question"],
  ["a state that is no text", needs({ requestState: 7 }), "cannot be sent back"],
  ["a state that is too long", needs({ requestState: "x".repeat(1024 * 1024 + 1) }), "cannot be sent back"],
  ["questions that are a list", needs({ inputRequests: [] }), "not an object"],
  ["sampling", needs({ inputRequests: { a: { method: "sampling/createMessage" } } }), "does not offer"],
  ["folders", needs({ inputRequests: { a: { method: "roots/list" } } }), "does not offer"],
  [
    "21 questions",
    needs({ inputRequests: Object.fromEntries(Array.from({ length: 21 }, (_, i) => [i, ask("")])) }),
    "20",
  ],
])("throughRounds: %s -> the call fails and says so", async (_, result, words) => {
  const { sent, send } = server([result]);
  const error = await throughRounds(send, { ...party(), wait: waiter().wait }).catch(
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(ThreadsError);
  expect(error).toMatchObject({ code: "call_rejected", message: expect.stringContaining(words) });
  expect(sent.length).toBeLessThanOrEqual(11);
});

test("throughRounds: a prompt for the model -> its answer is sent; a no ends the call, and nothing is repeated", async () => {
  const result = needs({
    inputRequests: { a: { method: "sampling/createMessage", params: { messages: [] } } },
  });
  const may = { ask: false, sample: true };
  const answering = (sample: () => Promise<Result>) =>
    party({ asks: { may, sample } as unknown as Party["asks"] });
  const { sent, send } = server([result, {}]);
  await throughRounds(
    send,
    answering(async () => ({ role: "assistant" })),
  );
  expect(sent[1]).toEqual({ inputResponses: { a: { role: "assistant" } } });
  const refused = server([result, {}]);
  const refuses = answering(() => Promise.reject(new NoReply(-1, "User rejected sampling request")));
  await expect(throughRounds(refused.send, refuses)).rejects.toMatchObject({
    code: "call_rejected",
    message: "s/t needs an answer of your model: User rejected sampling request.",
  });
  expect(refused.sent).toHaveLength(1);
});

test("throughRounds: nobody can be asked -> cancelled, with a note; folders that may be told -> told", async () => {
  const { sent, send } = server([needs({ inputRequests: { a: ask("?"), r: { method: "roots/list" } } }), {}]);
  const who = party({ asks: undefined, roots: [{ uri: "file:///a", name: "a" }] });
  await throughRounds(send, who);
  expect(sent[1]).toEqual({
    inputResponses: { a: { action: "cancel" }, r: { roots: [{ uri: "file:///a", name: "a" }] } },
  });
  expect(who.notes).toEqual([
    "asks the user something although it was not told that it may; that is cancelled",
  ]);
});

test.each([
  [undefined, 0, 1_000],
  [0, 0, 1_000],
  [-5, 0, 1_000],
  [5, 0, 1_000],
  [5_000, 0, 5_000],
  [3_600_000, 0, 30_000],
  [1_000, 3, 8_000],
  [1_000, 9, 30_000],
  ["5000", 0, 1_000],
])("pollMs(%j, %i) -> %i ms", (wanted, failed, ms) => {
  expect(pollMs(wanted, failed)).toBe(ms);
});

const unanswered = new Error("no answer");

/** Follows a task whose looks answer these in turn. An `Error` rejects. */
async function follow(looks: (Result | Error)[], more: { who?: Asked; created?: Result } = {}) {
  const requests: [string, unknown][] = [];
  const status: string[] = [];
  const waits: number[] = [];
  const cancelled: string[] = [];
  const who = more.who ?? party();
  const rest = [...looks];
  const outcome = await followTask(more.created ?? { resultType: "task", taskId: "1", status: "working" }, {
    party: who,
    request: async (method, params) => {
      requests.push([method, params]);
      const next = method === "tasks/get" || rest[0] instanceof Error ? rest.shift() : {};
      if (next instanceof Error) throw next;
      return next ?? {};
    },
    cancel: (id) => cancelled.push(id),
    isUnanswered: (error) => error === unanswered,
    failure: (error) => new Error(`failed: ${JSON.stringify(error)}`),
    onStatus: (message) => status.push(message),
    wait: async (ms, signal) => {
      waits.push(ms);
      signal.throwIfAborted();
    },
  }).catch((error: unknown) => error);
  return { outcome, requests, status, waits, cancelled, asked: who.asked };
}

test("followTask: working, then completed -> the result; its status is told with each answer", async () => {
  const at = await follow([
    { status: "working", statusMessage: "half", pollIntervalMs: 2_000 },
    { status: "working", statusMessage: "half", pollIntervalMs: 2_000 },
    { status: "completed", result: { content: [1] } },
  ]);
  expect(at.outcome).toEqual({ content: [1] });
  expect(at.status).toEqual(["working", "half", "half", "completed"]);
  expect(at.waits).toEqual([1_000, 2_000, 2_000]);
  expect(at.requests).toEqual(Array.from({ length: 3 }, () => ["tasks/get", { taskId: "1" }]));
});

test("followTask: looks that get no answer -> it looks again, ever more slowly, and gives up after 10", async () => {
  const found = await follow([unanswered, unanswered, { status: "completed", result: {} }]);
  expect(found.outcome).toEqual({});
  expect(found.waits).toEqual([1_000, 2_000, 4_000]);
  const lost = await follow(Array.from({ length: 20 }, () => unanswered));
  expect(lost.outcome).toBe(unanswered);
  expect(lost.requests).toHaveLength(10);
});

test("followTask: questions -> each is asked once and answered by tasks/update, also if the update gets no answer", async () => {
  const question = { status: "input_required", inputRequests: { name: ask("name?") } };
  const at = await follow([question, unanswered, question, question, { status: "completed", result: {} }]);
  expect(at.outcome).toEqual({});
  expect(at.asked).toEqual([{ message: "name?" }]);
  expect(at.requests.filter(([method]) => method === "tasks/update")).toEqual(
    Array.from({ length: 2 }, () => ["tasks/update", { inputResponses: { name: accepted }, taskId: "1" }]),
  );
});

test.each<[string, Result, string]>([
  ["failed", { status: "failed", error: { code: 1, message: "m" } }, 'failed: {"code":1,"message":"m"}'],
  ["cancelled", { status: "cancelled" }, "cancelled by the server"],
  ["completed without a result", { status: "completed" }, "without a result"],
  ["of an unknown status", { status: "lost" }, 'unknown status "lost"'],
  ["without a status", {}, "unknown status"],
])("followTask: %s -> the call fails and says so", async (_, look, words) => {
  const { outcome } = await follow([look]);
  expect((outcome as Error).message).toContain(words);
});

test.each([undefined, "", 7, "x".repeat(1_001)])(
  "followTask: the id %j -> the call fails",
  async (taskId) => {
    const { outcome, requests } = await follow([], { created: { status: "working", taskId } });
    expect((outcome as Error).message).toContain("without a usable id");
    expect(requests).toEqual([]);
  },
);

test("followTask: given up -> the task is taken back", async () => {
  const given = AbortSignal.abort(new Error("given up"));
  const at = await follow([], { who: party({ signal: given }) as Asked });
  expect(at.outcome).toMatchObject({ message: "given up" });
  expect(at.cancelled).toEqual(["1"]);
});

test("followTask: it needs an answer of the model, and gets none -> the call fails, and the task is taken back", async () => {
  const sample = () => Promise.reject(new NoReply(-1, "User rejected sampling request"));
  const asks = { may: { ask: false, sample: true }, sample } as unknown as Party["asks"];
  const inputRequests = { a: { method: "sampling/createMessage", params: {} } };
  const at = await follow([{ status: "input_required", inputRequests }], { who: party({ asks }) });
  expect(at.outcome).toMatchObject({ code: "call_rejected" });
  expect(at.cancelled).toEqual(["1"]);
});

test("changesFilter: what the server says -> what it is asked to tell", () => {
  expect(
    changesFilter({ tools: { listChanged: true }, prompts: {}, resources: { listChanged: true } }),
  ).toEqual({
    toolsListChanged: true,
    resourcesListChanged: true,
  });
  expect(changesFilter({ tools: {}, logging: { listChanged: true } })).toBeUndefined();
});

test("followChanges: a stream that ends at once each time -> ever longer pauses, and the lists each time", async () => {
  const over = new AbortController();
  const waits: number[] = [];
  let changed = 0;
  await followChanges({
    open: async () => undefined,
    onChanged: () => changed++,
    onNote: () => undefined,
    signal: over.signal,
    now: () => 0,
    wait: async (ms) => {
      waits.push(ms);
      if (waits.length === 12) over.abort();
    },
  });
  expect(waits.slice(0, 3)).toEqual([2_000, 4_000, 8_000]);
  expect(waits.at(-1)).toBe(300_000);
  expect(changed).toBe(11);
  expect(listenAgainMs(0)).toBe(1_000);
});

test("followChanges: a server that refuses the stream -> not asked again, with a note", async () => {
  const notes: string[] = [];
  await followChanges({
    open: () => Promise.reject(new Error("unknown method")),
    onChanged: () => expect.unreachable("nothing changed"),
    onNote: (note) => notes.push(note),
    signal: new AbortController().signal,
  });
  expect(notes).toEqual(["does not tell when its lists change: unknown method"]);
});

describe("readDiscovered", () => {
  test.each<[string, Record<string, unknown>, unknown]>([
    [
      "all of it",
      { supportedVersions: [MODERN_VERSION], capabilities: { tools: {} }, instructions: "Ask first." },
      { capabilities: { tools: {} }, instructions: "Ask first." },
    ],
    ["nothing", {}, { capabilities: EVERY_LIST, instructions: undefined }],
    ["versions that are no list", { supportedVersions: "2099-01-01" }, { capabilities: EVERY_LIST }],
    ["capabilities that are a list", { capabilities: [] }, { capabilities: EVERY_LIST }],
    ["capabilities that are null", { capabilities: null }, { capabilities: EVERY_LIST }],
    ["instructions that are no text", { instructions: { text: "x" } }, { instructions: undefined }],
  ])("%s -> %j", (_what, result, expected) => {
    expect(readDiscovered("s", result)).toMatchObject(expected as object);
  });

  test("it names only other revisions -> connect_failed, with the revisions", () => {
    expect(() => readDiscovered("s", { supportedVersions: ["2099-01-01"] })).toThrow(
      `s speaks MCP "2099-01-01", and this client up to ${MODERN_VERSION}.`,
    );
  });
});

test("a thousand revisions of any kind -> five are named, each cut", () => {
  const error = tooNew("s", ["v".repeat(100), 7, ...Array.from({ length: 1_000 }, () => "x")]);
  expect(error.message).toBe(
    `s speaks MCP "${"v".repeat(60)}", "number", "x", "x", "x", and this client up to ${MODERN_VERSION}.`,
  );
  expect(error).toMatchObject({ code: "connect_failed", data: { server: "s" } });
});

const NOW = 1_800_000_000_000;
const of = (until: number, listedAt?: number): Freshness => ({ until, listedAt, isPublic: true });
const REMEMBERED = of(NOW + 5_000);

describe("afterPage", () => {
  test.each<[string, unknown, number]>([
    ["a time", 90_000, 90_000],
    ["no time", undefined, 0],
    ["zero", 0, 0],
    ["a negative time", -5, 0],
    ["no number", "90000", 0],
    ["no number at all", Number.NaN, 0],
    ["for ever", Number.POSITIVE_INFINITY, FRESH_MOST_MS],
    ["longer than a day", FRESH_MOST_MS + 1, FRESH_MOST_MS],
  ])("the first page says %s -> it counts from the request, bounded", (_what, ttlMs, freshMs) => {
    const after = afterPage(REMEMBERED, { isFirst: true, ttlMs, cacheScope: "public", sentAt: NOW });
    expect(after).toEqual(of(NOW + freshMs, NOW));
  });

  test.each<[string, unknown, number]>([
    ["less", 10_000, NOW + 11_000],
    ["more", 500_000, NOW + 90_000],
    ["nothing", undefined, NOW + 1_000],
  ])("a later page says %s -> the shortest time of all pages counts", (_what, ttlMs, until) => {
    const page = { isFirst: false, ttlMs, cacheScope: "public", sentAt: NOW + 1_000 };
    expect(afterPage(of(NOW + 90_000, NOW), page)).toEqual(of(until, NOW + 1_000));
  });

  test.each([undefined, null, "private", "Public", 1])("the scope %j -> it is private", (cacheScope) => {
    const page = { isFirst: true, ttlMs: 5, cacheScope, sentAt: NOW };
    expect(afterPage(REMEMBERED, page).isPublic).toBe(false);
  });
});

describe("isStale", () => {
  test.each<[string, Freshness, number, boolean]>([
    ["remembered, before its time", REMEMBERED, NOW + 4_999, false],
    ["remembered, at its time", REMEMBERED, NOW + 5_000, true],
    ["remembered without a time", of(0), NOW, true],
    ["listed without a time", of(NOW, NOW), NOW + FRESH_MOST_MS, false],
    ["listed with a short time, before the least", of(NOW + 10, NOW), NOW + FRESH_LEAST_MS - 1, false],
    ["listed with a short time, at the least", of(NOW + 10, NOW), NOW + FRESH_LEAST_MS, true],
    ["listed, before its time", of(NOW + 90_000, NOW), NOW + 89_999, false],
    ["listed, at its time", of(NOW + 90_000, NOW), NOW + 90_000, true],
  ])("%s -> stale: %#", (_what, freshness, now, expected) => {
    expect(isStale(freshness, now, false)).toBe(expected);
    // The time that the server says counts whether its changes are heard or not.
    if (freshness.until !== freshness.listedAt) expect(isStale(freshness, now, true)).toBe(expected);
  });

  test("listed without a time, and nobody hears of changes -> stale after the least time", () => {
    const stale = (ms: number): boolean => isStale(of(NOW, NOW), NOW + ms, true);
    expect([stale(FRESH_LEAST_MS - 1), stale(FRESH_LEAST_MS)]).toEqual([false, true]);
  });
});

test.each([
  ["us-west1", "us-west1"],
  ["", ""],
  ["a b", "a b"],
  ["Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="],
  [" padded ", "=?base64?IHBhZGRlZCA=?="],
  ["line1\nline2", "=?base64?bGluZTEKbGluZTI=?="],
  ["\tx", "=?base64?CXg=?="],
  ["=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="],
  ["=?base64?open", "=?base64?open"],
])("headerValue: %j -> %s", (text, value) => {
  expect(headerValue(text)).toBe(value);
});

const schema = (properties: object, more = {}) => ({ type: "object", properties, ...more });
const at = (header: unknown, type: unknown = "string") => ({ type, "x-mcp-header": header });

test.each<[string, unknown, string[][]]>([
  ["none", schema({ a: { type: "string" } }), []],
  [
    "one of each kind",
    schema({ a: at("A"), b: at("B", "integer"), c: at("C", "boolean") }),
    [["a"], ["b"], ["c"]],
  ],
  ["one that may be null", schema({ a: at("A", ["string", "null"]) }), [["a"]]],
  ["one of an object", schema({ a: schema({ b: at("B") }) }), [["a", "b"]]],
  ["a property of that name", schema({ "x-mcp-header": { type: "string" } }), []],
  ["data that look like one", schema({ a: { const: { "x-mcp-header": "A" } } }), []],
  ["no schema", undefined, []],
])("mirroredParameters: %s -> the paths", (_, given, paths) => {
  const found = mirroredParameters(given);
  expect("problem" in found ? found : found.map(({ path }) => path)).toEqual(paths);
});

test.each<[string, unknown]>([
  ["empty", schema({ a: at("") })],
  ["not a text", schema({ a: at(7) })],
  ["a space", schema({ a: at("My Region") })],
  ["a colon", schema({ a: at("Region:Primary") })],
  ["a line end", schema({ a: at("Region\r\nX: y") })],
  ["beyond ASCII", schema({ a: at("Région") })],
  ["an object", schema({ a: at("A", "object") })],
  ["a list", schema({ a: at("A", "array") })],
  ["null", schema({ a: at("A", "null") })],
  ["a number", schema({ a: at("A", "number") })],
  ["no type", schema({ a: { "x-mcp-header": "A" } })],
  ["the same name twice", schema({ a: at("A"), b: at("a") })],
  ["in items", schema({ a: { type: "array", items: at("A") } })],
  ["in anyOf", schema({ a: { anyOf: [at("A")] } })],
  ["in $defs", schema({}, { $defs: { a: at("A") } })],
  ["in if", schema({}, { if: schema({ a: at("A") }) })],
  ["at the root", { "x-mcp-header": "A", type: "string" }],
  [
    "more than a server needs",
    schema(Object.fromEntries(Array.from({ length: 51 }, (_, i) => [`p${i}`, at(`P${i}`)]))),
  ],
])("mirroredParameters: %s -> the tool is left out", (_, given) => {
  expect(mirroredParameters(given)).toHaveProperty("problem");
});

test("parameterHeaders: null, absent and objects have no header; too long values -> none at all", () => {
  const mirrored = [..."abcd"].map((key) => ({ header: key.toUpperCase(), path: [key] }));
  expect(parameterHeaders(mirrored, { a: 7, b: null, c: { x: 1 } })).toEqual({ "mcp-param-A": "7" });
  expect(parameterHeaders(mirrored, { a: "x".repeat(13_000) })).toBeUndefined();
  expect(parameterHeaders([{ header: "P", path: ["__proto__"] }], {})).toEqual({});
});

test.each<[string, Record<string, unknown>, string | undefined]>([
  ["tools/call", { name: "t" }, "t"],
  ["prompts/get", { name: "p" }, "p"],
  ["resources/read", { uri: "file:///ä" }, "=?base64?ZmlsZTovLy/DpA==?="],
  ["tasks/get", { taskId: "1" }, "1"],
  ["tools/list", { name: "t" }, undefined],
])("standardHeaders: %s -> its name", (method, params, name) => {
  expect(standardHeaders({ method, params })).toEqual({
    "mcp-protocol-version": "2026-07-28",
    "mcp-method": method,
    ...(name === undefined ? {} : { "mcp-name": name }),
  });
});

test("MirroredHeaders: a list of tools -> those with a wrong annotation are left out, and the log is told of 20", () => {
  const notes: string[] = [];
  const headers = new MirroredHeaders();
  const wrong = Array.from({ length: 30 }, (_, i) => ({ name: `w${i}`, inputSchema: schema({ a: at("") }) }));
  const right = { name: "right", inputSchema: schema({ region: at("Region") }) };
  expect(headers.take([...wrong, right], (note) => notes.push(note))).toEqual([right]);
  expect(notes).toHaveLength(21);
  expect(notes[0]).toBe("its tool w0 is left out: its x-mcp-header is not a header's name");
  const call = { jsonrpc: "2.0" as const, id: 1, method: "tools/call" };
  expect(headers.of({ ...call, params: { name: "right", arguments: { region: "eu" } } })).toMatchObject({
    "mcp-param-Region": "eu",
  });
});

test("a task works on without a change -> each answered look is progress, and one without an answer is none", async () => {
  const working = { status: "working" };
  const done = { status: "completed", result: { content: [] } };
  const { outcome, status } = await follow([working, unanswered, working, working, done]);
  expect(outcome).toEqual({ content: [] });
  expect(status).toEqual(["working", "working", "working", "working", "completed"]);
});

/** A stream whose requests the test ends; nothing waits for a time. */
function setup() {
  const stream = new ChangeStream();
  const requests: { signal: AbortSignal; fail: (error: unknown) => void; end: () => void }[] = [];
  const notes: string[] = [];
  const lifetime = new AbortController();
  let changes = 0;
  const ended = stream.follow({
    signal: lifetime.signal,
    onNote: (note) => notes.push(note),
    onChanged: () => changes++,
    wait: async () => undefined,
    isRefusal: (error) => error !== "broken",
    request: (signal) => {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      signal.addEventListener("abort", () => reject(signal.reason), { once: true });
      requests.push({ signal, fail: reject, end: resolve });
      return promise;
    },
  });
  const close = async (): Promise<void> => {
    lifetime.abort();
    await ended;
  };
  return { stream, requests, notes, ended, close, changes: () => changes };
}

test("the server cancels the stream by its id -> the stream is opened again, and the lists are asked for", async () => {
  const { stream, requests, close, changes } = setup();
  stream.acknowledged("7");
  stream.cancelled("7");
  await settle();
  expect([requests.length, requests[0]?.signal.aborted, changes()]).toEqual([2, true, 1]);
  await close();
});

test.each<[string, unknown, unknown]>([
  ["another request", "7", "8"],
  ["a stream that it has not acknowledged", undefined, undefined],
  ["a request before it has acknowledged the stream", undefined, "7"],
  ["the same id as another type", 7, "7"],
])("the server cancels %s -> the stream stays open", async (_what, acknowledged, cancelled) => {
  const { stream, requests, close } = setup();
  if (acknowledged !== undefined) stream.acknowledged(acknowledged);
  stream.cancelled(cancelled);
  await settle();
  expect([requests.length, requests[0]?.signal.aborted]).toEqual([1, false]);
  await close();
});

test("the second stream -> the id of the first one counts no more", async () => {
  const { stream, requests, close } = setup();
  stream.acknowledged("7");
  requests[0]?.end();
  await settle();
  stream.cancelled("7");
  expect(requests[1]?.signal.aborted).toBe(false);
  await close();
});

test("the server refuses the stream -> it is not opened again; any other error opens it again", async () => {
  const { requests, notes, ended } = setup();
  requests[0]?.fail("broken");
  await settle();
  requests[1]?.fail("refused");
  await ended;
  expect(requests).toHaveLength(2);
  expect(notes.at(-1)).toMatch(/^does not tell when its lists change/);
});

test("the server acknowledges and cancels although no stream is open -> nothing happens", () => {
  const stream = new ChangeStream();
  stream.acknowledged("7");
  expect(() => stream.cancelled("7")).not.toThrow();
});
