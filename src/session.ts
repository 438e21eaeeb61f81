/**
 * One Pi session on the main thread: starts and stops the runtime, keeps the catalog current, and joins
 * tools and commands to both. Events of an older generation are dropped.
 */
import { join } from "node:path";
import { type Catalog, catalogFrom } from "./catalog/catalog.ts";
import { readCatalog } from "./catalog/snapshot-file.ts";
import type { Pi, PiContext } from "./host.ts";
import { ThreadsError } from "./protocol/errors.ts";
import { LIMITS } from "./protocol/limits.ts";
import { LOG_FILE } from "./protocol/paths.ts";
import type { CallResult, ServerStatus, StatusReport, WorkerEvent } from "./protocol/types.ts";
import { type Runtime, startRuntime } from "./runtime/runtime.ts";
import type { ToolCall } from "./tools/mcp-tool.ts";
import { createRegistrar } from "./tools/registrar.ts";
import { createToolSearch, toolSearchDescription } from "./tools/tool-search.ts";
import { notify } from "./ui/notices.ts";

export interface Session {
  /** For the factory: everything that is known before Pi has bound. */
  register(): void;
  start(ctx: PiContext): void;
  /** Bounded wait for the server names, where no snapshot told them. */
  beforeAgentStart(): Promise<void>;
  stop(): Promise<void>;
  status(): Promise<StatusReport>;
}

let generations = 0;

const notStarted = (): ThreadsError =>
  new ThreadsError("runtime_stopped", "The MCP servers of this session are stopped.", {
    remedy: "/reload starts them again.",
  });

export function createSession(pi: Pi, options: { agentDir: string; cwd: string }): Session {
  const { agentDir } = options;
  const progress = new Map<string, ToolCall["onProgress"]>();
  let catalog: Catalog = readCatalog(agentDir, options.cwd);
  let runtime: Runtime | undefined;
  let generation = 0;
  let statuses = new Map<string, ServerStatus>();
  let planned = Promise.withResolvers<void>();
  let catalogWaiters: { checksum: number; resolve: () => void }[] = [];
  let described: string | undefined;

  const running = (): Runtime => {
    if (runtime) return runtime;
    throw notStarted();
  };

  const call = async ({ signal, onProgress, ...request }: ToolCall): Promise<CallResult> => {
    const { callId } = request;
    progress.set(callId, onProgress);
    try {
      return await running().callTool({ generation, ...request }, signal);
    } finally {
      progress.delete(callId);
    }
  };
  const registrar = createRegistrar(pi, call);

  /** Settles when main's catalog is the one of `checksum`; the event may come after the reply that names it. */
  const catalogAt = (checksum: number | undefined): Promise<void> => {
    if (checksum === undefined || catalog.checksum === checksum) return Promise.resolve();
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, LIMITS.rpcShortMs);
    catalogWaiters.push({ checksum, resolve });
    return promise.finally(() => clearTimeout(timer));
  };

  const settle = async (signal: AbortSignal | undefined): Promise<string[]> => {
    const { pending, checksum } = await running().settleTools(LIMITS.searchWaitMs, signal);
    await catalogAt(checksum);
    return pending;
  };

  const describe = (servers: readonly { name: string; description?: string }[]): void => {
    const description = toolSearchDescription(servers);
    if (description === described) return;
    described = description;
    pi.registerTool(
      createToolSearch(description, {
        settle,
        catalog: () => catalog,
        servers: () => [...statuses.values()],
        activate: registrar.activate,
      }),
    );
  };

  const takeCatalog = (snapshot: Uint8Array): void => {
    const next = catalogFrom(snapshot);
    if (!next) return;
    catalog = next;
    registrar.follow(catalog);
    catalogWaiters = catalogWaiters.filter(({ checksum, resolve }) => {
      if (checksum !== catalog.checksum) return true;
      resolve();
      return false;
    });
  };

  const onEvent = (from: number, event: WorkerEvent): void => {
    if (from !== generation) return;
    if (event.type === "progress") progress.get(event.callId)?.(event.message, event);
    if (event.type === "server") statuses.set(event.status.name, event.status);
    if (event.type === "catalog") takeCatalog(event.snapshot);
    if (event.type === "planned") {
      statuses = new Map(event.servers.map((status) => [status.name, status]));
      planned.resolve();
    }
  };

  return {
    register: () => {
      describe(catalog.servers);
      registrar.registerAll(catalog);
    },
    start: (ctx) => {
      // Over RPC `/new` runs session_start twice on one factory instance: the same session.
      if (runtime) return;
      const mine = ++generations;
      generation = mine;
      statuses = new Map();
      planned = Promise.withResolvers<void>();
      const started = startRuntime({
        logFile: join(agentDir, LOG_FILE),
        onEvent: (event) => onEvent(mine, event),
        onCrash: (reason) => {
          if (generation !== mine) return;
          notify(
            ctx,
            `The MCP connection worker ended unexpectedly (${reason}). /reload starts it again.`,
            "error",
          );
        },
      });
      runtime = started;
      const facts = {
        generation: mine,
        cwd: ctx.cwd,
        agentDir,
        projectTrusted: ctx.isProjectTrusted(),
        snapshotChecksum: catalog.checksum,
      };
      started.startSession(facts).catch((error: Error) => {
        planned.resolve();
        if (generation === mine) notify(ctx, `MCP servers could not be started: ${error.message}`, "error");
      });
    },
    beforeAgentStart: async () => {
      if (catalog.checksum !== undefined || !runtime) return;
      const { promise, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(resolve, LIMITS.firstPlanWaitMs);
      await Promise.race([planned.promise, promise]);
      clearTimeout(timer);
      if (described === toolSearchDescription([]))
        describe([...statuses.values()].map(({ name }) => ({ name })));
    },
    stop: async () => {
      const stopped = runtime;
      runtime = undefined;
      generation = 0;
      await stopped?.stop();
    },
    status: () => running().status(),
  };
}
