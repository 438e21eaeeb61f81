/**
 * The rules of the stateless era (MCP 2026-07-28), without a client: which era a server speaks, what each request carries,
 * its headers over HTTP, answers to questions in results, tasks, and streams of changes. Owns no connection. Must not:
 * import anything of mcp but its wire types. Called by: mcp.
 * To support a later revision: era.ts, envelope.ts, and the limits of what it lets a server ask in limits.ts.
 */
export { outOfOrder, type Party, quoted } from "./answers.ts";
export { type Discovered, readDiscovered, tooNew } from "./discovered.ts";
export { metaOf, SUBSCRIPTION } from "./envelope.ts";
export {
  type Asked,
  type Evidence,
  HEADER_MISMATCH,
  isWorthProbing,
  judgeEra,
  type RpcError,
  supportedVersions,
  UNSUPPORTED_VERSION,
  type Verdict,
} from "./era.ts";
export { afterPage, type Freshness, isStale } from "./freshness.ts";
export { changesFilter, followChanges, type ListenOptions } from "./listen.ts";
export { MirroredHeaders } from "./mirrored.ts";
export { capabilitiesFrom, offersOf } from "./offers.ts";
export { lastResult, type Result, throughRounds } from "./rounds.ts";
export { followTask } from "./tasks.ts";
