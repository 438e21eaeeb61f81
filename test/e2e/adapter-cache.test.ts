/**
 * Owns: tests beside the real pi-mcp-adapter: both in one Pi, and a cache that it wrote in the real Pi, which the extension reads
 * and whose own fields it keeps. By default the cache is a fixture; under `ALL_ROWS=1` the adapter writes another one, which equals the fixture.
 * @module-tag thorough
 */
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, it, test } from "vitest";
import { hashesOf, readCache } from "../../workers/cache/metadata/metadata.ts";
import { readList } from "../../workers/shared/listed.ts";
import { ADAPTER_VERSION, ensureAdapter } from "../support/adapter.ts";
import { ALL_ROWS } from "../support/long.ts";
import type { ModelRequest } from "../support/model.ts";
import { type PiHome, runPrint } from "../support/pi-run.ts";
import { call, ENTRY, fixtureServer, home, model, readLog, root, SERVERS, searchFor } from "./support.ts";

/** A variable in the environment of both clients; the second definition's hash depends on it. */
const SECRET = { PMT_ADAPTER_SECRET: "between us" };
// biome-ignore lint/suspicious/noTemplateCurlyInString: the text is the content of a file.
const WITH_SECRET = { ...SERVERS.memory, env: { TOKEN: "${PMT_ADAPTER_SECRET}" } };
const DEFINITIONS = { everything: SERVERS.everything, memory: WITH_SECRET };

interface StoredServer {
  configHash: string;
  cachedAt: number;
  tools: { name: string }[];
}

interface Stored {
  servers: Record<string, StoredServer>;
}

type ComputeServerHash = (definition: unknown, environment: NodeJS.ProcessEnv) => string;

/** The adapter's own function. */
async function adapterHash(): Promise<ComputeServerHash> {
  const module = pathToFileURL(join(await ensureAdapter(), "dist", "metadata-cache.js")).href;
  return ((await import(module)) as { computeServerHash: ComputeServerHash }).computeServerHash;
}

const pathIn = (agentDir: string): string => join(agentDir, "mcp-cache.json");
const readStored = async (path: string): Promise<Stored> => JSON.parse(await readFile(path, "utf8"));
const stored = async (agentDir: string): Promise<Stored["servers"]> =>
  (await readStored(pathIn(agentDir))).servers;

/**
 * What the adapter wrote once about these servers. Paths and the time are different on each machine, so the hashes are
 * empty and the times 0.
 */
const FIXTURE = join(root, `test/fixtures/cache/pi-mcp-adapter-${ADAPTER_VERSION}.json`);

/** Gives the home the cache of the fixture, with the hashes that the adapter computes here. */
async function storedOnce({ agentDir }: PiHome): Promise<void> {
  const hashOf = await adapterHash();
  const cache = await readStored(FIXTURE);
  for (const [name, definition] of Object.entries(DEFINITIONS)) {
    Object.assign(cache.servers[name] ?? {}, {
      configHash: hashOf(definition, { ...process.env, ...SECRET }),
      cachedAt: Date.now(),
    });
  }
  await writeFile(pathIn(agentDir), JSON.stringify(cache));
}

/** Runs the adapter in Pi, which takes three seconds of processor time, and compares its cache with the fixture. */
async function writtenNow(at: PiHome): Promise<void> {
  const theirs = await runPrint({
    home: at,
    model: await model([{ text: "ok" }]),
    extensions: join(await ensureAdapter(), "index.ts"),
    prompt: "go",
    env: SECRET,
    timeoutMs: 60_000,
  });
  expect(theirs).toMatchObject({ code: 0, stdout: "ok\n" });
  const cache = await readStored(pathIn(at.agentDir));
  const hashOf = await adapterHash();
  for (const [name, definition] of Object.entries(DEFINITIONS)) {
    const server = cache.servers[name] as StoredServer;
    expect(server.configHash).toBe(hashOf(definition, { ...process.env, ...SECRET }));
    Object.assign(server, { configHash: "", cachedAt: 0 });
  }
  expect(cache).toEqual(await readStored(FIXTURE));
}

/** Runs both in one Pi, with a snapshot of the home's configuration. */
async function expectOneTooMany(at: PiHome): Promise<void> {
  expect(await readdir(join(at.agentDir, "mcp-snapshots"))).not.toEqual([]);
  const run = await runPrint({
    home: at,
    model: await model([{ text: "ok" }]),
    extensions: [ENTRY, join(await ensureAdapter(), "index.ts")],
    prompt: "go",
    env: SECRET,
  });
  expect(run).toMatchObject({ code: 0, stdout: "ok\n" });
  expect(run.stderr).toMatch(
    /pi-mcp-adapter.* also provides \/mcp\. Two MCP clients run the same servers twice/,
  );
}

