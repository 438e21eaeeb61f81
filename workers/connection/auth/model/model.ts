/**
 * What the parts of a sign-in hand to each other. Owns: the stored record and its client, what discovery found, what a
 * server's challenge says, and each failure of a sign-in with its sentence and its remedy. Must not: read, write or send
 * anything. Pure.
 */
import { createHash, timingSafeEqual } from "node:crypto";
import type { AuthorizationServer } from "oauth4webapi";
import { type ErrorCode, ThreadsError } from "../../../../src/shared/protocol/errors.ts";
import { oneLine } from "../../../../src/shared/text/unprintable.ts";
import { commandFor, signInAdvice } from "../../../shared/commands.ts";
import { known } from "../../../shared/json.ts";
import type { OAuthPlan } from "../../config/entry/oauth-keys.ts";
import type { HttpClient, HttpRequest, HttpResponse } from "../../web/client.ts";

export type ClientAuthMethod = "none" | "client_secret_post" | "client_secret_basic" | "private_key_jwt";

/** The client as which the user signs in. A secret of the configuration is never stored: it is read anew each time. */
export interface ClientRecord {
  id: string;
  /** Only of a dynamic registration. */
  secret?: string;
  method: ClientAuthMethod;
  kind: "configured" | "metadata-document" | "dynamic";
  redirectUris?: string[];
  /** Milliseconds since the epoch. Absent: the secret does not expire. */
  secretExpiresAt?: number;
  /** When the client was registered, in milliseconds since the epoch. */
  registeredAt?: number;
}

/** A private key of P-256 (RFC 7518, section 6.2). `d` is as secret as a token. */
export interface DpopKey {
  kty: "EC";
  crv: "P-256";
  x: string;
  y: string;
  d: string;
}

/**
 * One sign-in as it is stored. The names with underscores are those of the token response (RFC 6749, section 5.1), so
 * that other programs can read the file. Times are milliseconds since the epoch.
 */
export interface SignInRecord {
  /** 2: the tokens are bound to `dpopKey`. A program that does not know the key must not send them as bearer tokens. */
  version: 1 | 2;
  /** Random, of this sign-in: renewals keep it. Absent: Pi or an older version of this package has written the record. */
  id?: string;
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
  /** The key to which the tokens are bound (RFC 9449). Only in version 2, and always there. */
  dpopKey?: DpopKey;
}

/** A token that is bound to a key (RFC 9449). Only `send` puts it into a request, with a proof for each message. */
export interface BoundToken {
  readonly value: string;
  /** Rejects as the client does. */
  send(client: HttpClient, request: HttpRequest): Promise<HttpResponse>;
}

/** What a request carries. A text is a bearer token. */
export type AccessToken = string | BoundToken;

/** The token's own text. */
export const tokenTextOf = (token: AccessToken | undefined): string | undefined =>
  typeof token === "object" ? token.value : token;

/** Tokens that someone else put into `<agentDir>/mcp-oauth/<server>/tokens.json`. They are used, never written. */
export interface GivenTokens {
  access_token: string;
  token_type: string;
  refresh_token?: string;
  /** Milliseconds since the epoch. Absent: unknown. */
  expiresAt?: number;
}

/** What the token endpoint answered, checked. */
export interface TokenAnswer extends GivenTokens {
  scope?: string;
}

/** Whether a person signs in, in a browser. All other grants ask for a token by themselves. */
export const needsUser = ({ grantType }: Pick<OAuthPlan, "grantType">): boolean =>
  grantType === "authorization_code";

/** Whether the tokens of a server are given for the sign-in at the company's identity provider. */
export const standsOnCompany = (oauth: OAuthPlan | false): boolean =>
  oauth !== false && oauth.grantType === "identity_provider";

