/**
 * One HTTP exchange over Node's own client. Owns: the way through a proxy, redirects within the origin, content
 * encodings, and which proxy a URL takes by the environment: Pi's own proxy settings do not reach a worker thread, and only
 * NO_PROXY makes an exception, as in curl: a loopback address alone does not. Knows nothing of MCP. `fetch` is not used, because it gives up on an answer or a silent stream after 300
 * s; to lift that limit or to use a proxy would take a copy of undici (940 KB, and not for Bun).
 */

import http, { type IncomingHttpHeaders, IncomingMessage } from "node:http";
import https from "node:https";
import { isIP, type LookupFunction, type OnReadOpts, Socket } from "node:net";
import { type Duplex, pipeline, type Readable } from "node:stream";
import tls, { createSecureContext, getCACertificates, type SecureContext } from "node:tls";
import { constants, createBrotliDecompress, createUnzip } from "node:zlib";
import manifest from "../../../package.json" with { type: "json" };
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { percentDecoded } from "../../../src/shared/text/reading.ts";
import { createReader, type Reader, wholeInTurn } from "../../shared/pace/turns.ts";
import type { Cookies } from "./cookies.ts";

export type Env = Readonly<Record<string, string | undefined>>;

/** A proxy answered but did not let the request through, or its variable is wrong. */
export class ProxyError extends Error {
  readonly status: number | undefined;

  constructor(message: string, status?: number) {
    super(message);
    this.name = "ProxyError";
    this.status = status;
  }
}

/** The host without the brackets of an IPv6 address, as sockets want it. */
export const bareHost = ({ hostname }: URL): string => hostname.replace(/^\[|\]$/g, "");

/**
 * Host and port at which a proxy listens, and the name that its certificate must have: Node would take that name from
 * the Host header, which names the server. An address has no such name.
 */
export function proxyAddress(proxy: URL): { host: string; port: string | number; servername: string } {
  const host = bareHost(proxy);
  const port = proxy.port || (proxy.protocol === "https:" ? 443 : 80);
  return { host, port, servername: isIP(host) === 0 ? host : "" };
}

/** The name in lower case comes first, as in curl. An empty variable counts as unset. */
const variable = (env: Env, name: string): string => env[name] || env[name.toUpperCase()] || "";

/** The one notation of an IPv6 address that URLs have; other names as they are. */
const inUrl = (name: string): string =>
  name.startsWith("[") && URL.canParse(`http://${name}`) ? new URL(`http://${name}`).hostname : name;

/**
 * An entry of NO_PROXY: `*`, or a host or a domain with all hosts below it, with or without a dot before and a port. An IPv6
 * address with a port needs brackets.
 */
function excepts(entry: string, url: URL): boolean {
  if (entry === "*") return true;
  const written = isIP(entry) === 6 ? `[${entry}]` : entry.replace(/^\*?\./, "");
  const [, name = "", port] = /^(.+?)(?::(\d+))?$/.exec(written) ?? [];
  const urlPort = url.port || (url.protocol === "https:" ? "443" : "80");
  if (port !== undefined && port !== urlPort) return false;
  const host = bareHost(url).toLowerCase();
  return host === name || host.endsWith(`.${name}`) || url.hostname === inUrl(name);
}

/** Throws `ProxyError` if the variable holds anything but the URL of an HTTP proxy. */
export function proxyFor(url: URL, env: Env): URL | undefined {
  const name = url.protocol === "https:" ? "https_proxy" : "http_proxy";
  const value = variable(env, name);
  if (value === "") return undefined;
  const exceptions = variable(env, "no_proxy")
    .toLowerCase()
    .split(/[\s,]+/)
    .filter(Boolean);
  if (exceptions.some((entry) => excepts(entry, url))) return undefined;
  const text = value.includes("://") ? value : `http://${value}`;
  const proxy = URL.canParse(text) ? new URL(text) : undefined;
  if (proxy && /^https?:$/.test(proxy.protocol)) return proxy;
  throw new ProxyError(`${name.toUpperCase()} does not hold an http or https URL`);
}

