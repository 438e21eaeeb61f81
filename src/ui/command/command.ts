/**
 * The commands `/mcp` and `/mcp-auth`. What each does is in screens.ts, which is loaded when it is needed, as is what completes
 * them. To add a subcommand: a row in words.ts, and a row in screens.ts or, for one that the shell has too,
 * in report/actions.ts.
 */
import type { PiCommand, PiContext } from "../../pi/api.ts";
import type { McpHost } from "../mcp-host.ts";

async function runLater(args: string, ctx: PiContext, host: McpHost): Promise<void> {
  const { runMcp } = await import("./screens.ts");
  await runMcp(args, ctx, host);
}

export const createMcpCommand = (host: McpHost): PiCommand => ({
  description: "MCP servers: the panel; /mcp help lists what follows it",
  getArgumentCompletions: async (typed) => (await import("./screens.ts")).completeMcp(typed, host),
  handler: (args, ctx) => runLater(args, ctx, host),
});

/** `/mcp-auth [server]`, the same as `/mcp auth [server]`. */
export const createMcpAuthCommand = (host: McpHost): PiCommand => ({
  description: "Sign in to an MCP server",
  getArgumentCompletions: async (typed) => (await import("./screens.ts")).completeServer(typed, host),
  handler: (args, ctx) => runLater(`auth ${args}`, ctx, host),
});
