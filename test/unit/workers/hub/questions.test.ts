/** Owns: which session a question of a shared server is for, and the calls that wait once nobody could be asked. */
import { describe, expect, it, test } from "vitest";
import { call, type Message, makeRoutes } from "./make-routes.ts";

const question = (id: unknown, method = "elicitation/create") => ({
  id,
  method,
  params: { message: "Who?" },
});
const refused = (id: unknown, words: RegExp) => ({
  id,
  error: { code: -32_603, message: expect.stringMatching(words) },
});

describe("a question of the server", () => {
  test("ping -> answered at once, for no session", () => {
    const { a, server, serverSays } = makeRoutes("a");
    for (const id of [1, "p"]) serverSays({ id, method: "ping" });
    expect(server()).toEqual([
      { id: 1, result: {} },
      { id: "p", result: {} },
    ]);
    expect(a.got()).toEqual([]);
  });

  it.each(["tools/call", "prompts/get", "resources/read", "completion/complete"])(
    "one session of two has an open %s -> it is asked, and its answer goes to the server",
    (method) => {
      const { a, b, server, serverSays } = makeRoutes("a", "b");
      b.says({ id: 1, method, params: {} });
      a.says({ id: 1, method: "tools/list" });
      server();
      serverSays(question(7));
      expect([a.got(), b.got()]).toEqual([[], [question(7)]]);
      b.says({ id: 7, result: { action: "accept" } });
      expect(server()).toEqual([{ id: 7, result: { action: "accept" } }]);
    },
  );

  test("nobody calls, one session is there -> it is asked", () => {
    const { a, serverSays } = makeRoutes("a");
    serverSays(question("q"));
    expect(a.got()).toEqual([question("q")]);
  });

  it.each([
    ["nobody calls", []],
    ["both call", ["a", "b"]],
  ] as const)(
    "two sessions, %s -> refused with the reason, noted, and no session is asked",
    (_name, calling) => {
      const all = makeRoutes("a", "b");
      for (const name of calling) all[name].says(call(1));
      all.server();
      all.serverSays(question("q"));
      expect(all.server()).toEqual([refused("q", /^Several sessions use this server.*try the call again/)]);
      expect([all.a.got(), all.b.got()]).toEqual([[], []]);
      expect(all.notes).toEqual([expect.stringContaining("asked elicitation/create")]);
    },
  );

  test("two calls of one session -> it is asked", () => {
    const { a, b, serverSays } = makeRoutes("a", "b");
    a.says(call(1));
    a.says(call(2));
    serverSays(question(1));
    expect([a.got(), b.got()]).toEqual([[question(1)], []]);
  });

  test("roots/list of a server that two sessions use -> one of them, since their roots are the same", () => {
    const { a, b, server, serverSays } = makeRoutes("a", "b");
    serverSays(question(1, "roots/list"));
    expect([a.got().length + b.got().length, server()]).toEqual([1, []]);
  });

  it.each(["elicitation/create", "roots/list"])(
    "nobody uses the server, %s -> refused for that reason, and calls of those that come run beside each other",
    (method) => {
      const { a, b, server, serverSays, notes, joins } = makeRoutes("a", "b");
      for (const party of [a, b]) party.leaves();
      serverSays(question("q", method));
      expect(server()).toEqual([refused("q", /^No session uses this server now/)]);
      expect(notes).toEqual([`asked ${method} while no session uses it`]);
      for (const party of [joins(), joins()]) party.says(call(1));
      expect(server()).toHaveLength(2);
    },
  );

  it.each([
    ["another session", 7],
    ["the session that was asked, to another question", 8],
  ])("an answer of %s -> the server does not get it", (_name, id) => {
    const { a, b, server, serverSays } = makeRoutes("a", "b");
    a.says(call(1));
    server();
    serverSays(question(7));
    const answering = id === 7 ? b : a;
    answering.says({ id, result: { action: "accept" } });
    expect(server()).toEqual([]);
    a.says({ id: 7, error: { code: 1, message: "no" } });
    expect(server()).toHaveLength(1);
    a.says({ id: 7, result: { action: "accept" } });
    expect(server()).toEqual([]);
  });

  it.each([
    ["1.0", 1],
    ['"a\\/b"', "a/b"],
    ['"\\u00e9"', "é"],
  ])(
    "the server writes the id %s, the session %j -> the answer reaches the server, a withdrawal the session",
    (written, id) => {
      const { a, server, serverSays } = makeRoutes("a");
      const asks = `{"jsonrpc":"2.0","id":${written},"method":"elicitation/create"}`;
      serverSays(asks);
      expect(a.got()).toEqual([{ id, method: "elicitation/create" }]);
      a.says({ id, result: { action: "accept" } });
      expect(server()).toEqual([{ id, result: { action: "accept" } }]);
      serverSays(asks);
      a.got();
      serverSays({ method: "notifications/cancelled", params: { requestId: id } });
      expect(a.got()).toEqual([{ method: "notifications/cancelled", params: { requestId: id } }]);
    },
  );

  test("the session that was asked leaves -> the server is told that nobody answers", () => {
    const { a, server, serverSays } = makeRoutes("a");
    serverSays(question(7));
    a.leaves();
    expect(server()).toEqual([refused(7, /has ended/)]);
  });

  test("the session that was asked for its roots leaves -> another one is asked, whose answer counts; none is left -> refused", () => {
    const { a, b, c, server, serverSays } = makeRoutes("a", "b", "c");
    for (const id of ["é", 7]) serverSays(question(id, "roots/list"));
    a.got();
    a.leaves();
    const asked = [
      { id: "é", method: "roots/list" },
      { id: 7, method: "roots/list" },
    ];
    expect([b.got(), c.got(), server()]).toEqual([asked, [], []]);
    a.says({ id: 7, result: { roots: [] } });
    b.says({ id: 7, result: { roots: [] } });
    expect(server()).toEqual([{ id: 7, result: { roots: [] } }]);
    b.leaves();
    expect([c.got(), server()]).toEqual([asked.slice(0, 1), []]);
    c.leaves();
    expect(server()).toEqual([refused("é", /has ended/)]);
  });

  test("an id that cannot be read -> dropped and noted", () => {
    const { a, server, serverSays, notes } = makeRoutes("a");
    serverSays({ id: { odd: 1 }, method: "elicitation/create" });
    expect([a.got(), server()]).toEqual([[], []]);
    expect(notes).toHaveLength(1);
  });
});