export function proxyHeaders(proxy: URL): Record<string, string> {
  if (proxy.username === "" && proxy.password === "") return {};
  const user = `${percentDecoded(proxy.username)}:${percentDecoded(proxy.password)}`;
  return { "proxy-authorization": `Basic ${Buffer.from(user).toString("base64")}` };
}

/**
 * Time of each address of a host but the last, before the next one is tried. Node's 250 ms are too short for lines over a
 * satellite or a busy cell: only the last address is left, which may be of a family that the line does not have. Pi takes as
 * long for its own requests.
 */
export const ADDRESS_MS = 2_000;

/** Options of the sockets to a proxy for tunnels, which no agent opens: as the agents' own. */
const TUNNEL_SOCKET = {
  autoSelectFamilyAttemptTimeout: ADDRESS_MS,
  keepAlive: true,
  keepAliveInitialDelay: 1_000,
};

type Connected = (error: Error | null, socket: Duplex) => void;

/** Connections to https servers through a tunnel that the proxy opens (CONNECT, RFC 9110, section 9.3.6). */
export class TunnelAgent extends https.Agent {
  readonly #proxy: URL;
  readonly #trust: tls.SecureContext | undefined;
  readonly #lifetime = new AbortController();

  /** `secureContext` of the options holds for the server and, if it speaks TLS, for the proxy. */
  constructor(proxy: URL, options: https.AgentOptions) {
    super(options);
    this.#proxy = proxy;
    this.#trust = options.secureContext;
  }

