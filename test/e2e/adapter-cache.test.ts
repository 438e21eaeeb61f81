/**
 * Owns: tests of a cache that the real pi-mcp-adapter wrote in the real Pi: the extension reads it and keeps its own
 * fields.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, it, test } from "vitest";
import { hashesOf } from "../../workers/cache/metadata/adapter-hash.ts";
import { readCache } from "../../workers/cache/metadata/metadata.ts";
import { ADAPTER_VERSION, ensureAdapter } from "../support/adapter.ts";
import { runPrint } from "../support/pi-run.ts";
import { call, ENTRY, home, model, readLog, SERVERS, searchFor } from "./support.ts";

/** A variable in the environment of both clients; the second definition's hash depends on it. */
const SECRET = { PMT_ADAPTER_SECRET: "between us" };
// biome-ignore lint/suspicious/noTemplateCurlyInString: the text is the content of a file.
const WITH_SECRET = { ...SERVERS.memory, env: { TOKEN: "${PMT_ADAPTER_SECRET}" } };
const DEFINITIONS = { everything: SERVERS.everything, memory: WITH_SECRET };

interface StoredServer {
  configHash: string;
  tools: { name: string }[];
}

const stored = async (agentDir: string): Promise<Record<string, StoredServer>> => {
  const cache = JSON.parse(await readFile(join(agentDir, "mcp-cache.json"), "utf8"));
  return (cache as { servers: Record<string, StoredServer> }).servers;
};

test(`a cache that pi-mcp-adapter ${ADAPTER_VERSION} wrote -> it is read, used without a connect, and not damaged`, async () => {
  const at = await home({ mcp: { mcpServers: DEFINITIONS } });
  const theirs = await runPrint({
    home: at,
    model: await model([{ text: "ok" }]),
    extensions: join(await ensureAdapter(), "index.ts"),
    prompt: "go",
    env: SECRET,
    timeoutMs: 60_000,
  });
  expect(theirs).toMatchObject({ code: 0, stdout: "ok\n" });
  const before = await stored(at.agentDir);
  expect(Object.keys(before).sort()).toEqual(["everything", "memory"]);

  Object.assign(process.env, SECRET);
  const path = join(at.agentDir, "mcp-cache.json");
  const { entries, problems } = await readCache({ path, definitions: DEFINITIONS });
  delete process.env.PMT_ADAPTER_SECRET;
  expect(problems).toEqual([]);
  for (const [name, entry] of Object.entries(before)) {
    expect(
      entries[name]?.tools.map((tool) => tool.name),
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
    const module = pathToFileURL(join(await ensureAdapter(), "dist", "metadata-cache.js")).href;
    const { computeServerHash } = (await import(module)) as {
      computeServerHash: (definition: unknown, environment: NodeJS.ProcessEnv) => string;
    };
    const environment = { PMT_A: "1" };
    expect(hashesOf(definition, environment)).toContain(computeServerHash(definition, environment));
  });
  // biome-ignore-end lint/suspicious/noTemplateCurlyInString: the text is the content of a file.
});
