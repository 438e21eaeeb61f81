/**
 * Long walks over a catalog in slices, so that main never stands still for one: keys, frames and timers come in
 * between. Called by whoever looks at every tool.
 */

import { type Catalog, type CatalogTool, eachTool } from "./known.ts";

/** Main stands still no longer than this at a time. */
const SLICE_MS = 3;
/** Steps between two looks at the clock, where each takes a microsecond or less. */
const STEPS = 32;

export interface Slices {
  /** To be called at each step: undefined while the slice lasts, else to be awaited before the next step. */
  step(): Promise<void> | undefined;
}

/** `steps` between two looks at the clock. */
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

/** The tools of one server, or of all. */
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
