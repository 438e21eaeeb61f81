/** Owns: what Pi has before the first request is made, and how long a prompt waits for it. The clock is a fake. */
import { join } from "node:path";
import { afterEach, beforeAll, describe, expect, it, test, vi } from "vitest";
import { ThreadsError } from "../../../src/shared/protocol/errors.ts";
import type { ServerStatus } from "../../../src/shared/protocol/session.ts";
import type { MadeServer } from "../make-catalog.ts";
import { tempFolder } from "../temp-folder.ts";
import {
  catalogOf,
  declares,
  direct,
  type Opened,
  type OpenOptions,
  openSession,
  planOf,
  reachable,
  writeNewer,
} from "./support.ts";

// Loaded by a prompt whose clock stands still.
beforeAll(() =>
  Promise.all([
    import("../../../src/session/rest.ts"),
    import("../../../src/tools/told.ts"),
    import("../../../src/tools/arguments.ts"),
  ]),
);
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllEnvs();
});

const SERVER: MadeServer = { name: "s", tools: [{ tool: "a", direct: true }, { tool: "b" }] };
const learning = { toolsKnown: false, state: "connecting" } as const;

/** Opens a session, and from then on the clock stands still. */
async function opened(options: OpenOptions = {}): Promise<Opened> {
  const at = await openSession(options);
  vi.useFakeTimers();
  return at;
}

interface Prompt {
  /** Milliseconds that the prompt has waited; undefined while it waits. */
  waitedMs: number | undefined;
  done: Promise<void>;
}

function prompt({ session, ctx }: Opened): Prompt {
  const startedAt = performance.now();
  const state: Prompt = { waitedMs: undefined, done: Promise.resolve() };
  state.done = session.beforeAgentStart(ctx).then(() => {
    state.waitedMs = Math.round(performance.now() - startedAt);
  });
  return state;
}

/** The prompt's whole wait, however long. */
async function waited(at: Opened): Promise<number | undefined> {
  const state = prompt(at);
  await vi.advanceTimersByTimeAsync(60_000);
  return state.waitedMs;
}

const told = ({ runtimes }: Opened): [string, unknown][] => runtimes.flatMap((runtime) => runtime.asked);
const asked = (at: Opened): unknown[] =>
  told(at).filter(([method]) => method !== "firstRequest" && method !== "ping");

describe("the description of ToolSearch", () => {
  const description = ({ pi }: Opened): string => pi.tools.get("ToolSearch")?.description ?? "";

  test("a snapshot -> declared by the factory, no wait, the same bytes after the plan", async () => {
    const at = await opened({ snapshot: [SERVER], active: ["ToolSearch"] });
    const before = description(at);
    expect(await waited(at)).toBe(0);
    at.send(planOf({ s: {}, other: {} }));
    expect(await waited(at)).toBe(0);
    expect(description(at)).toBe(before);
    expect(at.pi.registrations.filter((name) => name === "ToolSearch")).toHaveLength(1);
  });

  test("no snapshot -> the servers of the plan, without the disabled ones", async () => {
    const at = await opened();
    const first = prompt(at);
    await vi.advanceTimersByTimeAsync(200);
    expect(first.waitedMs).toBeUndefined();
    at.send(planOf({ docs: {}, off: { state: "disabled" } }));
    await vi.advanceTimersByTimeAsync(0);
    expect(first.waitedMs).toBe(200);
    expect(description(at)).toContain("docs");
    expect(description(at)).not.toContain("off");
  });

  test("no snapshot, a catalog before the prompt -> the servers of the catalog, and their tools", async () => {
    const at = await opened();
    at.send(planOf({ s: {} }));
    at.send(catalogOf([SERVER]));
    expect(await waited(at)).toBe(0);
    expect(description(at)).toMatch(/- s.*a, b/);
  });

  test("no snapshot and never a plan -> 0.3 s for the names of servers, 10 s for direct tools, then it goes on", async () => {
    expect(await waited(await opened())).toBe(10_300);
  });

  test("no snapshot, and the worker cannot open the session -> no wait", async () => {
    const at = await opened();
    at.runtimes[0]?.options.onStartFailed(new Error("no disk"));
    expect(await waited(at)).toBe(0);
  });

  test("the session ends during the wait -> nothing is declared", async () => {
    const at = await opened();
    const first = prompt(at);
    await at.session.stop();
    await vi.advanceTimersByTimeAsync(10_300);
    expect(first.waitedMs).toBeDefined();
    expect(at.pi.registrations).toEqual(["ToolSearch"]);
  });
});

