/**
 * Owns: tests of the first request to the model: it declares direct tools and the tools of a resumed session, and no
 * tools of a project that is no longer trusted.
 */
import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, test } from "vitest";
import { assignToolNames } from "../../src/shared/naming/names.ts";
import { type ModelRequest, type ModelScript, type ModelTurn, toolResultTexts } from "../support/model.ts";
import { type PiHome, type PrintResult, runPrint } from "../support/pi-run.ts";
import { processesWithMarker } from "../support/processes.ts";
import { notices } from "../support/rpc-events.ts";
import { type Change, inTurn } from "./in-turn.ts";
import { keptState } from "./kept-state.ts";
import { dialogsOf, live, type Opened, open, PATIENCE_MS } from "./rpc-support.ts";
import { call, ENTRY, fixtureServer, home, model, readLog, SERVERS, searchFor } from "./support.ts";

type Servers = Record<string, unknown>;

interface Ran {
  run: PrintResult;
  requests: readonly ModelRequest[];
  /** The lines that this run added to the log. */
  log: string;
}

interface RunOptions {
  entry?: string | string[];
  env?: Record<string, string>;
  args?: readonly string[];
}

const logIfThere = (at: PiHome): Promise<string> => readLog(at).catch(() => "");

/** Runs Pi once in print mode, to its end. */
async function runOnce(at: PiHome, script: ModelScript = [], options: RunOptions = {}): Promise<Ran> {
  const { entry = ENTRY, env, args } = options;
  const before = (await logIfThere(at)).length;
  const scripted = await model(script);
  const run = await runPrint({
    home: at,
    model: scripted,
    extensions: entry,
    prompt: "go",
    timeoutMs: PATIENCE_MS,
    ...(env ? { env } : {}),
    ...(args ? { args } : {}),
  });
  expect(run).toMatchObject({ code: 0, timedOut: false });
  return { run, requests: scripted.requests, log: (await logIfThere(at)).slice(before) };
}

/** Returns the JSON of the declarations, in the order of the request. */
const declared = (request: ModelRequest | undefined, of: RegExp = /__/): string[] =>
  (request?.tools ?? []).filter((tool) => of.test(tool.function.name)).map((tool) => JSON.stringify(tool));

const namesIn = (request: ModelRequest | undefined): string[] =>
  (request?.toolNames ?? []).filter((name) => name.includes("__"));

const answersIn = (requests: readonly ModelRequest[]): string[] => {
  const last = requests.at(-1);
  return last ? toolResultTexts(last) : [];
};

const snapshots = (at: PiHome): string => join(at.agentDir, "mcp-snapshots");

/** Returns the servers x and y, each with the tools a and b. */
const AB = { TOOLS: "a,b" };
const servers = (x: Servers = {}, y: Servers = {}): Servers => ({ x: live([], AB, x), y: live([], AB, y) });
const LEARN = [searchFor("select:x__a,y__a")];

/** The settings and servers of a home in which a session learns the tools. */
const DIRECT = {
  imports: ["cursor"],
  settings: { directTools: true },
  mcpServers: servers({}, { directTools: false }),
};

const turn = inTurn();
const SNAPSHOTS = ".pi/agent/mcp-snapshots";
const CACHE = ".pi/agent/mcp-cache.json";
const MCP_FILE = ".pi/agent/mcp.json";

/** A session after one that has learned the tools and loaded one. */
const afterLearning = keptState(turn, { mcp: DIRECT }, async (pi) => {
  await pi.prompt(...LEARN);
  expect(namesIn(pi.scripted.requests.at(-1)).sort()).toEqual(["x__a", "x__b", "y__a"]);
  return {};
});

interface Asked {
  requests: readonly ModelRequest[];
  answers: string[];
  /** The lines that this prompt added to the log. */
  log: string;
}

/** Sends one prompt to a session. */
async function ask({ at, prompt, scripted }: Opened, ...turns: ModelTurn[]): Promise<Asked> {
  const before = (await logIfThere(at)).length;
  await prompt(...turns);
  const requests = [...scripted.requests];
  return { requests, answers: answersIn(requests), log: (await logIfThere(at)).slice(before) };
}

/** The requests and the log of a session after learning, changed as asked. */
async function askLearned(change: Change): Promise<Asked> {
  const { pi } = await afterLearning(change);
  return ask(pi);
}

