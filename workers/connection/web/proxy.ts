/**
 * Proxies from environment variables. Owns: which proxy a URL takes, and the tunnel of https through a proxy. Pi's own
 * proxy settings do not reach a worker thread, and Node before 24 has no such settings. Only NO_PROXY makes an
 * exception, as in curl: a loopback address alone does not.
 */
import http from "node:http";
import https from "node:https";
import { isIP } from "node:net";
import type { Duplex } from "node:stream";
import tls from "node:tls";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { percentDecoded } from "../../../src/shared/text/reading.ts";

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

/**
 * An entry of NO_PROXY: `*`, or a host or a domain with all hosts below it, with or without a dot before and a port.
 */
function excepts(entry: string, url: URL): boolean {
  if (entry === "*") return true;
  const [, name = "", port] = /^(.+?)(?::(\d+))?$/.exec(entry.replace(/^\*?\./, "")) ?? [];
  const urlPort = url.port || (url.protocol === "https:" ? "443" : "80");
  if (port !== undefined && port !== urlPort) return false;
  const host = bareHost(url).toLowerCase();
  return host === name || host.endsWith(`.${name}`) || url.hostname === name;
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
