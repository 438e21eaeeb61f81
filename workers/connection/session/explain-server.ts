/**
 * Explains why a server that the user named does not exist although some file names it: the server waits for consent or
 * was refused, its entry is wrong, or a whole file is wrong. Pure.
 */

import { ownerOf, spellingsOf } from "../../../src/shared/naming.ts";
import type { DeclaredTool } from "../../../src/shared/protocol/calls.ts";
import { ThreadsError, toWireError, type WireError } from "../../../src/shared/protocol/errors.ts";
import { describeProblem } from "../../../src/shared/text/failure.ts";
import { advice } from "../../shared/commands.ts";
import { isAppOnly } from "../../shared/signs.ts";
import type { ConfigState } from "../config/config.ts";
import type { Server } from "../servers/server.ts";
import { appOnlyTool, excludedTool, refusal } from "../servers/status.ts";
import type { Supervisor } from "../servers/supervisor.ts";
import { allTools } from "../tools/listed.ts";

function reasonOf(server: Server, written: string): ThreadsError | undefined {
  const { definition, name } = server;
  if (!definition.enabled) return refusal(definition, { name: "disabled" }, "disabled", 0);
  const sameName = (tool: string): boolean =>
    spellingsOf(name, tool).some((spelling) => spelling.toLowerCase() === written.toLowerCase());
  const tool = allTools(server).find(
    (known) => sameName(known.name) && (isAppOnly(known) || server.excludes(known.name)),
  );
  if (!tool) return undefined;
  return isAppOnly(tool) ? appOnlyTool(name, tool.name) : excludedTool(definition, tool.name);
}

/** The input schema as the server listed it, without the repairs that hosts need (cache/schema), as indented JSON. */
export function declaredSchema({ tools }: Pick<Server, "tools">, tool: string): string | undefined {
  const schema = tools?.find(({ name }) => name === tool)?.inputSchema;
  return schema === undefined ? undefined : JSON.stringify(schema, undefined, 2);
}

/** Undefined for a tool that is ours, such as one that reads a resource. */
export function declaredTool({ tools }: Pick<Server, "tools">, tool: string): DeclaredTool | undefined {
  const { title, inputSchema, outputSchema, annotations } = tools?.find(({ name }) => name === tool) ?? {};
  if (inputSchema === undefined) return undefined;
  return {
    inputSchema,
    ...(title === undefined ? {} : { title }),
    ...(outputSchema === undefined ? {} : { outputSchema }),
    ...(annotations === undefined ? {} : { annotations }),
  };
}

/** `written`: the name of a tool or prompt in Pi, as `server__tool`. Undefined if the configuration is not the reason. */
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

/** `mcpServers.name.command` -> `name.command`; undefined for a key that is in no server's entry. */
const belowServers = (key: string | undefined): string | undefined =>
  /^mcp-?servers\.(.*)$/i.exec(key ?? "")?.[1];

/** A server that the policy of this machine wants in every session. */
export const isRequired = ({ name, file }: Pick<Server["definition"], "name" | "file">): ThreadsError =>
  new ThreadsError("bad_config", `The policy of this machine requires ${name} (${file}).`, {
    remedy: "Only the administrator can change that.",
    data: { server: name, file },
  });

/** Undefined if nothing explains the absence. */
export function explainAbsent(
  name: string,
  { questions, refused, problems }: Pick<ConfigState, "questions" | "refused" | "problems">,
): ThreadsError | undefined {
  const because = (message: string, remedy: string): ThreadsError =>
    new ThreadsError("unknown_server", message, { remedy, data: { known: [] } });
  if (questions.some(({ server }) => server === name)) {
    return because(`The server ${name} waits for your consent.`, advice("consent"));
  }
  const refusal = refused.find((one) => one.name === name);
  if (refusal) return because(`The server ${name} is not started: ${refusal.reason}.`, advice("more"));
  const errors = problems.filter(({ severity }) => severity === "error");
  const own =
    errors.find(({ key }) => belowServers(key) === name) ??
    // A name may hold dots, so the mistake of the whole entry comes first.
    errors.find(({ key }) => belowServers(key)?.startsWith(`${name}.`));
  if (own) return because(`The server ${name} cannot be used.`, describeProblem(own));
  const [broken] = errors.filter(({ key }) => key === undefined);
  return (
    broken &&
    because(`No server named ${name} is configured in a file that can be read.`, describeProblem(broken))
  );
}
