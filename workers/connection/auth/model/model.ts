/**
 * What the parts of a sign-in hand to each other. Owns: the stored record of a sign-in, the client in it, what discovery
 * found, and the failures of a sign-in with their words. Must not: read, write or send anything. Called by: every folder
 * below auth. Pure.
 */
import type { AuthorizationServer } from "oauth4webapi";

export { type AuthChallenge, parseChallenge, type RefusedRequest } from "./challenge.ts";
export { explainProblem } from "./explain.ts";
export { type ProblemFacts, SignInProblem, type SignInProblemKind } from "./problem.ts";
export { isSameState } from "./same-state.ts";

export type ClientAuthMethod = "none" | "client_secret_post" | "client_secret_basic" | "private_key_jwt";

/** The client as which the user signs in. A secret of the configuration is never stored: it is read anew each time. */
export interface ClientRecord {
  id: string;
  /** Only of a dynamic registration. */
  secret?: string;
  method: ClientAuthMethod;
  kind: "configured" | "metadata-document" | "dynamic";
  /** Redirect URIs that a dynamic registration named. */
  redirectUris?: string[];
  /** Milliseconds since the epoch. Absent: the secret does not expire. */
  secretExpiresAt?: number;
  /** When the client was registered, in milliseconds since the epoch. */
  registeredAt?: number;
}

/**
 * One sign-in as it is stored. The names with underscores are those of the token response (RFC 6749, section 5.1), so
 * that other programs can read the file. Times are milliseconds since the epoch.
 */
export interface SignInRecord {
  version: 1;
  server: string;
  /** MCP endpoint for which the tokens are. */
  url: string;
  /** Authorization server that issued client and tokens. They are sent to no other. */
  issuer: string;
  /** The user agreed that the authorization server calls itself this, although its address says something else. */
  acceptedIssuer?: string;
  /** `resource` of the authorization (RFC 8707). Absent: none was sent. */
  resource?: string;
  tokenEndpoint: string;
  /** RFC 7009. Absent: the server has none. */
  revocationEndpoint?: string;
  client: ClientRecord;
  access_token?: string;
  token_type?: string;
  refresh_token?: string;
  expiresAt?: number;
  /** Scope of the last authorization request. */
  requestedScope?: string;
  /** Scope that was granted: the token response's, else the requested one (RFC 6749, section 5.1). */
  scope?: string;
  obtainedAt?: number;
  /** A process has sent the refresh token and has not written the answer yet. */
  refreshing?: { at: number; pid: number };
}

/** Tokens that someone else put into `<agentDir>/mcp-oauth/<server>/tokens.json`. They are used, never written. */
export interface GivenTokens {
  access_token: string;
  token_type: string;
  refresh_token?: string;
  /** Milliseconds since the epoch. Absent: unknown. */
  expiresAt?: number;
}

/** What the token endpoint answered, checked. `expiresAt`: milliseconds since the epoch. */
export interface TokenAnswer {
  access_token: string;
  token_type: string;
  refresh_token?: string;
  expiresAt?: number;
  scope?: string;
}

/** What discovery found. `metadata.issuer` is the issuer to which clients and tokens are bound. */
export interface Discovered {
  metadata: AuthorizationServer;
  /** Address of the metadata, or the origin at which the endpoints are guessed. */
  foundAt: string;
  /** `resource` to send. Absent: none is sent, because the server names none or the configuration says so. */
  resource?: string;
  /** `scopes_supported` of the protected resource (RFC 9728). */
  resourceScopes?: string[];
  /** The server follows MCP 2025-03-26: its own origin is the authorization server. */
  legacy: boolean;
  /** The issuer differs from the address under which it was found, and the configuration or the user accepts it. */
  acceptedIssuer?: string;
}
