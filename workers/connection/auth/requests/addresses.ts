/**
 * Owns what an address says by itself: whether its host is this machine or a private network, and which protocols a
 * token may travel over. Pure. What DNS says is decided in guard.ts.
 */
import { isIP } from "node:net";
import { SignInProblem } from "../model/model.ts";

/** The address as an error may show it: the query can hold a secret. `origin` is "null" for schemes other than http. */
export const shownAddress = ({ origin, protocol, host, pathname }: URL): string =>
  `${origin === "null" ? `${protocol}${host === "" ? "" : `//${host}`}` : origin}${pathname}`;

/** The host without the brackets of an IPv6 address and without the dot at the end, which DNS ignores. */
export const hostOf = ({ hostname }: URL): string => hostname.replace(/^\[|\]$/g, "").replace(/\.$/, "");

/** The four numbers of an IPv4 address. */
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
  const shown = shownAddress(url);
  if (url.username !== "" || url.password !== "") {
    return new SignInProblem("bad-answer", { url: shown, what: "the address holds a name and a password" });
  }
  if (url.protocol === "https:" || (url.protocol === "http:" && isLoopback(url))) return undefined;
  return new SignInProblem("not-https", { url: shown });
}
