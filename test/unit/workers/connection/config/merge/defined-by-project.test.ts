/**
 * Owns: whether a file of the project names a server's command, for each way in which files add up. Only then do
 * programs and packages of the project count.
 */
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { ServerDefinition } from "../../../../../../workers/connection/config/entry/definition.ts";
import type { ConfigFacts } from "../../../../../../workers/connection/config/files/sources.ts";
import { loadConfig } from "../../../../../../workers/connection/config/merge/merge.ts";
import { facts, put, temporaryFolder } from "../support.ts";

const SERVER = { command: "npx", args: ["-y", "p"] };
const LOCAL = { type: "local", command: ["npx", "-y", "p"] };
const servers = (entry: object, more: object = {}): object => ({ mcpServers: { s: entry }, ...more });
const opencode = (entry: object): object => ({ mcp: { s: entry } });
const imports = (host: string): object => ({ imports: [host] });

/** The server `s` of these files, which are given by their path below the home folder. */
async function load(
  files: Record<string, object>,
  over: Partial<ConfigFacts> = {},
): Promise<ServerDefinition> {
  const home = await temporaryFolder();
  for (const [path, content] of Object.entries(files)) await put(join(home, path), content);
  const at = facts({ home, agentDir: join(home, "agent"), cwd: join(home, "clone"), ...over });
  const { servers: loaded } = await loadConfig(at);
  const found = loaded.find(({ name }) => name === "s");
  if (!found) throw new Error("the server is not defined");
  return found;
}

const USERS = "agent/mcp.json";
const SHARED = "clone/.mcp.json";
const PROJECT = "clone/.pi/mcp.json";

interface Case {
  files: Record<string, object>;
  over?: Partial<ConfigFacts>;
  /** Whether a file of the project defines it, and whether it needs the project's trust. */
  defines: boolean;
  trust: boolean;
}

const registered = [{ name: "s", config: SERVER, extensionPath: "/ext.ts" }];

const CASES: Record<string, Case> = {
  "the user's file": { files: { [USERS]: servers(SERVER) }, defines: false, trust: false },
  "the user's file for several programs": {
    files: { ".config/mcp/mcp.json": servers(SERVER) },
    defines: false,
    trust: false,
  },
  "a file below the project that --mcp-config names": {
    files: { "clone/other.json": servers(SERVER) },
    over: { configPath: "other.json" },
    defines: false,
    trust: false,
  },
  "the project's own file that --mcp-config names": {
    files: { [SHARED]: servers(SERVER) },
    over: { configPath: ".mcp.json" },
    defines: false,
    trust: false,
  },
  "an extension": { files: {}, over: { registered }, defines: false, trust: false },
  ".mcp.json": { files: { [SHARED]: servers(SERVER) }, defines: true, trust: true },
  ".pi/mcp.json": { files: { [PROJECT]: servers(SERVER) }, defines: true, trust: true },
  ".mcp.json, overridden by .pi/mcp.json": {
    files: { [SHARED]: servers(SERVER), [PROJECT]: servers({ directTools: ["x"] }) },
    defines: true,
    trust: true,
  },
  "the user's file, overridden by the project": {
    files: { [USERS]: servers(SERVER), [SHARED]: servers({ directTools: ["x"] }) },
    defines: false,
    trust: false,
  },
  "the user's file, replaced whole by the project": {
    files: { [USERS]: servers(SERVER), [SHARED]: servers(SERVER) },
    defines: true,
    trust: true,
  },
  "the user's file switches it off and the project on": {
    files: { [USERS]: servers({ ...SERVER, enabled: false }), [PROJECT]: servers({ enabled: true }) },
    defines: false,
    trust: true,
  },
  "switched on by one file of the project and overridden by another": {
    files: {
      [USERS]: servers({ ...SERVER, enabled: false }),
      [SHARED]: servers({ enabled: true }),
      [PROJECT]: servers({ excludeTools: ["x"] }),
    },
    defines: false,
    trust: true,
  },
  "another program's file of the user": {
    files: { [USERS]: imports("cursor"), ".cursor/mcp.json": servers(SERVER) },
    defines: false,
    trust: false,
  },
  "another program's file of the project": {
    files: { [USERS]: imports("cursor"), "clone/.cursor/mcp.json": servers(SERVER) },
    defines: true,
    trust: true,
  },
  "another program's files of the user and of the project": {
    files: {
      [USERS]: imports("cursor"),
      ".cursor/mcp.json": servers(SERVER),
      "clone/.cursor/mcp.json": servers(SERVER),
    },
    defines: true,
    trust: true,
  },
  "OpenCode: the user's command, other keys of the project": {
    files: {
      [USERS]: imports("opencode"),
      ".config/opencode/opencode.json": opencode(LOCAL),
      "clone/opencode.json": opencode({ environment: { PATH: "./bin" } }),
    },
    defines: false,
    trust: true,
  },
  "OpenCode: the user's command, other keys of the project, then of the user": {
    files: {
      [USERS]: imports("opencode"),
      ".config/opencode/opencode.json": opencode(LOCAL),
      "clone/opencode.json": opencode({ enabled: true }),
      ".opencode/opencode.json": opencode({ timeout: 5_000 }),
    },
    defines: false,
    trust: true,
  },
  "OpenCode: the project's command, other keys of the user": {
    files: {
      [USERS]: imports("opencode"),
      "clone/opencode.json": opencode(LOCAL),
      ".opencode/opencode.json": opencode({ environment: { A: "1" } }),
    },
    defines: true,
    trust: true,
  },
};

describe("loadConfig: whether the project defines a server", () => {
  test.each(Object.entries(CASES))("%s", async (_title, { files, over, defines, trust }) => {
    const server = await load(files, over);
    expect({ defines: server.definedByProject, trust: server.project }).toEqual({ defines, trust });
  });

  test("a server that a project's entry replaces is still the user's", async () => {
    const server = await load({ [USERS]: servers(SERVER), [SHARED]: servers(SERVER) });
    expect(server.replaced).toMatchObject({ definedByProject: false, project: false });
  });

  test("a project that is not trusted defines nothing", async () => {
    const files = { [USERS]: servers(SERVER), [SHARED]: servers(SERVER) };
    const server = await load(files, { projectTrusted: false });
    expect(server).toMatchObject({ definedByProject: false, project: false });
  });
});
