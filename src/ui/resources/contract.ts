/** What the session, resources.ts and the code that runs with the first mention know of each other. Types only. */
import type { Runtime } from "../../runtime/runtime.ts";

export interface ResourceHost {
  ask: Runtime["ask"];
  /** Names of the servers that are known. */
  servers: () => string[];
  /** Settles when the configured servers are known, or after a moment. */
  planned: () => Promise<void>;
}
