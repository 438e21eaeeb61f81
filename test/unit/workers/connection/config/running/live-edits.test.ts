/**
 * Owns: with `hotReload` "on", an edit is applied when its file has settled: the last of many, none of a broken or
 * half-written file, and nothing that stays as it is; on real files, without Pi.
 */

import fs, { type Stats } from "node:fs";
import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { dirname, join } from "node:path";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { ThreadsError } from "../../../../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../../../../src/shared/protocol/limits.ts";
import { runConfiguration } from "../../../../../../workers/connection/config/config.ts";
import {
  configSources,
  type FileText,
  readInTime,
  readText,
} from "../../../../../../workers/connection/config/files/sources.ts";
import { configFacts, loadConfig } from "../../../../../../workers/connection/config/merge/merge.ts";
import { inTime, silenceOf } from "../../../../../../workers/shared/files/file-system.ts";
import {
  answer,
  becomes,
  configOf,
  createHome,
  decisionsOf,
  type Home,
  open,
  put,
  type Recorded,
  server,
} from "./support.ts";

async function openWith(servers: Record<string, unknown>): Promise<[Home, Recorded]> {
  const home = await createHome();
  await put(home.mcp, configOf(servers));
  return [home, await open(home)];
}

const argsOf = ({ running }: Recorded, name: string): unknown => {
  const target = running.now.servers.find((one) => one.name === name)?.target;
  return target?.kind === "stdio" ? target.args : undefined;
};

