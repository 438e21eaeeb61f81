/**
 * Owns: the shared code of hostile HTTP servers: a plain MCP server without sessions, whose parts a program replaces.
 * Must not: prevent bad behaviour.
 * Called by: the programs in this folder. The port is the only line on stdout; the end of stdin ends the program.
 */
import { createServer } from "node:http";
import { createServer as createRawServer } from "node:net";
import { hello, seen, text, tool } from "../lib.mjs";

export { seen, text, tool };
export const { CANARY_URL } = process.env;

export const announce = (server) =>
  server.listen(0, "127.0.0.1", () => process.stdout.write(`${server.address().port}\n`));
process.stdin.on("end", () => process.exit(0)).resume();

export const resultOf = (message, on = {}, tools = [tool("work")]) => {
  const answers = {
    initialize: () => hello(message),
    "tools/list": () => ({ tools }),
    "tools/call": () => text("done"),
    ...on,
  };
  return answers[message.method]?.(message) ?? {};
};

export const json = (response, body, headers = {}) =>
  response.writeHead(200, { "content-type": "application/json", ...headers }).end(body);
export const replyOf = (message, result = resultOf(message)) =>
  JSON.stringify({ jsonrpc: "2.0", id: message.id, result });
export const events = (response, headers = {}) =>
  response.writeHead(200, { "content-type": "text/event-stream", ...headers });

/** Answers as a plain server: JSON to requests, 202 to notifications, 405 to GET. */
export function answerWell(message, request, response) {
  if (request.method === "DELETE") response.writeHead(200).end();
  else if (request.method !== "POST") response.writeHead(405).end();
  else if (message.id === undefined) response.writeHead(202).end();
  else json(response, replyOf(message));
}

/**
 * Starts a server. `on[method](message, request, response)` answers that JSON-RPC method, `on.GET` answers the stream,
 * and `on.any` answers every other JSON-RPC method. All other requests get a correct answer.
 */
export function serve(on = {}) {
  const server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (chunk) => {
      body += chunk;
    });
    request.on("end", () => {
      const message = body === "" ? {} : JSON.parse(body);
      const what = message.method ?? request.method;
      seen(what);
      const own = on[what] ?? (message.method === undefined ? undefined : on.any);
      if (own) own(message, request, response);
      else answerWell(message, request, response);
    });
    response.on("error", () => undefined);
  });
  announce(server);
  return server;
}

/**
 * Starts a server for answers that Node refuses to send: `answer(message, socket, head)` writes the response's bytes.
 */
export function serveRaw(answer) {
  announce(
    createRawServer((socket) => {
      let received = "";
      socket.setEncoding("latin1").on("error", () => undefined);
      socket.on("data", (chunk) => {
        received += chunk;
        for (;;) {
          const end = received.indexOf("\r\n\r\n");
          if (end < 0) return;
          const head = received.slice(0, end);
          const length = Number(/content-length: *(\d+)/i.exec(head)?.[1] ?? 0);
          if (received.length < end + 4 + length) return;
          const body = received.slice(end + 4, end + 4 + length);
          received = received.slice(end + 4 + length);
          const message = body === "" ? {} : JSON.parse(body);
          seen(message.method ?? head.split(" ")[0]);
          answer(message, socket, head);
        }
      });
    }),
  );
}

export const response = (status, headers, body = "") =>
  `HTTP/1.1 ${status} X\r\n${[...headers, `content-length: ${Buffer.byteLength(body)}`].join("\r\n")}\r\n\r\n${body}`;

/** Returns a plain server's answer as raw HTTP. */
export const wellRaw = (message, headers = []) =>
  message.id === undefined
    ? response(message.method === undefined ? 405 : 202, headers)
    : response(200, ["content-type: application/json", ...headers], replyOf(message));
