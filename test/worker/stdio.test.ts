/** Owns: the real connection worker with working and faulty servers over stdio. */
import { readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it, test } from "vitest";
import { searchCatalog } from "../../src/catalog/search.ts";
import { readCatalog } from "../../src/catalog/store.ts";
import { sized } from "../support/long.ts";
import { waitGone } from "../support/processes.ts";
import {
  BUILDS,
  createPlace,
  currentCatalog,
  endAll,
  everything,
  filesystem,
  fixture,
  forRows,
  memory,
  newestCatalog,
  readIfThere,
  type Started,
  start,
  textOf,
  until,
} from "./support.ts";

describe.each(BUILDS)("connection worker (%s): three servers from npm", (build) => {
  test("three servers connect -> tools, calls and files are right", async () => {
    const place = await createPlace();
    await writeFile(join(place.cwd, "a.txt"), "content of a");
    const servers = {
      everything: everything(),
      "file-system": filesystem(place.cwd),
      memory: memory(join(place.agentDir, "memory.json")),
    };
    const at = await start(servers, { build, place });
    expect(await at.runtime.settleTools({ timeoutMs: 40_000 }, undefined)).toEqual([]);
    const { checksum } = newestCatalog(at);
    const { servers: statuses, problems } = await at.runtime.ask("status", {});
    expect(problems).toEqual([]);
    expect(statuses.map(({ name, state, transport }) => [name, state, transport])).toEqual([
      ["everything", "connected", "stdio"],
      ["file-system", "connected", "stdio"],
      ["memory", "connected", "stdio"],
    ]);
    for (const status of statuses) expect(status.toolCount).toBeGreaterThan(5);

    await until(async () => readCatalog(at.agentDir, { cwd: at.cwd }).checksum === checksum || undefined);
    const catalog = readCatalog(at.agentDir, { cwd: at.cwd });
    expect(catalog.tools).toHaveLength(
      statuses.reduce((sum, { toolCount, resourceCount }) => sum + toolCount + resourceCount, 0),
    );
    expect(catalog.get("file_system__read_text_file")?.tool).toBe("read_text_file");
    expect(searchCatalog(catalog, "echo", 1).hits.map(({ tool }) => tool.name)).toEqual(["everything__echo"]);
    // The cache file may come after the snapshot, which does not wait for it.
    const stored = await until(async () => {
      const text = await readFile(join(at.agentDir, "mcp-cache.json"), "utf8").catch(() => undefined);
      const names = text === undefined ? [] : Object.keys(JSON.parse(text).servers).sort();
      return names.length === 3 ? names : undefined;
    });
    expect(stored).toEqual(["everything", "file-system", "memory"]);
    for (const file of ["mcp-cache.json", "mcp-threads.log"]) {
      expect((await stat(join(at.agentDir, file))).mode & 0o777).toBe(0o600);
    }

    const echo = await at.call("everything", "echo", { message: "é漢😀" });
    expect(echo).toMatchObject({ isError: false, content: [{ type: "text", text: "Echo: é漢😀" }] });
    const image = await at.call("everything", "get-tiny-image");
    expect(image.content.map(({ type }) => type)).toEqual(["text", "image", "text"]);
    expect(image.content[1]).toMatchObject({ mimeType: "image/png", data: expect.stringMatching(/^iVBOR/) });
    expect(textOf(await at.call("file-system", "read_text_file", { path: join(at.cwd, "a.txt") }))).toBe(
      "content of a",
    );
    const missing = await at.call("file-system", "read_text_file", { path: join(at.cwd, "none.txt") });
    expect(missing.isError).toBe(true);
    expect(textOf(missing)).toContain("ENOENT");
    expect(await at.failedCall("everything", "no-such-tool")).toMatchObject({
      code: "unknown_tool",
      data: { server: "everything" },
    });
    expect(await at.failedCall("nobody", "echo")).toMatchObject({
      code: "unknown_server",
      data: { known: ["everything", "file-system", "memory"] },
    });

    const pids = statuses.flatMap(({ pid }) => (pid === undefined ? [] : [pid]));
    expect(pids).toHaveLength(3);
    await endAll(at);
    expect(await waitGone(pids)).toEqual([]);
    expect(at.crashes).toEqual([]);
  });
});

