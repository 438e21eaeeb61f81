/** Owns: what a real server says of its tools in `_meta` and of pages among its resources, through the real connection worker. */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import {
  createPlace,
  currentCatalog,
  fixture,
  forRows,
  newestCatalog,
  type Started,
  start,
  textOf,
  until,
} from "./support.ts";

const signs = (more: Record<string, unknown> = {}, env: Record<string, string> = {}) =>
  fixture("signs.mjs", env, more);

/** Names of the server's tools that main has, and whether they are declared from the start. */
const toolsOf = async (started: Started, server: string): Promise<[string, boolean][]> =>
  (await currentCatalog(started)).tools
    .filter((tool) => tool.server.name === server)
    .map(({ tool, direct }) => [tool, direct === true]);

const shared = forRows(async () => {
  const started = await start({
    s: signs(),
    turns: signs(),
    direct: signs({ directTools: true, approve: "never" }),
    narrowed: signs({ directTools: false, outputGuard: { maxBytes: 2_000 } }),
    roots: signs({ roots: true }),
    own: signs({ roots: true }, { CLAUDE_PROJECT_DIR: "/mine" }),
  });
  await started.runtime.settleTools({ timeoutMs: 40_000 }, undefined);
  return started;
});

test("a tool for the server's own pages, and pages as resources -> main never has them; a wish is declared", async () => {
  const started = await shared();
  expect(await toolsOf(started, "s")).toEqual([
    ["turn", false],
    ["env", false],
    ["link", false],
    ["turned", false],
    ["pay", false],
    ["always", true],
    ["long", false],
    ["get_any", false],
    ["get_note", false],
  ]);
  const names = (await toolsOf(started, "direct")).map(([name]) => name);
  expect(names).not.toContain("refresh");
  expect(await toolsOf(started, "narrowed")).toContainEqual(["always", false]);
});

test.each(["s", "direct"])(
  "%s: a call of such a tool, by whichever name -> tool_app_only",
  async (server) => {
    const started = await shared();
    expect((await started.failedCall(server, "refresh")).code).toBe("tool_app_only");
    const why = async (name: string) => (await started.runtime.ask("explainMissing", { name }))?.code;
    expect(await why(`${server}__refresh`)).toBe("tool_app_only");
    expect(await why(`mcp__${server.toUpperCase()}__REFRESH`)).toBe("tool_app_only");
  },
);

test("a page -> not read by a template or by hand, not suggested, not listed, not named as readable", async () => {
  const started = await shared();
  expect((await started.failedCall("s", "get_any", { uri: "ui://page" })).code).toBe("tool_app_only");
  expect(textOf(await started.call("s", "get_any", { uri: "x://note" }))).toContain("text of x://note");
  await expect(started.runtime.ask("readResource", { server: "s", uri: "ui://page" })).rejects.toMatchObject({
    code: "tool_app_only",
  });
  const suggested = await started.runtime.ask("suggestResources", { typed: "s:" });
  expect(suggested.map(({ mention }) => mention)).toContain("s:x://note");
  expect(suggested.filter(({ mention }) => mention.includes("ui:"))).toEqual([]);
  const [listed] = await started.runtime.ask("listResources", { server: "s" });
  expect(JSON.stringify(listed)).not.toContain("ui://");
  expect(textOf(await started.call("s", "link"))).toContain("has no tool that reads it");
});

test("a tool that the model has turns into one for the pages alone -> gone from main, and its call is refused", async () => {
  const started = await shared();
  expect(textOf(await started.call("turns", "turned"))).toBe("turned ran");
  await started.call("turns", "turn");
  await until(async () => {
    const names = newestCatalog(started).tools.filter(({ server }) => server.name === "turns");
    const removed = started.events.some(
      (event) => event.type === "removed" && event.tools.some(({ tool }) => tool === "turned"),
    );
    return removed || !names.some(({ tool }) => tool === "turned") ? true : undefined;
  });
  expect((await started.failedCall("turns", "turned")).code).toBe("tool_app_only");
});