// test/unit/workers/connection/config/entry/direct-tools.test.ts tests which tools are direct.
describe("direct tools", () => {
  test("from the snapshot -> in the first request, the same each time, nothing is connected", async () => {
    const { pi } = await afterLearning();
    const { requests, log } = await ask(pi);
    expect(namesIn(requests[0]).sort()).toEqual(["x__a", "x__b"]);
    expect(log).not.toContain("connected over");
    await pi.again();
    const again = await ask(pi);
    expect(declared(again.requests[0], /./)).toEqual(declared(requests[0], /./));
  });

  test("MCP_DIRECT_TOOLS -> wins over the file, without and from the snapshot, the same each time", async () => {
    const withEnv = inTurn({ env: { MCP_DIRECT_TOOLS: "y/b" } });
    const pi = await withEnv({ mcp: { mcpServers: servers({ directTools: true }) } });
    const cold = await ask(pi, ...LEARN);
    expect(namesIn(cold.requests[0])).toEqual(["y__b"]);
    await pi.again();
    const { requests, log } = await ask(pi);
    expect(namesIn(requests[0])).toEqual(["y__b"]);
    expect(log).not.toContain("connected over");
    await pi.again();
    const again = await ask(pi);
    expect(declared(again.requests[0], /./)).toEqual(declared(requests[0], /./));
  });

  test("no snapshot, a warm cache -> in the first request, nothing is connected", async () => {
    const { requests, log } = await askLearned({ removed: [SNAPSHOTS] });
    expect(namesIn(requests[0])).toEqual(["x__a", "x__b"]);
    expect(log).not.toContain("connected over");
  });

  test("a server that is new since the snapshot -> waited for, its tools are in the first request beside the known tools", async () => {
    const added = live([], { TOOLS: "c" }, { directTools: true });
    const mcp = { ...DIRECT, mcpServers: { ...DIRECT.mcpServers, z: added } };
    const { requests } = await askLearned({ files: { [MCP_FILE]: mcp } });
    expect(namesIn(requests[0]).sort()).toEqual(["x__a", "x__b", "z__c"]);
  });

  test("a server of another extension that is new since the snapshot -> its tools are in the first request too", async () => {
    const entry = JSON.stringify(live([], { TOOLS: "e" }));
    const { requests } = await askLearned({
      files: {
        "project/other.mjs": `export default (pi) => pi.registerMcpServer("ext", { ...${entry}, exposure: "direct" });`,
        ".pi/agent/settings.json": { extensions: ["-builtin:mcp", "~/project/other.mjs"] },
      },
    });
    expect(namesIn(requests[0]).sort()).toEqual(["ext__e", "x__a", "x__b"]);
  });

  test("a server of an imported host that is new since the snapshot -> its tools are in the first request too", async () => {
    const imported = { mcpServers: { cur: live([], { TOOLS: "c" }) } };
    const { requests } = await askLearned({ files: { ".cursor/mcp.json": imported } });
    expect(namesIn(requests[0]).sort()).toEqual(["cur__c", "x__a", "x__b"]);
  });

  test("a server removed and another disabled since the snapshot -> their tools are not in the first request", async () => {
    const direct = { directTools: true };
    const pi = await turn({
      mcp: { mcpServers: { ...servers(direct, direct), z: live([], { TOOLS: "c" }, direct) } },
    });
    await pi.prompt(searchFor("select:x__a,y__a,z__c"));
    await pi.again({ files: { [MCP_FILE]: { mcpServers: servers(direct, { ...direct, enabled: false }) } } });
    const { requests, answers } = await ask(pi, call("z__c", {}));
    expect(namesIn(requests[0]).sort()).toEqual(["x__a", "x__b"]);
    expect(answers[0]).toMatch(/^Tool z__c not found: its server z was removed/);
  });

  // waits.test.ts tests the limit of the wait itself.
  test("a server that never lists its direct tools and a server that cannot be started -> the prompt runs without their tools", async () => {
    const pi = await turn({
      mcp: {
        mcpServers: {
          slow: { ...fixtureServer("never-lists.mjs"), directTools: true, startupTimeoutMs: 1_000 },
          bad: { command: "no-such-command-here", directTools: true },
          s: live([], {}, { directTools: true }),
        },
      },
    });
    const { requests, answers } = await ask(pi, call("s__work", {}));
    expect(namesIn(requests[0])).toEqual(["s__work"]);
    expect(answers[0]).toContain("pid");
    expect(JSON.stringify(notices(pi.rpc.events))).toContain("no-such-command-here");
  });
});

