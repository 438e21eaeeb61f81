/** Owns: the runtime of a session from its first moment, before its code is loaded. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { RuntimeOptions } from "../../src/runtime/contract.ts";
import { prepareRuntime, startRuntimeLater } from "../../src/runtime/later.ts";
import type { SessionFacts } from "../../src/shared/protocol/session.ts";
import { makeTempFolder, removeFolder } from "../support/temp-folder.ts";

let folder = "";
beforeAll(async () => {
  folder = await makeTempFolder("lazy-runtime");
});
afterAll(() => removeFolder(folder));

function start(log = "log", rest?: RuntimeOptions["rest"]) {
  const failures: Error[] = [];
  let sessions = 0;
  const facts = (): SessionFacts => {
    sessions++;
    return {
      cwd: folder,
      agentDir: folder,
      projectTrusted: false,
      configPath: undefined,
      registered: [],
      canAsk: false,
      snapshotChecksum: undefined,
    };
  };
  const runtime = startRuntimeLater({
    logFile: join(folder, log),
    facts,
    rest,
    onEvent: () => undefined,
    onCrash: () => undefined,
    onStartFailed: (error) => failures.push(error),
    // The raw worker strips types before it answers for the first time: on a busy machine that takes longer than a hang may.
    limits: { heartbeatMs: 60_000 },
  });
  return { runtime, failures, sessions: () => sessions };
}

describe("startRuntimeLater", () => {
  test("a request and a log line before the start -> both are handled after the start", async () => {
    const { runtime, failures, sessions } = start();
    runtime.log("info", "told at once");
    expect((await runtime.ask("status", {})).servers).toEqual([]);
    expect([sessions(), failures]).toEqual([1, []]);
    await runtime.stop();
    expect(await readFile(join(folder, "log"), "utf8")).toContain("told at once");
    await expect(runtime.ask("status", {})).rejects.toMatchObject({ code: "runtime_stopped" });
  });

  test("many at once, as subagents have them -> no more listeners for the end of the process, of which Node would warn", {
    tags: "thorough",
  }, async () => {
    const one = start();
    await one.runtime.ask("status", {});
    const listeners = process.listenerCount("exit");
    const two = start();
    await two.runtime.ask("status", {});
    expect(process.listenerCount("exit")).toBe(listeners);
    await Promise.all([one.runtime.stop(), two.runtime.stop()]);
  });

  test("stopped before the start -> never starts; open requests reject, no other code gets an error", async () => {
    const { runtime, failures, sessions } = start();
    const asked = runtime.ask("status", {});
    runtime.post("turnEnded", {});
    const stopped = runtime.stop();
    await expect(asked).rejects.toMatchObject({ code: "runtime_stopped" });
    await stopped;
    await runtime.stop();
    expect([sessions(), failures]).toEqual([0, []]);
  });
});

describe("a session at rest", () => {
  /** The rest is over at once: `isEdited` by an edit, else since something needs a worker. */
  const over = (isEdited: boolean) => async () => ({
    over: Promise.resolve(),
    isEdited: async () => isEdited,
    traces: "",
  });

  test("an edit starts the worker -> the session is behind until the worker has read it", async () => {
    const { runtime, sessions } = start("edited", over(true));
    await expect.poll(sessions).toBe(1);
    expect(await runtime.isBehind()).toBe(true);
    expect(await runtime.settleTools({ timeoutMs: 1_000 }, undefined)).toEqual([]);
    expect(await runtime.isBehind()).toBe(false);
    await runtime.stop();
  });

  test("without an edit -> it is not", async () => {
    const { runtime, sessions } = start("unedited", over(false));
    await expect.poll(sessions).toBe(1);
    expect(await runtime.isBehind()).toBe(false);
    await runtime.stop();
  });
});

describe("prepareRuntime", () => {
  test("twice, then a runtime with that log -> one thread, which that runtime uses; the next one has its own", async () => {
    prepareRuntime(join(folder, "prepared"));
    prepareRuntime(join(folder, "prepared"));
    const first = start("prepared");
    expect((await first.runtime.ask("status", {})).servers).toEqual([]);
    const threads = async (): Promise<number> => {
      const text = await readFile(join(folder, "prepared"), "utf8");
      return text.split("\n").filter((line) => line.endsWith(" started")).length;
    };
    await first.runtime.stop();
    expect([await threads(), first.failures]).toEqual([1, []]);
    const second = start("prepared");
    expect((await second.runtime.ask("status", {})).servers).toEqual([]);
    await second.runtime.stop();
    expect(await threads()).toBe(2);
  });

  test("a runtime with another log -> a thread of its own", { tags: "thorough" }, async () => {
    prepareRuntime(join(folder, "of another home"));
    const { runtime } = start("own");
    expect((await runtime.ask("status", {})).servers).toEqual([]);
    await runtime.stop();
    expect(await readFile(join(folder, "own"), "utf8")).toContain(" started");
    // Leaves no thread to the tests that follow in this process.
    const other = start("of another home");
    await other.runtime.ask("status", {});
    await other.runtime.stop();
  });
});
