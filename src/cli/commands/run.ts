/**
 * `run --sandbox -- <command>`: a program in the room that a server of this command would have. Owns: the program's process, which
 * has the input and output of this one as they are. The program does not control the terminal (setsid(2)): one that did could
 * type into the shell behind the sandbox (TIOCSTI of ioctl_tty(2)). So the terminal's signals come here and are handed on.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { constants } from "node:os";
import { proposedName } from "../../shared/pasted.ts";
import { lackRemedy, messageOf } from "../../shared/protocol/errors.ts";
import type { Launch } from "../../shared/protocol/person.ts";
import { isObject } from "../../shared/protocol/values.ts";
import { asFailure, EXIT, Failure, usage } from "../console/failure.ts";
import type { Options } from "../words/parse.ts";
import type { Command, Context } from "./known.ts";

const HELP = "pi-mcp-threads help run shows how it is used.";
/** Beside those that every command takes. */
const HANDED_ON = ["SIGWINCH", "SIGUSR2", "SIGCONT"] as const;
/** As bwrap tells it (bwrap(1), --json-status-fd): a few short lines. */
const STATUS_CHARS = 10_000;

function check({ options }: Context): void {
  if (options.json) throw usage("run takes no --json: its output is the program's.");
  if (!options.sandbox)
    throw usage("run needs --sandbox: without one, start the program as it stands behind the --.", HELP);
}

/** Advice for an entry of a file helps nobody here; that about a sandbox does. */
function explained(error: unknown): Failure {
  const failure = asFailure(error);
  const { exitCode, message, code, data } = failure;
  if (code === "bad_config") return usage(message, HELP);
  const isCommands = code === "spawn_failed" && !(isObject(data) && data.reason === "sandbox");
  const remedy = lackRemedy(failure) ?? "Check the command behind --, and PATH.";
  return isCommands ? new Failure(exitCode, message, { remedy, code, data }) : failure;
}

const listOf = (given: Options[string]): string[] => (Array.isArray(given) ? given : []);

const sandboxOf = (options: Options) => ({
  write: listOf(options.write),
  read: listOf(options.read),
  hide: listOf(options.hide),
  ...(options["no-network"] ? { network: false } : {}),
});

interface Program {
  child: ChildProcess;
  /** Settles when `group` is known, or never will be. */
  told: Promise<void>;
  /** Undefined while nothing of the program runs. */
  group: () => number | undefined;
  /** Whether the program itself was started. */
  hasRun: () => boolean;
}

/** In a session of its own. Of bwrap the program's group is the one of its first process, not that of bwrap itself. */
function startProgram({ program, args, env, cwd }: Launch): Program {
  const isMac = process.platform === "darwin";
  const child = spawn(program, [...(isMac ? [] : ["--new-session", "--json-status-fd", "3"]), ...args], {
    env,
    cwd,
    detached: true,
    stdio: ["inherit", "inherit", "inherit", isMac ? "ignore" : "pipe"],
  });
  let status = "";
  const told = Promise.withResolvers<void>();
  // Without file descriptors Node makes no streams, and tells the error later.
  const pipe = (child.stdio as ChildProcess["stdio"] | undefined)?.[3];
  if (!pipe) told.resolve();
  pipe?.on("error", () => undefined);
  pipe?.on("close", told.resolve);
  pipe?.on("data", (chunk: Buffer) => {
    status = (status + chunk.toString()).slice(0, STATUS_CHARS);
    if (status.includes('"child-pid"')) told.resolve();
  });
  return {
    child,
    told: told.promise,
    group: () => (isMac ? child.pid : Number(/"child-pid": *(\d+)/.exec(status)?.[1]) || undefined),
    hasRun: () => isMac || status.includes('"exit-code"'),
  };
}

/** A program may write before bubblewrap tells which group is the program's: a signal to bubblewrap alone would end both. */
function signal(program: Program, name: NodeJS.Signals): void {
  if (name === "SIGKILL") send(program, name);
  else void program.told.then(() => send(program, name));
}

function send({ child, group }: Program, name: NodeJS.Signals): void {
  const leader = group();
  try {
    if (leader === undefined) child.kill(name);
    else process.kill(-leader, name);
  } catch {
    // The room is still being made, or everything in it has ended.
    child.kill(name);
  }
}

export const run: Command = async (context) => {
  check(context);
  const { options, arguments: words, takeSignals, signal: ends } = context;
  const [command = "", ...args] = words;
  const name = proposedName(words);
  const entry = { command, args, sandbox: sandboxOf(options) };
  const session = await context.session();
  await session.planned();
  const launch = await session.runtime
    .ask("launchByHand", { name, entry, project: false }, ends)
    .catch((error: unknown) => {
      throw explained(error);
    });
  await session.stop();
  ends.throwIfAborted();
  // Before the start: the program may run, and be heard of, before this process goes on behind its own fork.
  takeSignals((taken) => signal(started, taken));
  for (const taken of HANDED_ON) process.on(taken, () => signal(started, taken));
  process.on("SIGTSTP", () => {
    // A group without a terminal does not stop by SIGTSTP (setpgid(2), orphaned groups).
    send(started, "SIGSTOP");
    process.kill(process.pid, "SIGSTOP");
  });
  const started = startProgram(launch);
  const { child } = started;
  ends.addEventListener("abort", () => signal(started, "SIGKILL"), { once: true });
  const [code, by] = (await once(child, "close").catch((error: unknown) => {
    const message = `${command} could not be started: ${messageOf(error)}.`;
    throw new Failure(EXIT.unreachable, message, { remedy: lackRemedy(error) });
  })) as [number | null, NodeJS.Signals | null];
  if (by === null && !started.hasRun())
    throw new Failure(EXIT.unreachable, `${command} could not be started in the sandbox.`, {
      remedy: "If the sandbox hides its program or its folder, --read PATH shows them.",
    });
  return code ?? 128 + (by === null ? 0 : constants.signals[by]);
};
