/** Owns: servers whose processes could outlive Pi, and the waits for their ends. */
import { join } from "node:path";
import { expect } from "vitest";
import type { PiHome } from "../support/pi-run.ts";
import { processesWithMarker, waitGone } from "../support/processes.ts";
import { fixtureServer, home } from "./support.ts";

type Entry = Record<string, unknown>;

export const plain = (): Entry => fixtureServer("noisy.mjs");
export const stubborn = (): Entry => fixtureServer("ignores-end.mjs");
const parent = (at: PiHome): Entry =>
  fixtureServer("with-child.mjs", { RECORD: join(at.dir, "child"), CHILD_STDIO: "inherit" });
/** A server that fails until the home has a file `ready`. */
export const unready = (at: PiHome): Entry =>
  fixtureServer("fails-until.mjs", { RECORD: join(at.dir, "record"), READY: join(at.dir, "ready") });

/** Four servers with five processes: one with a child, one that ignores SIGTERM and the end of its stdin, two plain. */
export const fiveProcesses = (at: PiHome): Record<string, Entry> => ({
  parent: parent(at),
  stubborn: stubborn(),
  a: plain(),
  b: plain(),
});

/** A home with these files, the servers of `more` and the four servers. */
export async function homeWithServers(
  more: (at: PiHome) => Record<string, Entry> = () => ({}),
  options: Parameters<typeof home>[0] = {},
): Promise<PiHome> {
  const at = await home(options);
  await at.writeMcp({ mcpServers: { ...more(at), ...fiveProcesses(at) } });
  return at;
}

/** Expects that every process of the home ends, Pi's too; a failure names the others. */
export async function expectNothingLeft(at: PiHome, pids: readonly number[]): Promise<void> {
  await waitGone(pids);
  expect((await processesWithMarker(at.dir)).map(({ command }) => command)).toEqual([]);
}
