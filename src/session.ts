/**
 * One Pi session on the main thread: starts and stops the runtime and joins the catalog, the tools and
 * what the user sees to it. Events of an older generation are dropped.
 */
import { statSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { snapshotIsOlder } from "./catalog/snapshot-file.ts";
import { createCatalogStore } from "./catalog/store.ts";
import { CONFIG_FLAG, configFileOf } from "./config-flag.ts";
import type { FinishedMessage, McpRegistration, Pi, PiContext } from "./host.ts";
import { leavePlace, takePlace } from "./only-session.ts";
import { describeError, messageOf, ThreadsError } from "./protocol/errors.ts";
import { LIMITS } from "./protocol/limits.ts";
import type { SnapshotPlace } from "./protocol/paths.ts";
import { LOG_FILE } from "./protocol/paths.ts";
import type { SnapshotServer } from "./protocol/snapshot.ts";
import { fileStamp } from "./protocol/stamp.ts";
import type { CallResult, ServerStatus, SessionFacts } from "./protocol/types.ts";
import type { Crash } from "./runtime/respawn.ts";
import { type Runtime, startRuntime } from "./runtime/runtime.ts";
import { createEventHandler, type SessionState } from "./session-events.ts";
import { type DeclaredTool, declaredTools, ownerOf } from "./tools/branch-tools.ts";
import { directRule } from "./tools/direct.ts";
import { createLateTools } from "./tools/late-tools.ts";
import type { ToolCall } from "./tools/mcp-tool.ts";
import { explainRefusedArguments } from "./tools/refused-arguments.ts";
import { createRegistrar } from "./tools/registrar.ts";
import { createSearchTools } from "./tools/search-tools.ts";
import { PROXY_TOOL, TOOL_SEARCH } from "./tools/tool-search-report.ts";
import { explainUnknownCall } from "./tools/unknown-call.ts";
import { createDialogs, type Dialogs } from "./ui/consent.ts";
import type { McpCommandHost } from "./ui/mcp-command.ts";
import { notify } from "./ui/notices.ts";

export interface Session extends McpCommandHost {
  /** For the factory: everything that is known before Pi has bound. */
  register(): void;
  start(ctx: PiContext): void;
  /** Bounded waits for what the first request must hold; then the branch's tools are there. */
  beforeAgentStart(ctx: PiContext): Promise<void>;
  /** The user moved to another branch, whose declared tools may be others. */
  branchChanged(): void;
  registeredServersChanged(servers: readonly McpRegistration[]): void;
  /** A tool is about to run: what it may reach of ours is there then. */
  toolCalled(toolName: string, input: Record<string, unknown>): Promise<void>;
  turnEnded(): void;
  /** Puts a call of a tool that is not declared in better words than Pi's. */
  messageEnded<M extends FinishedMessage>(message: M): Promise<{ message: M } | undefined> | undefined;
  stop(): Promise<void>;
}

/** What lives from session_start to session_shutdown. */
interface Running extends SessionState {
  generation: number;
  runtime: Runtime;
  dialogs: Dialogs;
  /** A line for the user. */
  tell: (text: string) => void;
}

let generations = 0;

const CRASHED = "The MCP connection worker ended unexpectedly";

const crashText = ({ reason, givenUp }: Crash): string =>
  givenUp
    ? `${CRASHED} too often (${reason}) and is not started again. /reload tries once more.`
    : `${CRASHED} (${reason}) and is started again. Calls that were open have failed.`;

/** Its tools are not known and will be soon: also of one that the plan names and that is about to connect. */
const isLearning = ({ toolsKnown, state }: ServerStatus): boolean =>
  !toolsKnown && (state === "connecting" || state === "idle");

/** Only what can be cloned into the worker. */
const toRegistered = (servers: readonly McpRegistration[]): SessionFacts["registered"] =>
  servers.map(({ name, config, extensionPath }) => ({ name, config, extensionPath }));

export interface SessionOptions extends SnapshotPlace {
  agentDir: string;
}

/** `options`: as far as the factory can know them. */
export function createSession(pi: Pi, options: SessionOptions): Session {
  const { agentDir } = options;
  let place: SnapshotPlace = options;
  const startedAt = performance.now();
  const store = createCatalogStore(agentDir, place);
  const direct = directRule(process.env.MCP_DIRECT_TOOLS);
  const progress = new Map<string, ToolCall["onProgress"]>();
  /** Open calls of a tool of ours that calls others for the model. */
  const modelCalls = new Set<string>();
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
    const wantsStructured = request.wantsStructured && !modelCalls.has(callId.replace(/\/\d+$/, ""));
    progress.set(callId, onProgress);
    try {
      return await runtime.callTool({ generation, ...request, wantsStructured }, signal);
    } finally {
      progress.delete(callId);
    }
  };
  const registrar = createRegistrar(pi, {
    call,
    direct,
    onTaken: ({ server, tool, name: wanted }, name) => {
      const text = `MCP tool ${tool} of ${server.name} is called ${name}: another extension has a tool ${wanted}.`;
      running?.runtime.log("warn", text);
      running?.tell(text);
    },
  });

  const settle = async (signal: AbortSignal | undefined, servers?: string[]): Promise<string[]> => {
    const params = { timeoutMs: LIMITS.searchWaitMs, ...(servers ? { servers } : {}) };
    const { pending, checksum } = await now().runtime.settleTools(params, signal);
    await store.reached(checksum);
    return pending;
  };

  const host = {
    settle,
    catalog: store.current,
    servers: () => [...(running?.statuses.values() ?? [])],
    activate: registrar.activate,
    provide: registrar.provide,
    forModel: async <T>(callId: string, task: () => Promise<T>): Promise<T> => {
      modelCalls.add(callId);
      try {
        return await task();
      } finally {
        modelCalls.delete(callId);
      }
    },
    connect: async (server: string) => {
      await now().runtime.ask("reconnect", { server });
    },
    log: (message: string) => running?.runtime.log("info", message),
    /** Without a worker there is less to say, and the call has failed already. */
    whyMissing: async (name: string) =>
      Promise.race([
        running?.runtime.ask("explainMissing", { name }).catch(() => undefined),
        elapsed(LIMITS.rpcShortMs).then(() => undefined),
      ]),
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
    const endsAt = performance.now() + LIMITS.directWaitMs;
    if (session.settings === undefined && !snapshotIsSure()) {
      await Promise.race([session.planned.promise, elapsed(LIMITS.directWaitMs)]);
    }
    const servers = [...session.statuses.values()]
      .filter((server) => isLearning(server) && direct.concerns(server.name, server.direct))
      .map(({ name }) => name);
    if (servers.length === 0) return;
    const { checksum } = await session.runtime.settleTools(
      { timeoutMs: Math.max(0, endsAt - performance.now()), servers },
      undefined,
    );
    await store.reached(checksum);
    registrar.follow(store.current, true);
  };

  const lateTools = createLateTools(pi, {
    registrar,
    catalog: store.current,
    ownTools: [TOOL_SEARCH, PROXY_TOOL],
    // Until the plan is made nothing is known of any server.
    isLearning: () => {
      const servers = [...(running?.statuses.values() ?? [])];
      return servers.length === 0 || servers.some(isLearning);
    },
    settle: () => settle(undefined),
    isOver: () => running === undefined,
  });

  /** The user's and the project's own files, and whatever else the snapshot was made of. */
  const configFiles = (): string[] => [
    join(agentDir, "mcp.json"),
    join(homedir(), ".config", "mcp", "mcp.json"),
    join(place.cwd, ".mcp.json"),
    join(place.cwd, ".pi", "mcp.json"),
    ...store.current().settings.files,
  ];

  /** Whether the plan can hold no server that the snapshot does not, and none less. */
  const snapshotIsSure = (): boolean => {
    if (store.checksum() === undefined) return false;
    const { servers } = store.current();
    // Whether a project's server may still run, and how other extensions define theirs, only the plan tells.
    if (servers.some(({ project }) => project)) return false;
    const known = new Set(servers.map(({ name }) => name));
    if (pi.getMcpServers().some(({ name }) => !known.has(name))) return false;
    return !snapshotIsOlder(agentDir, place, configFiles());
  };

  const serverOf = ({ name: toolName, owner }: DeclaredTool): SnapshotServer | undefined => {
    const known = [...store.current().servers];
    for (const { name } of running?.statuses.values() ?? []) {
      known.push({ name, project: false, toolsKnown: false });
    }
    return owner ? known.find(({ name }) => name === owner.server) : ownerOf(toolName, known);
  };

  /** The factory knew neither the session's folder nor whether its project is trusted. */
  const takeBackWhatIsNotOurs = (actual: SnapshotPlace, projectTrusted: boolean): void => {
    const elsewhere = actual.cwd !== place.cwd || actual.configFile !== place.configFile;
    if (!elsewhere && (projectTrusted || !store.current().servers.some(({ project }) => project))) return;
    place = actual;
    registrar.withdrawAll(({ server }) => server.project);
    if (elsewhere && projectTrusted) store.open(place);
    else store.clear();
    searchTools.declare(store.current());
  };

  /** Tools of servers that the plan does not have, or has disabled, are not for the model. */
  const withdrawAbsent = ({ statuses, settings }: SessionState): void => {
    if (settings === undefined) return;
    const isThere = (name: string): boolean => {
      const state = statuses.get(name)?.state;
      return state !== undefined && state !== "disabled";
    };
    registrar.withdrawActive(({ server }) => !isThere(server.name));
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
    const configPath = configFileOf(pi.getFlag(CONFIG_FLAG), ctx.cwd);
    takeBackWhatIsNotOurs({ cwd: ctx.cwd, configFile: configPath }, projectTrusted);
    // Before the model can have written it; the same for every worker of this session.
    const projectFile = stampOf(join(ctx.cwd, ".pi", "mcp.json"));
    const accepted = (): Pick<SessionFacts, "accepted"> => {
      const hashes = mine()?.accepted;
      return hashes ? { accepted: hashes } : {};
    };
    const facts = (): SessionFacts => ({
      generation,
      cwd: ctx.cwd,
      agentDir,
      projectTrusted,
      configPath,
      registered: toRegistered(pi.getMcpServers()),
      canAsk: ctx.hasUI,
      projectFile,
      ...accepted(),
      snapshotChecksum: store.checksum(),
    });
    const dialogs = createDialogs(ctx, {
      consent: async (hash, allow) => {
        const tell = () => now().runtime.ask("answerConsent", { hash, allow });
        // Bound to what was asked for, so that it does no harm to say it again; the user is not asked again.
        await tell().catch((error: unknown) => {
          if (error instanceof ThreadsError && error.code === "runtime_restarted") return tell();
          throw error;
        });
      },
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
      onPlanned: withdrawAbsent,
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
    const tell = (text: string): void => notify(ctx, text, "warning");
    return {
      generation,
      runtime,
      dialogs,
      tell,
      statuses: new Map(),
      planned,
      settings: undefined,
      accepted: undefined,
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
      registrar.registerDirect(store.current());
      const declared = declaredTools(ctx.sessionManager.getBranch());
      if (registrar.restore(declared, store.current(), serverOf) > 0) {
        // Whose the others are, only the plan tells; Pi would drop them for good.
        await Promise.race([running.planned.promise, elapsed(LIMITS.directWaitMs)]);
        registrar.restore(declared, store.current(), serverOf);
      }
      if (running) withdrawAbsent(running);
    },
    branchChanged: () => {
      restoreDue = true;
    },
    registeredServersChanged: (servers) => {
      running?.runtime.tell("setRegistered", { servers: toRegistered(servers) });
    },
    toolCalled: async (toolName, input) => {
      if (running) await lateTools.beforeCall(toolName, input);
    },
    messageEnded: (message) => {
      if (!running) return undefined;
      const refused = explainRefusedArguments(message, store.current);
      if (refused) return Promise.resolve({ message: refused });
      const explaining = explainUnknownCall(message, unknownCallHost);
      return explaining?.then((explained) => explained && { message: explained });
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
