/**
 * Owns: both eras of MCP in the real worker: what a session remembers of a server for the next one, the one request of a
 * cold call, negotiating again, and servers over stdio.
 */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { modernServer, refuse, sendJson, VERSION } from "../fixtures/modern-raw/http.ts";
import { answerWell, type Handler, serve, type TestServer } from "../support/http-server.ts";
import {
  createPlace,
  fixtures,
  forRows,
  onCleanup,
  readIfThere,
  type Started,
  start,
  textOf,
  until,
} from "./support.ts";

const HOUR = 3_600_000;
const listing = (ttlMs: number) => ({
  "tools/list": () => ({
    tools: [{ name: "echo", inputSchema: { type: "object" } }],
    ttlMs,
    cacheScope: "public",
  }),
});

const entryOf = async (
  { agentDir }: Pick<Started, "agentDir">,
  name: string,
): Promise<Record<string, unknown>> => {
  const cache = JSON.parse(await readFile(join(agentDir, "mcp-cache.json"), "utf8")) as {
    servers: Record<string, Record<string, unknown>>;
  };
  return cache.servers[name] ?? {};
};

/** What the server of that name answers; a test may replace it between two calls. */
const handlers: Record<string, Handler> = {};
let lateTools = [{ name: "echo" }];

/** An agent folder whose first session has learned these servers, and the second session there. */
const shared = forRows(async () => {
  Object.assign(handlers, {
    remembered: modernServer(listing(HOUR)),
    "old-list": modernServer(listing(0)),
    legacy: answerWell,
    becomes: modernServer(listing(HOUR)),
    late: modernServer({ "tools/list": () => ({ tools: lateTools, ttlMs: HOUR, cacheScope: "public" }) }),
    fails: modernServer(listing(HOUR)),
    "fails beside": modernServer(listing(HOUR)),
    "refuses beside": modernServer(listing(HOUR)),
    "becomes beside": modernServer(listing(HOUR)),
    "becomes late": modernServer(listing(HOUR)),
    forbidden: modernServer(),
  });
  const served = Object.keys(handlers).map(
    async (name) => [name, await serve((...asked) => handlers[name]?.(...asked))] as const,
  );
  const servers: Record<string, TestServer> = Object.fromEntries(await Promise.all(served));
  const entries = Object.fromEntries(
    Object.entries(servers).map(([name, { url }]) => [
      name,
      name === "forbidden" ? { url, protocol: "legacy" } : { url },
    ]),
  );
  const place = await createPlace();
  const first = await start(entries, { place });
  await first.runtime.settleTools({ timeoutMs: 40_000 }, undefined);
  const { servers: statuses } = await first.runtime.ask("status", {});
  await first.runtime.stop();
  const log = await first.log();
  const learned = Object.fromEntries(
    await Promise.all(Object.keys(entries).map(async (name) => [name, await entryOf(place, name)] as const)),
  );
  const second = await start(entries, { place });
  return { servers, statuses, log, learned, second };
});

/** The server, what the first session learned of it, the second session, and its requests since now. */
async function learned(name: string) {
  const { servers, statuses, log, learned: entries, second } = await shared();
  const server = servers[name];
  const status = statuses.find((one) => one.name === name);
  if (!server || !status) throw new Error(`no server ${name}`);
  const before = server.log.length;
  const asked = (): string[] => server.log.slice(before).filter((line) => line !== "GET");
  return { status, log, entry: entries[name], at: second, asked };
}

