/** Owns: resources as tools, through the real connection worker and real servers. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { type CallResult, decode } from "../../src/shared/protocol/calls.ts";
import {
  createPlace,
  currentCatalog,
  everything,
  fixture,
  forRows,
  type Started,
  start,
  textOf,
  until,
} from "./support.ts";

/** Names of the server's tools in the current catalog. */
const catalogOf = async (started: Started, server: string): Promise<string[]> =>
  (await currentCatalog(started)).tools.filter((tool) => tool.server.name === server).map(({ name }) => name);

interface StoredCache {
  servers: Record<string, { resources: unknown[]; resourceTemplates: unknown[]; prompts: unknown[] }>;
}

/** Rules for the resources of a server whose result links to them. */
const LINKING = { plain: {}, prefixed: { toolPrefix: "mcp" }, some: { excludeTools: ["get_row"] } };
const RULES = { excludeTools: ["get_note*", "ruled__get_x_bare"], toolExposure: { "get_b*": "hidden" } };

/** One worker with the servers of nearly all tests. */
const shared = forRows(async () => {
  const resources = (more: Record<string, unknown> = {}) => fixture("resources.mjs", {}, more);
  const started = await start({
    everything: everything(),
    s: resources(),
    off: resources({ exposeResources: false }),
    ruled: resources(RULES),
    ...Object.fromEntries(Object.entries(LINKING).map(([name, rules]) => [name, resources(rules)])),
    "a-b": resources(),
    a_b: resources(),
    none: fixture("resources.mjs", { RESOURCES: "none" }),
    hang: fixture("resources.mjs", { RESOURCES: "hang" }),
    many: fixture("resources.mjs", { COUNT: "300" }),
  });
  await started.runtime.settleTools({ timeoutMs: 40_000 }, undefined);
  return started;
});

test("server-everything has resources and templates -> tools that read them", async () => {
  const started = await shared();
  const names = await catalogOf(started, "everything");
  expect(names).toContain("everything__echo");
  expect(names).toContain("everything__get_architecture_md");
  expect(names).toContain("everything__get_dynamic_text_resource");

  const read = textOf(await started.call("everything", "get_architecture_md"));
  expect(read).toMatch(/^\[Resource: demo:\/\/resource\/static\/document\/architecture\.md\]\n/);
  const text = textOf(await started.call("everything", "get_dynamic_text_resource", { resourceId: "7" }));
  expect(text).toMatch(/^\[Resource: demo:\/\/resource\/dynamic\/text\/7\]\nResource 7: /);
  const blob = textOf(await started.call("everything", "get_dynamic_blob_resource", { resourceId: "7" }));
  expect(blob).toMatch(/Resource 7: This is a base64 blob/);

  const failure = await started.failedCall("everything", "get_dynamic_text_resource", {
    resourceId: "x/../1",
  });
  expect(failure.code).toBe("call_rejected");
  expect(failure.message).toContain("x%2F..%2F1");
  expect((await started.failedCall("everything", "get_nothing")).code).toBe("unknown_tool");
});

