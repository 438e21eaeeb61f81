/**
 * The configured servers and their lives. Owns: which servers exist (supervisor, reconcile), the state machine of each
 * (state, carried out by life), its connecting (attempt), what runs beside a connection (watch, clocks), its calls
 * (call) and what it offers (offer). Must not: know the configuration's files, the catalog or main.
 * Called by: session, catalog, results. To change when a server connects or closes: state.ts, a pure transition table.
 */
export { authServer, type Connect } from "./attempt.ts";
export { callTimeoutMs } from "./call.ts";
export { excludedTool, refusal } from "./errors.ts";
export type { KnownTools } from "./offer.ts";
export type { ServerTimings } from "./parts.ts";
export type { Server } from "./server.ts";
export { createSupervisor, type Supervisor } from "./supervisor.ts";
export { createTalkers, type Talkers } from "./talkers.ts";
