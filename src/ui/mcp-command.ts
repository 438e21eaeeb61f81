/** The `/mcp` command: which words it takes, their completion, and what each does. */
import type { Catalog } from "../catalog/catalog.ts";
import type { PiCommand, PiContext } from "../host.ts";
import { describeError, ThreadsError } from "../protocol/errors.ts";
import type { ServerStatus, StatusReport } from "../protocol/types.ts";
import { notify } from "./notices.ts";
import { renderStatus, renderTools } from "./status-text.ts";

export interface McpCommandHost {
  status(): Promise<StatusReport>;
  reconnect(server: string | undefined): Promise<void>;
  catalog(): Catalog;
  servers(): readonly ServerStatus[];
}

const USAGE = "Usage: /mcp [status] | /mcp tools [server] | /mcp reconnect [server]";
/** Subcommand -> whether a server may follow. */
const WORDS = { status: false, tools: true, reconnect: true } as const;

type Completion = { value: string; label: string };

/** The first word, and everything behind it: a server's name may hold spaces. */
function split(args: string): { word: string; rest: string | undefined } {
  const at = args.search(/\s/);
  return at === -1
    ? { word: args, rest: undefined }
    : { word: args.slice(0, at), rest: args.slice(at).trimStart() };
}

/** Completions of what stands behind `/mcp `: a subcommand, then a server. */
export function completeMcp(prefix: string, servers: readonly string[]): Completion[] | null {
  const { word, rest } = split(prefix.trimStart());
  const takesServer = Object.hasOwn(WORDS, word) && WORDS[word as keyof typeof WORDS];
  const values =
    rest === undefined
      ? Object.keys(WORDS).filter((candidate) => candidate.startsWith(word))
      : takesServer
        ? servers.filter((name) => name.startsWith(rest)).map((name) => `${word} ${name}`)
        : [];
  return values.length > 0 ? values.map((value) => ({ value, label: value })) : null;
}

async function run(args: string, ctx: PiContext, host: McpCommandHost): Promise<void> {
  const { word, rest } = split(args.trim());
  const server = rest === "" ? undefined : rest;
  if (server !== undefined && (word === "" || word === "status")) return notify(ctx, USAGE, "warning");
  switch (word || "status") {
    case "status":
      return notify(ctx, renderStatus(await host.status()), "info");
    case "tools":
      return notify(ctx, renderTools(host.catalog(), host.servers(), server), "info");
    case "reconnect": {
      await host.reconnect(server);
      return notify(ctx, renderStatus(await host.status()), "info");
    }
    default:
      return notify(ctx, `/mcp ${word} is not known. ${USAGE}`, "warning");
  }
}

export function createMcpCommand(host: McpCommandHost): PiCommand {
  return {
    description: "MCP servers: state, tools, reconnect",
    getArgumentCompletions: (prefix) =>
      completeMcp(
        prefix,
        host.servers().map((server) => server.name),
      ),
    handler: async (args, ctx) => {
      try {
        await run(args, ctx, host);
      } catch (error) {
        const known = error instanceof ThreadsError ? error : { message: String(error) };
        notify(ctx, `/mcp: ${describeError(known)}`, "error");
      }
    },
  };
}
