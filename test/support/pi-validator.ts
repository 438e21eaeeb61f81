/**
 * Owns: the real Pi's function that checks the arguments of a call, on Pi's main thread, before the tool runs. The
 * function comes from the bundle that the end-to-end tests start.
 */
import { readdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { ensurePi } from "./pi-host.ts";

type Check = (
  tool: { name: string; parameters: unknown },
  call: { name: string; arguments: unknown },
) => unknown;

const EXPORTED = /export\s*\{[^}]*\bvalidateToolArguments\b[^}]*\}/;

/** Answers the arguments as the tool gets them. Throws Pi's message for the model if the arguments do not fit. */
export async function piValidator(): Promise<(schema: unknown, args: unknown) => unknown> {
  const folder = join(dirname((await ensurePi()).cli), "chunks");
  for (const file of await readdir(folder)) {
    const path = join(folder, file);
    if (!EXPORTED.test(await readFile(path, "utf8"))) continue;
    const { validateToolArguments } = (await import(pathToFileURL(path).href)) as {
      validateToolArguments: Check;
    };
    return (parameters, args) =>
      validateToolArguments({ name: "t", parameters }, { name: "t", arguments: args });
  }
  throw new Error(`no chunk of Pi exports validateToolArguments in ${folder}`);
}