/** What discovery found. `metadata.issuer` is the issuer to which clients and tokens are bound. */
export interface Discovered {
  metadata: AuthorizationServer;
  /** Address of the metadata, or the origin at which the endpoints are guessed. */
  foundAt: string;
  /** `resource` to send. Absent: none is sent, because the server names none or the configuration says so. */
  resource?: string;
  /** `scopes_supported` of the protected resource (RFC 9728). */
  resourceScopes?: string[];
  /** The issuer differs from the address under which it was found, and the configuration or the user accepts it. */
  acceptedIssuer?: string;
  /** The tokens are to be bound to a key (RFC 9449). */
  bindsTokens?: true;
}

/** What the company's identity provider is asked for: an assertion for one authorization server (SEP-990, section 4). */
export interface IdentityWish {
  /** Issuer of the server's authorization server. */
  audience: string;
  /** Identifier of the server (RFC 9728, section 1.2). Undefined: it names none. */
  resource: string | undefined;
  scope: string | undefined;
  /** The client at that authorization server. */
  clientId: string;
}

/** A failure of a sign-in by its kind, whose sentence and remedy are in `WORDS`. */
export type SignInProblemKind = keyof typeof WORDS;

/** What the sentences need. No fact may hold a secret. */
export interface ProblemFacts {
  /** Without query, fragment and credentials. */
  url?: string;
  expected?: string;
  found?: string;
  scope?: string;
  port?: number;
  path?: string;
  status?: number;
  most?: number;
  error?: string;
  /** A short text in plain words, or the server's own words, which `explainProblem` bounds and cleans. */
  what?: string;
  key?: string;
  /** Host of the company's identity provider, if it failed there. */
  at?: string;
}

export class SignInProblem extends Error {
  override readonly name = "SignInProblem";
  readonly kind: SignInProblemKind;
  readonly facts: ProblemFacts;

  constructor(kind: SignInProblemKind, facts: ProblemFacts = {}, cause?: unknown) {
    super(kind, cause === undefined ? undefined : { cause });
    this.kind = kind;
    this.facts = facts;
  }
}

/** Undefined for an error that is no problem of a sign-in. */
export const kindOf = (error: unknown): SignInProblemKind | undefined =>
  error instanceof SignInProblem ? error.kind : undefined;

const WORDS_CHARS = 200;
const URL_CHARS = 300;

/** What the words of a problem are made of: its facts as people may read them. */
type Facts = ProblemFacts & { server: string };

type Part = string | ((facts: Facts) => string);

/** What is wrong, behind `server: `; what helps; the error's code, if it is not `needs_auth`. */
type Words = readonly [what: Part, remedy: Part, code?: ErrorCode];

const signIn = ({ server }: Facts): string => signInAdvice(server);
const again = ({ server }: Facts): string => `Run ${commandFor("auth", server)} again.`;
const later = ({ server }: Facts): string =>
  `Nothing is lost: the next call or ${commandFor("auth", server)} tries again.`;
const login = ({ what }: Facts): string => `Run /login ${what} in Pi.`;
const register = ({ url = "the authorization server" }: Facts): string =>
  `Register a client at ${url}, and write its id as oauth.clientId.`;
export const UNSAID = "it does not say which";
const said = (text: string | undefined): string => (text ? `: ${text.replace(/\.$/, "")}` : "");

