/** Owns: tests that prove that the harness runs the real Pi: print mode, RPC prompts, commands, dialogs, cleanup. */
import { existsSync } from "node:fs";
import { afterEach, expect, inject, test } from "vitest";
import { type ScriptedModel, startModel, toolResultTexts } from "../support/model.ts";
import { ensurePi } from "../support/pi-host.ts";
import { createHome, type PiHome, runPrint, startRpc } from "../support/pi-run.ts";
import { descendants, processesWithMarker, waitGone } from "../support/processes.ts";
import { extensionErrors, finalText, notices, statuses, toolEnds } from "../support/rpc-events.ts";

const EXTENSION = `
import { spawn } from "node:child_process";
export default function (pi) {
  pi.registerTool({
    name: "shout", label: "Shout", description: "Shouts.",
    parameters: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
    async execute(id, params) {
      return { content: [{ type: "text", text: params.text.toUpperCase() }], details: { n: 1 } };
    },
  });
  pi.registerCommand("mcp", { description: "x", handler: async () => {} });
  pi.registerCommand("hello", { description: "x", handler: async (args, ctx) => {
    ctx.ui.notify("hello " + args, "warning");
    ctx.ui.notify("bare");
    ctx.ui.setStatus("smoke", "on");
    console.log("from console");
  } });
  pi.registerCommand("ask", { description: "x", handler: async (args, ctx) => {
    const a = await ctx.ui.select("Pick", ["one", "two"]);
    const b = await ctx.ui.confirm("Sure", "really?");
    const c = await ctx.ui.input("Name", "hint");
    ctx.ui.notify(JSON.stringify([a, b, c]), "info");
  } });
  pi.registerCommand("child", { description: "x", handler: async () => {
    spawn("sleep", ["60"], { detached: true, stdio: "inherit" }).unref();
  } });
  pi.registerCommand("boom", { description: "x", handler: async () => { throw new Error("bang"); } });
}
`;

const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function setUp(
  script: Parameters<typeof startModel>[0],
  settings?: Record<string, unknown>,
): Promise<{ home: PiHome; model: ScriptedModel; extension: string }> {
  const model = await startModel(script);
  cleanups.push(() => model.close());
  const home = await createHome({
    caches: inject("piCaches"),
    mcp: { mcpServers: {} },
    ...(settings && { settings }),
  });
  cleanups.push(() => home.dispose());
  return { home, model, extension: await home.writeFile("ext.mjs", EXTENSION) };
}

const SHOUT = [{ toolCalls: [{ name: "shout", args: { text: "abc" } }] }, { text: "all \u2028 done" }];

test("runPrint -> the model's call reaches the tool, the result reaches the model, the final text reaches stdout", async () => {
  await ensurePi();
  const { home, model, extension } = await setUp(SHOUT);
  const result = await runPrint({ home, model, extensions: extension, prompt: "go" });
  expect(result).toMatchObject({ code: 0, stdout: "all \u2028 done\n", stderr: "", timedOut: false });
  expect(model.requests).toHaveLength(2);
  expect(model.requests[0]?.toolNames).toContain("shout");
  expect(model.requests.flatMap(toolResultTexts)).toEqual(["ABC"]);
  expect(model.requests[0]?.arrivedAtMs).toBeGreaterThan(result.startedAtMs);
});

/** Text on stderr of a home without `-builtin:mcp`, whose Pi has two `/mcp`. */
const TAKEN = "built-in extension `mcp` was not loaded";

test("an RpcSession -> prompts, commands and dialogs resolve with their records; stop leaves a process that outlives Pi, PiHome.dispose finds and ends it", async () => {
  const { home, model, extension } = await setUp(SHOUT, { extensions: [] });
  const session = await startRpc({ home, model, extensions: extension });
  cleanups.push(() => session.stop());
  await session.ready();
  expect(model.requests).toEqual([]);

  const events = await session.prompt("go");
  expect(finalText(events)).toBe("all \u2028 done");
  expect(toolEnds(events)).toMatchObject([{ toolName: "shout", text: "ABC", isError: false }]);

  const hello = await session.command("/hello world");
  expect(notices(hello)).toEqual([
    { message: "hello world", level: "warning" },
    { message: "bare", level: "info" },
  ]);
  expect(statuses(hello)).toEqual({ smoke: "on" });

  await expect(session.command("/ask", 300)).rejects.toThrow('open dialogs: select "Pick"');
  const since = session.events.length;
  session.answerUi((dialog) =>
    dialog.method === "confirm" ? { confirmed: true } : { value: dialog.options?.[1] ?? "x" },
  );
  await session.waitFor((event) => event.method === "notify", 2_000, since);
  expect(notices(session.events.slice(since))).toEqual([{ message: '["two",true,"x"]', level: "info" }]);

  expect(extensionErrors(await session.command("/boom"))).toEqual(["command: bang"]);
  await expect(session.command("/nosuch")).rejects.toThrow("no extension handled /nosuch");
  expect(session.strayLines).toEqual([]);
  const [warning, ...others] = session.stderr
    .trimEnd()
    .split("\n")
    .filter((line) => line !== "from console");
  expect(warning).toContain(TAKEN);
  expect(others).toEqual([]);

  await session.command("/child");
  const children = await descendants(session.pid);
  expect(children).toMatchObject([{ ppid: session.pid, command: "sleep 60" }]);
  expect(await session.stop()).toMatchObject({ code: 0, signal: null });
  await expect(session.prompt("late")).rejects.toThrow("Pi has exited (code 0");

  const pids = children.map((child) => child.pid);
  expect((await processesWithMarker(home.dir)).map((survivor) => survivor.pid)).toEqual(pids);
  expect(await waitGone(pids, 50)).toEqual(pids);
  await home.dispose();
  expect(await waitGone(pids)).toEqual([]);
  expect(existsSync(home.dir)).toBe(false);
});
