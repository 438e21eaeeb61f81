/**
 * Owns: what the panel knows of the session: when each view is read and read again, and which late answer is dropped. The
 * session is a fake.
 */
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { WorkerEvent } from "../../../../src/shared/protocol/contract.ts";
import { START, type State, type View } from "../../../../src/ui/panel/model/state.ts";
import { concerns, isSeen, WorldSource } from "../../../../src/ui/panel/world.ts";
import { makeCatalog } from "../../make-catalog.ts";
import { makeReport, makeStatus } from "../../server-status.ts";
import { type Answers, fakeHost } from "../fake-host.ts";
import { makeDetails } from "./support.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const [{ list }] = START.views as unknown as [Extract<View, { name: "servers" }>];
const SERVERS: View = { name: "servers", list };
const GIT: View = { name: "server", server: "git", list };
const OTHER: View = { name: "tools", server: "fs", list };
const STATS: View = { name: "stats", top: 0 };
const DOCTOR: View = { name: "doctor", server: "git", top: 0 };
const log = (server: string): View => ({ name: "log", server, top: undefined });
const searching = (filter: string): View => ({ name: "search", list: { ...list, filter } });

const CATALOG = makeCatalog([
  { name: "git", tools: [{ tool: "read", description: "Reads IT.", direct: true }] },
]);

/** A world whose requests wait until the test settles them. `at`: shows the view. */
function setup(answers: Answers = {}) {
  const open: [method: string, server: string, PromiseWithResolvers<unknown>, AbortSignal | undefined][] = [];
  const wait = (method: string) => (params: { server?: string }, signal?: AbortSignal) => {
    const answer = Promise.withResolvers<unknown>();
    open.push([method, params.server ?? "", answer, signal]);
    return answer.promise;
  };
  const waits = ["status", "serverDetails", "serverLog", "declaredSchema", "stats", "diagnose"];
  const { host, asked } = fakeHost(
    { ...Object.fromEntries(waits.map((method) => [method, wait(method)])), ...answers },
    { catalog: () => CATALOG, servers: () => [makeStatus("git")] },
  );
  const searched: [query: string, answer: PromiseWithResolvers<unknown>][] = [];
  host.search = (query) => {
    const answer = Promise.withResolvers<unknown>();
    searched.push([query, answer]);
    return answer.promise as ReturnType<typeof host.search>;
  };
  let state: State = START;
  const told = { changes: 0, errors: [] as unknown[] };
  const world = new WorldSource(host, {
    state: () => state,
    changed: () => told.changes++,
    unread: async () => [],
    failed: (error) => told.errors.push(error),
  });
  const turn = () => vi.advanceTimersByTimeAsync(20);
  return {
    world,
    told,
    open,
    searched,
    methods: () => asked.map(([method]) => method),
    turn,
    at: (...views: View[]) => {
      state = { ...START, views: [SERVERS, ...views] };
      world.follow();
    },
    settle: async (at: number, value: unknown) => {
      if (value instanceof Error) open[at]?.[2].reject(value);
      else open[at]?.[2].resolve(value);
      await turn();
    },
    hits: async (at: number, likely: number) => {
      searched[at]?.[1].resolve({ hits: [], likely, tookMs: 1 });
      await turn();
    },
    again: async () => {
      world.readAgain();
      await vi.advanceTimersByTimeAsync(170);
    },
  };
}

describe("the session", () => {
  test("its start -> the report, and the costs of declared tools", async () => {
    const { world, methods, settle } = setup();
    world.start();
    await settle(0, makeReport({ files: ["/mcp.json"] }));
    expect(methods()).toEqual(["status"]);
    expect(world.now()).toMatchObject({ files: ["/mcp.json"], problems: [] });
    expect(world.now().costs.get("git")).toMatchObject({ declaredTools: 1, isWhole: true });
    world.stop();
  });

  test("the report cannot be had -> the error is told", async () => {
    const { world, told, settle } = setup();
    world.start();
    await settle(0, new Error("no worker"));
    expect(told.errors).toEqual([new Error("no worker")]);
  });

  test("a plan -> its report takes the place of the one before", () => {
    const { world } = setup();
    world.take({ type: "planned", ...makeReport({ files: ["/new.json"] }) } as WorkerEvent);
    expect(world.now().files).toEqual(["/new.json"]);
    world.stop();
  });

  test("what the person chooses -> it holds until it is written and the tools are read again", async () => {
    const { world, at, settle, again } = setup({ serverDetails: async () => makeDetails() });
    const effect = { type: "expose", server: "git", tools: ["read"], to: "hidden" } as const;
    at(GIT);
    world.choose(effect);
    await again();
    expect(world.now().chosen.get("git\0read")).toBe("hidden");
    world.written(effect);
    await again();
    expect(world.now().chosen.size).toBe(0);
    await settle(0, undefined);
  });

  test("thirty changes at once -> what is shown is read once", async () => {
    const { world, at, methods, turn } = setup({ serverDetails: async () => makeDetails() });
    at(GIT);
    await turn();
    for (let i = 0; i < 30; i++) world.readAgain();
    await vi.advanceTimersByTimeAsync(149);
    expect(methods()).toEqual(["serverDetails"]);
    await turn();
    expect(methods()).toEqual(["serverDetails", "serverDetails"]);
    expect(world.now().tools.get("git")?.rows).toHaveLength(3);
    world.stop();
  });

  test("it is stopped -> nothing is read again, and a late answer is dropped", async () => {
    const { world, told, at, open, settle } = setup();
    at(GIT);
    world.readAgain();
    world.stop();
    world.readAgain();
    await vi.advanceTimersByTimeAsync(1_000);
    await settle(0, makeDetails());
    expect([open.length, told.changes]).toEqual([1, 0]);
  });
});

