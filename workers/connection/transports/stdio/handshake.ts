/**
 * The handshake with a server whose process is starting: one era of MCP after the other, in the same process as far as it
 * lives. Owns the explanation of a failure. Loaded while the process starts, since it needs the SDK.
 */
import { messageOf, ThreadsError } from "../../../../src/shared/protocol/errors.ts";
import { SHUTDOWN_TIMES, UNUSED_TIMES } from "../../../shared/pace/pace.ts";
import { transportOf } from "../../config/entry/definition.ts";
import { isOffering, type Peer, Wire } from "../../mcp/both-eras.ts";
import { toConnection } from "../../mcp/client.ts";
import type { Connection, ConnectOptions } from "../../mcp/connection.ts";
import { answerTooLarge, evidenceOf, isTimeout, refusedAnswer, startupTimeout } from "../../mcp/failures.ts";
import { initialize } from "../../mcp/legacy-peer.ts";
import { negotiate } from "../../mcp/modern/era.ts";
import { speakModern } from "../../mcp/modern-peer.ts";
import { BoundedTransport } from "../../messages/server-requests.ts";
import { explainNpm } from "../../npx/npx.ts";
import { lastWords, withLastWords } from "./last-words.ts";
import type { StdioTransport } from "./transport.ts";

const END_WAIT_MS = 500;
/** Of what a server wrote before it ended. */
const LOGGED_LINES = 100;

const isBrokenPipe = (error: unknown): boolean =>
  error instanceof Error &&
  "code" in error &&
  ["EPIPE", "ECONNRESET", "EOF", "ERR_STREAM_DESTROYED"].includes(String(error.code));

async function stdioFailure(
  transport: StdioTransport,
  options: ConnectOptions,
  error: unknown,
): Promise<ThreadsError> {
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
  if (isTimeout(error)) return startupTimeout(options, transport.printed);
  const { name, target, sandbox } = options.definition;
  if (sandbox !== undefined) {
    const { explainRoom } = await import("../../room/room.ts");
    const byRoom = explainRoom(name, transport.stderrTail);
    if (byRoom) return byRoom;
  }
  const byNpm =
    target.kind === "stdio" &&
    explainNpm(name, { ...target, env: process.env as Record<string, string> }, transport.stderrTail);
  if (byNpm) return byNpm;
  const who = target.kind === "socket" ? "it" : "its process";
  const isAnswer = evidenceOf(error).kind === "error";
  const ended =
    isAnswer || transport.exit === "" ? messageOf(error) : `${who} ${transport.exit} before it answered`;
  const output = transport.stderrTail || transport.printed.join("\n");
  return new ThreadsError(
    "connect_failed",
    withLastWords(`${name} could not be connected: ${ended}.`, output),
    {
      remedy:
        output === "" && target.kind !== "socket" ? "Run its command in a shell to see more." : undefined,
      data: { server: name },
    },
  );
}

/** A server that was modern has this long to say so, before it is asked in the old era too: it may answer neither yet. */
const DISCOVER_MS = 5_000;

type Speak = (wire: Wire, options: ConnectOptions) => Promise<Peer>;

/** One process of the server, over which one era after the other may be tried. */
class Started {
  readonly transport: StdioTransport;
  readonly #options: ConnectOptions;
  readonly #wire: Wire;
  #isLogged = false;

  constructor(transport: StdioTransport, options: ConnectOptions) {
    this.transport = transport;
    this.#options = options;
    this.#wire = new Wire(
      new BoundedTransport(transport, {
        server: options.definition.name,
        onNote: options.onNote,
        end: (reason) => transport.fail(reason),
      }),
      options.trace,
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
      transport: transportOf(definition),
      pid: transport.pid,
      sharing: () => transport.sharing,
      heard: () => transport.heard,
      close: (times) => transport.closeWithin(times),
      failure: () => transport.failure,
      whyClosed: () => {
        this.#logRest();
        return (
          transport.failure?.message ??
          withLastWords(
            `${definition.name} ${transport.exit || "closed its connection"}.`,
            transport.stderrTail,
          )
        );
      },
    });
  }

  /** Writes into the log what its last words leave out, once. In debug mode the log has each line already. */
  #logRest(): void {
    const { definition, onNote } = this.#options;
    const output = this.transport.stderrTail;
    if (this.#isLogged || definition.debug || lastWords(output).isAll) return;
    this.#isLogged = true;
    const lines = output.split("\n").filter((line) => line.trim() !== "");
    for (const line of lines.slice(-LOGGED_LINES)) onNote(`stderr: ${line}`);
  }

  /** Ends the process and answers the reason of the failure. */
  async fail(error: unknown): Promise<ThreadsError> {
    const { transport } = this;
    // A broken pipe says less than the end of the process, which is reported a moment later.
    if (isBrokenPipe(error)) await transport.endsWithin(END_WAIT_MS);
    const failure = await stdioFailure(transport, this.#options, error);
    this.#logRest();
    await transport.closeWithin(
      this.#options.signal.aborted ? UNUSED_TIMES : { ...SHUTDOWN_TIMES, leave: "retire" },
    );
    return failure;
  }
}

/** `first`: its process is starting. Throws `ThreadsError`; then it has left nothing running. */
export async function shakeHands(
  first: StdioTransport,
  create: () => StdioTransport,
  options: ConnectOptions,
): Promise<Connection> {
  let started = new Started(first, options);
  let isFirst = true;
  const startAgain = async (): Promise<void> => {
    await started.fail(undefined);
    started = new Started(create(), options);
  };
  /**
   * In the process of the attempt before, or in a new one: a server may end at a request that it does not know. `isGuess`: the
   * server has not said that it takes what is sent, which is not worth a new process.
   */
  const attempt = async (speak: Speak, isGuess = false): Promise<Peer> => {
    if (isFirst) {
      isFirst = false;
      return started.speak(speak);
    }
    if (await started.isAlive()) {
      try {
        return await started.speak(speak);
      } catch (error) {
        if (isGuess || (!isBrokenPipe(error) && evidenceOf(error).kind !== "ended")) throw error;
      }
    }
    if (isGuess) throw new Error("its process has ended");
    await startAgain();
    return started.speak(speak);
  };
  try {
    const peer = await negotiate(
      { definition: options.definition, wasModern: options.remembered !== undefined },
      {
        legacy: (other) => attempt((wire, all) => initialize(wire, all, other), other === "nothing"),
        isOffering: isOffering(options),
        modern: (isTrial) =>
          attempt((wire, all) =>
            speakModern(wire, all, isTrial ? { discoverMs: all.discoverMs ?? DISCOVER_MS } : {}),
          ),
        evidenceOf,
        onNote: options.onNote,
      },
    );
    return started.toConnection(peer);
  } catch (error) {
    throw await started.fail(error);
  }
}
