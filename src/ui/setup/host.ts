/** The part of the session that the set-up needs. Types only. */
import type { Runtime } from "../../runtime/runtime.ts";

export interface SetupHost {
  ask: Runtime["ask"];
}