describe("a server", () => {
  test("its details, then its tools; the same server in another view -> it is not asked for", async () => {
    const { world, told, at, open, settle } = setup();
    at(GIT);
    at(GIT, { name: "tools", server: "git", list });
    await settle(0, makeDetails({ runs: "npx" }));
    expect(world.now().details.get("git")?.runs).toBe("npx");
    expect(world.now().tools.get("git")?.rows).toHaveLength(3);
    expect([open.length, told.changes]).toEqual([1, 2]);
  });

  test("another server meanwhile -> the first one's late answer, or error, is dropped", async () => {
    const { world, told, at, settle } = setup();
    at(GIT);
    at(OTHER);
    await settle(1, makeDetails({ runs: "two" }));
    await settle(0, makeDetails({ runs: "one" }));
    at(GIT);
    at(OTHER);
    await settle(2, new Error("gone"));
    expect([...world.now().details]).toEqual([["fs", expect.objectContaining({ runs: "two" })]]);
    expect(told.errors).toEqual([]);
  });

  test("the session has changed -> it is read again, and the answer before is dropped", async () => {
    const { world, at, settle, again } = setup();
    at(GIT);
    await again();
    await settle(1, makeDetails({ runs: "new" }));
    await settle(0, makeDetails({ runs: "old" }));
    expect(world.now().details.get("git")?.runs).toBe("new");
    world.stop();
  });

  test("it cannot be read -> the error is told, and it is not asked again until something changes", async () => {
    const { told, at, open, settle, again } = setup();
    at(GIT);
    await settle(0, new Error("gone"));
    at(GIT);
    expect([told.errors, open.length]).toEqual([[new Error("gone")], 1]);
    await again();
    expect(open).toHaveLength(2);
  });

  const PLACE = { rule: 'excludeTools "w*"', file: "/mcp.json", line: 3 };
  test.each([
    [
      "a tool that the catalog holds -> its name in Pi and its description, both for the filter in small letters",
      "git",
      { names: ["read"], exposures: ["direct"], rules: [-1], places: [] },
      {
        name: "git__read",
        description: "Reads IT.",
        exposure: "direct",
        place: undefined,
        text: "read\nreads it.",
      },
    ],
    [
      "a hidden tool -> no name in Pi, and the rule that hides it",
      "git",
      { names: ["write"], exposures: ["hidden"], rules: [0], places: [PLACE] },
      { name: undefined, exposure: "hidden", place: PLACE },
    ],
    [
      "a tool for the server's own pages -> the server's word, and no rule",
      "git",
      { names: ["write"], exposures: ["hidden"], rules: [-2], places: [PLACE] },
      { exposure: "hidden", place: undefined, serversWord: "pages" },
    ],
    [
      "a tool that its server wishes declared -> the server's word",
      "git",
      { names: ["read"], exposures: ["direct"], rules: [-3], places: [PLACE] },
      { exposure: "direct", place: undefined, serversWord: "wish" },
    ],
    [
      "a tool of another server with the same name -> it is not taken for this server's",
      "fs",
      { names: ["read"], exposures: ["direct"], rules: [-1], places: [] },
      { name: undefined, description: "" },
    ],
    [
      "columns of unequal length -> the tool is deferred, by no rule",
      "git",
      { names: ["a"], exposures: [], rules: [], places: [] },
      { exposure: "search", place: undefined },
    ],
  ] as const)("%s", async (_title, server, tools, row) => {
    const { world, at, settle } = setup();
    at({ ...GIT, server });
    await settle(0, { ...makeDetails(), tools });
    const known = world.now().tools.get(server);
    expect(known?.rows).toEqual([expect.objectContaining({ key: tools.names[0], ...row })]);
    expect(known?.at).toEqual(new Map([[tools.names[0], 0]]));
  });
});

describe("a search", () => {
  test("a query is tried once, and again when the session has changed", async () => {
    const { world, at, searched, hits, again } = setup();
    at(searching("clone"));
    await hits(0, 1);
    at(searching("clone"));
    expect([searched.length, world.now().tried]).toEqual([
      1,
      expect.objectContaining({ query: "clone", likely: 1, count: 1 }),
    ]);
    await again();
    await hits(1, 0);
    expect([searched.length, world.now().tried?.likely]).toEqual([2, 0]);
    world.stop();
  });

  test("the query changes meanwhile -> its late hits are dropped; an empty one searches and shows nothing", async () => {
    const { world, at, searched, hits } = setup();
    at(searching("c"));
    at(searching("cl"));
    await hits(1, 1);
    await hits(0, 0);
    expect(world.now().tried).toMatchObject({ query: "cl", likely: 1 });
    at(searching(" "));
    expect([searched.length, world.now().tried]).toEqual([2, undefined]);
  });
});

