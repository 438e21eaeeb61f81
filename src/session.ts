/**
 * One Pi session on the main thread: starts and stops the runtime and joins the catalog, the tools and
 * what the user sees to it. Events of an older generation are dropped.
 */
import { join } from "node:path";
import { createCatalogStore } from "./catalog/store.ts";
import type { FinishedMessage, Pi, PiContext } from "./host.ts";
import { describeError, ThreadsError } from "./protocol/errors.ts";
import { LIMITS } from "./protocol/limits.ts";
import { LOG_FILE } from "./protocol/paths.ts";
import type { CatalogSettings } from "./protocol/snapshot.ts";
import type { CallResult, ServerStatus, WorkerEvent } from "./protocol/types.ts";
import type { Crash } from "./runtime/respawn.ts";
import { type Runtime, startRuntime } from "./runtime/runtime.ts";
import type { ToolCall } from "./tools/mcp-tool.ts";
import { createRegistrar } from "./tools/registrar.ts";
import { createSearchTools } from "./tools/search-tools.ts";
import { explainUnknownCall } from "./tools/unknown-call.ts";
import { createHealthNotices } from "./ui/health-notices.ts";
import type { McpCommandHost } from "./ui/mcp-command.ts";
import { notify } from "./ui/notices.ts";
import { createStatusLine } from "./ui/status-line.ts";
import { problemLine } from "./ui/status-text.ts";

export interface Session extends McpCommandHost {
  /** For the factory: everything that is known before Pi has bound. */
  register(): void;
  start(ctx: PiContext): void;
  /** Bounded wait for the server names, where no snapshot told them. */
  beforeAgentStart(): Promise<void>;
  turnEnded(): void;
  /** Puts a call of a tool that is not declared in better words than Pi's. */
  messageEnded<M extends FinishedMessage>(message: M): { message: M } | undefined;
  stop(): Promise<void>;
}

/** What lives from session_start to session_shutdown. */
interface Running {
  generation: number;
  runtime: Runtime;
  statuses: Map<string, ServerStatus>;
  planned: PromiseWithResolvers<void>;
  /** Of the plan; undefined until it is made. */
  settings: CatalogSettings | undefined;
}

let generations = 0;

const CRASHED = "The MCP connection worker ended unexpectedly";

const crashText = ({ reason, givenUp }: Crash): string =>
  givenUp
    ? `${CRASHED} too often (${reason}) and is not started again. /reload tries once more.`
    : `${CRASHED} (${reason}) and is started again. Calls that were open have failed.`;

export function createSession(pi: Pi, options: { agentDir: string; cwd: string }): Session {
  const { agentDir } = options;
  const startedAt = performance.now();
  const store = createCatalogStore(agentDir, options.cwd);
  const progress = new Map<string, (message: string) => void>();
  let running: Running | undefined;
  let registeredIn = 0;

  const now = (): Running => {
    if (running) return running;
    throw new ThreadsError("runtime_stopped", "The MCP servers of this session are stopped.", {
      remedy: "/reload starts them again.",
    });
  };

  const call = async ({ callId, server, tool, args, signal, onProgress }: ToolCall): Promise<CallResult> => {
    const { runtime, generation } = now();
    progress.set(callId, onProgress);
    try {
      return await runtime.callTool({ generation, callId, server, tool, args }, signal);
    } finally {
      progress.delete(callId);
    }
  };
  const registrar = createRegistrar(pi, call);

  const settle = async (signal: AbortSignal | undefined): Promise<string[]> => {
    const { pending, checksum } = await now().runtime.settleTools(LIMITS.searchWaitMs, signal);
    await store.reached(checksum);
    return pending;
  };

  const host = {
    settle,
    catalog: store.current,
    servers: () => [...(running?.statuses.values() ?? [])],
    activate: registrar.activate,
    call,
    connect: (server: string) => now().runtime.reconnect(server),
    log: (message: string) => running?.runtime.log("info", message),
  };
  const searchTools = createSearchTools(pi, host);

  /** Everything that a worker's events do to this session; bound to one generation. */
  const createEventHandler = (ctx: PiContext, mine: () => Running | undefined) => {
    const statusLine = createStatusLine(ctx);
    const health = createHealthNotices();
    return (event: WorkerEvent): void => {
      const session = mine();
      if (!session) return;
      switch (event.type) {
        case "progress":
          progress.get(event.callId)?.(event.message);
          break;
        case "catalog":
          store.replace(event.snapshot);
          registrar.follow(store.current);
          break;
        case "planned":
          session.statuses = new Map(event.servers.map((status) => [status.name, status]));
          session.settings = event.settings;
          session.planned.resolve();
          for (const problem of event.problems) notify(ctx, problemLine(problem), "warning");
          statusLine.show(event.servers);
          break;
        case "server": {
          session.statuses.set(event.status.name, event.status);
          statusLine.show([...session.statuses.values()]);
          const notice = health.onStatus(event.status);
          if (notice) notify(ctx, notice.text, notice.level);
          break;
        }
      }
    };
  };

  return {
    register: () => {
      searchTools.declare(store.current());
      registrar.registerAll(store.current());
      registeredIn = performance.now() - startedAt;
    },
    start: (ctx) => {
      // Over RPC `/new` runs session_start twice on one factory instance: the same session.
      if (running) return;
      const generation = ++generations;
      const mine = (): Running | undefined => (running?.generation === generation ? running : undefined);
      const { cwd } = ctx;
      const projectTrusted = ctx.isProjectTrusted();
      const runtime = startRuntime({
        logFile: join(agentDir, LOG_FILE),
        facts: () => ({
          generation,
          cwd,
          agentDir,
          projectTrusted,
          snapshotChecksum: store.checksum(),
        }),
        onEvent: createEventHandler(ctx, mine),
        onCrash: (crash) => {
          if (mine()) notify(ctx, crashText(crash), crash.givenUp ? "error" : "warning");
        },
        onStartFailed: (error) => {
          const session = mine();
          session?.planned.resolve();
          // A crash tells itself.
          if (!session || (error instanceof ThreadsError && error.code === "runtime_restarted")) return;
          notify(ctx, `MCP servers could not be started: ${describeError(error)}`, "error");
        },
      });
      running = {
        generation,
        runtime,
        statuses: new Map(),
        planned: Promise.withResolvers(),
        settings: undefined,
      };
      const { tools, servers } = store.current();
      runtime.log(
        "info",
        `registered ${tools.length} tools of ${servers.length} servers from the snapshot in ${registeredIn.toFixed(1)} ms`,
      );
    },
    beforeAgentStart: async () => {
      if (!running || searchTools.complete()) return;
      const late = Promise.withResolvers<void>();
      const timer = setTimeout(late.resolve, LIMITS.firstPlanWaitMs);
      await Promise.race([running.planned.promise, late.promise]);
      clearTimeout(timer);
      if (!running) return;
      if (store.checksum() !== undefined) return searchTools.declare(store.current());
      const { settings, statuses } = running;
      if (settings) searchTools.declarePlan([...statuses.values()], settings);
    },
    messageEnded: (message) => {
      const explained = running && explainUnknownCall(message, { ...host, searchTool: searchTools.name });
      return explained && { message: explained };
    },
    turnEnded: () => running?.runtime.turnEnded(),
    stop: async () => {
      const stopped = running;
      running = undefined;
      await stopped?.runtime.stop();
    },
    status: () => now().runtime.status(),
    reconnect: (server) => now().runtime.reconnect(server),
    catalog: store.current,
    servers: () => [...(running?.statuses.values() ?? [])],
  };
}
