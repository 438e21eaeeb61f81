/**
 * Owns: the compared clients: this package, pi-mcp-adapter, Pi's built-in MCP, and Pi without any. Each variant has the
 * extension that Pi loads, the configuration of a server, and the model's turns that find and call a tool.
 * Must not: start Pi or measure.
 * Called by: scenarios; `--vs` names the peers.
 */
import { join } from "node:path";
import { ADAPTER_VERSION, ensureAdapter } from "../../test/support/adapter.ts";
import type { ModelTurn } from "../../test/support/model.ts";
import { packedExtension } from "./build.ts";
import type { ScenarioOptions } from "./scenario.ts";
import { EMPTY_EXTENSION } from "./with-probe.ts";

export type Lifecycle = "lazy" | "eager";

/** The part of a server's configuration that every client understands. */
export interface ServerEntry {
  command: string;
  args: string[];
  env: Record<string, string>;
  description: string;
}

export interface Variant {
  id: "ours" | "adapter" | "builtin" | "none";
  /** Name in the tables. */
  label: string;
  /** The extension between the halves of the probe. */
  extension: string;
  /** These settings are merged over those of the home. */
  settings: Record<string, unknown>;
  /** Makes one entry of `mcpServers`; undefined if this Pi has no MCP servers. */
  entry: ((server: ServerEntry, lifecycle: Lifecycle) => Record<string, unknown>) | undefined;
  /** The model's turn that finds and loads a tool. */
  find(server: string, tool: string): ModelTurn;
  /** The model's turn that searches for a tool by words, in all servers. */
  seek(query: string): ModelTurn;
  /** The model's turn that calls tools, all in one message. */
  call(server: string, calls: readonly { tool: string; args: Record<string, unknown> }[]): ModelTurn;
}

const unknownTool = (): ModelTurn => ({ text: "Pi without MCP has no such tool" });

const NONE: Variant = {
  id: "none",
  label: "bare Pi",
  extension: EMPTY_EXTENSION,
  settings: {},
  entry: undefined,
  find: unknownTool,
  seek: unknownTool,
  call: unknownTool,
};

const ours = (extension: string): Variant => ({
  id: "ours",
  label: "ours",
  extension,
  settings: {},
  entry: (server, lifecycle) => ({ ...server, lifecycle }),
  find: (server, tool) => ({
    toolCalls: [{ name: "ToolSearch", args: { query: `select:${server}__${tool}` } }],
  }),
  seek: (query) => ({ toolCalls: [{ name: "ToolSearch", args: { query } }] }),
  call: (server, calls) => ({
    toolCalls: calls.map(({ tool, args }) => ({ name: `${server}__${tool}`, args })),
  }),
});

/** The adapter in its default form: every call goes through its single tool `mcp`. */
const adapter = (extension: string): Variant => ({
  id: "adapter",
  label: `pi-mcp-adapter ${ADAPTER_VERSION}`,
  extension,
  settings: {},
  entry: (server, lifecycle) => ({ ...server, lifecycle }),
  find: (server, tool) => ({ toolCalls: [{ name: "mcp", args: { search: tool, server } }] }),
  seek: (query) => ({ toolCalls: [{ name: "mcp", args: { search: query } }] }),
  call: (server, calls) => ({
    toolCalls: calls.map(({ tool, args }) => ({
      name: "mcp",
      args: { tool: `${server}_${tool}`, args },
    })),
  }),
});

/** The built-in MCP connects every server at start; it has no lifecycles. */
const builtin: Variant = {
  id: "builtin",
  label: "built-in MCP",
  extension: EMPTY_EXTENSION,
  settings: { extensions: [] },
  entry: (server) => ({ ...server, exposure: "deferred" }),
  find: (server, tool) => ({
    toolCalls: [{ name: "tool_search", args: { query: `mcp__${server}__${tool}` } }],
  }),
  seek: (query) => ({ toolCalls: [{ name: "tool_search", args: { query } }] }),
  call: (server, calls) => ({
    toolCalls: calls.map(({ tool, args }) => ({ name: `mcp__${server}__${tool}`, args })),
  }),
};

/** Limit for a peer's call that never ends: `timeout` in seconds, and the adapter's own key in milliseconds. */
export const PEER_TIMEOUT = { timeout: 10, requestTimeoutMs: 10_000 };

export const PEERS = ["none", "builtin", "adapter"] as const;

/** The variants of `--vs`, bare Pi first, this package last. A peer that cannot be fetched is left out and named. */
export async function loadVariants({
  vs,
  progress,
}: Pick<ScenarioOptions, "vs" | "progress">): Promise<Variant[]> {
  const variants: Variant[] = [];
  if (vs.includes("none")) variants.push(NONE);
  if (vs.includes("builtin")) variants.push(builtin);
  if (vs.includes("adapter")) {
    try {
      variants.push(adapter(join(await ensureAdapter(), "index.ts")));
    } catch (error) {
      progress(`pi-mcp-adapter is left out, it could not be fetched: ${String(error)}`);
    }
  }
  const { entry } = await packedExtension();
  return [...variants, ours(entry)];
}
