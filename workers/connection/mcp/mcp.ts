/**
 * MCP over an open transport: which era is spoken, initialize or discover, lists, calls, resources, and what their failures
 * mean. Owns: every import of the MCP SDK. Must not: know transports, lifecycles or settings.
 * Called by: transports (negotiate, initialize, speakModern, toConnection), servers (the Connection contract).
 * To speak another era of the protocol: another `Peer` (peer.ts) beside those of legacy-peer.ts and modern-peer.ts.
 */
export { toConnection } from "./client.ts";
export type {
  CallRequest,
  Connection,
  ConnectOptions,
  ListedResources,
  RememberedServer,
  SpokenProtocol,
} from "./connection.ts";
export { evidenceOf } from "./era-evidence.ts";
export { answerTooLarge, startupTimeout } from "./failures.ts";
export { initialize } from "./legacy-peer.ts";
export { MustNegotiate } from "./memory/memory.ts";
export { type Evidence, judgeEra, MirroredHeaders, type RpcError } from "./modern/modern.ts";
export { speakModern } from "./modern-peer.ts";
export { negotiate } from "./negotiate.ts";
export type { Peer } from "./peer.ts";
export { isTimeout, refusedAnswer } from "./sdk-errors.ts";
export { Wire } from "./wire-view.ts";
