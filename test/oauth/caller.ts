/** Owns: processes with a connection worker of their own, which call the server again and again. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { oneFile } from "../support/one-file.ts";
import { builtWorker, fixtures, type Place } from "../worker/support.ts";
import { onCleanup } from "./support.ts";

export interface Caller {
  child: ChildProcess;
  /** Resolves after the first call. */
  called: Promise<void>;
  /** What the process prints at its end. */
  told: Promise<{ succeeded: number; failures: Record<string, number> }>;
}

/** Starts a process that calls the server for so long. */
export function startCaller({ agentDir, cwd }: Place, ms: number): Caller {
  const { file, env } = oneFile("calls-with-sign-in", join(fixtures, "oauth", "calls.ts"));
  const child = spawn(process.execPath, [file, agentDir, cwd, builtWorker.href, String(ms)], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, ...env, PMT_PLACE: agentDir },
  });
  let out = "";
  let errors = "";
  const called = Promise.withResolvers<void>();
  child.stdout?.on("data", (chunk: Buffer) => {
    out += chunk;
    if (out.includes("called")) called.resolve();
  });
  child.stderr?.on("data", (chunk: Buffer) => {
    errors += chunk;
  });
  const told = once(child, "close").then(() => {
    const last = out.trim().split("\n").at(-1) ?? "";
    if (!last.startsWith("{")) throw new Error(`the process ended early: ${errors}`);
    return JSON.parse(last) as { succeeded: number; failures: Record<string, number> };
  });
  told.catch(() => called.resolve());
  onCleanup(async () => {
    child.kill("SIGKILL");
    await told.catch(() => undefined);
  });
  return { child, called: called.promise, told };
}
