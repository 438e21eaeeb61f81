/**
 * JSON-RPC messages as they come from an untrusted server, before anything trusts them. Owns: measuring a message
 * before it is parsed, the limits on long messages and the order of parsing them, the reasons of a refusal, and the
 * bounds on requests of the server. Must not: know the meaning of a message.
 * Called by: the transports and mcp. To bound another kind of message: incoming.ts and a row in docs/security.md.
 */
export { bytesRead, MEASURED_BYTES, readIncoming, refusalOf } from "./incoming.ts";
export { cancelledRequest, isAnswer, isRequest, parseMessages } from "./kinds.ts";
export { type LongMessages, longMessages } from "./long-messages.ts";
export { longTurn } from "./long-turn.ts";
export { createPieces } from "./pieces.ts";
export { BoundedTransport } from "./server-requests.ts";
export { type Excess, TooLarge } from "./too-large.ts";
