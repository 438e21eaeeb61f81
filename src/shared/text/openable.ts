/** Which addresses a browser may be told to open, as both sides must know. Pure. */

/** The host of a `URL`, which has brackets around an IPv6 address. */
export const isLoopback = (hostname: string): boolean =>
  hostname === "localhost" || hostname === "[::1]" || /^127(?:\.\d{1,3}){3}$/.test(hostname);

/** https, or http on this machine: any other scheme would start another program. Takes a parsed `URL`; null: no URL. */
export const isOpenable = (url: { protocol: string; hostname: string } | null): boolean =>
  url !== null && (url.protocol === "https:" || (url.protocol === "http:" && isLoopback(url.hostname)));