/** An agent folder whose first session knew these servers; the tests start further ones there, one after the other. */
const KNOWN = { everything: everything(), files: filesystem(".") };
const knownPlace = forRows(async () => {
  const at = await start(KNOWN);
  const { runtime, agentDir, cwd } = at;
  expect(await runtime.settleTools({ timeoutMs: 40_000 }, undefined)).toEqual([]);
  const { checksum } = newestCatalog(at);
  await runtime.stop();
  const log = (): Promise<string> => readFile(join(agentDir, "mcp-threads.log"), "utf8");
  return { place: { agentDir, cwd }, checksum, log };
});

describe("connection worker: a second start on the same agent folder", () => {
  test("the same servers and the snapshot's checksum -> nothing connects, no catalog event, calls connect", async () => {
    const { place, checksum, log } = await knownPlace();
    const before = (await log()).length;
    const second = await start(KNOWN, { place, facts: { snapshotChecksum: checksum } });
    const settled = await second.runtime.settleTools({ timeoutMs: 40_000 }, undefined);
    expect(settled).toEqual([]);
    expect(await second.settled("everything")).toMatchObject({ state: "idle", toolsKnown: true });
    expect(second.events.filter(({ type }) => type === "spawned" || type === "catalog")).toEqual([]);
    const called = await second.call("everything", "echo", { message: "again" });
    expect(textOf(called)).toBe("Echo: again");
    await second.runtime.stop();
    expect(second.events.filter(({ type }) => type === "catalog")).toEqual([]);
    const written = (await log()).slice(before);
    expect(written).not.toContain("snapshot written");
    // The packed code knows the stored snapshot by its fingerprint. The catalog is compared once, at the start; the same
    // list of the connected server causes no second time.
    expect(written.match(/tools of 2 servers as stored/g)).toHaveLength(1);
  });

  test("without the checksum -> one catalog event with the same tools", async () => {
    const { place, checksum } = await knownPlace();
    const second = await start(KNOWN, { place });
    const settled = await second.runtime.settleTools({ timeoutMs: 40_000 }, undefined);
    expect([settled, newestCatalog(second).checksum]).toEqual([[], checksum]);
  });

  test("other code, here the raw worker -> does not use the packed code's snapshot, and makes the same", {
    tags: "thorough",
  }, async () => {
    const { place, checksum, log } = await knownPlace();
    const before = (await log()).length;
    const second = await start(KNOWN, { build: "raw", place, facts: { snapshotChecksum: checksum } });
    const settled = await second.runtime.settleTools({ timeoutMs: 40_000 }, undefined);
    expect(settled).toEqual([]);
    await second.runtime.stop();
    expect(second.events.filter(({ type }) => type === "catalog")).toEqual([]);
    expect((await log()).slice(before)).toMatch(/tools of 2 servers indexed/);
  });

  test("a server with other arguments -> connected, because its cache entry does not fit", async () => {
    const { place } = await knownPlace();
    const second = await start({ files: fixture("pages.mjs") }, { place });
    expect(await second.settled("files")).toMatchObject({ state: "connected", toolCount: 4 });
  });
});

/** One worker with a server for each test; some cannot be started or connected. */
const shared = forRows(async () => {
  const place = await createPlace();
  const record = (name: string): string => join(place.cwd, name);
  const recorded = (name: string): Promise<string> => readIfThere(record(name));
  const servers = {
    prints: fixture("garbage.mjs"),
    exits: fixture("exits.mjs"),
    nothing: { command: "/no/such/command" },
    nowhere: { command: process.execPath, cwd: "/no/such/folder" },
    noisy: fixture("noisy.mjs"),
    pages: fixture("pages.mjs"),
    everything: everything(),
    dies: fixture("dies-in-call.mjs"),
    rejects: fixture("rejects.mjs"),
    slow: fixture("records.mjs", { RECORD: record("slow") }, { requestTimeoutMs: 50 }),
    hangs: fixture("hangs.mjs", {}, { startupTimeoutMs: 100 }),
    off: { ...everything(), enabled: false },
    records: fixture("records.mjs", { RECORD: record("records") }),
    results: fixture("results.mjs"),
    dropped: fixture(
      "with-child.mjs",
      { RECORD: record("child"), CHILD_STDIO: "inherit" },
      { requestTimeoutMs: 8_000 },
    ),
  };
  return { at: await start(servers, { place }), recorded };
});
const spawnsOf = ({ events }: Started, name: string): number =>
  events.filter((event) => event.type === "spawned" && event.server === name).length;

