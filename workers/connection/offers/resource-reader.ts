/**
 * Tells the model how to read a resource that a result links to: with which tool, by its name in Pi, and with which
 * arguments. Called by results.ts for each link.
 */
import { nameTools } from "../../../src/shared/naming.ts";
import type { Settings } from "../config/entry/settings.ts";
import { exposedTools, type Offering, prefixOf } from "./exposed.ts";
import { resourceTools } from "./resource-tools.ts";

/** Longer arguments are left out of the sentence: the model reads the URI beside it. */
const ARGUMENT_CHARS = 1_000;

export interface ReaderOptions {
  /** All servers of the session: the name of a tool in Pi depends on the other names. */
  servers: readonly Offering[];
  settings: Settings;
}

/** Server and tool -> the name in Pi, for all tools that the rules let through. */
function namesInPi({ servers, settings }: ReaderOptions): Map<string, string> {
  const offered = servers
    .filter(({ definition }) => definition.enabled)
    .flatMap((server) => {
      const prefix = prefixOf(server, settings);
      return exposedTools(server, settings).map(({ name: tool }) => ({ server: server.name, tool, prefix }));
    });
  const { names } = nameTools(offered);
  return new Map(offered.map(({ server, tool }, i) => [keyOf(server, tool), names[i] ?? ""]));
}

const keyOf = (server: string, tool: string): string => JSON.stringify([server, tool]);

/** The tool that reads exactly this URI, else a tool whose template fits it. */
function toolFor(
  server: Offering,
  tools: ReturnType<typeof resourceTools>,
  uri: string,
): { tool: string; args: Record<string, unknown> } | undefined {
  let found: { tool: string; args: Record<string, unknown> } | undefined;
  for (const [tool, { argsOf }] of tools) {
    const args = argsOf(uri);
    if (!args || server.excludes(tool)) continue;
    found = { tool, args };
    if (Object.keys(args).length === 0) break;
  }
  return found;
}

/** Answers `(uri) => sentence` for a URI as the server sent it; undefined if no tool reads it. */
export function resourceReader(
  server: Offering,
  options: ReaderOptions,
): (uri: string) => string | undefined {
  // Computed once a result, and only for a result with such a link: it may hold a hundred thousand links.
  let names: Map<string, string> | undefined;
  let tools: ReturnType<typeof resourceTools> | undefined;
  return (uri) => {
    if (!server.definition.exposeResources) return undefined;
    tools ??= resourceTools(server.resources, server.tools ?? []);
    const reader = toolFor(server, tools, uri);
    if (!reader) return undefined;
    names ??= namesInPi(options);
    const name = names.get(keyOf(server.name, reader.tool));
    if (name === undefined) return undefined;
    if (Object.keys(reader.args).length === 0) return `Read it with the tool ${name}.`;
    const args = JSON.stringify(reader.args);
    const shown = args.length <= ARGUMENT_CHARS && server.redact(args) === args ? ` and ${args}` : "";
    return `Read it with the tool ${name}${shown}.`;
  };
}