// What the adapter has just written equals the fixture, so one of both is read.
const [when, write] = ALL_ROWS
  ? (["has just written", writtenNow] as const)
  : (["wrote once", storedOnce] as const);

test(`a cache that pi-mcp-adapter ${ADAPTER_VERSION} ${when} -> it is read, used without a connect, and not damaged; then both in one Pi -> it starts, and a notice says that one of them is too many`, async () => {
  const at = await home({ mcp: { mcpServers: DEFINITIONS } });
  await write(at);
  const before = await stored(at.agentDir);
  expect(Object.keys(before).sort()).toEqual(["everything", "memory"]);

  Object.assign(process.env, SECRET);
  const { entries, problems } = await readCache({ path: pathIn(at.agentDir), definitions: DEFINITIONS });
  delete process.env.PMT_ADAPTER_SECRET;
  expect(problems).toEqual([]);
  for (const [name, entry] of Object.entries(before)) {
    expect(
      readList(entries[name]?.tools ?? []).map((tool) => tool.name),
      name,
    ).toEqual(entry.tools.map((tool) => tool.name));
  }

  const ours = await model([
    searchFor("select:memory__read_graph"),
    call("everything__echo", { message: "x" }),
  ]);
  const run = await runPrint({ home: at, model: ours, extensions: ENTRY, prompt: "go", env: SECRET });
  expect(run.code).toBe(0);
  expect(ours.requests[1]?.toolNames).toContain("memory__read_graph");
  expect(await readLog(at)).not.toContain("memory connected over");
  const after = await stored(at.agentDir);
  expect(after.memory).toEqual(before.memory);
  await expectOneTooMany(at);
});

test("pi-mcp-adapter beside this extension, with a snapshot and proxyTool -> the same notice", async () => {
  const one = fixtureServer("live.mjs");
  const at = await home({ mcp: { mcpServers: { one }, settings: { proxyTool: true } } });
  // A run that waits for the tools leaves a snapshot. The first request of it may come before the settings are known.
  const find = ({ toolNames }: ModelRequest) =>
    toolNames.includes("mcp") ? call("mcp", { search: "work" }) : searchFor("work");
  const script = await model([find, { text: "ok" }]);
  const alone = await runPrint({ home: at, model: script, extensions: ENTRY, prompt: "go" });
  expect(alone).toMatchObject({ code: 0, stdout: "ok\n" });
  await expectOneTooMany(at);
});

describe("a definition -> hashesOf includes the hash that the real adapter computes", () => {
  // biome-ignore-start lint/suspicious/noTemplateCurlyInString: the text is the content of a file.
  it.each<[string, Record<string, unknown>]>([
    ["only a command", { command: "node" }],
    [
      "every plain key",
      { command: "a", args: ["b", 'ü\n"'], env: { Z: "1", A: "" }, cwd: "/x", auth: "oauth" },
    ],
    ["a url", { url: "https://h/mcp?x=1", headers: { B: "1", a: "2" }, auth: "bearer", bearerToken: "t" }],
    ["filters", { command: "a", includeTools: ["x"], excludeTools: [], exposeResources: false }],
    [
      "keys that are not part of the hash",
      { command: "a", lifecycle: "eager", idleTimeout: 3, debug: true, directTools: ["x"] },
    ],
    ["keys that only the adapter knows", { command: "a", socket: "~/s", protocolVersion: "2025-06-18" }],
    ["variables in env", { command: "a", env: { A: "${PMT_A} $env:PMT_A {env:PMT_A} ${PMT_NONE}" } }],
    ["variables in headers", { url: "https://h", headers: { A: "Bearer ${PMT_A}" } }],
    ["a variable in the url", { url: "https://h/${PMT_A}" }],
    ["variables in cwd", { command: "a", cwd: "~/$env:PMT_A" }],
    ["a token's variable", { url: "https://h", bearerTokenEnv: "PMT_A" }],
    ["a token's variable that is not set", { url: "https://h", bearerTokenEnv: "PMT_NONE" }],
    [
      "a command for a secret, and an escaped command",
      { command: "a", env: { A: "!echo $PMT_A", B: "!!${PMT_A}" } },
    ],
  ])("%s", async (_name, definition) => {
    const hashOf = await adapterHash();
    const environment = { PMT_A: "1" };
    expect(hashesOf(definition, environment)).toContain(hashOf(definition, environment));
  });
  // biome-ignore-end lint/suspicious/noTemplateCurlyInString: the text is the content of a file.
});
