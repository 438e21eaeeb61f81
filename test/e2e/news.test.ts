/**
 * Owns: what the model is told of servers that come, change and go while the real Pi runs: the description of the tool that
 * finds others before the first request, one line with a later prompt, and never a changed byte of a declaration.
 */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type ModelRequest, messageText } from "../support/model.ts";
import { runPrint } from "../support/pi-run.ts";
import { type InTurn, inTurn } from "./in-turn.ts";
import { live, PATIENCE_MS } from "./rpc-support.ts";
import { ENTRY, fixtureServer, home, model, searchFor } from "./support.ts";

const turn = inTurn();
type Servers = Record<string, unknown>;

const finder = (request: ModelRequest | undefined, name = "ToolSearch"): string =>
  request?.tools.find((tool) => tool.function.name === name)?.function.description ?? "";
const declared = (request: ModelRequest | undefined): string => JSON.stringify(request?.tools);

/** The lines of a request that tell of changed servers. */
const newsIn = (request: ModelRequest | undefined): string[] =>
  (request?.messages ?? []).map(messageText).filter((text) => text.startsWith("Note of the MCP extension"));

/** Writes the file and waits until the session shows the effect. */
async function edit(pi: InTurn, mcpServers: Servers, effect: RegExp, settings?: unknown): Promise<void> {
  const since = pi.rpc.events.length;
  await pi.at.writeMcp({ mcpServers, ...(settings ? { settings } : {}) });
  await pi.notice(effect, since);
}

/** The first request of one more prompt. */
async function request(pi: InTurn): Promise<ModelRequest | undefined> {
  const at = pi.scripted.requests.length;
  await pi.prompt();
  return pi.scripted.requests[at];
}

const sessionFile = async ({ rpc }: InTurn): Promise<string> =>
  ((await rpc.request({ type: "get_state" }, PATIENCE_MS)).data as { sessionFile: string }).sessionFile;

test("an empty snapshot, a server is added with /mcp add before the first request -> its name and tools are in the first description", async () => {
  const pi = await turn({ mcp: { mcpServers: {} } });
  const snapshots = async (): Promise<string[]> =>
    (await readdir(join(pi.at.agentDir, "mcp-snapshots")).catch((): string[] => [])).filter((name) =>
      name.endsWith(".bin"),
    );
  await expect.poll(snapshots, { timeout: PATIENCE_MS }).toHaveLength(1);
  await pi.again();
  pi.rpc.answerUi((dialog) => ({
    value: dialog.options?.find((one) => /^(?:Add it without|For you)/.test(one)) ?? "",
  }));
  await pi.rpc.command(`/mcp add fs ${process.execPath} ${(live([], {}).args as string[])[0]}`, PATIENCE_MS);
  await pi.notice(/^mcp\.json: \+ fs \(1 tool\)/);
  const first = await request(pi);
  expect(finder(first)).toMatch(/^- fs \[work\]$/m);
  expect(newsIn(first)).toEqual([]);
});

test("a server is added by an edit between two sessions -> the first description names it beside the known one, in print mode too", {
  tags: "thorough",
}, async () => {
  const at = await home({ mcp: { mcpServers: { one: live() } } });
  const run = async (): Promise<ModelRequest | undefined> => {
    const scripted = await model([searchFor("work")]);
    const ran = await runPrint({
      home: at,
      model: scripted,
      extensions: [ENTRY],
      prompt: "go",
      timeoutMs: PATIENCE_MS,
    });
    expect(ran).toMatchObject({ code: 0, timedOut: false });
    return scripted.requests[0];
  };
  await run();
  await at.writeMcp({ mcpServers: { one: live(), demo: live([], { TOOLS: "deploy" }) } });
  expect(finder(await run())).toMatch(/^- one \[work\]\n- demo$/m);
});

