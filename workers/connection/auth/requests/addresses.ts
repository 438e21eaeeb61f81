/**
 * Owns which addresses may be asked: over which protocols a token may travel, and which hosts a server may make this machine
 * ask. A public server that names an address of a private network would let its operator send requests there (SSRF). The
 * addresses are checked where the connection looks them up, since a name may have another address a moment later.
 */
import type { LookupAddress } from "node:dns";
import { lookup as lookupInDns } from "node:dns/promises";
import { isIP, type LookupFunction } from "node:net";
import { settledWithin } from "../../../shared/pace/abort.ts";
import { SignInProblem } from "../model/model.ts";

/** The address as an error may show it: the query can hold a secret. `origin` is "null" for schemes other than http. */
export const shownAddress = ({ origin, protocol, host, pathname }: URL): string =>
  `${origin === "null" ? `${protocol}${host === "" ? "" : `//${host}`}` : origin}${pathname}`;

/** The answer of the address cannot be used. `what` follows "gave an answer that cannot be used: ". */
export const badAnswer = (
  url: URL,
  what: string,
  more: { status?: number; cause?: unknown } = {},
): SignInProblem => {
  const { status, cause } = more;
  return new SignInProblem("bad-answer", { url: shownAddress(url), what, ...(status && { status }) }, cause);
};

/** The host without the brackets of an IPv6 address and without the dot at the end, which DNS ignores. */
export const hostOf = ({ hostname }: URL): string => hostname.replace(/^\[|\]$/g, "").replace(/\.$/, "");

const bytesOf = (ip: string): number[] => ip.split(".").map(Number);

/** The eight groups of an IPv6 address, which may end in an IPv4 address. */
function groupsOf(ip: string): number[] {
  const [address = ""] = ip.split("%", 1);
  const dotted = /^(.*:)(\d+\.\d+\.\d+\.\d+)$/.exec(address);
  const [a = 0, b = 0, c = 0, d = 0] = bytesOf(dotted?.[2] ?? "");
  const text = dotted ? `${dotted[1]}${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}` : address;
  const [before = "", after] = text.split("::");
  const numbers = (part: string): number[] =>
    part === "" ? [] : part.split(":").map((group) => Number.parseInt(group, 16));
  const start = numbers(before);
  const end = numbers(after ?? "");
  const zeros = after === undefined ? 0 : 8 - start.length - end.length;
  return [...start, ...new Array<number>(zeros).fill(0), ...end];
}

/**
 * 198.18.0.0/15 is not private here: local proxies answer every name with an address of that range, and a refusal would
 * lock their users out.
 */
function isPrivateIpv4([a = 0, b = 0, c = 0]: readonly number[]): boolean {
  if (a === 0 || a === 10 || a === 127 || a >= 224) return true;
  if (a === 100) return b >= 64 && b < 128;
  if (a === 169) return b === 254;
  if (a === 172) return b >= 16 && b < 32;
  return a === 192 && (b === 168 || (b === 0 && c === 0));
}

const ipv4Of = (high: number, low: number): number[] => [high >> 8, high & 255, low >> 8, low & 255];

/** An IPv6 address can lead to the IPv4 address in it: mapped, compatible, NAT64 (RFC 6052) and 6to4 (RFC 3056). */
function isPrivateIpv6(groups: readonly number[]): boolean {
  const [g0 = 0, g1 = 0, g2 = 0, g3 = 0, g4 = 0, g5 = 0, g6 = 0, g7 = 0] = groups;
  const startsWithZeros = (g0 | g1 | g2 | g3 | g4) === 0;
  if (startsWithZeros && (g5 === 0 || g5 === 0xffff)) return isPrivateIpv4(ipv4Of(g6, g7));
  // `::ffff:0:0:0/96`, the translated addresses of RFC 2765.
  if ((g0 | g1 | g2 | g3 | g5) === 0 && g4 === 0xffff) return isPrivateIpv4(ipv4Of(g6, g7));
  if (g0 === 0x64 && g1 === 0xff9b) return g2 === 1 || isPrivateIpv4(ipv4Of(g6, g7));
  if (g0 === 0x2002) return isPrivateIpv4(ipv4Of(g1, g2));
  const uniqueLocal = (g0 & 0xfe00) === 0xfc00;
  // fe80::/10 (link-local) and fec0::/10 (site-local).
  const local = (g0 & 0xff80) === 0xfe80;
  const multicast = (g0 & 0xff00) === 0xff00;
  return uniqueLocal || local || multicast;
}

/**
 * Whether an IP address is loopback, unspecified, private (RFC 1918, RFC 4193), link-local, shared by a carrier
 * (RFC 6598), multicast or reserved. Any text that is not an IP address counts as private.
 */
export function isPrivateIp(ip: string): boolean {
  const version = isIP(ip);
  if (version === 0) return true;
  return version === 4 ? isPrivateIpv4(bytesOf(ip)) : isPrivateIpv6(groupsOf(ip));
}

/** Of a local proxy that answers every name with addresses of its own, of both versions. */
const isMadeUp = ({ address }: LookupAddress): boolean => /^198\.1[89]\./.test(address);
const isUniqueLocal = ({ address }: LookupAddress): boolean => /^f[cd][0-9a-f]{2}:/i.test(address);

/** Whether one of the addresses is private, as they tell where a name leads. */
const leadInside = (found: readonly LookupAddress[]): boolean =>
  found.some((one) => isPrivateIp(one.address) && !(isUniqueLocal(one) && found.some(isMadeUp)));

