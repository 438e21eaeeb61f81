/** Owns: the headers of a session, which loss counts, and one attempt to open another session for all that wait. */

import { Readable } from "node:stream";
import { afterEach, describe, expect, test, vi } from "vitest";
import type { JSONRPCMessage, JSONRPCRequest } from "../../../../../../workers/connection/mcp/wire/wire.ts";
import { Noise, tooSlow, unaskedTooLong } from "../../../../../../workers/connection/messages/too-large.ts";
import {
  OpenExchanges,
  Resume,
  receiveAnswer,
} from "../../../../../../workers/connection/transports/http/exchange.ts";
import {
  AnswerError,
  type HttpFailure,
} from "../../../../../../workers/connection/transports/http/failure.ts";
import {
  followNotifications,
  HttpSession,
  type NotificationOptions,
  resumeAfterMs,
  type SessionOptions,
  streamRefusal,
} from "../../../../../../workers/connection/transports/http/streamable.ts";

import { mayRepeat } from "../../../../../../workers/connection/transports/http/transport.ts";

const INITIALIZE = { jsonrpc: "2.0", id: 0, method: "initialize", params: { a: 1 } } as const;

type Answer = { id: string; version?: string | undefined } | { rejection: string } | Error;

/** A session in front of a server that answers each `initialize` as told: an id, a rejection or an error. */
function sessionWith(answers: readonly Answer[], initialized = async (): Promise<void> => undefined) {
  const events: string[] = [];
  const asked: unknown[] = [];
  const options: SessionOptions = {
    initialize: async (request) => {
      asked.push(request);
      events.push(`initialize ${request.id}, session ${session.id}`);
      const answer = answers[asked.length - 1];
      await Promise.resolve();
      if (answer instanceof Error) throw answer;
      if (answer && "rejection" in answer) return answer;
      if (answer) session.accept(answer.id);
      return { result: { protocolVersion: answer && "version" in answer ? answer.version : "2025-11-25" } };
    },
    initialized: () => {
      events.push(`initialized, ${session.headers()["mcp-protocol-version"]}, lost ${session.isLost}`);
      return initialized();
    },
    onLost: () => events.push("lost"),
    onReopened: ({ protocolVersion }) => events.push(`open, ${protocolVersion}`),
  };
  const session = new HttpSession(options);
  session.begin(INITIALIZE);
  session.accept("one");
  return { session, events, asked };
}

const OPEN = "open, 2025-11-25";