describe("connection worker: servers that print lines that are not messages", () => {
  test("lines between messages -> the server works, the lines are in the log", async () => {
    const { at } = await shared();
    expect(await at.settled("noisy")).toMatchObject({ state: "connected", toolCount: 1 });
    for (let i = 0; i < 3; i++) expect(textOf(await at.call("noisy", "work"))).toBe("through the noise");
    await until(async () => (await at.log()).includes("Starting...") || undefined);
  });

  it.each([
    ["prints only garbage and ends", "prints", /exited with code 0/],
    ["writes to stderr and exits", "exits", /exited with code 3.*no licence found/s],
  ])("a server that %s -> failed, with its exit code and its stderr", async (_name, server, message) => {
    const { at } = await shared();
    const status = await at.settled(server);
    expect(status).toMatchObject({ state: "failed", toolsKnown: false, error: { code: "connect_failed" } });
    expect(status.error?.message).toMatch(message);
    // Its own last words say more than an advice to look for them.
    expect(status.error?.remedy).toBeUndefined();
    expect(await at.failedCall(server, "work")).toMatchObject({ code: "connect_failed" });
  });

  test("a tool list in pages, with a repeated cursor and malformed tools -> every good tool, once", async () => {
    const { at } = await shared();
    expect(await at.settled("pages")).toMatchObject({ state: "connected", toolCount: 4 });
    const catalog = await currentCatalog(at);
    expect(catalog.tools.map(({ name }) => name)).toEqual(
      expect.arrayContaining(["pages__one", "pages__two", "pages__three", "everything__echo"]),
    );
    expect(catalog.tools.filter(({ server }) => server.name === "pages")).toHaveLength(4);
    expect(catalog.get("pages__one")?.description).toBe("Does one.");
  });
});

describe("connection worker: servers that fail", () => {
  it.each([
    ["a command that does not exist", "/no/such/command", "nothing"],
    ["a working directory that does not exist", "/no/such/folder", "nowhere"],
  ])("%s -> spawn_failed that names %s", async (_name, culprit, server) => {
    const { at } = await shared();
    const status = await at.settled(server);
    expect(status).toMatchObject({ state: "failed", error: { code: "spawn_failed" } });
    expect(status.error?.message).toContain(culprit);
    expect(spawnsOf(at, server)).toBe(0);
  });

  test("a server that exits during a call -> server_died with stderr; the next call connects again", async () => {
    const { at } = await shared();
    for (let i = 0; i < 2; i++) {
      const error = await at.failedCall("dies", "work");
      expect(error).toMatchObject({ code: "server_died", data: { server: "dies" } });
      expect(error.message).toMatch(/exited with code 7.*out of ink/s);
    }
    await expect.poll(() => spawnsOf(at, "dies")).toBe(2);
  });

  test("a server that answers a JSON-RPC error -> call_rejected with its code and words", async () => {
    const { at } = await shared();
    const error = await at.failedCall("rejects", "work");
    expect(error).toMatchObject({ code: "call_rejected", data: { server: "rejects", rpcCode: -32050 } });
    expect(error.message).toContain("the printer is on fire");
  });

  test("a server without an answer to a call -> call_timeout", async () => {
    const { at } = await shared();
    expect(await at.failedCall("slow", "work")).toMatchObject({
      code: "call_timeout",
      data: { server: "slow", timeoutMs: 50 },
    });
  });

  test("a server that hangs longer than startupTimeoutMs -> connect_timeout, its process is gone", async () => {
    const { at } = await shared();
    expect(await at.settled("hangs")).toMatchObject({
      state: "failed",
      error: { code: "connect_timeout", data: { server: "hangs", timeoutMs: 100 } },
    });
    const { pid } = await at.event("spawned", ({ server }) => server === "hangs");
    expect(await waitGone([pid])).toEqual([]);
  });

  test("a disabled server -> not started; a call says so", async () => {
    const { at } = await shared();
    expect(await at.settled("off")).toMatchObject({ state: "disabled" });
    expect(await at.failedCall("off", "echo")).toMatchObject({ code: "server_disabled" });
    expect(spawnsOf(at, "off")).toBe(0);
  });
});

