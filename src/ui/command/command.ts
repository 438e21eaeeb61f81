/**
 * The commands `/mcp` and `/mcp-auth`. Owns: the subcommands (words.ts), their completion, and what each does (screens.ts, loaded with the
 * first one). Must not: know the runtime's inside; it asks through `McpCommandHost`. Called by: src/index.ts.
 * To add a subcommand: a row in words.ts, a case in screens.ts, its text in src/report.
 */

import type { PiCommand, PiContext } from "../../pi/api.ts";
import type { McpCommandHost } from "./host.ts";
import { splitWord, subcommand, WORDS } from "./words.ts";

export type { McpCommandHost } from "./host.ts";

type Completion = { value: string; label: string };

/** Nothing for a text that is complete: with a list open, Enter would close the list and not run the command. */
const completions = (typed: string, values: readonly string[]): Completion[] | null =>
  values.length > 0 && !values.includes(typed) ? values.map((value) => ({ value, label: value })) : null;

/** Completes the text after `/mcp `: a subcommand, then a server. */
export function completeMcp(prefix: string, servers: readonly string[]): Completion[] | null {
  const { word, rest } = splitWord(prefix.trimStart());
  const known = subcommand(word);
  const takesServer = Object.hasOwn(WORDS, known) && WORDS[known as keyof typeof WORDS].includes("server");
  const values =
    rest === undefined
      ? Object.keys(WORDS).filter((candidate) => candidate.startsWith(word))
      : takesServer
        ? servers.filter((name) => name.startsWith(rest)).map((name) => `${word} ${name}`)
        : [];
  return completions(prefix, values);
}

const namesOf = (host: McpCommandHost): string[] => host.servers().map(({ name }) => name);

async function runLater(args: string, ctx: PiContext, host: McpCommandHost): Promise<void> {
  const { runMcp } = await import("./screens.ts");
  await runMcp(args, ctx, host);
}

export const createMcpCommand = (host: McpCommandHost): PiCommand => ({
  description:
    "MCP servers: state, tools, add, import, remove, reconnect, sign-in, enable, disable, edit, trust, stats, doctor",
  getArgumentCompletions: (prefix) => completeMcp(prefix, namesOf(host)),
  handler: (args, ctx) => runLater(args, ctx, host),
});

/** `/mcp-auth [server]`, the same as `/mcp auth [server]`. */
export const createMcpAuthCommand = (host: McpCommandHost): PiCommand => ({
  description: "Sign in to an MCP server",
  getArgumentCompletions: (prefix) =>
    completions(
      prefix,
      namesOf(host).filter((name) => name.startsWith(prefix)),
    ),
  handler: (args, ctx) => runLater(`auth ${args}`, ctx, host),
});
