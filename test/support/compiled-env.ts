/** Owns: the environment of the programs of fixtures that run as raw TypeScript. */
import { join } from "node:path";
import { inject } from "vitest";

/** This process's environment, and a folder in which Node keeps what it has compiled of such programs in this run. */
export const compiledEnv = (): NodeJS.ProcessEnv => ({
  ...process.env,
  NODE_COMPILE_CACHE: join(inject("piCaches"), "programs"),
});