describe("a log", () => {
  const seen = ({ methods }: ReturnType<typeof setup>) =>
    methods().filter((one) => one === "serverLog").length;

  test("new lines -> they are shown, and the next request waits behind them", async () => {
    const asked: unknown[] = [];
    const answers = [
      { lines: ["a"], size: 2 },
      { lines: ["b"], size: 2 },
    ];
    const { world, at, turn } = setup({
      serverDetails: async () => makeDetails(),
      serverLog: ({ seen: from }: { seen?: number }) => {
        asked.push(from);
        return answers.shift() ?? new Promise(() => undefined);
      },
    });
    at(log("git"));
    await turn();
    // Of the same size the log has no new line.
    expect([asked, world.now().log]).toEqual([[undefined, 2, 2], { server: "git", lines: ["a"] }]);
    world.stop();
  });

  test("the worker ends -> its error is shown; after two seconds the log is read from its start", async () => {
    const from: unknown[] = [];
    const answers = [
      async () => ({ lines: ["a"], size: 2 }),
      async () => {
        throw new Error("the worker ended");
      },
    ];
    const { world, at, turn } = setup({
      serverDetails: async () => makeDetails(),
      serverLog: ({ seen: size }: { seen?: number }) => {
        from.push(size);
        return answers.shift()?.() ?? new Promise(() => undefined);
      },
    });
    at(log("git"));
    await turn();
    expect(world.now().log).toEqual({ server: "git", lines: ["the worker ended"] });
    await vi.advanceTimersByTimeAsync(1_970);
    expect(from).toEqual([undefined, 2]);
    await vi.advanceTimersByTimeAsync(40);
    expect(from).toEqual([undefined, 2, undefined]);
    world.stop();
  });

  test("another log, or none -> the open request is given up, and its late answer is dropped", async () => {
    const at = setup();
    at.at(log("git"));
    at.at(log("fs"));
    const logs = at.open.flatMap(([method, , , signal], i) =>
      method === "serverLog" ? [{ i, signal }] : [],
    );
    expect(logs.map(({ signal }) => signal?.aborted)).toEqual([true, false]);
    await at.settle(logs[0]?.i ?? -1, { lines: ["late"], size: 4 });
    at.at();
    await at.settle(logs[1]?.i ?? -1, new Error("given up"));
    await vi.advanceTimersByTimeAsync(3_000);
    expect([at.world.now().log, seen(at)]).toEqual([undefined, 2]);
  });
});

test("a report -> read once while it is open, and again when it is opened again; a late one is dropped", async () => {
  const { world, at, open, settle, again } = setup();
  at(STATS);
  at();
  at(STATS);
  await again();
  expect(open.map(([method]) => method)).toEqual(["stats", "stats"]);
  await settle(0, { captured: true, summary: { tools: [], moreTools: 0, tokensSaved: 0 } });
  expect(world.now().report).toBeUndefined();
  await settle(1, { captured: false });
  expect(world.now().report?.text(80)).toMatch(/^Calls are not counted/);
  world.stop();
});

describe("events", () => {
  const event = (type: WorkerEvent["type"]): WorkerEvent =>
    ({ type, ...(type === "server" ? { status: makeStatus("git") } : {}) }) as WorkerEvent;

  test.each<[WorkerEvent["type"], View, boolean]>([
    ["catalog", SERVERS, true],
    ["catalog", OTHER, true],
    ["removed", GIT, true],
    ["planned", GIT, true],
    ["server", GIT, true],
    ["server", OTHER, false],
    ["server", SERVERS, false],
    ["sign-in", GIT, false],
    ["notice", GIT, false],
    ["planned", STATS, false],
    ["catalog", DOCTOR, false],
    ["server", DOCTOR, false],
  ])("%s at the view %o -> it is read again: %s", (type, view, expected) => {
    expect(concerns(event(type), view)).toBe(expected);
  });

  test.each<[WorkerEvent["type"], seen: boolean, tools: boolean]>([
    ["spawned", false, false],
    ["exited", false, false],
    ["talker", false, false],
    ["progress", false, false],
    ["renewing", false, false],
    ["server", true, false],
    ["sign-in", true, false],
    ["catalog", true, true],
    ["removed", true, true],
    ["planned", true, true],
  ])("%s -> seen %s, the costs are counted again %s", (type, seen, tools) => {
    const { world } = setup();
    world.take({ ...makeReport(), ...event(type) } as WorkerEvent);
    expect([isSeen(event(type)), world.now().costs.has("git")]).toEqual([seen, tools]);
    world.stop();
  });
});