test("a server of the new era -> shown with its version, remembered, and the next session's first call is one POST", async () => {
  const { status, log, entry, at, asked } = await learned("remembered");
  expect(status).toMatchObject({ state: "connected", protocol: VERSION, toolCount: 1 });
  expect(log).toMatch(/remembered connected over http in \d+ ms, 1 tool, MCP 2026-07-28/);
  expect(entry).toMatchObject({ protocol: { version: VERSION, offers: ["tools"] } });
  expect(textOf(await at.call("remembered", "echo", { a: 1 }))).toBe('{"a":1}');
  expect(textOf(await at.call("remembered", "echo", { a: 2 }))).toBe('{"a":2}');
  const { servers } = await at.runtime.ask("status", {});
  expect(servers.find(({ name }) => name === "remembered")).toMatchObject({
    state: "connected",
    protocol: VERSION,
  });
  expect(asked()).toEqual(["POST tools/call", "POST tools/call"]);
  expect(await at.log()).toMatch(/ remembered .*as remembered: nothing was asked/);
});

test("a remembered server whose list is old -> the call first, then the list", async () => {
  const { at, asked } = await learned("old-list");
  await at.call("old-list", "echo");
  await until(async () => asked().length >= 2 || undefined);
  expect(asked().slice(0, 2)).toEqual(["POST tools/call", "POST tools/list"]);
});

test("a server of the old era -> never remembered, and each session costs it what it did before", async () => {
  const { status, entry, at, asked } = await learned("legacy");
  expect(status.protocol).toBe("2025-11-25");
  expect(entry).toHaveProperty("tools");
  expect(entry).not.toHaveProperty("protocol");
  await at.call("legacy", "echo");
  expect(asked()).toEqual([
    "POST initialize",
    "POST notifications/initialized",
    "POST tools/list",
    "POST tools/call",
  ]);
});

/** Refuses what comes before its handshake. */
function oldServer(): Handler {
  let isInitialized = false;
  return (request, response, nth) => {
    if (request.message.method === "initialize") isInitialized = true;
    if (isInitialized) return answerWell(request, response, nth);
    refuse(response, 400, { code: -32000, message: "Bad Request: No valid session ID provided" });
  };
}

test("a remembered server that is of the old era now -> negotiated again, called once, and forgotten", async () => {
  const { entry, at, asked } = await learned("becomes");
  expect(entry).toHaveProperty("protocol");
  handlers.becomes = oldServer();
  expect(textOf(await at.call("becomes", "echo", { a: 1 }))).toBe('{"a":1}');
  const { servers } = await at.runtime.ask("status", {});
  expect(servers.find(({ name }) => name === "becomes")).toMatchObject({ protocol: "2025-11-25" });
  expect(asked()).toEqual([
    "POST tools/call",
    "POST initialize",
    "POST notifications/initialized",
    "POST tools/list",
    "POST tools/call",
  ]);
  await until(async () => !("protocol" in (await entryOf(at, "becomes"))) || undefined);
});

test("a remembered server with a new tool -> a call of it asks the server first", async () => {
  const { at, asked } = await learned("late");
  lateTools = [{ name: "echo" }, { name: "late" }];
  expect(textOf(await at.call("late", "late", { a: 1 }))).toBe('{"a":1}');
  expect(asked()).toEqual(["POST server/discover", "POST tools/list", "POST tools/call"]);
});

test("a remembered server with a new tool that is of the old era now -> a call of the tool finds it", async () => {
  const { at, asked } = await learned("becomes late");
  const old = oldServer();
  handlers["becomes late"] = (request, response, nth) => {
    const { id, method } = request.message;
    if (method !== "tools/list" || request.headers["mcp-protocol-version"] === VERSION)
      return old(request, response, nth);
    const tools = [{ name: "late", inputSchema: { type: "object" } }];
    sendJson(response, 200, { jsonrpc: "2.0", id, result: { tools } });
  };
  expect(textOf(await at.call("becomes late", "late", { a: 1 }))).toBe('{"a":1}');
  expect(asked().slice(-2)).toEqual(["POST tools/list", "POST tools/call"]);
});

test("a remembered server that fails once -> the next call asks it first", async () => {
  const { at, asked } = await learned("fails");
  const works = handlers.fails;
  handlers.fails = (_asked, response) => response.writeHead(503).end();
  expect((await at.failedCall("fails", "echo")).message).toContain("503");
  Object.assign(handlers, { fails: works });
  await at.call("fails", "echo");
  expect(asked()).toEqual(["POST tools/call", "POST server/discover", "POST tools/list", "POST tools/call"]);
});

