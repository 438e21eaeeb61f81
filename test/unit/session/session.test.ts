/** Owns: what one Pi session does on the main thread, from the factory to its end. The runtime is a fake. */
import { join, resolve } from "node:path";
import { describe, expect, it, onTestFinished, test } from "vitest";
import type { WorkerEvent } from "../../../src/shared/protocol/contract.ts";
import { ThreadsError } from "../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import type { ServerStatus } from "../../../src/shared/protocol/session.ts";
import type { MadeServer } from "../make-catalog.ts";
import { makeStatus } from "../server-status.ts";
import { settled } from "../settled.ts";
import { tempFolder } from "../temp-folder.ts";
import {
  catalogOf,
  declares,
  direct,
  type Opened,
  openSession,
  planned,
  planOf,
  reachable,
  storeSnapshot,
} from "./support.ts";

const OWN: MadeServer = { name: "own", tools: [{ tool: "work" }] };
const PROJECT: MadeServer = { name: "proj", project: true, tools: [{ tool: "work" }] };

const restarted = new ThreadsError("runtime_restarted", "The connection worker ended with code 7.");

describe("the factory", () => {
  test("a snapshot -> ToolSearch names its servers, every tool is registered, nothing is started", async () => {
    const { pi, runtimes } = await openSession({ snapshot: [OWN, PROJECT], started: false });
    expect(pi.registrations).toEqual(["ToolSearch", "own__work", "proj__work"]);
    expect(pi.tools.get("ToolSearch")?.description).toContain("own");
    expect(runtimes).toEqual([]);
  });

  test("no snapshot -> ToolSearch alone", async () => {
    const { pi } = await openSession({ started: false });
    expect(pi.registrations).toEqual(["ToolSearch"]);
  });
});