describe("HttpSession", () => {
  test("headers -> the session and the protocol version, each once it is known", () => {
    const { initialize, initialized, onLost, onReopened } = {
      initialize: async () => ({ result: {} }),
      initialized: async () => undefined,
      onLost: () => undefined,
      onReopened: () => undefined,
    };
    const session = new HttpSession({ initialize, initialized, onLost, onReopened });
    expect(session.headers()).toEqual({});
    session.accept("one");
    expect(session.headers()).toEqual({ "mcp-session-id": "one" });
    session.agree("2025-11-25");
    expect(session.headers()).toEqual({ "mcp-session-id": "one", "mcp-protocol-version": "2025-11-25" });
  });

  test.each<[string, string | undefined, boolean]>([
    ["the session that is open", "one", true],
    ["an older session", "zero", false],
    ["no session", undefined, false],
  ])("a request under %s learns of the loss -> lost: $2", (_name, id, isLost) => {
    const { session, events } = sessionWith([]);
    session.lose(id);
    session.lose(id);
    expect(session.isLost).toBe(isLost);
    expect(events).toEqual(isLost ? ["lost"] : []);
  });

  test("reopen -> the same initialize with another id and no session, then initialized", async () => {
    const { session, events, asked } = sessionWith([{ id: "two" }]);
    session.lose("one");
    await session.reopen();
    expect(asked).toEqual([{ ...INITIALIZE, id: "reopen-1" }]);
    expect(events).toEqual([
      "lost",
      "initialize reopen-1, session undefined",
      "initialized, 2025-11-25, lost true",
      OPEN,
    ]);
    expect(session.id).toBe("two");
    expect(session.isLost).toBe(false);
  });

  test("three requests wait -> one initialize; a request that learns of the old loss later -> none", async () => {
    const { session, asked } = sessionWith([{ id: "two" }]);
    session.lose("one");
    await Promise.all([session.reopen(), session.reopen(), session.reopen()]);
    session.lose("one");
    expect(session.isLost).toBe(false);
    expect(asked).toHaveLength(1);
  });

  test("the attempt fails -> all that wait fail, the session stays lost, the next call tries again", async () => {
    const { session, asked } = sessionWith([new Error("gone"), { id: "two" }]);
    session.lose("one");
    const waiting = await Promise.allSettled([session.reopen(), session.reopen()]);
    expect(waiting.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    expect(session.isLost).toBe(true);
    await session.reopen();
    expect(session.isLost).toBe(false);
    expect(asked).toEqual([
      { ...INITIALIZE, id: "reopen-1" },
      { ...INITIALIZE, id: "reopen-2" },
    ]);
  });

  test("the server rejects the new session -> NotSent with the server's words, still lost", async () => {
    const { session, events } = sessionWith([{ rejection: "too many sessions" }]);
    session.lose("one");
    await expect(session.reopen()).rejects.toMatchObject({
      name: "NotSent",
      message: "it refused a new session: too many sessions",
    });
    expect(session.isLost).toBe(true);
    expect(events).not.toContain(OPEN);
  });

  test("a server that chooses another revision in the new session -> that one from then on, and none in initialize", async () => {
    const sent: unknown[] = [];
    const session: HttpSession = new HttpSession({
      initialize: async () => {
        sent.push(session.headers());
        session.accept("two");
        return { result: { protocolVersion: "2025-06-18" } };
      },
      initialized: async () => void sent.push(session.headers()),
      onLost: () => undefined,
      onReopened: () => undefined,
    });
    session.begin(INITIALIZE);
    session.accept("one");
    session.agree("2025-11-25");
    session.lose("one");
    await session.reopen();
    const headers = { "mcp-session-id": "two", "mcp-protocol-version": "2025-06-18" };
    expect(sent).toEqual([{}, headers]);
    expect(session.headers()).toEqual(headers);
  });

  test("a revision that this client does not know -> NotSent, still lost", async () => {
    const { session, events } = sessionWith([{ id: "two", version: undefined }]);
    session.lose("one");
    await expect(session.reopen()).rejects.toMatchObject({
      name: "NotSent",
      message: "it opened a new session in a revision of MCP that is not known here",
    });
    expect(session.isLost).toBe(true);
    expect(events).not.toContain(OPEN);
  });

  test("the server is not reached for initialized -> still lost, and the next call opens another session", async () => {
    const answers = [async () => Promise.reject(new Error("gone")), async () => undefined];
    const { session } = sessionWith([{ id: "two" }, { id: "three" }], () =>
      (answers.shift() ?? (async () => undefined))(),
    );
    session.lose("one");
    await expect(session.reopen()).rejects.toThrow("gone");
    expect(session.isLost).toBe(true);
    await session.reopen();
    expect(session.isLost).toBe(false);
    expect(session.id).toBe("three");
  });

  test("lost before any initialize -> BrokenAnswer", async () => {
    const session = new HttpSession({
      initialize: () => Promise.reject(new Error("not expected")),
      initialized: async () => undefined,
      onLost: () => undefined,
      onReopened: () => undefined,
    });
    await expect(session.reopen()).rejects.toMatchObject({ name: "BrokenAnswer" });
  });
});

test.each([
  ["tools/call", false],
  ["initialize", false],
  ["elicitation/create", false],
  ["toString", false],
  ["tools/list", true],
  ["resources/read", true],
  ["prompts/get", true],
  ["ping", true],
])("mayRepeat(%s) -> %s", (method, expected) => {
  expect(mayRepeat(method)).toBe(expected);
});

const busy = (status: number): HttpFailure => ({ kind: "busy", status, retryAfterMs: undefined, text: "" });

const rejected = (status: number): HttpFailure => ({ kind: "rejected", status, text: "" });
const refuses = (status: number): HttpFailure => ({ kind: "refuses-streamable", status, text: "" });
const portal: HttpFailure = { kind: "redirect", status: 302, to: new URL("http://portal.test/") };

type Refusal = ReturnType<typeof streamRefusal>;
test.each<[string, first: Refusal, afterOpen: Refusal, HttpFailure]>([
  ["a lost session", "session lost", "session lost", { kind: "session-lost", isAccepted: false }],
  ["503", "later", "later", busy(503)],
  ["429", "later", "later", busy(429)],
  ["501", "never", "never", busy(501)],
  ["405", "never", "never", refuses(405)],
  ["404", "never", "later", refuses(404)],
  ["409", "later", "later", rejected(409)],
  ["400", "never", "later", rejected(400)],
  ["403", "never", "later", rejected(403)],
  ["401", "never", "later", { kind: "needs-auth", status: 401, challenge: undefined, text: "" }],
  ["a page", "never", "later", { kind: "web-page", status: 200, text: "" }],
  ["a redirect to another server", "never", "later", portal],
])("streamRefusal: %s -> %s; after a stream that was open -> %s", (_name, first, afterOpen, failure) => {
  expect(streamRefusal(failure, { wasOpen: false })).toBe(first);
  expect(streamRefusal(failure, { wasOpen: true })).toBe(afterOpen);
});

const answer = (id: number | string): JSONRPCMessage => ({ jsonrpc: "2.0", id, result: {} });
const error = (id: number): JSONRPCMessage => ({ jsonrpc: "2.0", id, error: { code: 1, message: "no" } });

const request = (id: number | string): JSONRPCRequest => ({ jsonrpc: "2.0", id, method: "tools/call" });

function opened() {
  const messages: JSONRPCMessage[] = [];
  const open = new OpenExchanges((message) => messages.push(message));
  return { open, messages };
}

describe("deliver", () => {
  test.each<[string, JSONRPCMessage, boolean]>([
    ["its result", answer(7), true],
    ["its error", error(7), true],
    ["the answer to another request", answer(8), false],
    ["an answer with the id as text", answer("7"), false],
    [
      "an error without an id",
      { jsonrpc: "2.0", error: { code: 1, message: "no" } } as JSONRPCMessage,
      false,
    ],
    ["a request of the server with the same id", { jsonrpc: "2.0", id: 7, method: "ping" }, false],
    ["a notification", { jsonrpc: "2.0", method: "notifications/message" }, false],
  ])("%s -> handed on once, the request is answered: $2", (_name, message, isAnswered) => {
    const { open, messages } = opened();
    const exchange = open.open(request(7));
    let told = 0;
    exchange.onAnswered = () => {
      // The client has the answer already when the stream is ended for it.
      expect(messages).toEqual([message]);
      told++;
    };
    open.deliver(message);
    expect(messages).toEqual([message]);
    expect(exchange.answered).toBe(isAnswered);
    expect(told).toBe(isAnswered ? 1 : 0);
  });

  test("an answer that the transport keeps for itself -> not handed to the client", () => {
    const { open, messages } = opened();
    const kept: JSONRPCMessage[] = [];
    open.open(request("reopen-1"), (message) => kept.push(message));
    open.deliver(answer("reopen-1"));
    expect(kept).toEqual([answer("reopen-1")]);
    expect(messages).toEqual([]);
  });

  test("a late answer, after the request is over -> a message like any other", () => {
    const { open, messages } = opened();
    const exchange = open.open(request(7));
    open.close(7);
    open.deliver(answer(7));
    expect(messages).toEqual([answer(7)]);
    expect(exchange.answered).toBe(false);
  });
});

test("asked -> the open requests by their ids as texts", () => {
  const { open } = opened();
  open.open(request(1));
  open.open(request("reopen-1"));
  open.close(1);
  expect([...open.asked()]).toEqual([["reopen-1", "tools/call"]]);
});

describe("cancel", () => {
  test("one -> its signal alone; an id that is not open -> nothing", () => {
    const { open } = opened();
    const [one, two] = [open.open(request(1)), open.open(request(2))];
    open.cancel(1);
    open.cancel(3);
    expect([one, two].map(({ controller }) => controller.signal.aborted)).toEqual([true, false]);
  });

  test("a request whose session is lost -> its signal too, and the server does not know it; a later request -> known", () => {
    const { open } = opened();
    const lost = open.open(request(1));
    open.sessionLost();
    open.open(request(2));
    expect([open.cancel(1), open.cancel(2), open.cancel(3)]).toEqual([false, true, true]);
    expect(lost.controller.signal.aborted).toBe(true);
  });

  test("cancelAll -> all that are open; a request that is over keeps its signal", () => {
    const { open } = opened();
    const exchanges = [open.open(request(1)), open.open(request(2)), open.open(request(3))];
    open.close(2);
    open.cancelAll();
    expect(exchanges.map(({ controller }) => controller.signal.aborted)).toEqual([true, false, true]);
  });
});

const HOUR_MS = 60 * 60 * 1_000;
/** For streams that are opened again each second, all hour long. */
const MINUTES_MS = 5 * 60 * 1_000;

afterEach(() => {
  vi.useRealTimers();
});

/** `breaks`: the error with which the stream ends. */
type Streams = (nth: number) => { text: string; livesMs?: number; breaks?: Error } | Error | undefined;

/** Follows the streams for an hour, or that time, of a clock that only the waits and the streams move. */
async function follow(streams: Streams, forMs = HOUR_MS) {
  vi.useFakeTimers({ toFake: ["performance"] });
  const startedAt = performance.now();
  const ended = new AbortController();
  const waits: number[] = [];
  const notes: string[] = [];
  const ids: (string | undefined)[] = [];
  const known: boolean[] = [];
  let unheard = 0;
  const pass = (ms: number): void => {
    vi.advanceTimersByTime(ms);
    if (performance.now() - startedAt >= forMs) ended.abort();
  };
  const options: NotificationOptions = {
    open: async ({ lastId, wasOpen }) => {
      ids.push(lastId);
      known.push(wasOpen);
      const stream = streams(ids.length - 1);
      if (stream instanceof Error) throw stream;
      if (!stream) return undefined;
      const { text, livesMs = 0, breaks } = stream;
      const body = Readable.from(
        (async function* () {
          yield Buffer.from(text);
          pass(livesMs);
          if (breaks) throw breaks;
        })(),
      );
      return { status: 200, headers: {}, body };
    },
    noise: new Noise(() => undefined),
    onEvent: ({ data }) => {
      if (`${data}` === "refuse") throw unaskedTooLong(20_000_000, 16_777_216);
      return undefined;
    },
    onUnheard: () => unheard++,
    onNote: (note) => notes.push(note),
    maxBytes: 1_000,
    signal: ended.signal,
    wait: async (ms) => {
      waits.push(ms);
      pass(ms);
    },
  };
  await followNotifications(options);
  return { waits, notes, ids, known, unheard };
}

const ONCE = "ended its notification stream; it is opened again from now on";
const RARELY = "ends its notification stream at once each time; it is opened every 5 minutes now";

describe("followNotifications, a server that ends its stream", () => {
  test.each<[string, Streams]>([
    ["at once with retry: 0", () => ({ text: "retry: 0\n\n" })],
    ["at once without a word", () => ({ text: "" })],
    ["at once with a comment", () => ({ text: ": hello\n\n" })],
    ["by breaking it", () => new Error("reset")],
    ["after nine silent seconds", () => ({ text: "", livesMs: 9_000 })],
  ])("%s -> ever more slowly, at last 12 times an hour, with two notes", async (_name, streams) => {
    const { waits, notes } = await follow(streams);
    expect(waits.slice(0, 9)).toEqual([
      2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000, 256_000, 300_000,
    ]);
    expect(new Set(waits.slice(8))).toEqual(new Set([300_000]));
    expect(waits.length).toBeLessThan(24);
    expect(notes).toEqual([ONCE, RARELY]);
  });

  test("after each event, with retry: 0 -> once a second, with the last id and one note", async () => {
    const { waits, notes, ids } = await follow(
      (nth) => ({ text: `retry: 0\nid: ${nth}\ndata: x\n\n` }),
      MINUTES_MS,
    );
    expect(new Set(waits)).toEqual(new Set([1_000]));
    expect(notes).toEqual([ONCE]);
    expect(ids.slice(0, 3)).toEqual([undefined, "0", "1"]);
  });

  test("after a silent minute, as proxies do -> opened again after a second each time", async () => {
    const { waits, notes } = await follow(() => ({ text: "", livesMs: 60_000 }));
    expect(new Set(waits)).toEqual(new Set([1_000]));
    expect(notes).toEqual([ONCE]);
  });

  test("and later sends something -> the waits begin again", async () => {
    const { waits } = await follow((nth) => ({ text: nth === 4 ? "data: x\n\n" : "" }));
    expect(waits.slice(0, 7)).toEqual([2_000, 4_000, 8_000, 16_000, 1_000, 2_000, 4_000]);
  });

  test("and names 3 s or 11 days -> so long; and names 30 years -> as if it named none", async () => {
    const named = async (retry: string) =>
      (await follow(() => ({ text: `retry: ${retry}\ndata: x\n\n` }), MINUTES_MS)).waits[0];
    expect(await named("3000")).toBe(3_000);
    expect(await named("999999999")).toBe(999_999_999);
    expect(await named("1000000000000")).toBe(1_000);
  });

  test("because a message was refused for its size, each time -> a note each time, ever more slowly", async () => {
    const { waits, notes } = await follow(() => ({ text: `data: ${"x".repeat(2_000)}\n\n` }));
    expect(waits.slice(0, 3)).toEqual([2_000, 4_000, 8_000]);
    const told =
      "sent one message of more than 1,000 bytes on its notification stream, which is opened again without it. " +
      "Ask the server for less at a time, or raise maxMessageBytes in the settings of mcp.json.";
    expect(notes.filter((note) => note !== RARELY)).toEqual(waits.map(() => told));
    expect(notes.filter((note) => note === RARELY)).toHaveLength(1);
  });

  test.each([
    ["longer than allowed", `id: 8\ndata: ${"x".repeat(2_000)}`],
    ["that is whole and refused", "id: 8\ndata: refuse\n\n"],
  ])("after an event %s -> opened again behind that event", async (_name, text) => {
    const { ids } = await follow((nth) =>
      nth === 0 ? { text: `id: 7\ndata: x\n\n${text}` } : { text: "", livesMs: HOUR_MS },
    );
    expect(ids).toEqual([undefined, "8"]);
  });

  test("in the middle of an event -> opened again before that event", async () => {
    const { ids } = await follow((nth) =>
      nth === 0 ? { text: "id: 7\ndata: x\n\nid: 8\ndata: ha" } : { text: "", livesMs: HOUR_MS },
    );
    expect(ids).toEqual([undefined, "7"]);
  });

  test("in the middle of an event that comes too slowly while others wait -> opened again behind that event", async () => {
    const { ids } = await follow((nth) =>
      nth === 0
        ? { text: "id: 7\ndata: x\n\nid: 8\ndata: ha", breaks: tooSlow(2_000_000) }
        : { text: "", livesMs: HOUR_MS },
    );
    expect(ids).toEqual([undefined, "8"]);
  });

  test("after a notification that was refused for its size -> one note for each", async () => {
    const { waits, notes } = await follow(
      (nth) => ({ text: nth === 0 ? "data: refuse\n\n" : "data: x\n\n" }),
      MINUTES_MS,
    );
    expect(waits[0]).toBe(1_000);
    expect(notes).toEqual([
      "sent a notification or request of 19.1 MiB, more than 16 MiB on its notification stream, which is opened again " +
        "without it. This is a fault of the server: only answers to requests may be longer.",
      ONCE,
    ]);
  });

  test.each<[string, Streams, number]>([
    ["never", () => ({ text: "", livesMs: HOUR_MS }), 0],
    ["twice without an id", (nth) => ({ text: "", livesMs: nth < 2 ? 60_000 : HOUR_MS }), 2],
    [
      "twice with an id behind which it goes on",
      (nth) => ({ text: "id: 1\ndata: x\n\n", livesMs: nth < 2 ? 60_000 : HOUR_MS }),
      0,
    ],
    ["not at first, but later", (nth) => (nth < 2 ? new Error("503") : { text: "", livesMs: HOUR_MS }), 1],
    ["and refuses it from then on", (nth) => (nth < 1 ? { text: "" } : undefined), 0],
  ])("%s -> the client may have missed something: $2 times", async (_name, streams, times) => {
    expect((await follow(streams)).unheard).toBe(times);
  });

  test("and then offers none -> not asked again, with a note", async () => {
    const { ids, notes } = await follow((nth) => (nth === 2 ? undefined : { text: "" }));
    expect(ids).toHaveLength(3);
    expect(notes).toEqual([ONCE, "no longer offers a notification stream, and is not asked for one again"]);
  });

  test("and has never offered one -> not asked again, without a note", async () => {
    const { ids, notes } = await follow((nth) => (nth === 2 ? undefined : new Error("503")));
    expect(ids).toHaveLength(3);
    expect(notes).toEqual([ONCE]);
  });

  test("refused at first -> known to be offered once a stream was open", async () => {
    const { known } = await follow((nth) => (nth === 1 ? { text: "" } : new Error("503")));
    expect(known.slice(0, 4)).toEqual([false, false, true, true]);
  });

  test("and then refuses the last id with 400 -> opened without an id, and the client may have missed something", async () => {
    const { ids, unheard } = await follow((nth) => {
      if (nth === 0) return { text: "id: 7\ndata: x\n\n" };
      if (nth === 1) return new AnswerError({ status: 400, headers: {}, text: "Invalid event ID format" });
      return { text: "", livesMs: HOUR_MS };
    });
    expect(ids).toEqual([undefined, "7", undefined]);
    expect(unheard).toBe(1);
  });

  test("and then refuses it with 409, as while it holds the old one -> opened behind the last id", async () => {
    const { ids, unheard } = await follow((nth) => {
      if (nth === 0) return { text: "id: 7\ndata: x\n\n" };
      if (nth < 3) return new AnswerError({ status: 409, headers: {} });
      return { text: "", livesMs: HOUR_MS };
    });
    expect(ids).toEqual([undefined, "7", "7", "7"]);
    expect(unheard).toBe(0);
  });
});

test.each([
  [0, 0, 1_000],
  [500, 0, 1_000],
  [500, 1, 2_000],
  [2_000, 3, 16_000],
  [0, 1_000_000, 300_000],
  [999_999_999, 0, 999_999_999],
  [400_000, 5, 400_000],
])("resumeAfterMs(%i, %i) -> %i ms", (retryMs, vain, ms) => {
  expect(resumeAfterMs(retryMs, vain)).toBe(ms);
});

/** The waits between the attempts for an answer; `onStream` gets each stream. */
function resumed(retryMs: number | undefined, onStream: (resume: Resume) => void) {
  let now = 0;
  const resume = new Resume(() => now);
  resume.lastId = "1";
  if (retryMs !== undefined) resume.retryMs = retryMs;
  const waits: number[] = [];
  for (
    let waitMs = resume.nextMs();
    waitMs !== undefined && waits.length < 50_000;
    waitMs = resume.nextMs()
  ) {
    waits.push(waitMs);
    now += waitMs;
    resume.onAttempt("opened");
    onStream(resume);
  }
  return { waits, totalMs: now };
}

describe("Resume", () => {
  test.each([
    [undefined, 1_000],
    [500, 500],
    [0, 100],
    [5, 100],
    [120_000, 120_000],
    [999_999_999, 999_999_999],
  ])("a server that names %s ms -> first asked again after %i ms", (retryMs, ms) => {
    expect(resumed(retryMs, () => undefined).waits[0]).toBe(ms);
  });

  test("streams that bring nothing, with retry: 0 -> ever more slowly, and not without end", () => {
    const { waits, totalMs } = resumed(0, () => undefined);
    expect(waits).toHaveLength(200);
    expect(waits).toEqual(waits.toSorted((a, b) => a - b));
    expect(totalMs).toBeGreaterThan(HOUR_MS);
    // An answer that comes meanwhile waits for a tenth of the time at most.
    let sum = 0;
    for (const waitMs of waits) {
      expect(waitMs).toBeLessThanOrEqual(Math.max(100, sum * 0.1 + 1));
      sum += waitMs;
    }
  });

  test("a new id with each stream -> no message, so the same", () => {
    let id = 1;
    expect(resumed(0, (resume) => (resume.lastId = String(++id))).waits).toHaveLength(200);
  });

  test("a message with each stream -> at the pace that the server names", () => {
    const { waits } = resumed(250, (resume) => resume.onMessage());
    expect(new Set(waits)).toEqual(new Set([250]));
  });

  test("attempts that are refused -> two in a row, no more", () => {
    const resume = new Resume(() => 0);
    resume.lastId = "1";
    for (const attempt of ["refused", "opened", "refused", "put-off", "refused"] as const)
      resume.onAttempt(attempt);
    expect(resume.nextMs()).toBe(1_000);
    resume.onAttempt("refused");
    expect(resume.nextMs()).toBeUndefined();
  });

  test("a server out of reach -> tried for 15 s; one that was reached has as long again", () => {
    let now = 0;
    const resume = new Resume(() => now);
    resume.lastId = "1";
    const away = (): number => {
      const since = now;
      for (let waitMs: number | undefined = 0; waitMs !== undefined; waitMs = resume.nextMs()) {
        now += waitMs;
        resume.onAttempt("away");
      }
      return now - since;
    };
    expect(away()).toBeGreaterThanOrEqual(15_000);
    resume.onAttempt("opened");
    resume.onMessage();
    const ms = away();
    expect(ms).toBeGreaterThanOrEqual(15_000);
    expect(ms).toBeLessThan(20_000);
  });

  test("no id -> nothing to resume", () => {
    expect(new Resume(() => 0).nextMs()).toBeUndefined();
  });
});

test("receiveAnswer: the answer comes on another stream while the broken one waits -> settles, and resumes it no more", async () => {
  const { open } = opened();
  const exchange = open.open(request(7));
  const body = Readable.from([Buffer.from("id: 41\nretry: 100\n\n")]);
  let resumes = 0;
  await receiveAnswer({ status: 200, headers: { "content-type": "text/event-stream" }, body }, exchange, {
    url: new URL("http://web.test/"),
    maxBytes: 1_000,
    stream: {
      server: "web",
      batches: () => false,
      asked: () => open.asked(),
      isOver: () => false,
      hand: (message) => open.deliver(message),
      noise: new Noise(() => undefined),
      onNote: () => undefined,
    },
    resume: async () => {
      resumes++;
      // The next wait has begun then.
      setImmediate(() => open.deliver(answer(7)));
      throw new AnswerError({ status: 409, headers: {} });
    },
    signal: exchange.controller.signal,
  });
  expect(resumes).toBe(1);
});