describe("a call that its session has given up", () => {
  const cancel = (id: unknown) => ({ method: "notifications/cancelled", params: { requestId: id } });
  /** Two sessions; the call of the first one is given up, and the server may not know it yet. */
  function givenUp(how = "cancelled", method = "tools/call") {
    const all = makeRoutes("a", "b");
    all.a.says({ id: 1, method, params: {} });
    const [sent] = all.server();
    if (how === "cancelled") all.a.says(cancel(1));
    else all.a.leaves();
    all.server();
    return { ...all, ours: sent?.id };
  }
  const later = refused("q", /cancelled less than a minute ago.*again in a minute/);

  it.each(["cancelled", "ended with its session"])(
    "%s -> its question reaches no other session, whether that calls or not",
    (how) => {
      const { a, b, server, serverSays, notes } = givenUp(how);
      if (how !== "cancelled") {
        serverSays(question("q"));
        expect(server()).toEqual([later]);
      }
      b.says(call(2));
      server();
      serverSays(question("q"));
      expect([server(), a.got(), b.got()]).toEqual([[later], [], []]);
      expect(notes.at(-1)).toMatch(/^asked elicitation\/create less than a minute after/);
    },
  );

  test("calls of two sessions after such a question -> still beside each other", () => {
    const { a, b, server, serverSays } = givenUp();
    b.says(call(2));
    serverSays(question("q"));
    server();
    a.says(call(3));
    expect(server()).toHaveLength(1);
  });

  test("the session that gave it up is the one that calls -> it is asked", () => {
    const { a, serverSays } = givenUp();
    a.says(call(2));
    serverSays(question("q"));
    expect(a.got()).toEqual([question("q")]);
  });

  test.each<[string, (all: ReturnType<typeof givenUp>) => void]>([
    ["its late answer has come", ({ serverSays, ours }) => serverSays({ id: ours, result: 1 })],
    ["a minute has passed", ({ passes }) => passes(60_001)],
  ])("%s -> another session that calls is asked", (_what, settle) => {
    const all = givenUp();
    settle(all);
    all.b.says(call(2));
    all.serverSays(question("q"));
    expect(all.b.got()).toEqual([question("q")]);
  });

  test("it was no call, or asks for roots -> another session that calls is asked", () => {
    for (const [method, asked] of [
      ["tools/list", "elicitation/create"],
      ["tools/call", "roots/list"],
    ] as const) {
      const { b, serverSays } = givenUp("cancelled", method);
      b.says(call(2));
      serverSays(question("q", asked));
      expect(b.got()).toEqual([question("q", asked)]);
    }
  });

  test("the only session has left -> no serial mode for those that come", () => {
    const { a, b, server, serverSays, notes } = makeRoutes("a", "b");
    b.leaves();
    a.says(call(1));
    a.leaves();
    server();
    serverSays(question("q"));
    expect([server(), notes]).toEqual([[later], [expect.stringContaining("cancelled")]]);
  });

  test("more than 1,000 of them -> the newest are known", () => {
    const { a, b, server, serverSays, ours } = givenUp();
    for (let id = 0; id < 1_000; id++) {
      a.says(call(id));
      a.says(cancel(id));
    }
    const sent = server().filter(({ method }) => method === "tools/call");
    for (const { id } of sent) serverSays({ id, result: 1 });
    b.says(call(2));
    serverSays(question("q"));
    expect(b.got()).toEqual([question("q")]);
    expect(ours).toBe(1);
  });
});

