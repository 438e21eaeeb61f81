/**
 * How agents reach `serve`: over stdin and stdout, or over HTTP on loopback. Owns: who may speak over HTTP, and the bounds of
 * sessions, bodies and connections. Built as an output of its own, which `serve` alone loads.
 *
 * A page in a browser of the user can send requests to loopback too. None gets an answer: its Host or Origin is another one
 * (DNS rebinding), and no page knows the token.
 */
import { createHash, randomUUID, timingSafeEqual } from "node:crypto";
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { pipeline, Readable } from "node:stream";
import {
  createMcpHandler,
  isInitializeRequest,
  isLegacyRequest,
  localhostAllowedHostnames,
  localhostAllowedOrigins,
  type McpHttpHandler,
  type Server,
  validateHostHeader,
  validateOriginHeader,
  WebStandardStreamableHTTPServerTransport,
} from "@modelcontextprotocol/server";
import { StdioServerTransport, serveStdio } from "@modelcontextprotocol/server/stdio";
import { createServer } from "./protocol.ts";
import type { Listing, ServedTools } from "./tools.ts";

/** Sessions of clients up to 2025-11-25, and subscriptions of later ones. */
const SESSIONS = 32;
const CONNECTIONS = 128;
const LINE_BYTES = 10 * 1024 * 1024;
const BODY_BYTES = 4 * 1024 * 1024;
/** The time in which a request must have come. */
const REQUEST_MS = 30_000;

/** A server for one client, which tells of changes once the client has greeted. */
function serverFor(tools: ServedTools, era: "modern" | "legacy"): { server: Server; listing: Listing } {
  const listing = tools.listing({ isFixed: era === "modern" });
  const server = createServer(tools, listing, { era });
  let isReady = era === "modern";
  server.oninitialized = () => {
    isReady = true;
  };
  listing.onChange = () => {
    // The client may have gone.
    if (isReady) server.sendToolListChanged().catch(() => undefined);
  };
  return { server, listing };
}

/** Serves one client. Settles when it has closed stdin, or can be served no longer. */
export async function overStdio(tools: ServedTools, onNote: (note: string) => void): Promise<void> {
  const { promise: over, resolve } = Promise.withResolvers<void>();
  process.stdin.once("end", resolve).once("close", resolve);
  const transport = new StdioServerTransport(process.stdin, process.stdout, { maxBufferSize: LINE_BYTES });
  const handle = serveStdio(({ era }) => serverFor(tools, era).server, {
    transport,
    onerror: ({ message }) => onNote(message),
  });
  // A line beyond the limit closes the transport, which then reads stdin no further and so never sees its end.
  const closed = transport.onclose;
  transport.onclose = () => {
    closed?.();
    resolve();
  };
  await over;
  await handle.close();
}

interface Session {
  server: Server;
  transport: WebStandardStreamableHTTPServerTransport;
  listing: Listing;
  usedAt: number;
  /** POSTs that are being answered. */
  open: number;
}

/** An answer that is not the SDK's. */
const refusal = (status: number, message: string, headers: Record<string, string> = {}): Response =>
  Response.json({ jsonrpc: "2.0", id: null, error: { code: -32_000, message } }, { status, headers });

/** The sessions of clients up to 2025-11-25. */
class Sessions {
  readonly #tools: ServedTools;
  readonly #sessions = new Map<string, Session>();

  constructor(tools: ServedTools) {
    this.#tools = tools;
  }

  /** `closed`: aborts with the end of the response. */
  async answer(request: Request, closed: AbortSignal): Promise<Response> {
    const id = request.headers.get("mcp-session-id");
    const known = id === null ? undefined : this.#sessions.get(id);
    // The client then begins a new one (MCP 2025-11-25, basic/transports, session management).
    if (id !== null && !known) return refusal(404, "Session not found");
    const session = known ?? (await this.#begin(request));
    if (session instanceof Response) return session;
    session.usedAt = performance.now();
    // A GET stays open without being busy. What the transport answers to a call is a stream: the call has only begun then.
    if (request.method === "POST" && !closed.aborted) {
      session.open++;
      closed.addEventListener("abort", () => session.open--, { once: true });
    }
    try {
      return await session.transport.handleRequest(request);
    } finally {
      // The SDK has refused to begin it, so no client will come back to it.
      if (session.transport.sessionId === undefined) this.#drop(session);
    }
  }

  async #begin(request: Request): Promise<Session | Response> {
    const body: unknown = await request
      .clone()
      .json()
      .catch(() => undefined);
    if (!isInitializeRequest(body)) return refusal(400, "Bad Request: a session begins with initialize");
    if (!this.#makeRoom()) return refusal(503, "Too many sessions are busy");
    const { server, listing } = serverFor(this.#tools, "legacy");
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => void this.#sessions.set(id, session),
      onsessionclosed: (id) => this.#end(id),
    });
    const session: Session = { server, transport, listing, usedAt: performance.now(), open: 0 };
    await server.connect(transport);
    return session;
  }

