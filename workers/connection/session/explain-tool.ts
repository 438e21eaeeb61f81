/**
 * Why a tool that a model named is not to be had, where the configuration says so: its server is switched off,
 * removed or not trusted, or the tool is excluded. Main knows only what is to be had. Pure but for what it asks.
 */

import { ownerOf, spellingsOf } from "../../../src/shared/naming/names.ts";
import { ThreadsError, toWireError, type WireError } from "../../../src/shared/protocol/errors.ts";
import { offeredTools } from "../offers/offers.ts";
import type { Server, Supervisor } from "../servers/servers.ts";
import { excludedTool, refusal } from "../servers/servers.ts";

function reasonOf(server: Server, written: string): ThreadsError | undefined {
  const { definition, name } = server;
  if (!definition.enabled) return refusal(definition, { name: "disabled" }, "disabled", 0);
  const sameName = (tool: string): boolean =>
    spellingsOf(name, tool).some((spelling) => spelling.toLowerCase() === written.toLowerCase());
  const tool = offeredTools(server).find((known) => sameName(known.name) && server.excludes(known.name));
  return tool && excludedTool(definition, tool.name);
}

/** `written`: the tool's name in Pi, as `server__tool`. Undefined where the configuration is not the reason. */
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
