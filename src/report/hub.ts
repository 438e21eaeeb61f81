/**
 * What a person reads of servers that sessions share: what the hub runs and for whom, how a server is shared, and whom a new
 * connection would interrupt. Pure.
 */
import type { HubReport, SharedServer } from "../shared/protocol/person.ts";
import type { ServerStatus, Sharing } from "../shared/protocol/session.ts";
import { counted, durationText, formatBytes } from "../shared/text/amounts.ts";
import { oneLine } from "../shared/text/unprintable.ts";
import { serverName } from "./server-name.ts";

const SERVERS_SHOWN = 100;
/** Of process ids, and of names in a line. */
const NAMES_SHOWN = 20;
const NAME_CHARS = 100;

const upText = (since: number, now: number): string => `up ${durationText(Math.max(0, now - since))}`;

/** For example `shared by 3 sessions, up 42 min`. `now`: milliseconds since the epoch. */
export const sharingText = ({ sessions, since }: Sharing, now: number): string =>
  `shared by ${counted(sessions, "session")}, ${upText(since, now)}`;

/** How many other sessions a new connection to the server interrupts: it ends the process that they use. */
export const othersOf = ({ state, sharing }: Pick<ServerStatus, "state" | "sharing">): number =>
  state === "connected" && sharing ? Math.max(0, sharing.sessions - 1) : 0;

/** At most so many, and how many more there are. */
function listed(words: readonly string[]): string {
  const more = words.length - NAMES_SHOWN;
  return [...words.slice(0, NAMES_SHOWN), ...(more > 0 ? [`${more} more`] : [])].join(", ");
}

/** Whom a reconnect of these servers interrupts; undefined: nobody. */
export function interruptText(servers: readonly ServerStatus[]): string | undefined {
  const shared = servers.filter((server) => othersOf(server) > 0);
  const [first, ...others] = shared;
  if (!first) return undefined;
  const whom = (server: ServerStatus): string => counted(othersOf(server), "other session");
  const lost = "Calls that are open there fail, and what a server keeps in its memory is lost.";
  if (others.length === 0) {
    const verb = othersOf(first) === 1 ? "uses" : "use";
    return `${whom(first)} ${verb} ${serverName(first.name)}, and a reconnect ends its process. ${lost}`;
  }
  const names = shared.map((server) => `${serverName(server.name)} (${whom(server)})`);
  return `A reconnect ends processes that others use: ${listed(names)}. ${lost}`;
}

/** The words behind `hub`: none, or `stop` with or without a server. Undefined: others. */
export function readHubWords(words: string): { stop?: { server?: string } } | undefined {
  if (words === "") return {};
  const [found, server] = /^stop(?:\s+(.+))?$/s.exec(words) ?? [];
  if (found === undefined) return undefined;
  return { stop: server === undefined ? {} : { server } };
}

const NO_HUB = "No shared server runs.";

function serverLines(server: SharedServer, now: number): string[] {
  const { labels, pid, since, memory, sessions, differs, isRetired } = server;
  const users =
    sessions.length === 0
      ? "used by no session"
      : `used by ${counted(sessions.length, "session")} (${listed(sessions.map(String))})`;
  const facts = [
    `pid ${pid}`,
    upText(since, now),
    ...(memory === undefined ? [] : [formatBytes(memory)]),
    users,
    ...(isRetired ? ["ends when they have left"] : []),
  ];
  const names = listed(differs.map((name) => oneLine(name, NAME_CHARS)));
  return [
    `${listed(labels.map(serverName))}: ${facts.join(", ")}`,
    ...(differs.length === 0 ? [] : [`  kept apart from another process of this program by ${names}`]),
  ];
}

/** `now`: milliseconds since the epoch. */
export function renderHub(report: HubReport | undefined, now = Date.now()): string {
  if (!report) {
    return `${NO_HUB} Sessions share a server over stdio that has "shared": true in your mcp.json.`;
  }
  const { pid, since, servers } = report;
  const memory = servers.reduce((sum, server) => sum + (server.memory ?? 0), 0);
  const facts = [
    `pid ${pid}`,
    upText(since, now),
    counted(servers.length, "server"),
    ...(memory === 0 ? [] : [formatBytes(memory)]),
  ];
  const more = servers.length - SERVERS_SHOWN;
  return [
    `The hub of shared servers: ${facts.join(", ")}`,
    ...servers.slice(0, SERVERS_SHOWN).flatMap((server) => serverLines(server, now)),
    ...(more > 0 ? [`and ${more} more servers`] : []),
  ].join("\n");
}

/** What `hub stop` did. `report`: what ran before. */
export function stoppedText(
  report: HubReport | undefined,
  stopped: number,
  { server }: { server?: string },
): string {
  if (!report) return NO_HUB;
  const ended = report.servers.filter(({ labels }) => server === undefined || labels.includes(server));
  if (stopped === 0) return "The hub is ended. It ran no server.";
  const sessions = new Set(ended.flatMap((one) => one.sessions)).size;
  const what =
    server === undefined
      ? `The hub and its ${counted(stopped, "server")} are ended`
      : `${serverName(server)} is ended${stopped === 1 ? "" : `, all ${stopped} processes of it`}`;
  const users = sessions === 0 ? "no session" : counted(sessions, "session");
  return `${what}, used by ${users}. The next call starts it again.`;
}
