/**
 * Connects to a server that runs as a child process. Owns: the command and the environment of that process, and the
 * explanation of a failure. Also decides when the folder in which Pi runs may influence what is started: only if a file
 * of the project defines the server. Must not: know lifecycles. Called by: transports.ts.
 */
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { messageOf, ThreadsError } from "../../../../src/shared/protocol/errors.ts";
import { SHUTDOWN_TIMES, UNUSED_TIMES } from "../../../shared/programs/close-times.ts";
import { type Command, launchOf } from "../../../shared/programs/launch.ts";
import { isChosenFolder } from "../../config/entry/chosen-folder.ts";
import type { ServerDefinition, StdioTarget } from "../../config/entry/definition.ts";
import { serverEnvironment } from "../../config/entry/server-environment.ts";
import type { Connection, ConnectOptions } from "../../mcp/mcp.ts";
import {
  answerTooLarge,
  evidenceOf,
  initialize,
  isTimeout,
  negotiate,
  type Peer,
  refusedAnswer,
  speakModern,
  startupTimeout,
  toConnection,
  Wire,
} from "../../mcp/mcp.ts";
import { BoundedTransport } from "../../messages/messages.ts";
import { resolveNpx } from "../../npx/npx.ts";
import { StdioTransport } from "./transport.ts";

const END_WAIT_MS = 500;

const isBrokenPipe = (error: unknown): boolean =>
  error instanceof Error &&
  "code" in error &&
  ["EPIPE", "ECONNRESET", "EOF", "ERR_STREAM_DESTROYED"].includes(String(error.code));

const withTail = (text: string, tail: string): string => (tail === "" ? text : `${text} It wrote:\n${tail}`);

function stdioFailure(transport: StdioTransport, options: ConnectOptions, error: unknown): ThreadsError {
  if (error instanceof ThreadsError) return error;
  if (transport.failure) return transport.failure;
  // The SDK reports an abort as a timeout.
  if (options.signal.aborted) {
    return new ThreadsError(
      "cancelled",
      `${options.definition.name} was closed while it was being connected.`,
    );
  }
  const refused = refusedAnswer(error);
  if (refused) return answerTooLarge(options.definition.name, "initialize", refused);
  if (isTimeout(error)) return startupTimeout(options);
  const { name } = options.definition;
  const ended = transport.exit === "" ? messageOf(error) : `its process ${transport.exit} before it answered`;
  const text = withTail(`${name} could not be connected: ${ended}.`, transport.stderrTail);
  return new ThreadsError("connect_failed", text, {
    remedy: "Run its command in a shell to see more.",
    data: { server: name },
  });
}

/** npm's own folder, for servers that no file of the project defines. It lies beside npx's cache file. */
const NPM_FOLDER = "mcp-npm";

const NOTED_ENTRIES = 5;
const NOTED_CHARS = 200;

function describeLeftOut(entries: readonly string[]): string {
  const shown = entries.slice(0, NOTED_ENTRIES).map((entry) => JSON.stringify(entry.slice(0, NOTED_CHARS)));
  const more = entries.length > shown.length ? ` and ${entries.length - shown.length} more` : "";
  return `does not get these entries of PATH, which depend on the folder in which Pi runs: ${shown.join(", ")}${more}`;
}

/** The command with the whole environment of its process. */
function commandOf(target: StdioTarget, { definition, cwd: session, onNote }: ConnectOptions): Command {
  const { platform } = process;
  const cwd = target.cwd ?? session;
  const env = serverEnvironment(definition, target.env, {
    base: process.env,
    session,
    home: homedir(),
    platform,
    onLeftOut: (entries) => onNote(describeLeftOut(entries)),
  });
  const isIndependent =
    !definition.definedByProject && !isChosenFolder(definition, { session, folder: cwd, platform });
  return { command: target.command, args: target.args, env, cwd, isIndependent };
}

/** The command without npm as the server's parent, if it is certain what npm would start. */
async function withoutNpm(command: Command, options: ConnectOptions): Promise<Command> {
  const { definition, npxCacheFile, signal } = options;
  const neutral = command.isIndependent ? join(dirname(npxCacheFile), NPM_FOLDER) : undefined;
  try {
    const launch = await resolveNpx({ ...command, neutral }, { ...options, cacheFile: npxCacheFile });
    return { ...command, ...launch };
  } catch (error) {
    throw signal.aborted ? stoppedEarly(definition) : error;
  }
}