describe("the start", () => {
  test("session_start twice -> one runtime, which logs what was registered", async () => {
    const { session, ctx, runtimes } = await openSession({ snapshot: [OWN] });
    session.start(ctx);
    expect(runtimes).toHaveLength(1);
    expect(runtimes[0]?.logged).toEqual([
      expect.stringMatching(/^registered 1 tools of 1 servers from the snapshot in [\d.]+ ms$/),
    ]);
  });

  test("the facts -> folder, trust, flag, dialogs; the servers of other extensions anew for each worker", async () => {
    const registered = [{ name: "ext", config: { command: "x" }, extensionPath: "/x.js", more: () => 0 }];
    const at = await openSession({ registered, configFlag: "my.json", trusted: false, hasUI: false });
    const { facts, logFile } = at.runtimes[0]?.options ?? {};
    expect(logFile).toBe(join(at.agentDir, "mcp-threads.log"));
    const { cwd } = at.ctx;
    expect(facts?.()).toMatchObject({
      agentDir: at.agentDir,
      cwd,
      projectTrusted: false,
      canAsk: false,
      // A word of the shell's is about the shell's folder, whatever session is resumed.
      configPath: resolve("my.json"),
      registered: [{ name: "ext", config: { command: "x" }, extensionPath: "/x.js" }],
    });
    // Only what can be cloned into a thread.
    expect(structuredClone(facts?.())).toEqual(facts?.());
    expect(facts?.()).not.toHaveProperty("accepted");
    registered.pop();
    expect(facts?.().registered).toEqual([]);
  });

  test("a worker that follows a crash -> told what the plan has let run, and which catalog main shows", async () => {
    const { runtimes, send } = await openSession();
    const accepted = { servers: ["hash"] };
    send({ ...planned(), accepted });
    send(catalogOf([OWN]));
    const after = runtimes[0]?.options.facts();
    expect(after).toMatchObject({ accepted, snapshotChecksum: expect.any(Number) });
    send({ type: "removed", servers: ["own"], tools: [] });
    // Main shows less than that snapshot: the worker must send it again.
    expect(runtimes[0]?.options.facts().snapshotChecksum).toBeUndefined();
  });

  const offEntry = (off: unknown) => ({ type: "custom", customType: "mcp-off", data: { off } });
  it.each<[string, unknown[], string[] | undefined]>([
    ["one entry", [offEntry(["a", "b"])], ["a", "b"]],
    ["the newest counts", [offEntry(["a"]), { type: "message" }, offEntry(undefined)], undefined],
    ["entries of another kind", [null, "x", { customType: "mcp-off" }], undefined],
  ])("servers that the transcript says are off: %s -> %#", async (_name, branch, off) => {
    const at = await openSession({ branch });
    expect(at.runtimes[0]?.options.facts().off).toEqual(off);
  });

  test("a session that goes on with a server off -> the snapshot with that server is not searched", async () => {
    const at = await openSession({ snapshot: [OWN], branch: [offEntry(["own"])] });
    expect(at.session.catalog().servers).toEqual([]);
    expect((await openSession({ snapshot: [OWN] })).session.catalog().servers).toHaveLength(1);
  });

  test("/mcp off and on -> the transcript says what is off", async () => {
    const at = await openSession({ answers: { setEnabled: () => ({ file: "/mcp.json" }) } });
    const plan = (isOff: boolean) => {
      at.send(planOf({ own: isOff ? { state: "disabled", isOff: true } : {} }));
    };
    const set = async (enabled: boolean): Promise<void> => {
      const params = { server: "own", enabled, project: false, session: true } as const;
      await at.session.ask("setEnabled", params);
      await settled();
    };
    plan(true);
    await set(false);
    plan(false);
    await set(true);
    expect(at.pi.entries).toEqual([
      ["mcp-off", { off: ["own"] }],
      ["mcp-off", { off: undefined }],
    ]);
  });

  test("a fork keeps what is off, also from before it was said, and so does its transcript; another session does not", async () => {
    const before = await openSession({ branch: [offEntry(["own"])] });
    await before.session.stop();
    const fork = await openSession({ started: false });
    fork.session.start(fork.ctx, true);
    expect(fork.pi.entries).toEqual([["mcp-off", { off: ["own"] }]]);
    await fork.session.stop();
    const other = await openSession();
    expect(other.pi.entries).toEqual([]);
    await other.session.stop();
    const ofOther = await openSession({ started: false });
    ofOther.session.start(ofOther.ctx, true);
    expect(ofOther.pi.entries).toEqual([]);
  });

  it.each<[string, Error, [string, string][]]>([
    [
      "for a reason of its own",
      new ThreadsError("internal", "no disk", { remedy: "Free it." }),
      [["MCP servers could not be started: no disk Free it.", "error"]],
    ],
    ["because the worker crashed, which has its own notice", restarted, []],
  ])("the worker cannot open the session %s -> notices: $2", async (_name, error, expected) => {
    const { runtimes, notices } = await openSession();
    runtimes[0]?.options.onStartFailed(error);
    expect(notices).toEqual(expected);
  });
});

