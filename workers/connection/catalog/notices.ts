/**
 * What there is to say about the tools of servers: notices for the user and the log, and facts for the doctor (tokens,
 * names, repairs, what is left out). A server can cause new notices for ever by renaming its tools, so this file bounds
 * them: each text is reported once, few texts about one server in the terminal and more in the log.
 */

import { fittedName, plainToolName } from "../../../src/shared/naming.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { commandFor } from "../../shared/commands.ts";
import type { Log } from "../../shared/log.ts";
import { Recent } from "../../shared/pace/pace.ts";
import type { CatalogServer, PublishResult, PublishTask, ServerLine } from "../../shared/tasks.ts";

/** `text`: worded as a line of its own. */
interface ServerNotice extends ServerLine {
  /** The user should know it; otherwise it is for the log only. */
  isForUser: boolean;
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

/** The notices of one session. */
export class ServerNotices {
  readonly #log: Log;
  readonly #show: (text: string) => void;
  readonly #servers = new Map<string, Reported>();
  #shown = 0;

  /** `show`: writes a text into the terminal. */
  constructor(log: Log, show: (text: string) => void) {
    this.#log = log;
    this.#show = show;
  }

  /** Writes the notice where it belongs, unless it was reported before or its server has reached its limit. */
  notify({ server, text, isForUser }: ServerNotice): void {
    const reported = this.#reportedOf(server);
    if (!reported.texts.isNew(text)) return;
    if (++reported.logged <= LOG_LINES) this.#log.warn(text);
    if (reported.logged === LOG_LINES)
      this.#log.warn(`${server}: further lines about its tools are left out in this session`);
    if (!isForUser || this.#shown > LIMITS.noticesASession || reported.shown > LIMITS.noticesAServer) return;
    this.#shown++;
    reported.shown++;
    if (this.#shown > LIMITS.noticesASession)
      this.#show("MCP servers: further notices about their tools are in the log");
    else if (reported.shown > LIMITS.noticesAServer)
      this.#show(`MCP server ${server}: further notices about its tools are in the log`);
    else this.#show(text);
  }

  #reportedOf(server: string): Reported {
    let reported = this.#servers.get(server);
    if (!reported) {
      reported = { texts: new Recent(REMEMBERED), logged: 0, shown: 0 };
      this.#servers.set(server, reported);
      const [oldest] = this.#servers.keys();
      if (this.#servers.size > SERVERS && oldest !== undefined) this.#servers.delete(oldest);
    }
    return reported;
  }
}

/** `server`: its tools are left out of the catalog, because they could not be published. */
export const leftOutNotice = (server: string): ServerNotice => ({
  server,
  text: `MCP server ${server}: its tools are left out, because preparing them takes too long or fails. The other servers are not affected. ${commandFor("reconnect", server)} tries again, ${commandFor("disable", server)} switches it off.`,
  isForUser: true,
});

export const lineNotice = ({ server, text }: ServerLine, isForUser: boolean): ServerNotice => ({
  server,
  text: `${isForUser ? "MCP tools of " : ""}${server}: ${text}`,
  isForUser,
});

interface ToolFacts {
  server: string;
  /** Tools that are declared from the first request on, and the tokens that they cost, estimated. */
  direct: number;
  directTokens: number;
  /** Tools whose names are too long for providers: how many, and the first one with its name in Pi. */
  cut: { count: number; tool: string; name: string } | undefined;
}

export interface CatalogFacts {
  tools: ToolFacts[];
  /** Tools that have other names than wanted, because another tool has the name. */
  taken: ServerLine[];
  repairs: ServerLine[];
  /** Servers whose tools cannot be prepared. */
  leftOut: string[];
  /** What exceeds a limit of the whole catalog. */
  problems: string[];
}

/** English text and JSON have about four characters a token; the doctor's numbers need not be exact. */
const CHARS_A_TOKEN = 4;

const tokensOf = ({ name, description, inputSchema }: CatalogServer["tools"][number]): number =>
  Math.ceil(JSON.stringify({ name, description, inputSchema }).length / CHARS_A_TOKEN);

function toolFacts({ name: server, prefix, tools }: CatalogServer): ToolFacts {
  const direct = tools.filter((tool) => tool.direct);
  const long = tools.filter(({ name }) => plainToolName(server, name, prefix).length > LIMITS.toolNameChars);
  const [first] = long;
  const named = { server, tool: first?.name ?? "", ...(prefix ? { prefix } : {}) };
  return {
    server,
    direct: direct.length,
    directTokens: direct.reduce((sum, tool) => sum + tokensOf(tool), 0),
    cut: first && { count: long.length, tool: first.name, name: fittedName(named) },
  };
}

/** `leftOut`: servers whose tools the task lacks. */
export function catalogFacts(
  { servers }: PublishTask,
  { notices, repairs, problems }: PublishResult,
  leftOut: readonly string[],
): CatalogFacts {
  return {
    tools: servers.map(toolFacts),
    taken: notices,
    repairs,
    leftOut: [...leftOut],
    problems,
  };
}
