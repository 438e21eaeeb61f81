/**
 * Owns: hubs of shared servers for tests: an agent folder whose hub ends with the test, a hub with times of its own, and
 * sessions that speak to it as a connection worker does, without one.
 * Must not: start connection workers or Pi.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, realpath, rm } from "node:fs/promises";
import type { Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";
import type { HubReport } from "../../src/shared/protocol/person.ts";
import { answerHub, hubReport } from "../../workers/connection/hub/ask.ts";
import { openHub, placeOf } from "../../workers/connection/hub/link.ts";
import { SharedServerProcess } from "../../workers/connection/transports/stdio/shared.ts";
import type { HubTimes } from "../../workers/hub/hub.ts";
import type { HubBoot } from "../../workers/hub.ts";
import { ensureFolder, type HubPlace, readSecret, writeSecret } from "../../workers/shared/hub/place.ts";
import type { Attach } from "../../workers/shared/hub/wire.ts";
import type { Leave } from "../../workers/shared/pace/pace.ts";
import { onCleanup } from "./cleanup.ts";
import { killMarked, processesWithMarker, waitGone } from "./processes.ts";

const root = join(import.meta.dirname, "..", "..");
export const BUILT_HUB = join(root, "dist", "workers", "hub.js");

export interface HubHome {
  agentDir: string;
  place: HubPlace;
}

const REST_MS = 10_000;

/** Ends the hub of this agent folder. Fails if a process is left that names the folder. */
export async function endHub(agentDir: string, place = placeOf(agentDir)): Promise<void> {
  await answerHub(agentDir, { stop: {} }).catch(() => undefined);
  const running = (await processesWithMarker(agentDir)).map(({ pid }) => pid);
  const left = await waitGone(running, REST_MS);
  const names = (await processesWithMarker(agentDir)).filter(({ pid }) => left.includes(pid));
  for (const { pid } of names) process.kill(pid, "SIGKILL");
  await killMarked(`PMT_PLACE=${agentDir}`);
  await rm(place.folder, { recursive: true, force: true });
  expect(names.map(({ command }) => command)).toEqual([]);
}

/** An agent folder of its own, whose hub ends with the test. */
export async function hubHome(): Promise<HubHome> {
  const agentDir = await mkdtemp(join(await realpath(tmpdir()), "pmt-hub-"));
  const place = placeOf(agentDir);
  onCleanup(async () => {
    await endHub(agentDir, place);
    await rm(agentDir, { recursive: true, force: true });
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

export interface Answer {
  id: unknown;
  result?: { content?: { text: string }[] };
  error?: { code: number; message: string };
}

/** A session's use of a shared server, without a connection worker. */
export interface Peer {
  process: SharedServerProcess;
  /** All messages so far, answers included. */
  messages: readonly Record<string, unknown>[];
  /** Sends a request; rejects if the connection ends before its answer. */
  request(method: string, params: object, id?: number | string): Promise<Answer>;
  /** Calls the tool of shared.mjs; its text, or its error's. */
  call(args: Record<string, unknown>, id?: number | string): Promise<string>;
  tell(method: string, params: object): void;
  /** Why and how the use has ended. */
  ended: Promise<string>;
  leave(how: Leave): void;
}

export interface PeerOptions extends Partial<Omit<Attach, "launch">> {
  env?: Record<string, string>;
  /** Default: shared.mjs. */
  program?: string;
  /** A connection that is there. Default: a new one. */
  socket?: Promise<Socket>;
}

export function attachOf({ agentDir }: HubHome, options: PeerOptions = {}): Attach {
  const { env = {}, program = join(root, "test/fixtures/servers/shared.mjs"), socket: _, ...more } = options;
  return {
    launch: {
      program: process.execPath,
      args: [program],
      env: { PATH: process.env.PATH ?? "", PMT_PLACE: agentDir, ...env },
      cwd: agentDir,
    },
    offer: "",
    label: "s",
    idleMs: 60_000,
    maxMessageBytes: 70_000_000,
    isWanted: false,
    pid: process.pid,
    ...more,
  };
}

/** Attaches without the handshake. Rejects if the hub refuses. */
export async function attach(home: HubHome, options: PeerOptions = {}): Promise<Peer> {
  const socket = options.socket ?? openHub(home.agentDir);
  const shared = new SharedServerProcess(socket, attachOf(home, options), () => undefined);
  const messages: Record<string, unknown>[] = [];
  const waiting = new Map<number | string, (answer: Answer) => void>();
  const rejects = new Set<(error: Error) => void>();
  const ended = new Promise<string>((resolve) => {
    const end = (why: string): void => {
      resolve(why);
      for (const reject of rejects) reject(new Error(why));
    };
    shared.once("exit", (code, signal, why) => end(why ?? `exit ${code} ${signal}`));
    shared.on("error", (error) => end(`refused: ${error.message}`));
  });
  ended.catch(() => undefined);
  let parts: Buffer[] = [];
  shared.stdout.on("data", (chunk: Buffer) => {
    const last = chunk.lastIndexOf(10);
    if (last === -1) return void parts.push(chunk);
    const text = Buffer.concat([...parts, chunk.subarray(0, last)]).toString();
    parts = [chunk.subarray(last + 1)];
    for (const line of text.split("\n")) {
      try {
        const message = JSON.parse(line) as Record<string, unknown>;
        messages.push(message);
        const id = message.id as string;
        if (!message.method) waiting.get(id)?.(message as unknown as Answer);
        waiting.delete(id);
      } catch {
        // Noise.
      }
    }
  });
  shared.stderr.resume();
  let lastId = 0;
  const write = (message: object): void => {
    shared.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  };
  const request: Peer["request"] = (method, params, id = ++lastId) => {
    const answered = new Promise<Answer>((resolve, reject) => {
      rejects.add(reject);
      waiting.set(id, (answer) => {
        rejects.delete(reject);
        resolve(answer);
      });
    });
    answered.catch(() => undefined);
    write({ id, method, params });
    return answered;
  };
  const spawned = once(shared, "spawn");
  spawned.catch(() => undefined);
  const failed = await Promise.race([spawned.then(() => undefined, String), ended]);
  if (failed !== undefined) throw new Error(failed);
  return {
    process: shared,
    messages,
    request,
    call: async (args, id) => {
      const { result, error } = await request("tools/call", { name: "work", arguments: args }, id);
      return result?.content?.[0]?.text ?? `error ${error?.message}`;
    },
    tell: (method, params) => write({ method, params }),
    ended,
    leave: (how) => shared.leave(how),
  };
}

/** Attaches and shakes hands. */
export async function joined(home: HubHome, options: PeerOptions = {}): Promise<Peer> {
  const peer = await attach(home, options);
  await peer.request("initialize", { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: {} });
  peer.tell("notifications/initialized", {});
  return peer;
}