describe("an edit of the user's file", () => {
  test("servers added, changed and removed at once -> one plan", async () => {
    const [home, pi] = await openWith({ keep: server(), github: server(["one"]), old: server() });
    await put(home.mcp, configOf({ docs: server(), github: server(["two"]), keep: server() }));
    await becomes(() => pi.effects, ["mcp.json: + docs, ~ github (args), - old"]);
  });

  test("ten writes in a row -> the last one holds, and the files are read fewer times than written", async () => {
    const [home, pi] = await openWith({ s: server(["start"]) });
    for (let i = 0; i < 10; i++) await put(home.mcp, configOf({ s: server([String(i)]) }));
    await becomes(() => argsOf(pi, "s"), ["9"]);
    await pi.settled();
    expect(argsOf(pi, "s")).toEqual(["9"]);
    expect(pi.effects.filter((effect) => effect !== "").length).toBeLessThan(10);
  });

  test("toolExposure in another order -> the rules change, also where a project's file repeats its patterns", async () => {
    const rules = { "*": "direct", "delete_*": "hidden" };
    const turned = { "delete_*": "hidden", "*": "direct" };
    const [home, pi] = await openWith({ s: server([], { toolExposure: rules }) });
    await put(home.mcp, configOf({ s: server([], { toolExposure: turned }) }));
    await becomes(() => pi.effects, ["mcp.json: ~ s (toolExposure)"]);
    await put(home.projectFile, configOf({ s: { toolExposure: turned } }));
    await becomes(() => pi.effects.at(-1), "mcp.json: ~ s (file)");
    await put(home.mcp, configOf({ s: server([], { toolExposure: rules }) }));
    await becomes(() => pi.effects.at(-1), "mcp.json: ~ s (toolExposure)");
    expect(Object.keys(pi.running.now.servers[0]?.userRules?.toolExposure ?? {})).toEqual(Object.keys(rules));
  });

  test("a command of the shell -> does not follow the files; what it writes itself is applied", async () => {
    const home = await createHome();
    await put(home.mcp, configOf({ s: server(["one"]) }));
    const [command, pi] = [await open(home, { onDemand: true }), await open(home)];
    await put(home.mcp, configOf({ s: server(["two"]) }));
    await becomes(() => pi.effects, ["mcp.json: ~ s (args)"]);
    expect(command.effects).toEqual([]);
    const text = JSON.stringify(configOf({ s: server(["two"]), own: server() }));
    await writeFile(home.mcp, text);
    await command.running.written({ file: home.mcp, text: () => text });
    expect(command.effects).toEqual(["mcp.json: ~ s (args), + own"]);
  });

  test("the same servers written differently -> no plan", async () => {
    const [home, pi] = await openWith({ s: server() });
    await writeFile(home.mcp, `// mine\n{"mcpServers": {"s": {"args": [], "command": "x"}}}\n`);
    await pi.settled();
    expect(pi.effects).toEqual([]);
  });

  test("the file is deleted, then written again -> its servers go and come back", async () => {
    const [home, pi] = await openWith({ s: server() });
    await rm(home.mcp);
    await becomes(() => pi.effects, ["mcp.json: - s"]);
    await put(home.mcp, configOf({ s: server() }));
    await becomes(() => pi.effects, ["mcp.json: - s", "mcp.json: + s"]);
  });

  test("the file is replaced by rename -> the servers in both keep running", async () => {
    const [home, pi] = await openWith({ s: server() });
    for (const [i, name] of ["one", "two"].entries()) {
      const next = join(home.agentDir, "mcp.json.new");
      await put(next, configOf({ s: server(), [name]: server() }));
      await rename(next, home.mcp);
      await becomes(() => pi.effects.length, i + 1);
    }
    expect(pi.effects).toEqual(["mcp.json: + one", "mcp.json: + two, - one"]);
  });

  test("broken, then mended -> the last whole text runs on, the position is known, then the mended text applies", async () => {
    const [home, pi] = await openWith({ s: server() });
    await writeFile(home.mcp, '{\n  "mcpServers": {\n    "s": {"command": }\n  }\n}');
    await becomes(() => pi.running.state.problems.length, 1);
    expect(pi.running.state.problems).toMatchObject([{ file: home.mcp, line: 3, column: 22 }]);
    expect(pi.runs()).toEqual(["s"]);
    expect(pi.effects.filter((effect) => effect !== "")).toEqual([]);
    await put(home.mcp, configOf({ s: server(), more: server() }));
    await becomes(() => pi.effects.at(-1), "mcp.json: + more");
    expect(pi.running.state.problems).toEqual([]);
  });

  test("another extension registers and unregisters servers -> the user's own of that name stays", async () => {
    const [, pi] = await openWith({ own: server(["mine"]) });
    const registered = (name: string) => ({ name, config: server(["ext"]), extensionPath: "/ext.mjs" });
    await pi.running.register([registered("first"), registered("own")]);
    expect(pi.runs().sort()).toEqual(["first", "own"]);
    expect(argsOf(pi, "own")).toEqual(["mine"]);
    await pi.running.register([registered("second")]);
    expect(pi.effects).toEqual(["mcp.json: + first", "mcp.json: + second, - first"]);
  });

  test("--mcp-config -> that file in place of the user's, followed when it changes, a problem while it is missing", async () => {
    const home = await createHome();
    await put(home.mcp, configOf({ usual: server() }));
    const file = join(home.cwd, "my.json");
    const pi = await open(home, { configPath: "my.json" });
    expect(pi.running.state.problems).toMatchObject([{ file, message: "there is no such file" }]);
    await put(file, configOf({ mine: server(["one"]) }));
    await becomes(pi.runs, ["mine"]);
    await put(file, configOf({ mine: server(["two"]) }));
    await becomes(() => pi.effects.at(-1), "mcp.json: ~ mine (args)");
    expect(pi.running.state.problems).toEqual([]);
  });
});

describe("a plan that cannot be carried out", () => {
  const failing = new ThreadsError("bad_config", "no");
  const facts = (home: Home) => ({
    agentDir: home.agentDir,
    cwd: home.cwd,
    projectTrusted: true,
    configPath: undefined,
    registered: [],
    canAsk: true,
    snapshotChecksum: undefined,
  });
  const quiet = { debug() {}, info() {}, warn() {}, error() {}, write() {}, flush: async () => undefined };
  const calls = {
    onHeld: () => undefined,
    onFirstChange: () => undefined,
    signal: new AbortController().signal,
    log: quiet,
  };

  test("the first one -> the start fails with its reason", async () => {
    const home = await createHome();
    const onPlan = () => Promise.reject(failing);
    await expect(runConfiguration({ facts: facts(home), ...calls, onPlan })).rejects.toBe(failing);
  });

  test("a later one -> whoever asked for it gets the reason, the next one is carried out", async () => {
    const home = await createHome();
    let plans = 0;
    const onPlan = async () => {
      plans++;
      if (plans === 2) throw failing;
    };
    const running = await runConfiguration({ facts: facts(home), ...calls, onPlan });
    await expect(running.askAgain()).rejects.toBe(failing);
    await running.askAgain();
    expect(plans).toBe(3);
    await running.close();
  });
});

