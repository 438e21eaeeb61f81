/** Owns: server states and reports for tests of what the user sees. */
import type { ServerStatus, StatusReport } from "../../src/shared/protocol/session.ts";

export const makeStatus = (name: string, rest: Partial<ServerStatus> = {}): ServerStatus => ({
  name,
  state: "connected",
  lifecycle: "lazy",
  transport: "stdio",
  source: "/mcp.json",
  toolCount: 2,
  resourceCount: 0,
  toolsKnown: true,
  direct: false,
  ...rest,
});

export const makeReport = (rest: Partial<StatusReport> = {}): StatusReport => ({
  servers: [],
  problems: [],
  files: [],
  questions: [],
  refused: [],
  ...rest,
});
