/** Owns: an HTTP server on a bare socket. It reads requests and writes bytes, so its answers can break any rule. */
import { type AddressInfo, createServer, type Socket } from "node:net";
import { onTestFinished } from "vitest";
import { type Message, resultOf } from "./http-server.ts";

export interface RawRequest {
  /** `POST`, `GET` or `DELETE`. */
  http: string;
  path: string;
  /** The body of a POST; empty for other methods. */
  message: Message;
}

export type RawAnswer = (socket: Socket, request: RawRequest, nth: number) => void;

export interface RawServer {
  origin: string;
  url: string;
  /** One line per request, oldest first, for example `POST initialize` or `GET`. */
  log: readonly string[];
  /** Number of connections that are open now. */
  readonly open: number;
  /** Highest number of connections that were open at once. */
  readonly mostOpen: number;
}

const TLS_HANDSHAKE = 0x16;

/** Writes `text` every 20 ms until the connection is closed. */
export function trickle(socket: Socket, text: string): void {
  const timer = setInterval(() => {
    if (socket.writable) socket.write(text);
  }, 20);
  socket.once("close", () => clearInterval(timer));
}

const withLength = (status: string, headers: string, body: string): string =>
  `HTTP/1.1 ${status}\r\n${headers}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;

/** Answers as a plain server without sessions: JSON to requests, 202 to notifications, 405 to GET. */
export const answerPlainly: RawAnswer = (socket, { http, message }) => {
  if (http !== "POST") socket.write(withLength("405 No", "", ""));
  else if (message.id === undefined) socket.write(withLength("202 Accepted", "", ""));
  else socket.write(withLength("200 OK", "content-type: application/json\r\n", resultOf(message)));
};

/** Gives `answer` to requests with the method, and plain answers to all others. */
export const badly =
  (method: string, answer: RawAnswer): RawAnswer =>
  (socket, request, nth) =>
    (request.message.method === method ? answer : answerPlainly)(socket, request, nth);

/** The parameter `nth` of `answer` counts the earlier requests. */
export async function serveRaw(answer: RawAnswer): Promise<RawServer> {
  const sockets = new Set<Socket>();
  const log: string[] = [];
  let mostOpen = 0;
  const server = createServer((socket) => {
    sockets.add(socket);
    mostOpen = Math.max(mostOpen, sockets.size);
    socket.on("error", () => undefined);
    socket.on("close", () => sockets.delete(socket));
    let unread = Buffer.alloc(0);
    socket.on("data", (chunk: Buffer) => {
      // The client's probe for TLS gets its answer at once.
      if (chunk[0] === TLS_HANDSHAKE) socket.destroy();
      unread = Buffer.concat([unread, chunk]);
      for (;;) {
        const end = unread.indexOf("\r\n\r\n");
        if (end === -1) return;
        const head = unread.toString("latin1", 0, end);
        const length = Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? 0);
        if (unread.length < end + 4 + length) return;
        const body = unread.toString("utf8", end + 4, end + 4 + length);
        unread = unread.subarray(end + 4 + length);
        const [, http = "", path = ""] = /^(\S+) (\S+)/.exec(head) ?? [];
        const message = body === "" ? {} : (JSON.parse(body) as Message);
        log.push(message.method ? `${http} ${message.method}` : http);
        answer(socket, { http, path, message }, log.length - 1);
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    origin,
    url: `${origin}/mcp`,
    log,
    get open() {
      return sockets.size;
    },
    get mostOpen() {
      return mostOpen;
    },
  };
}