/** A read of this file that does not answer before `answer` is called. */
async function silence(file: string): Promise<{ answer: () => void; reads: () => number }> {
  const { promise, resolve } = Promise.withResolvers<FileText>();
  let reads = 0;
  const read = (): Promise<FileText> => {
    reads++;
    return promise;
  };
  expect(await readInTime(file, 1_000, read)).toMatchObject({ kind: "unreadable" });
  return { answer: () => resolve({ kind: "missing" }), reads: () => reads };
}

test("a project's file that does not answer -> the others count after 2 s, the problem names it, and it is read once", async () => {
  const home = await createHome();
  await put(home.mcp, configOf({ own: server() }));
  await put(home.projectPi, configOf({ pi: server() }));
  const asked: string[] = [];
  const { promise: never, resolve } = Promise.withResolvers<FileText>();
  onTestFinished(() => resolve({ kind: "missing" }));
  const read = (file: string, bytes: number): Promise<FileText> => {
    asked.push(file);
    return file === home.projectFile ? never : readText(file, bytes);
  };
  const facts = configFacts({ agentDir: home.agentDir, cwd: home.cwd, projectTrusted: true });
  const first = await loadConfig(facts, undefined, read);
  expect(first.servers.map(({ name }) => name)).toEqual(["own", "pi"]);
  expect(first.problems).toMatchObject([
    {
      severity: "error",
      file: home.projectFile,
      message: "cannot be read: its file system does not answer",
    },
  ]);
  expect(first.files).toContain(home.projectFile);
  expect(first.watched).not.toContain(home.projectFile);
  expect(first.watched).not.toContain(home.projectPi);
  expect(first.watched).toContain(home.mcp);
  const again = await loadConfig(facts, first, read);
  expect(again.unanswered).toEqual(first.unanswered);
  expect(asked.filter((file) => file === home.projectFile)).toHaveLength(1);
  expect(await readText(home.projectFile, 1_000)).toMatchObject({ kind: "unreadable" });
});

test("four files of a project do not answer -> two are read, after 2 s the others count as silent, and Pi keeps threads for files", async () => {
  const { promise: never, resolve } = Promise.withResolvers<FileText>();
  let reads = 0;
  const read = (): Promise<FileText> => {
    reads++;
    return never;
  };
  const files = ["a", "b", "c", "d"].map((name) => `/silent/${name}`);
  const found = await Promise.all(files.map((file) => readInTime(file, 1_000, read)));
  expect(found.map(({ kind }) => kind)).toEqual(Array(4).fill("unreadable"));
  expect(found.map((one) => "isSkipped" in one)).toEqual([false, false, true, true]);
  expect(await readInTime("/silent/e", 1_000, read)).toMatchObject({ kind: "unreadable" });
  expect(reads).toBe(2);
  resolve({ kind: "missing" });
  await Promise.all(found.map((one) => one.kind === "unreadable" && one.later));
  expect(await readInTime("/silent/c", 1_000, read)).toEqual({ kind: "missing" });
});

