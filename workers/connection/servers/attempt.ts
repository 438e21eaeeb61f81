/**
 * One attempt to connect a server: waits for its turn at the gate, opens the connection, lists what the server offers
 * and writes the outcome into the log. Owns no state; the server takes the connection and changes its phase.
 * Called by: life.ts.
 */

import { messageOf, ThreadsError } from "../../../src/shared/protocol/errors.ts";
import type { WorkerEvent } from "../../../src/shared/protocol/events.ts";
import type { SignInStatus } from "../../../src/shared/protocol/sign-in.ts";
import { endIfFileGone } from "../../shared/gone-files.ts";
import type { Log } from "../../shared/log.ts";
import { during } from "../../shared/pace/abort.ts";
import type { Gate } from "../../shared/pace/gate.ts";
import { createReader } from "../../shared/pace/turns.ts";
import { SHUTDOWN_TIMES, UNUSED_TIMES } from "../../shared/programs/close-times.ts";
import { withName } from "../../shared/server-name.ts";
import type { SessionAsks } from "../asks/asks.ts";
import type { AuthServer, RequestAuth } from "../auth/auth.ts";
import type { Settings } from "../config/entry/settings.ts";
import type { ResolvedHttp } from "../config/values/values.ts";
import type { Connection, ConnectOptions } from "../mcp/connection.ts";
import { type Redactor, redactError } from "../secrets/redact.ts";
import type { ServerParts } from "./parts.ts";
import type { Talkers } from "./talkers.ts";

/** Opens a connection and initializes it. Rejects with an error after which nothing is left running. */
export type Connect = (options: ConnectOptions) => Promise<Connection>;

/** Loads the SDK and the transports with the first attempt, so that the first plan does not wait for them. */
const connectByTransport: Connect = async (options) => {
  const { connect } = await import("../transports/transports.ts");
  options.signal.throwIfAborted();
  return connect(options);
};

/** The sign-ins, as servers see them. */
export interface ServersAuth {
  /** What the requests of a connection ask. Undefined: no sign-in applies. */
  of(server: AuthServer): RequestAuth | undefined;
  /** The same for a server that is only tried: no token goes there, and nothing is remembered. */
  forTrial(server: AuthServer): RequestAuth | undefined;
  status(server: string): SignInStatus | undefined;
  /** Whether someone has signed in to the server since it refused its last token. */
  hasOther(server: string): Promise<boolean>;
}

/** What every attempt of a session needs. */
export interface AttemptContext {
  cwd: string;
  /** Absolute path of `mcp-npx-cache.json`. */
  npxCacheFile: string;
  log: Log;
  emit: (event: WorkerEvent) => void;
  gate: Gate;
  /** Absent: nobody records which server's bytes are being read. */
  talkers?: Talkers;
  /** The settings that hold now; they may change while the session is open. */
  settings: () => Settings;
  /** Absent: the transports open the connection. */
  connect?: Connect;
  /** Absent: nobody signs in. */
  auth?: ServersAuth;
  /** Absent: no server can ask the user. */
  asks?: Pick<SessionAsks, "of"> | undefined;
}

/** The server as its attempts see it. */
export interface AttemptedServer extends ServerParts {
  onAuthLost(error: ThreadsError): void;
  onListChanged(): void;
  /** What the start waits for, each second; undefined: nothing any more. */
  onWait(text: string | undefined): void;
  /** Takes the connection before its lists are there; undefined: its lists failed and it is being closed. */
  hold(connection: Connection | undefined): void;
  /** A connection ended, by either side; undefined: it ended before `hold` had it. */
  onClosed(connection: Connection | undefined): void;
  onOpen(connection: Connection): void;
  onFailed(error: ThreadsError): void;
  /** The attempt is over, whatever its outcome. */
  onSettled(): void;
  /** A call waits for the connection, and for nothing that can be known without asking. */
  readonly isForCall: boolean;
}

/** The attempt that all users of a server share. */
export interface Attempt {
  /** Rejects with `ThreadsError`. Nobody has to handle the rejection. */
  promise: Promise<Connection>;
  /** A person or a call waits for the attempt: it no longer queues behind background connects. */
  hurry(): void;
}

export function startAttempt(server: AttemptedServer, context: AttemptContext): Attempt {
  const urgent = new AbortController();
  const promise = attempt(server, context, urgent.signal).finally(() => server.onSettled());
  // Nobody waits for a background connect; its failure is in the server's state and in the log.
  promise.catch(() => undefined);
  return { promise, hurry: () => urgent.abort() };
}

