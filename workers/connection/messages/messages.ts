/**
 * JSON-RPC messages as they come from an untrusted server, before anything believes them. Owns: measuring before
 * parsing, the limits on long messages, the order in which they are parsed, what is refused and why, and the bounds on
 * requests of the server. Must not: know what a message is about.
 * Called by: both transports and mcp. To bound a new kind of message: incoming.ts and a row in docs/security.md.
 */
export { MEASURED_BYTES, readIncoming, refusalOf } from "./incoming.ts";
export { cancelledRequest, isAnswer, isRequest, parseMessages } from "./kinds.ts";
export { type LongMessages, longMessages } from "./long-messages.ts";
export { longTurn } from "./long-turn.ts";
export { createPieces } from "./pieces.ts";
export { BoundedTransport } from "./server-requests.ts";
export { type Excess, TooLarge } from "./too-large.ts";