describe("the end", () => {
  test("stop -> the runtime is stopped; what is asked after that fails with a remedy", async () => {
    const { session, runtimes } = await openSession();
    await session.stop();
    expect(runtimes[0]?.isStopped).toBe(true);
    const stopped = { code: "runtime_stopped", remedy: "/reload starts them again." };
    await expect(session.ask("status", {})).rejects.toMatchObject(stopped);
    await expect(session.askConsents()).rejects.toMatchObject(stopped);
  });

  test("before the start and after the end -> Pi is not touched, and nothing is thrown", async () => {
    const { session, ctx, pi, runtimes } = await openSession({ started: false });
    const refused = { role: "toolResult", toolName: "own__work", isError: true, content: [] };
    const all = async (): Promise<void> => {
      await session.beforeAgentStart(ctx);
      await session.toolCalled({ toolName: "codemode", input: {} }, ctx);
      session.registeredServersChanged([]);
      await session.turnEnded(ctx);
      await session.compacted(ctx);
      expect(session.messageEnded(refused)).toBeUndefined();
      expect(session.servers()).toEqual([]);
    };
    await all();
    session.start(ctx);
    await session.stop();
    await all();
    expect(pi.registrations).toEqual(["ToolSearch"]);
    expect(runtimes[0]?.asked).toEqual([]);
  });

  const LATE: [string, WorkerEvent][] = [
    ["a notice", { type: "notice", text: "+ docs", level: "info" }],
    ["a failed server", { type: "server", status: makeStatus("s", { state: "failed" }) }],
    ["a held edit", { type: "held", id: "1", text: "+ docs" }],
    ["a plan", planned({ questions: [{ server: "s", hash: "h", question: "s: x" }] })],
    ["a catalog", catalogOf([OWN])],
    ["removed tools", { type: "removed", servers: ["own"], tools: [] }],
  ];
  it.each(LATE)("%s of an older session -> dropped; of the new one -> handled", async (_name, event) => {
    const at = await openSession({ snapshot: [OWN] });
    at.pi.setActiveTools(["own__work"]);
    const effects = (): unknown[] => [
      at.notices.length,
      at.statuses.length,
      at.dialogs.length,
      at.pi.registrations.length,
      at.session.servers().length,
      at.session.catalog(),
    ];
    await at.session.stop();
    at.session.start(at.ctx);
    expect(at.runtimes).toHaveLength(2);
    const before = effects();
    at.runtimes[0]?.options.onEvent(event);
    await settled();
    expect(effects()).toEqual(before);
    at.send(event);
    await settled();
    expect(effects()).not.toEqual(before);
  });

  it.each([
    [false, "The MCP connection worker ended unexpectedly (exit code 7) and is started again.", "warning"],
    [true, "The MCP connection worker ended unexpectedly too often (exit code 7)", "error"],
  ])("a crash, given up: %s -> one notice; after the end -> none", async (givenUp, text, level) => {
    const { session, runtimes, notices } = await openSession();
    const { onCrash } = runtimes[0]?.options ?? {};
    onCrash?.({ reason: "exit code 7", givenUp });
    await expect.poll(() => notices).toEqual([[expect.stringContaining(text), level]]);
    await session.stop();
    onCrash?.({ reason: "exit code 7", givenUp });
    await settled();
    expect(notices).toHaveLength(1);
  });

  test("Pi has replaced the session, so that its objects throw -> the session stops, nothing is thrown", async () => {
    const { ctx, runtimes, send, session } = await openSession();
    ctx.ui.notify = () => {
      throw new Error("This context is stale.");
    };
    send({ type: "notice", text: "+ docs", level: "info" });
    await settled();
    expect(runtimes[0]).toMatchObject({ isStopped: true });
    expect(runtimes[0]?.logged.at(-1)).toBe("the session is over: This context is stale.");
    expect(session.servers()).toEqual([]);
    runtimes[0]?.options.onCrash({ reason: "x", givenUp: false });
  });

  test("another session starts -> this one is stopped; its late end does not touch the other", async () => {
    const one = await openSession();
    const two = await openSession();
    await settled();
    expect(one.runtimes[0]?.isStopped).toBe(true);
    await expect(one.session.ask("status", {})).rejects.toThrow("stopped");
    await one.session.stop();
    const three = await openSession();
    await settled();
    expect(two.runtimes[0]?.isStopped).toBe(true);
    expect(three.runtimes[0]?.isStopped).toBe(false);
  });
});

describe("several sessions in one process", () => {
  const subagent = { hasUI: false, mode: "print" } as const;

  test("subagents beside a person's session, and beside each other -> each has its servers, and the person keeps theirs", async () => {
    const person = await openSession({ mode: "tui" });
    const [one, two] = [await openSession(subagent), await openSession(subagent)];
    await settled();
    await one.session.stop();
    await settled();
    expect([person, one, two].map(({ runtimes }) => runtimes[0]?.isStopped)).toEqual([false, true, false]);
    const next = await openSession({ mode: "tui" });
    await settled();
    expect([person, two, next].map(({ runtimes }) => runtimes[0]?.isStopped)).toEqual([true, false, false]);
  });

  test("the flags of the command line hold for a subagent, which Pi gives none, and those that a program gives one session for no other", async () => {
    const { argv } = process;
    process.argv = [...argv, "--mcp-config", "my.json"];
    onTestFinished(() => {
      process.argv = argv;
    });
    const one = await openSession({ ...subagent, configFlag: "its.json" });
    const other = await openSession(subagent);
    const paths = [one, other].map(({ runtimes }) => runtimes[0]?.options.facts().configPath);
    expect(paths).toEqual([resolve("its.json"), resolve("my.json")]);
  });

  test("a subagent begins -> what the person has switched off is kept for a fork", async () => {
    const off = { type: "custom", customType: "mcp-off", data: { off: ["own"] } };
    const person = await openSession({ branch: [off] });
    await openSession(subagent);
    await person.session.stop();
    const fork = await openSession({ started: false });
    fork.session.start(fork.ctx, true);
    expect(fork.pi.entries).toEqual([["mcp-off", { off: ["own"] }]]);
  });

  test("a program disposes of its session, of which Pi tells only by objects that throw -> the servers end", async () => {
    const at = await openSession({ ...subagent, started: false });
    let over = false;
    const ctx = new Proxy(at.ctx, {
      get: (...of: Parameters<typeof Reflect.get>) => {
        if (over) throw new Error("This context is stale.");
        return Reflect.get(...of);
      },
    }) as typeof at.ctx;
    at.session.start(ctx);
    over = true;
    await expect.poll(() => at.runtimes[0]?.isStopped).toBe(true);
  });
});

