/**
 * Connects to a server that runs as a child process. Owns: the command and the environment of that process, and the
 * explanation of a failure. Also decides when the folder in which Pi runs may influence what is started: only if a file
 * of the project defines the server. Must not: know lifecycles. Called by: transports.ts.
 */
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { messageOf, ThreadsError } from "../../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../../src/shared/protocol/limits.ts";
import { childEnvironment } from "../../../shared/programs/environment.ts";
import { type Command, launchOf } from "../../../shared/programs/launch.ts";
import { isChosenFolder } from "../../config/entry/chosen-folder.ts";
import type { StdioTarget } from "../../config/entry/definition.ts";
import type { Connection, ConnectOptions } from "../../mcp/mcp.ts";
import {
  answerTooLarge,
  initialize,
  isTimeout,
  refusedAnswer,
  startupTimeout,
  toConnection,
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
  const env = childEnvironment({
    base: process.env,
    own: target.env,
    platform,
    independentOf: definition.definedByProject ? undefined : { cwd: session, home: homedir() },
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
    if (!signal.aborted) throw error;
    throw new ThreadsError("cancelled", `${definition.name} was closed before it was started.`);
  }
}

/** Throws `ThreadsError`; then it has left nothing running. */
export async function connectStdio(target: StdioTarget, options: ConnectOptions): Promise<Connection> {
  const { definition } = options;
  const server = definition.name;
  const command = await withoutNpm(commandOf(target, options), options);
  const transport = new StdioTransport({
    ...options,
    server,
    command: target.command,
    launch: await launchOf(command, server),
    maxMessageBytes: options.maxMessageBytes,
    onStderr: definition.debug ? (line) => options.onNote(`stderr: ${line}`) : undefined,
  });
  try {
    const bounded = new BoundedTransport(transport, {
      server: definition.name,
      onNote: options.onNote,
      end: (reason) => transport.fail(reason),
    });
    const client = await initialize(bounded, options);
    return toConnection(client, {
      definition,
      onNote: options.onNote,
      redact: options.redact,
      asks: options.asks,
      transport: "stdio",
      pid: transport.pid,
      close: (times) => transport.closeWithin(times),
      failure: () => transport.failure,
      whyClosed: () =>
        transport.failure?.message ??
        withTail(`${definition.name} ${transport.exit || "closed its connection"}.`, transport.stderrTail),
    });
  } catch (error) {
    // A broken pipe says less than the end of the process, which is reported a moment later.
    if (isBrokenPipe(error)) await transport.endsWithin(END_WAIT_MS);
    const failure = stdioFailure(transport, options, error);
    await transport.closeWithin({ termMs: LIMITS.shutdownTermMs, killMs: LIMITS.shutdownKillMs });
    throw failure;
  }
}
