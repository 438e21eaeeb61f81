/**
 * Owns: both eras of MCP in the real worker: what a session remembers of a server for the next one, the one request of a
 * cold call, negotiating again, and servers over stdio.
 */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { modernServer, VERSION } from "../fixtures/modern-raw/http.ts";
import { answerWell, type Handler, serve } from "../support/http-server.ts";
import { createPlace, fixtures, readIfThere, type Started, start, textOf, until } from "./support.ts";

const HOUR = 3_600_000;
const listing = (ttlMs: number) => ({
  "tools/list": () => ({ tools: [{ name: "echo", inputSchema: { type: "object" } }], ttlMs }),
});

const entryOf = async ({ agentDir }: Pick<Started, "agentDir">): Promise<Record<string, unknown>> => {
  const cache = JSON.parse(await readFile(join(agentDir, "mcp-cache.json"), "utf8")) as {
    servers: Record<string, Record<string, unknown>>;
  };
  return cache.servers.web ?? {};
};

/** A session that has learned the server, and is over. */
async function learned(url: string, more: object = {}) {
  const place = await createPlace();
  const at = await start({ web: { url, ...more } }, { place });
  const status = await at.settled("web");
  await at.runtime.stop();
  return { place, status, log: await at.log() };
}

test("a server of the new era -> shown with its version, remembered, and the next session's first call is one POST", async () => {
  const server = await serve(modernServer(listing(HOUR)));
  const { place, status, log } = await learned(server.url);
  expect(status).toMatchObject({ state: "connected", protocol: VERSION, toolCount: 1 });
  expect(log).toMatch(/web connected over http in \d+ ms, 1 tools, MCP 2026-07-28/);
  expect(await entryOf(place)).toMatchObject({ protocol: { version: VERSION, offers: ["tools"] } });
  const before = server.log.length;

  const at = await start({ web: { url: server.url } }, { place });
  expect(textOf(await at.call("web", "echo", { a: 1 }))).toBe('{"a":1}');
  expect(textOf(await at.call("web", "echo", { a: 2 }))).toBe('{"a":2}');
  expect(await at.settled("web")).toMatchObject({ state: "connected", protocol: VERSION });
  await at.runtime.stop();
  expect(server.log.slice(before)).toEqual(["POST tools/call", "POST tools/call"]);
  expect(await at.log()).toContain("as remembered: nothing was asked");
});

test("a remembered server whose list is old -> the call first, then the list", async () => {
  const server = await serve(modernServer(listing(0)));
  const { place } = await learned(server.url);
  const before = server.log.length;
  const at = await start({ web: { url: server.url } }, { place });
  await at.call("web", "echo");
  await until(async () => (server.log.length >= before + 2 ? true : undefined));
  expect(server.log.slice(before, before + 2)).toEqual(["POST tools/call", "POST tools/list"]);
});

test("a server of the old era -> never remembered, and each session costs it what it did before", async () => {
  const server = await serve(answerWell);
  const { place, status } = await learned(server.url);
  expect(status.protocol).toBe("2025-11-25");
  expect(await entryOf(place)).not.toHaveProperty("protocol");
  const posts = () => server.log.filter((line) => line !== "GET");
  const before = posts().length;
  const at = await start({ web: { url: server.url } }, { place });
  await at.call("web", "echo");
  expect(posts().slice(before)).toEqual([
    "POST initialize",
    "POST notifications/initialized",
    "POST tools/list",
    "POST tools/call",
  ]);
});

test("a remembered server that is of the old era now -> negotiated again, called once, and forgotten", async () => {
  let handler: Handler = modernServer(listing(HOUR));
  const server = await serve((...asked) => handler(...asked));
  const { place } = await learned(server.url);
  const before = server.log.length;
  let isInitialized = false;
  handler = (asked, response) => {
    if (asked.message.method === "initialize") isInitialized = true;
    if (isInitialized) return answerWell(asked, response);
    const error = { code: -32000, message: "Bad Request: No valid session ID provided" };
    const body = JSON.stringify({ jsonrpc: "2.0", id: null, error });
    response.writeHead(400, { "content-type": "application/json" }).end(body);
  };
  const at = await start({ web: { url: server.url } }, { place });
  expect(textOf(await at.call("web", "echo", { a: 1 }))).toBe('{"a":1}');
  expect(await at.settled("web")).toMatchObject({ protocol: "2025-11-25" });
  await at.runtime.stop();
  expect(server.log.slice(before).filter((line) => line !== "GET")).toEqual([
    "POST tools/call",
    "POST initialize",
    "POST notifications/initialized",
    "POST tools/list",
    "POST tools/call",
  ]);
  expect(await entryOf(place)).not.toHaveProperty("protocol");
});

test("a remembered server with a new tool -> a call of it lists the tools first", async () => {
  let tools = [{ name: "echo" }];
  const server = await serve(modernServer({ "tools/list": () => ({ tools, ttlMs: HOUR }) }));
  const { place } = await learned(server.url);
  tools = [{ name: "echo" }, { name: "late" }];
  const at = await start({ web: { url: server.url } }, { place });
  expect(textOf(await at.call("web", "late", { a: 1 }))).toBe('{"a":1}');
});

