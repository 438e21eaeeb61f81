/**
 * What the user and the log are told of servers beside calls: tools that are named otherwise, schemas that had to
 * be mended, tools that are left out. A server can make ever new texts by renaming its tools, so this is the one
 * place that bounds them: each text once, few of one server in the terminal, and more of them in the log.
 */
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import type { Log } from "../../shared/log.ts";
import { Recent } from "../../shared/recent.ts";

export interface ServerNotice {
  server: string;
  /** Worded as a line of its own. */
  text: string;
  /** Something that the user should know; else for the log only. */
  isForUser: boolean;
}

export interface ServerNotices {
  tell(notice: ServerNotice): void;
}

/** Distinct lines of one server in the log of a session. Ten servers with bad schemas of every kind stay below. */
const LOG_LINES = 50;
/** Texts of one server that are remembered: as many as are logged, and some that come again. */
const REMEMBERED = 2 * LOG_LINES;
/** Names come from the configuration; edits may bring ever new ones. */
const SERVERS = 1_000;

interface Told {
  texts: Recent;
  logged: number;
  shown: number;
}

/** For one session. `show`: in the terminal. */
export function createServerNotices({
  log,
  show,
}: {
  log: Log;
  show: (text: string) => void;
}): ServerNotices {
  const servers = new Map<string, Told>();
  let shown = 0;

  const toldOf = (server: string): Told => {
    let told = servers.get(server);
    if (!told) {
      told = { texts: new Recent(REMEMBERED), logged: 0, shown: 0 };
      servers.set(server, told);
      const [oldest] = servers.keys();
      if (servers.size > SERVERS && oldest !== undefined) servers.delete(oldest);
    }
    return told;
  };

  const logLine = (told: Told, { server, text }: ServerNotice): void => {
    if (++told.logged > LOG_LINES) return;
    log.warn(text);
    if (told.logged === LOG_LINES)
      log.warn(`${server}: further lines about its tools are left out in this session`);
  };

  const showText = (told: Told, { server, text }: ServerNotice): void => {
    if (shown > LIMITS.noticesASession || told.shown > LIMITS.noticesAServer) return;
    shown++;
    told.shown++;
    if (shown > LIMITS.noticesASession) show("MCP servers: further notices about their tools are in the log");
    else if (told.shown > LIMITS.noticesAServer) {
      show(`MCP server ${server}: further notices about its tools are in the log`);
    } else show(text);
  };

  return {
    tell: (notice) => {
      const told = toldOf(notice.server);
      if (!told.texts.isNew(notice.text)) return;
      logLine(told, notice);
      if (notice.isForUser) showText(told, notice);
    },
  };
}