const stoppedEarly = ({ name }: ServerDefinition): ThreadsError =>
  new ThreadsError("cancelled", `${name} was closed before it was started.`);

let lastTurn: Promise<unknown> = Promise.resolve();

/**
 * Settles in a turn of the event loop that no other start has. The system needs milliseconds to start a process, and
 * between two starts the worker hears whether the session has ended.
 */
function spawnTurn(): Promise<unknown> {
  lastTurn = lastTurn.then(() => setImmediate());
  return lastTurn;
}

/** A server that is known to be modern has this long to say so. After that it is taken for one of the old era. */
const DISCOVER_MS = 5_000;

type Speak = (wire: Wire, options: ConnectOptions) => Promise<Peer>;

/** One process of the server, over which one era after the other may be tried. */
class Started {
  readonly transport: StdioTransport;
  readonly #options: ConnectOptions;
  readonly #wire: Wire;

  constructor(transport: StdioTransport, options: ConnectOptions) {
    this.transport = transport;
    this.#options = options;
    this.#wire = new Wire(
      new BoundedTransport(transport, {
        server: options.definition.name,
        onNote: options.onNote,
        end: (reason) => transport.fail(reason),
      }),
    );
  }

  /** Whether another attempt may follow in the same process. */
  async isAlive(): Promise<boolean> {
    return this.transport.failure === undefined && !(await this.transport.endsWithin(0));
  }

  speak(speak: Speak): Promise<Peer> {
    return speak(this.#wire, this.#options);
  }

  toConnection(peer: Peer): Connection {
    const { transport } = this;
    const { definition, onNote, redact, asks } = this.#options;
    return toConnection(peer, {
      definition,
      onNote,
      redact,
      asks,
      transport: "stdio",
      pid: transport.pid,
      close: (times) => transport.closeWithin(times),
      failure: () => transport.failure,
      whyClosed: () =>
        transport.failure?.message ??
        withTail(`${definition.name} ${transport.exit || "closed its connection"}.`, transport.stderrTail),
    });
  }

  /** Ends the process and answers the reason of the failure. */
  async fail(error: unknown): Promise<ThreadsError> {
    const { transport } = this;
    // A broken pipe says less than the end of the process, which is reported a moment later.
    if (isBrokenPipe(error)) await transport.endsWithin(END_WAIT_MS);
    const failure = stdioFailure(transport, this.#options, error);
    await transport.closeWithin(this.#options.signal.aborted ? UNUSED_TIMES : SHUTDOWN_TIMES);
    return failure;
  }
}

/** Throws `ThreadsError`; then it has left nothing running. */
export async function connectStdio(target: StdioTarget, options: ConnectOptions): Promise<Connection> {
  const { definition, onNote, remembered } = options;
  const server = definition.name;
  const command = await withoutNpm(commandOf(target, options), options);
  const launch = await launchOf(command, server);
  await spawnTurn();
  if (options.signal.aborted) throw stoppedEarly(definition);
  const start = (): Started =>
    new Started(
      new StdioTransport({
        ...options,
        server,
        command: target.command,
        launch,
        onStderr: definition.debug ? (line) => onNote(`stderr: ${line}`) : undefined,
      }),
      options,
    );
  let started = start();
  let isFirst = true;
  const startAgain = async (): Promise<void> => {
    await started.fail(undefined);
    started = start();
  };
  /** In the process of the attempt before, or in a new one: a server may end at a request that it does not know. */
  const attempt = async (speak: Speak): Promise<Peer> => {
    if (isFirst) {
      isFirst = false;
      return started.speak(speak);
    }
    if (await started.isAlive()) {
      try {
        return await started.speak(speak);
      } catch (error) {
        if (!isBrokenPipe(error) && evidenceOf(error).kind !== "ended") throw error;
      }
    }
    await startAgain();
    return started.speak(speak);
  };
  try {
    const peer = await negotiate(
      { definition, wasModern: remembered !== undefined },
      {
        legacy: () => attempt(initialize),
        modern: () =>
          attempt((wire, all) => speakModern(wire, all, remembered ? { discoverMs: DISCOVER_MS } : {})),
        evidenceOf,
        onNote,
      },
    );
    return started.toConnection(peer);
  } catch (error) {
    throw await started.fail(error);
  }
}