const WORDS = {
  // `what`: what is in the place of metadata.
  "no-sign-in": [
    ({ what, url }) =>
      `it offers no sign-in${what === undefined ? "" : `: ${url} has no metadata, but ${what}`}`,
    'If it wants a key, write "bearerTokenEnv": "NAME_OF_VARIABLE" or "headers" for it in mcp.json.',
  ],
  "not-signed-in": ["it needs a sign-in", signIn],
  // `path`: of tokens that someone else wrote.
  expired: [
    ({ path }) =>
      `${path === undefined ? "the sign-in has" : `the tokens in ${path} have`} expired and cannot be renewed`,
    (facts) => (facts.path === undefined ? signIn(facts) : `Renew the file, or sign in: ${signIn(facts)}`),
  ],
  "refresh-refused": ["the authorization server ended the sign-in", signIn],
  "fresh-token-refused": [
    "it refused a token that was just issued for it",
    (facts) => `${signIn(facts)} If that does not help, its operator must look at the token's audience.`,
  ],
  "binding-wanted": ["it takes only tokens that are bound to a key (DPoP)", signIn],
  "no-dpop": [
    ({ key = "it", url }) =>
      `${key} asks for tokens that are bound to a key (DPoP), and ${url} offers none with ES256`,
    ({ key }) =>
      key === undefined
        ? "Only its operator can change that."
        : `Remove ${key} if the server takes other tokens, too.`,
    "connect_failed",
  ],
  "not-bound": [
    ({ url }) => `${url} gave a token that is not bound to the key of the sign-in (DPoP)`,
    // A model reads this too.
    'The token is not used. Only the user can decide to take such tokens: "dpop": false in oauth.',
    "connect_failed",
  ],
  "proof-refused": [
    ({ url, error }) => `${url} refuses the proof of the key to which the sign-in is bound (DPoP: ${error})`,
    (facts) => `Check the clock of this machine. ${later(facts)}`,
    "connect_failed",
  ],
  moved: [({ found }) => `it has moved to another authorization server${found ? ` (${found})` : ""}`, signIn],
  // `what`: the provider whose token it is, if it is one of Pi.
  "scope-wanted": [
    ({ scope = UNSAID }) => `it wants more rights: ${scope}`,
    (facts) => (facts.what === undefined ? signIn : login)(facts),
  ],
  "scope-loop": [
    ({ scope = UNSAID }) => `two sign-ins have not given it the rights that it wants: ${scope}`,
    "Its operator must look at what the authorization server grants. A restart of Pi tries again.",
  ],
  "scope-refused": [
    ({ scope }) => `the authorization server refuses the scope${said(scope)}`,
    "Write the scope that it knows as oauth.scope.",
  ],
  "no-registration": ["its authorization server registers no clients by itself", register],
  "known-clients-only": [
    "its authorization server takes known clients only",
    (facts) => `${register(facts)} Some servers go by oauth.clientName.`,
  ],
  "registration-refused": [
    ({ what }) => `its authorization server refused to register a client${said(what)}`,
    register,
  ],
  "client-unknown": [
    "its authorization server no longer knows this client",
    (facts) => `${again(facts)} With a configured client, check oauth.clientId and oauth.clientSecret.`,
  ],
  "issuer-differs": [
    ({ expected, found }) => `its authorization server should be ${expected} and says it is ${found}`,
    // A model reads this too, and the server chose the issuer.
    ({ found }) => `Only the user can decide to trust that: "issuer": "${found}" in oauth.`,
  ],
  "resource-differs": [
    ({ expected, found }) => `it should be the resource ${expected} and says it is ${found}`,
    'If the url is right, write that resource as "resource" in oauth.',
  ],
  // Entra: AADSTS9010010.
  "resource-refused": [
    "its authorization server refuses the parameter resource",
    'Write "resource": false in oauth.',
  ],
  "pkce-refused": [
    "its authorization server does not support PKCE with S256, without which no sign-in is safe",
    "Only its operator can change that.",
    "connect_failed",
  ],
  "no-endpoint": [
    ({ what }) => `its authorization server names no ${what}`,
    "If it publishes other metadata, write their address as oauth.authServerMetadataUrl.",
    "connect_failed",
  ],
  "no-device-code": [
    "its authorization server offers no sign-in with a code for another device",
    "Sign in without that: without --device, and without deviceCode in oauth.",
  ],
  "port-in-use": [
    ({ port }) => `another program uses port ${port}, on which the browser must answer`,
    (facts) => `End that program, or change oauth.callbackPort. ${again(facts)}`,
  ],
  "redirect-refused": [
    ({ url }) => `its authorization server refuses the redirect URI ${url}`,
    "Write one that is registered there as oauth.redirectUri.",
  ],
  "state-wrong": ["the answer of the browser belongs to another sign-in", again],
  // RFC 9207. Neither `error` nor its description may be shown. `url`: origin of the page, which need not have promised it.
  "response-issuer-absent": [
    "the answer of the browser does not say which authorization server it comes from (iss), as was promised",
    ({ url }) =>
      `It is not used, since any other server could have sent it. If you signed in at ${url}, only its operator can mend that (RFC 9207).`,
  ],
  // `expected`, `found`: origins.
  "response-issuer-wrong": [
    ({ expected, found }) =>
      `the answer of the browser comes from another authorization server: it names ${found} in place of ${expected}`,
    (facts) =>
      `Do not trust that page. ${again(facts)} If it stays so, its operator has to make both the same (iss, RFC 9207).`,
  ],
  denied: ["the sign-in was declined in the browser", again],
  "code-refused": ["the authorization server no longer accepts the code of this sign-in", again],
  // Of a grant without a user. `found`: what the assertion says of itself.
  "assertion-refused": [
    ({ what }) => `its authorization server refuses the assertion${said(what)}`,
    ({ expected, found }) =>
      `${found ? `Of the assertion: ${found}. ` : ""}The authorization server is ${expected}, and must trust the issuer of the assertion.`,
  ],
  "company-denied": [
    ({ what }) => `your company does not allow it${said(what)}`,
    "Ask those who manage the identity provider to allow this server for you and for Pi.",
  ],
  "identity-refused": [
    ({ what }) => `your sign-in is not accepted any more${said(what)}`,
    (facts) => `${signIn(facts)} If that does not help, ask those who manage the identity provider.`,
  ],
  "identity-wrong": [
    ({ url, what }) => `${url} gave an answer that cannot be used${said(what)}`,
    "Only those who manage the identity provider can change that.",
  ],
  "no-identity": [
    ({ url }) => `${url} does not say who you are (it sent no id_token)`,
    (facts) => `${signIn(facts)} The scope must hold openid.`,
  ],
  "timed-out": ["the sign-in was not finished in time", again],
  cancelled: ["the sign-in was cancelled", "Nothing was changed.", "cancelled"],
  "too-many": [
    ({ most }) => `${most} other sign-ins wait for their browsers`,
    "Finish or cancel one of them first.",
  ],
  unreachable: [({ url, what }) => `${url} could not be reached${said(what)}`, later, "connect_failed"],
  // 5xx, 408 and 429.
  unavailable: [({ url, status }) => `${url} answered status ${status}`, later, "connect_failed"],
  "bad-answer": [
    ({ url, what }) => `${url} gave an answer that cannot be used${said(what)}`,
    "Check the url in mcp.json, or oauth.authServerMetadataUrl.",
    "connect_failed",
  ],
  refused: [
    ({ error = "an error", what }) => `the authorization server answered ${error}${said(what)}`,
    again,
  ],
  // `what`: why it would, although it is on this machine.
  "not-https": [
    ({ url, what }) => `${url} is not https, and a token would travel in the open${said(what)}`,
    ({ what }) =>
      what === undefined
        ? "Only its operator can change that."
        : "Write its host into NO_PROXY, so that it stays on this machine.",
    "connect_failed",
  ],
  "private-address": [
    ({ url }) => `${url} is in a private network, which a public server may not name`,
    "If that is meant, write oauth.authServerMetadataUrl yourself.",
    "connect_failed",
  ],
  "secret-elsewhere": [
    ({ url, what }) => `its ${what} would go to ${url}, which is another site that mcp.json does not name`,
    // A model reads this too, and the server chose the address.
    ({ key, found }) => `Only the user can decide to trust that: "${key}": "${found}" in oauth.`,
    "bad_config",
  ],
  // `what`: the provider's name in Pi.
  "provider-unknown": [
    ({ what }) => `Pi knows no provider ${what}`,
    "Correct auth.provider in mcp.json, or install the extension that brings the provider.",
    "bad_config",
  ],
  "provider-signed-out": [({ what }) => `it needs your sign-in to the provider ${what} in Pi`, login],
  "provider-failed": [
    ({ what }) => `Pi could not give the token of the provider ${what}`,
    (facts) => `The next call tries again. If that does not help: ${login(facts)}`,
  ],
  "provider-refused": [
    ({ what }) => `it refuses the token of the provider ${what}`,
    (facts) => `${login(facts)} If that does not help, its operator must look at what the token may do.`,
  ],
  "provider-needs-pi": [
    ({ what }) => `it wants the token of the provider ${what}, which only Pi can give`,
    "Use the server in Pi.",
  ],
  "store-unwritable": [
    ({ path, what }) => `the sign-in could not be written to ${path}${said(what)}`,
    "It holds until this session ends. Until then it is tried again.",
  ],
  // `what`: a sentence of auth/store/system.
  "system-store": [
    ({ what }) => `the system's credential store cannot be used${said(what)}`,
    "Put that right, then try again. No token was lost or written to a file.",
    "connect_failed",
  ],
  "lock-busy": [
    ({ path }) => `another Pi is renewing the sign-in and has not finished (${path})`,
    later,
    "connect_failed",
  ],
  "bad-settings": [
    ({ key, what }) => `${key} cannot be used${said(what)}`,
    "Correct it in mcp.json.",
    "bad_config",
  ],
} satisfies Record<string, Words>;