describe("connection worker: a call under way", () => {
  test("abort -> cancelled, and the server gets notifications/cancelled", async () => {
    const { at, recorded } = await shared();
    const controller = new AbortController();
    const failed = at.failedCall("records", "work", {}, controller.signal);
    await until(async () => (await recorded("records")).includes("tools/call") || undefined);
    controller.abort();
    expect(await failed).toMatchObject({ code: "cancelled" });
    await until(async () => (await recorded("records")).includes("notifications/cancelled") || undefined);
  });

  test("arguments with Unicode line ends, at which Node's readline splits -> arrive unchanged", async () => {
    const { at } = await shared();
    const text = "one\u2028two\u2029three";
    const result = await at.call("results", "answer", { content: [{ type: "text", text }] });
    // The model reads plain line ends, and the file that the result names has what the server sent.
    expect(await readFile(String(result.storedAt), "utf8")).toBe(text);
  });

  test("progress -> events with the call's id and the server's words", async () => {
    const { at } = await shared();
    const params = { callId: "with progress", server: "everything" };
    const [tool, args] = ["trigger-long-running-operation", { duration: 0.2, steps: 2 }];
    expect((await at.runtime.callTool({ ...params, tool, args }, undefined)).isError).toBe(false);
    expect(await at.event("progress")).toMatchObject({
      callId: "with progress",
      message: expect.stringMatching(/./),
    });
  });

  test("a server hangs in initialize -> another one is called; at stop the open call fails, and both are gone", async () => {
    const place = await createPlace();
    const RECORD = join(place.cwd, "record");
    const at = await start(
      { hangs: fixture("hangs.mjs"), records: fixture("records.mjs", { RECORD }) },
      { place },
    );
    const failed = at.failedCall("records", "work");
    await until(async () => (await readIfThere(RECORD)).includes("tools/call") || undefined);
    const { servers } = await at.runtime.ask("status", {});
    expect(servers.find(({ name }) => name === "hangs")).toMatchObject({ state: "connecting" });
    expect(await at.runtime.settleTools({ timeoutMs: 1 }, undefined)).toEqual(["hangs"]);
    const { pid } = await at.event("spawned", ({ server }) => server === "hangs");
    await at.runtime.stop();
    expect(await waitGone([pid])).toEqual([]);
    expect((await failed).code).toMatch(/^(server_died|runtime_restarted)$/);
    expect(await at.failedCall("records", "work")).toMatchObject({ code: "runtime_stopped" });
    // A second stop settles too.
    await at.runtime.stop();
    expect(await readdir(at.cwd)).toEqual(["record"]);
    expect(at.crashes).toEqual([]);
  });
});