describe("a plan", () => {
  const active = async (servers: readonly MadeServer[]): Promise<Opened> => {
    const at = await openSession({ snapshot: servers });
    at.pi.setActiveTools([
      "read",
      ...servers.flatMap(({ name, tools }) => tools.map(({ tool }) => `${name}__${tool}`)),
    ]);
    return at;
  };
  const OTHER: MadeServer = { name: "other", tools: [{ tool: "work" }] };

  it.each<[string, WorkerEvent, string[]]>([
    ["that names both servers", planOf({ own: {}, other: {} }), ["own__work", "other__work"]],
    ["that names one of two servers", planOf({ own: {} }), ["own__work"]],
    ["with one disabled", planOf({ own: { state: "disabled" }, other: {} }), ["other__work"]],
    ["with one that failed", planOf({ own: { state: "failed" }, other: {} }), ["own__work", "other__work"]],
    ["without servers", planOf({}), []],
  ])("%s -> the model keeps the tools: $2", async (_name, plan, kept) => {
    const { pi, send } = await active([OWN, OTHER]);
    send(plan);
    expect(reachable(pi)).toEqual(kept);
  });

  test("that takes a server away, and one that has it again -> its tool is declared again", async () => {
    const { pi, send } = await active([OWN, OTHER]);
    send(planOf({ own: {} }));
    expect(reachable(pi)).toEqual(["own__work"]);
    send(planOf({ own: {}, other: {} }));
    send(catalogOf([OWN, OTHER]));
    expect(reachable(pi)).toEqual(["own__work", "other__work"]);
    expect(pi.getActiveTools()).toEqual(["read", "own__work", "other__work"]);
  });

  test("that lacks a server which registers itself late, and one that has it -> its tool is declared again, without an event of the catalog", async () => {
    const { pi, send } = await active([OWN, OTHER]);
    send(planOf({ own: {} }));
    send(planOf({ own: {}, other: {} }));
    expect(pi.getActiveTools()).toEqual(["read", "own__work", "other__work"]);
    const before = pi.registrations.length;
    send(planOf({ own: {}, other: {} }));
    expect(pi.registrations).toHaveLength(before);
  });

  test.each<[string, WorkerEvent]>([
    ["switched off", planOf({ own: {}, other: { state: "disabled" } })],
    ["removed", planOf({ own: {} })],
  ])("with a server %s, then the catalog of before -> its tool stays withdrawn", async (_how, plan) => {
    const { pi, send } = await active([OWN, OTHER]);
    send(plan);
    send(catalogOf([OWN, { ...OTHER, tools: [{ tool: "work", description: "Listed meanwhile." }] }]));
    expect(reachable(pi)).toEqual(["own__work"]);
    expect(pi.getActiveTools()).toEqual(["read", "own__work"]);
    send(planOf({ own: {}, other: {} }));
    expect(pi.getActiveTools()).toEqual(["read", "own__work", "other__work"]);
  });

  test("without a project's server that the factory registered -> its tools are withdrawn, active or not", async () => {
    const { pi, send } = await openSession({ snapshot: [OWN, PROJECT] });
    send(planOf({ own: {} }));
    expect(reachable(pi)).toEqual(["own__work"]);
  });

  test("with mistakes and refused servers -> one notice; the same plan again -> none", async () => {
    const { notices, send, statuses } = await openSession();
    const problem = { severity: "error", file: "/m.json", message: "is cut", remedy: "Mend it." } as const;
    const plan = planned({
      servers: [makeStatus("own")],
      problems: [problem],
      refused: [{ name: "docs", reason: "refused" }],
    });
    send(plan);
    send(plan);
    expect(notices).toEqual([
      ["/m.json: is cut. Mend it.\nMCP server docs is not started: refused.", "warning"],
    ]);
    expect(statuses).toEqual([["pi-mcp-threads", "MCP: 1 server ready · 2 tools"]]);
  });
});

