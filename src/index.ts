/**
 * Pi's entry point. Owns: which of Pi's events, commands and flags reach which part. Must not: hold logic of its own.
 * Pi calls it once per load. To react to another event of Pi: a line here, and a method of the session.
 */
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { Pi } from "./pi/api.ts";
import {
  CONFIG_FLAG,
  claim,
  configFileOf,
  flagOnCommandLine,
  guardHandlers,
  notify,
  registerFlag,
  SERVERS_FLAG,
  warnOfOtherOwner,
} from "./pi/extension.ts";
import { createSession } from "./session/session.ts";
import { agentFolder } from "./shared/process/agent-folder.ts";
import { onlyServersOf } from "./shared/snapshot/contract.ts";
import { renderersFor } from "./tools/rows.ts";
import { createMcpAuthCommand, createMcpCommand } from "./ui/command/command.ts";

export default function piMcpThreads(host: Pi): void {
  const pi = guardHandlers(host);
  const location = fileURLToPath(import.meta.url);
  const owner = claim(pi, location);
  if (owner !== undefined) {
    pi.on("session_start", ({ reason }, ctx) => {
      // Once in a process: a program over RPC may begin many sessions, and Pi starts some of them twice.
      if (reason !== "startup") return;
      notify(
        ctx,
        `pi-mcp-threads is loaded twice: ${owner} is in use, ${location} does nothing. Remove one.`,
        "warning",
      );
    });
    return;
  }
  registerFlag(pi, CONFIG_FLAG, "MCP file in place of the agent folder's mcp.json");
  registerFlag(pi, SERVERS_FLAG, "The only MCP servers of the session, with commas between");
  // Pi's own flag: no server connects, and there is no tool of one. Beside it our flags are none that Pi does not know.
  if (process.argv.includes("--no-mcp")) return;
  const cwd = process.cwd();
  const configFile = configFileOf(flagOnCommandLine(CONFIG_FLAG), cwd);
  const only = onlyServersOf(flagOnCommandLine(SERVERS_FLAG) || process.env.MCP_SERVERS);
  const agentDir = resolve(agentFolder(process, { homedir, join, fileURLToPath }));
  const session = createSession(pi, { agentDir, cwd, configFile, only, location });
  session.register();
  pi.registerToolRenderer(renderersFor);
  pi.registerCommand("mcp", createMcpCommand(session));
  pi.registerCommand("mcp-auth", createMcpAuthCommand(session));
  pi.on("session_start", ({ reason }, ctx) => {
    session.start(ctx, reason === "fork");
    warnOfOtherOwner(pi, ctx, location);
  });
  pi.on("before_agent_start", (_event, ctx) => session.beforeAgentStart(ctx));
  pi.on("session_tree", () => session.branchChanged());
  pi.on("session_compact", (_event, ctx) => session.compacted(ctx));
  pi.on("mcp_servers_change", ({ servers }) => session.registeredServersChanged(servers));
  pi.on("tool_call", (event, ctx) => session.toolCalled(event, ctx));
  pi.on("input", (event, ctx) => session.onInput(event, ctx));
  pi.on("turn_end", (_event, ctx) => session.turnEnded(ctx));
  pi.on("message_end", ({ message }) => session.messageEnded(message));
  pi.on("session_shutdown", () => session.stop());
}
