/**
 * JSON-RPC messages as they come from an untrusted server, before anything trusts them. Owns: where a message is parsed,
 * the limits on long messages and their thread, what of a long message the others get, the reasons of a refusal, and the
 * bounds on requests of the server and on what is no message. Must not: know the meaning of a message, but for prune.ts
 * and contents.ts, which know it for the thread.
 * Called by: the transports, mcp, results and workers/heavy.ts. To bound another kind of message: incoming.ts and a row in
 * docs/security.md. To let the connection worker read more of a long message: prune.ts.
 */
export { asToolResult, heldIn, type ResultKind } from "./contents.ts";
export type { ReadLong } from "./heavy.ts";
export type { FromHeavy, ToHeavy } from "./heavy-thread.ts";
export { bytesRead, readLong } from "./incoming.ts";
export { cancelledRequest, isAnswer, isRequest } from "./kinds.ts";
export { type LongMessages, longMessages } from "./long-messages.ts";
export { Noise } from "./noise.ts";
export { Blocks, createPieces, type Received, startOf } from "./pieces.ts";
export { LongErrorData, prune } from "./prune.ts";
export { type MessageStream, type Receiver, receive } from "./receive.ts";
export { BoundedTransport } from "./server-requests.ts";
export { callTooLarge, type Excess, TooLarge } from "./too-large.ts";
