/**
 * One Pi session on the main thread: starts and stops the runtime and joins the catalog, the tools and
 * what the user sees to it. Events of an older generation are dropped.
 */
import { join } from "node:path";
import { createCatalogStore } from "../catalog/catalog.ts";
import type { FinishedMessage, McpRegistration, Pi, PiContext } from "../pi/api.ts";
import { notify } from "../pi/notices.ts";
import { leavePlace, takePlace } from "../pi/one-session.ts";
import type { Crash, Runtime } from "../runtime/runtime.ts";
import { startRuntimeLater } from "../runtime/runtime.ts";
import { PROXY_TOOL, TOOL_SEARCH } from "../shared/naming/own-tools.ts";
import type { ConnectionMethods } from "../shared/protocol/api.ts";
import { describeError, messageOf, ThreadsError } from "../shared/protocol/errors.ts";
import { LIMITS } from "../shared/protocol/limits.ts";
import type { SessionFacts } from "../shared/protocol/session.ts";
import { LOG_FILE, type SnapshotPlace } from "../shared/snapshot/file-name.ts";
import { oneLine } from "../shared/text/unprintable.ts";
import { createLateTools, createRegistrar, directRule } from "../tools/registry/registry.ts";
import { createSearchTools } from "../tools/tools.ts";
import { explainRefusedArguments, explainUnknownCall } from "../tools/unknown-call/unknown-call.ts";
import type { McpCommandHost } from "../ui/command/command.ts";
import { createDialogs, type Dialogs } from "../ui/dialogs.ts";
import { createSessionCalls } from "./calls.ts";
import { createEventHandler, type SessionState } from "./events.ts";
import { startFacts, toRegistered } from "./facts.ts";
import { createFirstRequest, elapsed, isLearning, type SessionWaits } from "./first-request.ts";

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

export interface SessionOptions extends SnapshotPlace {
  agentDir: string;
  /** Shorter ones for a test. */
  waits?: SessionWaits;
}

/** `options`: as far as the factory can know them. */
export function createSession(pi: Pi, options: SessionOptions): Session {
  const { agentDir, waits = LIMITS } = options;
  let place: SnapshotPlace = options;
  const startedAt = performance.now();
  const store = createCatalogStore(agentDir, place);
  const direct = directRule(process.env.MCP_DIRECT_TOOLS);
  let running: Running | undefined;
  let registeredIn = 0;

  const now = (): Running => {
    if (running) return running;
    throw new ThreadsError("runtime_stopped", "The MCP servers of this session are stopped.", {
      remedy: "/reload starts them again.",
    });
  };

  const { call, forModel, onProgress } = createSessionCalls(now);
  const registrar = createRegistrar(pi, {
    call,
    direct,
    onTaken: ({ server, tool, name: wanted }, name) => {
      const text = `MCP tool ${oneLine(tool, 200)} of ${server.name} is called ${name}: another extension has a tool ${wanted}.`;
      running?.runtime.log("warn", text);
      running?.tell(text);
    },
  });

  const settle = async (signal: AbortSignal | undefined, servers?: string[]): Promise<string[]> => {
    const params = { timeoutMs: waits.searchWaitMs, ...(servers ? { servers } : {}) };
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
    forModel,
    connect: async (server: string) => {
      await now().runtime.ask("reconnect", { server });
    },
    matchTools: (params: ConnectionMethods["matchTools"]["params"]) =>
      now().runtime.ask("matchTools", params),
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

  const lateTools = createLateTools(pi, {
    registrar,
    catalog: store.current,
    ownTools: [TOOL_SEARCH, PROXY_TOOL],
    // Until the plan is made nothing is known of any server.
    isLearning: () => {
      const servers = [...(running?.statuses.values() ?? [])];
      return servers.length === 0 || servers.some((server) => isLearning(server, store.current));
    },
    settle: () => settle(undefined),
    isOver: () => running === undefined,
  });

  const firstRequest = createFirstRequest(pi, {
    agentDir,
    place: () => place,
    store,
    registrar,
    searchTools,
    direct,
    running: () => running,
    waits,
  });

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
    const known = startFacts(pi, ctx, { generation, agentDir });
    takeBackWhatIsNotOurs({ cwd: known.cwd, configFile: known.configPath }, known.projectTrusted);
    const facts = (): SessionFacts => {
      const accepted = mine()?.accepted;
      return {
        ...known,
        registered: toRegistered(pi.getMcpServers()),
        ...(accepted ? { accepted } : {}),
        snapshotChecksum: store.checksum(),
      };
    };
    const dialogs = createDialogs(ctx, {
      consent: async (hash, allow) => {
        const tell = () => now().runtime.ask("answerConsent", { hash, allow });
        // Bound to what was asked for, so that it does no harm to say it again; the user is not asked again.
        await tell().catch((error: unknown) => {
          if (error instanceof ThreadsError && error.code === "runtime_restarted") return tell();
          throw error;
        });
      },
      held: (id, apply) => now().runtime.ask("applyHeld", { id, apply }),
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
      onPlanned: firstRequest.withdrawAbsent,
      onProgress,
    });
    const runtime = startRuntimeLater({
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
      const { count: tools, servers } = store.current();
      const count = `${tools} tools of ${servers.length} servers`;
      running.runtime.log("info", `registered ${count} from the snapshot in ${registeredIn.toFixed(1)} ms`);
    },
    beforeAgentStart: firstRequest.prepare,
    branchChanged: firstRequest.branchChanged,
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
