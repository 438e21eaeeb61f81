/**
 * Owns: the second half of probe.mjs: the marks after the extension that is measured.
 * Must not: measure anything on its own.
 * Called by: Pi, as the extension after the one that is measured.
 */
const { mark } = globalThis[Symbol.for("pi-mcp-threads bench")];
mark("subject loaded");

export default function probeAfter(pi) {
  pi.on("session_start", () => mark("session_start ends"));
  pi.on("before_agent_start", () => mark("before_agent_start ends"));
  pi.on("session_shutdown", () => mark("session_shutdown ends"));
}