/** Facts as people may read them: without secrets, in one line, bounded. */
function shownFacts(facts: ProblemFacts, redact: (text: string) => string): ProblemFacts {
  return Object.fromEntries(
    Object.entries(facts).map(([key, value]: [string, string | number]) => {
      if (typeof value === "number") return [key, value];
      return [key, oneLine(redact(value), key === "url" || key === "path" ? URL_CHARS : WORDS_CHARS)];
    }),
  );
}

/**
 * `data` names server, reason, scope and the identity provider only, because an address may hold a secret in its query. `at`: the
 * identity provider at which it failed, if the problem does not say it.
 */
export function explainProblem(
  { kind, facts, cause }: Pick<SignInProblem, "kind" | "facts" | "cause">,
  { server, redact, at }: { server: string; redact: (text: string) => string; at?: string | undefined },
): ThreadsError {
  const shown = shownFacts({ ...(at !== undefined && { at }), ...facts }, redact);
  const [what, remedy, code = "needs_auth"]: Words = WORDS[kind];
  const textOf = (part: Part): string => (typeof part === "string" ? part : part({ server, ...shown }));
  const scope = shown.scope === undefined ? {} : { scope: shown.scope };
  // Keys of a server's sign-in are named in the same way as those of the identity provider.
  const named = (text: string): string =>
    shown.at === undefined
      ? text
      : text.replaceAll(/(?<![\w./:-])oauth\.(?=[a-z])/g, "settings.identityProvider.");
  const where = shown.at === undefined ? "" : ` (at the identity provider ${shown.at})`;
  const provider = shown.at === undefined ? {} : { at: shown.at };
  return new ThreadsError(code, `${server}: ${named(textOf(what))}${where}.`, {
    remedy: named(textOf(remedy)),
    data: { server, reason: kind, ...scope, ...provider },
    cause,
  });
}

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
  /** Whether the server takes tokens that are bound to a key, beside others or only them (RFC 9449, section 7). */
  dpop?: DpopWish;
}

