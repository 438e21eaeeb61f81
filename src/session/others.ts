/**
 * What other extensions of this Pi see and decide, over the bus of events that all extensions share. Owns: the status event and
 * the approval event, whose shapes are contracts (docs/other-programs.md), and who answers a question of the worker. Must not:
 * give a secret or an address away, or let an extension loosen anything: about what the user's files deny the worker asks nobody.
 * Loaded with the runtime. To add a field: it must be optional within this version.
 */
import type { Pi, PiContext } from "../pi/api.ts";
import { guardStale, notify } from "../pi/extension.ts";
import type { Crash } from "../runtime/contract.ts";
import type { ApprovalQuestion, ApprovalVerdict } from "../shared/protocol/calls.ts";
import type { Question, WorkerEvent } from "../shared/protocol/contract.ts";
import type { ServerStatus } from "../shared/protocol/session.ts";
import { oneLine } from "../shared/text/unprintable.ts";
import type { Dialogs } from "../ui/dialogs/dialogs.ts";
import type { answerPrompt } from "../ui/sampling/prompt.ts";
import { providerToken } from "./late.ts";
import { serversOf, type WhileRunning } from "./running.ts";

const STATUS = "pi-mcp-threads/status/v1";
const STATUS_REQUEST = "pi-mcp-threads/status/v1/request";
const APPROVAL = "pi-mcp-threads/approval/v1";

/** Many servers connect at once, and a listener may draw. */
const STATUS_MS = 100;

/** How often a session is looked at whose end nobody tells. */
const LOOK_MS = 1_000;

const ignore = (): void => undefined;

interface Ending {
  ctx: PiContext;
  stop: () => Promise<void>;
}

/** Ends a session of which a program, or an extension with subagents, has disposed: Pi tells nobody. */
function watchEnd(running: WhileRunning, { ctx, stop }: Ending): void {
  const session = running();
  const end = (): void => {
    session?.runtime.log("warn", "the session is over: Pi has disposed of it");
    void stop();
  };
  const look = (): void => {
    // Pi tells the end of the session that a person has in the terminal.
    const isOver = session === undefined || running() !== session || ctx.mode === "tui";
    if (isOver) clearInterval(timer);
  };
  const timer = setInterval(() => guardStale(look, end), LOOK_MS).unref();
}

const statusOf = ({ name, state, transport, source, ...status }: ServerStatus) =>
  Object.freeze({
    name,
    state,
    transport,
    source,
    tools: status.toolCount,
    toolsKnown: status.toolsKnown,
    resources: status.resourceCount,
    ...(status.skillCount === undefined ? {} : { skills: status.skillCount }),
    ...(status.error ? { error: status.error.code } : {}),
  });

/** Sends the status when it has changed, and to whoever asks. Answers what follows the events of the worker. */
export function tellOthers(
  { events }: Pick<Pi, "events">,
  running: WhileRunning,
  ending: Ending,
): (event: WorkerEvent | undefined) => void {
  let last = "";
  let waiting: readonly string[] = [];
  let timer: NodeJS.Timeout | undefined;
  watchEnd(running, ending);
  const send = (onlyNew: boolean): void => {
    timer = undefined;
    const session = running();
    // Before the first plan nothing is known.
    if (!session?.settings) return;
    const servers = Object.freeze(serversOf(session).map(statusOf));
    const tools = servers.reduce((sum, server) => sum + server.tools, 0);
    const status = Object.freeze({ version: 1, servers, tools, waiting });
    const text = JSON.stringify(status);
    if (onlyNew && text === last) return;
    last = text;
    // The session may be over; nobody listens then.
    guardStale(() => events.emit(STATUS, status), ignore);
  };
  guardStale(() => events.on(STATUS_REQUEST, () => send(false)), ignore);
  return (event) => {
    if (event === undefined) {
      clearTimeout(timer);
      timer = undefined;
      last = "";
      return;
    }
    if (event.type === "planned") waiting = Object.freeze(event.questions.map(({ server }) => server));
    else if (event.type !== "server") return;
    timer ??= setTimeout(() => send(true), STATUS_MS).unref();
  };
}

const VERDICTS = ["allow", "ask", "deny"] as const;
type Verdict = (typeof VERDICTS)[number];