  override createConnection(options: http.ClientRequestArgs, callback?: Connected): undefined {
    const answer = callback as (error: Error | null, socket?: Duplex) => void;
    const done: typeof answer = (...outcome) => {
      clearTimeout(limit);
      answer(...outcome);
    };
    const proxy = this.#proxy;
    const host = String(options.host);
    const authority = `${host.includes(":") ? `[${host}]` : host}:${options.port}`;
    const viaTls = proxy.protocol === "https:";
    const request = (viaTls ? https : http).request({
      method: "CONNECT",
      ...proxyAddress(proxy),
      path: authority,
      headers: { host: authority, ...proxyHeaders(proxy) },
      ...(this.#trust && { secureContext: this.#trust }),
      ...TUNNEL_SOCKET,
      agent: false,
      signal: this.#lifetime.signal,
    });
    // The caller may have given up long ago, and Node does not tell an agent about that.
    const limit = setTimeout(() => {
      request.destroy(Object.assign(new Error("no tunnel in time"), { code: "ETIMEDOUT" }));
    }, LIMITS.startupTimeoutMs);
    request.once("error", (error) => done(error));
    request.once("connect", (response, socket) => {
      if (response.statusCode === 200) {
        done(null, tls.connect({ ...(options as tls.ConnectionOptions), socket }));
        return;
      }
      socket.destroy();
      const status = response.statusCode ?? 0;
      done(new ProxyError(`the proxy ${proxy.host} answered ${status}`, status));
    });
    request.end();
    return undefined;
  }

  override destroy(): void {
    this.#lifetime.abort();
    super.destroy();
  }
}

/** The body of an HTTP answer. */
export interface ServerBody extends Readable {
  /** Who is read: whoever reads the body hands this to `readInTurn`. */
  reader?: Reader | undefined;
}

/** Signs a message for each address to which it goes: the first one, and those of the redirects that are followed. */
export interface Signer {
  /** Headers for this address, in place of the request's own. */
  headers(method: string, url: URL): Record<string, string>;
  /** Reads what the answer from this address says about the signature. */
  answered(url: URL, answer: Omit<HttpResponse, "body">): void;
}

export interface HttpRequest {
  method: "GET" | "POST" | "DELETE";
  url: URL;
  headers: Record<string, string>;
  body?: string;
  signal: AbortSignal;
  /**
   * Finds the addresses of the host in place of DNS, and may refuse them by an error, which rejects the request. Not
   * called for a host that is an IP address, for an open connection, or behind a proxy, which does that itself.
   */
  lookup?: LookupFunction;
  signer?: Signer | undefined;
  /** Gives the headers for this address in place of the request's own, after all else. Its error rejects the request. */
  derive?: ((request: HttpRequest) => Promise<Record<string, string>>) | undefined;
}

/** `body` may be left unread or destroyed at any time: an error of the body does not end the worker. */
export interface HttpResponse {
  status: number;
  headers: IncomingHttpHeaders;
  body: ServerBody;
  /** The IP address that answered; undefined behind a proxy, which alone knows it. */
  address?: string | undefined;
}

export interface HttpClient {
  /** Rejects if no answer comes. Resolves for an answer of any status, also for a redirect that is not followed. */
  request(request: HttpRequest): Promise<HttpResponse>;
  /** Ends every connection. */
  close(): void;
}

const REDIRECTS = 5;
/** Less than the 5 s after which Node servers drop an idle connection: no request may meet a connection's end. */
const IDLE_SOCKET_MS = 4_000;

/** Bytes of a socket that are parsed at a time. */
const SOCKET_BYTES = 64 * 1024;

/** Node's HTTP client pauses and resumes a socket as it has room for more of an answer: what it wishes comes true later. */
function holdUntil(turn: Promise<void>, socket: Socket): void {
  const isHeld = Object.hasOwn(socket, "resume");
  let isWanted = !socket.isPaused();
  Socket.prototype.pause.call(socket);
  // A read that had begun before the pause.
  if (isHeld) return;
  const wish = (wanted: boolean) => () => {
    isWanted = wanted;
    return socket;
  };
  Object.assign(socket, { pause: wish(false), resume: wish(true) });
  void turn.then(() => {
    Reflect.deleteProperty(socket, "pause");
    Reflect.deleteProperty(socket, "resume");
    if (isWanted) socket.resume();
  });
}

/**
 * The option `onread` of sockets whose bytes Node itself parses, as HTTP does: what each read brings is pushed on, and the
 * socket pauses while others have their turn.
 */
function readSocketsInTurn(reader: Reader): OnReadOpts {
  return {
    buffer: Buffer.allocUnsafeSlow(SOCKET_BYTES),
    callback(this: Socket, length: number, buffer: Uint8Array) {
      // The next read, of any socket, takes the same buffer.
      const piece = Buffer.from(buffer.subarray(0, length));
      const turn = wholeInTurn(reader, () => this.push(piece));
      if (turn) holdUntil(turn, this);
      return true;
    },
  };
}

function decoded(response: IncomingMessage): ServerBody {
  const encoding = response.headers["content-encoding"]?.trim().toLowerCase();
  // Each chunk is flushed, so that an event does not wait for the next one.
  const { Z_SYNC_FLUSH, BROTLI_OPERATION_FLUSH } = constants;
  if (encoding === "gzip" || encoding === "x-gzip" || encoding === "deflate") {
    const unzip = createUnzip({ flush: Z_SYNC_FLUSH, finishFlush: Z_SYNC_FLUSH });
    return pipeline(response, unzip, () => undefined);
  }
  if (encoding === "br") {
    const decompress = createBrotliDecompress({
      flush: BROTLI_OPERATION_FLUSH,
      finishFlush: BROTLI_OPERATION_FLUSH,
    });
    return pipeline(response, decompress, () => undefined);
  }
  return response;
}

/** Pieces of a body in a row that are looked at together, and the bytes that they hold at least. Real ones hold hundreds. */
const PIECES = 10_000;
const PIECE_BYTES = 8;

/**
 * Breaks a body whose chunks hold hardly anything (RFC 9112, section 7.1) and come fast: each costs as much as a long one. A
 * stream that says nothing for days but a short heartbeat has as many.
 */
export function refuseShreds(response: IncomingMessage, reader: Reader, now = () => performance.now()): void {
  let pieces = 0;
  let bytes = 0;
  let sinceMs = 0;
  response.push = (piece: Buffer | null) => {
    if (pieces === 0) sinceMs = now();
    pieces++;
    bytes += piece?.length ?? 0;
    const areShort = pieces === PIECES && bytes < PIECES * PIECE_BYTES;
    if (areShort && now() - sinceMs < LIMITS.noiseWindowMs) {
      const what = `sends an answer in pieces of fewer than ${PIECE_BYTES} bytes`;
      reader.onNote?.(`${what}; the rest of it is not read`);
      response.destroy(new Error(what));
    }
    if (pieces === PIECES) {
      pieces = 0;
      bytes = 0;
    }
    return IncomingMessage.prototype.push.call(response, piece);
  };
}

const quiet = new WeakSet<Duplex>();

/**
 * Node removes its error listener from a socket when the answer has ended. An abort at the same moment still destroys
 * the socket with an error, which would end the worker if nobody listened.
 */
function keepQuiet(socket: Duplex): void {
  if (quiet.has(socket)) return;
  quiet.add(socket);
  socket.on("error", () => undefined);
}

/** Whether a redirect stays with the configured server: credentials are sent to no other server. */
export function staysWithin(from: URL, to: URL): boolean {
  if (to.username !== "" || to.password !== "") return false;
  if (from.origin === to.origin) return true;
  const upgrade = from.protocol === "http:" && to.protocol === "https:";
  return upgrade && from.hostname === to.hostname && from.port === "" && to.port === "";
}

/**
 * An address that the server at `from` names, undefined if it is none. A server behind a proxy that ends TLS believes that it
 * is asked over http, and names itself so: it is meant as it was asked. No other address changes.
 */
export function namedAddress(written: string, from: URL): URL | undefined {
  if (!URL.canParse(written, from.href)) return undefined;
  const named = new URL(written, from.href);
  if (from.protocol !== "https:" || named.protocol !== "http:") return named;
  const secure = Object.assign(new URL(named), { protocol: from.protocol });
  return secure.origin === from.origin ? secure : named;
}

/** Address to which a redirect sends the client; undefined for any other answer. */
export function redirectTarget({ status, headers }: Omit<HttpResponse, "body">, from: URL): URL | undefined {
  if (![301, 302, 303, 307, 308].includes(status) || headers.location === undefined) return undefined;
  return namedAddress(headers.location, from);
}

/** Firewalls of hosts refuse requests without this header. It says nothing of the user. */
const USER_AGENT = `${manifest.name}/${manifest.version}`;

const abortError = (): DOMException => new DOMException("The request was given up.", "AbortError");

/** Connections that one client keeps open, for each way to a server. */
interface Ways {
  plain: http.Agent;
  secure: https.Agent;
  through: (proxy: URL) => TunnelAgent;
  close: () => void;
}

/**
 * Trusts these authorities besides all that Node trusts, NODE_EXTRA_CA_CERTS included. The certificates become one
 * context: as a list they would be part of the key under which an agent looks for an open connection.
 */
export const trustAlso = (ca: readonly string[]): SecureContext =>
  createSecureContext({ ca: [...getCACertificates("default"), ...ca] });

function createWays(ca: readonly string[], reader: Reader): Ways {
  const trust = ca.length === 0 ? undefined : trustAlso(ca);
  const common = {
    keepAlive: true,
    timeout: IDLE_SOCKET_MS,
    autoSelectFamilyAttemptTimeout: ADDRESS_MS,
    onread: readSocketsInTurn(reader),
  };
  const plain = new http.Agent(common);
  const settings = { ...common, ...(trust && { secureContext: trust }) };
  const secure = new https.Agent(settings);
  const tunnels = new Map<string, TunnelAgent>();
  return {
    plain,
    secure,
    through: (proxy) => {
      const agent = tunnels.get(proxy.href) ?? new TunnelAgent(proxy, settings);
      tunnels.set(proxy.href, agent);
      return agent;
    },
    close: () => {
      for (const agent of [plain, secure, ...tunnels.values()]) agent.destroy();
    },
  };
}

/** `name:password` from `http://name:password@host`, for Basic authentication; undefined if the URL has neither. */
function userOf({ username, password }: URL): string | undefined {
  const user = `${percentDecoded(username)}:${percentDecoded(password)}`;
  return user === ":" ? undefined : user;
}

/** Opens a request directly, through the tunnel of a proxy (https), or to a proxy that forwards it (http). */
function openRequest(
  { method, url, headers, signal, lookup }: HttpRequest,
  env: Env,
  ways: Ways,
): http.ClientRequest {
  const proxy = proxyFor(url, env);
  const auth = userOf(url);
  const common = {
    method,
    // Whatever the letter case, Node sends the last of two headers with one name.
    headers: { "accept-encoding": "gzip, deflate, br", "user-agent": USER_AGENT, ...headers },
    signal,
    host: bareHost(url),
    path: `${url.pathname}${url.search}`,
    ...(url.port === "" ? {} : { port: url.port }),
    ...(auth === undefined ? {} : { auth }),
  };
  const direct = { ...common, ...(lookup === undefined ? {} : { lookup }) };
  if (url.protocol === "https:") {
    return https.request(
      proxy ? { ...common, agent: ways.through(proxy) } : { ...direct, agent: ways.secure },
    );
  }
  if (!proxy) return http.request({ ...direct, agent: ways.plain });
  const viaTls = proxy.protocol === "https:";
  return (viaTls ? https : http).request({
    ...common,
    ...proxyAddress(proxy),
    headers: { ...common.headers, host: url.host, ...proxyHeaders(proxy) },
    // A forward proxy gets the whole address (RFC 9112, section 3.2.2).
    path: `${url.origin}${url.pathname}${url.search}`,
    agent: viaTls ? ways.secure : ways.plain,
  });
}

/** Sends the request and settles with the head of its answer. `open` may throw; then nothing is sent. */
function answered(
  open: () => http.ClientRequest,
  { url, body, signal }: HttpRequest,
  { env, reader }: { env: Env; reader: Reader },
): Promise<HttpResponse> {
  const settled = new AbortController();
  const answer = new Promise<HttpResponse>((resolve, reject) => {
    const outgoing = open();
    // Node reports an abort only if the request has a socket, which a silent proxy never gives it.
    signal.addEventListener("abort", () => reject(abortError()), { once: true, signal: settled.signal });
    outgoing.once("response", (response) => {
      refuseShreds(response, reader);
      const received = decoded(response);
      received.reader = reader;
      // An abort also breaks a body that nobody reads.
      received.on("error", () => undefined);
      const address = proxyFor(url, env) ? undefined : response.socket.remoteAddress;
      resolve({ status: response.statusCode ?? 0, headers: response.headers, body: received, address });
    });
    // This listener stays, for errors after the answer, which the body reports too.
    outgoing.on("error", reject);
    outgoing.once("socket", keepQuiet);
    // Node ends the request without an error if the server switches to another protocol (101).
    outgoing.once("close", () => reject(Object.assign(new Error("socket hang up"), { code: "ECONNRESET" })));
    outgoing.end(body);
  });
  return answer.finally(() => settled.abort());
}

/**
 * `reader`: who is read, for all bodies. `ca`: PEM of further certificate authorities, for servers and for https proxies.
 * `cookies`: kept from answers and sent back; without them no cookie is.
 */
export function createHttpClient(
  env: Env = process.env,
  reader = createReader(),
  ca: readonly string[] = [],
  cookies?: Cookies,
): HttpClient {
  const ways = createWays(ca, reader);
  const send = (request: HttpRequest): Promise<HttpResponse> =>
    answered(() => openRequest(request, env, ways), request, { env, reader });
  const requestOnce = async (request: HttpRequest): Promise<HttpResponse> => {
    const { method, url, signer, derive } = request;
    const headers = { ...request.headers, ...signer?.headers(method, url) };
    const proven = { ...request, headers: cookies?.addedTo(headers, url) ?? headers };
    const response = await send(derive ? { ...proven, headers: await derive(proven) } : proven);
    signer?.answered(url, response);
    cookies?.take(url, response.headers);
    return response;
  };
  return {
    request: async (request) => {
      let response = await requestOnce(request);
      let { url } = request;
      for (let followed = 0; followed < REDIRECTS; followed++) {
        const to = redirectTarget(response, url);
        // The other statuses turn a POST into a GET.
        const keepsMethod = response.status === 307 || response.status === 308 || request.method === "GET";
        if (!to || !keepsMethod || !staysWithin(url, to)) break;
        response.body.destroy();
        to.username = url.username;
        to.password = url.password;
        url = to;
        response = await requestOnce({ ...request, url });
      }
      return response;
    },
    close: ways.close,
  };
}