/**
 * Programs in the project that start a real server and a fixture server; `unplug` deletes them, so no server starts.
 */
const everythingEntry = pathToFileURL(SERVERS.everything.args[0] ?? "").href;
const liveEntry = pathToFileURL((live().args as string[])[0] ?? "").href;
const PROGRAMS = {
  "everything.mjs": `import ${JSON.stringify(everythingEntry)};\n`,
  "live.mjs": `import ${JSON.stringify(liveEntry)};\n`,
};
const MCP = {
  mcpServers: {
    everything: { command: process.execPath, args: ["everything.mjs"] },
    s: { command: process.execPath, args: ["live.mjs"] },
  },
};
const unplug = async (at: PiHome): Promise<void> => {
  for (const name of Object.keys(PROGRAMS)) await rm(join(at.cwd, name));
};

/** What a change removes, for the same effect between two sessions. */
const UNPLUGGED = Object.keys(PROGRAMS).map((name) => `project/${name}`);

const TOOLS = "everything__echo,everything__get-sum,s__work";
const FIND = [searchFor("echo message"), searchFor("select:everything__get-sum,s__work")];

const stateOf = async ({ rpc }: Opened): Promise<{ sessionFile: string }> =>
  (await rpc.request({ type: "get_state" }, PATIENCE_MS)).data as { sessionFile: string };

/** After a session that has learned the tools and one that has loaded tools. `last` is the last request of that one. */
const afterActivating = keptState(turn, { mcp: MCP, files: PROGRAMS }, async (pi) => {
  const known = (await ask(pi, ...FIND)).answers;
  await pi.again();
  await pi.prompt(searchFor(`select:${TOOLS}`));
  const last = pi.scripted.requests.at(-1);
  expect(namesIn(last)).toEqual(TOOLS.split(","));
  const snapshotNames = await readdir(snapshots(pi.at));
  return { known, last, snapshotNames, session: await readFile((await stateOf(pi)).sessionFile, "utf8") };
});

describe("a warm cache and all servers unreachable", () => {
  test.each<[string, string[]]>([
    ["with its snapshot", []],
    ["without a snapshot", [SNAPSHOTS]],
  ])(
    "%s -> ToolSearch finds and describes every tool; a call says why it cannot run",
    async (_name, damaged) => {
      const { pi, made } = await afterActivating({ removed: [...UNPLUGGED, ...damaged] });
      const { known } = made;
      expect(known[0]).toContain("everything__echo(message: string)");
      expect(known[1]).toContain("everything__get-sum(a: number, b: number)");

      const { answers } = await ask(
        pi,
        ...FIND,
        call("everything__echo", { message: "x" }),
        call("s__work", {}),
      );
      expect(answers.slice(0, 2)).toEqual(known);
      expect(answers[2]).toMatch(/^everything .*exited with code 1/);
      expect(answers[2]).toContain("everything.mjs");
      expect(answers[2]).toMatch(/Expected parameters: everything__echo\(message: string\)$/);
      expect(answers[3]).toMatch(/^s .*exited with code 1/);
      const told = notices(pi.rpc.events).filter(({ message }) => message.includes("MCP server everything"));
      expect(told).toHaveLength(1);
    },
  );
});

