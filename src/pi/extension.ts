/**
 * This extension among others in one process of Pi: which of two copies is the owner, which session the person has, what the
 * command line says, handlers that nothing thrown leaves, notices, and the warning of another MCP client.
 */
import { homedir } from "node:os";
import { resolve } from "node:path";
import { printable } from "../shared/text/width.ts";
import type { InputResult, NoticeLevel, Pi, PiContext } from "./api.ts";

/** What all sessions of this process share. Global, because the build has this module in two files, and a reload may load it anew. */
interface Ours {
  /** The session that the person has. */
  session?: { stop: Stop; mode: PiContext["mode"] };
  /** The last notice that Pi may replace: where it stands in the transcript, and its text. */
  replaceable?: { manager: object; after: unknown; text: string } | undefined;
}

type Stop = () => Promise<void>;

const OURS = Symbol.for("pi-mcp-threads:process");
const shared = globalThis as { [OURS]?: Ours };
const ours = shared[OURS] ?? {};
shared[OURS] = ours;

const CHANNEL = "pi-mcp-threads:claim";

interface Claim {
  /** The first copy writes its location here. */
  owner?: string;
}

/** Makes the copy at `location` the owner. Answers the location of the copy that is the owner already, if any. */
export function claim(pi: Pi, location: string): string | undefined {
  const asked: Claim = {};
  pi.events.emit(CHANNEL, asked);
  // The same location means an older instance of this copy: several reloads at once leave more than one on a bus. The
  // older instance's session ends when this instance's session begins .
  if (asked.owner !== undefined && asked.owner !== location) return asked.owner;
  pi.events.on(CHANNEL, (other) => {
    (other as Claim).owner ??= location;
  });
  return undefined;
}

export const CONFIG_FLAG = "mcp-config";
export const SERVERS_FLAG = "mcp-servers";

/** What Pi's own command calls its process. */
const PI = /^pi(-rpc)?$/;

/**
 * Registers the flag, but in Pi's own command only if the command line has it or asks for help: that one does not start with two
 * extensions that register one flag, and pi-mcp-adapter has `--mcp-config` too. A program gives flags that stand on no command line.
 */
export function registerFlag(pi: Pi, flag: string, description: string): void {
  const isMeant = new RegExp(`^(-h|--help|--${flag})(=|$)`);
  if (!PI.test(process.title) || process.argv.some((word) => isMeant.test(word)))
    pi.registerFlag(flag, { type: "string", description });
}

/** A session that another extension starts in this process is given no flags: those of the command line hold for it, too. */
export const flagOf = (pi: Pi, flag: string): ReturnType<Pi["getFlag"]> =>
  pi.getFlag(flag) ?? flagOnCommandLine(flag);

/** Absolute path of the file that the flag names; undefined if the flag is not set. */
export const configFileOf = (flag: unknown, cwd: string): string | undefined =>
  typeof flag === "string" && flag !== "" ? resolve(cwd, flag.replace(/^~(?=$|[\\/])/, homedir)) : undefined;

/** The flag's value on the command line, read as Pi reads it: the next word, or what follows `=`; the last one counts. */
export function flagOnCommandLine(flag: string, argv: readonly string[] = process.argv): string | undefined {
  const name = `--${flag}`;
  return argv.reduce<string | undefined>((found, word, at) => {
    const next = argv[at + 1];
    if (word === name && next !== undefined && !/^[-@]/.test(next)) return next;
    return word.startsWith(`${name}=`) ? word.slice(name.length + 1) : found;
  }, undefined);
}

/** Whether Pi takes its prompts from a program or its command line: print mode, JSON or RPC. A factory has no `ctx` that says so. */
export const isForProgram = (argv: readonly string[]): boolean =>
  argv.some((word) => word === "-p" || word === "--print" || word === "--mode");

/** Runs a task that touches Pi outside a call of Pi's own, for example when the worker sends an event: there, Pi would end. */
export function guardStale(task: () => void, onStale: (error: unknown) => void): void {
  try {
    task();
  } catch (error) {
    onStale(error);
  }
}

type Handler = (event: never, ctx: PiContext | undefined) => unknown;

