/** Fetches the real Pi once, before any test: a run that cannot have it fails here, with the reason. */
import { ensurePi } from "./pi-host.ts";

export default async function setup(): Promise<void> {
  await ensurePi();
}
