/** Owns where metadata lie: the addresses below `/.well-known`, in the order in which they are asked. Pure. */

const RESOURCE = "/.well-known/oauth-protected-resource";
const OAUTH = "/.well-known/oauth-authorization-server";
const OPENID = "/.well-known/openid-configuration";

/** The path without slashes at its end; empty for the root. */
const pathOf = ({ pathname }: URL): string => pathname.replace(/\/+$/, "");

/** Metadata of an MCP endpoint (RFC 9728, section 3.1): for its path and query, then for its whole origin. */
export function resourceAddresses(endpoint: URL): URL[] {
  const path = pathOf(endpoint);
  const own = new URL(`${endpoint.origin}${RESOURCE}${path}`);
  own.search = endpoint.search;
  const root = new URL(`${endpoint.origin}${RESOURCE}`);
  return own.href === root.href ? [root] : [own, root];
}

/**
 * Metadata of an issuer, in the order of MCP 2025-11-25 (authorization server metadata discovery): RFC 8414, section
 * 3.1, puts the well-known part before the path, and OpenID Connect Discovery, section 4, behind it.
 */
export function serverAddresses(issuer: URL): URL[] {
  const path = pathOf(issuer);
  const addresses =
    path === "" ? [OAUTH, OPENID] : [`${OAUTH}${path}`, `${OPENID}${path}`, `${path}${OPENID}`];
  return addresses.map((address) => new URL(`${issuer.origin}${address}`));
}