describe("other events", () => {
  test("a server fails and works again -> the status line and two notices", async () => {
    const { notices, send, statuses, session } = await openSession();
    send(planOf({ s: { state: "connecting" } }));
    const error = { code: "spawn_failed", message: "s: not found." } as const;
    for (const status of [makeStatus("s", { state: "failed", error }), makeStatus("s")]) {
      send({ type: "server", status });
      expect(session.servers()).toEqual([status]);
    }
    await settled();
    expect(notices.map(([text]) => text)).toEqual(["MCP server s: not found.", "MCP server s works now."]);
    expect(statuses.map(([, text]) => text)).toEqual([
      "MCP: 0 of 1 server ready · 2 tools",
      "MCP: 0 of 1 server ready · s failed: /mcp",
      "MCP: 1 server ready · 2 tools",
    ]);
  });

  test("tools are gone -> an active one is withdrawn at once", async () => {
    const { pi, send } = await openSession({ snapshot: [OWN] });
    pi.setActiveTools(["own__work"]);
    send({ type: "removed", servers: [], tools: [{ server: "own", tool: "work" }] });
    expect(reachable(pi)).toEqual([]);
  });

  test("a new catalog -> an active tool that changed is told to Pi, others are not", async () => {
    const { pi, send } = await openSession({ snapshot: [OWN, PROJECT] });
    pi.setActiveTools(["own__work"]);
    const before = pi.registrations.length;
    const changed = [{ tool: "work", description: "Changed." }];
    send(
      catalogOf([
        { ...OWN, tools: changed },
        { ...PROJECT, tools: changed },
      ]),
    );
    expect(pi.registrations.slice(before)).toEqual(["own__work"]);
  });
});

describe("the factory's guess was wrong", () => {
  const elsewhere = async (trusted: boolean): Promise<Opened> => {
    const agentDir = await tempFolder();
    await storeSnapshot(agentDir, "/guess", [OWN, PROJECT]);
    await storeSnapshot(agentDir, "/actual", [{ name: "actual", project: true, tools: [{ tool: "work" }] }]);
    const factory = { cwd: "/guess" };
    return openSession({ agentDir, cwd: "/actual", factory, trusted });
  };
  const servers = ({ session }: Opened): string[] => session.catalog().servers.map(({ name }) => name);
  const named = ({ pi }: Opened, server: string): boolean =>
    pi.tools.get("ToolSearch")?.description.includes(`- ${server}`) === true;

  test("a project that is not trusted, with servers in the snapshot -> they are withdrawn, and the catalog is empty until the plan", async () => {
    const at = await openSession({ snapshot: [OWN, PROJECT], trusted: false });
    expect(reachable(at.pi)).toEqual(["own__work"]);
    expect([servers(at), named(at, "proj"), named(at, "own")]).toEqual([[], false, false]);
  });

  test("a project that is not trusted, without servers in the snapshot -> the snapshot stays", async () => {
    const at = await openSession({ snapshot: [OWN], trusted: false });
    expect([servers(at), named(at, "own")]).toEqual([["own"], true]);
    expect(at.pi.registrations).toEqual(["ToolSearch", "own__work"]);
  });

  test("another folder, trusted -> the snapshot of that folder", async () => {
    const at = await elsewhere(true);
    expect([servers(at), named(at, "actual"), named(at, "proj")]).toEqual([["actual"], true, false]);
    expect(reachable(at.pi)).toEqual(["own__work"]);
  });

  test("another folder, trusted, with the same server -> before the first request its tools of the branch and the direct ones of its snapshot, without an event", async () => {
    const agentDir = await tempFolder();
    const tools = [{ tool: "work" }, { tool: "other" }];
    await storeSnapshot(agentDir, "/guess", [OWN, { ...PROJECT, tools }]);
    await storeSnapshot(agentDir, "/actual", [
      OWN,
      { ...PROJECT, tools: [...tools, { tool: "always", direct: true }] },
    ]);
    const at = await openSession({
      agentDir,
      cwd: "/actual",
      factory: { cwd: "/guess" },
      active: ["read", "proj__work"],
      branch: [declares("proj__work")],
    });
    expect(reachable(at.pi)).toEqual(["own__work"]);
    at.send(planOf({ own: {}, proj: {} }));
    await at.session.beforeAgentStart(at.ctx);
    expect(at.pi.getActiveTools()).toEqual(["read", "proj__work"]);
    expect(reachable(at.pi)).toEqual(["own__work", "proj__work", "proj__always"]);
    expect(direct(at.pi)).toContain("proj__always");
  });

  test("another folder without a snapshot, with the same server -> the branch's tool as the transcript has it", async () => {
    const agentDir = await tempFolder();
    await storeSnapshot(agentDir, "/guess", [PROJECT]);
    const at = await openSession({
      agentDir,
      cwd: "/actual",
      factory: { cwd: "/guess" },
      active: ["read", "proj__work"],
      branch: [declares("proj__work")],
    });
    at.send(planOf({ proj: { toolsKnown: false, state: "connecting" } }));
    await at.session.beforeAgentStart(at.ctx);
    expect(at.pi.getActiveTools()).toEqual(["read", "proj__work"]);
    expect(at.pi.tools.get("proj__work")?.description).toBe("As it was.");
  });

  test("another folder, not trusted -> no snapshot", async () => {
    const at = await elsewhere(false);
    expect([servers(at), named(at, "actual"), named(at, "proj")]).toEqual([[], false, false]);
  });

  test("another --mcp-config -> the snapshot of that file", async () => {
    const at = await openSession({ snapshot: [OWN], configFlag: "my.json" });
    expect(servers(at)).toEqual([]);
  });
});

