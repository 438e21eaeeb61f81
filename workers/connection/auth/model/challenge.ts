/** Reads `WWW-Authenticate` (RFC 9110, section 11.6.1), in which a server describes the sign-in that it wants. Pure. */

/** All texts together have at most `HEADER_CHARS` characters. To show a text, take secrets out first, then cut it. */
export interface AuthChallenge {
  scheme: string;
  realm?: string;
  scope?: string;
  /** RFC 6750, section 3.1: `invalid_token`, `insufficient_scope`, `invalid_request`. */
  error?: string;
  errorDescription?: string;
  /** RFC 9728, section 5.1: address of the server's metadata. */
  resourceMetadata?: string;
}

/** An answer 401, or 403 that asks for more scope. */
export interface RefusedRequest {
  status: number;
  challenge: AuthChallenge | undefined;
  /** The token of the request. */
  sent: string | undefined;
  /** The request was sent before with another token, which was refused, too. */
  isRepeated: boolean;
}

const HEADER_CHARS = 4_000;
/** A parameter with a token or a quoted string as its value. */
const PARAMETER = /([a-z_]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))/gi;

/** The header without what is beyond the limit: half a parameter would be a wrong one. */
const wholeParameters = (header: string): string =>
  header.length <= HEADER_CHARS
    ? header
    : header.slice(0, header.lastIndexOf(",", HEADER_CHARS) + 1 || HEADER_CHARS);

/** The first Bearer challenge, otherwise the first of any scheme. */
export function parseChallenge(header: string | undefined): AuthChallenge | undefined {
  if (header === undefined) return undefined;
  const bounded = wholeParameters(header);
  const start = Math.max(0, bounded.search(/\bbearer\b/i));
  const [, scheme] = /^([\w!#$%&'*+.^`|~-]+)/.exec(bounded.slice(start)) ?? [];
  if (scheme === undefined) return undefined;
  const found = new Map<string, string>();
  for (const [, name = "", quoted, token = ""] of bounded.slice(start + scheme.length).matchAll(PARAMETER)) {
    const value = quoted?.replace(/\\(.)/g, "$1") ?? token;
    if (!found.has(name.toLowerCase())) found.set(name.toLowerCase(), value);
  }
  const named = (key: string, name: string): Record<string, string> => {
    const value = found.get(name);
    return value === undefined ? {} : { [key]: value };
  };
  return {
    scheme,
    ...named("realm", "realm"),
    ...named("scope", "scope"),
    ...named("error", "error"),
    ...named("errorDescription", "error_description"),
    ...named("resourceMetadata", "resource_metadata"),
  };
}
