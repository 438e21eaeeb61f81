/**
 * Owns: the packed connection worker in a process without Vitest: its session, its calls, its sign-ins, and a user who
 * answers each form with its defaults and opens no page. Called by: processes that tests start, and the driver of the
 * conformance suite.
 */
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { catalogFrom } from "../../src/catalog/known.ts";
import type { KeepLimits, Runtime } from "../../src/runtime/contract.ts";
import { startRuntime } from "../../src/runtime/run.ts";
import { startValue } from "../../src/shared/asks/check.ts";
import type { AskAnswer } from "../../src/shared/protocol/ask.ts";
import type { CallResult } from "../../src/shared/protocol/calls.ts";
import type { WorkerEvent } from "../../src/shared/protocol/events.ts";
import type { SignInResult } from "../../src/shared/protocol/sign-in.ts";
import type { ServerStatus } from "../../src/shared/protocol/status.ts";
import { type SignedIn, signInAs, type User } from "./signing-in.ts";

const worker = pathToFileURL(join(import.meta.dirname, "..", "..", "dist", "workers", "connection.js"));

const SETTLE_MS = 20_000;

export interface PlainSession {
  runtime: Runtime;
  call(server: string, tool: string, args: Record<string, unknown>): Promise<CallResult>;
  /** Waits for the servers' tools, then answers the names of those of the server. */
  tools(server: string): Promise<string[]>;
  /** Waits for the servers' tools, then answers the server's status. */
  settled(server: string): Promise<ServerStatus>;
  /** Signs in. Default: as a user who agrees to everything. */
  signIn(server: string, user?: User): Promise<SignedIn>;
}

/** Starts the worker with the `mcp.json` of the agent folder, and waits until its session is planned. */
export async function startPlainSession(
  place: { agentDir: string; cwd: string },
  limits: KeepLimits = {},
): Promise<PlainSession> {
  const events: WorkerEvent[] = [];
  const watchers = new Set<() => void>();
  const planned = Promise.withResolvers<void>();
  const runtime = startRuntime({
    logFile: join(place.agentDir, "mcp-threads.log"),
    workerUrl: worker,
    limits,
    facts: () => ({
      generation: 1,
      ...place,
      projectTrusted: true,
      configPath: undefined,
      registered: [],
      canAsk: true,
      snapshotChecksum: undefined,
    }),
    onEvent: (event) => {
      events.push(event);
      if (event.type === "planned") planned.resolve();
      if (event.type === "ask") {
        const { askId, ask } = event;
        const answer: AskAnswer =
          ask.kind === "form"
            ? { action: "accept", values: ask.fields.map(startValue) }
            : { action: "decline" };
        runtime.ask("answerAsk", { askId, answer }).catch(planned.reject);
      }
      for (const watcher of [...watchers]) watcher();
    },
    onCrash: ({ reason }) => planned.reject(new Error(`the worker crashed: ${reason}`)),
    onStartFailed: planned.reject,
  });
  await planned.promise;
  const ended = (id: string): Promise<SignInResult> =>
    new Promise((resolve) => {
      const look = (): void => {
        const end = events.find((event) => event.type === "sign-in" && event.id === id);
        if (end?.type !== "sign-in") return;
        watchers.delete(look);
        resolve(end.result);
      };
      watchers.add(look);
      look();
    });
  let calls = 0;
  return {
    runtime,
    call: (server, tool, args) =>
      runtime.callTool({ generation: 1, callId: `call-${++calls}`, server, tool, args }, undefined),
    tools: async (name) => {
      const { checksum } = await runtime.settleTools({ timeoutMs: SETTLE_MS }, undefined);
      // Events and replies use different ports, so the event may arrive after the reply.
      for (;;) {
        const event = events.findLast(({ type }) => type === "catalog");
        const catalog = event?.type === "catalog" ? catalogFrom(event.snapshot) : undefined;
        if (catalog && catalog.checksum === checksum) {
          return catalog.tools.flatMap(({ server, tool }) => (server.name === name ? [tool] : []));
        }
        await new Promise<void>((resolve) => watchers.add(resolve));
      }
    },
    settled: async (name) => {
      await runtime.settleTools({ timeoutMs: SETTLE_MS }, undefined);
      const { servers } = await runtime.ask("status", {});
      const status = servers.find((server) => server.name === name);
      if (!status) throw new Error(`no server ${name}`);
      return status;
    },
    signIn: (server, user = {}) => signInAs(user, { runtime, ended }, server),
  };
}
