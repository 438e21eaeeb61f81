/** An HTTP server on a bare socket, so that its answers can break any rule: it reads requests and writes bytes. */
import { type AddressInfo, createServer, type Socket } from "node:net";
import { onTestFinished } from "vitest";
import { type Message, resultOf } from "./http-server.ts";

export interface RawRequest {
  /** `POST`, `GET`, `DELETE`. */
  http: string;
  path: string;
  /** Of a POST. */
  message: Message;
}

export type RawAnswer = (socket: Socket, request: RawRequest, nth: number) => void;

export interface RawServer {
  origin: string;
  url: string;
  /** `POST initialize`, `GET`, in order. */
  log: readonly string[];
  /** Connections that are open now. */
  readonly open: number;
  /** The most that were ever open. */
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

/** As a plain server without sessions: JSON to requests, 202 to notifications, 405 to GET. */
export const answerPlainly: RawAnswer = (socket, { http, message }) => {
  if (http !== "POST") socket.write(withLength("405 No", "", ""));
  else if (message.id === undefined) socket.write(withLength("202 Accepted", "", ""));
  else socket.write(withLength("200 OK", "content-type: application/json\r\n", resultOf(message)));
};

/** Answers well, but requests of that method as told. */
export const badly =
  (method: string, answer: RawAnswer): RawAnswer =>
  (socket, request, nth) =>
    (request.message.method === method ? answer : answerPlainly)(socket, request, nth);

/** `nth` of `answer`: how many requests came before. */
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
      // The probe that asks whether a server speaks TLS gets its answer at once.
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
