/**
 * Owns: what differs when a file of the stdio transport's tests runs with shared servers, as it does in the project `shared`
 * of vitest.config.ts: the same tests through the hub, so that a shared server is proven to behave as one of the session's own.
 * Called by: worker/support.ts, and tests that hold for one of the two only.
 */
import { statSync } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { test } from "vitest";
import type { WorkerEvent } from "../../src/shared/protocol/contract.ts";
import { HUB_LOG } from "../../workers/connection/hub/link.ts";

/** Whether the servers of `start` are shared ones. */
export const SHARED = process.env.PMT_SHARED === "1";

/** A test that sharing must change, with the reason. */
export const ownTest = (_reason: string): typeof test => (SHARED ? (test.skip as typeof test) : test);

const LOOK_MS = 10;
const STARTED = /^\S+ info +\[hub\] (.+): process (\d+) started$/gm;

/**
 * Tells of each process that the hub starts from now on, as the worker tells of those that it starts itself. Answers how it is
 * ended.
 */
export async function followHub(
  agentDir: string,
  onSpawn: (event: WorkerEvent) => void,
): Promise<() => void> {
  const file = join(agentDir, HUB_LOG);
  const read = async (from: number): Promise<string> => {
    const log = await open(file).catch(() => undefined);
    if (!log) return "";
    const { size } = await log.stat();
    const { buffer } = await log.read(
      Buffer.alloc(Math.max(0, size - from)),
      0,
      Math.max(0, size - from),
      from,
    );
    await log.close();
    return buffer.toString("latin1");
  };
  let at = (await read(0)).length;
  let isBusy = false;
  const hasNews = (): boolean => (statSync(file, { throwIfNoEntry: false })?.size ?? 0) > at;
  const look = async (): Promise<void> => {
    if (isBusy || !hasNews()) return;
    isBusy = true;
    const news = await read(at);
    const whole = news.slice(0, news.lastIndexOf("\n") + 1);
    at += whole.length;
    for (const [, server = "", pid] of whole.matchAll(STARTED))
      onSpawn({ type: "spawned", server: Buffer.from(server, "latin1").toString(), pid: Number(pid) });
    isBusy = false;
  };
  const timer = setInterval(() => void look(), LOOK_MS);
  return () => clearInterval(timer);
}