test("after the first request: added, with other tools, removed -> each is told once with the next prompt, what came and went is not, no declared byte changes; a resumed session keeps the bytes and tells the rest", async () => {
  const one = live();
  const pi = await turn({ mcp: { mcpServers: { one } } });
  const first = await request(pi);
  expect(finder(first)).toMatch(/^- one/m);
  // The first start in a folder knows the names alone.
  await expect.poll(async () => newsIn(await request(pi)), { timeout: PATIENCE_MS }).toHaveLength(1);

  await edit(pi, { one, demo: live([], { TOOLS: "deploy,undo" }) }, /\+ demo \(2 tools\)/);
  const added = await request(pi);
  expect(newsIn(added).at(-1)).toMatch(
    /^Note of the MCP extension, not of the user: .* New: demo \[deploy, undo\]\. ToolSearch finds tools that are not loaded\.$/,
  );
  const told = newsIn(added).length;
  expect(newsIn(await request(pi))).toHaveLength(told);

  await edit(pi, { one, demo: live([], { TOOLS: "deploy,undo" }, { excludeTools: ["undo"] }) }, /~ demo/);
  expect(newsIn(await request(pi)).at(-1)).toContain("Tools now: demo [deploy].");
  await edit(pi, { one, demo: live([], { TOOLS: "deploy" }), brief: live() }, /\+ brief/);
  await edit(pi, { one }, /- (?:brief|demo)/);
  const removed = await request(pi);
  expect(newsIn(removed).at(-1)).toContain("Gone: demo.");
  expect(newsIn(removed).join()).not.toContain("brief");
  expect(newsIn(removed)).toHaveLength(told + 2);
  for (const later of pi.scripted.requests) expect(declared(later)).toBe(declared(first));

  const file = await sessionFile(pi);
  await pi.at.writeMcp({ mcpServers: { other: live() } });
  await pi.again(undefined, file);
  // A prompt that comes before the worker has read the file is told with the next one.
  await expect.poll(() => pi.status(), { timeout: PATIENCE_MS }).toContain("other");
  const resumed = await request(pi);
  expect(declared(resumed)).toBe(declared(first));
  expect(newsIn(resumed)).toHaveLength(told + 3);
  expect(newsIn(resumed).at(-1)).toMatch(/New: other(?: \[work\])?\. Gone: one\./);
  expect(await readFile(file, "utf8")).not.toContain('"toolsRemoved":[{');
});

test("a server that could not start works later -> its tools are told", { tags: "thorough" }, async () => {
  const pi = await turn((at) => ({
    mcp: {
      mcpServers: {
        shaky: fixtureServer("fails-until.mjs", {
          READY: join(at.cwd, "ready"),
          RECORD: join(at.cwd, "starts"),
        }),
      },
    },
    files: {},
  }));
  await expect.poll(() => pi.status(), { timeout: PATIENCE_MS }).toMatch(/^shaky: failed/m);
  const first = await request(pi);
  expect(finder(first)).toMatch(/^- shaky$/m);
  await pi.at.writeFile("ready", "");
  expect(await pi.rpc.command("/mcp reconnect shaky", PATIENCE_MS)).not.toEqual([]);
  // A search answers when main has the server's tools.
  await pi.prompt(searchFor("work"));
  const later = await request(pi);
  expect(newsIn(later).join("\n")).toMatch(/Tools now: shaky \[work\]/);
  expect(finder(later)).toBe(finder(first));
});

test.each([
  ["servers", { catalog: "servers" }, "ToolSearch", "New: demo. ToolSearch finds tools that are not loaded."],
  ["off", { catalog: "off" }, "ToolSearch", undefined],
  ["proxyTool", { proxyTool: true }, "mcp", "New: demo. mcp finds tools that are not loaded."],
])("%s -> the line says no more than the description does", async (_of, settings, name, line) => {
  const pi = await turn({ mcp: { mcpServers: { one: live() }, settings } });
  const first = await request(pi);
  await edit(pi, { one: live(), demo: live([], { TOOLS: "deploy" }) }, /\+ demo/, settings);
  const later = await request(pi);
  expect(newsIn(later)).toHaveLength(line === undefined ? 0 : 1);
  if (line !== undefined) expect(newsIn(later)[0]).toContain(line);
  expect(finder(later, name)).toBe(finder(first, name));
  expect(declared(later)).toBe(declared(first));
});
