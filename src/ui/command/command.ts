/** The `/mcp` command: its words and their completion. What they do is loaded with the first one. */

import type { PiCommand } from "../../pi/api.ts";
import type { McpCommandHost } from "./host.ts";
import { splitWord, WORDS } from "./words.ts";

export type { McpCommandHost } from "./host.ts";

type Completion = { value: string; label: string };

/** Completions of what stands behind `/mcp `: a subcommand, then a server. */
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
