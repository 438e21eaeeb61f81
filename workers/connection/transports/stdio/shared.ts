/**
 * A server that sessions share: how it is asked of the hub, and the use of it as a process: stdin, stdout, stderr and an end, over a connection to the hub. Its end is this session's end of
 * the connection; whether the server ends is said by `leave`. If the hub dies, the process counts as ended.
 */
import { EventEmitter } from "node:events";
import { realpath } from "node:fs/promises";
import type { Socket } from "node:net";
import { Readable, Writable } from "node:stream";
import { messageOf, ThreadsError } from "../../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../../src/shared/protocol/limits.ts";
import type { Sharing } from "../../../../src/shared/protocol/session.ts";
import { HubUnusable } from "../../../shared/hub/place.ts";
import { type Attach, controlFrame, FrameReader, type FromHub, headOf } from "../../../shared/hub/wire.ts";
import { canonical } from "../../../shared/json.ts";
import type { Leave } from "../../../shared/pace/pace.ts";
import type { Launch, ServerProcess } from "../../../shared/programs/processes.ts";
import { HUB_LOG, openHub } from "../../hub/link.ts";
import { capabilitiesOf } from "../../mcp/both-eras.ts";
import type { ConnectOptions, HubUse } from "../../mcp/connection.ts";
import { TooLarge } from "../../messages/too-large.ts";

/** A connection for the first who takes it. One that nobody has taken when the connect is given up is closed: the hub waits for it. */
function forOne(socket: Socket, signal: AbortSignal): () => Socket | undefined {
  let unused: Socket | undefined = socket;
  const take = (): Socket | undefined => {
    const taken = unused;
    unused = undefined;
    signal.removeEventListener("abort", close);
    return taken;
  };
  const close = (): void => void take()?.destroy();
  signal.addEventListener("abort", close);
  if (signal.aborted) close();
  return take;
}

/** Starts the use of the server. Undefined if there is no hub: then the session has a server of its own. */
export async function sharedStarter(
  launch: Launch,
  options: ConnectOptions,
  { agentDir, onUnusable, onChange, ...use }: HubUse,
): Promise<(() => ServerProcess) | undefined> {
  const { definition, maxMessageBytes, signal } = options;
  let takeFirst: () => Socket | undefined;
  try {
    takeFirst = forOne(await openHub(agentDir, use.isWanted), signal);
  } catch (error) {
    if (!(error instanceof HubUnusable)) throw error;
    onUnusable(error.message);
    return undefined;
  }
  const attach: Attach = {
    ...use,
    launch: { ...launch, cwd: await realpath(launch.cwd).catch(() => launch.cwd) },
    offer: canonical([
      definition.protocol,
      capabilitiesOf(options),
      options.roots ?? null,
      // The person said yes to these files, not to those with which a process was started before.
      definition.agreedScripts ?? null,
    ]),
    label: definition.name,
    maxMessageBytes,
    pid: process.pid,
  };
  return () => {
    const first = takeFirst();
    const link = first ? Promise.resolve(first) : openHub(agentDir);
    return new SharedServerProcess(link, attach, onChange);
  };
}

export class SharedServerProcess extends EventEmitter implements ServerProcess {
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly stderr: Readable;
  pid: number | undefined;
  /** Undefined until the hub has answered. */
  sharing: Sharing | undefined;
  isLost = false;
  #socket: Socket | undefined;
  readonly #open: Promise<Socket>;
  readonly #frames = new FrameReader<FromHub>();
  readonly #onSharing: () => void;
  readonly #server: string;
  readonly #maxMessageBytes: number;
  #isOver = false;
  #how: Leave = "keep";

  /** `hub`: a connection that nobody else uses. `onSharing`: another session came or left. */
  constructor(hub: Promise<Socket>, attach: Attach, onSharing: () => void) {
    super();
    this.#onSharing = onSharing;
    this.#server = attach.label;
    this.#maxMessageBytes = attach.maxMessageBytes;
    this.#open = hub.then((socket) => this.#begin(socket, attach));
    this.#open.catch((error: unknown) => this.#fail(messageOf(error), undefined));
    const resume = (): void => void this.#socket?.resume();
    this.stdout = new Readable({ read: resume });
    this.stderr = new Readable({ read: resume });
    this.stdin = new Writable({
      writev: (chunks, done) =>
        this.#send(
          chunks.map(({ chunk }) => chunk as Buffer),
          done,
        ),
      final: (done) => {
        this.leave(this.#how);
        done();
      },
    });
  }