/** What a server says about tokens that are bound to a key. */
export type DpopWish = "offered" | "required";

/** Whether only a token that is bound to a key is worth sending. */
export const needsKey = (
  dpop: OAuthPlan["dpop"],
  challenge: Pick<AuthChallenge, "dpop"> | undefined,
): boolean => dpop === true || challenge?.dpop === "required";

/** Errors by which a server refuses a proof, not the token (RFC 9449, sections 7.1 and 8). */
const PROOF_ERRORS = new Set(["invalid_dpop_proof", "use_dpop_nonce"]);

export const refusesProof = (error: string | undefined): error is string =>
  error !== undefined && PROOF_ERRORS.has(error);

/** An answer 401, or 403 that asks for more scope. */
export interface RefusedRequest {
  status: number;
  challenge: AuthChallenge | undefined;
  sent: AccessToken | undefined;
  /** The request was sent before with another token, which was refused, too. */
  isRepeated: boolean;
  /** The IP address that refused it; undefined behind a proxy. */
  address?: string | undefined;
}

const HEADER_CHARS = 4_000;
/** A parameter with a token or a quoted string as its value. */
const PARAMETER = /([a-z_]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))/gi;

/** The header without what is beyond the limit: half a parameter would be a wrong one. */
const wholeParameters = (header: string): string =>
  header.length <= HEADER_CHARS
    ? header
    : header.slice(0, header.lastIndexOf(",", HEADER_CHARS) + 1 || HEADER_CHARS);