describe("what a prompt tells of changed servers", () => {
  const changed = [SERVER, { name: "fresh", tools: [{ tool: "c" }] }];
  const news = async ({ session, ctx }: Opened): Promise<string | undefined> =>
    (await session.beforeAgentStart(ctx))?.message.content;

  it.each<[string, OpenOptions, boolean]>([
    ["has ToolSearch", { active: ["read", "ToolSearch"] }, true],
    ["may only read", { active: ["read"], allowed: ["read"] }, false],
  ])("a model that %s, a new server -> told of it or not", async (_who, options, isTold) => {
    const at = await openSession({ snapshot: [SERVER], ...options });
    at.send(planOf({ s: {} }));
    expect(await news(at)).toBeUndefined();
    at.send(planOf({ s: {}, fresh: {} }));
    at.send(catalogOf(changed));
    expect(
      (await news(at))?.includes(" New: fresh [c]. ToolSearch finds tools that are not loaded.") ?? false,
    ).toBe(isTold);
  });

  test("a model that gets ToolSearch later -> its description has the new server, and a note nothing", async () => {
    const at = await openSession({ snapshot: [SERVER], active: ["read"] });
    at.send(planOf({ s: {} }));
    await news(at);
    at.send(planOf({ s: {}, fresh: {} }));
    at.send(catalogOf(changed));
    at.pi.setActiveTools(["read", "ToolSearch"]);
    expect(await news(at)).toBeUndefined();
    expect(at.pi.tools.get("ToolSearch")?.description).toContain("- fresh");
  });
});

describe("whether the plan is waited for", () => {
  const EXTENSION = { name: "ext", config: {}, extensionPath: "/x.js" };
  const PROJECT: MadeServer = { name: "proj", project: true, tools: [{ tool: "a" }] };

  it.each<[string, OpenOptions, boolean]>([
    ["the user's servers alone", { snapshot: [SERVER] }, false],
    ["a server of the project", { snapshot: [SERVER, PROJECT] }, true],
    ["another extension's server that is new", { snapshot: [SERVER], registered: [EXTENSION] }, true],
    [
      "another extension's server that it knows",
      { snapshot: [SERVER, { name: "ext", tools: [] }], registered: [EXTENSION] },
      false,
    ],
  ])("a snapshot of %s -> $2", async (_name, options, waits) => {
    expect(await waited(await opened(options))).toBe(waits ? 10_000 : 0);
  });

  it.each([
    ["the user's file", (agentDir: string) => join(agentDir, "mcp.json")],
    ["the project's .mcp.json", (agentDir: string) => join(agentDir, "project", ".mcp.json")],
    ["the project's .pi/mcp.json", (agentDir: string) => join(agentDir, "project", ".pi", "mcp.json")],
    ["a file that the snapshot was made of", (agentDir: string) => join(agentDir, "imported.json")],
  ])("%s is newer than the snapshot -> waited for, until it comes", async (_name, pathIn) => {
    const agentDir = await tempFolder();
    await writeNewer(pathIn(agentDir));
    const settings = { files: [join(agentDir, "imported.json")] };
    const at = await opened({ agentDir, snapshot: [SERVER], settings });
    const first = prompt(at);
    await vi.advanceTimersByTimeAsync(4_000);
    expect(first.waitedMs).toBeUndefined();
    at.send(planOf({ s: {} }));
    await vi.advanceTimersByTimeAsync(0);
    expect(first.waitedMs).toBe(4_000);
  });

  test("a snapshot that something was taken out of -> waited for", async () => {
    const at = await opened({ snapshot: [SERVER] });
    at.send({ type: "removed", servers: ["s"], tools: [] });
    expect(await waited(at)).toBe(10_000);
  });
});