describe("dialogs", () => {
  const question = (hash: string) => ({ server: hash, hash, question: `${hash}: x` });
  const asking = planned({ questions: [question("a"), question("b")] });

  test("an answer -> sent to the worker; the next plan does not ask again, /mcp trust does", async () => {
    const at = await openSession({
      select: () => "Refuse",
      answers: { answerConsent: () => undefined, askAgain: () => undefined },
    });
    at.send(asking);
    at.send(asking);
    await settled();
    expect(at.dialogs).toHaveLength(2);
    await at.session.askConsents();
    at.send(asking);
    await settled();
    expect(at.dialogs).toHaveLength(4);
    expect(at.runtimes[0]?.asked.slice(0, 3)).toEqual([
      ["answerConsent", { hash: "a", allow: false }],
      ["answerConsent", { hash: "b", allow: false }],
      ["askAgain", {}],
    ]);
  });

  test("the session ends while a dialog is open -> its answer has no effect, and the next question is not asked", async () => {
    const { promise, resolve } = Promise.withResolvers<string>();
    const at = await openSession({ select: () => promise });
    at.send(asking);
    await settled();
    await at.session.stop();
    resolve("Allow");
    await settled();
    expect(at.dialogs).toHaveLength(1);
    expect(at.runtimes[0]?.asked).toEqual([]);
    expect(at.notices).toEqual([]);
  });

  it.each<[string, number, [string, string][]]>([
    ["crashes once", 1, []],
    ["crashes again", 2, [["MCP: The connection worker ended with code 7.", "error"]]],
  ])(
    "the worker %s while it receives an answer -> the answer is sent twice, the user is asked once; notices: $2",
    async (_name, times, expected) => {
      let crashes = times;
      const answerConsent = (): unknown => (crashes-- > 0 ? Promise.reject(restarted) : undefined);
      const at = await openSession({ select: () => "Allow", answers: { answerConsent } });
      at.send(planned({ questions: [question("a")] }));
      await settled();
      expect(at.dialogs).toHaveLength(1);
      expect(at.runtimes[0]?.asked).toHaveLength(2);
      expect(at.notices).toEqual(expected);
    },
  );
});