/** Where a challenge of each scheme begins; -1: there is none. What a quoted text says is none. */
function schemesIn(header: string): { bearer: number; dpop: number } {
  const bare = header.replace(/"(?:[^"\\]|\\.)*"/g, (quoted) => " ".repeat(quoted.length));
  return { bearer: bare.search(/\bbearer\b(?!\s*=)/i), dpop: bare.search(/(?<![^\s,])dpop(?![^\s,])/i) };
}

/**
 * `preferred`: whose challenge is read, or else the first one of any scheme. What it leaves out is taken from the challenge
 * of the other scheme for tokens.
 */
export function parseChallenge(
  header: string | undefined,
  preferred: "bearer" | "dpop" = "bearer",
): AuthChallenge | undefined {
  if (header === undefined) return undefined;
  const bounded = wholeParameters(header);
  const { bearer, dpop } = schemesIn(bounded);
  const [own, other] = preferred === "dpop" ? [dpop, bearer] : [bearer, dpop];
  const start = Math.max(0, own);
  const [, scheme] = /^([\w!#$%&'*+.^`|~-]+)/.exec(bounded.slice(start)) ?? [];
  if (scheme === undefined) return undefined;
  const found = new Map<string, string>();
  const parts = [start + scheme.length, ...(other < 0 ? [] : [other])].map((from) => bounded.slice(from));
  for (const [, name = "", quoted, token = ""] of parts.flatMap((part) => [...part.matchAll(PARAMETER)])) {
    const value = quoted?.replace(/\\(.)/g, "$1") ?? token;
    if (!found.has(name.toLowerCase())) found.set(name.toLowerCase(), value);
  }
  const wish = bearer < 0 ? "required" : "offered";
  return {
    scheme,
    ...known({
      realm: found.get("realm"),
      scope: found.get("scope"),
      error: found.get("error"),
      errorDescription: found.get("error_description"),
      resourceMetadata: found.get("resource_metadata"),
      dpop: dpop < 0 ? undefined : wish,
    }),
  };
}

const digest = (text: string): Buffer => createHash("sha256").update(text).digest();

export const isSameState = (received: string, sent: string): boolean =>
  timingSafeEqual(digest(received), digest(sent));

/** A token is renewed so long before its end, or a tenth of its life before it, whichever is shorter. */
const EARLY_MS = 60_000;
const EARLY_PART = 0.1;

type Times = Pick<SignInRecord, "expiresAt" | "obtainedAt">;

/** Whether a token has passed its end. A token without a known end has not. */
export const isExpired = ({ expiresAt }: Pick<GivenTokens, "expiresAt">, nowMs: number): boolean =>
  expiresAt !== undefined && expiresAt <= nowMs;

/** Whether a request that begins now can use the token without renewing it first. */
export function isFresh({ expiresAt, obtainedAt }: Times, nowMs: number): boolean {
  if (expiresAt === undefined) return true;
  const lifeMs = obtainedAt === undefined ? Number.POSITIVE_INFINITY : Math.max(0, expiresAt - obtainedAt);
  return expiresAt - nowMs > Math.min(EARLY_MS, lifeMs * EARLY_PART);
}