describe("direct tools", () => {
  const AB = [{ tool: "a" }, { tool: "b" }];
  const marked = (tools: string[]): MadeServer["tools"] =>
    AB.map(({ tool }) => ({ tool, direct: tools.includes(tool) }));

  it.each<[string | undefined, string[], string[]]>([
    [undefined, [], []],
    [undefined, ["a", "b"], ["x__a", "x__b"]],
    [undefined, ["b"], ["x__b"]],
    ["y/b", ["a", "b"], ["y__b"]],
    ["y", ["a", "b"], ["y__a", "y__b"]],
    ["*", [], ["x__a", "x__b", "y__a", "y__b"]],
    ["__none__", ["a", "b"], []],
  ])(
    "MCP_DIRECT_TOOLS=%s, directTools of x: %j -> declared from the snapshot, without a request to the worker: %j",
    async (variable, configured, names) => {
      vi.stubEnv("MCP_DIRECT_TOOLS", variable);
      const at = await opened({
        snapshot: [
          { name: "x", tools: marked(configured) },
          { name: "y", tools: AB },
        ],
      });
      expect(await waited(at)).toBe(0);
      expect(direct(at.pi)).toEqual(names);
      expect(asked(at)).toEqual([]);
    },
  );

  it.each<[string | undefined, Partial<ServerStatus>, boolean]>([
    [undefined, { ...learning, direct: true }, true],
    [undefined, { ...learning, direct: true, state: "idle" }, true],
    [undefined, { ...learning, direct: false }, false],
    [undefined, { ...learning, direct: true, state: "failed" }, false],
    [undefined, { ...learning, direct: true, state: "needs-auth" }, false],
    [undefined, { ...learning, direct: true, state: "disabled" }, false],
    // The server has listed its tools, and the catalog that holds them is still under way.
    [undefined, { direct: true }, true],
    ["x/a", { ...learning, direct: false }, true],
    ["*", { ...learning, direct: false }, true],
    ["y", { ...learning, direct: true }, false],
    ["__none__", { ...learning, direct: true }, false],
  ])(
    "MCP_DIRECT_TOOLS=%s, a server of the plan that is %j -> waited for: %s",
    async (variable, status, waits) => {
      vi.stubEnv("MCP_DIRECT_TOOLS", variable);
      const settleTools = () => [];
      const at = await opened({ answers: { settleTools } });
      at.send(planOf({ x: status, known: { direct: true } }));
      at.send(catalogOf([{ name: "known", tools: [{ tool: "a" }] }]));
      expect(await waited(at)).toBe(0);
      expect(asked(at)).toEqual(waits ? [["settleTools", { timeoutMs: 10_000, servers: ["x"] }]] : []);
    },
  );

  const made = [SERVER, { name: "new", tools: [{ tool: "c", direct: true }, { tool: "d" }] }];

  test("a server that is new since the snapshot -> its direct tools beside the known ones, for the rest of 10 s", async () => {
    const agentDir = await tempFolder();
    await writeNewer(join(agentDir, "mcp.json"));
    const at = await opened({ agentDir, snapshot: [SERVER] });
    at.answers.settleTools = () => settled.promise;
    const settled = Promise.withResolvers<string[]>();
    const first = prompt(at);
    await vi.advanceTimersByTimeAsync(4_000);
    at.send(planOf({ s: { direct: true }, new: { ...learning, direct: true } }));
    await vi.advanceTimersByTimeAsync(1_000);
    expect(asked(at)).toEqual([["settleTools", { timeoutMs: 6_000, servers: ["new"] }]]);
    expect(first.waitedMs).toBeUndefined();
    // The events of what the reply tells come before the reply.
    at.send(catalogOf(made));
    settled.resolve([]);
    await vi.advanceTimersByTimeAsync(0);
    expect(first.waitedMs).toBe(5_000);
    expect(direct(at.pi)).toEqual(["s__a", "new__c"]);
    expect(reachable(at.pi)).not.toContain("new__d");
  });

  test("the worker answers late or ends -> the prompt goes on with the known tools, and the log says why", async () => {
    const settleTools = () => Promise.reject(new ThreadsError("deadline", "The worker did not answer."));
    const at = await opened({ snapshot: [SERVER], answers: { settleTools } });
    at.send(planOf({ s: { direct: true }, new: { ...learning, direct: true } }));
    expect(await waited(at)).toBe(0);
    expect(direct(at.pi)).toEqual(["s__a"]);
    expect(at.runtimes[0]?.logged).toContain("The worker did not answer.");
  });

  test("a server that fails and connects again with each turn -> waited for once a session, another one too", async () => {
    const at = await opened({ answers: { settleTools: () => [] } });
    const waitsFor = async (): Promise<unknown> => {
      const before = asked(at).length;
      await waited(at);
      return asked(at).slice(before);
    };
    const wait = (...servers: string[]) => [["settleTools", { timeoutMs: 10_000, servers }]];
    at.send(planOf({ x: { ...learning, direct: true } }));
    expect(await waitsFor()).toEqual(wait("x"));
    expect(await waitsFor()).toEqual([]);
    at.send(planOf({ x: { ...learning, direct: true }, y: { ...learning, direct: true } }));
    expect(await waitsFor()).toEqual(wait("y"));
    at.send(catalogOf([{ name: "x", tools: [{ tool: "a", direct: true }] }]));
    expect(direct(at.pi)).toEqual(["x__a"]);
    await at.session.stop();
    at.session.start(at.ctx);
    at.send(planOf({ y: { ...learning, direct: true } }));
    expect(await waitsFor()).toEqual(wait("y"));
  });

  test("the session ends while the server is waited for -> nothing is registered", async () => {
    const reply = Promise.withResolvers<unknown>();
    const at = await opened({ answers: { settleTools: () => reply.promise } });
    at.send(planOf({ new: { ...learning, direct: true } }));
    const first = prompt(at);
    await vi.advanceTimersByTimeAsync(0);
    const before = at.pi.registrations.length;
    await at.session.stop();
    // Pi's objects are stale from then on.
    at.pi.getActiveTools = () => {
      throw new Error("Pi was touched");
    };
    reply.resolve([]);
    await first.done;
    expect(at.pi.registrations).toHaveLength(before);
  });

  test("names without a server -> not in the factory, where they could keep Pi from starting, but at the first prompt", async () => {
    const tools = [
      { tool: "mine", direct: true, bare: true },
      { tool: "other", bare: true },
    ];
    const at = await opened({ snapshot: [{ name: "s", tools }] });
    expect(at.pi.registrations).toEqual(["ToolSearch"]);
    expect(await waited(at)).toBe(0);
    expect(at.pi.registrations).toEqual(["ToolSearch", "mine"]);
  });

  test("a direct tool that becomes known after the first prompt -> registered with its catalog", async () => {
    const at = await opened();
    at.send(planOf({ s: { ...learning, direct: true, state: "failed" } }));
    await waited(at);
    at.send(catalogOf([SERVER]));
    expect(direct(at.pi)).toEqual(["s__a"]);
    expect(reachable(at.pi)).toEqual(["s__a"]);
  });
});

