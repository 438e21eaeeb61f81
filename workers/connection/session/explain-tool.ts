/**
 * Explains why a tool that a model named is unavailable, if the configuration is the reason: its server is disabled,
 * removed or not trusted, or a rule hides the tool. Main cannot know, because its catalog holds available tools only.
 */

import { ownerOf, spellingsOf } from "../../../src/shared/naming.ts";
import { ThreadsError, toWireError, type WireError } from "../../../src/shared/protocol/errors.ts";
import type { Server } from "../servers/server.ts";
import { excludedTool, refusal } from "../servers/status.ts";
import type { Supervisor } from "../servers/supervisor.ts";
import { allTools } from "../tools/listed.ts";

function reasonOf(server: Server, written: string): ThreadsError | undefined {
  const { definition, name } = server;
  if (!definition.enabled) return refusal(definition, { name: "disabled" }, "disabled", 0);
  const sameName = (tool: string): boolean =>
    spellingsOf(name, tool).some((spelling) => spelling.toLowerCase() === written.toLowerCase());
  const tool = allTools(server).find((known) => sameName(known.name) && server.excludes(known.name));
  return tool && excludedTool(definition, tool.name);
}

/** The input schema as the server listed it, without the repairs that hosts need (cache/schema), as indented JSON. */
export function declaredSchema({ tools }: Pick<Server, "tools">, tool: string): string | undefined {
  const schema = tools?.find(({ name }) => name === tool)?.inputSchema;
  return schema === undefined ? undefined : JSON.stringify(schema, undefined, 2);
}

/** `written`: the tool's name in Pi, as `server__tool`. Undefined if the configuration is not the reason. */
export function explainMissing(
  written: string,
  supervisor: Pick<Supervisor, "get" | "names">,
): WireError | undefined {
  const name = written.replace(/^mcp__/i, "");
  const owner = ownerOf(name, supervisor.names);
  if (owner === undefined) return undefined;
  try {
    const reason = reasonOf(supervisor.get(owner), name);
    return reason && toWireError(reason);
  } catch (error) {
    return error instanceof ThreadsError ? toWireError(error) : undefined;
  }
}
