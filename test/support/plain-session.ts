/**
 * Owns: the packed connection worker in a process without Vitest: its session, its calls, its sign-ins, and a user who
 * answers each form with its defaults and opens no page. Called by: processes that tests start, and the driver of the
 * conformance suite.
 */
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { catalogFrom } from "../../src/catalog/catalog.ts";
import type { KeepLimits, Runtime } from "../../src/runtime/contract.ts";
import { startRuntime } from "../../src/runtime/runtime.ts";
import { startValue } from "../../src/shared/asks/check.ts";
import type { AskAnswer, CallResult } from "../../src/shared/protocol/calls.ts";
import type { WorkerEvent } from "../../src/shared/protocol/contract.ts";
import type { ServerStatus, SignInResult } from "../../src/shared/protocol/session.ts";
import { type SignedIn, signInAs, type User } from "./signing-in.ts";

/** A bundled program has another place than this file, and names the worker itself. */
const worker = (): URL =>
  pathToFileURL(join(import.meta.dirname, "..", "..", "dist", "workers", "connection.js"));

const SETTLE_MS = 20_000;

export interface PlainSession {
  runtime: Runtime;
  call(server: string, tool: string, args: Record<string, unknown>): Promise<CallResult>;
  /** Waits for the servers' tools, then answers the names of those of the server. */
  tools(server: string): Promise<string[]>;
  /** Waits for the servers' tools, then answers the server's status. */
  settled(server: string): Promise<ServerStatus>;
  /** Waits until an edit of mcp.json is applied that adds the server, and the server connects or waits for a sign-in. */
  begun(server: string): Promise<void>;
  /** Waits until an edit of mcp.json is applied that removes the server. */
  removed(server: string): Promise<void>;
  /** Signs in. Default: as a user who agrees to everything. */
  signIn(server: string, user?: User): Promise<SignedIn>;
}

interface PlainOptions {
  limits?: KeepLimits;
  workerUrl?: URL;
}

/** Starts the worker with the `mcp.json` of the agent folder, and waits until its session is planned. */
export async function startPlainSession(
  place: { agentDir: string; cwd: string },
  { limits = {}, workerUrl = worker() }: PlainOptions = {},
): Promise<PlainSession> {
  const events: WorkerEvent[] = [];
  const watchers = new Set<() => void>();
  const planned = Promise.withResolvers<void>();
  const runtime = startRuntime({
    logFile: join(place.agentDir, "mcp-threads.log"),
    workerUrl,
    limits,
    facts: () => ({
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
      for (const watcher of [...watchers]) watcher();
    },
    onQuestion: async (question): Promise<AskAnswer | undefined> => {
      if (question.about !== "server") return undefined;
      const { ask } = question;
      return ask.kind === "form"
        ? { action: "accept", values: ask.fields.map(startValue) }
        : { action: "decline" };
    },
    onCrash: ({ reason }) => planned.reject(new Error(`the worker crashed: ${reason}`)),
    onStartFailed: planned.reject,
  });
  await planned.promise;
  /** Looks again at each event until the look finds something. */
  const found = <T>(look: () => T | undefined): Promise<T> =>
    new Promise((resolve) => {
      const watcher = (): void => {
        const value = look();
        if (value === undefined) return;
        watchers.delete(watcher);
        resolve(value);
      };
      watchers.add(watcher);
      watcher();
    });
  const ended = (id: string): Promise<SignInResult> =>
    found(() => {
      const end = events.find((event) => event.type === "sign-in" && event.id === id);
      return end?.type === "sign-in" ? end.result : undefined;
    });
  const isPlanned = (server: string): boolean => {
    const event = events.findLast(({ type }) => type === "planned");
    return event?.type === "planned" && event.servers.some(({ name }) => name === server);
  };
  const hasBegun = (server: string): boolean =>
    events.some(
      (event) => event.type === "server" && event.status.name === server && event.status.state !== "idle",
    );
  let calls = 0;
  return {
    runtime,
    call: (server, tool, args) =>
      runtime.callTool({ callId: `call-${++calls}`, server, tool, args }, undefined),
    tools: async (name) => {
      await runtime.settleTools({ timeoutMs: SETTLE_MS }, undefined);
      const event = events.findLast(({ type }) => type === "catalog");
      const catalog = event?.type === "catalog" ? catalogFrom(event.snapshot) : undefined;
      if (!catalog) throw new Error("no catalog came");
      return catalog.tools.flatMap(({ server, tool }) => (server.name === name ? [tool] : []));
    },
    begun: async (server) => {
      await found(() => hasBegun(server) || undefined);
    },
    removed: async (server) => {
      await found(() => !isPlanned(server) || undefined);
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
