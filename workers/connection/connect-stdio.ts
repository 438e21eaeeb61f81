/** Connects to a server that is a process of ours, and explains why it could not be done. */
import { messageOf, ThreadsError } from "../../src/protocol/errors.ts";
import { LIMITS } from "../../src/protocol/limits.ts";
import { type Connection, type ConnectOptions, initialize, toConnection } from "./client.ts";
import type { StdioTarget } from "./config/definition.ts";
import { resolveNpx } from "./npx/resolve.ts";
import { isTimeout, refusedAnswer } from "./sdk-errors.ts";
import { answerTooLarge, startupTimeout } from "./server-errors.ts";
import { BoundedTransport } from "./transports/server-requests.ts";
import { StdioTransport } from "./transports/stdio.ts";

const END_WAIT_MS = 500;

const isBrokenPipe = (error: unknown): boolean =>
  error instanceof Error &&
  "code" in error &&
  ["EPIPE", "ECONNRESET", "EOF", "ERR_STREAM_DESTROYED"].includes(String(error.code));

const withTail = (text: string, tail: string): string => (tail === "" ? text : `${text} It wrote:\n${tail}`);

function stdioFailure(transport: StdioTransport, options: ConnectOptions, error: unknown): ThreadsError {
  if (error instanceof ThreadsError) return error;
  if (transport.failure) return transport.failure;
  // The SDK calls an abort a timeout.
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

/** The target without npm as the server's parent, where it is certain what npm would start. */
async function withoutNpm(target: StdioTarget, options: ConnectOptions): Promise<StdioTarget> {
  const { definition, npxCacheFile, signal } = options;
  try {
    const npxTarget = { ...target, cwd: target.cwd ?? options.cwd };
    const launch = await resolveNpx(npxTarget, { ...options, cacheFile: npxCacheFile });
    return launch ? { ...target, ...launch, env: { ...target.env, ...launch.env } } : target;
  } catch (error) {
    if (!signal.aborted) throw error;
    throw new ThreadsError("cancelled", `${definition.name} was closed before it was started.`);
  }
}

/** Throws `ThreadsError`; nothing is left running then. */
export async function connectStdio(target: StdioTarget, options: ConnectOptions): Promise<Connection> {
  const { definition } = options;
  const transport = new StdioTransport({
    ...options,
    server: definition.name,
    target: await withoutNpm(target, options),
    maxMessageBytes: options.maxMessageBytes,
    onStderr: definition.debug ? (text) => options.onNote(`stderr: ${text.trimEnd()}`) : undefined,
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
      transport: "stdio",
      pid: transport.pid,
      close: (times) => transport.closeWithin(times),
      failure: () => transport.failure,
      whyClosed: () =>
        transport.failure?.message ??
        withTail(`${definition.name} ${transport.exit || "closed its connection"}.`, transport.stderrTail),
    });
  } catch (error) {
    // A pipe that breaks says less than the end of the process, which is told a moment later.
    if (isBrokenPipe(error)) await transport.endsWithin(END_WAIT_MS);
    const failure = stdioFailure(transport, options, error);
    await transport.closeWithin({ termMs: LIMITS.shutdownTermMs, killMs: LIMITS.shutdownKillMs });
    throw failure;
  }
}