test("a second read of a file waits for its place until the first one counts as silent -> it keeps no place, and others are read", async () => {
  const [never, slow] = [Promise.withResolvers<FileText>(), Promise.withResolvers<FileText>()];
  const missing: FileText = { kind: "missing" };
  const first = readInTime("/silent/f", 1_000, () => never.promise);
  await new Promise((resolve) => setTimeout(resolve, 300));
  const other = readInTime("/slow/g", 1_000, () => slow.promise);
  const second = readInTime("/silent/f", 1_000, () => never.promise);
  expect(await first).toMatchObject({ kind: "unreadable" });
  slow.resolve(missing);
  expect(await other).toEqual(missing);
  expect(await second).toMatchObject({ kind: "unreadable" });
  expect(await readInTime("/h", 1_000, async () => missing)).toEqual(missing);
  never.resolve(missing);
  await silenceOf("/silent/f");
});

/** Looks at this file get no answer from now on, as on a mount that hangs. Answers how many there were. */
function stall(file: string): () => number {
  const { promise, resolve } = Promise.withResolvers<void>();
  const { promises } = fs;
  const { stat } = promises;
  let looks = 0;
  const stalled = async (path: string): Promise<Stats> => {
    if (path === file) {
      looks++;
      await promise;
    }
    return stat(path);
  };
  promises.stat = stalled as typeof stat;
  syncBuiltinESMExports();
  onTestFinished(async () => {
    promises.stat = stat;
    syncBuiltinESMExports();
    resolve();
    await silenceOf(file);
  });
  return () => looks;
}

test("a project's file stops answering in the session -> edits of the user's file are applied, nobody looks there again, nothing is confirmed", async () => {
  const home = await createHome();
  await put(home.mcp, configOf({ own: server() }));
  await put(home.projectFile, configOf({}));
  const pi = await open(home);
  expect(await pi.running.confirmed()).toContainEqual([home.projectFile, expect.any(String)]);
  const looks = stall(home.projectFile);
  expect(await pi.running.confirmed()).toBeUndefined();
  const before = looks();
  await put(home.mcp, configOf({ own: server(), one: server() }));
  await becomes(pi.runs, ["own", "one"]);
  await put(home.mcp, configOf({ own: server(), one: server(), two: server() }));
  await becomes(pi.runs, ["own", "one", "two"]);
  expect(looks()).toBe(before);
});

test("a place of the user's own files, where none is, stops answering -> no setting gets stricter, and edits are applied", async () => {
  const home = await createHome();
  await put(home.mcp, configOf({ own: server() }));
  const pi = await open(home);
  const facts = configFacts({ agentDir: home.agentDir, cwd: home.cwd, projectTrusted: true });
  const first = await loadConfig(facts);
  const none = configSources(facts)[0]?.file ?? "";
  expect(first.reads.get(none)).toEqual({ kind: "missing" });
  stall(none);
  expect(await pi.running.confirmed()).toBeUndefined();
  expect(silenceOf(none)).toBeDefined();
  expect((await loadConfig(facts, first)).settings).toEqual(first.settings);
  await put(home.mcp, configOf({ own: server(), one: server() }));
  await becomes(pi.runs, ["own", "one"]);
  expect(pi.running.state.problems).toEqual([]);
});

test("a user's own file may take longer: nothing of the user is left out", async () => {
  const home = await createHome();
  await put(home.mcp, configOf({ own: server() }));
  const facts = configFacts({ agentDir: home.agentDir, cwd: home.cwd, projectTrusted: true });
  const slow = async (file: string, bytes: number): Promise<FileText> => {
    if (file === home.mcp) await new Promise((resolve) => setTimeout(resolve, LIMITS.projectReadMs + 100));
    return readText(file, bytes);
  };
  const { servers, problems } = await loadConfig(facts, undefined, slow);
  expect(servers.map(({ name }) => name)).toEqual(["own"]);
  expect(problems).toEqual([]);
});

