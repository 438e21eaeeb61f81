/**
 * The line about a project's server that may not run. In a file of its own, because the line is shown at the start
 * and the rest of `/mcp`'s words is loaded with the first `/mcp`. Pure.
 */
import type { StatusReport } from "../shared/protocol/status.ts";
import { serverName } from "./server-name.ts";

export const refusedLine = ({ name, reason }: StatusReport["refused"][number]): string =>
  `MCP server ${serverName(name)} of this project is not started: ${reason}.`;