test.each<[string, (choices: readonly string[]) => string | undefined, boolean]>([
  ["the yes", () => "Apply it", true],
  ["what Enter gives at once", ([first]) => first, false],
  ["a choice that was not offered", () => "Yes", false],
  ["a closed dialog", () => undefined, false],
])("a held edit, answered with %s -> sent to the worker", async (_what, choose, apply) => {
  const at = await openSession({
    select: (_title, choices) => choose(choices),
    answers: { applyHeld: () => undefined },
  });
  at.send({ type: "held", id: "7", text: "+ docs" });
  await settled();
  expect(at.dialogs[0]?.title).toBe("Apply the edit of the MCP configuration?\n+ docs");
  expect(at.runtimes[0]?.asked).toEqual([["applyHeld", { id: "7", apply }]]);
});

describe("Pi's other events", () => {
  test("servers of other extensions change, a turn ends -> told to the worker", async () => {
    const { session, ctx, runtimes } = await openSession();
    const server = { name: "ext", config: { command: "x" }, extensionPath: "/x.js" };
    session.registeredServersChanged([server]);
    await session.turnEnded(ctx);
    expect(runtimes[0]?.asked).toEqual([
      ["setRegistered", { servers: [server] }],
      ["turnEnded", {}],
    ]);
  });

  test("more tools are declared than may be -> let go before a prompt and at the end of a turn; at a compaction more go", async () => {
    const names = Array.from({ length: LIMITS.declaredTools + 1 }, (_, at) => `own__t${at}`);
    const snapshot = [{ name: "own", tools: names.map((name) => ({ tool: name.slice(5) })) }];
    const { session, ctx, pi, send } = await openSession({ snapshot });
    send(planOf({ own: {} }));
    const count = (): number => pi.getActiveTools().length;
    const kept = LIMITS.declaredToolsKept;
    for (const event of ["prompt", "turn", "compaction"]) {
      const declared = event === "compaction" ? names.slice(0, kept + 1) : names;
      pi.setActiveTools(declared);
      if (event === "prompt") await session.beforeAgentStart(ctx);
      else if (event === "turn") await session.turnEnded(ctx);
      else await session.compacted(ctx);
      expect(count(), event).toBe(kept);
      pi.setActiveTools(declared.slice(0, -1));
      await (event === "compaction" ? session.compacted(ctx) : session.turnEnded(ctx));
      expect(count(), event).toBe(declared.length - 1);
    }
  });

  test("codemode is called -> the tools of a new catalog are registered before the call runs", async () => {
    const { pi, send, session, ctx } = await openSession();
    const execute = (): Promise<never> => Promise.reject(new Error("not called"));
    pi.registerTool({
      name: "codemode",
      label: "",
      description: "",
      parameters: {},
      reachesTools: () => "all",
      execute,
    });
    send(planOf({ own: {} }));
    send(catalogOf([OWN]));
    expect(reachable(pi)).toEqual([]);
    await session.toolCalled({ toolName: "ToolSearch", input: {} }, ctx);
    expect(reachable(pi)).toEqual([]);
    await session.toolCalled({ toolName: "codemode", input: {} }, ctx);
    expect(reachable(pi)).toEqual(["own__work"]);
  });

  test("codemode is called before the plan -> the servers are waited for", async () => {
    const settleTools = () => [];
    const at = await openSession({ answers: { settleTools } });
    const execute = (): Promise<never> => Promise.reject(new Error("not called"));
    at.pi.registerTool({
      name: "codemode",
      label: "",
      description: "",
      parameters: {},
      reachesTools: () => "all",
      execute,
    });
    await at.session.toolCalled({ toolName: "codemode", input: {} }, at.ctx);
    expect(at.runtimes[0]?.asked).toEqual([["settleTools", { timeoutMs: 5_000 }]]);
  });

  const message = (toolName: string, text: string) => ({
    role: "toolResult",
    toolName,
    isError: true,
    content: [{ type: "text", text }],
  });

  test("arguments that Pi refuses -> the expected parameters; a tool that is not declared -> it is loaded", async () => {
    const { session, pi } = await openSession({ snapshot: [OWN] });
    const refused = await session.messageEnded(
      message("own__work", 'Validation failed for tool "own__work"'),
    );
    expect(JSON.stringify(refused)).toContain("Expected parameters: own__work()");
    const unknown = await session.messageEnded(message("own__work", "Tool own__work not found"));
    expect(JSON.stringify(unknown)).toContain("Tool own__work was not loaded. It is now");
    expect(pi.getActiveTools()).toEqual(["own__work"]);
    expect(await session.messageEnded(message("bash", "failed"))).toBeUndefined();
  });

  test("a tool that the plan took away is called -> the worker is asked why, and its words are the answer", async () => {
    const explainMissing = () => ({ code: "server_disabled", message: "own is disabled in /mcp.json." });
    const at = await openSession({ snapshot: [OWN], answers: { explainMissing } });
    at.pi.setActiveTools(["own__work"]);
    at.send(planOf({ own: { state: "disabled" } }));
    at.send(catalogOf([]));
    const answer = await at.session.messageEnded(message("own__work", "Tool own__work not found"));
    expect(answer?.message).toMatchObject({
      content: [{ text: "Tool own__work not found: own is disabled in /mcp.json." }],
      details: { code: "server_disabled" },
    });
  });
});

