/**
 * Starts one Pi session: states its facts, joins dialogs, events and notices to it, and starts its runtime. Whatever
 * the runtime says after the session's end has no effect.
 */

import { join } from "node:path";
import { stampOf } from "../catalog/stamp.ts";
import { type CatalogStore, snapshotPath } from "../catalog/store.ts";
import type { McpRegistration, Pi, PiContext } from "../pi/api.ts";
import { CONFIG_FLAG, configFileOf, flagOf, guardStale, notify, SERVERS_FLAG } from "../pi/extension.ts";
import type { Runtime, RuntimeOptions } from "../runtime/contract.ts";
import type { WorkerEvent } from "../shared/protocol/contract.ts";
import { describeError, messageOf, ThreadsError } from "../shared/protocol/errors.ts";
import type { SessionFacts } from "../shared/protocol/session.ts";
import { LOG_FILE, onlyServersOf, restPath, type SnapshotKey } from "../shared/snapshot/contract.ts";
import { OFF_ENTRY } from "../tools/branch.ts";
import type { Registrar } from "../tools/registrar.ts";
import { screens } from "../ui/command/command.ts";
import { createDialogs } from "../ui/dialogs/dialogs.ts";
import { createSignIns, type SignInHost } from "../ui/sign-in/sign-in.ts";
import { createEventHandler, type EventTargets } from "./events.ts";
import type { Answering } from "./others.ts";
import type { Running, WhileRunning } from "./running.ts";

/** Copies the fields that can be cloned into the worker. */
export const toRegistered = (servers: readonly McpRegistration[]): SessionFacts["registered"] =>
  servers.map(({ name, config, extensionPath }) => ({ name, config, extensionPath }));

type Entry = { customType?: unknown; data?: { off?: string[] } } | null;

/**
 * The newest of these entries in this process: a fork may begin before the entry. Global, because Pi may load this module anew for
 * the fork.
 */
const OFF = Symbol.for("pi-mcp-threads:off");
const newest = globalThis as { [OFF]?: { off?: readonly string[] | undefined } | undefined };

/** Writes what is off now into the transcript; undefined: nothing. */
export const keepOff = (pi: Pi, off: readonly string[] | undefined): void => {
  newest[OFF] = { off };
  pi.appendEntry(OFF_ENTRY, newest[OFF]);
};

/**
 * What the newest entry says, on whatever branch: it is for the session. Anybody may have written a transcript: the worker checks
 * it, and only switches off.
 */
function switchedOff(pi: Pi, ctx: PiContext, isFork: boolean): readonly string[] | undefined {
  if (isFork && newest[OFF]) keepOff(pi, newest[OFF].off);
  const entries = ctx.sessionManager.getEntries() as Entry[];
  const entry = entries.findLast((one) => one?.customType === OFF_ENTRY)?.data;
  // Nobody forks the session of a subagent.
  if (ctx.hasUI) newest[OFF] = entry;
  return entry?.off;
}

/** The facts that stay the same for the whole session. */
type StartFacts = Pick<
  SessionFacts,
  | "agentDir"
  | "cwd"
  | "projectTrusted"
  | "configPath"
  | "onlyServers"
  | "off"
  | "canAsk"
  | "hints"
  | "projectFile"
  | "startedAtMs"
>;

/**
 * The stamp of `.pi/mcp.json` (`projectFile`) is taken before the model can have written the file, and every worker of
 * the session gets this same stamp.
 */
export const startFacts = (pi: Pi, ctx: PiContext, agentDir: string, isFork: boolean): StartFacts => ({
  agentDir,
  cwd: ctx.cwd,
  projectTrusted: ctx.isProjectTrusted(),
  // A word of the command line is about the shell's folder, and a session may be resumed in another one, which nobody trusts.
  configPath: configFileOf(flagOf(pi, CONFIG_FLAG), process.cwd()),
  onlyServers: onlyServersOf(flagOf(pi, SERVERS_FLAG) || process.env.MCP_SERVERS),
  off: switchedOff(pi, ctx, isFork),
  canAsk: ctx.hasUI,
  hints: ctx.hasUI,
  projectFile: stampOf(join(ctx.cwd, ".pi", "mcp.json")),
  startedAtMs: Date.now(),
});

/** Undefined: what only the worker knows of this session may differ from what it left, so it starts at once. */
function restOf(
  pi: Pi,
  ctx: Pick<PiContext, "mode">,
  { known, store, key }: Pick<StartOptions, "known" | "store" | "key">,
  onEvent: RuntimeOptions["onEvent"],
): RuntimeOptions["rest"] {
  const checksum = store.checksum();
  if (checksum === undefined || known.off || process.env.MCP_DIRECT_TOOLS || pi.getMcpServers().length > 0)
    return undefined;
  const path = restPath(snapshotPath(known.agentDir, key));
  const run = { agentDir: known.agentDir, key: () => key, store, mode: ctx.mode, path };
  return async (asked) => {
    const { startRest, restUntilSent } = await import("./rest.ts");
    const rest = startRest(asked, { path, checksum, trusted: known.projectTrusted }, { onEvent });
    return rest ?? restUntilSent(asked, pi, run);
  };
}

