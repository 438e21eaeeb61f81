/** Owns: MCP servers and authorization servers whose metadata a test looks for, and what discovery finds there. */

import { discover } from "../../../../../../workers/connection/auth/discovery/discovery.ts";
import type { DiscoveryOptions } from "../../../../../../workers/connection/auth/discovery/metadata.ts";
import type { Discovered } from "../../../../../../workers/connection/auth/model/model.ts";
import type { OAuthPlan } from "../../../../../../workers/connection/config/entry/oauth-keys.ts";
import { type AuthServer, authServer, problemOf, type Route, requestsFor } from "../requests/support.ts";

export const RESOURCE = "/.well-known/oauth-protected-resource";
export const OAUTH = "/.well-known/oauth-authorization-server";
export const OPENID = "/.well-known/openid-configuration";

/** Metadata of a server without oddities. */
export const metadataOf = (issuer: string, more: object = {}): object => ({
  issuer,
  authorization_endpoint: `${issuer}/authorize`,
  token_endpoint: `${issuer}/token`,
  registration_endpoint: `${issuer}/register`,
  code_challenge_methods_supported: ["S256"],
  ...more,
});

/** An MCP server at `/mcp` whose metadata name `issuer`. */
export const naming = (issuer: string, more: object = {}): Promise<AuthServer> =>
  authServer((origin) => ({
    [`${RESOURCE}/mcp`]: { resource: `${origin}/mcp`, authorization_servers: [issuer], ...more },
  }));

export interface Wanted extends Partial<Omit<DiscoveryOptions, "plan">> {
  plan?: Partial<OAuthPlan>;
}

const asked = ({ origin }: AuthServer, { plan, ...more }: Wanted, notes: string[]): DiscoveryOptions => ({
  url: new URL(`${origin}/mcp`),
  challenge: undefined,
  plan: { grantType: "authorization_code", clientRegistration: "auto", ...plan },
  requests: requestsFor(origin),
  onNote: (note) => notes.push(note),
  ...more,
});

export const found = async (
  server: AuthServer,
  wanted: Wanted = {},
): Promise<Discovered & { notes: string[]; issuer: string }> => {
  const notes: string[] = [];
  const discovered = await discover(asked(server, wanted, notes));
  return { ...discovered, notes, issuer: discovered.metadata.issuer };
};

export const refused = (server: AuthServer, wanted: Wanted = {}): Promise<{ kind: string; facts: object }> =>
  problemOf(discover(asked(server, wanted, [])));

export const status =
  (code: number, body = "", headers: Record<string, string> = {}): Route =>
  (response) =>
    response.writeHead(code, headers).end(body);

export const challenged = (resourceMetadata: string): Wanted => ({
  challenge: { scheme: "Bearer", resourceMetadata },
});
