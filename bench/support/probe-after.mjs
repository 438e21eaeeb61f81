/**
 * Owns: the second half of probe.mjs: the marks after the measured extension.
 * Must not: measure.
 * Called by: Pi, as the extension after the measured one.
 */
const { mark } = globalThis[Symbol.for("pi-mcp-threads bench")];
mark("subject loaded");

export default function probeAfter(pi) {
  pi.on("session_start", () => mark("session_start ends"));
  pi.on("before_agent_start", () => mark("before_agent_start ends"));
  pi.on("session_shutdown", () => mark("session_shutdown ends"));
}
