/** The texts of `/mcp status` and `/mcp tools`. Pure. */

import type { Catalog } from "../catalog/catalog.ts";
import type {
  ServerResources,
  ShownResource,
  StatsReport,
  StatsSummary,
  ToolStats,
} from "../shared/protocol/calls.ts";
import { type WireError, wantsKey } from "../shared/protocol/errors.ts";
import type { ConfigProblem, ServerStatus, SignInStatus, StatusReport } from "../shared/protocol/session.ts";
import { counted, durationText, formatBytes, formatMs, offerText } from "../shared/text/amounts.ts";
import { describeProblem } from "../shared/text/failure.ts";
import { cleanText, firstSentence } from "../shared/text/unprintable.ts";
import { cutTo, padded, printable, visibleWidth } from "../shared/text/width.ts";
import { wrapWords } from "../shared/text/wrap-words.ts";
import { sharingText } from "./hub.ts";
import { failureText, refusedLine, serverName } from "./server-name.ts";

/** Longest list of tools in a notice: of all servers together, and of one server. */
const TOOL_LINES = 300;
const TOOL_LINES_OF_ONE = 2_000;
const SERVERS_SHOWN = 100;
/** How much of a long question is shown: so many characters of its start and of its end. */
const QUESTION_END_CHARS = 400;

const oneErrorLine = (server: string, error: WireError): string =>
  cleanText(failureText(server, error)).replaceAll(":\n", ": ").replaceAll("\n", " | ");

function serverLine(server: ServerStatus, now: number): string {
  const { name, state, lifecycle, signIn, sharing, pid } = server;
  const words = signIn && signInText(signIn, now);
  // A server that refuses its sign-in, for example for want of rights, needs another one.
  const needs = words === undefined || signIn?.state === "signed-in" ? needsText(server) : words;
  const details = [
    server.transport,
    offerText(server),
    ...(server.protocol === undefined ? [] : [`MCP ${server.protocol}`]),
    ...(lifecycle === "lazy" ? [] : [lifecycle]),
    ...(server.isSandboxed ? ["sandbox"] : []),
    ...(sharing ? [sharingText(sharing, now), ...(pid === undefined ? [] : [`pid ${pid}`])] : []),
    ...(words === undefined || state === "needs-auth" ? [] : [words]),
  ];
  const error = server.error
    ? `: ${oneErrorLine(name, server.error)}`
    : server.waits
      ? `: ${server.waits}`
      : "";
  const shown = server.isOff ? "off for this session" : state;
  return `${serverName(name)}: ${state === "needs-auth" ? needs : shown} (${details.join(", ")})${error}`;
}

/** The question, cut: only `/mcp trust` asks it, and shows it whole. */
function inBrief(question: string): string {
  const more = question.length - 2 * QUESTION_END_CHARS;
  if (more <= 0) return question;
  const [start, end] = [question.slice(0, QUESTION_END_CHARS), question.slice(-QUESTION_END_CHARS)];
  return `${start}… ${more} more characters …${end}`.toWellFormed();
}

/** What is wrong in the files, a line each, as notices tell it as well. */
export const configLines = ({ problems, refused }: Pick<StatusReport, "problems" | "refused">): string[] => [
  ...refused.map(refusedLine),
  ...problems.map(describeProblem),
];

/** A mistake in the form of a file has a place in it, and no key. */
export const isOfWholeFile = ({ severity, line, key = "" }: ConfigProblem): boolean =>
  severity === "error" && line !== undefined && key === "";

