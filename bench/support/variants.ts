/**
 * Owns: the clients that are compared: ours, pi-mcp-adapter, Pi's built-in MCP, and Pi without any. For each
 * what Pi loads, how a server is configured, and how a model finds and calls a tool.
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

/** A server as every client understands it. */
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
  /** What goes between the halves of the probe. */
  extension: string;
  /** Merged over the settings of the home. */
  settings: Record<string, unknown>;
  /** One entry of `mcpServers`; undefined: this Pi has no MCP servers. */
  entry: ((server: ServerEntry, lifecycle: Lifecycle) => Record<string, unknown>) | undefined;
  /** The model's turn that finds and loads a tool. */
  find(server: string, tool: string): ModelTurn;
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
  call: (server, calls) => ({
    toolCalls: calls.map(({ tool, args }) => ({ name: `${server}__${tool}`, args })),
  }),
});

/** The default of the adapter: every call goes through its one tool `mcp`. */
const adapter = (extension: string): Variant => ({
  id: "adapter",
  label: `pi-mcp-adapter ${ADAPTER_VERSION}`,
  extension,
  settings: {},
  entry: (server, lifecycle) => ({ ...server, lifecycle }),
  find: (server, tool) => ({ toolCalls: [{ name: "mcp", args: { search: tool, server } }] }),
  call: (server, calls) => ({
    toolCalls: calls.map(({ tool, args }) => ({
      name: "mcp",
      args: { tool: `${server}_${tool}`, args },
    })),
  }),
});

/** Connects every server at start; it knows no lifecycles. */
const builtin: Variant = {
  id: "builtin",
  label: "built-in MCP",
  extension: EMPTY_EXTENSION,
  settings: { extensions: [] },
  entry: (server) => ({ ...server, exposure: "deferred" }),
  find: (server, tool) => ({
    toolCalls: [{ name: "tool_search", args: { query: `mcp__${server}__${tool}` } }],
  }),
  call: (server, calls) => ({
    toolCalls: calls.map(({ tool, args }) => ({ name: `mcp__${server}__${tool}`, args })),
  }),
};

/** Time after which a peer that never answers a big result is given up, in seconds and in the adapter's form. */
export const PEER_TIMEOUT = { timeout: 10, requestTimeoutMs: 10_000 };

export const PEERS = ["none", "builtin", "adapter"] as const;

/** The variants that `--vs` names, bare Pi first, ours last. A peer that cannot be fetched is left out and named. */
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
