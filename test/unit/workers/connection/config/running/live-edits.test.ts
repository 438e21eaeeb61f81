/**
 * Owns: with `hotReload` "on", an edit is applied when its file has settled: the last of many, none of a broken or
 * half-written file, and nothing that stays as it is; on real files, without Pi.
 */
import { rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { ThreadsError } from "../../../../../../src/shared/protocol/errors.ts";
import { runConfiguration } from "../../../../../../workers/connection/config/config.ts";
import { becomes, configOf, createHome, type Home, open, put, type Recorded, server } from "./support.ts";

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