describe("a session that had activated tools, resumed", () => {
  const broken = (names: readonly string[]) =>
    Object.fromEntries(names.map((name) => [`${SNAPSHOTS}/${name}`, "PMTS broken"]));

  test.each<[string, Change, boolean]>([
    ["its servers down", { removed: UNPLUGGED }, true],
    ["the snapshot deleted", { removed: [SNAPSHOTS] }, false],
    ["its servers down, the snapshot deleted", { removed: [...UNPLUGGED, SNAPSHOTS] }, false],
  ])("%s -> the first request declares the tools byte for byte", async (_name, change, alsoSearch) => {
    const { pi, made } = await afterActivating(change, true);
    const { requests } = await ask(pi);
    expect(requests[0]?.messages.length).toBeGreaterThan(3);
    expect(declared(requests[0])).toEqual(declared(made.last));
    if (alsoSearch) expect(declared(requests[0], /./)).toEqual(declared(made.last, /./));
  });

  test("a broken snapshot -> the first request declares the tools byte for byte", async () => {
    const { pi, made } = await afterActivating(
      ({ snapshotNames }) => ({ files: broken(snapshotNames) }),
      true,
    );
    const { requests } = await ask(pi);
    expect(requests[0]?.messages.length).toBeGreaterThan(3);
    expect(declared(requests[0])).toEqual(declared(made.last));
  });

  test("its servers down, snapshot and cache deleted -> the first request declares the tools byte for byte; a call says why it fails", async () => {
    const { pi, made } = await afterActivating({ removed: [...UNPLUGGED, SNAPSHOTS, CACHE] }, true);
    const { requests, answers } = await ask(pi, call("everything__echo", { message: "x" }));
    expect(requests[0]?.messages.length).toBeGreaterThan(3);
    expect(declared(requests[0])).toEqual(declared(made.last));
    expect(namesIn(requests[1])).toContain("everything__echo");
    expect(answers.at(-1)).toMatch(/^everything .*exited with code 1/);
  });

  test("names that are cut or repaired, with each toolPrefix, snapshot and cache deleted -> declared, and called by the server's own names", async () => {
    const tools = ["my.dotted tool", "plain", `long_${"x".repeat(195)}`];
    const prefixes = { "a-mcp": "server", "b-mcp": "short", "c-mcp": "mcp", "d-mcp": "none" } as const;
    const wanted = Object.entries(prefixes).flatMap(([server, prefix]) =>
      tools.map((tool) => ({ server, tool, prefix })),
    );
    const names = assignToolNames(wanted);
    expect(
      names.filter((name) => /^(a_mcp__|b__|mcp__c_mcp__|my_dotted_tool$|plain$|long_)/.test(name)),
    ).toEqual(names);
    const mcpServers = Object.fromEntries(
      Object.entries(prefixes).map(([server, toolPrefix]) => [
        server,
        live([server], { TOOLS: tools.join(",") }, { toolPrefix }),
      ]),
    );
    const pi = await turn({ mcp: { mcpServers } });
    const { requests } = await ask(pi, searchFor(`select:${names.join(",")}`));
    expect(requests.at(-1)?.toolNames).toEqual(expect.arrayContaining(names));
    const { sessionFile } = await stateOf(pi);
    await pi.again({ removed: [SNAPSHOTS, CACHE] }, sessionFile);
    const resumed = await ask(pi, ...names.map((name) => call(name, {})));
    expect(resumed.requests[0]?.toolNames).toEqual(expect.arrayContaining(names));
    const answers = resumed.answers.slice(-names.length);
    expect(answers.map((answer) => (JSON.parse(answer) as { argv: string[] }).argv)).toEqual(
      wanted.map(({ server }) => [server]),
    );
  });
});

describe("over RPC", () => {
  const lastOf = ({ scripted }: Opened): ModelRequest | undefined => scripted.requests.at(-1);
  const newSession = ({ rpc }: Opened) => rpc.request({ type: "new_session" }, PATIENCE_MS);

  /** Activates tools. Resolves with the declarations of the last request. */
  async function withTools(pi: Opened): Promise<string[]> {
    await pi.prompt(searchFor("select:everything__echo,s__work"));
    await pi.prompt({ text: "second" });
    const before = declared(lastOf(pi));
    expect(before).toHaveLength(2);
    return before;
  }

  test("new_session, then switch_session back, with servers up, then down -> no tools, then the same tools byte for byte", async () => {
    const pi = await turn({ mcp: MCP, files: PROGRAMS });
    const before = await withTools(pi);
    const { sessionFile } = await stateOf(pi);
    for (const servers of ["up", "down"]) {
      if (servers === "down") await unplug(pi.at);
      await newSession(pi);
      await pi.prompt({ text: "fresh" });
      expect(declared(lastOf(pi))).toEqual([]);
      expect(lastOf(pi)?.toolNames).toContain("ToolSearch");

      const since = pi.scripted.requests.length;
      await pi.rpc.request({ type: "switch_session", sessionPath: sessionFile }, PATIENCE_MS);
      await pi.prompt({ text: "back" });
      expect(declared(pi.scripted.requests[since]), servers).toEqual(before);
      if (servers === "up") expect((await pi.ask("s__work")).argv).toEqual([]);
    }
    expect(pi.rpc.stderr).toBe("");
  });

  test("fork from a later message -> its tools byte for byte, from the first message -> no tools; clone, then without snapshot, cache and servers -> its tools byte for byte", async () => {
    const pi = await turn({ mcp: MCP, files: PROGRAMS });
    const before = await withTools(pi);
    const response = await pi.rpc.request({ type: "get_fork_messages" }, PATIENCE_MS);
    const { messages } = response.data as { messages: { entryId: string }[] };
    const { sessionFile } = await stateOf(pi);
    const back = () => pi.rpc.request({ type: "switch_session", sessionPath: sessionFile }, PATIENCE_MS);
    await pi.rpc.request({ type: "fork", entryId: messages[1]?.entryId }, PATIENCE_MS);
    await pi.prompt({ text: "forked" });
    expect(declared(lastOf(pi))).toEqual(before);

    await back();
    await pi.rpc.request({ type: "fork", entryId: messages[0]?.entryId }, PATIENCE_MS);
    await pi.prompt({ text: "forked at the root" });
    expect(declared(lastOf(pi))).toEqual([]);

    await back();
    await pi.rpc.request({ type: "clone" }, PATIENCE_MS);
    await pi.prompt({ text: "cloned" });
    expect(declared(lastOf(pi))).toEqual(before);
    const { sessionFile: cloned } = await stateOf(pi);
    expect(cloned).not.toBe(sessionFile);

    await pi.again({ removed: [...UNPLUGGED, SNAPSHOTS, CACHE] });
    await pi.prompt({ text: "new" });
    expect(declared(lastOf(pi))).toEqual([]);
    await pi.rpc.request({ type: "switch_session", sessionPath: cloned }, PATIENCE_MS);
    await pi.prompt({ text: "back" });
    expect(declared(lastOf(pi))).toEqual(before);
  });
});

