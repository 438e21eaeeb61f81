/**
 * Owns: one call to a healthy server while another server starts slowly; the tools of both are known.
 * Called by: the stall scenario.
 */
import { createBenchHome } from "./bench-home.ts";
import { startMeasured } from "./measured-pi.ts";
import type { Variant } from "./variants.ts";

/** A client has stored the learned tools within this time. */
const LEARNED_MS = 2_500;
const SHOWN_CHARS = 60;

/** Milliseconds from Pi's start until the model gets the result, or the text that it gets instead. */
export async function callBesideSlowServer(variant: Variant, slowMs: number): Promise<number | string> {
  const home = await createBenchHome(variant, { servers: 2, toolsPerServer: 20, lifecycle: "eager" });
  const [healthy = "", slow = ""] = home.servers;
  try {
    const learning = await startMeasured(variant, home);
    try {
      await learning.ready();
      await home.allListed();
      await learning.untilAge(LEARNED_MS);
    } finally {
      await learning.dispose();
    }
    await home.delay(slow, slowMs);
    const pi = await startMeasured(variant, home);
    try {
      const { requests, results } = await pi.prompt(
        variant.find(healthy, "echo"),
        variant.call(healthy, [{ tool: "echo", args: { text: "hello" } }]),
      );
      const shown = results[1] ?? "no result";
      const arrivedAtMs = requests[2]?.arrivedAtMs ?? Number.NaN;
      return shown.includes('"hello"') ? arrivedAtMs - pi.startedAtMs : shown.slice(0, SHOWN_CHARS);
    } finally {
      await pi.dispose();
    }
  } finally {
    await home.dispose();
  }
}
