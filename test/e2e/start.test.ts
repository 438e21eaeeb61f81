/** Owns: what is in the first request to the model: direct tools, tools of a resumed branch, nothing of a project that lost its trust. */
import { mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, describe, expect, test } from "vitest";
import { type ModelRequest, type ModelScript, toolResultTexts } from "../support/model.ts";
import { unpackTarball } from "../support/package-under-node-modules.ts";
import { type PiHome, type PrintResult, runPrint } from "../support/pi-run.ts";
import { processesWithMarker } from "../support/processes.ts";
import { dialogsOf, live, type Opened, open, PATIENCE_MS } from "./rpc-support.ts";
import {
  BUILDS,
  call,
  ENTRY,
  entryOf,
  fixtureServer,
  home,
  model,
  readLog,
  SERVERS,
  searchFor,
} from "./support.ts";

afterAll(async () => (await unpackTarball()).dispose());

type Servers = Record<string, unknown>;

interface Ran {
  run: PrintResult;
  requests: readonly ModelRequest[];
  /** What this run added to the log. */
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

/** The JSON of the declarations, in their order. */
const declared = (request: ModelRequest | undefined, of: RegExp = /__/): string[] =>
  (request?.tools ?? []).filter((tool) => of.test(tool.function.name)).map((tool) => JSON.stringify(tool));

const namesIn = (request: ModelRequest | undefined): string[] =>
  (request?.toolNames ?? []).filter((name) => name.includes("__"));

const answersIn = (requests: readonly ModelRequest[]): string[] => {
  const last = requests.at(-1);
  return last ? toolResultTexts(last) : [];
};

const snapshots = (at: PiHome): string => join(at.agentDir, "mcp-snapshots");
const cache = (at: PiHome): string => join(at.agentDir, "mcp-cache.json");

describe("direct tools", () => {
  const AB = { TOOLS: "a,b" };
  const servers = (x: Servers = {}, y: Servers = {}): Servers => ({ x: live([], AB, x), y: live([], AB, y) });

  const CASES: [name: string, mcp: unknown, variable: string | undefined, names: string[]][] = [
    ["none", { mcpServers: servers({}) }, undefined, []],
    ["all of a server", { mcpServers: servers({ directTools: true }) }, undefined, ["x__a", "x__b"]],
    ["one of a server", { mcpServers: servers({ directTools: ["b"] }) }, undefined, ["x__b"]],
    [
      "the settings' but for one server",
      { settings: { directTools: true }, mcpServers: servers({}, { directTools: false }) },
      undefined,
      ["x__a", "x__b"],
    ],
    ["by toolExposure", { mcpServers: servers({ toolExposure: { "a*": "direct" } }) }, undefined, ["x__a"]],
    [
      "exposure but for one tool",
      { mcpServers: servers({ exposure: "direct", toolExposure: { b: "hidden" } }) },
      undefined,
      ["x__a"],
    ],
    ["MCP_DIRECT_TOOLS wins", { mcpServers: servers({ directTools: true }) }, "y/b", ["y__b"]],
    ["MCP_DIRECT_TOOLS *", { mcpServers: servers({}) }, "*", ["x__a", "x__b", "y__a", "y__b"]],
    ["MCP_DIRECT_TOOLS none", { mcpServers: servers({ directTools: true }) }, "__none__", []],
  ];
  const optionsOf = (variable: string | undefined): RunOptions =>
    variable === undefined ? {} : { env: { MCP_DIRECT_TOOLS: variable } };
  const LEARN = [searchFor("select:x__a,y__a")];

  test.each(CASES)("%s -> in the first request of a cold start", async (_name, mcp, variable, names) => {
    const at = await home({ mcp });
    const { requests, run } = await runOnce(at, [], optionsOf(variable));
    expect(namesIn(requests[0]).sort()).toEqual(names);
    expect(run.stderr).toBe("");
  });

  test.each(CASES)(
    "%s -> in the first request out of the snapshot, the same each time",
    async (_name, mcp, variable, names) => {
      const at = await home({ mcp });
      await runOnce(at, LEARN, optionsOf(variable));
      const { requests, log } = await runOnce(at, [], optionsOf(variable));
      expect(namesIn(requests[0]).sort()).toEqual(names);
      expect(log).not.toContain("connected over");
      const again = await runOnce(at, [], optionsOf(variable));
      expect(declared(again.requests[0], /./)).toEqual(declared(requests[0], /./));
    },
  );

  test("without a snapshot, the cache warm -> in the first request, nothing is connected", async () => {
    const at = await home({ mcp: { mcpServers: servers({ directTools: true }) } });
    await runOnce(at, LEARN);
    await rm(snapshots(at), { recursive: true });
    const { requests, log } = await runOnce(at);
    expect(namesIn(requests[0])).toEqual(["x__a", "x__b"]);
    expect(log).not.toContain("connected over");
  });

  test("a server that is new since the snapshot -> waited for, in the first request beside the known ones", async () => {
    const at = await home({ mcp: { mcpServers: servers({ directTools: true }) } });
    await runOnce(at, LEARN);
    const added = live([], { TOOLS: "c" }, { directTools: true });
    await at.writeMcp({ mcpServers: { ...servers({ directTools: true }), z: added } });
    const { requests } = await runOnce(at);
    expect(namesIn(requests[0]).sort()).toEqual(["x__a", "x__b", "z__c"]);
  });

  test("a server of an imported host, or of another extension, that is new since the snapshot -> the same", async () => {
    const entry = JSON.stringify(live([], { TOOLS: "e" }));
    const at = await home({
      mcp: { imports: ["cursor"], settings: { directTools: true }, mcpServers: servers() },
      files: {
        "other.mjs": `export default (pi) => pi.registerMcpServer("ext", { ...${entry}, exposure: "direct" });`,
      },
    });
    const known = ["x__a", "x__b", "y__a", "y__b"];
    await runOnce(at, LEARN);
    const registered = await runOnce(at, [], { entry: [ENTRY, "other.mjs"] });
    expect(namesIn(registered.requests[0]).sort()).toEqual(["ext__e", ...known]);

    await mkdir(join(at.dir, ".cursor"));
    const imported = { mcpServers: { cur: live([], { TOOLS: "c" }) } };
    await writeFile(join(at.dir, ".cursor", "mcp.json"), JSON.stringify(imported));
    expect(namesIn((await runOnce(at)).requests[0]).sort()).toEqual(["cur__c", ...known]);
  });

  test("a server removed, another disabled since the snapshot -> not in the first request", async () => {
    const direct = { directTools: true };
    const at = await home({
      mcp: { mcpServers: { ...servers(direct, direct), z: live([], { TOOLS: "c" }, direct) } },
    });
    await runOnce(at, [searchFor("select:x__a,y__a,z__c")]);
    await at.writeMcp({ mcpServers: servers(direct, { ...direct, enabled: false }) });
    const { requests } = await runOnce(at, [call("z__c", {})]);
    expect(namesIn(requests[0]).sort()).toEqual(["x__a", "x__b"]);
    expect(answersIn(requests)[0]).toMatch(/^Tool z__c not found: its server z was removed/);
  });

  test("--mcp-config -> a snapshot of its own; the usual one stays as it is", async () => {
    const at = await home({
      mcp: { mcpServers: servers({ directTools: true }) },
      files: { "my.json": { mcpServers: { mine: live([], { TOOLS: "m" }, { directTools: true }) } } },
    });
    await runOnce(at, LEARN);
    for (const args of [["--mcp-config", "my.json"], ["--mcp-config=my.json"]]) {
      const { requests } = await runOnce(at, [], { args });
      expect(namesIn(requests[0])).toEqual(["mine__m"]);
      expect(JSON.stringify(requests[0]?.tools)).not.toContain("- x");
    }
    const { requests, log } = await runOnce(at);
    expect(namesIn(requests[0]).sort()).toEqual(["x__a", "x__b"]);
    expect(log).not.toContain("connected over");
  });

  test.each(BUILDS)("a direct tool of the snapshot is called without a search (%s)", async (build) => {
    const at = await home({ mcp: { mcpServers: { s: live(["x"], {}, { directTools: true }) } } });
    const entry = await entryOf(build);
    await runOnce(at, [searchFor("select:s__work")], { entry });
    for (let i = 0; i < 2; i++) {
      const { requests } = await runOnce(at, [call("s__work", {})], { entry });
      expect(namesIn(requests[0])).toEqual(["s__work"]);
      expect(JSON.parse(answersIn(requests)[0] ?? "")).toMatchObject({ argv: ["x"] });
    }
  });

  test("a server that never lists its direct tools -> waited for at most 10 s, the prompt runs without them", async () => {
    const at = await home({
      mcp: {
        mcpServers: {
          slow: { ...fixtureServer("never-lists.mjs"), directTools: true },
          s: live([], {}, { directTools: true }),
        },
      },
    });
    const { requests } = await runOnce(at, [call("s__work", {})]);
    expect(namesIn(requests[0])).toEqual(["s__work"]);
    expect(answersIn(requests)[0]).toContain("pid");
  });

  test("a server that cannot be started -> not waited for beyond its failure", async () => {
    const at = await home({
      mcp: {
        mcpServers: {
          bad: { command: "no-such-command-here", directTools: true },
          s: live([], {}, { directTools: true }),
        },
      },
    });
    const { requests, run } = await runOnce(at);
    expect(namesIn(requests[0])).toEqual(["s__work"]);
    expect(run.stderr).toContain("no-such-command-here");
  });
});

/** Real and fixture servers whose programs lie in the project: without them the servers cannot be started. */
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

describe("a warm cache and all servers unreachable", () => {
  test.each<[string, (at: PiHome) => Promise<void>]>([
    ["with its snapshot", async () => undefined],
    ["without a snapshot", (at) => rm(snapshots(at), { recursive: true })],
  ])(
    "%s: ToolSearch finds and describes every tool; a call says why it cannot run",
    async (_name, damage) => {
      const at = await home({ mcp: MCP, files: PROGRAMS });
      const first = await runOnce(at, [
        searchFor("echo message"),
        searchFor("select:everything__get-sum,s__work"),
      ]);
      const known = answersIn(first.requests);
      expect(known[0]).toContain("everything__echo(message: string)");
      expect(known[1]).toContain("everything__get-sum(a: number, b: number)");
      await unplug(at);
      await damage(at);

      const { requests, run } = await runOnce(at, [
        searchFor("echo message"),
        searchFor("select:everything__get-sum,s__work"),
        call("everything__echo", { message: "x" }),
        call("s__work", {}),
      ]);
      const answers = answersIn(requests);
      expect(answers.slice(0, 2)).toEqual(known);
      expect(answers[2]).toMatch(/^everything .*exited with code 1/);
      expect(answers[2]).toContain("everything.mjs");
      expect(answers[2]).toMatch(/Expected parameters: everything__echo\(message: string\)$/);
      expect(answers[3]).toMatch(/^s .*exited with code 1/);
      expect(run.stderr.split("\n").filter((line) => line.includes("MCP server everything"))).toHaveLength(1);
    },
  );
});

describe("a session that had activated tools, resumed", () => {
  const TOOLS = "everything__echo,everything__get-sum,s__work";

  /** Learns the servers, then has a session with activated tools. Answers its last request. */
  async function activated(mcp: unknown = MCP): Promise<{ at: PiHome; last: ModelRequest | undefined }> {
    const at = await home({ mcp, files: PROGRAMS });
    await runOnce(at, [searchFor("echo")], { args: ["--no-session"] });
    const { requests } = await runOnce(at, [searchFor(`select:${TOOLS}`)]);
    expect(namesIn(requests[0])).toEqual([]);
    expect(namesIn(requests.at(-1))).toEqual(TOOLS.split(","));
    return { at, last: requests.at(-1) };
  }

  test.each<[string, (at: PiHome) => Promise<unknown>, boolean]>([
    ["as it was", async () => undefined, true],
    ["its servers down", unplug, true],
    ["the snapshot deleted", (at) => rm(snapshots(at), { recursive: true }), false],
    [
      "its servers down, the snapshot deleted",
      async (at) => {
        await unplug(at);
        await rm(snapshots(at), { recursive: true });
      },
      false,
    ],
    [
      "its servers down, snapshot and cache deleted",
      async (at) => {
        await unplug(at);
        await rm(snapshots(at), { recursive: true });
        await rm(cache(at));
      },
      false,
    ],
    ["a broken snapshot", (at) => breakSnapshots(at), false],
  ])("%s -> byte for byte in the first request", async (_name, change, alsoSearch) => {
    const { at, last } = await activated();
    await change(at);
    const { requests } = await runOnce(at, [], { args: ["--continue"] });
    expect(requests[0]?.messages.length).toBeGreaterThan(3);
    expect(declared(requests[0])).toEqual(declared(last));
    if (alsoSearch) expect(declared(requests[0], /./)).toEqual(declared(last, /./));
  });

  test("by --session, twice -> the same, and the tools can be called", async () => {
    const { at, last } = await activated();
    const folder = join(at.agentDir, "sessions");
    const files = (await readdir(folder, { recursive: true })).filter((name) => name.endsWith(".jsonl"));
    expect(files).toHaveLength(1);
    for (let i = 0; i < 2; i++) {
      const { requests } = await runOnce(at, [call("everything__echo", { message: `resumed ${i}` })], {
        args: ["--session", join(folder, files[0] ?? "")],
      });
      expect(declared(requests[0])).toEqual(declared(last));
      expect(answersIn(requests).at(-1)).toBe(`Echo: resumed ${i}`);
    }
  });

  test("a call while its server is down and nothing is cached -> says why", async () => {
    const { at } = await activated();
    await unplug(at);
    await rm(snapshots(at), { recursive: true });
    await rm(cache(at));
    const { requests } = await runOnce(at, [call("everything__echo", { message: "x" })], {
      args: ["--continue"],
    });
    expect(namesIn(requests[0])).toContain("everything__echo");
    expect(namesIn(requests[1])).toContain("everything__echo");
    expect(answersIn(requests).at(-1)).toMatch(/^everything .*exited with code 1/);
  });

  const LONG = `long_${"x".repeat(195)}`;
  test.each(["server", "short", "none", "mcp"])(
    "toolPrefix %s, names that Pi cuts or mends, snapshot and cache deleted -> there, and called by the server's names",
    async (toolPrefix) => {
      const tools = live([], { TOOLS: `my.dotted tool,plain,${LONG}` });
      const at = await home({ mcp: { settings: { toolPrefix }, mcpServers: { "s-mcp": tools } } });
      const { requests } = await runOnce(at, [searchFor(`select:my.dotted_tool,plain,${LONG}`)]);
      const names = (requests.at(-1)?.toolNames ?? []).filter((name) => /dotted|plain|long/.test(name));
      expect(names).toHaveLength(3);
      await rm(snapshots(at), { recursive: true });
      await rm(cache(at));
      const resumed = await runOnce(
        at,
        names.map((name) => call(name, {})),
        { args: ["--continue"] },
      );
      expect(resumed.requests[0]?.toolNames).toEqual(expect.arrayContaining(names));
      for (const answer of answersIn(resumed.requests).slice(-3)) expect(answer).toContain('"pid"');
    },
  );

  async function breakSnapshots(at: PiHome): Promise<void> {
    for (const name of await readdir(snapshots(at)))
      await writeFile(join(snapshots(at), name), "PMTS broken");
  }
});

describe("over RPC", () => {
  interface Session {
    sessionFile: string;
  }
  const stateOf = async ({ rpc }: Opened): Promise<Session> =>
    (await rpc.request({ type: "get_state" }, PATIENCE_MS)).data as Session;
  const lastOf = ({ scripted }: Opened): ModelRequest | undefined => scripted.requests.at(-1);

  /** A session with activated tools, and what its last request declared. */
  async function withTools(): Promise<{ pi: Opened; before: string[] }> {
    const pi = await open({ mcp: MCP, files: PROGRAMS });
    await pi.prompt(searchFor("select:everything__echo,s__work"));
    await pi.prompt({ text: "second" });
    const before = declared(lastOf(pi));
    expect(before).toHaveLength(2);
    return { pi, before };
  }

  test.each([
    ["up", async () => undefined],
    ["down", unplug],
  ])(
    "new_session, then switch_session back, servers %s -> none, then byte for byte",
    async (_name, change) => {
      const { pi, before } = await withTools();
      const { sessionFile } = await stateOf(pi);
      await change(pi.at);
      await pi.rpc.request({ type: "new_session" }, PATIENCE_MS);
      await pi.prompt({ text: "fresh" });
      expect(declared(lastOf(pi))).toEqual([]);
      expect(lastOf(pi)?.toolNames).toContain("ToolSearch");

      const since = pi.scripted.requests.length;
      await pi.rpc.request({ type: "switch_session", sessionPath: sessionFile }, PATIENCE_MS);
      await pi.prompt({ text: "back" });
      expect(declared(pi.scripted.requests[since])).toEqual(before);
      if (change !== unplug) expect((await pi.ask("s__work")).argv).toEqual([]);
      expect(pi.rpc.stderr).toBe("");
    },
  );

  test("fork from a later message -> its tools byte for byte; from the first -> none", async () => {
    const { pi, before } = await withTools();
    const response = await pi.rpc.request({ type: "get_fork_messages" }, PATIENCE_MS);
    const { messages } = response.data as { messages: { entryId: string }[] };
    const { sessionFile } = await stateOf(pi);
    await pi.rpc.request({ type: "fork", entryId: messages[1]?.entryId }, PATIENCE_MS);
    await pi.prompt({ text: "forked" });
    expect(declared(lastOf(pi))).toEqual(before);

    await pi.rpc.request({ type: "switch_session", sessionPath: sessionFile }, PATIENCE_MS);
    await pi.rpc.request({ type: "fork", entryId: messages[0]?.entryId }, PATIENCE_MS);
    await pi.prompt({ text: "forked at the root" });
    expect(declared(lastOf(pi))).toEqual([]);
  });

  test("clone, then reload by another switch, snapshot and cache deleted -> byte for byte", async () => {
    const { pi, before } = await withTools();
    await pi.rpc.request({ type: "clone" }, PATIENCE_MS);
    await pi.prompt({ text: "cloned" });
    expect(declared(lastOf(pi))).toEqual(before);
    const { sessionFile } = await stateOf(pi);
    await pi.rpc.stop();

    await unplug(pi.at);
    await rm(snapshots(pi.at), { recursive: true });
    await rm(cache(pi.at));
    const again = await open({ at: pi.at });
    await again.prompt({ text: "new" });
    expect(declared(lastOf(again))).toEqual([]);
    await again.rpc.request({ type: "switch_session", sessionPath: sessionFile }, PATIENCE_MS);
    await again.prompt({ text: "back" });
    expect(declared(lastOf(again))).toEqual(before);
  });
});

describe("tools of a project's own servers", () => {
  const files = { ".pi/mcp.json": { mcpServers: { proj: live([], {}, { directTools: ["work"] }) } } };
  const distrust = (at: PiHome): Promise<void> =>
    writeFile(join(at.agentDir, "trust.json"), JSON.stringify({ [at.cwd]: false }));

  test("in the snapshot, the project no longer trusted -> not declared, not found, nothing runs", async () => {
    const at = await home({ trusted: true, files, mcp: { mcpServers: { own: live() } } });
    await runOnce(at, [searchFor("select:proj__work,own__work")]);
    const trusted = await runOnce(at);
    expect(namesIn(trusted.requests[0])).toEqual(["proj__work"]);
    await distrust(at);
    const { requests, log } = await runOnce(at, [
      searchFor("select:proj__work,own__work"),
      searchFor("work"),
    ]);
    expect(namesIn(requests[0])).toEqual([]);
    expect(requests[0]?.body).not.toContain("proj__work");
    expect(namesIn(requests.at(-1))).toEqual(["own__work"]);
    expect(answersIn(requests)[0]).toContain("No such tool: proj__work");
    expect(log).not.toContain("proj connected");
    const again = await runOnce(at);
    expect(namesIn(again.requests[0])).toEqual([]);
  });

  test("activated in a session that is resumed without trust -> not declared again", async () => {
    const at = await home({
      trusted: true,
      files: { ".pi/mcp.json": { mcpServers: { proj: live() } } },
      mcp: { mcpServers: { own: live() } },
    });
    const trusted = await runOnce(at, [searchFor("select:proj__work,own__work")]);
    expect(namesIn(trusted.requests.at(-1))).toEqual(["proj__work", "own__work"]);
    await distrust(at);
    const { requests } = await runOnce(at, [], { args: ["--continue"] });
    expect(namesIn(requests[0])).toEqual(["own__work"]);
    expect(await processesWithMarker(at.dir)).toEqual([]);
  });

  test("of .mcp.json without consent -> never in the snapshot of a start", async () => {
    const direct = live([], {}, { directTools: true });
    const at = await home({ files: { ".mcp.json": { mcpServers: { proj: direct } } } });
    const pi = await open({ at });
    pi.answer(await pi.dialog(), { value: "Allow" });
    await pi.statusLine("MCP 1/1 · 1 tool");
    await pi.prompt(searchFor("select:proj__work"));
    expect(namesIn(pi.scripted.requests.at(-1))).toEqual(["proj__work"]);
    await pi.rpc.stop();
    await rm(join(at.agentDir, "mcp-trust.json"));

    const again = await open({ at });
    expect((await again.dialog()).method).toBe("select");
    await again.prompt({ text: "ok" });
    expect(namesIn(again.scripted.requests[0])).toEqual([]);
    expect(dialogsOf(again.rpc)).toHaveLength(1);
  });
});
