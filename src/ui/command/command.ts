/**
 * The command `/mcp`. Owns: its subcommands (words.ts), their completion, and what each does (run.ts, loaded with the
 * first one). Must not: know the runtime's inside; it asks through `McpCommandHost`. Called by: src/index.ts.
 * To add a subcommand: a row in words.ts, a case in run.ts, its text in src/report.
 */

import type { PiCommand } from "../../pi/api.ts";
import type { McpCommandHost } from "./host.ts";
import { splitWord, WORDS } from "./words.ts";

export type { McpCommandHost } from "./host.ts";

type Completion = { value: string; label: string };

/** Completes the text after `/mcp `: a subcommand, then a server. */
export function completeMcp(prefix: string, servers: readonly string[]): Completion[] | null {
  const { word, rest } = splitWord(prefix.trimStart());
  const takesServer = Object.hasOwn(WORDS, word) && WORDS[word as keyof typeof WORDS].includes("server");
  const values =
    rest === undefined
      ? Object.keys(WORDS).filter((candidate) => candidate.startsWith(word))
      : takesServer
        ? servers.filter((name) => name.startsWith(rest)).map((name) => `${word} ${name}`)
        : [];
  return values.length > 0 ? values.map((value) => ({ value, label: value })) : null;
}

export function createMcpCommand(host: McpCommandHost): PiCommand {
  return {
    description: "MCP servers: state, tools, reconnect, enable, disable, edit, trust, stats",
    getArgumentCompletions: (prefix) =>
      completeMcp(
        prefix,
        host.servers().map((server) => server.name),
      ),
    handler: async (args, ctx) => {
      const { runMcp } = await import("./run.ts");
      await runMcp(args, ctx, host);
    },
  };
}
