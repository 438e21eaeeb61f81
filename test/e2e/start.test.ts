/**
 * Owns: tests of the first request to the model: it declares direct tools and the tools of a resumed session, and no
 * tools of a project that is no longer trusted.
 */
import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, test } from "vitest";
import { nameTools } from "../../src/shared/naming.ts";
import { ALL_ROWS, family } from "../support/long.ts";
import { type ModelRequest, type ModelScript, type ModelTurn, toolResultTexts } from "../support/model.ts";
import { type PiHome, type PrintResult, runPrint } from "../support/pi-run.ts";
import { processesWithMarker } from "../support/processes.ts";
import { notices, type RpcEvent } from "../support/rpc-events.ts";
import { type Change, inTurn } from "./in-turn.ts";
import { keptState } from "./kept-state.ts";
import { live, type Opened, open, PATIENCE_MS } from "./rpc-support.ts";
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

const GONE = live([], { TOOLS: "c" });
const OFF = live([], { TOOLS: "d" });

/** The settings and servers of a home in which a session learns the tools. */
const DIRECT = {
  imports: ["cursor"],
  settings: { directTools: true },
  mcpServers: { ...servers({}, { directTools: false }), gone: GONE, off: OFF },
};
/** The direct tools of these servers. */
const DECLARED = ["gone__c", "off__d", "x__a", "x__b"];

const turn = inTurn();
const SNAPSHOTS = ".pi/agent/mcp-snapshots";
const CACHE = ".pi/agent/mcp-cache.json";
const MCP_FILE = ".pi/agent/mcp.json";

