/** Owns: how a request is repeated with answers, and how a task is followed, with a server that is a list of results. */
import { expect, test } from "vitest";
import { ThreadsError } from "../../../../../../src/shared/protocol/errors.ts";
import {
  changesFilter,
  followChanges,
  listenAgainMs,
} from "../../../../../../workers/connection/mcp/modern/changes.ts";
import {
  followTask,
  type Party,
  pollMs,
  type Result,
  throughRounds,
} from "../../../../../../workers/connection/mcp/modern/rounds.ts";

interface Asked extends Party {
  asked: unknown[];
  notes: string[];
}

function party(more: Partial<Party> = {}): Asked {
  const asked: unknown[] = [];
  const notes: string[] = [];
  const asks = {
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

test("throughRounds: answers and the state as it came -> the request is repeated with them, and only with them", async () => {
  const state = 'eyJ9\u0000 ü \\ud800 "';
  const { sent, send } = server([
    needs({ inputRequests: { a: ask("one"), b: ask("two") }, requestState: state }),
    needs({ requestState: "" }),
    needs({ inputRequests: { a: ask("three") } }),
    { content: [] },
  ]);
  const who = party();
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
  const error = await throughRounds(send, party()).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(ThreadsError);
  expect(error).toMatchObject({ code: "call_rejected", message: expect.stringContaining(words) });
  expect(sent.length).toBeLessThanOrEqual(11);
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
