/** Owns: shared code of the end-to-end tests: the builds of the extension, real servers, homes, models and cleanup. */
import { cp, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { forWholeFile, onCleanup } from "../support/cleanup.ts";
import { type ModelScript, type ScriptedModel, startModel } from "../support/model.ts";
import { npmServer } from "../support/npm-server.ts";
import type { PiHome } from "../support/pi-run.ts";
import { packedEntry } from "../support/run-package.ts";

export { onCleanup } from "../support/cleanup.ts";
export { makeHome as home } from "../support/make-home.ts";

export const root = join(import.meta.dirname, "..", "..");

/** The built extension, which users run. It loads much faster than the raw TypeScript. */
export const ENTRY = join(root, "index.js");

/** The unpacked tarball alone in a folder named `node_modules`, and the raw TypeScript of the checkout. */
export const BUILDS = ["packed package", "raw TypeScript"] as const;
export type Build = (typeof BUILDS)[number];

export async function entryOf(build: Build): Promise<string> {
  if (build === "raw TypeScript") return join(root, "src", "index.ts");
  return packedEntry();
}

/** Copies the built extension into the home's temp folder, where a test may change it. Resolves with the copy's folder. */
export async function copyExtension({ tmpDir }: PiHome): Promise<string> {
  const folder = join(tmpDir, "ext");
  for (const built of ["index.js", "dist"]) {
    await cp(join(root, built), join(folder, built), { recursive: true });
  }
  await writeFile(join(folder, "package.json"), '{"type":"module"}');
  return folder;
}

/** Entries of `mcpServers` that start real servers from npm. */
export const SERVERS = {
  get everything() {
    return npmServer("server-everything");
  },
  get filesystem() {
    return npmServer("server-filesystem", ".");
  },
  get memory() {
    return npmServer("server-memory");
  },
};

/** Returns the entry of a server in test/fixtures/servers. */
export const fixtureServer = (name: string, env: Record<string, string> = {}): Record<string, unknown> => ({
  command: process.execPath,
  args: [join(root, "test/fixtures/servers", name)],
  env,
});

/**
 * Makes a value once, when the first test of the file asks for it. A cleanup that `make` registers runs after all tests
 * of the file.
 */
export function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => (made ??= forWholeFile(make));
}

export async function model(script: ModelScript): Promise<ScriptedModel> {
  const started = await startModel(script);
  onCleanup(() => started.close());
  return started;
}

export const readLog = (at: PiHome): Promise<string> =>
  readFile(join(at.agentDir, "mcp-threads.log"), "utf8");

export const call = (name: string, args: Record<string, unknown>) => ({ toolCalls: [{ name, args }] });
export const searchFor = (query: string) => call("ToolSearch", { query });