  /** Ends this session's use of the server. */
  leave(how: Leave): void {
    this.#how = how;
    if (this.#isOver) return;
    this.#socket?.end(controlFrame({ do: "leave", how }));
    this.#finish(0, null);
  }

  /** As of a child process. */
  unref(): void {
    this.#socket?.unref();
  }

  #begin(socket: Socket, attach: Attach): Socket {
    if (this.#isOver) {
      socket.destroy();
      return socket;
    }
    this.#socket = socket;
    // The hub may have died since it was asked: then the socket tells nothing any more.
    if (socket.destroyed) {
      this.#lost();
      return socket;
    }
    socket.on("data", (chunk: Buffer) => this.#take(chunk));
    socket.on("close", () => this.#lost());
    socket.write(controlFrame({ do: "attach", ...attach }));
    const silence = setTimeout(
      () => this.#lost("the hub of shared servers does not answer"),
      LIMITS.hubStartMs,
    );
    for (const event of ["spawn", "error", "exit"]) this.once(event, () => clearTimeout(silence));
    return socket;
  }

  #send(chunks: readonly Buffer[], done: (error?: Error | null) => void): void {
    this.#open.then(
      (socket) => {
        if (!socket.writable) {
          done(Object.assign(new Error("the shared server is gone"), { code: "EPIPE" }));
          return;
        }
        let bytes = 0;
        for (const chunk of chunks) bytes += chunk.length;
        socket.cork();
        socket.write(headOf("data", bytes));
        const [last] = chunks.slice(-1);
        for (const chunk of chunks.slice(0, -1)) socket.write(chunk);
        socket.write(last ?? Buffer.alloc(0), (error) => done(error));
        socket.uncork();
      },
      () => done(Object.assign(new Error("there is no hub of shared servers"), { code: "EPIPE" })),
    );
  }

  #take(chunk: Buffer): void {
    // The frames are broken then: of the piece in which it ended the rest was not read.
    if (this.#isOver) return;
    try {
      for (const came of this.#frames.push(chunk)) {
        if (this.#isOver) return;
        if (came.kind === "control") this.#told(came.message);
        else if (!(came.kind === "data" ? this.stdout : this.stderr).push(came.piece)) this.#socket?.pause();
      }
    } catch (error) {
      this.#socket?.destroy(error instanceof Error ? error : undefined);
    }
  }

  #told(message: FromHub): void {
    if (message.is === "attached") {
      this.pid = message.pid;
      this.sharing = { sessions: message.sessions, since: message.since };
      this.emit("spawn");
    } else if (message.is === "sessions") {
      if (!this.sharing || this.sharing.sessions === message.sessions) return;
      this.sharing = { ...this.sharing, sessions: message.sessions };
      this.#onSharing();
    } else if (message.is === "exit") this.#finish(message.code, message.signal);
    else if (message.is === "refused") this.#fail(message.message, message.code);
    else if (message.is === "dropped") {
      // As if this session had read it: whoever reads the output says which limit it was.
      if (message.isTooLong) this.stdout.destroy(new TooLarge(this.#maxMessageBytes));
      else this.#lost(message.why);
    }
  }

  /** The process could not be started. `code`: as the system says it; undefined: it is the hub that says no. */
  #fail(why: string, code: string | undefined): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#socket?.destroy();
    for (const output of [this.stdout, this.stderr]) output.push(null);
    this.emit(
      "error",
      code === undefined
        ? new ThreadsError("connect_failed", `${this.#server} could not be connected: ${why}.`, {
            remedy: `${HUB_LOG} in the agent folder says more.`,
            data: { server: this.#server },
          })
        : Object.assign(new Error(why), { code }),
    );
  }

  #lost(why?: string): void {
    this.isLost = why === undefined && !this.#isOver;
    this.#finish(null, null, why ?? "lost its connection to the hub of shared servers");
  }

  #finish(code: number | null, signal: NodeJS.Signals | null, why?: string): void {
    if (this.#isOver) return;
    if (this.sharing === undefined && why !== undefined) {
      this.#fail(why, undefined);
      return;
    }
    this.#isOver = true;
    let open = 2;
    for (const output of [this.stdout, this.stderr]) {
      output.once("close", () => {
        open--;
        if (open === 0) this.emit("close", code, signal);
      });
      output.push(null);
    }
    // What still comes is dropped. A connection that stays paused would never close, and no read resumes it any more.
    this.#socket?.resume();
    this.emit("exit", code, signal, why);
  }
}