test("resources on several pages -> tools; same names get a hash, malformed ones are left out, a new one appears", async () => {
  const started = await shared();
  const names = await catalogOf(started, "s");
  expect(names.map((name) => name.replace(/_[0-9a-z]{6}$/, "_HASH"))).toEqual([
    "s__add",
    "s__get_row",
    "s__get_note_HASH",
    "s__get_note_HASH",
    "s__get_pixel",
    "s__get_bytes",
    "s__get_x_bare",
  ]);
  expect((await started.call("s", "get_pixel")).content[1]).toMatchObject({
    type: "image",
    mimeType: "image/png",
  });
  expect(textOf(await started.call("s", "get_bytes"))).toMatch(/Saved to .*\.zip \(application\/zip/);
  expect(textOf(await started.call("s", "get_row", { table: "a/b", id: "1" }))).toContain(
    "text of db://a%2Fb/1",
  );

  await started.call("s", "add");
  await until(async () => (await catalogOf(started, "s")).includes("s__get_added") || undefined);
  expect(textOf(await started.call("s", "get_added"))).toContain("text of x://added");
  // The template was listed twice but is reported once.
  const told = " s has resource templates that no one could fill in, so they are not tools: ";
  const lines = (await started.log()).split("\n").filter((line) => line.includes(told));
  expect(lines.map((line) => line.slice(line.indexOf(told) + told.length))).toEqual(['"{"']);
});

const mentions = async ({ runtime }: Started, typed: string): Promise<string[]> =>
  (await runtime.ask("suggestResources", { typed })).map(({ mention }) => mention);

test("a person lists, finds and reads resources by hand -> as part of a message; listing and finding start no server", async () => {
  const started = await shared();
  expect(await started.runtime.ask("listResources", { server: "off" })).toEqual([
    { server: "off", resources: undefined, templates: [] },
  ]);
  const [listed] = await started.runtime.ask("listResources", { server: "everything" });
  expect(listed?.resources?.[0]).toEqual({
    uri: "demo://resource/static/document/architecture.md",
    title: expect.stringContaining("architecture.md"),
  });
  expect(listed?.templates.map(({ uri }) => uri)).toContain("demo://resource/dynamic/text/{resourceId}");
  const architecture = "everything:demo://resource/static/document/architecture.md";
  expect(await mentions(started, "ARCHITECT")).toEqual([architecture]);
  expect((await mentions(started, "everything:demo")).length).toBeGreaterThan(1);
  expect(await mentions(started, "off:")).toEqual([]);

  const read = async (server: string, uri: string) =>
    decode(await started.runtime.ask("readResource", { server, uri })) as CallResult;
  expect(textOf(await read("everything", "demo://resource/dynamic/text/7"))).toMatch(
    /^\[Resource: demo:\/\/resource\/dynamic\/text\/7\]\nResource 7: /,
  );
  expect((await read("off", "x://pixel")).content).toContainEqual(expect.objectContaining({ type: "image" }));
  await expect(read("everything", "demo://nothing")).rejects.toMatchObject({ code: "call_rejected" });
  await expect(read("nobody", "x://a")).rejects.toMatchObject({ code: "unknown_server" });
});

test("a file of a skill -> never proposed, and no mention of it brings its text; the shell reads it", async () => {
  const server = fixture("skills.mjs");
  const args = [...(server.args as string[]), join(import.meta.dirname, "..", "fixtures", "skills")];
  const started = await start({ docs: { ...server, args } });
  await started.runtime.settleTools({ timeoutMs: 40_000 }, undefined);
  const uri = "skill://pdf-processing/SKILL.md";
  expect((await started.runtime.ask("listResources", { server: "docs" }))[0]?.resources).toContainEqual(
    expect.objectContaining({ uri }),
  );
  expect(await mentions(started, "docs:skill")).toEqual([]);
  await expect(started.runtime.ask("readResource", { server: "docs", uri })).rejects.toMatchObject({
    message: expect.stringContaining("is a file of the skill pdf-processing"),
  });
  const read = { server: "docs", uri, wantsStructured: true } as const;
  expect(textOf(decode(await started.runtime.ask("readResource", read)) as CallResult)).toContain("pdf");
});

test("a server that is off for the session -> neither suggested nor listed with the others, and nothing of it is read or started; on -> all of it", async () => {
  const started = await start({ everything: everything() });
  await started.runtime.settleTools({ timeoutMs: 40_000 }, undefined);
  const session = async (enabled: boolean) =>
    started.runtime.ask("setEnabled", { server: "everything", enabled, project: false, session: true });
  const uri = "demo://resource/static/document/architecture.md";
  const listed = async () => (await started.runtime.ask("listResources", { server: undefined })).length;
  const offered = [
    async () => started.runtime.ask("readResource", { server: "everything", uri }),
    async () => started.runtime.ask("getPrompt", { server: "everything", prompt: "simple-prompt", args: {} }),
  ];
  expect(await mentions(started, "architect")).toEqual([`everything:${uri}`]);
  await session(false);
  expect(await mentions(started, "architect")).toEqual([]);
  expect(await listed()).toBe(0);
  const said = { code: "server_disabled", message: "everything is switched off for this session." };
  for (const use of offered) await expect(use()).rejects.toMatchObject(said);
  const { servers } = await started.runtime.ask("status", {});
  expect(servers[0]).toMatchObject({ state: "disabled", isOff: true });
  expect(servers[0]?.pid).toBeUndefined();

  await session(true);
  for (const use of offered) await use();
  expect(await mentions(started, "architect")).toEqual([`everything:${uri}`]);
  expect(await listed()).toBe(1);
});

test("the next start -> knows the resources from the cache without connecting", {
  tags: "thorough",
}, async () => {
  const place = await createPlace();
  const servers = { s: fixture("resources.mjs") };
  const first = await start(servers, { place });
  await first.settled("s");
  await first.runtime.stop();
  const cache = JSON.parse(await readFile(join(place.agentDir, "mcp-cache.json"), "utf8")) as StoredCache;
  expect(cache.servers.s?.resources).toContainEqual({
    uri: "x://pixel/2",
    name: "pixel",
    mimeType: "text/plain",
  });
  expect(cache.servers.s?.resourceTemplates).toEqual([
    { uriTemplate: "db://{table}/{id}", name: "row" },
    { uriTemplate: "{", name: "{" },
  ]);
  // Prompts are stored for other readers of the cache; the model does not see them.
  expect(cache.servers.s?.prompts).toEqual([
    { name: "ask", description: "Asks.", arguments: [{ name: "what", required: true }] },
    { name: "tell" },
  ]);

  const second = await start(servers, { place });
  const { state } = await second.settled("s");
  expect(state).toBe("idle");
  expect(await catalogOf(second, "s")).toContain("s__get_pixel");
  expect(textOf(await second.call("s", "get_row", { table: "t", id: "1" }))).toContain("db://t/1");
});

test("exposeResources: false -> no resource is a tool, and no list is requested", async () => {
  const started = await shared();
  expect(await catalogOf(started, "off")).toEqual(["off__add"]);
  expect((await started.failedCall("off", "get_pixel")).code).toBe("unknown_tool");
});

test("excludeTools and toolExposure name resources -> the rules apply as to tools", async () => {
  expect(await catalogOf(await shared(), "ruled")).toEqual([
    "ruled__add",
    "ruled__get_row",
    "ruled__get_pixel",
  ]);
});

describe("a link in a result", () => {
  const links = ["x://pixel/2", "db://a%2Fb/1", "x://gone", "https://a.test/x"];
  const cannot = (server: string): string =>
    `The MCP server ${server} wrote this link and has no tool that reads it.`;

  test.each<[string, string, string[]]>([
    [
      "names the tool that reads it, for a template with the arguments",
      "plain",
      [
        "Read it with the tool plain__get_pixel.",
        'Read it with the tool plain__get_row and {"table":"a/b","id":"1"}.',
        cannot("plain"),
        cannot("plain"),
      ],
    ],
    [
      "names the tool with toolPrefix",
      "prefixed",
      [
        "Read it with the tool mcp__prefixed__get_pixel.",
        'Read it with the tool mcp__prefixed__get_row and {"table":"a/b","id":"1"}.',
        cannot("prefixed"),
        cannot("prefixed"),
      ],
    ],
    [
      "does not name an excluded tool",
      "some",
      ["Read it with the tool some__get_pixel.", cannot("some"), cannot("some"), cannot("some")],
    ],
    [
      "names no tool if resources are off",
      "off",
      [cannot("off"), cannot("off"), cannot("off"), cannot("off")],
    ],
  ])("%s", async (_name, server, expected) => {
    const text = textOf(await (await shared()).call(server, "add", { links }));
    expect(text.split("\n").filter((line) => !line.startsWith("[Resource link:"))).toEqual(expected);
  });

  test("two servers whose tools have the same name -> the link uses the tool's final name", async () => {
    const started = await shared();
    const text = textOf(await started.call("a_b", "add", { links: ["x://pixel/2"] }));
    const name = /tool (a_b__get_pixel_\w{6})\.$/.exec(text)?.[1];
    await until(async () => ((await catalogOf(started, "a_b")).includes(name ?? "") ? true : undefined));
    const other = textOf(await started.call("a-b", "add", { links: ["x://pixel/2"] }));
    expect(other).toMatch(/tool a_b__get_pixel_\w{6}\.$/);
    expect(other).not.toBe(text);
  });
});

test("resource lists that fail or never come -> the tools work, the failure is in the log", async () => {
  const started = await shared();
  expect(await catalogOf(started, "none")).toEqual(["none__add"]);
  expect(await catalogOf(started, "hang")).toEqual(["hang__add"]);
  expect(await started.log()).toContain("none does not list its resources: MCP error -32603: broken");
});

test("300 resources -> 200 tools, and one line in the log", async () => {
  const started = await shared();
  // The broken template counts too.
  expect(await catalogOf(started, "many")).toHaveLength(200);
  const line = "many has more than 200 resources: only the first 200 are offered as tools";
  await until(async () => ((await started.log()).includes(line) ? true : undefined));
});