describe("a call", () => {
  const result = { content: [{ type: "text" as const, text: "done" }], isError: false, durationMs: 3 };

  test("of a registered tool -> to the worker; progress reaches the call that made it", async () => {
    const { promise, resolve } = Promise.withResolvers<typeof result>();
    const at = await openSession({ snapshot: [OWN], answers: { callTool: () => promise } });
    const tool = at.pi.tools.get("own__work");
    const updates: string[] = [];
    const running = tool?.execute(
      "call_1",
      { a: 1 },
      undefined,
      ({ content: [block] }) => updates.push(block?.type === "text" ? block.text : ""),
      {} as never,
    );
    for (const callId of ["call_1", "call_2"]) at.send({ type: "progress", callId, message: `of ${callId}` });
    resolve(result);
    expect((await running)?.content).toEqual(result.content);
    at.send({ type: "progress", callId: "call_1", message: "late" });
    expect(updates).toEqual(["of call_1"]);
    expect(at.runtimes[0]?.asked).toEqual([
      ["callTool", { callId: "call_1", server: "own", tool: "work", args: { a: 1 }, wantsStructured: false }],
    ]);
  });

  test("after the end -> an error result with the remedy, not a throw", async () => {
    const { pi, session } = await openSession({ snapshot: [OWN] });
    await session.stop();
    const answer = await pi.tools.get("own__work")?.execute("1", {}, undefined, undefined, {} as never);
    expect(answer).toMatchObject({ isError: true, details: { code: "runtime_stopped" } });
    expect(JSON.stringify(answer)).toContain("/reload starts them again.");
  });
});

test("another extension has the name of a tool without a prefix -> another name, one notice, one line in the log", async () => {
  const { pi, session, notices, runtimes, answers } = await openSession({
    snapshot: [{ name: "own", tools: [{ tool: "read", bare: true }] }],
  });
  const execute = (): Promise<never> => Promise.reject(new Error("not called"));
  pi.registerTool({ name: "read", label: "", description: "", parameters: {}, execute });
  answers.settleTools = () => [];
  const search = pi.tools.get("ToolSearch");
  await search?.execute("1", { query: "select:read" }, undefined, undefined, {} as never);
  const text = "MCP tool read of own is called own__read: another extension has a tool read.";
  expect(notices).toEqual([[text, "warning"]]);
  expect(runtimes[0]?.logged).toContain(text);
  expect(pi.getActiveTools()).toEqual(["own__read"]);
  await session.stop();
});

test.each<[string, Partial<ServerStatus>, boolean]>([
  ["needs a sign-in, and the user may have signed in in another session", { state: "needs-auth" }, true],
  ["is connected", {}, false],
])("a search, and a server %s -> the worker is asked first or not", async (_what, status, asks) => {
  const at = await openSession({ answers: { settleTools: () => [] } });
  at.send(planOf({ known: status }));
  at.send(catalogOf([{ name: "known", tools: [{ tool: "a" }] }]));
  const search = at.pi.tools.get("ToolSearch");
  await search?.execute("1", { query: "anything" }, undefined, undefined, {} as never);
  const settles = at.runtimes[0]?.asked.filter(([method]) => method === "settleTools");
  expect(settles).toHaveLength(asks ? 1 : 0);
});
