/** Owns: the headers of a session, which loss counts, and one attempt to open another session for all that wait. */
import { describe, expect, test } from "vitest";
import type { HttpFailure } from "../../../../../../workers/connection/transports/http/failure.ts";
import {
  HttpSession,
  mayRepeat,
  type SessionOptions,
  streamRefusal,
} from "../../../../../../workers/connection/transports/http/streamable.ts";

const INITIALIZE = { jsonrpc: "2.0", id: 0, method: "initialize", params: { a: 1 } } as const;

/** A session in front of a server that answers each `initialize` as told: an id, a rejection or an error. */
function sessionWith(answers: readonly ({ id: string } | { rejection: string } | Error)[]) {
  const events: string[] = [];
  const asked: unknown[] = [];
  const options: SessionOptions = {
    initialize: async (request) => {
      asked.push(request);
      events.push(`initialize ${request.id}, session ${session.id}`);
      const answer = answers[asked.length - 1];
      await Promise.resolve();
      if (answer instanceof Error) throw answer;
      if (answer && "rejection" in answer) return answer.rejection;
      if (answer) session.accept(answer.id);
      return undefined;
    },
    initialized: async () => void events.push(`initialized, lost ${session.isLost}`),
    onLost: () => events.push("lost"),
    onNote: (note) => events.push(note),
  };
  const session = new HttpSession(options);
  session.begin(INITIALIZE);
  session.accept("one");
  return { session, events, asked };
}

const NOTE = "had lost the session; a new one is open";

describe("HttpSession", () => {
  test("headers -> the session and the protocol version, each once it is known", () => {
    const { initialize, initialized, onLost, onNote } = {
      initialize: async () => undefined,
      initialized: async () => undefined,
      onLost: () => undefined,
      onNote: () => undefined,
    };
    const session = new HttpSession({ initialize, initialized, onLost, onNote });
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
  ])("a request under %s learns of the loss -> lost: %3$s", (_name, id, isLost) => {
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
      NOTE,
      "initialized, lost false",
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
    expect(events).not.toContain(NOTE);
  });

  test("lost before any initialize -> BrokenAnswer", async () => {
    const session = new HttpSession({
      initialize: () => Promise.reject(new Error("not expected")),
      initialized: async () => undefined,
      onLost: () => undefined,
      onNote: () => undefined,
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

test.each<[string, HttpFailure, ReturnType<typeof streamRefusal>]>([
  ["a lost session", { kind: "session-lost" }, "session lost"],
  ["503", busy(503), "later"],
  ["429", busy(429), "later"],
  ["501", busy(501), "never"],
  ["405", { kind: "refuses-streamable", status: 405, text: "" }, "never"],
  ["400", { kind: "rejected", status: 400, text: "" }, "never"],
  ["a page", { kind: "web-page", status: 200, text: "" }, "never"],
])("streamRefusal: %s -> %3$s", (_name, failure, expected) => {
  expect(streamRefusal(failure)).toBe(expected);
});
