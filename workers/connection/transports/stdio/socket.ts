/**
 * A server behind a socket of this machine: a Unix domain socket (unix(7)) or a named pipe of Windows, one JSON message a line as
 * over stdio. Owns: whether the socket may be trusted, and the connection as a process, whose end is the end of the connection.
 */
import { EventEmitter } from "node:events";
import { realpath, stat } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { dirname } from "node:path";
import { Readable, type Writable } from "node:stream";
import { ThreadsError } from "../../../../src/shared/protocol/errors.ts";
import { type Leave, UNUSED_TIMES } from "../../../shared/pace/pace.ts";
import type { ServerProcess } from "../../../shared/programs/processes.ts";
import type { SocketTarget } from "../../config/entry/definition.ts";
import type { Connection, ConnectOptions } from "../../mcp/connection.ts";
import { StdioTransport } from "./transport.ts";

/** Bytes of a path without its NUL, the least `sun_path` of sockaddr_un, on macOS: a system cuts a longer one, or refuses it. */
const PATH_BYTES = 103;
/** What a server has not read when the connection ends is given up after this time. */
const LAST_WRITE_MS = 500;

const OTHERS_WRITE = 0o002;
const STICKY = 0o1000;

const refused = (server: string, what: string, remedy: string): ThreadsError =>
  new ThreadsError("connect_failed", `${server}: ${what}.`, { remedy, data: { server } });

const WHY: Readonly<Record<string, (path: string) => [what: string, remedy: string]>> = {
  ENOENT: (path) => [`there is no socket at ${path}`, "Start its program, or correct the path in mcp.json."],
  ECONNREFUSED: (path) => [`nobody listens at ${path} any more`, "Start its program again."],
  EACCES: (path) => [`${path} may not be used by you (EACCES)`, "Change the rights of the socket."],
};

/** The sentence for an error of the system. */
function explained(
  server: string,
  path: string,
  { code = "", message }: NodeJS.ErrnoException,
): ThreadsError {
  const known = Object.hasOwn(WHY, code) ? WHY[code]?.(path) : undefined;
  const [what, remedy] = known ?? [
    `${path} cannot be connected: ${message}`,
    "Correct the path in mcp.json.",
  ];
  return refused(server, what, remedy);
}

/**
 * The path of the socket itself, without links. Whoever could put another socket in its place would be the server, so it must
 * belong to this user or to root, and nobody else may change the folders that lead to it.
 */
async function checkedSocket(server: string, path: string): Promise<string> {
  if (process.platform === "win32") {
    if (/^[\\/]{2}[.?][\\/]pipe[\\/]./.test(path)) return path;
    throw refused(server, `${path} is no named pipe`, "A pipe is named \\\\.\\pipe\\name.");
  }
  const fail = (error: NodeJS.ErrnoException): never => {
    throw explained(server, path, error);
  };
  const at = await realpath(path).catch(fail);
  const isOurs = (uid: number): boolean => uid === 0 || uid === process.getuid?.();
  const found = await stat(at).catch(fail);
  if (!found.isSocket()) throw refused(server, `${path} is no socket`, "Correct the path in mcp.json.");
  const remedy = "Have the program make its socket in a folder that is yours alone.";
  if (!isOurs(found.uid)) throw refused(server, `${path} belongs to another user`, remedy);
  if ((found.mode & OTHERS_WRITE) !== 0)
    throw refused(server, `${path} can be written by every user`, `chmod o-w ${at}`);
  for (let folder = dirname(at), isNearest = true; ; folder = dirname(folder), isNearest = false) {
    const { uid, mode } = await stat(folder).catch(fail);
    if (((mode & OTHERS_WRITE) !== 0 && (mode & STICKY) === 0) || (isNearest && !isOurs(uid)))
      throw refused(server, `another user can replace ${path}, by its folder ${folder}`, remedy);
    if (folder === dirname(folder)) break;
  }
  if (Buffer.byteLength(at) > PATH_BYTES)
    throw refused(server, `${path} is too long: a socket's path has at most ${PATH_BYTES} bytes`, "Move it.");
  return at;
}

/** The connection as a process: its events are those of Node's `ChildProcess`. */
class SocketProcess extends EventEmitter implements ServerProcess {
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly stderr = Readable.from([]);
  readonly #socket: Socket;

  constructor(server: string, path: string) {
    super();
    const socket = connect(path);
    this.#socket = socket;
    this.stdin = socket;
    this.stdout = socket;
    let isOpen = false;
    socket.once("connect", () => {
      isOpen = true;
      this.emit("spawn");
    });
    socket.on("error", (error) => {
      if (!isOpen) this.emit("error", explained(server, path, error));
    });
    socket.once("close", () => {
      if (isOpen) this.emit("exit", null, null, "closed its socket");
      this.emit("close");
    });
  }

  /** `retire`: at once. Otherwise what was sent still leaves. */
  leave(how: Leave): void {
    if (how === "retire") this.#socket.destroy();
    this.#socket.destroySoon();
    setTimeout(() => this.#socket.destroy(), LAST_WRITE_MS).unref();
  }

  unref(): void {
    this.#socket.unref();
  }
}

/** Throws `ThreadsError`; then it has left no connection open. */
export async function connectSocket({ socket }: SocketTarget, options: ConnectOptions): Promise<Connection> {
  const { definition, signal } = options;
  const server = definition.name;
  const path = await checkedSocket(server, socket);
  await options.standAside?.();
  if (signal.aborted)
    throw new ThreadsError("cancelled", `${server} was closed before it was connected.`, {
      data: { server },
    });
  const create = (): StdioTransport =>
    new StdioTransport({
      ...options,
      server,
      command: socket,
      cwd: dirname(path),
      spawn: () => new SocketProcess(server, path),
    });
  const first = create();
  first.spawn().catch(() => undefined);
  try {
    const { shakeHands } = await import("./handshake.ts");
    return await shakeHands(first, create, options);
  } catch (error) {
    await first.closeWithin(UNUSED_TIMES);
    throw error;
  }
}