describe("tools of a project's own servers", () => {
  const distrust = (at: PiHome): Promise<void> =>
    writeFile(join(at.agentDir, "trust.json"), JSON.stringify({ [at.cwd]: false }));

  // Pi asks once in its life whether it trusts a project, so another Pi runs without that trust.
  test("tools in the snapshot or activated in a session, the project no longer trusted -> not declared, not found, nothing runs", async () => {
    const proj = live([], { TOOLS: "work,more" }, { directTools: ["work"] });
    const first = await open({
      trusted: true,
      files: { ".pi/mcp.json": { mcpServers: { proj } } },
      mcp: { mcpServers: { own: live() } },
    });
    const { at } = first;
    await first.prompt(searchFor("select:proj__more,own__work"));
    expect(namesIn(first.scripted.requests.at(-1)).sort()).toEqual(["own__work", "proj__more", "proj__work"]);
    const { sessionFile } = await stateOf(first);
    const fresh = (pi: Opened) => pi.rpc.request({ type: "new_session" }, PATIENCE_MS);
    await fresh(first);
    first.scripted.forget();
    expect(namesIn((await ask(first)).requests[0])).toEqual(["proj__work"]);
    expect(await first.rpc.stop()).toMatchObject({ code: 0 });

    await distrust(at);
    const second = await open({ at });
    const searches = [searchFor("select:proj__work,own__work"), searchFor("work")];
    const { requests, answers, log } = await ask(second, ...searches);
    expect(namesIn(requests[0])).toEqual([]);
    expect(requests[0]?.body).not.toContain("proj__work");
    expect(namesIn(requests.at(-1))).toEqual(["own__work"]);
    expect(answers[0]).toContain("No such tool: proj__work");

    await fresh(second);
    second.scripted.forget();
    expect(namesIn((await ask(second)).requests[0])).toEqual([]);
    await second.rpc.request({ type: "switch_session", sessionPath: sessionFile }, PATIENCE_MS);
    second.scripted.forget();
    const resumed = await ask(second);
    expect(resumed.requests[0]?.messages.length).toBeGreaterThan(3);
    expect(namesIn(resumed.requests[0])).toEqual(["own__work"]);
    expect(await second.rpc.stop()).toMatchObject({ code: 0 });
    expect(log + resumed.log).not.toContain("proj connected");
    expect(await processesWithMarker(at.dir)).toEqual([]);
  });

  test("tools of .mcp.json whose consent is deleted -> not in the first request of the next session", async () => {
    const direct = live([], {}, { directTools: true });
    const pi = await turn({ files: { ".mcp.json": { mcpServers: { proj: direct } } } });
    pi.answer(await pi.dialog(), { value: "Allow" });
    await pi.statusLine("MCP 1/1 · 1 tool");
    await pi.prompt(searchFor("select:proj__work"));
    expect(namesIn(pi.scripted.requests.at(-1))).toEqual(["proj__work"]);
    await pi.again({ removed: [".pi/agent/mcp-trust.json"] });
    expect((await pi.dialog()).method).toBe("select");
    await pi.prompt({ text: "ok" });
    expect(namesIn(pi.scripted.requests[0])).toEqual([]);
    expect(dialogsOf(pi.rpc)).toHaveLength(1);
  });
});

