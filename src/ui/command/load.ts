/** Loads the screens, of the version of this main also after an update of the package. */
import { ownFiles } from "../../runtime/files.ts";

type Screens = typeof import("./screens.ts");

async function load(): Promise<Screens> {
  const worker = await ownFiles.locate();
  return worker.href === ownFiles.url.href
    ? import("./screens.ts")
    : import(new URL("../screens.js", worker).href);
}

let loaded: Promise<Screens> | undefined;

/** Once: what the screens remember would be lost with a second copy of them. A failure is not kept. */
export function loadScreens(): Promise<Screens> {
  loaded ??= load().catch((error: unknown) => {
    loaded = undefined;
    throw error;
  });
  return loaded;
}