test("a remembered server that fails once -> the next call asks it first", async () => {
  let isDown = false;
  const modern = modernServer(listing(HOUR));
  const server = await serve((asked, response, nth) =>
    isDown ? response.writeHead(503).end() : modern(asked, response, nth),
  );
  const { place } = await learned(server.url);
  isDown = true;
  const at = await start({ web: { url: server.url } }, { place });
  const before = server.log.length;
  expect((await at.failedCall("web", "echo")).message).toContain("503");
  isDown = false;
  await at.call("web", "echo");
  expect(server.log.slice(before)).toEqual([
    "POST tools/call",
    "POST server/discover",
    "POST tools/list",
    "POST tools/call",
  ]);
});

test('"protocol": "legacy" -> a server of the new era fails with the name of the key', async () => {
  const server = await serve(modernServer());
  const { status } = await learned(server.url, { protocol: "legacy" });
  expect(status).toMatchObject({ state: "failed" });
  expect(status.error?.message).toContain('"protocol": "legacy" forbids');
});

/** An entry of the odd server, and what it was sent so far: one text for each process. */
async function stdio(era: string, more: object = {}) {
  const place = await createPlace();
  const file = join(place.cwd, "asked.txt");
  const entry = (ERA: string) => ({
    command: process.execPath,
    args: [join(fixtures, "modern-raw", "stdio.mjs")],
    env: { ERA, LOG: file },
    ...more,
  });
  const asked = async (): Promise<string[]> => {
    const lines = (await readIfThere(file)).trim().split("\n");
    const byPid = Map.groupBy(lines, (line) => line.split(" ")[0]);
    return [...byPid.values()].map((own) => own.map((line) => line.split(" ")[1]).join(" "));
  };
  return { place, file, entry: entry(era), asked };
}

test("stdio, auto, a server of the new era only -> spoken with in the same process", async () => {
  const { place, entry, asked } = await stdio("modern");
  const at = await start({ web: entry }, { place });
  expect(await at.settled("web")).toMatchObject({ state: "connected", protocol: VERSION, toolCount: 2 });
  expect(textOf(await at.call("web", "echo", { a: 1 }))).toBe('{"a":1}');
  expect(await asked()).toEqual(["initialize server/discover tools/list tools/call"]);
});

test("stdio, auto, a server that ends after it has refused the handshake -> one new start", async () => {
  const { place, entry, asked } = await stdio("modern-exits");
  const at = await start({ web: entry }, { place });
  expect(await at.settled("web")).toMatchObject({ state: "connected", protocol: VERSION });
  const processes = (await asked()).map((line) =>
    line.replace(/^initialize server\/discover$/, "initialize"),
  );
  expect(processes).toEqual(["initialize", "server/discover tools/list"]);
});

test("stdio, auto, a server of the old era -> nothing is asked before its handshake", async () => {
  const { place, entry, asked } = await stdio("legacy-exits");
  const at = await start({ web: entry }, { place });
  expect(await at.settled("web")).toMatchObject({ state: "connected", protocol: "2025-11-25" });
  expect(await asked()).toEqual(["initialize notifications/initialized tools/list"]);
});

test.each(["legacy-exits", "legacy-silent"])(
  "stdio, remembered as modern, and %s at the probe -> the old era after it",
  async (era) => {
    const { place, file, entry, asked } = await stdio("modern");
    const first = await start({ web: { ...entry, env: { LOG: file, ERA_FILE: "x" } } }, { place });
    expect((await first.settled("web")).protocol).toBe(VERSION);
    await first.runtime.stop();
    await writeFile(file, "");
    process.env.ERA = era;
    try {
      const at = await start({ web: { ...entry, env: { LOG: file, ERA_FILE: "x" } } }, { place });
      expect(textOf(await at.call("web", "echo"))).toBe("old");
      expect((await at.settled("web")).protocol).toBe("2025-11-25");
    } finally {
      delete process.env.ERA;
    }
    const old = "initialize notifications/initialized tools/list tools/call";
    const cancelled = "server/discover notifications/cancelled";
    expect(await asked()).toEqual(
      era === "legacy-exits" ? ["server/discover", old] : [`${cancelled} ${old}`],
    );
  },
);

test("stdio: a call that is given up -> notifications/cancelled", async () => {
  const { place, file, entry } = await stdio("modern", { protocol: VERSION });
  const at = await start({ web: entry }, { place });
  await at.settled("web");
  const given = new AbortController();
  const failed = at.failedCall("web", "wait", {}, given.signal);
  await at.event("progress");
  given.abort();
  expect((await failed).code).toBe("cancelled");
  await until(async () =>
    (await readIfThere(file)).includes("notifications/cancelled 2") ? true : undefined,
  );
});