describe("a resumed branch", () => {
  const DOWN: MadeServer = { name: "down", toolsKnown: false, tools: [] };
  const asItWas = ({ pi }: Opened, name: string): boolean => pi.tools.get(name)?.description === "As it was.";
  const owns = (name: string, server: string, tool: string): unknown => ({
    type: "message",
    message: {
      role: "toolResult",
      toolName: "ToolSearch",
      details: { owners: { [name]: { server, tool } } },
    },
  });

  test("tools of the catalog -> as the factory registered them, no wait", async () => {
    const at = await opened({ snapshot: [SERVER], branch: [declares("s__b")] });
    expect(await waited(at)).toBe(0);
    expect(at.pi.registrations).toEqual(["ToolSearch", "s__a", "s__b"]);
    expect(asItWas(at, "s__b")).toBe(false);
  });

  it.each<[string, unknown[], boolean]>([
    ["that begins with the server's name", [declares("down__x")], true],
    ["as Pi's own MCP named it", [declares("mcp__down__x")], true],
    ["without a server, which a search wrote down", [declares("x"), owns("x", "down", "x.y")], true],
    [
      "that a search wrote down for a server that is gone",
      [declares("down__x"), owns("down__x", "gone", "x")],
      false,
    ],
    ["of no known server", [declares("bash2")], false],
  ])(
    "a tool of a server without a catalog, a name %s -> registered as the transcript has it: $2",
    async (_name, branch, restored) => {
      const at = await opened({ snapshot: [SERVER, DOWN], branch });
      // The plan may know the server of an unknown tool, so the prompt waits for the plan.
      expect(await waited(at)).toBe(restored ? 0 : 10_000);
      const name = JSON.stringify(branch).match(/"name":"(\w+)"/)?.[1] ?? "";
      expect(asItWas(at, name)).toBe(restored);
    },
  );

  test("a tool whose server only the plan names -> waited for, then registered", async () => {
    const at = await opened({ snapshot: [SERVER], branch: [declares("late__x", "other__x")] });
    const first = prompt(at);
    await vi.advanceTimersByTimeAsync(7_000);
    at.send(planOf({ late: learning }));
    await vi.advanceTimersByTimeAsync(0);
    expect(first.waitedMs).toBe(7_000);
    expect([asItWas(at, "late__x"), asItWas(at, "other__x")]).toEqual([true, false]);
  });

  test("without snapshot and cache -> the plan names the server, the transcript has the tool; it is called by its own name", async () => {
    const callTool = (): unknown => ({ content: [], isError: false, durationMs: 1 });
    const branch = [declares("s__my_tool"), owns("s__my_tool", "s", "my.tool")];
    const at = await opened({ branch, answers: { callTool } });
    at.send(planOf({ s: learning }));
    await waited(at);
    expect(asItWas(at, "s__my_tool")).toBe(true);
    await at.pi.tools.get("s__my_tool")?.execute("1", {}, undefined, undefined, {} as never);
    expect(asked(at)).toMatchObject([["callTool", { server: "s", tool: "my.tool" }]]);
  });

  it.each<[string, Record<string, Partial<ServerStatus>>, boolean]>([
    ["has", { s: {} }, true],
    ["has, but it is disabled,", { s: { state: "disabled" } }, false],
    ["does not have", {}, false],
  ])("a server that the plan %s -> the model keeps its tool: $2", async (_name, servers, kept) => {
    const at = await opened({ snapshot: [SERVER], branch: [declares("s__b")] });
    at.pi.setActiveTools(["s__b"]);
    at.send(planOf(servers));
    await waited(at);
    expect(reachable(at.pi).includes("s__b")).toBe(kept);
  });

  test("a tool of a server without a catalog that the plan disables -> not for the model", async () => {
    const at = await opened({ snapshot: [SERVER, DOWN], branch: [declares("down__x")] });
    at.pi.setActiveTools(["down__x"]);
    at.send(planOf({ s: {}, down: { state: "disabled" } }));
    await waited(at);
    expect(reachable(at.pi)).not.toContain("down__x");
  });

  test("of a project that is no longer trusted -> not declared, whatever the transcript says", async () => {
    const snapshot = [SERVER, { name: "proj", project: true, tools: [{ tool: "work" }] }];
    const at = await opened({ snapshot, trusted: false, branch: [declares("proj__work", "s__b")] });
    at.pi.setActiveTools(["proj__work", "s__b"]);
    at.send(planOf({ s: {} }));
    await waited(at);
    expect(reachable(at.pi)).toEqual(["s__a", "s__b"]);
  });

  const V1: MadeServer = { name: "s", tools: [{ tool: "b", description: "One." }] };
  it.each<[string, MadeServer, string | undefined]>([
    ["has changed", { name: "s", tools: [{ tool: "b", description: "Two." }] }, "Two."],
    ["is gone", { name: "s", tools: [] }, undefined],
    ["is as it was", V1, "One."],
  ])("back on a branch whose tool %s meanwhile -> as the catalog has it", async (_name, server, now) => {
    const at = await opened({ snapshot: [V1], branch: [declares("s__b")] });
    at.pi.setActiveTools(["read", "s__b"]);
    at.send(planOf({ s: {} }));
    await waited(at);
    const before = at.pi.registrations.filter((name) => name === "s__b").length;
    // To another branch, and back: Pi activates what it knows by that name.
    at.pi.setActiveTools(["read"]);
    at.session.branchChanged();
    at.send(catalogOf([server]));
    at.pi.setActiveTools(["read", "s__b"]);
    at.session.branchChanged();
    await waited(at);
    const isActive = at.pi.getActiveTools().includes("s__b");
    expect(isActive ? at.pi.tools.get("s__b")?.description : undefined).toBe(now);
    const after = at.pi.registrations.filter((name) => name === "s__b").length;
    expect(after - before).toBe(now === "One." ? 0 : 1);
  });

  test("of a project's server that the plan lacks, while the snapshot has it -> hidden, direct or not", async () => {
    const tools = [{ tool: "work" }, { tool: "always", direct: true }];
    const snapshot = [SERVER, { name: "proj", project: true, tools }];
    const at = await opened({ snapshot, active: ["proj__work"], branch: [declares("proj__work", "s__b")] });
    at.send(planOf({ s: {} }));
    await waited(at);
    expect(reachable(at.pi)).toEqual(["s__a", "s__b"]);
  });

  test("several prompts -> restored once; after a change of the branch, once more", async () => {
    const at = await opened({ snapshot: [SERVER] });
    let reads = 0;
    at.ctx.sessionManager.getBranch = () => {
      reads++;
      return [];
    };
    for (const expected of [1, 1, 2, 2]) {
      if (expected === 2 && reads === 1) at.session.branchChanged();
      await waited(at);
      expect(reads).toBe(expected);
    }
  });
});

describe("the processor at the first request", () => {
  const notes = (at: Opened): unknown[] =>
    told(at)
      .filter(([method]) => method === "firstRequest")
      .map(([, params]) => params);

  test("a prompt before the first plan -> the worker is told, and told again when the request leaves, once", async () => {
    const at = await opened();
    const { done } = prompt(at);
    expect(notes(at)).toEqual([{ state: "prepared" }]);
    at.send(planOf({ s: {} }));
    await done;
    at.pi.happens("before_provider_request");
    at.pi.happens("before_provider_request");
    expect(notes(at)).toEqual([{ state: "prepared" }, { state: "sent" }]);
  });

  test("a prompt after the first plan -> the worker is told nothing", async () => {
    const at = await opened();
    at.send(planOf({ s: {} }));
    await prompt(at).done;
    at.pi.happens("before_provider_request");
    expect(notes(at)).toEqual([]);
  });
});
