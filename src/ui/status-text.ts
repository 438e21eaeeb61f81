/** What `/mcp` prints, as text. Pure. */
import type { Catalog } from "../catalog/catalog.ts";
import { describeErrorOf, type WireError } from "../protocol/errors.ts";
import { describeProblem } from "../protocol/problem.ts";
import { firstSentence } from "../protocol/sentence.ts";
import type { ServerStatus, StatusReport } from "../protocol/types.ts";
import { cleanText, oneLine } from "../protocol/unprintable.ts";
import { counted, offerText } from "../tools/offer.ts";

/** Of all servers together; one server alone is shown whole. */
const TOOL_LINES = 300;

const NAME_CHARS = 200;

/** A name in one line: a project's file may hold any. */
const shown = (name: string): string => oneLine(name, NAME_CHARS);

const oneErrorLine = (server: string, error: WireError): string =>
  cleanText(describeErrorOf(server, error)).replaceAll("\n", " | ");

function serverLine(server: ServerStatus): string {
  const lifecycle = server.lifecycle === "lazy" ? "" : `, ${server.lifecycle}`;
  const error = server.error ? `: ${oneErrorLine(server.name, server.error)}` : "";
  return `${shown(server.name)}: ${server.state} (${server.transport}, ${offerText(server)}${lifecycle})${error}`;
}

/** A server of the project that may not run. */
export const refusedLine = ({ name, reason }: StatusReport["refused"][number]): string =>
  `MCP server ${shown(name)} of this project is not started: ${reason}.`;

export function renderStatus({ servers, problems, files, refused, questions }: StatusReport): string {
  const connected = servers.filter((server) => server.state === "connected").length;
  const tools = servers.reduce((sum, server) => sum + server.toolCount, 0);
  const head = `MCP: ${connected} of ${counted(servers.length, "server")} connected, ${counted(tools, "tool")} known`;
  if (servers.length + problems.length + refused.length + questions.length === 0) {
    return `${head}\nNo servers are configured. Add them to ${files.join(" or ")}.`;
  }
  const waiting = questions.map(({ question }) => `waits for your consent: ${question}`);
  return [
    head,
    ...servers.map(serverLine),
    ...waiting,
    ...refused.map(refusedLine),
    ...problems.map(describeProblem),
  ].join("\n");
}

/** A server that is configured and may not run; undefined where nothing is known of it. */
export function absentText(server: string, { questions, refused }: StatusReport): string | undefined {
  if (questions.some((question) => question.server === server)) {
    return `The server ${shown(server)} waits for your consent. /mcp trust asks for it.`;
  }
  const refusal = refused.find(({ name }) => name === server);
  return refusal && refusedLine(refusal);
}

/** The tools of one server, or of all, by server. */
export function renderTools(
  catalog: Catalog,
  servers: readonly ServerStatus[],
  server: string | undefined,
): string {
  const known = new Set([...servers.map(({ name }) => name), ...catalog.servers.map(({ name }) => name)]);
  if (server !== undefined && !known.has(server)) {
    return `No server named ${server} is configured. Configured: ${[...known].join(", ") || "none"}.`;
  }
  const lines = [...known]
    .filter((name) => server === undefined || name === server)
    .flatMap((name) => {
      const tools = catalog.tools.filter((tool) => tool.server.name === name);
      return [
        `${name}: ${counted(tools.length, "tool")}`,
        ...tools.map((tool) => `  ${tool.name} - ${firstSentence(tool.description)}`),
      ];
    });
  if (server !== undefined || lines.length <= TOOL_LINES) return lines.join("\n");
  return [
    ...lines.slice(0, TOOL_LINES),
    `and ${lines.length - TOOL_LINES} more lines: /mcp tools <server>`,
  ].join("\n");
}