export interface StartOptions {
  known: StartFacts;
  key: SnapshotKey;
  store: CatalogStore;
  registrar: Registrar;
  onPlanned: EventTargets["onPlanned"];
  onPrompts: EventTargets["onPrompts"];
  onProgress: EventTargets["onProgress"];
  /** Called after each event of the session that runs. */
  onHandled: (event: WorkerEvent) => void;
  startRuntime: (options: RuntimeOptions) => Runtime;
  /** The session that this call starts, while it is the one that runs. */
  ifCurrent: WhileRunning;
  /** Throws `runtime_stopped` when no session runs. */
  runningOrThrow: () => Running;
  stop: () => Promise<void>;
}

const isRestart = (error: unknown): boolean =>
  error instanceof ThreadsError && error.code === "runtime_restarted";

/** The answer is bound to the hash of what was asked, so the worker may receive it twice. The user is asked once. */
const twice = async (answer: () => Promise<undefined>): Promise<void> =>
  answer().catch((error: unknown) => {
    if (isRestart(error)) return answer();
    throw error;
  });

/** Pi, other extensions or the person. */
const answering =
  (pi: Pi, ctx: PiContext, by: Omit<Answering, "pi" | "ctx">): NonNullable<RuntimeOptions["onQuestion"]> =>
  async (question, signal) =>
    (await import("./others.ts")).answer(question, signal, { pi, ctx, ...by });

export function startRunning(pi: Pi, ctx: PiContext, options: StartOptions): Running {
  const { known, store, startRuntime, ifCurrent, runningOrThrow, stop } = options;

  const guarded = (task: () => void): void =>
    guardStale(task, (error) => {
      const session = ifCurrent();
      if (!session) return;
      session.runtime.log("warn", `the session is over: ${messageOf(error)}`);
      void stop();
    });
  const over = (): boolean => ifCurrent() === undefined;
  const failed = (text: string): void =>
    guarded(() => {
      if (!over()) notify(ctx, text, "error");
    });

  const dialogs = createDialogs(ctx, {
    consent: async (hash, allow) =>
      twice(() => runningOrThrow().runtime.ask("answerConsent", { hash, allow })),
    applyHeld: async (id, apply) => runningOrThrow().runtime.ask("applyHeld", { id, apply }),
    over,
    failed: (error) => failed(`MCP: ${messageOf(error)}`),
    tick: async (...list) => (await screens()).tickLines(...list),
    skill: async (...about) => (await screens()).askAboutSkill(...about),
  });
  const log = (message: string): void => ifCurrent()?.runtime.log("warn", message);
  const host: SignInHost = {
    ask: async (method, params) => runningOrThrow().runtime.ask(method, params),
    inTurn: dialogs.inTurn,
    log,
    over,
    failed,
  };
  const signIns = createSignIns(ctx, host);

  const handle = createEventHandler({ ...options, ctx, state: ifCurrent, dialogs, signIns, failed });
  const onEvent = (event: WorkerEvent): void =>
    guarded(() => {
      handle(event);
      options.onHandled(event);
    });
  const runtime = startRuntime({
    logFile: join(known.agentDir, LOG_FILE),
    rest: restOf(pi, ctx, options, onEvent),
    facts: () => {
      const accepted = ifCurrent()?.accepted;
      return {
        ...known,
        // Read for each worker of the session, because extensions register servers at any time.
        registered: toRegistered(pi.getMcpServers()),
        ...(accepted ? { accepted } : {}),
        snapshotChecksum: store.checksum(),
      };
    },
    onEvent,
    onQuestion: answering(pi, ctx, { ...dialogs, screens, log }),
    onCrash: (crash) => {
      signIns.interrupt();
      const session = ifCurrent();
      if (session) session.crashes = { count: session.crashes.count + 1, last: crash.reason };
      import("./others.ts").then(
        ({ tellCrash }) => guarded(() => over() || tellCrash(ctx, crash)),
        (error) => log(messageOf(error)),
      );
    },
    onStartFailed: (error) => {
      const session = ifCurrent();
      session?.planned.resolve();
      // A crash has a notice of its own.
      if (!session || isRestart(error)) return;
      failed(`MCP servers could not be started: ${describeError(error)}`);
    },
  });
  return {
    runtime,
    dialogs,
    signIns,
    warn: (text) => notify(ctx, text, "warning"),
    statuses: new Map(),
    planned: Promise.withResolvers<void>(),
    settings: undefined,
    accepted: undefined,
    called: new Set(),
    known: new Map(),
    awaited: new Set(),
    crashes: { count: 0, last: "" },
  };
}
