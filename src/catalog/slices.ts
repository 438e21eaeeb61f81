/** Divides long walks over a catalog into slices. Between two slices main handles keys, frames and timers. */

import { type Catalog, type CatalogTool, eachTool } from "./known.ts";

/** The longest time for which a walk occupies main. */
const SLICE_MS = 3;
/** Steps between two readings of the clock, for steps of a microsecond or less. */
const STEPS = 32;

export interface Slices {
  /** Called at each step. Undefined while the slice lasts; else the caller awaits the promise before the next step. */
  step(): Promise<void> | undefined;
}

/** `steps`: how many steps pass between two readings of the clock. */
export function createSlices({ sliceMs = SLICE_MS, steps = STEPS } = {}): Slices {
  let endsAt = performance.now() + sliceMs;
  let done = 0;
  return {
    step: () => {
      if (++done % steps !== 0 || performance.now() < endsAt) return undefined;
      return new Promise((resolve) => {
        setImmediate(() => {
          endsAt = performance.now() + sliceMs;
          resolve();
        });
      });
    },
  };
}

/** The tools of one server; of all servers if `server` is undefined. */
export async function toolsOf(catalog: Catalog, server: string | undefined): Promise<CatalogTool[]> {
  const slices = createSlices();
  const tools: CatalogTool[] = [];
  for (const tool of eachTool(catalog)) {
    const pause = slices.step();
    if (pause) await pause;
    if (server === undefined || tool.server.name === server) tools.push(tool);
  }
  return tools;
}
