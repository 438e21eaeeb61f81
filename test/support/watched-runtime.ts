/** Owns: the connection worker as tests watch it, with or without Vitest: its events, waits for what they bring, its calls. */
import { join } from "node:path";
import { type Catalog, catalogFrom } from "../../src/catalog/catalog.ts";
import type { Crash, KeepLimits, Runtime } from "../../src/runtime/contract.ts";
import { startRuntime } from "../../src/runtime/runtime.ts";
import type { CallResult } from "../../src/shared/protocol/calls.ts";
import type { WorkerEvent } from "../../src/shared/protocol/contract.ts";
import { ThreadsError } from "../../src/shared/protocol/errors.ts";
import type { ServerStatus, SessionFacts } from "../../src/shared/protocol/session.ts";

export interface Watched {
  runtime: Runtime;
  events: readonly WorkerEvent[];
  crashes: readonly Crash[];
  /** The first past or future event at or after index `since` that fits. */
  event<T extends WorkerEvent["type"]>(
    type: T,
    fits?: (event: Extract<WorkerEvent, { type: T }>) => boolean,
    since?: number,
  ): Promise<Extract<WorkerEvent, { type: T }>>;
  call(
    server: string,
    tool: string,
    args?: Record<string, unknown>,
    signal?: AbortSignal,
  ): Promise<CallResult>;
  /** Waits for all tool lists, then answers the server's status. */
  settled(name: string): Promise<ServerStatus>;
}

type RuntimeOptions = Parameters<typeof startRuntime>[0];
interface Watching {
  facts?: Partial<SessionFacts>;
  limits?: KeepLimits;
  /** Default: the raw worker. */
  workerUrl?: URL | undefined;
  onQuestion: NonNullable<RuntimeOptions["onQuestion"]>;
}

/** `look` runs all waits again; `add` tells of an event that the worker has not sent; `when` resolves with the first defined result of `check`, which runs at each event and crash. */
type Waiting = {
  look(): void;
  add(event: WorkerEvent): void;
  when<T>(check: () => T | undefined): Promise<T>;
};

/** Starts the worker. `planned` settles with the plan of its session. */
export function watchRuntime(
  place: { agentDir: string; cwd: string },
  { facts, limits = {}, workerUrl, onQuestion }: Watching,
): Watched & Waiting & { planned: Promise<void> } {
  const events: WorkerEvent[] = [];
  const crashes: Crash[] = [];
  const watchers = new Set<() => void>();
  const look = (): void => {
    for (const watcher of watchers) watcher();
  };
  const add = (event: WorkerEvent): void => {
    events.push(event);
    look();
  };
  const planned = Promise.withResolvers<void>();
  const runtime = startRuntime({
    logFile: join(place.agentDir, "mcp-threads.log"),
    facts: () => ({
      ...place,
      projectTrusted: true,
      configPath: undefined,
      registered: [],
      canAsk: true,
      snapshotChecksum: undefined,
      ...facts,
    }),
    onEvent: (event) => {
      if (event.type === "planned") planned.resolve();
      add(event);
    },
    onQuestion,
    onCrash: (crash) => {
      crashes.push(crash);
      if (crash.givenUp) planned.reject(new Error(`the worker crashed too often: ${crash.reason}`));
      look();
    },
    onStartFailed: (error) => {
      // If the worker crashed, the next worker plans the session.
      if (!(error instanceof ThreadsError && error.code === "runtime_restarted")) planned.reject(error);
    },
    ...(workerUrl ? { workerUrl } : {}),
    limits,
  });
  const when = <T>(check: () => T | undefined): Promise<T> =>
    new Promise((resolve) => {
      const watcher = (): void => {
        const found = check();
        if (found === undefined) return;
        watchers.delete(watcher);
        resolve(found);
      };
      watchers.add(watcher);
      watcher();
    });
  let calls = 0;
  return {
    runtime,
    events,
    crashes,
    planned: planned.promise,
    look,
    add,
    when,
    event: (type, fits = () => true, since = 0) =>
      when(() => {
        const found = events.slice(since).find((event) => event.type === type && fits(event as never));
        return found as Parameters<typeof fits>[0] | undefined;
      }),
    call: (server, tool, args = {}, signal) =>
      runtime.callTool({ callId: `call-${++calls}`, server, tool, args }, signal),
    settled: async (name) => {
      await runtime.settleTools({ timeoutMs: 40_000 }, undefined);
      const { servers } = await runtime.ask("status", {});
      const status = servers.find((server) => server.name === name);
      if (!status) throw new Error(`no server ${name}`);
      return status;
    },
  };
}

/** The last catalog that main received. Its file may not be written yet. */
export function newestCatalog({ events }: Pick<Watched, "events">): Catalog {
  const event = events.findLast(({ type }) => type === "catalog");
  const catalog = event?.type === "catalog" ? catalogFrom(event.snapshot) : undefined;
  if (!catalog) throw new Error("no catalog was sent");
  return catalog;
}

/** The catalog of all lists so far: its event comes before the reply. */
export async function currentCatalog(at: Watched): Promise<Catalog> {
  await at.runtime.settleTools({ timeoutMs: 40_000 }, undefined);
  return newestCatalog(at);
}
