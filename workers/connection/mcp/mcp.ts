/**
 * MCP over an open transport: initialize, lists, calls, resources, and what their failures mean. Owns: every import of
 * the MCP SDK. Must not: know transports, lifecycles or settings.
 * Called by: transports (initialize, toConnection), servers (the Connection contract).
 * To speak another era of the protocol: another client behind `Connection` (connection.ts).
 */
export { initialize, toConnection } from "./client.ts";
export type {
  CallRequest,
  CloseTimes,
  Connection,
  ConnectOptions,
  ListedResources,
  PromptMessage,
} from "./connection.ts";
export { answerTooLarge, startupTimeout } from "./failures.ts";
export { isTimeout, refusedAnswer } from "./sdk-errors.ts";
