/**
 * One Pi session on the main thread. Owns: which session runs, its start and its end, and who is joined to whom
 * (catalog, tools, runtime, dialogs, notices). Must not: decide anything about a server, a tool or a file.
 * To react to another event of the worker: a case in events.ts. To tell every worker another fact: start.ts.
 * To let the next request wait for something else: first-request.ts.
 */
import { join } from "node:path";
import type {
  AddedMessage,
  BlockedCall,
  FinishedMessage,
  InputEvent,
  InputResult,
  McpRegistration,
  Pi,
  PiContext,
} from "../pi/api.ts";
import { becomeOnlySession, isForProgram, leaveOnlySession, otherClients } from "../pi/extension.ts";
import { STOPPED } from "../runtime/contract.ts";
import { prepareRuntime, startRuntimeLater } from "../runtime/later.ts";
import { messageOf, ThreadsError } from "../shared/protocol/errors.ts";
import { LIMITS } from "../shared/protocol/limits.ts";
import { LOG_FILE, type SnapshotKey } from "../shared/snapshot/contract.ts";
import type { ToolAboutToRun } from "../skills/standing.ts";
import { createMcpTool, loadArguments } from "../tools/definition.ts";
import type { McpHost } from "../ui/mcp-host.ts";
import { createParts } from "./parts.ts";
import { type Running, type SessionWaits, serversOf, type WhileRunning } from "./running.ts";
import { keepOff, type StartOptions, startFacts, startRunning, toRegistered } from "./start.ts";

export interface Session extends McpHost {
  /** For the factory: registers everything that is known before Pi has bound. */
  register(): void;
  /** `isFork`: Pi has made the session from the one that ran before in this process. */
  start(ctx: PiContext, isFork?: boolean): void;
  /**
   * Waits, within limits, for what the first request must hold; then the branch's tools are registered. Answers what the
   * model reads beside the prompt.
   */
  beforeAgentStart(ctx: PiContext): Promise<{ message: AddedMessage } | undefined>;
  /** The user moved to another branch, which may have declared other tools. */
  branchChanged(): void;
  registeredServersChanged(servers: readonly McpRegistration[]): void;
  /**
   * A tool is about to run. Settles when our tools that the call may reach are registered, and the person has answered if the
   * call needs a yes because of a skill.
   */
  toolCalled(call: ToolAboutToRun, ctx: PiContext): Promise<BlockedCall | undefined>;
  /** What the input becomes that names a prompt or resources; undefined for any other. */
  onInput(event: InputEvent, ctx: PiContext): Promise<InputResult> | undefined;
  turnEnded(ctx: PiContext): Promise<void>;
  /** The branch was compacted: the prompt cache is lost in any case. */
  compacted(ctx: PiContext): Promise<void>;
  /** Says more clearly than Pi why Pi refused a call: the tool is not declared, or its arguments do not fit. */
  messageEnded<M extends FinishedMessage>(message: M): Promise<{ message: M } | undefined> | undefined;
  stop(): Promise<void>;
}

/** The folder and the file are what the factory can know of them. */
export interface SessionOptions extends SnapshotKey {
  agentDir: string;
  /** Where this extension lies. */
  location?: string;
  /** Starts the worker, unless a test brings a runtime of its own. */
  startRuntime?: StartOptions["startRuntime"];
  /** Shorter waits, for tests. */
  waits?: SessionWaits;
}

const WAITS: SessionWaits = {
  searchWaitMs: LIMITS.searchWaitMs,
  directWaitMs: LIMITS.directWaitMs,
  firstPlanWaitMs: LIMITS.firstPlanWaitMs,
};