test.each<[string, Handler]>([
  ["fails beside", (_asked, response) => response.writeHead(503).end()],
  [
    "refuses beside",
    ({ message }, response) => refuse(response, 400, { code: -32602, message: "no such a" }, message.id),
  ],
])(
  "a remembered server (%s) that fails one of two calls -> the other is answered; the next call asks it first",
  async (name, fail) => {
    const { at, asked } = await learned(name);
    const works = handlers[name];
    const cutOff: string[] = [];
    const slow = Promise.withResolvers<() => void>();
    handlers[name] = (request, response, nth) => {
      const { method, params } = request.message;
      const { a } = (params?.arguments ?? {}) as { a?: string };
      if (method === "tools/call" && a === "bad") return fail(request, response, nth);
      if (method !== "tools/call" || a !== "slow") return works?.(request, response, nth);
      response.on("close", () => !response.writableFinished && cutOff.push("slow"));
      slow.resolve(() => works?.(request, response, nth));
    };
    const answered = at.call(name, "echo", { a: "slow" });
    const answer = await slow.promise;
    await at.failedCall(name, "echo", { a: "bad" });
    // The connection in its place is open while the slow call still runs over the one before.
    expect(textOf(await at.call(name, "echo", { a: "next" }))).toBe('{"a":"next"}');
    answer();
    expect(textOf(await answered)).toBe('{"a":"slow"}');
    expect(cutOff).toEqual([]);
    const calls = Array.from({ length: 2 }, () => "POST tools/call");
    expect(asked()).toEqual([...calls, "POST server/discover", "POST tools/list", "POST tools/call"]);
  },
);

test("a remembered server that is of the old era now, two calls at once -> both answered, negotiated once, each run once", async () => {
  const { at, asked } = await learned("becomes beside");
  const old = oldServer();
  const early = Promise.withResolvers<() => void>();
  handlers["becomes beside"] = (request, response, nth) => {
    const { a } = (request.message.params?.arguments ?? {}) as { a?: string };
    const isEarly = a === "early" && request.headers["mcp-protocol-version"] === VERSION;
    if (!isEarly) return old(request, response, nth);
    early.resolve(() => refuse(response, 400, { code: -32000, message: "No session" }));
  };
  const first = at.call("becomes beside", "echo", { a: "early" });
  const refuseEarly = await early.promise;
  expect(textOf(await at.call("becomes beside", "echo", { a: "late" }))).toBe('{"a":"late"}');
  refuseEarly();
  expect(textOf(await first)).toBe('{"a":"early"}');
  expect(asked()).toEqual([
    "POST tools/call",
    "POST tools/call",
    "POST initialize",
    "POST notifications/initialized",
    "POST tools/list",
    "POST tools/call",
    "POST tools/call",
  ]);
});

test('"protocol": "legacy" -> a server of the new era fails with the name of the key', async () => {
  const { status } = await learned("forbidden");
  expect(status).toMatchObject({ state: "failed" });
  expect(status.error?.message).toContain('"protocol": "legacy" forbids');
});

/** What the odd server was sent so far: one text for each process. */
const askedOver = async (file: string): Promise<string[]> => {
  const lines = (await readIfThere(file)).trim().split("\n");
  const byPid = Map.groupBy(lines, (line) => line.split(" ")[0]);
  return [...byPid.values()].map((own) => own.map((line) => line.split(" ")[1]).join(" "));
};
const odd = (env: Record<string, string>, more: object = {}) => ({
  command: process.execPath,
  args: [join(fixtures, "modern-raw", "stdio.mjs")],
  env,
  ...more,
});