/** How long the verdicts of extensions are waited for, and how many may claim one call. */
const VERDICT_MS = 60_000;
const CLAIMS = 20;

/** `undefined`: the extension has no opinion. An extension that fails has no say, so the person has it. */
async function verdictOf(handler: () => unknown, over: AbortSignal): Promise<Verdict | undefined> {
  const { promise: late, resolve } = Promise.withResolvers<"ask">();
  const end = (): void => resolve("ask");
  over.addEventListener("abort", end, { once: true });
  if (over.aborted) end();
  try {
    const verdict = await Promise.race([Promise.resolve().then(handler), late]);
    if (verdict === undefined || verdict === "abstain") return undefined;
    return VERDICTS.find((known) => known === verdict) ?? "ask";
  } catch {
    return "ask";
  } finally {
    over.removeEventListener("abort", end);
  }
}

/** The strictest verdict of the extensions that claim the call; undefined: none has one. */
async function verdictOfOthers(
  { events }: Pick<Pi, "events">,
  { call: { server, tool, args } }: ApprovalQuestion,
  signal: AbortSignal,
  verdictMs: number,
): Promise<Verdict | undefined> {
  const claims: (() => unknown)[] = [];
  let isOpen = true;
  const end = new AbortController();
  const over = end.signal;
  const stop = (): void => end.abort();
  // A signal of a time alone would not keep the time.
  const timer = setTimeout(stop, verdictMs);
  if (signal.aborted) stop();
  signal.addEventListener("abort", stop, { once: true });
  const request = Object.freeze({
    version: 1,
    server,
    tool,
    /** Another copy each time: none sees what another one changed. */
    get args() {
      return structuredClone(args);
    },
    signal: over,
    claim: (handler: unknown): boolean => {
      if (!isOpen || typeof handler !== "function" || claims.length >= CLAIMS) return false;
      claims.push(handler as () => unknown);
      return true;
    },
  });
  guardStale(() => events.emit(APPROVAL, request), ignore);
  isOpen = false;
  const verdicts = await Promise.all(claims.map((claim) => verdictOf(claim, over)));
  clearTimeout(timer);
  signal.removeEventListener("abort", stop);
  return [...VERDICTS].reverse().find((verdict) => verdicts.includes(verdict));
}

export interface Answering {
  pi: Pick<Pi, "events">;
  ctx: PiContext;
  /** Asks the person. */
  ask: Dialogs["ask"];
  inTurn: Dialogs["inTurn"];
  /** Loads what shows a prompt of a server, and asks the model. */
  screens: () => Promise<{ answerPrompt: typeof answerPrompt }>;
  log: (message: string) => void;
  /** Shorter than `VERDICT_MS`, for tests. */
  verdictMs?: number;
}

/** Pi answers for its providers and, after the person's yes, its model for a server; other extensions may answer about calls, and the person answers the rest. */
export async function answer(
  question: Question,
  signal: AbortSignal,
  { pi, ctx, ask, inTurn, screens, log, verdictMs = VERDICT_MS }: Answering,
): Promise<unknown> {
  if (question.about === "provider") return providerToken(ctx, question);
  if (question.about === "prompt") return (await screens()).answerPrompt(ctx, question, { signal, inTurn });
  if (question.about !== "call") return ask(question, signal);
  const verdict = await verdictOfOthers(pi, question, signal, verdictMs);
  if (verdict !== undefined)
    log(`other extensions about ${oneLine(`${question.server}/${question.tool}`, 300)}: ${verdict}`);
  if (verdict === "deny") return "extension-denies" satisfies ApprovalVerdict;
  // A server that wants the person's yes for each call gets no other one.
  if (verdict === "allow" && !question.onceOnly) return "extension-allows" satisfies ApprovalVerdict;
  return ask(question, signal);
}

const CRASHED = "The MCP connection worker ended unexpectedly";

export const tellCrash = (ctx: PiContext, { reason, givenUp }: Crash): void =>
  givenUp
    ? notify(ctx, `${CRASHED} too often (${reason}) and is not started again. /reload tries again.`, "error")
    : notify(
        ctx,
        `${CRASHED} (${reason}) and is started again. Calls that were open have failed.`,
        "warning",
      );
