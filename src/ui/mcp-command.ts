/** The `/mcp` command: each server with its state, transport, tools and last error, and every mistake in a file. */
import type { PiCommand } from "../host.ts";
import { describeErrorOf, messageOf } from "../protocol/errors.ts";
import type { ConfigProblem, ServerStatus, StatusReport } from "../protocol/types.ts";
import { notify } from "./notices.ts";

const plural = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? "" : "s"}`;

function serverLine(server: ServerStatus): string {
  const tools = server.toolsKnown ? plural(server.toolCount, "tool") : "tools unknown";
  const error = server.error ? `: ${describeErrorOf(server.name, server.error).replaceAll("\n", " | ")}` : "";
  return `${server.name}: ${server.state} (${server.transport}, ${tools})${error}`;
}

function problemLine(problem: ConfigProblem): string {
  const at = problem.line === undefined ? problem.file : `${problem.file}:${problem.line}:${problem.column}`;
  return `${at}: ${problem.key ? `${problem.key}: ` : ""}${problem.message}. ${problem.remedy}`;
}

export function renderStatus(report: StatusReport): string {
  const { servers, problems, files } = report;
  const connected = servers.filter((server) => server.state === "connected").length;
  const tools = servers.reduce((sum, server) => sum + server.toolCount, 0);
  const head = `MCP: ${connected} of ${plural(servers.length, "server")} connected, ${plural(tools, "tool")} known`;
  if (servers.length === 0 && problems.length === 0) {
    return `${head}\nNo servers are configured. Add them to ${files.join(" or ")}.`;
  }
  return [head, ...servers.map(serverLine), ...problems.map(problemLine)].join("\n");
}

export function createMcpCommand(status: () => Promise<StatusReport>): PiCommand {
  return {
    description: "MCP servers: state, tools, errors",
    handler: async (_args, ctx) => {
      try {
        notify(ctx, renderStatus(await status()), "info");
      } catch (error) {
        notify(ctx, `MCP status is not available: ${messageOf(error)}`, "error");
      }
    },
  };
}
