/** Owns: for whom each message of a shared server is, and what of a session reaches the server. */

import { describe, expect, it, test } from "vitest";
import { WAITS } from "../../../../workers/shared/hub/wire.ts";
import { call, type Message, makeRoutes } from "./make-routes.ts";

const NUMBER = expect.any(Number);
/** The id under which the server got its last request. */
const idOf = ([message]: Message[]): unknown => message?.id;

describe("answers", () => {
  it.each([
    ["a number", "7", 7],
    ["0", "0", 0],
    ["a negative number", "-1", -1],
    ["a text", '"seven"', "seven"],
    ["an empty text", '""', ""],
    ["a text with escapes", '"a\\"\\u00e9\\n"', 'a"é\n'],
    ["a text of other scripts", '"漢😀"', "漢😀"],
    ["a text that reads as a number", '"7"', "7"],
  ])(
    "a request whose id is %s -> another id for the server, its own again for the session",
    (_name, id, value) => {
      const { a, server, serverSays } = makeRoutes("a");
      a.says(`{"jsonrpc":"2.0","id":${id},"method":"tools/list"}`);
      const [asked] = server();
      expect(asked).toEqual({ id: NUMBER, method: "tools/list" });
      serverSays({ id: asked?.id, result: { tools: [] } });
      expect(a.got()).toEqual([{ id: value, result: { tools: [] } }]);
    },
  );

  test("an id beyond what a double holds -> the very digits come back", () => {
    const { a, server, serverSays } = makeRoutes("a");
    const texts: string[] = [];
    a.deliver = (pieces) => void texts.push(Buffer.concat([...pieces]).toString());
    a.says('{"jsonrpc":"2.0","id":12345678901234567890,"method":"tools/list"}');
    serverSays({ id: idOf(server()), result: {} });
    expect(texts).toEqual(['{"jsonrpc":"2.0","id":12345678901234567890,"result":{}}']);
  });

  it.each(["[1]", '{"a":1}', `"${"x".repeat(1_000)}"`])(
    "a request whose id is %s -> dropped, and noted: no answer could name it",
    (id) => {
      const { a, server, notes } = makeRoutes("a");
      a.says(`{"jsonrpc":"2.0","id":${id},"method":"tools/list"}`);
      expect(server()).toEqual([]);
      expect(notes).toEqual(["was sent a request with an unreadable id, which is dropped"]);
    },
  );

  it.each([[{}], [{ a: "b" }], [[1]], ["x".repeat(1_000)]])(
    "a request whose progress token is %j -> goes as it came, under an id that is no other session's",
    (progressToken) => {
      const { a, b, server, serverSays } = makeRoutes("a", "b");
      for (let i = 0; i < 12; i++) b.says(call(i));
      const others = server().map(({ id }) => id);
      const asked = call(5, { _meta: { progressToken } });
      a.says(asked);
      const [sent] = server();
      expect(sent).toEqual({ ...asked, id: NUMBER });
      expect(others).not.toContain(sent?.id);
      serverSays({ id: sent?.id, result: 1 });
      expect([a.got(), b.got()]).toEqual([[{ id: 5, result: 1 }], []]);
    },
  );

  test("two sessions with one id -> each gets its own answer, in whatever order they come", () => {
    const { a, b, server, serverSays } = makeRoutes("a", "b");
    a.says(call(1));
    b.says(call(1));
    const [first, second] = server();
    expect(first?.id).not.toBe(second?.id);
    serverSays({ id: second?.id, result: "for b" });
    serverSays({ id: first?.id, error: { code: 1, message: "for a" } });
    expect(a.got()).toEqual([{ id: 1, error: { code: 1, message: "for a" } }]);
    expect(b.got()).toEqual([{ id: 1, result: "for b" }]);
  });

  test("a server that writes null for what it leaves out -> the session gets its progress and its answer, and nobody a question", () => {
    const { a, b, server, serverSays } = makeRoutes("a", "b");
    a.says(call(1, { _meta: { progressToken: "mine" } }));
    const [asked] = server();
    const progress = { method: "notifications/progress", params: { progressToken: asked?.id, progress: 1 } };
    serverSays({ id: null, ...progress });
    serverSays({ id: asked?.id, method: null, result: {} });
    expect(a.got()).toEqual([
      { id: null, ...progress, params: { progressToken: "mine", progress: 1 } },
      { id: 1, method: null, result: {} },
    ]);
    expect([b.got(), server()]).toEqual([[], []]);
  });

  test("a server that answers a number as a text -> the answer arrives", () => {
    const { a, server, serverSays } = makeRoutes("a");
    a.says(call(3));
    serverSays({ id: String(idOf(server())), result: 1 });
    expect(a.got()).toEqual([{ id: 3, result: 1 }]);
  });

  it.each([
    ["a second answer", (id: unknown) => ({ id, result: 2 }), false],
    ["an answer with an id that was never given", () => ({ id: 1e6, result: 2 }), true],
    ["an answer with a text as its id", () => ({ id: "x", result: 2 }), true],
    ["an answer with an empty text as its id", () => ({ id: "", result: 2 }), false],
    ["an answer with a fraction as its id", () => ({ id: 0.5, result: 2 }), false],
    ["an answer with an object as its id", () => ({ id: {}, result: 2 }), true],
  ])("%s -> no session gets it", (_name, message, isNoted) => {
    const { a, b, server, serverSays, notes } = makeRoutes("a", "b");
    a.says(call(1));
    const id = idOf(server());
    serverSays({ id, result: 1 });
    a.got();
    serverSays(message(id));
    expect([a.got(), b.got(), server()]).toEqual([[], [], []]);
    expect(notes.length > 0).toBe(isNoted);
  });
});