describe("runtime.stop, and the end of the hub if the servers are shared: no process is left", () => {
  const MANY = sized(8, 20);
  const childPid = async (file: string): Promise<number> =>
    Number(await until(async () => (await readIfThere(file)) || undefined));

  test("servers with children, one that ignores SIGTERM and the end of stdin, one that ended -> nothing of them is left", async () => {
    const place = await createPlace();
    const file = (name: string): string => join(place.cwd, name);
    const parent = (name: string, CHILD_STDIO: string) =>
      fixture("with-child.mjs", { RECORD: file(name), CHILD_STDIO });
    const names = ["apart", "holding", "ended"];
    const at = await start(
      {
        // The child shares nothing with the server.
        apart: parent("apart", "ignore"),
        // The child holds the server's output.
        holding: parent("holding", "inherit"),
        ended: parent("ended", "ignore"),
        stays: fixture("ignores-end.mjs"),
      },
      { place },
    );
    await at.runtime.settleTools({ timeoutMs: 40_000 }, undefined);
    const children = await Promise.all(names.map((name) => childPid(file(name))));
    const { servers } = await at.runtime.ask("status", {});
    const pids = servers.flatMap(({ pid }) => (pid === undefined ? [] : [pid]));
    expect(pids).toHaveLength(4);
    expect(await at.failedCall("ended", "work")).toMatchObject({ code: "server_died" });
    await endAll(at);
    expect(await waitGone([...pids, ...children])).toEqual([]);
  });

  test("a server that ended during a call while its child holds its output -> server_died, not call_timeout", async () => {
    const { at, recorded } = await shared();
    await at.settled("dropped");
    await until(async () => (await recorded("child")) || undefined);
    expect(await at.failedCall("dropped", "work")).toMatchObject({ code: "server_died" });
  });

  test("a server that exits while a child of another group holds its output -> not connecting for ever", async () => {
    const place = await createPlace();
    const RECORD = join(place.cwd, "child");
    const at = await start(
      { leaves: fixture("detached-child.mjs", { RECORD }, { startupTimeoutMs: 3_000 }) },
      { place },
    );
    const child = await childPid(RECORD);
    try {
      expect(await at.runtime.settleTools({ timeoutMs: 10_000 }, undefined)).toEqual([]);
    } finally {
      // The child left the group, so the runtime cannot end it; the test does.
      process.kill(child, "SIGKILL");
      await waitGone([child]);
    }
  });

  test("processes that left the group of their server -> gone with it, at a reconnect and at the end; what it opened for the person stays", async () => {
    const place = await createPlace();
    const RECORD = join(place.cwd, "strays");
    // The name decides: it opens pages for people. The browser that it starts is theirs.
    const OPENER = join(place.cwd, "xdg-open");
    await writeFile(OPENER, "#!/bin/sh\nsetsid sleep 1000 > /dev/null 2>&1 &\necho $!\nwait\n", {
      mode: 0o755,
    });
    const at = await start({ strays: fixture("strays.mjs", { RECORD, OPENER }) }, { place });
    await at.settled("strays");
    const recorded = async (): Promise<number[]> => JSON.parse(await readFile(RECORD, "utf8")) as number[];
    const [first = 0, child = 0, opener = 0, page = 0] = await recorded();
    await at.runtime.ask("reconnect", { server: "strays" });
    expect(await waitGone([first, child])).toEqual([]);
    await at.settled("strays");
    const [second = 0, grandchild = 0, ...opened] = await recorded();
    expect(second).not.toBe(first);
    await endAll(at);
    expect(await waitGone([second, grandchild])).toEqual([]);
    for (const pid of [opener, page, ...opened]) process.kill(pid, "SIGKILL");
    await waitGone([opener, page, ...opened]);
  });

  test("the same of a server that ignores SIGTERM and the end of stdin -> gone with it at the end", {
    tags: "thorough",
  }, async () => {
    const place = await createPlace();
    const RECORD = join(place.cwd, "strays");
    const at = await start({ strays: fixture("strays.mjs", { RECORD, STAYS: "1" }) }, { place });
    await at.settled("strays");
    const strays = JSON.parse(await readFile(RECORD, "utf8")) as number[];
    await endAll(at);
    const left = await waitGone(strays);
    for (const pid of left) process.kill(pid, "SIGKILL");
    expect(left).toEqual([]);
  });

  test(`${MANY} servers, one of which ignores SIGTERM and the end of stdin -> all gone`, async () => {
    const plain = Array.from({ length: MANY - 1 }, (_, i) => [`s${i}`, fixture("noisy.mjs")]);
    const at = await start({ ...Object.fromEntries(plain), stays: fixture("ignores-end.mjs") });
    expect(await at.runtime.settleTools({ timeoutMs: 40_000 }, undefined)).toEqual([]);
    const pids = at.events.flatMap((event) => (event.type === "spawned" ? [event.pid] : []));
    expect(pids).toHaveLength(MANY);
    const startedAt = performance.now();
    await endAll(at);
    // The target is less than 1 s. A busy machine may take longer, so the time is printed but not asserted.
    process.stdout.write(`stop of ${MANY} servers: ${Math.round(performance.now() - startedAt)} ms\n`);
    // The system ends a process that was killed a moment later.
    expect(await waitGone(pids)).toEqual([]);
  });
});
