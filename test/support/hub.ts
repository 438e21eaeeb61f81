/**
 * Owns: hubs of shared servers for tests: an agent folder whose hub ends with the test, a hub with times of its own, and
 * processes that are sessions. hub-peer.ts has sessions in the test's own process.
 * Must not: start connection workers or Pi.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, symlinkSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";
import type { HubReport } from "../../src/shared/protocol/person.ts";
import { answerHub, hubReport } from "../../workers/connection/hub/ask.ts";
import { placeOf } from "../../workers/connection/hub/link.ts";
import type { HubTimes } from "../../workers/hub/hub.ts";
import type { HubBoot } from "../../workers/hub.ts";
import { ensureFolder, type HubPlace, readSecret, writeSecret } from "../../workers/shared/hub/place.ts";
import { onCleanup } from "./cleanup.ts";
import { oneFile } from "./one-file.ts";
import { killMarked, processesWithMarker, waitGone } from "./processes.ts";
import { makeTempFolder, removeFolder } from "./temp-folder.ts";

const root = join(import.meta.dirname, "..", "..");
export const BUILT_HUB = join(root, "dist", "workers", "hub.js");

export interface HubHome {
  agentDir: string;
  place: HubPlace;
}

/** Ends the hub of this agent folder. Fails if a process is left that names the folder. */
export async function endHub(agentDir: string, place = placeOf(agentDir)): Promise<void> {
  await answerHub(agentDir, { stop: {} }).catch(() => undefined);
  const running = (await processesWithMarker(agentDir)).map(({ pid }) => pid);
  const left = await waitGone(running);
  const names = (await processesWithMarker(agentDir)).filter(({ pid }) => left.includes(pid));
  for (const { pid } of names) process.kill(pid, "SIGKILL");
  await killMarked(`PMT_PLACE=${agentDir}`);
  await removeFolder(place.folder);
  expect(names.map(({ command }) => command)).toEqual([]);
}

/** An agent folder of its own, whose hub ends with the test. */
export async function hubHome(): Promise<HubHome> {
  const agentDir = await makeTempFolder("pmt-hub");
  const place = placeOf(agentDir);
  onCleanup(async () => {
    await endHub(agentDir, place);
    await removeFolder(agentDir);
  });
  return { agentDir, place };
}

interface HubStart {
  times?: HubTimes;
  /** Default: the built hub. */
  file?: string;
  place?: HubPlace;
  /** Words before the program. */
  through?: readonly string[];
}

/** Starts the built hub itself and answers its process id when it is ready. */
export async function startHub(home: HubHome, options: HubStart = {}): Promise<number> {
  const { times, file = BUILT_HUB, place = home.place, through = [] } = options;
  await ensureFolder(place);
  if (!(await readSecret(place))) await writeSecret(place);
  const boot: HubBoot = { place, logFile: join(home.agentDir, "mcp-hub.log"), ...(times ? { times } : {}) };
  const [program = process.execPath, ...args] = [...through, process.execPath, file, JSON.stringify(boot)];
  const hub = spawn(program, args, {
    stdio: ["ignore", "pipe", "inherit"],
    detached: true,
    env: { PMT_PLACE: home.agentDir },
  });
  hub.unref();
  const [line] = (await once(hub.stdout, "data")) as [Buffer];
  hub.stdout.destroy();
  expect(String(line)).toBe("ready\n");
  return hub.pid ?? 0;
}

export const hubLog = ({ agentDir }: HubHome): Promise<string> =>
  readFile(join(agentDir, "mcp-hub.log"), "utf8").catch(() => "");

export async function reportOf({ agentDir }: HubHome): Promise<HubReport> {
  const report = await hubReport(agentDir);
  if (!report) throw new Error("no hub runs");
  return report;
}

export interface SessionProcess {
  pid: number;
  /** Lines so far: `attached <pid of the server>`, and the text of each answer. */
  lines: readonly string[];
  line(fits: string): Promise<string>;
  kill(signal: NodeJS.Signals): void;
}

export const SESSION = join(root, "test/fixtures/shared-session.ts");

/** A script that may start the hub, in one file, with the built hub beside it: the raw one takes five times as long to start. */
export function withHub(name: string, script: string): string {
  const { file } = oneFile(name, script);
  const hub = join(dirname(file), "hub.js");
  try {
    if (!existsSync(hub)) symlinkSync(BUILT_HUB, hub);
  } catch (error) {
    // Another process has made the link meanwhile.
    if (!existsSync(hub)) throw error;
  }
  return file;
}

export const sessionFile = (): string => withHub("shared-session", SESSION);

/**
 * Starts a process that uses the server shared.mjs and makes these calls at once. It stays until it is killed. `by`: the program
 * that runs the session, and its file.
 */
export function startSession(
  { agentDir }: HubHome,
  calls: readonly object[],
  env: Record<string, string> = {},
  by: readonly [runtime: string, file: string] = [process.execPath, sessionFile()],
): SessionProcess {
  const [runtime, file] = by;
  const server = join(root, "test/fixtures/servers/shared.mjs");
  const args = [file, agentDir, JSON.stringify(calls), JSON.stringify(env), server];
  const child = spawn(runtime, args, { stdio: ["ignore", "pipe", "inherit"] });
  const ended = once(child, "exit");
  onCleanup(async () => {
    child.kill("SIGKILL");
    await ended;
  });
  const lines: string[] = [];
  createInterface({ input: child.stdout }).on("line", (line) => lines.push(line));
  return {
    pid: child.pid ?? 0,
    lines,
    line: async (fits) => {
      for (;;) {
        const found = lines.find((line) => line.startsWith(fits));
        if (found !== undefined) return found;
        if (child.exitCode !== null) throw new Error(`the session has ended: ${lines.join("; ")}`);
        await sleep(20);
      }
    },
    kill: (signal) => child.kill(signal),
  };
}