test(".mcp.json and .pi/mcp.json do not answer at the start -> own servers run; both are read when they answer, and each server is asked for", async () => {
  const home = await createHome();
  await mkdir(join(home.cwd, ".pi"));
  await put(home.mcp, configOf({ own: server() }));
  await put(home.projectFile, configOf({ theirs: server() }));
  await put(home.projectPi, configOf({ pi: server() }));
  const late = await Promise.all([silence(home.projectFile), silence(home.projectPi)]);
  const pi = await open(home, { projectFile: "a stamp of the start" });
  expect(pi.runs()).toEqual(["own"]);
  expect(pi.running.state.problems).toMatchObject([
    { file: home.projectFile, message: expect.stringContaining("does not answer") },
    { file: home.projectPi, message: expect.stringContaining("does not answer") },
  ]);
  for (const { answer } of late) answer();
  await becomes(pi.asked, ["theirs", "pi"]);
  await becomes(() => pi.running.state.problems, []);
  expect(late.map(({ reads }) => reads())).toEqual([1, 1]);
  await put(home.projectFile, configOf({ later: server() }));
  await becomes(pi.asked, ["later", "pi"]);
});

test("an envFile and a script that do not answer -> the decision is made without them, and each is looked at once", async () => {
  const home = await createHome();
  await put(home.mcp, configOf({ own: server() }));
  await put(home.projectFile, configOf({ theirs: server([], { envFile: ".env" }) }));
  const { promise, resolve } = Promise.withResolvers<void>();
  await inTime(`${home.projectFile} .env`, () => promise, 1);
  const pi = await open(home);
  expect(pi.runs()).toEqual(["own"]);
  expect(pi.running.state.questions[0]?.question).toContain(
    "env from .env, which cannot be used now: its file system does not answer",
  );
  resolve();
  await silenceOf(`${home.projectFile} .env`);
  expect(silenceOf(`${home.projectFile} .env`)).toBeUndefined();
});

const positions = async (home: Home): Promise<string[]> => {
  const { running } = await open(home);
  return running.state.problems.map(
    ({ file, line, column, key, message }) =>
      `${file.slice(home.cwd.length + 1)}:${line}:${column}: ${key}: ${message}`,
  );
};

test("a model writes imports into .pi/mcp.json -> nothing is imported, the position is reported, at a later start too", async () => {
  const home = await createHome();
  const claude = dirname(home.cwd);
  vi.stubEnv("CLAUDE_CONFIG_DIR", claude);
  await put(join(claude, ".claude.json"), configOf({ danger: server(["danger"]) }));
  const pi = await open(home);
  const servers = { danger: { lifecycle: "keep-alive" }, own: server() };
  await put(home.projectPi, { imports: ["claude-code"], ...configOf(servers) });
  await becomes(pi.asked, ["own"]);
  expect(pi.running.state.problems).toMatchObject([
    {
      file: home.projectPi,
      line: 1,
      column: 12,
      key: "imports",
      message: "a project's file may not import",
      remedy: "Write imports into your own mcp.json.",
    },
    { message: "there is no server of this name in your own files to override" },
  ]);
  await answer(pi, "own", "allowed");
  expect(pi.runs()).toEqual(["own"]);
  await pi.running.close();
  expect((await open(home)).runs()).toEqual(["own"]);
});

test("files of other programs in the project folder -> each server is asked for, none runs before", async () => {
  const home = await createHome();
  await put(home.mcp, { imports: ["cursor", "vscode", "codex", "opencode"] });
  await put(join(home.cwd, ".cursor/mcp.json"), configOf({ cursor: server() }));
  await put(join(home.cwd, ".vscode/mcp.json"), { servers: { vscode: server() } });
  await put(join(home.cwd, ".codex/config.toml"), '[mcp_servers.codex]\ncommand = "x"\n');
  await put(join(home.cwd, "opencode.json"), { mcp: { opencode: { type: "local", command: ["x"] } } });
  const pi = await open(home);
  expect(pi.asked().sort()).toEqual(["codex", "cursor", "opencode", "vscode"]);
  expect(pi.runs()).toEqual([]);
});

test("settings of .mcp.json -> what writes files or widens is ignored, each reported with its position", async () => {
  const home = await createHome();
  const settings = { captureStats: { path: "/tmp/stats" }, outputGuard: false, proxyTool: true };
  await put(home.projectFile, `{"settings":\n${JSON.stringify(settings)}}`);
  expect(await positions(home)).toEqual([
    ".mcp.json:2:53: settings.outputGuard: a project's file may only make this stricter",
    ".mcp.json:2:71: settings.proxyTool: a project's file may not decide this: it changes the names under which your tools are called",
    ".mcp.json:2:17: settings.captureStats: a project's file may not decide this: it writes files",
  ]);
  const { running } = await open(home);
  expect(running.now.settings).toMatchObject({ captureStats: true, outputGuard: {}, proxyTool: false });
});

