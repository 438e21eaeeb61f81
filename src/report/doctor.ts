/** What `/mcp doctor` and the command line show: the findings for a person, and a report for others to read. Pure. */
import type { DoctorReport, Finding } from "../shared/protocol/person.ts";
import { counted, formatMs } from "../shared/text/amounts.ts";
import { isTrouble, worstFirst } from "../shared/text/failure.ts";
import { oneLine } from "../shared/text/unprintable.ts";
import { wrapWords } from "../shared/text/wrap-words.ts";
import { serverName } from "./server-name.ts";
import { needsWord } from "./status.ts";

/** Narrower lines would be harder to read than lines that the terminal breaks. */
const LEAST_COLUMNS = 40;
const INDENT = "  ";
const NAME_CHARS = 40;
const REASON_CHARS = 300;

const place = ({ file, line }: Finding): string =>
  file === undefined ? "" : ` (${file}${line === undefined ? "" : `:${line}`})`;

const subject = ({ server }: Finding): string => (server === undefined ? "" : `${serverName(server)}: `);

function findingLines(finding: Finding, columns: number): string[] {
  const { severity, title, detail, remedy } = finding;
  const below = columns - INDENT.length;
  const more = [detail, remedy && `To do: ${remedy}`].filter((text) => text !== undefined && text !== "");
  const [first = "", ...rest] = wrapWords(
    `${severity}: ${subject(finding)}${title}${place(finding)}`,
    columns,
  );
  return [
    first,
    ...rest.flatMap((text) => wrapWords(text, below).map((line) => INDENT + line)),
    ...more.flatMap((text) => wrapWords(text as string, below).map((line) => INDENT + line)),
  ];
}

const countOf = (findings: readonly Finding[], severity: Finding["severity"], noun: string): string[] => {
  const count = findings.filter((finding) => finding.severity === severity).length;
  return count === 0 ? [] : [counted(count, noun)];
};

function headline({ findings, tookMs }: DoctorReport): string {
  const counts = [
    ...countOf(findings, "error", "error"),
    ...countOf(findings, "warning", "warning"),
    ...countOf(findings, "note", "note"),
  ];
  const took = `in ${formatMs(tookMs)}`;
  return findings.some(isTrouble)
    ? `MCP doctor: ${counts.join(", ")}, ${took}`
    : `MCP doctor: nothing wrong was found, ${[...counts, took].join(", ")}`;
}

const stageLines = ({ stages }: DoctorReport): string[] =>
  stages.map(({ name, ms, ok }) => `${INDENT}${ok ? "ok" : "failed"}: ${name}, ${formatMs(ms)}`);

/** What only Pi's main thread knows. */
export interface Surroundings {
  /** Paths of other extensions that are MCP clients too. */
  otherClients: readonly string[];
  /** How many workers of this session died, and why the last one did. Absent: no session runs. */
  crashes?: { count: number; last: string } | undefined;
}

/** `home`: the user's home folder. */
export function surroundingFindings({ otherClients, crashes }: Surroundings, home: string): Finding[] {
  const found: Finding[] = otherClients.map((path) => ({
    id: "other-client",
    severity: "warning",
    title: "Another extension provides /mcp: two MCP clients run the same servers twice.",
    remedy: "Remove one of them: pi config.",
    file: path.startsWith(`${home}/`) ? `~${path.slice(home.length)}` : path,
  }));
  if (!crashes || crashes.count === 0) return found;
  const { count, last } = crashes;
  return [
    ...found,
    {
      id: "crash",
      severity: "warning",
      title: `The connection worker ended unexpectedly ${count === 1 ? "once" : `${count} times`} in this session.`,
      detail: `The last reason: ${oneLine(last, REASON_CHARS)}.`,
      remedy: "If this keeps happening, please open an issue with this report.",
    },
  ];
}

/** The report with what only its reader knows, for example other extensions of Pi. */
export const withFindings = (report: DoctorReport, more: readonly Finding[]): DoctorReport => ({
  ...report,
  findings: worstFirst([...more, ...report.findings]),
});

/** The findings, the worst first; of what is well only what is said of a server. `columns`: width of a line. */
export function renderDoctor(report: DoctorReport, columns: number): string {
  const width = Math.max(LEAST_COLUMNS, columns);
  const shown = report.findings.filter(({ severity, server }) => severity !== "ok" || server !== undefined);
  const left = report.leftOut > 0 ? [`and ${report.leftOut} more`] : [];
  return [
    headline(report),
    ...stageLines(report),
    ...shown.flatMap((finding) => findingLines(finding, width)),
    ...left,
  ].join("\n");
}

const name = (text: string): string => {
  const shown = serverName(text);
  return shown.length > NAME_CHARS ? `${shown.slice(0, NAME_CHARS - 1)}…` : shown;
};

function serverLine(server: DoctorReport["servers"][number]): string {
  const { transport, state, reason, lifecycle, tools, protocol, startMs, directTokens } = server;
  const parts = [
    transport,
    state === "needs-auth" ? needsWord(reason) : state,
    lifecycle,
    counted(tools, "tool"),
    ...(protocol === undefined ? [] : [`MCP ${protocol}`]),
    ...(startMs === undefined ? [] : [`started in ${formatMs(startMs)}`]),
    ...(directTokens ? [`${directTokens.toLocaleString("en")} tokens`] : []),
  ];
  return `${name(server.name)}: ${parts.join(", ")}`;
}

function reportLine(finding: Finding): string {
  const { id, severity, title, detail, remedy } = finding;
  const text = [title, detail, remedy].filter(Boolean).join(" ");
  return `${severity} [${id}] ${subject(finding)}${text}${place(finding)}`;
}

/**
 * The report for others: a block of Markdown. Nothing in it can end the block, because foreign texts lose their
 * backticks.
 */
export function renderIssueReport(report: DoctorReport): string {
  const { facts, servers, findings, leftOut, stages } = report;
  const lines = [
    `pi-mcp-threads ${facts.version}, ${facts.runtime}, ${facts.platform}`,
    `${facts.connected} of ${counted(facts.servers, "server")} connected, ${facts.waiting} waiting, ${counted(facts.tools, "tool")}`,
    ...(facts.proxies.length > 0 ? [`Set: ${facts.proxies.join(", ")}`] : []),
    "",
    ...servers.map(serverLine),
    ...(stages.length > 0 ? ["", ...stageLines(report).map((line) => line.trim())] : []),
    "",
    ...findings.map(reportLine),
    ...(leftOut > 0 ? [`and ${leftOut} more`] : []),
  ];
  return ["```text", ...lines.map((line) => line.replaceAll("`", "'")), "```", ""].join("\n");
}
