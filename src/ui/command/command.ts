/**
 * The commands `/mcp` and `/mcp-auth`: their completion. What each does is in screens.ts, which is loaded with the first one.
 * To add a subcommand: a row in words.ts, and a row in screens.ts or, for one that the shell has too, in report/actions.ts.
 */

import type { PiCommand, PiContext } from "../../pi/api.ts";
import type { McpHost } from "../mcp-host.ts";
import { splitWord, subcommand, WORDS } from "./words.ts";

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

const namesOf = (host: McpHost): string[] => host.servers().map(({ name }) => name);

async function runLater(args: string, ctx: PiContext, host: McpHost): Promise<void> {
  const { runMcp } = await import("./screens.ts");
  await runMcp(args, ctx, host);
}

export const createMcpCommand = (host: McpHost): PiCommand => ({
  description:
    "MCP servers: state, tools, add, import, remove, reconnect, sign-in, on/off, edit, trust, stats, doctor",
  getArgumentCompletions: (prefix) => completeMcp(prefix, namesOf(host)),
  handler: (args, ctx) => runLater(args, ctx, host),
});

/** `/mcp-auth [server]`, the same as `/mcp auth [server]`. */
export const createMcpAuthCommand = (host: McpHost): PiCommand => ({
  description: "Sign in to an MCP server",
  getArgumentCompletions: (prefix) =>
    completions(
      prefix,
      namesOf(host).filter((name) => name.startsWith(prefix)),
    ),
  handler: (args, ctx) => runLater(`auth ${args}`, ctx, host),
});
