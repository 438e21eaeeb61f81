/** What there is to say about the tools of all servers: tokens, names, repairs, what is left out. Pure. */
import { fittedName, plainToolName } from "../../../src/shared/naming.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import type { CatalogServer, PublishResult, PublishTask } from "../../shared/tasks.ts";
import { lineNotices } from "./server-notices.ts";

/** A line about a server, without the server's name. */
export interface ServerLine {
  server: string;
  text: string;
}

export interface ToolFacts {
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
  leftOut: readonly { name: string }[],
): CatalogFacts {
  const names = servers.map(({ name }) => name);
  const lines = (all: readonly string[]): ServerLine[] =>
    lineNotices(all, names, false).map(({ server, text }) => ({
      server,
      text: text.startsWith(`${server}: `) ? text.slice(server.length + 2) : text,
    }));
  return {
    tools: servers.map(toolFacts),
    taken: lines(notices),
    repairs: lines(repairs),
    leftOut: leftOut.map(({ name }) => name),
    problems,
  };
}
