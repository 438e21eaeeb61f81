/** The texts of `/mcp status` and `/mcp tools`. Pure. */
import type { Catalog } from "../catalog/catalog.ts";
import type { WireError } from "../shared/protocol/errors.ts";
import type { ServerStatus, StatusReport } from "../shared/protocol/status.ts";
import { counted, offerText } from "../shared/text/amounts.ts";
import { describeProblem } from "../shared/text/failure.ts";
import { cleanText, firstSentence } from "../shared/text/unprintable.ts";
import { failureText } from "./failure-text.ts";
import { refusedLine } from "./refused.ts";
import { serverName } from "./server-name.ts";
import { needsText, signInText } from "./sign-in.ts";

/** Longest list of tools in a notice: of all servers together, and of one server. */
const TOOL_LINES = 300;
const TOOL_LINES_OF_ONE = 2_000;
const SERVERS_SHOWN = 100;
/** How much of a long question is shown: so many characters of its start and of its end. */
const QUESTION_END_CHARS = 400;

const oneErrorLine = (server: string, error: WireError): string =>
  cleanText(failureText(server, error)).replaceAll("\n", " | ");

function serverLine(server: ServerStatus, now: number): string {
  const { name, state, lifecycle, signIn } = server;
  const words = signIn && signInText(signIn, now);
  // A server that refuses its sign-in, for example for want of rights, needs another one.
  const needs = words === undefined || signIn?.state === "signed-in" ? needsText(server) : words;
  const details = [
    server.transport,
    offerText(server),
    ...(server.protocol === undefined ? [] : [`MCP ${server.protocol}`]),
    ...(lifecycle === "lazy" ? [] : [lifecycle]),
    ...(words === undefined || state === "needs-auth" ? [] : [words]),
  ];
  const error = server.error
    ? `: ${oneErrorLine(name, server.error)}`
    : server.waits
      ? `: ${server.waits}`
      : "";
  return `${serverName(name)}: ${state === "needs-auth" ? needs : state} (${details.join(", ")})${error}`;
}

/** The question, cut: only `/mcp trust` asks it, and shows it whole. */
function inBrief(question: string): string {
  const more = question.length - 2 * QUESTION_END_CHARS;
  if (more <= 0) return question;
  const [start, end] = [question.slice(0, QUESTION_END_CHARS), question.slice(-QUESTION_END_CHARS)];
  return `${start}… ${more} more characters …${end}`.toWellFormed();
}

/** `now`: milliseconds since the epoch. */
export function renderStatus(
  { servers, problems, files, refused, questions }: StatusReport,
  now = Date.now(),
): string {
  const connected = servers.filter((server) => server.state === "connected").length;
  const tools = servers.reduce((sum, server) => sum + server.toolCount, 0);
  const head = `MCP: ${connected} of ${counted(servers.length, "server")} connected, ${counted(tools, "tool")} known`;
  if (servers.length + problems.length + refused.length + questions.length === 0) {
    return `${head}\nNo servers are configured. Add them to ${files.join(" or ")}.`;
  }
  const waiting = questions.map(({ question }) => `waits for your consent: ${inBrief(question)}`);
  return [
    head,
    ...servers.map((server) => serverLine(server, now)),
    ...waiting,
    ...refused.map(refusedLine),
    ...problems.map(describeProblem),
  ].join("\n");
}

/** Why a configured server does not run; undefined if the report does not know the server. */
export function absentText(server: string, { questions, refused }: StatusReport): string | undefined {
  if (questions.some((question) => question.server === server)) {
    return `The server ${serverName(server)} waits for your consent. /mcp trust asks for it.`;
  }
  const refusal = refused.find(({ name }) => name === server);
  return refusal && refusedLine(refusal);
}

/** `known`: the names of all servers. */
export function unknownText(server: string, known: readonly string[]): string {
  const names = known.slice(0, SERVERS_SHOWN).map(serverName);
  const more = known.length > SERVERS_SHOWN ? [`${known.length - SERVERS_SHOWN} more`] : [];
  return `No server named ${server} is configured. Configured: ${[...names, ...more].join(", ") || "none"}.`;
}

/** The tools of one server, or of all servers. There may be thousands, so only those that are shown are written out. */
export function renderTools(
  catalog: Catalog,
  servers: readonly ServerStatus[],
  server: string | undefined,
): string {
  const known = new Set([...servers.map(({ name }) => name), ...catalog.servers.map(({ name }) => name)]);
  if (server !== undefined && !known.has(server)) return unknownText(server, [...known]);
  const toolsOf = Map.groupBy(catalog.tools, (tool) => tool.server.name);
  const most = server === undefined ? TOOL_LINES : TOOL_LINES_OF_ONE;
  const lines: string[] = [];
  let all = 0;
  for (const name of server === undefined ? known : [server]) {
    const tools = toolsOf.get(name) ?? [];
    all += 1 + tools.length;
    if (lines.length >= most) continue;
    lines.push(`${serverName(name)}: ${counted(tools.length, "tool")}`);
    for (const tool of tools.slice(0, most - lines.length)) {
      lines.push(`  ${tool.name} - ${firstSentence(tool.description)}`);
    }
  }
  if (all <= lines.length) return lines.join("\n");
  const more = `and ${all - lines.length} more lines`;
  return [...lines, server === undefined ? `${more}: /mcp tools <server>` : more].join("\n");
}