/** `now`: milliseconds since the epoch. `isTold`: the person has read what is wrong in the files. */
export function renderStatus(
  report: StatusReport,
  { now = Date.now(), isTold = false }: { now?: number; isTold?: boolean } = {},
): string {
  const { servers, problems, files, refused, questions } = report;
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
    ...(isTold ? [] : configLines(report)),
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

/** For example `signed in, expires in 42 min, renews itself`. `now`: milliseconds since the epoch. */
export function signInText(signIn: SignInStatus, now: number): string {
  if (signIn.state === "needed") return "needs sign-in";
  if (signIn.state === "running") return "signing in";
  const { expiresAt, renews, byItself, through, isBound, isInSystem } = signIn;
  const how = `${byItself ? " by itself" : ""}${through === undefined ? "" : ` through ${through}`}`;
  const says = [`signed in${how}`, ...(isBound ? ["bound to a key"] : [])];
  if (expiresAt !== undefined)
    says.push(expiresAt > now ? `expires in ${durationText(expiresAt - now)}` : "expired");
  says.push(renews ? "renews itself" : "cannot renew");
  return [...says, ...(isInSystem ? ["kept in the system's store"] : [])].join(", ");
}

/** What a server that answers 401 needs. */
export const needsText = ({ error }: Pick<ServerStatus, "error">): string => needsWord(error?.data?.reason);

/** `reason`: of the error. */
export function needsWord(reason: unknown): string {
  if (reason === "key-refused") return "key refused";
  return reason === "key-wanted" ? "needs a key" : "needs sign-in";
}

/** Whether a sign-in would help the server now. A server that takes none, or whose own header it refuses, is not one. */
export const canSignIn = ({ state, signIn }: ServerStatus): boolean =>
  signIn !== undefined && (signIn.state === "needed" || state === "needs-auth");

/** Whether the person has to say where the server's key is. */
export const lacksKey = ({ state, error }: ServerStatus): boolean =>
  state === "needs-auth" && error !== undefined && wantsKey(error);

/** Longest list in a notice. */
const LINES = 300;
const CHARS = 50_000;

const line = (server: string, { uri, title }: ShownResource): string => `  @${server}:${uri} - ${title}`;

function linesOf({ server, resources, templates }: ServerResources): string[] {
  const name = serverName(server);
  if (!resources) return [`${name}: its resources are not known`];
  const and = templates.length === 0 ? "" : ` and ${counted(templates.length, "template")}`;
  return [
    `${name}: ${counted(resources.length, "resource")}${and}`,
    ...resources.map((resource) => line(name, resource)),
    ...templates.map((template) => `${line(name, template)} (fill in the braces)`),
  ];
}

/** The lines that a notice holds. */
function bounded(lines: readonly string[]): string[] {
  let chars = 0;
  return lines.slice(0, LINES).filter((text) => {
    chars += text.length;
    return chars <= CHARS;
  });
}

export function renderResources(servers: readonly ServerResources[]): string {
  const lines = servers.flatMap(linesOf);
  if (lines.length === 0) return "No servers are configured.";
  const kept = bounded(lines);
  const hasAny = servers.some(({ resources = [], templates }) => resources.length + templates.length > 0);
  const hint = "Write such an @ into a message to hand the resource to the model.";
  const more = lines.length - kept.length;
  if (more > 0) return [...kept, `and ${more} more lines: /mcp resources <server>`].join("\n");
  return [...kept, ...(hasAny ? [hint] : [])].join("\n");
}

const NAME_CELLS = 48;
/** If fewer cells than this are left for the names, each name stands on a line of its own. */
const NAME_CELLS_LEAST = 32;
const GAP = "  ";

const HEAD = ["calls", "errors", "received", "shown", "mean"];

const numbersOf = (stats: ToolStats): string[] => [
  String(stats.calls),
  String(stats.errors),
  formatBytes(stats.receivedBytes),
  formatBytes(stats.shownBytes),
  formatMs(stats.meanMs),
];

/** Server and tool in one line; a server may have put anything into the tool's name. */
const nameOf = ({ server, tool }: ToolStats): string =>
  printable(`${server} · ${tool}`).replaceAll("\n", " ");

function lines(tools: readonly ToolStats[], columns: number): string[] {
  const numbers = [HEAD, ...tools.map(numbersOf)];
  const widths = HEAD.map((_, column) => Math.max(...numbers.map((cells) => cells[column]?.length ?? 0)));
  const rows = numbers.map((cells) => cells.map((cell, i) => cell.padStart(widths[i] ?? 0)).join(GAP));
  const left = columns - (rows[0]?.length ?? 0) - GAP.length;
  const beside = left >= NAME_CELLS_LEAST;
  const names = ["tool", ...tools.map(nameOf)].map((name) =>
    cutTo(name, beside ? Math.min(left, NAME_CELLS) : columns),
  );
  const nameCells = Math.max(...names.map(visibleWidth));
  return names.flatMap((name, i) =>
    beside ? [`${padded(name, nameCells)}${GAP}${rows[i]}`] : [name, `${GAP}${rows[i]}`],
  );
}

const OFF = '"captureStats": false under "settings" in mcp.json';
const KEPT_WHERE = `Counted on this machine alone; ${OFF} stops it.`;

function table({ tools, moreTools, tokensSaved }: StatsSummary, columns: number): string {
  if (tools.length === 0) return "No calls are recorded yet.";
  const more = moreTools > 0 ? [`and ${moreTools.toLocaleString("en")} more tools`] : [];
  const saved = `About ${tokensSaved.toLocaleString("en")} tokens saved by shortening results.`;
  const below = [...(tokensSaved === 0 ? [] : [saved]), KEPT_WHERE];
  return [...lines(tools, columns), ...more, ...below.flatMap((text) => wrapWords(text, columns))].join("\n");
}

/** `columns`: terminal cells of a line. */
export const renderStats = (report: StatsReport, columns: number): string =>
  report.captured ? table(report.summary, columns) : `Calls are not counted: ${OFF}.`;

/** Above the question whether a server may run. */
export const wantsText = ({ ofPackage }: { ofPackage?: true | undefined }): string =>
  `${ofPackage ? "A package" : "This project"} wants to run an MCP server.`;