describe("progress", () => {
  it.each([
    ["a number", 5],
    ["a text", "five"],
  ])("a token that is %s -> back as the session wrote it, to it alone", (_name, progressToken) => {
    const { a, b, server, serverSays } = makeRoutes("a", "b");
    a.says(call(1, { _meta: { progressToken } }));
    b.says(call(1, { _meta: { progressToken } }));
    const [first, second] = server();
    const tokenOf = (message?: Message): unknown =>
      (message?.params as { _meta: Message } | undefined)?._meta.progressToken;
    expect(tokenOf(first)).not.toBe(tokenOf(second));
    const told = {
      method: "notifications/progress",
      params: { progressToken: tokenOf(second), progress: 1 },
    };
    serverSays(told);
    expect(a.got()).toEqual([]);
    expect(b.got()).toEqual([{ ...told, params: { progressToken, progress: 1 } }]);
  });

  test.each([true, false, "x"])(
    "a server that says itself that its call waits (%j) -> no session gets it",
    (waits) => {
      const { a, server, serverSays } = makeRoutes("a", "b");
      a.says(call(1, { _meta: { progressToken: 1 } }));
      const told = { progressToken: idOf(server()), progress: 1, _meta: { [WAITS]: waits } };
      serverSays({ method: "notifications/progress", params: told });
      expect(a.got()).toEqual([]);
    },
  );

  test("progress after the answer, or of nobody -> no session gets it", () => {
    const { a, b, server, serverSays } = makeRoutes("a", "b");
    a.says(call(1, { _meta: { progressToken: 1 } }));
    const id = idOf(server());
    serverSays({ id, result: 1 });
    a.got();
    for (const progressToken of [id, 99, "x"])
      serverSays({ method: "notifications/progress", params: { progressToken, progress: 1 } });
    expect([a.got(), b.got()]).toEqual([[], []]);
  });
});

describe("cancel", () => {
  const cancel = (requestId: unknown) => ({ method: "notifications/cancelled", params: { requestId } });

  test("a session cancels -> the server hears its own id; a late answer is dropped without a note", () => {
    const { a, b, server, serverSays, notes } = makeRoutes("a", "b");
    a.says(call("x"));
    b.says(call("x"));
    const [first, second] = server();
    a.says(cancel("x"));
    expect(server()).toEqual([cancel(first?.id)]);
    serverSays({ id: first?.id, result: 1 });
    serverSays({ id: second?.id, result: 2 });
    expect(a.got()).toEqual([]);
    expect(b.got()).toEqual([{ id: "x", result: 2 }]);
    expect(notes).toEqual([]);
  });

  test("a cancel of what is not open -> the server hears nothing, and no other session's request ends", () => {
    const { a, b, server } = makeRoutes("a", "b");
    a.says(call(1));
    const ours = idOf(server());
    for (const id of [1, ours, 99]) b.says(cancel(id));
    expect(server()).toEqual([]);
  });

  it.each([
    ["initialize", {}],
    ["logging/setLevel", { level: "debug" }],
    ["resources/subscribe", { uri: "file:///x" }],
  ])(
    "%s, which counts for others as well -> not cancelled, by its session or by its end",
    (method, params) => {
      const { a, b, server } = makeRoutes("a", "b");
      for (const party of [a, b]) party.says({ id: 0, method, params });
      expect(server()).toHaveLength(1);
      a.says(cancel(0));
      a.leaves();
      expect(server()).toEqual([]);
    },
  );

  test("a session that leaves -> all that is open of it is cancelled, and nothing of another", () => {
    const { a, b, server } = makeRoutes("a", "b");
    a.says(call(1));
    b.says(call(1));
    a.says(call(2));
    const [first, , third] = server();
    a.leaves();
    const params = (requestId: unknown) => ({ requestId, reason: "The session has ended." });
    expect(server()).toEqual(
      [first, third].map((one) => ({ method: "notifications/cancelled", params: params(one?.id) })),
    );
  });

  test("the server cancels its own question -> only the session that was asked hears it", () => {
    const { a, b, server, serverSays } = makeRoutes("a", "b");
    a.says(call(1));
    server();
    serverSays({ id: "q", method: "elicitation/create", params: {} });
    a.got();
    serverSays(cancel("q"));
    expect(a.got()).toEqual([cancel("q")]);
    expect(b.got()).toEqual([]);
  });
});

