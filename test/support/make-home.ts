/**
 * Owns: a home for the real Pi or the command that is removed after its test.
 * Must not: be used by benches, which have no Vitest; they take `createHome` of pi-home.ts.
 */
import { inject } from "vitest";
import { onCleanup } from "./cleanup.ts";
import { createHome, type HomeOptions, type PiHome } from "./pi-home.ts";

/** Makes a home that shares the caches of the whole run. */
export async function makeHome(options: HomeOptions = {}): Promise<PiHome> {
  const home = await createHome({ caches: inject("piCaches"), ...options });
  onCleanup(() => home.dispose());
  return home;
}
