/**
 * Notices about servers for the user and the log: tools that got another name, schemas that had to be repaired, tools
 * that are left out. A server can cause new texts for ever by renaming its tools, so this file bounds them: each text is
 * reported once, few texts about one server in the terminal and more in the log.
 */

import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { commandFor } from "../../shared/commands.ts";
import type { Log } from "../../shared/log.ts";
import { Recent } from "../../shared/pace/pace.ts";

export interface ServerNotice {
  server: string;
  /** Worded as a line of its own. */
  text: string;
  /** The user should know it; otherwise it is for the log only. */
  isForUser: boolean;
}

export interface ServerNotices {
  /** Writes the notice where it belongs, unless it was reported before or its server has reached its limit. */
  notify(notice: ServerNotice): void;
}

/** Distinct lines about one server in the log of a session. A server with bad schemas of every kind stays below. */
const LOG_LINES = 50;
/** Texts of one server that are remembered: as many as are logged, and as many again. */
const REMEMBERED = 2 * LOG_LINES;
/** Servers that are remembered. Their names come from the configuration, and edits may bring new names for ever. */
const SERVERS = 1_000;

interface Reported {
  texts: Recent;
  logged: number;
  shown: number;
}

/** For one session. `show`: writes a text into the terminal. */
export function createServerNotices({
  log,
  show,
}: {
  log: Log;
  show: (text: string) => void;
}): ServerNotices {
  const servers = new Map<string, Reported>();
  let shown = 0;

  const reportedOf = (server: string): Reported => {
    let reported = servers.get(server);
    if (!reported) {
      reported = { texts: new Recent(REMEMBERED), logged: 0, shown: 0 };
      servers.set(server, reported);
      const [oldest] = servers.keys();
      if (servers.size > SERVERS && oldest !== undefined) servers.delete(oldest);
    }
    return reported;
  };

  const logLine = (reported: Reported, { server, text }: ServerNotice): void => {
    if (++reported.logged > LOG_LINES) return;
    log.warn(text);
    if (reported.logged === LOG_LINES)
      log.warn(`${server}: further lines about its tools are left out in this session`);
  };

  const showText = (reported: Reported, { server, text }: ServerNotice): void => {
    if (shown > LIMITS.noticesASession || reported.shown > LIMITS.noticesAServer) return;
    shown++;
    reported.shown++;
    if (shown > LIMITS.noticesASession) show("MCP servers: further notices about their tools are in the log");
    else if (reported.shown > LIMITS.noticesAServer) {
      show(`MCP server ${server}: further notices about its tools are in the log`);
    } else show(text);
  };

  return {
    notify: (notice) => {
      const reported = reportedOf(notice.server);
      if (!reported.texts.isNew(notice.text)) return;
      logLine(reported, notice);
      if (notice.isForUser) showText(reported, notice);
    },
  };
}

/** `servers`: names of servers whose tools the catalog lacks, because they could not be published. */
export const leftOutNotices = (servers: readonly string[]): ServerNotice[] =>
  servers.map((server) => ({
    server,
    text: `MCP server ${server}: its tools are left out, because preparing them takes too long or fails. The other servers are not affected. ${commandFor("reconnect", server)} tries again, ${commandFor("disable", server)} switches it off.`,
    isForUser: true,
  }));

/** `lines`: each begins with the name of one of the `servers`, then `: `. */
export function lineNotices(
  lines: readonly string[],
  servers: readonly string[],
  isForUser: boolean,
): ServerNotice[] {
  // A name may be the start of another name.
  const longestFirst = [...servers].sort((a, b) => b.length - a.length);
  return lines.map((line) => ({
    server: longestFirst.find((name) => line.startsWith(`${name}: `)) ?? "",
    text: isForUser ? `MCP tools of ${line}` : line,
    isForUser,
  }));
}