describe("once a question was refused", () => {
  /** Three sessions, after a question that nobody could be asked. No call is open. */
  function serial() {
    const all = makeRoutes("a", "b", "c");
    all.serverSays(question("first"));
    all.server();
    const names = (): unknown[] =>
      all.server().flatMap(({ id, params }) => (id === undefined ? [] : [(params as Message).name]));
    return { ...all, names };
  }
  const named = (name: string, id: unknown = name): Message => call(id, { name });

  test("calls of two sessions -> one after the other, and each question is for the one that runs", () => {
    const { a, b, server, serverSays } = serial();
    a.says(named("a1"));
    b.says(named("b1"));
    const [first, ...more] = server();
    expect(more).toEqual([]);
    serverSays(question("q"));
    expect([a.got(), b.got()]).toEqual([[question("q")], []]);
    serverSays({ id: first?.id, result: 1 });
    expect(a.got()).toEqual([{ id: "a1", result: 1 }]);
    expect(server()).toEqual([{ ...named("b1"), id: expect.any(Number) }]);
    serverSays(question("r"));
    expect(b.got()).toEqual([question("r")]);
  });

  test("calls of the session that runs -> beside each other, but not past another that waits", () => {
    const { a, b, names } = serial();
    a.says(named("a1"));
    a.says(named("a2"));
    b.says(named("b1"));
    a.says(named("a3"));
    expect(names()).toEqual(["a1", "a2"]);
  });

  test("three sessions wait -> in the order in which they came", () => {
    const { a, b, c, server, serverSays } = serial();
    for (const [party, name] of [
      [a, "a1"],
      [c, "c1"],
      [b, "b1"],
      [a, "a2"],
    ] as const)
      party.says(named(name));
    const order: unknown[] = [];
    for (let [next] = server(); next; [next] = server()) {
      order.push((next.params as Message).name);
      serverSays({ id: next.id, result: 1 });
    }
    expect(order).toEqual(["a1", "c1", "b1", "a2"]);
  });

  test("lists and pings of others -> wait for no call", () => {
    const { a, b, server } = serial();
    a.says(named("a1"));
    server();
    b.says({ id: 1, method: "tools/list" });
    b.says({ id: 2, method: "ping" });
    expect(server().map(({ method }) => method)).toEqual(["tools/list", "ping"]);
  });

  test("a call that waits is cancelled -> the server never hears of it, and the next one goes", () => {
    const { a, b, c, server, serverSays, names } = serial();
    a.says(named("a1"));
    const [first] = server();
    b.says(named("b1"));
    c.says(named("c1"));
    b.says({ method: "notifications/cancelled", params: { requestId: "b1" } });
    expect(server()).toEqual([]);
    serverSays({ id: first?.id, result: 1 });
    expect(names()).toEqual(["c1"]);
  });

  it.each(["is cancelled", "ends with its session"])("the call that runs %s -> the next one goes", (how) => {
    const { a, b, names, server } = serial();
    a.says(named("a1"));
    b.says(named("b1"));
    server();
    if (how === "is cancelled") a.says({ method: "notifications/cancelled", params: { requestId: "a1" } });
    else a.leaves();
    expect(names()).toEqual(["b1"]);
  });

  test("a call that waits, of a session that wants progress -> it is told so, and told when the call is sent", () => {
    const { a, b, server, serverSays } = serial();
    a.says(named("a1"));
    const [first] = server();
    b.says(call("b1", { _meta: { progressToken: "mine" } }));
    b.says(named("b2"));
    const told = (isWaiting: boolean, message: string) => ({
      method: "notifications/progress",
      params: { progressToken: "mine", progress: 0, message, _meta: { "pi-mcp-threads/waits": isWaiting } },
    });
    expect([a.got(), b.got(), server()]).toEqual([
      [],
      [told(true, "waits for a call of another session")],
      [],
    ]);
    serverSays({ id: first?.id, result: 1 });
    expect(b.got()).toEqual([told(false, "no longer waits for a call of another session")]);
    expect(server()).toHaveLength(2);
  });

  test("a session that leaves while its calls wait -> they never reach the server", () => {
    const { a, b, c, server, serverSays, names, routes } = serial();
    a.says(named("a1"));
    const [first] = server();
    b.says(named("b1"));
    c.says(named("c1"));
    expect(routes.openRequests).toBe(3);
    b.leaves();
    serverSays({ id: first?.id, result: 1 });
    expect(names()).toEqual(["c1"]);
  });
});
