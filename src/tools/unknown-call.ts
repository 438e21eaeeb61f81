/**
 * What the model reads where Pi refuses a call: a call of a tool that is not declared loads the tool that was meant, or says why
 * there is none; arguments that do not fit get the expected parameters, since Pi says only what is wrong; a script learns why
 * the configuration withholds a tool. Loaded with the first tool that fails.
 */
import type { Catalog, CatalogTool } from "../catalog/catalog.ts";
import { nearestTools, resolveTool, serverNames, serverOfName } from "../catalog/search.ts";
import type { FinishedMessage, TextContent } from "../pi/api.ts";
import { errorLine, signatureLine, stateNote } from "../report/search.ts";
import { serverName } from "../report/server-name.ts";
import { PROXY_TOOL, plainToolName } from "../shared/naming.ts";
import type { WireError } from "../shared/protocol/errors.ts";
import { LIMITS } from "../shared/protocol/limits.ts";
import { oneLine } from "../shared/text/unprintable.ts";
import { ownersOf } from "./branch.ts";
import { expectedLine } from "./definition.ts";
import type { UnknownCallHost } from "./host.ts";

/**
 * `text` is for the model. `error` is for scripts and the row, if the tool is unavailable. `details`: which tools were loaded; the
 * transcript keeps it as that of a search.
 */
interface Answer {
  text: string;
  error?: WireError | undefined;
  details?: { loaded: string[]; owners: ReturnType<typeof ownersOf> };
}

const NAME_SHOWN = 200;

/** The proxy tool is for the smallest prompt, so nothing is loaded beside it. */
function throughProxy(name: string, tools: readonly CatalogTool[]): string {
  const calls = tools.map((tool) => `${PROXY_TOOL} with tool: ${JSON.stringify(tool.name)} and args`);
  return [`Tool ${name} is called through ${calls.join(", or ")}:`, ...tools.map(signatureLine)].join("\n");
}

/** No more than a search loads: any number of servers may have a tool of one name. */
function loaded(name: string, found: readonly CatalogTool[], host: UnknownCallHost): Answer {
  const tools = found.slice(0, LIMITS.searchResultsMost);
  if (host.searchTool() === PROXY_TOOL) return { text: throughProxy(name, tools) };
  const { active, refused } = host.activate(tools);
  const refusal = refused.map((tool) => `Pi does not allow ${tool.name} in this session (--tools).`);
  if (active.length === 0) return { text: [`Tool ${name} not found.`, ...refusal].join("\n") };
  const names = active.map((tool) => tool.name);
  host.tell(
    `${names.join(", ")}: loaded now. The model called ${name} before that, and is told to call it again.`,
  );
  const lead = `Tool ${name} was not loaded. It is now: call it by this name in your next message.`;
  const several = `${name} is the name of several tools. These are loaded now: call one of them in your next message.`;
  return {
    text: [active.length === 1 ? lead : several, ...active.map(signatureLine), ...refusal].join("\n"),
    details: { loaded: names, owners: ownersOf(active) },
  };
}

/** For a withdrawn tool about which the configuration gives no reason. */
function gone(name: string, { server, tool }: CatalogTool, catalog: Catalog): Answer {
  const stays = catalog.servers.some((other) => other.name === server.name);
  const data = { server: server.name };
  const error: WireError = stays
    ? {
        code: "unknown_tool",
        message: `the server ${serverName(server.name)} no longer offers ${oneLine(tool, NAME_SHOWN)}.`,
        data,
      }
    : {
        code: "server_removed",
        message: `its server ${serverName(server.name)} was removed from the configuration.`,
        data,
      };
  return { text: `Tool ${name} not found: ${error.message}`, error };
}

/** Compares server and name at the server; the name in Pi may differ. */
const isSameTool =
  (one: CatalogTool) =>
  (other: CatalogTool): boolean =>
    other.tool === one.tool && other.server.name === one.server.name;

/** Undefined if the call has nothing to do with MCP. */
async function answerUnknownCall(name: string, host: UnknownCallHost): Promise<Answer | undefined> {
  const catalog = host.catalog();
  const withdrawn = catalog.get(name) === undefined ? host.withdrawn(name) : undefined;
  const renamed = withdrawn && catalog.tools.find(isSameTool(withdrawn));
  if (renamed) return loaded(name, [renamed], host);
  const resolution = resolveTool(catalog, name);
  if (!withdrawn && resolution.kind === "tool") return loaded(name, [resolution.tool], host);
  if (!withdrawn && resolution.kind === "several") return loaded(name, resolution.tools, host);
  const error = await host.whyMissing(
    withdrawn ? plainToolName(withdrawn.server.name, withdrawn.tool) : name,
  );
  if (error) return { text: `Tool ${name} not found: ${errorLine(error)}`, error };
  if (withdrawn) return gone(name, withdrawn, catalog);
  const server = serverOfName(name, serverNames(host));
  const state = stateNote(host.servers().find((status) => status.name === server));
  const isOurs = server !== undefined || /^mcp__/i.test(name);
  const nearest = resolution.kind === "unknown" ? await nearestTools(catalog, name) : [];
  if (!isOurs && nearest.length === 0) return undefined;
  const near = nearest.map((tool) => tool.name).join(", ");
  const search = host.searchTool();
  const others = search === undefined ? "" : ` ${search} finds others.`;
  const text = [`Tool ${name} not found.${near === "" ? "" : ` Nearest: ${near}.${others}`}`, ...state].join(
    "\n",
  );
  return { text };
}

/** Pi's words for a tool that a script wants and that is not there. */
const IN_SCRIPT = /\btools\.([\w$]+) does not exist\b/;

/** For `message_end`: the message of a tool that failed, in better words; undefined to leave the message as it is. */
export async function explainFailed<M extends FinishedMessage>(
  message: M,
  host: UnknownCallHost,
): Promise<M | undefined> {
  const { role, toolName, isError, content } = message;
  if (role !== "toolResult" || isError !== true || toolName === undefined || !Array.isArray(content)) {
    return undefined;
  }
  const texts = (content as Partial<TextContent>[]).map(({ text }) => text);
  const withLine = (text: string): M => ({ ...message, content: [...content, { type: "text", text }] });
  if (texts.length === 1 && texts[0]?.startsWith(`Validation failed for tool "${toolName}"`)) {
    const tool = host.catalog().get(toolName);
    return tool && withLine(expectedLine(tool));
  }
  if (texts[0] === `Tool ${toolName} not found`) {
    const found = await answerUnknownCall(toolName, host);
    if (!found) return undefined;
    const { text, error, details = error && { ...error.data, code: error.code } } = found;
    return { ...message, content: [{ type: "text", text }], ...(details && { details }) };
  }
  const [, wanted] = (toolName === "codemode" && IN_SCRIPT.exec(texts.join("\n"))) || [];
  const why = wanted === undefined ? undefined : await host.whyMissing(wanted);
  return why && withLine(`${wanted}: ${errorLine(why)}`);
}
