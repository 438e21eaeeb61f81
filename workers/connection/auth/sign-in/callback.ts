/**
 * The HTTP server at one loopback address and port, to which the browser brings the answer to a sign-in. Every program
 * and every web page on this machine can send requests to it: it takes a GET for a sign-in that waits, with the host,
 * the path and the state of that sign-in, and nothing else.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { settledWithin } from "../../../shared/pace/abort.ts";
import { isSameState } from "../model/model.ts";
import { PAGE_HEADERS, type PageKind, pageOf } from "./callback-page.ts";
import type { SignInLimits } from "./contract.ts";

/** A sign-in that waits for its answer. */
export interface Waiter {
  redirectUri: string;
  state: string;
  /** Takes the answer. A second answer with the same state counts as the first. True: the user is signed in. */
  answer(parameters: URLSearchParams): Promise<boolean>;
}

export type CallbackTimes = Pick<SignInLimits, "pageMs" | "connectionMs">;

/** Room for a long code in the address, and for the headers of a browser. */
const HEADER_BYTES = 16 * 1_024;
const CONNECTIONS = 20;

/** What the server does with a request. */
export type Decision =
  | { status: 400 | 404 | 405 | 421; page: PageKind }
  | { waiter: Waiter; parameters: URLSearchParams };

type Asked = Pick<IncomingMessage, "method" | "url"> & { host: string | undefined };

/** Pure. A foreign `Host` is that of a web page whose name was pointed at this machine (DNS rebinding). */
export function decide({ method, url = "", host }: Asked, waiters: Iterable<Waiter>): Decision {
  const places = [...waiters].map((waiter) => ({ waiter, place: new URL(waiter.redirectUri) }));
  const here = places.filter(({ place }) => place.host === host?.toLowerCase());
  if (here.length === 0) return { status: 421, page: "unknown" };
  if (method !== "GET") return { status: 405, page: "unknown" };
  const [, path, query = ""] = /^([^?]*)(?:\?(.*))?$/s.exec(url) ?? [];
  const there = here.filter(({ place }) => place.pathname === path);
  if (there.length === 0) return { status: 404, page: "unknown" };
  const parameters = new URLSearchParams(query);
  const [state, ...more] = parameters.getAll("state");
  const found = there.find(({ waiter }) => state !== undefined && isSameState(state, waiter.state));
  if (!found || more.length > 0) return { status: 400, page: "unknown" };
  return { waiter: found.waiter, parameters };
}

function sendPage(response: ServerResponse, status: number, page: PageKind): void {
  const allow = status === 405 ? { allow: "GET" } : {};
  response.writeHead(status, { ...PAGE_HEADERS, ...allow }).end(pageOf(page));
}

async function handle(
  request: IncomingMessage,
  response: ServerResponse,
  { waiters, pageMs }: { waiters: Iterable<Waiter>; pageMs: number },
): Promise<void> {
  const { method, url, headers } = request;
  const decision = decide({ method, url, host: headers.host }, waiters);
  if ("status" in decision) return sendPage(response, decision.status, decision.page);
  const outcome = decision.waiter.answer(decision.parameters);
  if (!(await settledWithin(outcome, pageMs))) return sendPage(response, 200, "received");
  sendPage(response, 200, (await outcome) ? "ok" : "failed");
}

export interface CallbackServer {
  port: number;
  waiters: Set<Waiter>;
  /** Takes no more connections. A page that is on its way still arrives. */
  close(): void;
  /** Ends the connections, too. Settles when nothing is open. */
  end(): Promise<void>;
  /** Settles when nothing is open any more. */
  closed: Promise<void>;
}

function guardConnections(server: Server, connectionMs: number): void {
  server.maxConnections = CONNECTIONS;
  server.maxRequestsPerSocket = 1;
  server.on("connection", (socket) => {
    // Node's own limits begin anew with each request and are looked at every 30 s.
    const limit = setTimeout(() => socket.destroy(), connectionMs).unref();
    socket.unref();
    socket.once("close", () => clearTimeout(limit));
  });
}

/** `port` 0: any free one. Rejects with Node's error, for example EADDRINUSE. */
export async function openCallback(
  address: string,
  port: number,
  { pageMs, connectionMs }: CallbackTimes,
): Promise<CallbackServer> {
  const waiters = new Set<Waiter>();
  const server = createServer({ maxHeaderSize: HEADER_BYTES }, (request, response) => {
    request.resume();
    // The browser may go away at any time.
    response.on("error", () => response.destroy());
    void handle(request, response, { waiters, pageMs });
  });
  guardConnections(server, connectionMs);
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen({ host: address, port, exclusive: true }, () => {
      server.off("error", reject);
      resolve();
    });
  });
  // A failed accept, for example without free file descriptors, must not end the worker: the user can still paste.
  server.on("error", () => undefined);
  // A sign-in that nobody finishes must not keep the process alive.
  server.unref();
  const closed = new Promise<void>((resolve) => server.once("close", resolve));
  const bound = server.address();
  return {
    port: bound !== null && typeof bound === "object" ? bound.port : port,
    waiters,
    closed,
    close: () => void server.close(),
    end: async () => {
      if (server.listening) server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
