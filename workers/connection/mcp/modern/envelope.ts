/** What every request of the modern era carries (MCP 2026-07-28, basic, `_meta`). Pure. */
import { MODERN_VERSION } from "../memory/memory.ts";

const PREFIX = "io.modelcontextprotocol/";
export const SUBSCRIPTION = `${PREFIX}subscriptionId`;
/** The extension of long-running calls (ext-tasks). */
export const TASKS = `${PREFIX}tasks`;

export interface Sender {
  clientInfo: { name: string; version: string };
  /** What the client can do besides the tasks of its calls. */
  capabilities: object;
  /** Absent: the server sends no log messages. */
  logLevel?: "debug" | "info" | undefined;
}

export const metaOf = ({ clientInfo, capabilities, logLevel }: Sender): Record<string, unknown> => ({
  [`${PREFIX}protocolVersion`]: MODERN_VERSION,
  [`${PREFIX}clientInfo`]: clientInfo,
  [`${PREFIX}clientCapabilities`]: { ...capabilities, extensions: { [TASKS]: {} } },
  ...(logLevel === undefined ? {} : { [`${PREFIX}logLevel`]: logLevel }),
});
