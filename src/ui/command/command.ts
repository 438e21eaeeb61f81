/**
 * The commands `/mcp` and `/mcp-auth`. What each does is in screens.ts, which is loaded when it is needed (`screens`), as is what
 * completes them. To add a subcommand: a row in words.ts, and a row in screens.ts or, for one that the shell has too,
 * in report/actions.ts.
 */
import type { PiCommand, PiContext } from "../../pi/api.ts";
import type { McpHost } from "../mcp-host.ts";

/** What is loaded when the person opens a screen. */
export const screens = async () => (await import("./load.ts")).loadScreens();

const runLater = async (args: string, ctx: PiContext, host: McpHost): Promise<void> =>
  (await screens()).runMcp(args, ctx, host);

export const createMcpCommand = (host: McpHost): PiCommand => ({
  description: "MCP servers: the panel; /mcp help lists what follows it",
  getArgumentCompletions: async (typed) => (await screens()).completeMcp(typed, host),
  handler: (args, ctx) => runLater(args, ctx, host),
});

/** `/mcp-auth [server]`, the same as `/mcp auth [server]`. */
export const createMcpAuthCommand = (host: McpHost): PiCommand => ({
  description: "Sign in to an MCP server",
  getArgumentCompletions: async (typed) => (await screens()).completeServer(typed, host),
  handler: (args, ctx) => runLater(`auth ${args}`, ctx, host),
});