test("the panel shows such a tool as the server's own, and a wish as a wish", async () => {
  const started = await shared();
  const { tools } = await started.runtime.ask("serverDetails", { server: "s" });
  const at = (name: string): [string | undefined, number | undefined] => {
    const index = tools.names.indexOf(name);
    return [tools.exposures[index], tools.rules[index]];
  };
  expect(at("refresh")).toEqual(["hidden", -2]);
  expect(at("always")).toEqual(["direct", -3]);
  expect(at("env")).toEqual(["search", -1]);
});

test("a tool that wants a yes for each call -> asked twice, though nothing else asks", async () => {
  const started = await shared();
  for (const [index, answer] of (["session", "once"] as const).entries()) {
    const call = started.call("direct", "pay");
    const question = await until(
      async () => started.user.asked.filter(({ question: { about } }) => about === "call")[index],
    );
    expect(question.question).toMatchObject({ tool: "pay", canAlways: false, onceOnly: true });
    question.answer(answer);
    expect(textOf(await call)).toBe("pay ran");
  }
});

test("nobody can be asked -> that call is refused, the others run", async () => {
  const started = await start({ s: signs({ approve: "never" }) }, { facts: { canAsk: false } });
  const error = await started.failedCall("s", "pay");
  expect(error).toMatchObject({ code: "not_approved" });
  expect(error.message).toContain("its server wants the user's yes for each call");
  expect(textOf(await started.call("s", "always"))).toBe("always ran");
});

test("a long result of a tool that says so -> whole; the user's own limit wins, and other tools keep theirs", async () => {
  const started = await shared();
  const bytes = 360_000;
  expect(textOf(await started.call("s", "long", { bytes }))).toHaveLength(bytes);
  const more = await started.call("s", "long", { bytes: 450_000 });
  expect(more.storedAt).toBeDefined();
  const narrowed = textOf(await started.call("narrowed", "long", { bytes }));
  expect(Buffer.byteLength(narrowed)).toBeLessThanOrEqual(2_000);
});

test("the session's folder as variables -> only with roots, and the entry's own env wins", async () => {
  const started = await shared();
  const { cwd } = started;
  const env = async (server: string) => JSON.parse(textOf(await started.call(server, "env"))) as object;
  expect(await env("roots")).toEqual({ PI_PROJECT_DIR: cwd, CLAUDE_PROJECT_DIR: cwd });
  expect(await env("own")).toEqual({ PI_PROJECT_DIR: cwd, CLAUDE_PROJECT_DIR: "/mine" });
  const inherited = process.env.CLAUDE_PROJECT_DIR;
  expect(await env("s")).toEqual(inherited === undefined ? {} : { CLAUDE_PROJECT_DIR: inherited });
});

interface Stored {
  servers: Record<string, { tools: { name: string }[]; signs?: true }>;
}

test("the next start -> knows the signs from the cache; an entry of an earlier version is asked for again", async () => {
  const place = await createPlace();
  const servers = { s: signs() };
  const first = await start(servers, { place });
  await first.settled("s");
  await first.runtime.stop();
  const path = join(place.agentDir, "mcp-cache.json");
  const cache = JSON.parse(await readFile(path, "utf8")) as Stored;
  const stored = cache.servers.s;
  expect(stored?.tools).toContainEqual(
    expect.objectContaining({
      name: "refresh",
      _meta: { ui: { visibility: ["app"] } },
      uiVisibility: ["app"],
    }),
  );

  const second = await start(servers, { place });
  expect((await second.settled("s")).state).toBe("idle");
  const names = async (started: Started) => (await toolsOf(started, "s")).map(([name]) => name);
  expect(await names(second)).not.toContain("refresh");
  expect(await toolsOf(second, "s")).toContainEqual(["always", true]);
  await second.runtime.stop();

  // As the version before kept it: no tool says anything of itself.
  delete stored?.signs;
  for (const tool of stored?.tools ?? []) {
    delete (tool as { _meta?: unknown })._meta;
    delete (tool as { uiVisibility?: unknown }).uiVisibility;
  }
  await writeFile(path, JSON.stringify(cache));
  const third = await start(servers, { place });
  expect((await third.settled("s")).state).toBe("connected");
  expect(await names(third)).not.toContain("refresh");
});