/** One worker with a server over stdio for each test, whose file says what it was sent. */
const overStdio = forRows(async () => {
  const place = await createPlace();
  const file = (name: string): string => join(place.cwd, name);
  const entry = (ERA: string, more: object = {}) => [ERA, odd({ ERA, LOG: file(ERA) }, more)] as const;
  const names = ["modern", "modern-exits", "modern-exits-first", "legacy-exits"];
  const at = await start(
    {
      ...Object.fromEntries(names.map((name) => entry(name))),
      given: odd({ ERA: "modern", LOG: file("given") }, { protocol: VERSION }),
    },
    { place },
  );
  await at.runtime.settleTools({ timeoutMs: 40_000 }, undefined);
  return { at, file };
});

test("stdio, auto, a server of the new era only -> spoken with in the same process", async () => {
  const { at, file } = await overStdio();
  expect(await at.settled("modern")).toMatchObject({ state: "connected", protocol: VERSION, toolCount: 2 });
  expect(textOf(await at.call("modern", "echo", { a: 1 }))).toBe('{"a":1}');
  expect(await askedOver(file("modern"))).toEqual(["initialize server/discover tools/list tools/call"]);
});

test("stdio, auto, a server that ends after it has refused the handshake -> one new start", async () => {
  const { at, file } = await overStdio();
  expect(await at.settled("modern-exits")).toMatchObject({ state: "connected", protocol: VERSION });
  const processes = (await askedOver(file("modern-exits"))).map((line) =>
    line.replace(/^initialize server\/discover$/, "initialize"),
  );
  expect(processes).toEqual(["initialize", "server/discover tools/list"]);
});

test("stdio, auto, a server that has ended when its refusal arrives -> one new start", async () => {
  const { at, file } = await overStdio();
  const status = await at.settled("modern-exits-first");
  expect(status).toMatchObject({ state: "connected", protocol: VERSION });
  expect(await askedOver(file("modern-exits-first"))).toEqual(["initialize", "server/discover tools/list"]);
});

test("stdio, auto, a server of the old era -> nothing is asked before its handshake", async () => {
  const { at, file } = await overStdio();
  expect(await at.settled("legacy-exits")).toMatchObject({ state: "connected", protocol: "2025-11-25" });
  expect(await askedOver(file("legacy-exits"))).toEqual(["initialize notifications/initialized tools/list"]);
});

test("stdio, remembered as modern, and legacy-exits or legacy-silent at the probe -> the old era after it", {
  tags: "thorough",
}, async () => {
  const place = await createPlace();
  const ERAS = ["legacy-exits", "legacy-silent"];
  const file = (era: string): string => join(place.cwd, era);
  // The variable that each names changes between the sessions, the definitions do not.
  const entries = Object.fromEntries(
    ERAS.map((era) => [era, { ...odd({ LOG: file(era), ERA: `\${ERA_OF_${era.slice(7)}:-modern}` }) }]),
  );
  const first = await start(entries, { place });
  for (const era of ERAS) expect((await first.settled(era)).protocol).toBe(VERSION);
  await first.runtime.stop();
  for (const era of ERAS) {
    await writeFile(file(era), "");
    vi.stubEnv(`ERA_OF_${era.slice(7)}`, era);
  }
  onCleanup(() => void vi.unstubAllEnvs());
  const at = await start(entries, { place });
  for (const era of ERAS) {
    expect(textOf(await at.call(era, "echo"))).toBe("old");
    expect((await at.settled(era)).protocol).toBe("2025-11-25");
  }
  const old = "initialize notifications/initialized tools/list tools/call";
  expect(await askedOver(file("legacy-exits"))).toEqual(["server/discover", old]);
  expect(await askedOver(file("legacy-silent"))).toEqual([`server/discover notifications/cancelled ${old}`]);
});

test("stdio: a call that is given up -> notifications/cancelled", async () => {
  const { at, file } = await overStdio();
  const given = new AbortController();
  const failed = at.failedCall("given", "wait", {}, given.signal);
  await at.event("progress");
  given.abort();
  expect((await failed).code).toBe("cancelled");
  await until(
    async () => (await readIfThere(file("given"))).includes("notifications/cancelled 2") || undefined,
  );
});