test("more tools than Pi is told of at the start -> a tool is found and called, a resumed session has it from its first request on", async () => {
  const many = fixtureServer("listed.mjs", { COUNT: "2100" });
  const pi = await turn({ mcp: { mcpServers: { many } } });
  const learnt = await ask(pi, searchFor("select:thing_2050"), call("many__thing_2050", { a: 1 }));
  expect(learnt.answers.at(-1)).toBe('thing_2050 {"a":1}');
  const { sessionFile } = await stateOf(pi);

  const before = (await readLog(pi.at)).length;
  await pi.again();
  expect(await readdir(snapshots(pi.at))).toHaveLength(1);
  const known = await ask(pi, call("many__thing_7", {}), call("many__thing_7", { b: 2 }));
  expect((await readLog(pi.at)).slice(before)).toContain(
    "registered 2100 tools of 1 servers from the snapshot",
  );
  expect(namesIn(known.requests[0])).toEqual([]);
  expect(known.answers[0]).toContain("Tool many__thing_7 was not loaded. It is now");
  expect(known.answers[1]).toBe('thing_7 {"b":2}');

  await pi.again({}, sessionFile);
  const resumed = await ask(pi, call("many__thing_2050", { c: 3 }));
  expect(namesIn(resumed.requests[0])).toEqual(["many__thing_2050"]);
  expect(resumed.answers.at(-1)).toBe('thing_2050 {"c":3}');
});

test("starts of Pi itself: cold, with --mcp-config, anew, by --continue, by --session without servers, snapshot and cache -> the first request declares what it should", async () => {
  const mcp = { ...MCP, mcpServers: { ...MCP.mcpServers, x: live([], AB, { directTools: true }) } };
  const at = await home({
    mcp,
    files: {
      ...PROGRAMS,
      "my.json": { mcpServers: { mine: live([], { TOOLS: "m" }, { directTools: true }) } },
    },
  });
  const alone = { args: ["--no-session"] };
  const cold = await runOnce(at, [searchFor(`select:${TOOLS}`)], alone);
  expect(namesIn(cold.requests[0]).sort()).toEqual(["x__a", "x__b"]);
  expect(cold.run.stderr).toBe("");

  // A file of its own has a snapshot of its own; the usual snapshot stays as it is.
  const mine = await runOnce(at, [], { args: ["--mcp-config=my.json", "--no-session"] });
  expect(namesIn(mine.requests[0])).toEqual(["mine__m"]);
  expect(JSON.stringify(mine.requests[0]?.tools)).not.toContain("- x");

  const anew = await runOnce(at, [call("x__b", {}), searchFor(`select:${TOOLS}`)]);
  expect(namesIn(anew.requests[0]).sort()).toEqual(["x__a", "x__b"]);
  expect(JSON.parse(answersIn(anew.requests)[0] ?? "")).toMatchObject({ argv: [] });
  expect(anew.log.match(/\w+ connected over/g)).toEqual(["x connected over"]);
  const last = anew.requests.at(-1);
  expect(namesIn(last)).toEqual(["x__a", "x__b", ...TOOLS.split(",")]);

  const continued = await runOnce(at, [], { args: ["--continue"] });
  expect(continued.requests[0]?.messages.length).toBeGreaterThan(3);
  expect(declared(continued.requests[0], /./)).toEqual(declared(last, /./));
  expect(continued.log).not.toContain("connected over");

  const folder = join(at.agentDir, "sessions");
  const sessions = (await readdir(folder, { recursive: true })).filter((name) => name.endsWith(".jsonl"));
  expect(sessions).toHaveLength(1);
  await unplug(at);
  for (const path of [snapshots(at), join(at.agentDir, "mcp-cache.json")])
    await rm(path, { recursive: true });
  const resumed = await runOnce(at, [call("everything__echo", { message: "x" })], {
    args: ["--session", join(folder, sessions[0] ?? "")],
  });
  expect(namesIn(resumed.requests[0])).toEqual(namesIn(last));
  expect(declared(resumed.requests[0])).toEqual(declared(last));
  expect(answersIn(resumed.requests).at(-1)).toMatch(/^everything .*exited with code 1/);
});
