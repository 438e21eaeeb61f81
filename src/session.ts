/**
 * One Pi session on the main thread: starts and stops the runtime and joins the catalog, the tools and
 * what the user sees to it. Events of an older generation are dropped.
 */
import { join } from "node:path";
import { createCatalogStore } from "./catalog/store.ts";
import type { Pi, PiContext } from "./host.ts";
import { describeError, ThreadsError } from "./protocol/errors.ts";
import { LIMITS } from "./protocol/limits.ts";
import { NAME_SEPARATOR, serverPrefix } from "./protocol/names.ts";
import { LOG_FILE } from "./protocol/paths.ts";
import type { SnapshotServer } from "./protocol/snapshot.ts";
import type { CallResult, ServerStatus, WorkerEvent } from "./protocol/types.ts";
import type { Crash } from "./runtime/respawn.ts";
import { type Runtime, startRuntime } from "./runtime/runtime.ts";
import { declaredTools } from "./tools/branch-tools.ts";
import type { ToolCall } from "./tools/mcp-tool.ts";
import { createRegistrar } from "./tools/registrar.ts";
import { createToolSearch, toolSearchDescription } from "./tools/tool-search.ts";
import { createHealthNotices } from "./ui/health-notices.ts";
import type { McpCommandHost } from "./ui/mcp-command.ts";
import { notify } from "./ui/notices.ts";
import { createStatusLine } from "./ui/status-line.ts";
import { problemLine } from "./ui/status-text.ts";

export interface Session extends McpCommandHost {
  /** For the factory: everything that is known before Pi has bound. */
  register(): void;
  start(ctx: PiContext): void;
  /** Bounded wait for the server names, where no snapshot told them; then the branch's tools are there. */
  beforeAgentStart(ctx: PiContext): Promise<void>;
  /** The user moved to another branch, whose declared tools may be others. */
  branchChanged(): void;
  turnEnded(): void;
  stop(): Promise<void>;
}

/** What lives from session_start to session_shutdown. */
interface Running {
  generation: number;
  runtime: Runtime;
  statuses: Map<string, ServerStatus>;
  planned: PromiseWithResolvers<void>;
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
  const progress = new Map<string, ToolCall["onProgress"]>();
  let running: Running | undefined;
  let described: string | undefined;
  let registeredIn = 0;
  let restoreDue = true;

  const now = (): Running => {
    if (running) return running;
    throw new ThreadsError("runtime_stopped", "The MCP servers of this session are stopped.", {
      remedy: "/reload starts them again.",
    });
  };

  const call = async ({ signal, onProgress, ...request }: ToolCall): Promise<CallResult> => {
    const { runtime, generation } = now();
    const { callId } = request;
    progress.set(callId, onProgress);
    try {
      return await runtime.callTool({ generation, ...request }, signal);
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

  const describe = (servers: readonly { name: string; description?: string }[]): void => {
    const description = toolSearchDescription(servers);
    if (description === described) return;
    described = description;
    pi.registerTool(
      createToolSearch(description, {
        settle,
        catalog: store.current,
        servers: () => [...(running?.statuses.values() ?? [])],
        activate: registrar.activate,
        log: (message) => running?.runtime.log("info", message),
      }),
    );
  };

  /** Without a snapshot ToolSearch cannot name the servers yet: the plan is waited for, but not for long. */
  const describeServers = async ({ planned, statuses }: Running): Promise<void> => {
    if (store.checksum() !== undefined) return;
    const late = Promise.withResolvers<void>();
    const timer = setTimeout(late.resolve, LIMITS.firstPlanWaitMs);
    await Promise.race([planned.promise, late.promise]);
    clearTimeout(timer);
    if (described !== toolSearchDescription([])) return;
    describe(
      [...statuses.values()].filter(({ state }) => state !== "disabled").map(({ name }) => ({ name })),
    );
  };

  const serverOf = (toolName: string): SnapshotServer | undefined => {
    const known = [...store.current().servers];
    for (const { name } of running?.statuses.values() ?? []) known.push({ name, project: false });
    return known.find(({ name }) => toolName.startsWith(`${serverPrefix(name)}${NAME_SEPARATOR}`));
  };

  /** Everything that a worker's events do to this session; bound to one generation. */
  const createEventHandler = (ctx: PiContext, mine: () => Running | undefined) => {
    const statusLine = createStatusLine(ctx);
    const health = createHealthNotices();
    return (event: WorkerEvent): void => {
      const session = mine();
      if (!session) return;
      switch (event.type) {
        case "progress":
          progress.get(event.callId)?.(event.message, event);
          break;
        case "catalog":
          store.replace(event.snapshot);
          registrar.follow(store.current);
          break;
        case "planned":
          session.statuses = new Map(event.servers.map((status) => [status.name, status]));
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
      describe(store.current().servers);
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
      running = { generation, runtime, statuses: new Map(), planned: Promise.withResolvers() };
      const { tools, servers } = store.current();
      runtime.log(
        "info",
        `registered ${tools.length} tools of ${servers.length} servers from the snapshot in ${registeredIn.toFixed(1)} ms`,
      );
    },
    beforeAgentStart: async (ctx) => {
      if (!running) return;
      await describeServers(running);
      if (!restoreDue) return;
      restoreDue = false;
      registrar.restore(declaredTools(ctx.sessionManager.getBranch()), store.current(), serverOf);
    },
    branchChanged: () => {
      restoreDue = true;
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