function isOver(ctx: PiContext | undefined): boolean {
  try {
    void ctx?.hasUI;
    return false;
  } catch {
    return true;
  }
}

/** Whatever a handler throws after the end of its session is dropped with the session: there is nobody to be told. */
function untilOver(handler: Handler, answer?: unknown): Handler {
  return (event, ctx) => {
    const failed = (error: unknown): unknown => {
      if (!isOver(ctx)) throw error;
      return answer;
    };
    try {
      const result = handler(event, ctx);
      return result instanceof Promise ? result.catch(failed) : result;
    } catch (error) {
      return failed(error);
    }
  };
}

/** The same Pi, whose events and commands end quietly with their session. Every handler is registered on this one. */
export function guardHandlers(pi: Pi): Pi {
  // An input of a session that is over starts no turn there.
  const answers: Readonly<Record<string, unknown>> = { input: { action: "handled" } satisfies InputResult };
  const on = (event: string, handler: Handler) =>
    pi.on(event as never, untilOver(handler, answers[event]) as never);
  const registerCommand: Pi["registerCommand"] = (name, { handler, ...command }) =>
    pi.registerCommand(name, { ...command, handler: untilOver(handler as never) as never });
  return Object.assign(Object.create(pi) as Pi, { on: on as Pi["on"], registerCommand });
}

const KEPT_CHARS = 20_000;

/** Pi's terminal puts an info notice in the place of the one that it follows directly: then the older one goes along. */
function withReplaced(manager: PiContext["sessionManager"], text: string): string {
  const after = manager.getBranch().at(-1);
  const before = ours.replaceable;
  const joined = before?.manager === manager && before.after === after ? `${before.text}\n\n${text}` : text;
  const whole = joined.length > KEPT_CHARS ? text : joined;
  ours.replaceable = { manager, after, text: whole };
  return whole;
}

/** For Pi without a UI. Where nobody reads stderr any more, `process.stderr.write` ends Pi, and the console does not. */
// biome-ignore lint/suspicious/noConsole: the comment above says why.
export const toStderr = (text: string): void => console.error(text);

export function notify(ctx: PiContext, message: string, level: NoticeLevel): void {
  let text = printable(message);
  if (ctx.mode === "tui") {
    if (level === "info") text = withReplaced(ctx.sessionManager, text);
    else ours.replaceable = undefined;
  }
  if (ctx.hasUI) ctx.ui.notify(text, level);
  // Pi draws on that terminal.
  else if (ours.session?.mode !== "tui") toStderr(text.trim().replace(/\s*\n\s*/g, " | "));
}

/**
 * Called by a session that starts: stops the session that the person had until now. Pi can replace an instance without telling it
 * (several new sessions at once), and the servers of both would run side by side. A session without a UI, such as that of a subagent,
 * has servers of its own.
 */
export function becomeOnlySession(stop: Stop, { hasUI, mode }: PiContext): void {
  if (!hasUI) return;
  const before = ours.session;
  ours.session = { stop, mode };
  // A session that fails to stop cleanly does not concern the session that follows.
  before?.stop().catch(() => undefined);
}

/** Called by a session that ends. */
export function leaveOnlySession(stop: Stop): void {
  if (ours.session?.stop === stop) delete ours.session;
}

/** Pi numbers commands of one name: `mcp`, `mcp:2` and so on. */
const MCP_COMMAND = /^mcp(:\d+)?$/;

/** The paths of the other extensions that have such a command. A program that embeds Pi brings its own without a path. */
export const otherClients = (pi: Pi, ownLocation: string): string[] =>
  pi
    .getCommands()
    .filter(({ name }) => MCP_COMMAND.test(name))
    .map(({ sourceInfo }) => sourceInfo.path)
    .filter((path) => path !== ownLocation && path[0] !== "<");

export function warnOfOtherOwner(pi: Pi, ctx: PiContext, ownLocation: string): void {
  const [other] = otherClients(pi, ownLocation);
  if (other === undefined) return;
  notify(
    ctx,
    `${other} also provides /mcp. Two MCP clients run the same servers twice: remove one of them (pi config).`,
    "warning",
  );
}
