/**
 * The tools that a session's branch has declared to the model, read from its transcript. Pure. After a resume, a fork or
 * `/tree` these tools must be registered by the end of `before_agent_start`, or Pi drops them for good.
 */

import { type CatalogTool, NO_SCHEMAS } from "../catalog/catalog.ts";
import { namePrefixes, PROXY_TOOL } from "../shared/naming.ts";
import { asList, isObject } from "../shared/protocol/values.ts";
import type { SnapshotServer } from "../shared/snapshot/contract.ts";

/** A tool definition as Pi stores it in a transcript. */
export interface DeclaredTool {
  name: string;
  description: string;
  parameters: Record<string, unknown>;
  /** The tool at its server, if a search or a call of the branch has recorded it. */
  owner?: ToolOwner;
}

interface ToolOwner {
  server: string;
  /** The tool's name at the server. The name in Pi may be cut, or lack the server. */
  tool: string;
}

/** Records the owners of tools for the `details` of a result, which Pi keeps in the transcript. */
export const ownersOf = (tools: readonly CatalogTool[]): Record<string, ToolOwner> =>
  Object.fromEntries(tools.map(({ name, server, tool }) => [name, { server: server.name, tool }]));

const readOwner = (value: unknown): ToolOwner | undefined =>
  isObject(value) && typeof value.server === "string" && typeof value.tool === "string"
    ? { server: value.server, tool: value.tool }
    : undefined;

/** Reads owners from a result of the branch: of a search that loaded tools, or of a call of the tool itself. */
function noteOwners(message: Record<string, unknown>, owners: Map<string, ToolOwner>): void {
  const { toolName, details } = message;
  if (message.role !== "toolResult" || typeof toolName !== "string" || !isObject(details)) return;
  const own = toolName === PROXY_TOOL ? undefined : readOwner(details);
  if (own) owners.set(toolName, own);
  for (const [name, value] of isObject(details.owners) ? Object.entries(details.owners) : []) {
    const owner = readOwner(value);
    if (owner) owners.set(name, owner);
  }
}

/** Replays `toolsAdded` and `toolsRemoved` of the branch's system messages. `branch`: the oldest entry first. */
export function declaredTools(branch: readonly unknown[]): Map<string, DeclaredTool> {
  const declared = new Map<string, DeclaredTool>();
  const owners = new Map<string, ToolOwner>();
  for (const entry of branch) {
    const message = isObject(entry) && entry.type === "message" ? entry.message : undefined;
    if (!isObject(message)) continue;
    noteOwners(message, owners);
    if (message.role !== "system") continue;
    for (const removed of asList(message.toolsRemoved)) {
      if (isObject(removed) && typeof removed.name === "string") declared.delete(removed.name);
    }
    for (const tool of asList(message.toolsAdded)) {
      if (!isObject(tool) || typeof tool.name !== "string" || !isObject(tool.parameters)) continue;
      const description = typeof tool.description === "string" ? tool.description : "";
      declared.set(tool.name, { name: tool.name, description, parameters: tool.parameters });
    }
  }
  for (const [name, owner] of owners) {
    const tool = declared.get(name);
    if (tool) tool.owner = owner;
  }
  return declared;
}

/** Type of the entries that say which servers are switched off: a session that goes on keeps them off. */
export const OFF_ENTRY = "mcp-off";

/** The prefix before the tool's own name, if the name can belong to a tool of this server. */
const prefixIn = (toolName: string, server: string): string | undefined =>
  namePrefixes(server).find((prefix) => toolName.startsWith(prefix));

/** The server to which the tool's name points. If several servers fit, such as `git` and `git__hub`, the longest. */
export function serverByName<Server extends { name: string }>(
  toolName: string,
  servers: readonly Server[],
): Server | undefined {
  const lengthFor = ({ name }: Server): number => prefixIn(toolName, name)?.length ?? 0;
  return servers
    .filter((server) => lengthFor(server) > 0)
    .reduce<Server | undefined>(
      (best, server) => (best && lengthFor(best) >= lengthFor(server) ? best : server),
      undefined,
    );
}

/** Makes a tool that no catalog holds from its declaration in the transcript. */
export function fromTranscript(
  { name, description, parameters, owner }: DeclaredTool,
  server: SnapshotServer,
): CatalogTool {
  const tool = owner?.tool ?? name.slice(prefixIn(name, server.name)?.length ?? 0);
  return {
    name,
    tool,
    server,
    description,
    schemas: NO_SCHEMAS,
    at: 0,
    inputSchema: parameters,
  };
}