describe("the handshake", () => {
  const initialize = (id: unknown) => ({
    id,
    method: "initialize",
    params: { protocolVersion: "2025-11-25" },
  });

  test("three sessions, one before and two after the answer -> the server is asked once, each gets the answer", () => {
    const { a, b, c, server, serverSays } = makeRoutes("a", "b", "c");
    a.says(initialize(0));
    b.says(initialize("b"));
    const asked = server();
    expect(asked).toHaveLength(1);
    const result = { protocolVersion: "2025-11-25", capabilities: {} };
    serverSays({ id: idOf(asked), result });
    c.says(initialize(9));
    expect(server()).toEqual([]);
    expect([a.got(), b.got(), c.got()]).toEqual([
      [{ id: 0, result }],
      [{ id: "b", result }],
      [{ id: 9, result }],
    ]);
  });

  test("the first session leaves before the answer -> the second gets it", () => {
    const { a, b, server, serverSays } = makeRoutes("a", "b");
    a.says(initialize(0));
    b.says(initialize(1));
    const id = idOf(server());
    a.leaves();
    expect(server()).toEqual([]);
    serverSays({ id, result: {} });
    expect([a.got(), b.got()]).toEqual([[], [{ id: 1, result: {} }]]);
  });

  test("only one session, which leaves before the answer -> a later one gets the answer all the same", () => {
    const { a, b, server, serverSays } = makeRoutes("a", "b");
    a.says(initialize(0));
    const id = idOf(server());
    a.leaves();
    serverSays({ id, result: {} });
    b.says(initialize(1));
    expect(server()).toEqual([]);
    expect(b.got()).toEqual([{ id: 1, result: {} }]);
  });

  test("a refusal -> each session that waits gets it, and the next request is the server's to answer", () => {
    const { a, b, c, server, serverSays } = makeRoutes("a", "b", "c");
    a.says(initialize(0));
    b.says(initialize(5));
    const error = { code: -32_603, message: "no such field" };
    serverSays({ id: idOf(server()), error });
    expect([a.got(), b.got()]).toEqual([[{ id: 0, error }], [{ id: 5, error }]]);
    const other = { id: 1, method: "initialize", params: { protocolVersion: "2024-11-05" } };
    a.says(other);
    b.says(initialize(6));
    const asked = server();
    expect(asked).toEqual([{ ...other, id: expect.any(Number) }]);
    serverSays({ id: idOf(asked), result: {}, error: null });
    c.says(initialize(0));
    expect(server()).toEqual([]);
    expect([a.got(), b.got(), c.got()]).toEqual([
      [{ id: 1, result: {}, error: null }],
      [{ id: 6, result: {}, error: null }],
      [{ id: 0, result: {}, error: null }],
    ]);
  });

  test("notifications/initialized of each session -> once", () => {
    const { a, b, server } = makeRoutes("a", "b");
    for (const party of [a, b, a]) party.says({ method: "notifications/initialized" });
    expect(server()).toEqual([{ method: "notifications/initialized" }]);
  });
});

describe("what all sessions get", () => {
  it.each([
    "notifications/tools/list_changed",
    "notifications/prompts/list_changed",
    "notifications/resources/list_changed",
    "notifications/message",
    "notifications/of-tomorrow",
  ])("%s -> every session", (method) => {
    const { a, b, serverSays } = makeRoutes("a", "b");
    serverSays({ method, params: { data: 1 } });
    expect([a.got(), b.got()]).toEqual([
      [{ method, params: { data: 1 } }],
      [{ method, params: { data: 1 } }],
    ]);
  });

  test("an error without an id -> every session", () => {
    const { a, b, serverSays } = makeRoutes("a", "b");
    const error = { code: -32_700, message: "cannot be parsed" };
    serverSays({ id: null, error });
    expect([a.got(), b.got()]).toEqual([[{ id: null, error }], [{ id: null, error }]]);
  });
});

