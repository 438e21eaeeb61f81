/**
 * Owns: sessions that speak to the hub of shared servers as a connection worker does, without one. Knows nothing of Vitest, so
 * that a process of its own can be such a session.
 */
import { once } from "node:events";
import type { Socket } from "node:net";
import { join } from "node:path";
import { openHub } from "../../workers/connection/hub/link.ts";
import { SharedServerProcess } from "../../workers/connection/transports/stdio/shared.ts";
import type { Attach } from "../../workers/shared/hub/wire.ts";
import type { Leave } from "../../workers/shared/pace/pace.ts";

const root = join(import.meta.dirname, "..", "..");

interface AgentFolder {
  agentDir: string;
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

export interface PeerOptions extends Partial<Attach> {
  env?: Record<string, string>;
  /** Default: shared.mjs. */
  program?: string;
  /** A connection that is there. Default: a new one. */
  socket?: Promise<Socket>;
}

export function attachOf({ agentDir }: AgentFolder, options: PeerOptions = {}): Attach {
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
export async function attach(home: AgentFolder, options: PeerOptions = {}): Promise<Peer> {
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
  shared.stdout.on("error", (error) => shared.emit("exit", null, null, error.message));
  let parts: Buffer[] = [];
  shared.stdout.on("data", (chunk: Buffer) => {
    const last = chunk.lastIndexOf(10);
    if (last === -1) return void parts.push(chunk);
    const text = Buffer.concat([...parts, chunk.subarray(0, last)]).toString();
    parts = [chunk.subarray(last + 1)];
    for (const line of text.split("\n")) {
      try {
        const message = JSON.parse(line) as Record<string, unknown> | null;
        if (message === null) continue;
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
    call: (args, id) => {
      const answered = request("tools/call", { name: "work", arguments: args }, id).then(
        ({ result, error }) => result?.content?.[0]?.text ?? `error ${error?.message}`,
      );
      // A test may look at it late.
      answered.catch(() => undefined);
      return answered;
    },
    tell: (method, params) => write({ method, params }),
    ended,
    leave: (how) => shared.leave(how),
  };
}

/** Attaches and shakes hands. */
export async function joined(home: AgentFolder, options: PeerOptions = {}): Promise<Peer> {
  const peer = await attach(home, options);
  await peer.request("initialize", { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: {} });
  peer.tell("notifications/initialized", {});
  return peer;
}
