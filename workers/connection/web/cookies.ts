/**
 * The cookies of one connection: a load balancer before several machines finds by them the one that has the session. Owns:
 * which cookies of an answer are kept, how many, and to which requests they go: those of the very origin that has set them,
 * whatever their domain and path. They are in memory only and end with the session, so they name the user for no longer than
 * the session's id does. Must not: be used for a sign-in.
 */
import type { IncomingHttpHeaders } from "node:http";

/** A balancer sets one to three, of some 150 characters each. */
const MOST_COOKIES = 10;
/** Names and values of all together: servers take no request whose headers are much longer. */
const COOKIE_CHARS = 4_096;

/** RFC 6265, section 4.1.1; and of a value, all that a header can hold. */
const NAME = /^[\w!#$%&'*+.^`|~-]+$/;
const VALUE = /^[\x20-\x7e]*$/;

interface Cookie {
  origin: string;
  name: string;
  value: string;
}

/** The value of a text without `=` is empty. */
const pairOf = (text: string): [name: string, value: string] => {
  const [name = "", ...value] = text.split("=");
  return [name.trim(), value.join("=").trim()];
};

/** A server removes a cookie by a time that is over (RFC 6265, section 3.1). */
function isOver(attributes: readonly string[]): boolean {
  const named = new Map(attributes.map(pairOf).map(([name, value]) => [name.toLowerCase(), value]));
  const maxAge = named.get("max-age");
  if (maxAge !== undefined && /^-?\d+$/.test(maxAge)) return Number(maxAge) <= 0;
  return Date.parse(named.get("expires") ?? "") <= Date.now();
}

export class Cookies {
  /** The one that was set last stands last. */
  readonly #kept = new Map<string, Cookie>();

  /** Reads what the answer from this address sets. */
  take({ origin }: URL, { "set-cookie": lines = [] }: IncomingHttpHeaders): void {
    for (const line of lines) {
      const [pair = "", ...attributes] = line.split(";");
      const [name, value] = pairOf(pair);
      if (!pair.includes("=") || !NAME.test(name) || !VALUE.test(value)) continue;
      const key = `${origin} ${name}`;
      this.#kept.delete(key);
      if (name.length + value.length > COOKIE_CHARS || isOver(attributes)) continue;
      this.#kept.set(key, { origin, name, value });
      this.#bound();
    }
  }

  /** The headers of a request to this address, with the cookies. Those of the configuration come first, and win. */
  addedTo(headers: Record<string, string>, { origin }: URL): Record<string, string> {
    const own = [...this.#kept.values()].filter((cookie) => cookie.origin === origin);
    if (own.length === 0) return headers;
    const name = Object.keys(headers).find((written) => written.toLowerCase() === "cookie") ?? "cookie";
    const configured = headers[name] ?? "";
    const names = new Set(configured.split(";").map((pair) => pairOf(pair)[0]));
    const pairs = own
      .filter((cookie) => !names.has(cookie.name))
      .map((cookie) => `${cookie.name}=${cookie.value}`);
    return { ...headers, [name]: [...(configured === "" ? [] : [configured]), ...pairs].join("; ") };
  }

  /** The session is over. */
  clear(): void {
    this.#kept.clear();
  }

  #bound(): void {
    let chars = 0;
    for (const { name, value } of this.#kept.values()) chars += name.length + value.length;
    for (const [key, { name, value }] of this.#kept) {
      if (this.#kept.size <= MOST_COOKIES && chars <= COOKIE_CHARS) return;
      this.#kept.delete(key);
      chars -= name.length + value.length;
    }
  }
}
