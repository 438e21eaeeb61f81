/**
 * Decides to which address the browser brings its answer, and on which ports this process tries to listen for it. The
 * address is on loopback (RFC 8252, section 7.3), unless the configuration names another: then the user pastes it. Pure.
 */
import { createHash } from "node:crypto";
import { isLoopback } from "../../../../src/shared/text/openable.ts";
import type { OAuthPlan } from "../../config/entry/oauth-keys.ts";
import { type ClientRecord, SignInProblem } from "../model/model.ts";

/** One address to try. In `uri`, `{port}` stands for the port. `port` absent: any free one. */
export interface RedirectTry {
  uri: string;
  port?: number;
}

export type RedirectChoice =
  /** Nothing can listen there: the user pastes the address. */
  | { listens: false; uri: string }
  /** In this order. A busy port leads to the next address, and the last one's to a failure. */
  | { listens: true; tries: [RedirectTry, ...RedirectTry[]]; isConfigured: boolean };

const PORT = "{port}";
const IPV4 = "127.0.0.1";
const PATH = "/callback";
const SERVER_CHARS = 16;

export const withPort = (uri: string, port: number): string => uri.replaceAll(PORT, String(port));

/** The port at which a browser opens the address. */
export const portOf = (url: URL): number => Number(url.port || (url.protocol === "https:" ? 443 : 80));

/** The same address with `localhost`, for servers that know no other loopback host. Undefined: the host is another. */
export function withLocalhost(uri: string): string | undefined {
  const prefix = `http://${IPV4}:`;
  return uri.startsWith(prefix) ? `http://localhost:${uri.slice(prefix.length)}` : undefined;
}

function configured(redirectUri: string, callbackPort: number | undefined): RedirectChoice {
  const shown = withPort(redirectUri, callbackPort ?? 1);
  if (!URL.canParse(shown)) {
    throw new SignInProblem("bad-settings", { key: "oauth.redirectUri", what: "it is not a URL" });
  }
  const url = new URL(shown);
  const needsPort = redirectUri.includes(PORT) && callbackPort === undefined;
  if (url.protocol === "http:" && isLoopback(url.hostname)) {
    const port = needsPort ? {} : { port: callbackPort ?? portOf(url) };
    return { listens: true, tries: [{ uri: redirectUri, ...port }], isConfigured: true };
  }
  if (!needsPort) return { listens: false, uri: withPort(redirectUri, callbackPort ?? 1) };
  const what = "{port} needs oauth.callbackPort, because nothing can listen at this address";
  throw new SignInProblem("bad-settings", { key: "oauth.redirectUri", what });
}

/**
 * An authorization server that does not name itself in its answer (RFC 9207) gets a path for this server and this issuer
 * alone, so that the answer of another one cannot be taken for its own (RFC 9700, section 4.4.2.2). A client that someone
 * registered has a fixed path.
 */
function pathFor({ plan, server, issuer, sendsIssuer }: Omit<RedirectWish, "stored">): string {
  const isFixed =
    plan.clientId !== undefined ||
    (plan.clientMetadataUrl !== undefined && plan.clientRegistration !== "dcr");
  if (sendsIssuer || isFixed) return PATH;
  return `${PATH}/${createHash("sha256")
    .update(JSON.stringify([server, issuer]))
    .digest("hex")
    .slice(0, SERVER_CHARS)}`;
}

/** The loopback address that a dynamic registration named, if its path is still the right one. */
function registered(stored: ClientRecord | undefined, path: string): RedirectTry[] {
  if (stored?.kind !== "dynamic") return [];
  return (stored.redirectUris ?? []).flatMap((uri) => {
    const url = URL.canParse(uri) ? new URL(uri) : undefined;
    const fits = url?.protocol === "http:" && isLoopback(url.hostname) && url.pathname === path;
    return fits && url.search === "" ? [{ uri, port: portOf(url) }] : [];
  });
}

export interface RedirectWish {
  plan: OAuthPlan;
  server: string;
  /** The authorization server that is asked. */
  issuer: string;
  /** The stored client, if it will be used again. */
  stored: ClientRecord | undefined;
  /** The authorization server puts `iss` into its answer. */
  sendsIssuer: boolean;
}

/** Throws `SignInProblem` bad-settings. */
export function chooseRedirect({ stored, ...wish }: RedirectWish): RedirectChoice {
  const { redirectUri, callbackPort } = wish.plan;
  if (redirectUri !== undefined) return configured(redirectUri, callbackPort);
  const path = pathFor(wish);
  const uri = `http://${IPV4}:${PORT}${path}`;
  if (callbackPort !== undefined) {
    return { listens: true, tries: [{ uri, port: callbackPort }], isConfigured: false };
  }
  const [first] = registered(stored, path);
  return { listens: true, tries: first ? [first, { uri }] : [{ uri }], isConfigured: false };
}