const LOOPBACK_V4 = /^127\.\d+\.\d+\.\d+$/;

/** Whether the host is this machine: `localhost`, 127.0.0.0/8 or ::1. */
export function isLoopback(url: URL): boolean {
  const host = hostOf(url);
  return host === "localhost" || host === "::1" || LOOPBACK_V4.test(host);
}

/** Whether the host is an IP address of a private network, or a name that always means this machine (RFC 6761). */
export function namesPrivateHost(url: URL): boolean {
  const host = hostOf(url);
  return isIP(host) === 0 ? host === "localhost" || host.endsWith(".localhost") : isPrivateIp(host);
}

/**
 * What forbids to send anything to the address: a protocol other than https (on loopback also http), or a name and
 * password in it, which nobody configured.
 */
export function addressProblem(url: URL): SignInProblem | undefined {
  if (url.username !== "" || url.password !== "") {
    return badAnswer(url, "the address holds a name and a password");
  }
  if (url.protocol === "https:" || (url.protocol === "http:" && isLoopback(url))) return undefined;
  return new SignInProblem("not-https", { url: shownAddress(url) });
}

/** Http to this machine that leaves it: the proxy gets the token as it is. */
export const proxiedHttp = (url: URL): SignInProblem =>
  new SignInProblem("not-https", { url: shownAddress(url), what: "it goes through a proxy" });

/** Finds all addresses of a host name. `hints` are those of `dns.lookup`. Rejects as `dns.lookup` does. */
export type Resolve = (host: string, hints?: number) => Promise<LookupAddress[]>;

export const resolveByDns: Resolve = (host, hints = 0) => lookupInDns(host, { all: true, hints });

const privateAddress = (url: URL): SignInProblem =>
  new SignInProblem("private-address", { url: shownAddress(url) });

/** Answers in the shape that the connection asks for: all addresses, or the first one. */
const answering =
  (find: Resolve): LookupFunction =>
  (host, options, callback) => {
    find(host, options.hints).then(
      (found) => {
        const [first] = found;
        if (options.all === true) callback(null, found);
        else callback(null, first?.address ?? "", first?.family ?? 0);
      },
      (error: NodeJS.ErrnoException) => callback(error, []),
    );
  };

/** Where a server has answered in this session. */
export interface Reached {
  /** At a public address, or through a proxy, which may have found any. */
  isPublic: boolean;
}

export function noteAnswer(reached: Reached, address: string | undefined): void {
  if (address === undefined || !isPrivateIp(address)) reached.isPublic = true;
}

/** Behind a proxy many machines cannot look up names of the internet, and names of the own network are found at once. */
const LOOK_MS = 1_000;

/** `trusted`: addresses that the user wrote. */
export function createAddressGuard(
  server: URL,
  { trusted, resolve, reached }: { trusted: readonly string[]; resolve: Resolve; reached: Reached },
) {
  const chosen = new Set(
    [server.href, ...trusted]
      .filter((address) => URL.canParse(address))
      .map((address) => hostOf(new URL(address))),
  );
  let inside: Promise<boolean> | undefined;
  /**
   * Whether the server itself is in a private network. A name without addresses, as behind a proxy, is not, and neither is
   * one with a public address, beside which its operator can put any private one, or after which (DNS rebinding).
   */
  const serverIsPrivate = async (): Promise<boolean> => {
    if (namesPrivateHost(server)) return true;
    inside ??= resolve(hostOf(server)).then(
      (found) => found.length > 0 && found.every(({ address }) => isPrivateIp(address)),
      () => false,
    );
    return (await inside) && !reached.isPublic;
  };
  /** Looks that have no answer yet: each holds one of Node's threads. */
  const looking = new Map<string, Promise<boolean>>();
  /** Whether the name leads to a private network here. One that is not found here is the proxy's matter. */
  const leadsInside = async (url: URL): Promise<boolean> => {
    const host = hostOf(url);
    const look =
      looking.get(host) ??
      resolve(host)
        .then(leadInside, () => false)
        .finally(() => looking.delete(host));
    looking.set(host, look);
    return (await settledWithin(look, LOOK_MS)) && look;
  };
  return {
    /** The IP address that has answered for the URL. */
    answered: (url: URL, address: string | undefined): void => {
      if (hostOf(url) === hostOf(server)) noteAnswer(reached, address);
    },
    /**
     * Rejects with `SignInProblem` if nothing may be sent to the address, as far as the address itself says; of a request
     * through a proxy, for which `lookupFor` is not asked, also if its name leads to a private network here, or if it is http.
     */
    check: async (url: URL, { isProxied }: { isProxied: boolean }): Promise<void> => {
      const problem = addressProblem(url);
      if (problem) throw problem;
      if (!chosen.has(hostOf(url))) {
        const isInside = namesPrivateHost(url) || (isProxied && (await leadsInside(url)));
        if (isInside && !(await serverIsPrivate())) throw privateAddress(url);
      }
      if (isProxied && url.protocol === "http:") throw proxiedHttp(url);
    },
    /** For the connection to the address: refuses a name that leads to a private network. */
    lookupFor: (url: URL): LookupFunction =>
      answering(async (host, hints) => {
        const found = await resolve(host, hints);
        if (chosen.has(hostOf(url)) || !found.some(({ address }) => isPrivateIp(address))) return found;
        if (await serverIsPrivate()) return found;
        throw privateAddress(url);
      }),
  };
}
