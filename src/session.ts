/**
 * One Pi session on the main thread: starts and stops the runtime and joins the catalog, the tools and
 * what the user sees to it. Events of an older generation are dropped.
 */
import { statSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { snapshotIsOlder } from "./catalog/snapshot-file.ts";
import { createCatalogStore } from "./catalog/store.ts";
import type { FinishedMessage, McpRegistration, Pi, PiContext } from "./host.ts";
import { leavePlace, takePlace } from "./only-session.ts";
import { describeError, messageOf, ThreadsError } from "./protocol/errors.ts";
import { LIMITS } from "./protocol/limits.ts";
import { NAME_SEPARATOR, serverPrefix } from "./protocol/names.ts";
import { LOG_FILE } from "./protocol/paths.ts";
import type { SnapshotServer } from "./protocol/snapshot.ts";
import { fileStamp } from "./protocol/stamp.ts";
import type { CallResult, SessionFacts } from "./protocol/types.ts";
import type { Crash } from "./runtime/respawn.ts";
import { type Runtime, startRuntime } from "./runtime/runtime.ts";
import { createEventHandler, type SessionState } from "./session-events.ts";
import { declaredTools } from "./tools/branch-tools.ts";
import { directRule } from "./tools/direct.ts";
import type { ToolCall } from "./tools/mcp-tool.ts";
import { createRegistrar } from "./tools/registrar.ts";
import { createSearchTools } from "./tools/search-tools.ts";
import { explainUnknownCall } from "./tools/unknown-call.ts";
import { createDialogs, type Dialogs } from "./ui/consent.ts";
import type { McpCommandHost } from "./ui/mcp-command.ts";
import { notify } from "./ui/notices.ts";

export const CONFIG_FLAG = "mcp-config";

export interface Session extends McpCommandHost {
  /** For the factory: everything that is known before Pi has bound. */
  register(): void;
  start(ctx: PiContext): void;
  /** Bounded waits for what the first request must hold; then the branch's tools are there. */
  beforeAgentStart(ctx: PiContext): Promise<void>;
  /** The user moved to another branch, whose declared tools may be others. */
  branchChanged(): void;
  registeredServersChanged(servers: readonly McpRegistration[]): void;
  turnEnded(): void;
  /** Puts a call of a tool that is not declared in better words than Pi's. */
  messageEnded<M extends FinishedMessage>(message: M): { message: M } | undefined;
  stop(): Promise<void>;
}

/** What lives from session_start to session_shutdown. */
interface Running extends SessionState {
  generation: number;
  runtime: Runtime;
  dialogs: Dialogs;
}

let generations = 0;

const CRASHED = "The MCP connection worker ended unexpectedly";

const crashText = ({ reason, givenUp }: Crash): string =>
  givenUp
    ? `${CRASHED} too often (${reason}) and is not started again. /reload tries once more.`
    : `${CRASHED} (${reason}) and is started again. Calls that were open have failed.`;

/** Only what can be cloned into the worker. */
const toRegistered = (servers: readonly McpRegistration[]): SessionFacts["registered"] =>
  servers.map(({ name, config, extensionPath }) => ({ name, config, extensionPath }));

export function createSession(pi: Pi, options: { agentDir: string; cwd: string }): Session {
  const { agentDir } = options;
  const startedAt = performance.now();
  const store = createCatalogStore(agentDir, options.cwd);
  const direct = directRule(process.env.MCP_DIRECT_TOOLS);
  const progress = new Map<string, ToolCall["onProgress"]>();
  let running: Running | undefined;
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
  const registrar = createRegistrar(pi, { call, direct });

  const settle = async (signal: AbortSignal | undefined): Promise<string[]> => {
    const { pending, checksum } = await now().runtime.settleTools({ timeoutMs: LIMITS.searchWaitMs }, signal);
    await store.reached(checksum);
    return pending;
  };

  const host = {
    settle,
    catalog: store.current,
    servers: () => [...(running?.statuses.values() ?? [])],
    activate: registrar.activate,
    call,
    connect: async (server: string) => {
      await now().runtime.ask("reconnect", { server });
    },
    log: (message: string) => running?.runtime.log("info", message),
  };
  const searchTools = createSearchTools(pi, host);
  const unknownCallHost = { ...host, withdrawn: registrar.withdrawn, searchTool: searchTools.name };

  /** Without a snapshot ToolSearch cannot name the servers yet: the plan is waited for, but not for long. */
  const describeServers = async ({ planned }: Running): Promise<void> => {
    if (searchTools.complete()) return;
    await Promise.race([planned.promise, elapsed(LIMITS.firstPlanWaitMs)]);
    if (!running) return;
    if (store.checksum() !== undefined) {
      searchTools.declare(store.current());
      return;
    }
    const { settings, statuses } = running;
    if (settings) searchTools.declarePlan([...statuses.values()], settings);
  };

  /** Direct tools belong into the first request: servers that have some and never told them are waited for. */
  const awaitDirectTools = async (session: Running): Promise<void> => {
    // Without a snapshot, or after an edit since, only the plan tells whether there are any; and whether a
    // project's server may still run.
    const unsure = store.checksum() === undefined || store.current().servers.some(({ project }) => project);
    if (unsure || snapshotIsOlder(agentDir, options.cwd, configFiles())) {
      await Promise.race([session.planned.promise, elapsed(LIMITS.directWaitMs)]);
    }
    const servers = [...session.statuses.values()]
      .filter(({ name, toolsKnown, state, direct: configured }) => {
        // Planned servers are idle for the moment in which the worker looks into its cache.
        const mayAnswer = state === "connecting" || state === "idle";
        return !toolsKnown && mayAnswer && direct.concerns(name, configured);
      })
      .map(({ name }) => name);
    if (servers.length === 0) return;
    const { checksum } = await session.runtime.settleTools(
      { timeoutMs: LIMITS.directWaitMs, servers },
      undefined,
    );
    await store.reached(checksum);
    registrar.follow(store.current, true);
  };

  /** The user's and the project's own files; what else may change is found out by the worker alone. */
  const configFiles = (): string[] => [
    join(agentDir, "mcp.json"),
    join(homedir(), ".config", "mcp", "mcp.json"),
    join(options.cwd, ".mcp.json"),
    join(options.cwd, ".pi", "mcp.json"),
  ];

  const serverOf = (toolName: string): SnapshotServer | undefined => {
    const known = [...store.current().servers];
    for (const { name } of running?.statuses.values() ?? []) {
      known.push({ name, project: false, toolsKnown: false });
    }
    return known.find(({ name }) => toolName.startsWith(`${serverPrefix(name)}${NAME_SEPARATOR}`));
  };

  /** The factory knew neither the session's folder nor whether its project is trusted. */
  const takeBackWhatIsNotOurs = (ctx: PiContext, projectTrusted: boolean): void => {
    const elsewhere = ctx.cwd !== options.cwd;
    if (!elsewhere && (projectTrusted || !store.current().servers.some(({ project }) => project))) return;
    registrar.withdrawAll(({ server }) => server.project);
    if (elsewhere && projectTrusted) store.open(ctx.cwd);
    else store.clear();
  };

  const stop = async (): Promise<void> => {
    const stopped = running;
    running = undefined;
    leavePlace(stop);
    await stopped?.runtime.stop();
  };

  /**
   * Whatever touches Pi outside of its own calls. Pi makes its objects stale when it replaces a session,
   * and a throw in a listener would end Pi: it means that this session is over.
   */
  const alive = (mine: () => Running | undefined, task: () => void): void => {
    try {
      task();
    } catch (error) {
      mine()?.runtime.log("warn", `the session is over: ${messageOf(error)}`);
      if (mine()) void stop();
    }
  };

  const start = (ctx: PiContext): Running => {
    const generation = ++generations;
    const mine = (): Running | undefined => (running?.generation === generation ? running : undefined);
    const projectTrusted = ctx.isProjectTrusted();
    takeBackWhatIsNotOurs(ctx, projectTrusted);
    const configPath = pi.getFlag(CONFIG_FLAG);
    // Before the model can have written it; the same for every worker of this session.
    const projectFile = stampOf(join(ctx.cwd, ".pi", "mcp.json"));
    const facts = (): SessionFacts => ({
      generation,
      cwd: ctx.cwd,
      agentDir,
      projectTrusted,
      configPath: typeof configPath === "string" && configPath !== "" ? configPath : undefined,
      registered: toRegistered(pi.getMcpServers()),
      canAsk: ctx.hasUI,
      projectFile,
      snapshotChecksum: store.checksum(),
    });
    const dialogs = createDialogs(ctx, {
      consent: (hash, allow) => now().runtime.ask("answerConsent", { hash, allow }),
      held: (apply) => now().runtime.ask("applyHeld", { apply }),
      over: () => mine() === undefined,
      failed: (error) => {
        alive(mine, () => {
          if (mine()) notify(ctx, `MCP: ${messageOf(error)}`, "error");
        });
      },
    });
    const handle = createEventHandler({
      ctx,
      state: mine,
      store,
      registrar,
      dialogs,
      onProgress: (event) => progress.get(event.callId)?.(event.message, event),
    });
    const runtime = startRuntime({
      logFile: join(agentDir, LOG_FILE),
      facts,
      onEvent: (event) => alive(mine, () => handle(event)),
      onCrash: (crash) => {
        alive(mine, () => {
          if (mine()) notify(ctx, crashText(crash), crash.givenUp ? "error" : "warning");
        });
      },
      onStartFailed: (error) => {
        const session = mine();
        session?.planned.resolve();
        // A crash tells itself.
        if (!session || (error instanceof ThreadsError && error.code === "runtime_restarted")) return;
        alive(mine, () => notify(ctx, `MCP servers could not be started: ${describeError(error)}`, "error"));
      },
    });
    const planned = Promise.withResolvers<void>();
    return { generation, runtime, dialogs, statuses: new Map(), planned, settings: undefined };
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
      takePlace(stop);
      running = start(ctx);
      const { tools, servers } = store.current();
      const count = `${tools.length} tools of ${servers.length} servers`;
      running.runtime.log("info", `registered ${count} from the snapshot in ${registeredIn.toFixed(1)} ms`);
    },
    beforeAgentStart: async (ctx) => {
      if (!running) return;
      await describeServers(running);
      await awaitDirectTools(running);
      if (!restoreDue) return;
      restoreDue = false;
      const declared = declaredTools(ctx.sessionManager.getBranch());
      if (registrar.restore(declared, store.current(), serverOf) === 0) return;
      // Whose the others are, only the plan tells; Pi would drop them for good.
      await Promise.race([running.planned.promise, elapsed(LIMITS.directWaitMs)]);
      registrar.restore(declared, store.current(), serverOf);
    },
    branchChanged: () => {
      restoreDue = true;
    },
    registeredServersChanged: (servers) => {
      running?.runtime.tell("setRegistered", { servers: toRegistered(servers) });
    },
    messageEnded: (message) => {
      const explained = running && explainUnknownCall(message, unknownCallHost);
      return explained && { message: explained };
    },
    turnEnded: () => running?.runtime.tell("turnEnded", {}),
    stop,
    ask: (method, params) => now().runtime.ask(method, params),
    askConsents: async () => {
      const { runtime, dialogs } = now();
      dialogs.forget();
      await runtime.ask("askAgain", {});
    },
    catalog: store.current,
    servers: () => [...(running?.statuses.values() ?? [])],
  };
}

/** A file that cannot be looked at has a stamp that no file has. */
function stampOf(path: string): string {
  try {
    return fileStamp(statSync(path, { throwIfNoEntry: false }));
  } catch {
    return "unreadable";
  }
}

function elapsed(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms).unref();
  });
}
