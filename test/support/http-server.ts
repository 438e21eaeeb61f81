/** Owns: servers on loopback for the HTTP tests. Each has one handler and keeps every request; tests close them all. */
import { createServer, type IncomingHttpHeaders, type RequestListener, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { LIMITS } from "../../src/shared/protocol/limits.ts";
import { parseEntry, type ServerDefinition } from "../../workers/connection/config/entry/definition.ts";
import type { ConnectOptions } from "../../workers/connection/mcp/connection.ts";
import { secretsOf } from "../../workers/connection/secrets/find.ts";
import { createRedactor } from "../../workers/connection/secrets/redact.ts";
import { onCleanup } from "./cleanup.ts";
import { type Message, resultOf } from "./mcp-answers.ts";

export { type Message, resultOf } from "./mcp-answers.ts";

export interface Asked {
  http: string;
  path: string;
  headers: IncomingHttpHeaders;
  /** The body of a POST, if it is a JSON object; else empty. */
  message: Message;
}

export interface TestServer {
  origin: string;
  url: string;
  asked: Asked[];
  /** One line per request, oldest first, for example `POST initialize` or `GET`. */
  readonly log: string[];
  close(): Promise<void>;
}

export type Handler = (asked: Asked, response: ServerResponse, nth: number) => void;

/** The handler's `nth` counts the earlier requests with the same HTTP method. */
export async function serve(handler: Handler, tls?: { key: string; cert: string }): Promise<TestServer> {
  const asked: Asked[] = [];
  const listener: RequestListener = (request, response) => {
    let body = "";
    request.setEncoding("utf8");
    request.on("data", (chunk: string) => {
      body += chunk;
    });
    request.on("end", () => {
      const { method: http = "", url: path = "", headers } = request;
      const nth = asked.filter((one) => one.http === http).length;
      const one = { http, path, headers, message: body.startsWith("{") ? (JSON.parse(body) as Message) : {} };
      asked.push(one);
      handler(one, response, nth);
    });
  };
  const server = tls ? createTlsServer(tls, listener) : createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const origin = `${tls ? "https" : "http"}://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const close = async (): Promise<void> => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  onCleanup(close);
  return {
    origin,
    url: `${origin}/mcp`,
    asked,
    get log() {
      return asked.map(({ http, message }) => (message.method ? `${http} ${message.method}` : http));
    },
    close,
  };
}

/** Answers as a plain server without sessions: JSON to requests, 202 to notifications, 405 to GET. */
export function answerWell({ http, message }: Asked, response: ServerResponse, headers = {}): void {
  if (http === "DELETE") response.writeHead(200).end();
  else if (http !== "POST") response.writeHead(405).end();
  else if (message.id === undefined) response.writeHead(202).end();
  else response.writeHead(200, { "content-type": "application/json", ...headers }).end(resultOf(message));
}

export const startEvents = (response: ServerResponse): ServerResponse =>
  response.writeHead(200, { "content-type": "text/event-stream" });

/** Options for `connect`, and the notes that `connect` gives. */
export function connectOptions(
  entry: Record<string, unknown>,
  more: Partial<ConnectOptions> = {},
): ConnectOptions & { notes: string[]; definition: ServerDefinition } {
  const parsed = parseEntry("web", entry, { file: "/mcp.json", origin: "user" });
  if (!parsed.definition) throw new Error(JSON.stringify(parsed.mistakes));
  const notes: string[] = [];
  return {
    definition: parsed.definition,
    cwd: "/",
    npxCacheFile: "/nowhere/npx.json",
    maxMessageBytes: LIMITS.messageBytes,
    onListChanged: () => undefined,
    signal: new AbortController().signal,
    onSpawn: () => undefined,
    onExit: () => undefined,
    onNote: (note) => notes.push(note),
    onLogMessage: () => undefined,
    onClosed: () => undefined,
    onSecrets: () => undefined,
    redact: createRedactor(secretsOf(parsed.definition.target, parsed.definition.target)),
    ...more,
    notes,
  };
}