test(".mcp.json takes back the user's exclusions -> they hold; its own exclusions hold too", async () => {
  const home = await createHome();
  const rules = { excludeTools: ["drop_*"], toolExposure: { secret: "hidden" } };
  await put(home.mcp, configOf({ db: server([], rules) }));
  const override = { excludeTools: [], toolExposure: { secret: "direct", other: "hidden" } };
  await writeFile(home.projectFile, JSON.stringify(configOf({ db: override }), null, 2));
  const reported = await positions(home);
  expect(reported).toEqual([
    expect.stringMatching(/^\.mcp\.json:4:23: mcpServers\.db\.excludeTools: a project's list adds to yours/),
    expect.stringMatching(/^\.mcp\.json:5:23: mcpServers\.db\.toolExposure: your own file hides these tools/),
  ]);
  const { running } = await open(home);
  expect(running.now.servers).toMatchObject([
    {
      toolExposure: { other: "hidden" },
      userRules: { excludeTools: ["drop_*"], toolExposure: { secret: "hidden" } },
    },
  ]);
});

test(".pi/mcp.json enables what the user disables -> asked for at the start already, disabled until the answer", async () => {
  const home = await createHome();
  await put(home.mcp, configOf({ own: server(["own"], { enabled: false }) }));
  await put(home.projectPi, configOf({ own: { enabled: true } }));
  const pi = await open(home);
  expect(pi.running.state.questions[0]?.question).toContain(
    `which ${home.mcp} switches off and ${home.projectPi} on`,
  );
  expect(pi.runs()).toEqual([]);
  expect(pi.running.now.servers).toMatchObject([{ name: "own", enabled: false }]);
});

/** What `/mcp enable own --project` does. */
async function enableInProject(
  home: Home,
  pi: Awaited<ReturnType<typeof open>>,
  text: unknown,
): Promise<void> {
  const own = pi.running.configured("own");
  if (!own) throw new Error("no such server");
  await pi.running.allowAsUser(own);
  await put(home.projectPi, text);
  await pi.running.written({ file: home.projectPi, text: () => JSON.stringify(text) });
}

test.each(["on", "ask"])(
  "hotReload %s, the user enables his own disabled server in the project -> it runs unasked, at a later start too; another command of it is asked for",
  async (hotReload) => {
    const home = await createHome();
    await put(home.mcp, configOf({ own: server(["own"], { enabled: false }) }, { hotReload }));
    const pi = await open(home);
    await enableInProject(home, pi, configOf({ own: { enabled: true } }));
    expect(pi.runs()).toEqual(["own"]);
    expect(pi.asked()).toEqual([]);
    expect(await decisionsOf(home)).toEqual(["own allowed"]);
    await pi.running.close();
    const again = await open(home);
    expect(again.runs()).toEqual(["own"]);
    await again.running.close();
    await put(home.mcp, configOf({ own: server(["other"], { enabled: false }) }, { hotReload }));
    const changed = await open(home);
    expect(changed.runs()).toEqual([]);
    expect(changed.asked()).toEqual(["own"]);
  },
);

test("a project's disabled server is enabled in its file -> still asked for", async () => {
  const home = await createHome();
  const pi = await open(home);
  await put(home.projectPi, configOf({ evil: server(["evil"], { enabled: false }) }));
  await becomes(() => pi.effects, ["mcp.json: + evil (disabled)"]);
  const text = configOf({ evil: server(["evil"], { enabled: true }) });
  await put(home.projectPi, text);
  await pi.running.written({ file: home.projectPi, text: () => JSON.stringify(text) });
  expect(pi.runs()).toEqual([]);
  expect(pi.asked()).toEqual(["evil"]);
});