describe("the log level", () => {
  const level = (id: unknown, word: string) => ({
    id,
    method: "logging/setLevel",
    params: { level: word },
  });
  const asked = (word: string) => ({ id: NUMBER, method: "logging/setLevel", params: { level: word } });

  test("the most detailed one counts; whoever wants less is answered at once", () => {
    const { a, b, server, serverSays } = makeRoutes("a", "b");
    a.says(level(1, "warning"));
    const first = server();
    expect(first).toEqual([asked("warning")]);
    serverSays({ id: idOf(first), result: {} });
    expect(a.got()).toEqual([{ id: 1, result: {} }]);
    b.says(level(2, "error"));
    expect([server(), b.got()]).toEqual([[], [{ id: 2, result: {} }]]);
    b.says(level(3, "debug"));
    expect(server()).toEqual([asked("debug")]);
  });

  test("the session of the most detailed level leaves -> lowered to what the others want", () => {
    const { a, b, server } = makeRoutes("a", "b");
    a.says(level(1, "warning"));
    b.says(level(2, "debug"));
    server();
    b.leaves();
    expect(server()).toEqual([asked("warning")]);
    a.says(level(2, "debug"));
    expect(server()).toEqual([asked("debug")]);
    a.leaves();
    expect(server()).toEqual([]);
  });

  test("a session wants less than before -> the server is told what is wanted now", () => {
    const { a, b, server } = makeRoutes("a", "b");
    a.says(level(1, "notice"));
    b.says(level(2, "debug"));
    server();
    b.says(level(3, "error"));
    expect(server()).toEqual([asked("notice")]);
    expect(b.got()).toEqual([{ id: 3, result: {} }]);
  });

  test("a level that nobody knows -> the server's to refuse", () => {
    const { a, server } = makeRoutes("a");
    a.says(level(1, "loud"));
    expect(server()).toEqual([asked("loud")]);
  });
});

describe("subscriptions to resources", () => {
  const subscribe = (id: unknown, uri: string, way = "subscribe") => ({
    id,
    method: `resources/${way}`,
    params: { uri },
  });
  const updated = (uri: string) => ({ method: "notifications/resources/updated", params: { uri } });

  test("two sessions, one resource -> asked once; both hear of it, a third does not; given up with the last one", () => {
    const { a, b, c, server, serverSays } = makeRoutes("a", "b", "c");
    a.says(subscribe(1, "file:///x"));
    b.says(subscribe(1, "file:///x"));
    c.says(subscribe(1, "file:///y"));
    expect(server().map(({ params }) => params)).toEqual([{ uri: "file:///x" }, { uri: "file:///y" }]);
    expect(b.got()).toEqual([{ id: 1, result: {} }]);
    serverSays(updated("file:///x"));
    expect([a.got(), b.got(), c.got()]).toEqual([[updated("file:///x")], [updated("file:///x")], []]);
    a.says(subscribe(2, "file:///x", "unsubscribe"));
    expect([server(), a.got()]).toEqual([[], [{ id: 2, result: {} }]]);
    serverSays(updated("file:///x"));
    expect([a.got(), b.got()]).toEqual([[], [updated("file:///x")]]);
    b.says(subscribe(3, "file:///x", "unsubscribe"));
    expect(server()).toEqual([{ ...subscribe(NUMBER, "file:///x", "unsubscribe") }]);
  });

  test("a session that leaves -> given up for it, kept for another", () => {
    const { a, b, server } = makeRoutes("a", "b");
    for (const party of [a, b]) party.says(subscribe(1, "file:///x"));
    a.says(subscribe(2, "file:///y"));
    server();
    a.leaves();
    expect(server()).toEqual([subscribe(NUMBER, "file:///y", "unsubscribe")]);
    b.leaves();
    expect(server()).toEqual([subscribe(NUMBER, "file:///x", "unsubscribe")]);
  });
});

describe("subscriptions of 2026-07-28", () => {
  const KEY = "io.modelcontextprotocol/subscriptionId";
  const changed = (id: unknown) => ({
    method: "notifications/tools/list_changed",
    params: { _meta: { [KEY]: id } },
  });

  test("two streams -> each session hears of its own, by its own id; nobody after its end", () => {
    const { a, b, server, serverSays } = makeRoutes("a", "b");
    for (const party of [a, b]) party.says({ id: "s", method: "subscriptions/listen", params: {} });
    const [first, second] = server();
    serverSays(changed(second?.id));
    expect([a.got(), b.got()]).toEqual([[], [changed("s")]]);
    serverSays(changed(String(first?.id)));
    expect([a.got(), b.got()]).toEqual([[changed("s")], []]);
    a.leaves();
    serverSays(changed(first?.id));
    expect([a.got(), b.got()]).toEqual([[], []]);
  });
});