async function attempt(
  server: AttemptedServer,
  context: AttemptContext,
  urgent: AbortSignal,
): Promise<Connection> {
  const leave = await context.gate.enter(AbortSignal.any([urgent, server.lifetime]));
  try {
    const connection = await during(server.lifetime, (signal) => open(server, context, signal));
    server.onOpen(connection);
    return connection;
  } catch (error) {
    await endIfFileGone(error, context.log);
    const failure = attemptFailure(server.name, error, server.redact);
    if (!server.lifetime.aborted) context.log.error(withName(server.name, failure.message));
    server.onFailed(failure);
    throw failure;
  } finally {
    leave();
  }
}

/** The error of a failed attempt without secrets: itself if it is meant for users, else `internal`. */
export function attemptFailure(server: string, error: unknown, redact: Redactor): ThreadsError {
  const shown = redactError(error, redact);
  if (shown instanceof ThreadsError) return shown;
  return new ThreadsError("internal", withName(server, redact(messageOf(shown))), { cause: error });
}

async function open(
  server: AttemptedServer,
  context: AttemptContext,
  signal: AbortSignal,
): Promise<Connection> {
  const { connect = connectByTransport } = context;
  const startedAt = performance.now();
  let opened: Connection | undefined;
  const connection = await connect({
    ...connectOptions(server, context),
    signal,
    onClosed: () => server.onClosed(opened),
  });
  opened = connection;
  server.hold(connection);
  if (connection.isFromMemory()) {
    context.log.info(`${connectedLine(server, connection, 0)}, as remembered: nothing was asked`);
    return connection;
  }
  try {
    await server.offer.list(connection, signal);
  } catch (error) {
    server.hold(undefined);
    const failure = signal.aborted
      ? new ThreadsError("cancelled", `${server.name} was closed while it was being connected.`)
      : error;
    await connection.close(signal.aborted ? UNUSED_TIMES : SHUTDOWN_TIMES);
    throw failure;
  }
  const tookMs = Math.round(performance.now() - startedAt);
  server.timings.startMs = tookMs;
  context.log.info(connectedLine(server, connection, tookMs));
  return connection;
}

function connectOptions(
  server: AttemptedServer,
  { cwd, npxCacheFile, settings, emit, talkers, auth, asks }: AttemptContext,
): Omit<ConnectOptions, "signal" | "onClosed"> {
  const { name, log } = server;
  const { maxMessageBytes, caFile } = settings();
  const definition = server.definition();
  return {
    definition,
    cwd,
    npxCacheFile,
    maxMessageBytes,
    caFile,
    onSpawn: (pid) => emit({ type: "spawned", pid, server: name }),
    onExit: (pid) => emit({ type: "exited", pid, server: name }),
    onNote: log.note,
    onWait: (text) => server.onWait(text && server.redact(text)),
    onLogMessage: log.message,
    onSecrets: server.secrets.setDefined,
    redact: server.redact,
    auth: (target) => auth?.of(authServer(server, target)),
    onAuthLost: (error) => server.onAuthLost(error),
    asks: definition.elicitation ? asks?.of({ name, redact: server.redact, onNote: log.note }) : undefined,
    remembered: server.offer.remembered(server.isForCall),
    onListChanged: () => server.onListChanged(),
    reader: createReader({ onBytes: talkers?.of(name), onNote: log.note }),
  };
}

/** `target`: as it is resolved. */
export const authServer = (
  server: Pick<ServerParts, "definition" | "secrets" | "redact" | "log">,
  { url, headers, ca }: ResolvedHttp,
): AuthServer => ({
  definition: server.definition(),
  url,
  headers,
  ca,
  redact: server.redact,
  onSecret: server.secrets.add,
  onNote: server.log.note,
});

const connectedLine = (
  { name, offer }: AttemptedServer,
  { transport, pid, protocol }: Connection,
  tookMs: number,
): string => {
  const via = `${transport}${pid === undefined ? "" : `, pid ${pid}`}`;
  const spoken = protocol.version === "" ? "" : `, MCP ${protocol.version}`;
  return `${name} connected over ${via} in ${tookMs} ms, ${offer.tools?.length ?? 0} tools${spoken}`;
};