  /** Ends the session that was used least recently and answers no request. False: each answers one. */
  #makeRoom(): boolean {
    if (this.#sessions.size < SESSIONS) return true;
    const [oldest] = [...this.#sessions]
      .filter(([, { open }]) => open === 0)
      .sort(([, a], [, b]) => a.usedAt - b.usedAt);
    if (!oldest) return false;
    this.#end(oldest[0]);
    return true;
  }

  #end(id: string): void {
    const session = this.#sessions.get(id);
    this.#sessions.delete(id);
    if (session) this.#drop(session);
  }

  #drop({ server, listing }: Session): void {
    this.#tools.drop(listing);
    server.close().catch(() => undefined);
  }
}

/** Undefined: the body is longer than the limit. */
async function bodyOf(request: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request) {
    bytes += (chunk as Buffer).length;
    if (bytes > BODY_BYTES) return undefined;
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks);
}

const digest = (text: string): Buffer => createHash("sha256").update(text).digest();

const PATH = "/mcp";
const METHODS = ["POST", "GET", "DELETE"];

/** Why the request gets no answer of the protocol; undefined if it gets one. */
function refused({ headers, method = "", url = "" }: IncomingMessage, token: Buffer): Response | undefined {
  if (!validateHostHeader(headers.host, localhostAllowedHostnames()).ok)
    return refusal(403, "Host is not allowed");
  if (!validateOriginHeader(headers.origin, localhostAllowedOrigins()).ok)
    return refusal(403, "Origin is not allowed");
  const [, given = ""] = /^Bearer +([!-~]+)$/i.exec(headers.authorization ?? "") ?? [];
  if (!timingSafeEqual(digest(given), token))
    return refusal(401, "The token is missing or wrong", { "WWW-Authenticate": "Bearer" });
  if (url.split("?", 1)[0] !== PATH) return refusal(404, `The address is ${PATH}`);
  return METHODS.includes(method)
    ? undefined
    : refusal(405, "Method not allowed", { Allow: METHODS.join(", ") });
}

function send(answer: Response, response: ServerResponse): void {
  response.writeHead(answer.status, Object.fromEntries(answer.headers));
  if (!answer.body) {
    response.end();
    return;
  }
  // A stream without a message yet would keep the client waiting for its status.
  response.flushHeaders();
  // Each ends with the other: a session has one stream at a time, and a client that has gone may open another one.
  pipeline(Readable.fromWeb(answer.body as never), response, () => undefined);
}

export interface HttpEndpoint {
  url: string;
  close(): void;
}

/** Listens on 127.0.0.1. `port`: 0 for a free one. Rejects with the error of Node if that cannot be. */
export async function overHttp(
  tools: ServedTools,
  { port, token, onNote }: { port: number; token: string; onNote: (note: string) => void },
): Promise<HttpEndpoint> {
  const wanted = digest(token);
  const sessions = new Sessions(tools);
  // Nothing tells the requests of one modern client from those of another: all who have the token share a list.
  const listing = tools.listing({ isShared: true, isFixed: true });
  const modern: McpHttpHandler = createMcpHandler(({ era }) => createServer(tools, listing, { era }), {
    legacy: "reject",
    maxSubscriptions: SESSIONS,
    onerror: ({ message }) => onNote(message),
  });
  listing.onChange = () => modern.notify.toolsChanged();

  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const closed = new AbortController();
    response.once("close", () => closed.abort());
    const no = refused(request, wanted);
    const body = no ? undefined : await bodyOf(request);
    if (no || !body) {
      // What the client still sends is not read.
      response.setHeader("Connection", "close");
      return send(no ?? refusal(413, "The body is too long"), response);
    }
    const { method = "GET", headers, url } = request;
    const init = {
      method,
      headers: Object.entries(headers).flatMap(([name, value]) =>
        value === undefined ? [] : [[name, String(value)] as [string, string]],
      ),
      signal: closed.signal,
      ...(method === "POST" ? { body } : {}),
    };
    const asked = new Request(new URL(url ?? PATH, "http://127.0.0.1"), init);
    const isLegacy = await isLegacyRequest(asked);
    send(isLegacy ? await sessions.answer(asked, closed.signal) : await modern.fetch(asked), response);
  };

  const server = createHttpServer((request, response) => {
    answer(request, response).catch((error: Error) => {
      // The client has gone, or sent what is no request.
      if (!request.destroyed && !response.headersSent) onNote(error.message);
      response.destroy();
    });
  });
  server.maxConnections = CONNECTIONS;
  server.requestTimeout = REQUEST_MS;
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject).listen(port, "127.0.0.1", resolve);
  });
  // A connection that the system does not give, as without file descriptors, ends nothing.
  server.on("error", ({ message }) => onNote(message));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}${PATH}`,
    close: () => {
      void modern.close();
      server.close();
      server.closeAllConnections();
    },
  };
}
