/**
 * The rehearsal of a first call: connects to a server that no program runs, calls its tool and closes it, by the code that
 * serves real ones. Code that runs for the first time takes much longer, and nobody waits while the model thinks. Nothing is
 * started, asked, stored or told.
 */
import { EventEmitter } from "node:events";
import { PassThrough, Writable } from "node:stream";
import { messageOf } from "../../../src/shared/protocol/errors.ts";
import type { Log } from "../../shared/log.ts";
import { createGate } from "../../shared/pace/pace.ts";
import type { ServerProcess } from "../../shared/programs/processes.ts";
import { parseEntry } from "../config/entry/definition.ts";
import type { Results } from "../results/results.ts";
import { ProcessEnds } from "../servers/process-ends.ts";
import { Server, type ServerContext } from "../servers/server.ts";
import { runCall } from "./calls.ts";

const NAME = "rehearsal";
const TOOL = "echo";

/** Method -> what a small server answers. */
const ANSWERS: Readonly<Record<string, object>> = {
  initialize: {
    protocolVersion: "2025-11-25",
    capabilities: { tools: {} },
    serverInfo: { name: NAME, version: "1" },
  },
  "tools/list": {
    tools: [{ name: TOOL, description: TOOL, inputSchema: { type: "object", properties: {} } }],
  },
  "tools/call": { content: [{ type: "text", text: TOOL }] },
};

/** The pretended server, in the place of a process. */
class Part extends EventEmitter implements ServerProcess {
  readonly stdout = new PassThrough();
  readonly stderr = new PassThrough();
  readonly stdin = new Writable({
    write: (line, _encoding, done) => {
      const { id, method } = JSON.parse(String(line)) as { id?: number; method: string };
      if (id !== undefined)
        this.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id, result: ANSWERS[method] ?? {} })}\n`);
      done();
    },
  });

  constructor() {
    super();
    setImmediate(() => this.emit("spawn"));
  }

  unref(): void {}

  /** Ends it as the use of a shared process ends: there is nothing to signal. */
  leave(): void {
    this.stdout.end();
    this.stderr.end();
    this.emit("exit", 0, null);
    this.emit("close", 0, null);
  }
}

const nothing = (): void => undefined;
const SILENT: Log = {
  debug: nothing,
  info: nothing,
  warn: nothing,
  error: nothing,
  write: nothing,
  flush: async () => undefined,
};

interface RehearsalContext extends Pick<ServerContext, "cwd" | "npxCacheFile" | "settings" | "log"> {
  results: Pick<Results, "store" | "settingsFor">;
  /** Ends the rehearsal. */
  signal: AbortSignal;
}

async function run({ results, signal, ...session }: Omit<RehearsalContext, "log">): Promise<void> {
  const written = { command: process.execPath, lifecycle: "lazy" };
  const { definition } = parseEntry(NAME, written, { file: NAME, origin: "user" });
  if (!definition) throw new TypeError("its server was not checked");
  const server = new Server(definition, {
    ...session,
    log: SILENT,
    emit: nothing,
    gate: createGate(1),
    ends: new ProcessEnds(),
    approvals: { of: () => undefined },
    onStatus: nothing,
    onTools: nothing,
    connect: async (options) => {
      const { connect } = await import("../transports/transports.ts");
      return connect({ ...options, start: () => new Part() });
    },
  });
  const end = (): void => void server.close();
  signal.addEventListener("abort", end, { once: true });
  const { store } = results;
  // The session's statistics count what somebody has asked for.
  const own = { store, settingsFor: results.settingsFor.bind(results), called: nothing };
  try {
    signal.throwIfAborted();
    const supervisor = { get: () => server, servers: [] };
    const call = { server: NAME, tool: TOOL, args: {}, callId: NAME };
    await runCall(call, { supervisor, emit: nothing, signal, results: own });
  } finally {
    signal.removeEventListener("abort", end);
    await server.close();
  }
}

/** Never rejects: whatever fails fails again, and is told, with the first real call. */
export async function rehearseCall({ log, ...context }: RehearsalContext): Promise<void> {
  const startedAt = performance.now();
  try {
    await run(context);
    log.debug(`a call was rehearsed in ${Math.round(performance.now() - startedAt)} ms`);
  } catch (error) {
    if (!context.signal.aborted) log.debug(`a call could not be rehearsed: ${messageOf(error)}`);
  }
}