/** A session after one that has learned the tools and loaded one. */
const afterLearning = keptState(turn, { mcp: DIRECT }, async (pi) => {
  await pi.prompt(...LEARN);
  expect(namesIn(pi.scripted.requests.at(-1)).sort()).toEqual([...DECLARED, "y__a"]);
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
async function askLearned(change: Change, ...turns: ModelTurn[]): Promise<Asked> {
  const { pi } = await afterLearning(change);
  return ask(pi, ...turns);
}

// test/unit/workers/connection/config/entry/direct-tools.test.ts tests which tools are direct.
describe("direct tools", () => {
  test("from the snapshot -> in the first request, the same each time, nothing is connected", async () => {
    const { pi } = await afterLearning();
    const { requests, log } = await ask(pi);
    expect(namesIn(requests[0]).sort()).toEqual(DECLARED);
    expect(log).not.toContain("connected over");
    await pi.again();
    const again = await ask(pi);
    expect(declared(again.requests[0], /./)).toEqual(declared(requests[0], /./));
  });

  test("no snapshot, a warm cache -> in the first request, nothing is connected", async () => {
    const { requests, log } = await askLearned({ removed: [SNAPSHOTS] });
    expect(namesIn(requests[0]).sort()).toEqual(DECLARED);
    expect(log).not.toContain("connected over");
  });

  test("servers that are new since the snapshot, in the file, of an imported host and of another extension, one removed and one disabled -> the new ones are waited for, and their tools are in the first request beside the known tools; those of the others are not", async () => {
    const { gone, ...left } = DIRECT.mcpServers;
    const added = live([], { TOOLS: "e" }, { directTools: true });
    const imported = { mcpServers: { cur: live([], { TOOLS: "f" }) } };
    const entry = JSON.stringify(live([], { TOOLS: "g" }));
    const files = {
      [MCP_FILE]: { ...DIRECT, mcpServers: { ...left, z: added, off: { ...OFF, enabled: false } } },
      ".cursor/mcp.json": imported,
      "project/other.mjs": `export default (pi) => pi.registerMcpServer("ext", { ...${entry}, exposure: "direct" });`,
      ".pi/agent/settings.json": { extensions: ["-builtin:mcp", "~/project/other.mjs"] },
    };
    const { requests, answers } = await askLearned({ files }, call("gone__c", {}));
    expect(namesIn(requests[0]).sort()).toEqual(["cur__f", "ext__g", "x__a", "x__b", "z__e"]);
    expect(answers[0]).toMatch(/^Tool gone__c not found: its server gone was removed/);
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
 * Programs in the project that start a real server and a fixture server. Once they are deleted, no server starts.
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
/** The programs, as paths below the home. */
const UNPLUGGED = Object.keys(PROGRAMS).map((name) => `project/${name}`);

const TOOLS = "everything__echo,everything__get-sum,s__work";
/** The last search selects a tool that no session has activated. */
const UNUSED = searchFor("select:everything__get-tiny-image");
const FIND = [searchFor("echo message"), searchFor("select:everything__get-sum,s__work"), UNUSED];

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

test("a snapshot and all servers unreachable -> ToolSearch finds and describes every tool; a call says why it cannot run", async () => {
  const { pi, made } = await afterActivating({ removed: UNPLUGGED });
  const { known } = made;
  expect(known[0]).toContain("everything__echo(message: string)");
  expect(known[1]).toContain("everything__get-sum(a: number, b: number)");
  expect(known[2]).toContain("everything__get-tiny-image(");

  const calls = [call("everything__echo", { message: "x" }), call("s__work", {})];
  const { answers } = await ask(pi, ...FIND, ...calls);
  expect(answers.slice(0, 3)).toEqual(known);
  expect(answers[3]).toMatch(/^everything .*exited with code 1/);
  expect(answers[3]).toContain("everything.mjs");
  expect(answers[4]).toMatch(/^s .*exited with code 1/);
  const told = notices(pi.rpc.events).filter(({ message }) => message.includes("MCP server everything"));
  expect(told).toHaveLength(1);
});

describe("a session that had activated tools, resumed", () => {
  test("its servers down -> the first request declares the tools byte for byte", async () => {
    const { pi, made } = await afterActivating({ removed: UNPLUGGED }, true);
    const { requests } = await ask(pi);
    expect(requests[0]?.messages.length).toBeGreaterThan(3);
    expect(declared(requests[0], /./)).toEqual(declared(made.last, /./));
  });

  // A snapshot that cannot be read counts as none (test/unit/catalog/file.test.ts).
  test.each(
    family<[string, (snapshotNames: string[]) => Change]>([
      ["its servers down, the snapshot deleted", () => ({ removed: [...UNPLUGGED, SNAPSHOTS] })],
      ["the snapshot deleted", () => ({ removed: [SNAPSHOTS] })],
      [
        "a broken snapshot",
        (names) => ({
          files: Object.fromEntries(names.map((name) => [`${SNAPSHOTS}/${name}`, "PMTS broken"])),
        }),
      ],
    ]),
  )(
    "%s -> the first request declares the tools byte for byte, and ToolSearch describes another tool",
    async (_name, change) => {
      const { pi, made } = await afterActivating(({ snapshotNames }) => change(snapshotNames), true);
      const { requests, answers } = await ask(pi, UNUSED);
      expect(requests[0]?.messages.length).toBeGreaterThan(3);
      expect(declared(requests[0])).toEqual(declared(made.last));
      expect(answers.at(-1)).toBe(made.known[2]);
    },
  );

  test("names that are cut or repaired, with each toolPrefix, snapshot and cache deleted -> declared, and called by the server's own names", {
    tags: "thorough",
  }, async () => {
    const tools = ["my.dotted tool", "plain", `long_${"x".repeat(195)}`];
    const prefixes = { "a-mcp": "server", "b-mcp": "short", "c-mcp": "mcp", "d-mcp": "none" } as const;
    const wanted = Object.entries(prefixes).flatMap(([server, prefix]) =>
      tools.map((tool) => ({ server, tool, prefix })),
    );
    const names = nameTools(wanted).names;
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
    const resumed = await ask(pi, { toolCalls: names.map((name) => ({ name, args: {} })) });
    expect(resumed.requests[0]?.toolNames).toEqual(expect.arrayContaining(names));
    const answers = resumed.answers.slice(-names.length);
    expect(answers.map((answer) => (JSON.parse(answer) as { argv: string[] }).argv)).toEqual(
      wanted.map(({ server }) => [server]),
    );
  });
});

test("a session that had a tool which its server keeps for its own pages since, resumed -> the call says why and does not run, and the tool is gone", {
  tags: "thorough",
}, async () => {
  const s = fixtureServer("signs.mjs", { STATE: "~/turned" });
  const pi = await turn({ mcp: { mcpServers: { s } } });
  const { requests } = await ask(pi, searchFor("select:s__turned"), call("s__turned", {}));
  expect(requests.at(-1)?.toolNames).toContain("s__turned");
  const { sessionFile } = await stateOf(pi);
  await pi.again({ files: { turned: "yes" } }, sessionFile);
  const resumed = await ask(pi, call("s__turned", {}));
  expect(resumed.answers.at(-1)).toContain("s offers turned only to its own pages (MCP Apps)");
  for (let names: readonly string[] = ["s__turned"]; names.includes("s__turned"); )
    names = (await ask(pi)).requests.at(-1)?.toolNames ?? [];
});

test("new_session, switch_session back, clone, fork from a later and from the first message, then without snapshot, cache and servers -> the tools of each branch byte for byte; a call says why it fails", {
  tags: "thorough",
}, async () => {
  const { pi, made } = await afterActivating({}, true);
  const { rpc, scripted } = pi;
  const before = declared(made.last);
  /** The declarations of the first request after a change of session. */
  const after = async (record: RpcEvent): Promise<string[]> => {
    await rpc.request(record, PATIENCE_MS);
    const since = scripted.requests.length;
    await pi.prompt({ text: "ok" });
    expect(scripted.requests[since]?.toolNames).toContain("ToolSearch");
    return declared(scripted.requests[since]);
  };
  const messages = async (): Promise<{ entryId: string }[]> => {
    const { data } = await rpc.request({ type: "get_fork_messages" }, PATIENCE_MS);
    return (data as { messages: { entryId: string }[] }).messages;
  };
  await pi.prompt({ text: "second" });
  expect(declared(scripted.requests.at(-1))).toEqual(before);
  const { sessionFile } = await stateOf(pi);

  expect(await after({ type: "new_session" })).toEqual([]);
  expect(await after({ type: "switch_session", sessionPath: sessionFile })).toEqual(before);
  expect((await pi.ask("s__work")).argv).toEqual([]);

  expect(await after({ type: "clone" })).toEqual(before);
  const { sessionFile: cloned } = await stateOf(pi);
  expect(cloned).not.toBe(sessionFile);

  const [first, second] = await messages();
  expect(await after({ type: "fork", entryId: second?.entryId })).toEqual(before);
  const [root] = await messages();
  expect(root).toEqual(first);
  expect(await after({ type: "fork", entryId: root?.entryId })).toEqual([]);

  expect(rpc.stderr).toBe("");
  await pi.again({ removed: [...UNPLUGGED, SNAPSHOTS, CACHE] });
  await pi.prompt({ text: "new" });
  expect(declared(scripted.requests.at(-1))).toEqual([]);
  expect(await after({ type: "switch_session", sessionPath: cloned })).toEqual(before);
  const { requests, answers } = await ask(pi, call("everything__echo", { message: "x" }));
  expect(namesIn(requests.at(-1))).toContain("everything__echo");
  expect(answers.at(-1)).toMatch(/^everything .*exited with code 1/);
});

/** Pi asks once in its life whether it trusts a project, so the sessions of trusted ones have another Pi. */
const inTrusted = inTurn();

test.each<[string[], string[], string[]]>([
  [[], [], ["proj__work"]],
  [["more"], ["own"], ["proj__own", "proj__work"]],
])(
  "switch_session from a folder with the direct tools %j of a server to one with %j of the same -> the first request has %j, byte for byte as that session had them, and a call runs",
  { tags: "thorough" },
  async (here, there, names) => {
    const proj = (directTools: string[]) =>
      JSON.stringify({ mcpServers: { proj: live([], { TOOLS: "work,more,own" }, { directTools }) } });
    const pi = await inTrusted(({ cwd }) => ({
      files: { ".pi/mcp.json": proj(here), "../other/.pi/mcp.json": proj(there) },
      fill: (folder) => {
        const trusted = { [cwd]: true, [join(cwd, "../other")]: true };
        return writeFile(join(folder, ".pi/agent/trust.json"), JSON.stringify(trusted));
      },
    }));
    // Each folder has a session that loads a tool and leaves a snapshot; that of the other one is in another Pi.
    await pi.prompt(searchFor("select:proj__work"));
    const other = { ...pi.at, cwd: join(pi.at.dir, "other") };
    const learned = await runOnce(other, [searchFor("select:proj__work")]);
    const folder = join(other.agentDir, "sessions");
    const files = (await readdir(folder, { recursive: true })).filter((path) =>
      /other-.*\.jsonl$/.test(path),
    );
    const sessionPath = join(folder, files.toSorted().at(-1) ?? "");

    await pi.again();
    await pi.prompt({ text: "ok" });
    expect(namesIn(pi.scripted.requests[0])).toEqual(here.map((tool) => `proj__${tool}`));
    const { sessionFile } = await stateOf(pi);
    await pi.rpc.request({ type: "switch_session", sessionPath }, PATIENCE_MS);
    const since = pi.scripted.requests.length;
    expect((await pi.ask("proj__work")).argv).toEqual([]);
    expect(namesIn(pi.scripted.requests[since])).toEqual(names);
    expect(declared(pi.scripted.requests[since])).toEqual(declared(learned.requests.at(-1)));
    // Another session begins in the folder of the one before.
    await pi.rpc.request({ type: "switch_session", sessionPath: sessionFile }, PATIENCE_MS);
  },
);

/** Each start of Pi costs half a second of processor time, so the tests of a start are steps of one test. */
test("starts of Pi itself: cold, anew, the project no longer trusted, and resumed without servers, snapshot and cache; MCP_DIRECT_TOOLS from the second start on -> the first request declares what it should, and nothing of a project without trust is declared, found or run", async () => {
  const proj = live([], { TOOLS: "work,more" }, { directTools: ["work"] });
  const at = await home({
    mcp: { ...MCP, mcpServers: { ...MCP.mcpServers, x: live([], AB, { directTools: true }) } },
    trusted: true,
    files: { ...PROGRAMS, ".pi/mcp.json": { mcpServers: { proj } } },
  });
  const names = `${TOOLS},proj__more`;
  const cold = await runOnce(at, [searchFor(`select:${names},x__a`)], { args: ["--no-session"] });
  expect(namesIn(cold.requests[0]).sort()).toEqual(["proj__work", "x__a", "x__b"]);
  expect(cold.run.stderr).toBe("");

  // The variable wins over the files, from a snapshot. config-flag.test.ts tests it without one.
  const env = { MCP_DIRECT_TOOLS: "x/b,proj/work" };
  const anew = await runOnce(at, [call("x__b", {}), searchFor(`select:${names}`)], { env });
  expect(namesIn(anew.requests[0]).sort()).toEqual(["proj__work", "x__b"]);
  expect(JSON.parse(answersIn(anew.requests)[0] ?? "")).toMatchObject({ argv: [] });
  expect(anew.log.match(/\w+ connected over/g)).toEqual(["x connected over"]);
  const last = anew.requests.at(-1);
  expect(namesIn(last).sort()).toEqual(["proj__work", "x__b", ...names.split(",")].sort());

  if (ALL_ROWS) {
    // The other member of the family of resumed starts.
    const continued = await runOnce(at, [], { args: ["--continue"], env });
    expect(continued.requests[0]?.messages.length).toBeGreaterThan(3);
    expect(declared(continued.requests[0], /./)).toEqual(declared(last, /./));
    expect(continued.log).not.toContain("connected over");
  }

  const folder = join(at.agentDir, "sessions");
  const sessions = (await readdir(folder, { recursive: true })).filter((name) => name.endsWith(".jsonl"));
  expect(sessions).toHaveLength(1);
  const sessionPath = join(folder, sessions[0] ?? "");

  // Pi asks once in its life whether it trusts a project, so another Pi runs without that trust.
  await writeFile(join(at.agentDir, "trust.json"), JSON.stringify({ [at.cwd]: false }));
  const theirs = (name: string): boolean => name.startsWith("proj__");
  const second = await open({ at, env });
  const searches = [searchFor("select:proj__work,s__work"), searchFor("work")];
  const { requests, answers, log } = await ask(second, ...searches);
  expect(namesIn(requests[0])).toEqual(["x__b"]);
  expect(requests[0]?.body).not.toContain("proj__work");
  expect(namesIn(requests.at(-1))).toContain("s__work");
  expect(namesIn(requests.at(-1)).filter(theirs)).toEqual([]);
  expect(answers[0]).toContain("No such tool: proj__work");

  await second.rpc.request({ type: "switch_session", sessionPath }, PATIENCE_MS);
  second.scripted.forget();
  const switched = await ask(second);
  expect(switched.requests[0]?.messages.length).toBeGreaterThan(3);
  const kept = namesIn(last).filter((name) => !theirs(name));
  expect(namesIn(switched.requests[0])).toEqual(kept);
  expect(await second.rpc.stop()).toMatchObject({ code: 0 });
  expect(log + switched.log).not.toContain("proj connected");
  expect(await processesWithMarker(at.dir)).toEqual([]);

  for (const path of UNPLUGGED) await rm(join(at.dir, path));
  for (const path of [SNAPSHOTS, CACHE]) await rm(join(at.dir, path), { recursive: true });
  const args = ["--session", sessionPath];
  const resumed = await runOnce(at, [call("everything__echo", { message: "x" })], { args, env });
  expect(namesIn(resumed.requests[0])).toEqual(kept);
  expect(declared(resumed.requests[0])).toEqual(declared(last, /^(?!proj__).*__/));
  expect(answersIn(resumed.requests).at(-1)).toMatch(/^everything .*exited with code 1/);
});
