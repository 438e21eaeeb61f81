/**
 * Owns: the requests of the panel, with real files and real servers: what a server is and why its tools are where they are,
 * changes that are applied at once, and its log while it grows.
 */
import { appendFile, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { describe, expect, test, vi } from "vitest";
import { ThreadsError } from "../../src/shared/protocol/errors.ts";
import { answerWell, serve } from "../support/http-server.ts";
import { endHub } from "../support/hub.ts";
import {
  configure,
  createPlace,
  everything,
  fixture,
  forRows,
  newestCatalog,
  onCleanup,
  type Started,
  start,
  until,
} from "./support.ts";

const live = (more: Record<string, unknown> = {}) =>
  fixture("live.mjs", { TOOLS: "work,more,other" }, { lifecycle: "eager", ...more });

async function open(...[servers, options]: Parameters<typeof start>): Promise<Started> {
  const at = await start(servers, options);
  await at.runtime.settleTools({ timeoutMs: 40_000 }, undefined);
  return at;
}

/** One worker for the tests that change nothing. */
const args = [...(fixture("live.mjs").args as string[]), "--token", "s3cr3t-value-of-a-test"];
const READ = {
  s: live(),
  "s-two": everything(),
  told: live({
    args,
    excludeTools: ["oth*"],
    toolExposure: { work: "direct" },
    timeout: 20,
    approve: "always",
  }),
  forbidding: live({ excludeTools: ["m*"] }),
};
const shared = forRows(() => open(READ));
/** One worker with a server for each change that is made. */
const changed = forRows(() => open({ s: live(), set: live() }));

const mcpFile = (at: Started): string => join(at.agentDir, "mcp.json");
const details = (at: Started, server = "s") => at.runtime.ask("serverDetails", { server });

describe("serverDetails", () => {
  test("what runs, without secrets; where it is defined; why each tool is where it is", async () => {
    const before = Date.now();
    const at = await shared();
    const found = await details(at, "told");
    expect(found.runs).toContain("live.mjs");
    expect(JSON.stringify(found)).not.toContain("s3cr3t-value-of-a-test");
    expect(found).toMatchObject({
      file: mcpFile(at),
      line: 1,
      env: ["TOOLS", "PMT_PLACE"],
      lifecycle: "eager",
      approve: "always",
      toolPrefix: "server",
      ownPrefix: false,
      timeouts: ["call 20 s"],
    });
    expect(found.connectedAt).toBeGreaterThan(before - 60_000);
    expect(found.connectedAt).toBeLessThanOrEqual(Date.now() + 1_000);
    const { names, exposures, rules, places } = found.tools;
    const told = names.map((name, i) => [name, exposures[i], places[rules[i] ?? -1]?.rule]);
    expect(told).toEqual([
      ["work", "direct", 'toolExposure "work"'],
      ["more", "search", undefined],
      ["other", "hidden", 'excludeTools "oth*"'],
    ]);
    expect(places.every(({ file, line }) => file === mcpFile(at) && line === 1)).toBe(true);
  });

  test("a server that is not there -> the error says so", async () => {
    const at = await shared();
    await expect(details(at, "nope")).rejects.toThrow(/No server named nope is configured/);
  });
});

describe("changes", () => {
  test("a tool becomes hidden and direct -> the catalog follows, the server is not started anew", async () => {
    const at = await changed();
    const { pid } = await at.settled("s");
    const change = (to: "direct" | "hidden" | "search") =>
      at.runtime.ask("setExposure", { server: "s", tools: ["more"], to, project: false });
    expect(await change("hidden")).toEqual({ file: mcpFile(at), ruled: true });
    await until(async () => !newestCatalog(at).get("s__more") || undefined);
    await change("direct");
    await until(async () => newestCatalog(at).get("s__more")?.direct || undefined);
    expect(await change("search")).toEqual({ file: mcpFile(at), ruled: false });
    await until(async () => newestCatalog(at).get("s__more")?.direct === undefined || undefined);
    expect(await readFile(mcpFile(at), "utf8")).not.toContain("toolExposure");
    expect((await at.settled("s")).pid).toBe(pid);
  });

  test("a pattern forbids it -> the error names the rule, its file and its line; nothing is written", async () => {
    const at = await shared();
    const before = await readFile(mcpFile(at), "utf8");
    const change = at.runtime.ask("setExposure", {
      server: "forbidding",
      tools: ["more"],
      to: "direct",
      project: false,
    });
    const error = await change.catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(ThreadsError);
    expect((error as Error).message).toBe(
      `more of forbidding does not become direct: excludeTools "m*" in ${mcpFile(at)}:1 decides.`,
    );
    expect(await readFile(mcpFile(at), "utf8")).toBe(before);
  });

  test("lifecycle, approve and prefix of a server -> in the file and in effect", async () => {
    const at = await changed();
    const set = (
      change:
        | { key: "lifecycle"; value: "keep-alive" }
        | { key: "approve"; value: "always" | undefined }
        | { key: "toolPrefix"; value: "none" | undefined },
    ) => at.runtime.ask("setServer", { server: "set", project: false, ...change });
    await set({ key: "lifecycle", value: "keep-alive" });
    await set({ key: "approve", value: "always" });
    await set({ key: "toolPrefix", value: "none" });
    expect(await details(at, "set")).toMatchObject({
      lifecycle: "keep-alive",
      approve: "always",
      toolPrefix: "none",
      ownPrefix: true,
    });
    await until(async () => newestCatalog(at).get("work") || undefined);
    // Back to what the settings say: the key goes.
    await set({ key: "approve", value: undefined });
    await set({ key: "toolPrefix", value: undefined });
    const presets = { approve: "never", toolPrefix: "server" };
    expect(await details(at, "set")).toMatchObject({ approve: "settings", ownPrefix: false, presets });
    const { mcpServers } = JSON.parse(await readFile(mcpFile(at), "utf8"));
    expect(mcpServers.set).not.toHaveProperty("approve");
    expect(mcpServers.set).not.toHaveProperty("toolPrefix");
  });
});

test("a form of a tool's schema: what must be given first, choices, and JSON for anything else", async () => {
  const at = await shared();
  const form = (tool: string) => at.runtime.ask("toolForm", { server: "s-two", tool });
  const { fields, left } = await form("get-sum");
  expect(left).toBe(0);
  expect(fields).toMatchObject([
    { name: "a", field: { kind: "number", title: "a", required: true }, values: [] },
    { name: "b", field: { kind: "number", title: "b", required: true }, values: [] },
  ]);
  await expect(form("no-such-tool")).rejects.toMatchObject({ code: "unknown_tool" });
});

test("statistics are switched on -> in the user's file, whose comments stay, and at once", async () => {
  const at = await open({});
  const text = '{\n  // Kept.\n  "settings": { "captureStats": false }\n}\n';
  await writeFile(mcpFile(at), text);
  await expect.poll(() => at.runtime.ask("stats", {})).toEqual({ captured: false });
  expect(await at.runtime.ask("captureStats", {})).toEqual({ file: mcpFile(at) });
  expect(await readFile(mcpFile(at), "utf8")).toMatch(/\/\/ Kept\.[\s\S]*"captureStats": true/);
  expect(await at.runtime.ask("stats", {})).toMatchObject({ captured: true });
});

test("a decision about a server of the project is told, and taken back: it stops, and is asked again, also by the next session", async () => {
  const place = await createPlace();
  await writeFile(join(place.cwd, ".mcp.json"), JSON.stringify({ mcpServers: { site: live() } }));
  const at = await open({}, { place });
  const [question] = (await at.runtime.ask("status", {})).questions;
  await at.runtime.ask("answerConsent", { hash: question?.hash ?? "", allow: true });
  await at.settled("site");
  const decisions = () => at.runtime.ask("decisions", {});
  const [decided] = await decisions();
  expect(decided).toMatchObject({ server: "site", decision: "allowed", here: true });
  await at.runtime.ask("takeBack", { id: decided?.id ?? "" });
  expect(await decisions()).toEqual([]);
  const after = await at.runtime.ask("status", {});
  expect(after.servers).toEqual([]);
  expect(after.questions.map(({ server }) => server)).toEqual(["site"]);
  const kept = JSON.parse(await readFile(join(at.agentDir, "mcp-trust.json"), "utf8"));
  expect(kept.consents.map(({ decision }: { decision: string }) => decision)).toEqual(["awaiting"]);
});

test("sharing is switched on and off -> in the file, in effect, with memory; not for a remote server", {
  tags: "thorough",
}, async () => {
  const place = await createPlace();
  onCleanup(() => endHub(place.agentDir));
  const at = await open({ s: live(), remote: { url: "http://127.0.0.1:9/mcp" } }, { place });
  const set = (server: string, value: boolean) =>
    at.runtime.ask("setServer", { server, project: false, key: "shared", value });
  const before = await at.settled("s");
  expect(await details(at)).toMatchObject({ shared: false });
  expect(await details(at)).not.toHaveProperty("memory");
  expect(await set("s", true)).toEqual({ file: mcpFile(at) });
  const { sharing } = await until(async () => {
    const now = await at.settled("s");
    return now.sharing && now.pid !== before.pid ? now : undefined;
  });
  expect(sharing?.sessions).toBe(1);
  expect(sharing?.since).toBeGreaterThan(Date.now() - 60_000);
  const found = await details(at);
  expect(found.shared).toBe(true);
  expect(found.memory).toBeGreaterThan(10 * 1024 * 1024);
  const { report } = await at.runtime.ask("hub", {});
  expect(report?.servers.map(({ labels, memory }) => [labels, memory && memory > 0])).toEqual([
    [["s"], true],
  ]);
  const written = await readFile(mcpFile(at), "utf8");
  for (const value of [true, false])
    await expect(set("remote", value)).rejects.toThrow(/is one that Pi does not start/);
  expect(await readFile(mcpFile(at), "utf8")).toBe(written);
  expect(await details(at, "remote")).not.toHaveProperty("shared");
  await set("s", false);
  await until(async () => ((await at.settled("s")).sharing ? undefined : true));
  expect((await details(at)).shared).toBe(false);
  expect(JSON.parse(await readFile(mcpFile(at), "utf8"))).toMatchObject({
    mcpServers: { s: { shared: false } },
  });
});

test("a server of the project -> it cannot be shared, and nothing is written", async () => {
  const place = await createPlace();
  const file = join(place.cwd, ".pi", "mcp.json");
  await mkdir(join(place.cwd, ".pi"));
  const text = JSON.stringify({ mcpServers: { theirs: live() } });
  await writeFile(file, text);
  const at = await start({}, { place });
  const { questions } = await at.runtime.ask("status", {});
  await at.runtime.ask("answerConsent", { hash: questions[0]?.hash ?? "", allow: true });
  expect(await until(() => details(at, "theirs").catch(() => undefined))).not.toHaveProperty("shared");
  const change = { server: "theirs", project: false, key: "shared", value: true } as const;
  await expect(at.runtime.ask("setServer", change)).rejects.toThrow(
    /is defined by a file of this project, and only your own servers can be shared/,
  );
  expect(await readFile(file, "utf8")).toBe(text);
});

describe("setKey", () => {
  const KEY = "k3y-of-the-test-0123";
  const WORDS = "Missing API key. Get one at https://a.test/keys";

  test("a server that wants a key: its words, where the key is, and that it is wrong", async () => {
    const { url } = await serve((asked, response) => {
      const { authorization, "x-api-key": key } = asked.headers;
      if (asked.path !== "/mcp") response.writeHead(404).end();
      else if (authorization === `Bearer ${KEY}` || key === KEY) answerWell(asked, response);
      else
        response.writeHead(401, { "content-type": "application/json" }).end(JSON.stringify({ error: WORDS }));
    });
    vi.stubEnv("PMT_KEY_OF_TEST", KEY);
    vi.stubEnv("PMT_STALE_KEY", "wr0ng-too-of-the-test");
    const at = await start({
      bare: { url },
      stale: { url, bearerToken: "wr0ng-key-of-the-test" },
      unset: { url, bearerTokenEnv: "PMT_STALE_KEY" },
      old: { url, headers: { Authorization: "Bearer wr0ng", "X-Mode": "1" } },
    });
    vi.unstubAllEnvs();
    const file = mcpFile(at);
    const signIn = async (server: string) =>
      at.runtime.ask("signIn", { server }).then(
        (step) => step.step,
        (error: ThreadsError) => [error.data?.reason, error.message],
      );
    expect(await signIn("bare")).toEqual(["key-wanted", `bare: ${url} answered 401: ${WORDS}.`]);
    expect(await signIn("stale")).toEqual([
      "key-refused",
      `stale: ${url} refused the bearerToken of ${file}:1 (401: ${WORDS}).`,
    ]);
    expect(await signIn("unset")).toEqual([
      "key-refused",
      `unset: ${url} refused the bearerTokenEnv of ${file}:1 (401: ${WORDS}).`,
    ]);
    const { servers } = await at.runtime.ask("status", {});
    expect(servers.filter(({ signIn: status }) => status !== undefined)).toEqual([]);

    const from = { variable: "PMT_KEY_OF_TEST" };
    expect(await at.runtime.ask("setKey", { server: "bare", header: "X-API-Key", from })).toEqual({ file });
    await at.runtime.ask("setKey", { server: "stale", from });
    await at.runtime.ask("setKey", { server: "unset", from: { command: `echo ${KEY}` } });
    await at.runtime.ask("setKey", { server: "old", from });
    for (const server of ["bare", "stale", "unset", "old"]) {
      await at.runtime.ask("reconnect", { server });
      expect(await at.settled(server)).toMatchObject({ state: "connected" });
    }
    const written = JSON.parse(await readFile(file, "utf8")) as { mcpServers: unknown };
    expect(written.mcpServers).toEqual({
      bare: { url, headers: { "X-API-Key": "\u0024{PMT_KEY_OF_TEST}" } },
      stale: { url, bearerTokenEnv: "PMT_KEY_OF_TEST" },
      unset: { url, bearerToken: `!echo ${KEY}` },
      old: { url, headers: { "X-Mode": "1" }, bearerTokenEnv: "PMT_KEY_OF_TEST" },
    });
    // One that is typed has a file, which goes once another key takes its place.
    const kept = await at.runtime.ask("keepValue", { server: "bare", name: "key", value: KEY });
    const command = kept.written.slice(1);
    await at.runtime.ask("setKey", { server: "bare", header: "X-API-Key", from: { command } });
    await at.runtime.ask("reconnect", { server: "bare" });
    expect(await at.settled("bare")).toMatchObject({ state: "connected" });
    expect(await readdir(dirname(kept.file))).toEqual([basename(kept.file)]);
    await at.runtime.ask("setKey", { server: "bare", header: "X-API-Key", from });
    expect(await readdir(dirname(kept.file))).toEqual([]);
    expect(await at.log()).not.toMatch(/wr0ng|k3y-of/);
  });
});

describe("serverLog", () => {
  test("only lines that name the server; a request that has seen the log waits for the next line", async () => {
    const at = await shared();
    at.runtime.log("info", "s: a line about it\nthat goes on");
    at.runtime.log("info", "s-two: a line about another one");
    const first = await until(async () => {
      const found = await at.runtime.ask("serverLog", { server: "s", seen: undefined });
      return found.lines.some((line) => line.includes("a line about it")) ? found : undefined;
    });
    expect(first.lines.join("\n")).toContain("s: a line about it\n    that goes on");
    expect(first.lines.join("\n")).not.toContain("s-two");
    // Other lines may come before it: each answer says how much has been seen.
    let { size: seen } = first;
    const told = until(async () => {
      const next = await at.runtime.ask("serverLog", { server: "s", seen });
      seen = next.size;
      return next.lines.some((line) => line.includes("s: news")) || undefined;
    });
    await appendFile(join(at.agentDir, "mcp-threads.log"), "2026-01-01T00:00:00.000Z info  [x] s: news\n");
    await told;
  });

  test("each call is a line of names, time and sizes, without its arguments", async () => {
    const at = await shared();
    const s3cret = "an-argument-of-the-call";
    await at.call("s-two", "echo", { message: s3cret });
    await expect(at.call("s-two", "no-such-tool", { message: s3cret })).rejects.toThrow();
    const lines = await until(async () => {
      const found = await at.runtime.ask("serverLog", { server: "s-two", seen: undefined });
      return found.lines.some((line) => line.includes("no-such-tool")) ? found.lines : undefined;
    });
    expect(lines.join("\n")).toMatch(
      / info {2}\[connection#\d+\] s-two\/echo answered after [\d.]+ m?s: 29 B$/m,
    );
    expect(lines.join("\n")).toMatch(
      / warn {2}\[.*\] s-two\/no-such-tool ended with unknown_tool after [\d.]+ m?s$/m,
    );
    expect(await at.log()).not.toContain(s3cret);
  });

  test("a request that waits is given up -> it fails at once, and nothing keeps waiting", async () => {
    const at = await shared();
    const { size } = await at.runtime.ask("serverLog", { server: "s", seen: undefined });
    const giveUp = new AbortController();
    const waiting = at.runtime.ask("serverLog", { server: "s", seen: size }, giveUp.signal);
    giveUp.abort();
    await expect(waiting).rejects.toMatchObject({ code: "cancelled" });
    await configure(at, READ);
  });
});
