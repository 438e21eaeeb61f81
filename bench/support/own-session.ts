/**
 * Owns: a session of the extension without Pi, in the bench process.
 * Must not: make rows.
 */
import { join } from "node:path";
import { startRuntime } from "../../src/runtime/runtime.ts";
import { builtWorkerUrl } from "./build.ts";

export type Runtime = ReturnType<typeof startRuntime>;

/** A session in its agent folder, of which nothing is known yet and which nobody watches. */
export const plainFacts = (agentDir: string) => ({
  cwd: agentDir,
  agentDir,
  projectTrusted: false,
  configPath: undefined,
  registered: [],
  canAsk: false,
  snapshotChecksum: undefined,
});

/** Answers when the servers of the folder's `mcp.json` have told their tools. Rejects if the worker ends before. */
export async function openSession(agentDir: string): Promise<Runtime> {
  const failed = Promise.withResolvers<never>();
  const runtime = startRuntime({
    logFile: join(agentDir, "mcp-threads.log"),
    facts: () => plainFacts(agentDir),
    onEvent: () => {},
    onCrash: ({ reason }) => failed.reject(new Error(`the worker ended: ${reason}`)),
    onStartFailed: failed.reject,
    workerUrl: await builtWorkerUrl(),
  });
  await Promise.race([runtime.settleTools({ timeoutMs: 20_000 }, undefined), failed.promise]);
  return runtime;
}
