/**
 * The HTTP servers on loopback to which the browser brings the answer to a sign-in. Every program and every web page on this
 * machine can send requests to one: it takes a GET for a sign-in that waits, with the host, the path and the state of that
 * sign-in, and nothing else. Owns: the page that it answers, and that sign-ins with the same port share a server.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { codeOf } from "../../../shared/files/read-regular.ts";
import { settledWithin } from "../../../shared/pace/abort.ts";
import { isSameState } from "../model/model.ts";

/** How the sign-in ended, as far as it is known when the browser gets its page. */
type PageKind = "ok" | "failed" | "received" | "unknown";

const TEXTS: { readonly [K in PageKind]: { title: string; text: string } } = {
  ok: { title: "Signed in", text: "You can close this page and go back to Pi." },
  failed: { title: "Not signed in", text: "Go back to Pi: it says why, and what helps." },
  received: { title: "Almost done", text: "Go back to Pi: it says how the sign-in ends." },
  unknown: {
    title: "Not signed in",
    text: "Pi does not wait for this answer. Begin the sign-in again, and use the page that it opens.",
  },
};

const STYLE =
  ":root{color-scheme:light dark}body{font:1.1rem/1.5 system-ui,sans-serif;margin:20vh auto;max-width:32rem;padding:0 1rem}";

const ESCAPES: Record<string, string> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

export const escapeHtml = (text: string): string => text.replace(/[&<>"']/g, (char) => ESCAPES[char] ?? "");

export function pageOf(kind: PageKind): string {
  const title = escapeHtml(TEXTS[kind].title);
  const text = escapeHtml(TEXTS[kind].text);
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>${title}</title><style>${STYLE}</style></head><body><h1>${title}</h1><p>${text}</p></body></html>\n`;
}

/** No script, no frame, no form, no request to anywhere; the address with the code is neither kept nor passed on. */
const PAGE_HEADERS = {
  "content-type": "text/html; charset=utf-8",
  "cache-control": "no-store",
  "content-security-policy":
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  connection: "close",
} as const;

export interface Waiter {
  redirectUri: string;
  state: string;
  /** Takes the answer. A second answer with the same state counts as the first. True: the user is signed in. */
  answer(parameters: URLSearchParams): Promise<boolean>;
}

interface CallbackTimes {
  /** The browser waits this long for its last page, which says how the sign-in ended. */
  pageMs: number;
  /** One connection to the listener, from its start to its end. */
  connectionMs: number;
}

/** Room for a long code in the address, and for the headers of a browser. */
const HEADER_BYTES = 16 * 1_024;
const CONNECTIONS = 20;

type Decision =
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

export type CallbackServer = Awaited<ReturnType<typeof openCallback>>;

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
export async function openCallback(address: string, port: number, { pageMs, connectionMs }: CallbackTimes) {
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
    /** Settles when nothing is open any more. */
    closed,
    /** Takes no more connections. A page that is on its way still arrives. */
    close: () => void server.close(),
    /** Ends the connections, too. Settles when nothing is open. */
    end: async () => {
      if (server.listening) server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

/** The share of one sign-in in a listener, or in both of its host. It ends with the signal that was given for it. */
export interface Listening {
  port: number;
  wait(waiter: Waiter): void;
}

const IPV4 = "127.0.0.1";
const IPV6 = "::1";
/** A free port of one address may be busy at the other. */
const FREE_PORT_TRIES = 3;
/** This machine has no such address. */
const NO_ADDRESS = ["EADDRNOTAVAIL", "EAFNOSUPPORT"];

interface Shared {
  opening: Promise<CallbackServer>;
  users: number;
}

export class Listeners {
  readonly #times: CallbackTimes;
  readonly #shared = new Map<string, Shared>();
  readonly #open = new Set<CallbackServer>();

  constructor(times: CallbackTimes) {
    this.#times = times;
  }

  /**
   * Listens at the host of a redirect URI, for `localhost` at both loopback addresses, until the signal fires.
   * `port` 0: any free one. Rejects with Node's error.
   */
  async open(hostname: string, port: number, signal: AbortSignal): Promise<Listening> {
    if (hostname !== "localhost") {
      const address = hostname.replace(/^\[|\]$/g, "");
      return this.#share(address, port, signal);
    }
    for (let nth = 1; ; nth++) {
      const attempt = new AbortController();
      const both = AbortSignal.any([signal, attempt.signal]);
      const first = await this.#share(IPV4, port, both);
      try {
        const second = await this.#share(IPV6, first.port, both);
        const wait = (waiter: Waiter): void => {
          first.wait(waiter);
          second.wait(waiter);
        };
        return { port: first.port, wait };
      } catch (error) {
        if (NO_ADDRESS.includes(codeOf(error) ?? "")) return first;
        attempt.abort();
        if (port !== 0 || nth === FREE_PORT_TRIES) throw error;
      }
    }
  }

  async end(): Promise<void> {
    await Promise.all([...this.#open].map((server) => server.end()));
  }

  async #share(address: string, port: number, signal: AbortSignal): Promise<Listening> {
    signal.throwIfAborted();
    const known = port === 0 ? undefined : this.#shared.get(`${address} ${port}`);
    const shared = known ?? { opening: this.#openServer(address, port), users: 0 };
    if (port !== 0) this.#shared.set(`${address} ${port}`, shared);
    shared.users++;
    const server = await shared.opening.catch((error: unknown) => {
      this.#forget(address, port, shared);
      throw error;
    });
    if (!known) this.#shared.set(`${address} ${server.port}`, shared);
    let mine: Waiter | undefined;
    const leave = (): void => {
      if (mine) server.waiters.delete(mine);
      if (--shared.users > 0) return;
      this.#forget(address, server.port, shared);
      server.close();
    };
    if (signal.aborted) leave();
    else signal.addEventListener("abort", leave, { once: true });
    signal.throwIfAborted();
    return {
      port: server.port,
      wait: (waiter) => {
        mine = waiter;
        server.waiters.add(waiter);
      },
    };
  }

  #forget(address: string, port: number, shared: Shared): void {
    const key = `${address} ${port}`;
    if (this.#shared.get(key) === shared) this.#shared.delete(key);
  }

  async #openServer(address: string, port: number): Promise<CallbackServer> {
    const server = await openCallback(address, port, this.#times);
    this.#open.add(server);
    void server.closed.then(() => this.#open.delete(server));
    return server;
  }
}