export function createSession(pi: Pi, options: SessionOptions): Session {
  const { agentDir, startRuntime = startRuntimeLater, waits = WAITS } = options;
  const startedAt = performance.now();
  let registeredInMs = 0;
  let current: Running | undefined;
  const warn =
    (what: string) =>
    (error: unknown): void =>
      current?.runtime.log("warn", `${what}: ${messageOf(error)}`);
  const running: WhileRunning = () => current;
  const runningOrThrow = (): Running => {
    if (current) return current;
    throw new ThreadsError("runtime_stopped", STOPPED, {
      remedy: "/reload starts them again.",
    });
  };

  const listeners = new Set<Parameters<McpHost["onChange"]>[0]>();
  const onChange: McpHost["onChange"] = (listener) => {
    listeners.add(listener);
    return () => void listeners.delete(listener);
  };
  let tellsOthers = false;
  const parts = createParts(pi, { agentDir, key: options, waits, running, runningOrThrow, onChange });
  const {
    store,
    registrar,
    calls,
    searchTools,
    snapshotKey,
    firstRequest,
    lateTools,
    instructions,
    prompts,
    resources,
    skills,
  } = parts;

  const stop = async (): Promise<void> => {
    const stopped = current;
    current = undefined;
    leaveOnlySession(stop);
    stopped?.signIns.interrupt();
    for (const listener of listeners) listener(undefined);
    await stopped?.runtime.stop();
  };

  const start = (ctx: PiContext, isFork: boolean): Running => {
    const known = startFacts(pi, ctx, agentDir, isFork);
    let mine: Running | undefined;
    let completes = false;
    const key = { ...known, configFile: known.configPath, only: known.onlyServers };
    snapshotKey.correct(key, known.projectTrusted);
    mine = startRunning(pi, ctx, {
      known,
      key,
      store,
      registrar,
      onPlanned: () => {
        // Not at the start of the session, which Pi's first paint waits for.
        if (ctx.mode === "tui" && !completes) resources.complete(ctx).catch(warn("mentions"));
        completes = true;
      },
      onPrompts: () => prompts.register(ctx),
      onProgress: calls.onProgress,
      onHandled: (event) => {
        for (const listener of listeners) listener(event);
      },
      startRuntime,
      ifCurrent: () => (current === mine ? current : undefined),
      runningOrThrow,
      stop,
    });
    return mine;
  };

  const branchChanged = (): void => {
    firstRequest.branchChanged();
    instructions.branchChanged();
    skills.branchChanged();
  };

  const letGo = async ({ sessionManager }: PiContext, most: number): Promise<void> => {
    if (current) await registrar.letGo(() => sessionManager.getBranch(), most);
  };

  /** `clean`: what a script printed, cleaned. */
  const improved = async <M extends FinishedMessage>(
    message: M,
    clean: Promise<M | undefined> | undefined,
  ) => {
    const cleaned = await clean;
    const { explainFailed } = await import("../tools/unknown-call.ts");
    const better = (await explainFailed(cleaned ?? message, parts.unknownCallHost)) ?? cleaned;
    return better && { message: better };
  };

  return {
    register: () => {
      // Pi does not start with two extensions that register one tool in their factories, and pi-mcp-adapter has `mcp`, too.
      if (!store.current().settings.proxyTool) searchTools.declare(store.current());
      registrar.registerAll(store.current());
      registeredInMs = performance.now() - startedAt;
      if (startRuntime !== startRuntimeLater) return;
      // Without a snapshot the first request waits for the worker's plan. Where no person types, the prompt comes at once,
      // and the first call of a shared server, which may run already, waits for the worker alone.
      const isSharedCallNear = store.current().settings.shared === true && isForProgram(process.argv);
      if (store.checksum() === undefined || isSharedCallNear) prepareRuntime(join(agentDir, LOG_FILE));
    },
    start: (ctx, isFork = false) => {
      // Over RPC `/new` sends session_start twice to one instance of the factory: the same session.
      if (current) return;
      becomeOnlySession(stop, ctx);
      skills.branchChanged();
      current = start(ctx, isFork);
      if (store.current().settings.proxyTool) searchTools.declare(store.current());
      // Loaded with the runtime.
      if (!tellsOthers)
        import("./others.ts").then(
          ({ tellOthers }) => listeners.add(tellOthers(pi, running, { ctx, stop })),
          warn("others.ts"),
        );
      tellsOthers = true;
      prompts.register(ctx);
      const { count: tools, servers } = store.current();
      const count = `${tools} tools of ${servers.length} servers`;
      current.runtime.log("info", `registered ${count} from the snapshot in ${registeredInMs.toFixed(1)} ms`);
    },
    beforeAgentStart: async (ctx) => {
      const [message] = await Promise.all([firstRequest.prepare(ctx), loadArguments()]);
      // A resumed branch may have declared more.
      await letGo(ctx, LIMITS.declaredTools);
      return message && { message };
    },
    branchChanged,
    registeredServersChanged: (servers) => {
      current?.runtime.post("setRegistered", { servers: toRegistered(servers) });
    },
    toolCalled: async (call, ctx) => {
      if (!current) return undefined;
      const blocked = await skills.beforeCall(call, ctx);
      if (blocked) return blocked;
      if (current) await lateTools.beforeCall(call.toolName, call.input);
      return undefined;
    },
    messageEnded: (message) => {
      if (!current) return undefined;
      skills.messageEnded(message);
      const clean = calls.cleanScript(message);
      return clean || message.isError ? improved(message, clean) : undefined;
    },
    onInput: (event, ctx) => prompts.onInput(event, ctx) ?? resources.onInput(event, ctx),
    turnEnded: async (ctx) => {
      current?.runtime.post("turnEnded", {});
      await letGo(ctx, LIMITS.declaredTools);
    },
    compacted: async (ctx) => {
      branchChanged();
      await letGo(ctx, LIMITS.declaredToolsKept);
    },
    stop,
    // A rejection where no session runs: the completion of an editor catches nothing that is thrown.
    ask: async (...request) => {
      const session = runningOrThrow();
      const { asked } = await import("./late.ts");
      if (request[0] === "takeBack") session.dialogs.forgetSkills();
      const answer = session.runtime.ask(...request);
      asked(request, answer, session, (off) => {
        if (current === session) keepOff(pi, off);
      });
      return answer;
    },
    surroundings: () => ({
      agentDir,
      otherClients: otherClients(pi, options.location ?? ""),
      crashes: current?.crashes,
    }),
    askConsents: async () => {
      const { runtime, dialogs } = runningOrThrow();
      dialogs.forget();
      await runtime.ask("askAgain", {});
    },
    signIn: (server) => runningOrThrow().signIns.byUser(server),
    catalog: store.current,
    servers: () => serversOf(current),
    search: async (query, limit) => (await import("./late.ts")).trySearch(store.current(), query, limit),
    makeTool: createMcpTool,
    declared: () => (current ? pi.getActiveTools() : []),
    onChange,
  };
}
