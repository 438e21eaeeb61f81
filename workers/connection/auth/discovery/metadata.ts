/**
 * Reads metadata of a protected resource (RFC 9728) and of an authorization server (RFC 8414). Owns: where they lie, which
 * answers mean that there are none, and what is taken from them: each field is bounded, and a wrong one counts as absent.
 * Trouble of a server or of the network never means that there are none, since the next address could belong to another
 * authorization server.
 */
import type { AuthorizationServer } from "oauth4webapi";
import { asList } from "../../../../src/shared/protocol/values.ts";
import type { OAuthPlan } from "../../config/entry/oauth-keys.ts";
import { type AuthChallenge, type DpopWish, needsUser, SignInProblem } from "../model/model.ts";
import { addressProblem, badAnswer, hostOf, namesPrivateHost, shownAddress } from "../requests/addresses.ts";
import { isHtml, readObject } from "../requests/mend.ts";
import { type AuthRequests, isTrouble } from "../requests/requests.ts";

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

/** Real metadata have at most some hundred scopes, and addresses of some hundred characters. */
const LIST_ITEMS = 1_000;
const ITEM_CHARS = 256;
const ADDRESS_CHARS = 2_048;

/** Printable ASCII without spaces, as in identifiers, scopes (RFC 6749, section 3.3) and addresses. */
const PRINTABLE = /^[!-~]+$/;

const isWord = (value: unknown, chars: number): value is string =>
  typeof value === "string" && value.length <= chars && PRINTABLE.test(value);

/** An identifier or an address as it is written; undefined if it cannot be one. */
export const readAddress = (value: unknown): string | undefined =>
  isWord(value, ADDRESS_CHARS) ? value : undefined;

/** The words of a list, or of a text with spaces; undefined if there are none. Other items are left out. */
export function readWords(value: unknown, chars = ITEM_CHARS): string[] | undefined {
  const items: readonly unknown[] = typeof value === "string" ? value.split(" ", LIST_ITEMS) : asList(value);
  const words = items.slice(0, LIST_ITEMS).filter((item) => isWord(item, chars));
  return words.length === 0 ? undefined : words;
}

const readAddresses = (fields: Fields, key: string): string[] => readWords(fields[key], ADDRESS_CHARS) ?? [];

/** Some servers write truth as a text. */
export const readFlag = (value: unknown): boolean => value === true || value === "true";

export interface DiscoveryOptions {
  url: URL;
  challenge: AuthChallenge | undefined;
  /** Resolved: no variables. */
  plan: OAuthPlan;
  /** The issuer that the user accepted for this server. */
  acceptedIssuer?: string | undefined;
  requests: AuthRequests;
  onNote: (note: string) => void;
  /** `url` is the issuer itself, and no server names it. */
  isIdentity?: true;
}

export type Fields = Record<string, unknown>;

type Document =
  | { kind: "found"; fields: Fields; url: URL }
  | { kind: "absent" }
  /** There is an answer, but it is not metadata. */
  | { kind: "unusable"; problem: SignInProblem };

const unusable = (url: URL, what: string): Document => ({ kind: "unusable", problem: badAnswer(url, what) });

/** Throws `SignInProblem` if the server has trouble or cannot be reached. */
async function readDocument(url: URL, requests: AuthRequests): Promise<Document> {
  const response = await requests.fetch(url.href, { method: "GET" });
  const { status } = response;
  if (isTrouble(status)) throw new SignInProblem("unavailable", { url: shownAddress(url), status });
  if (status >= 300 && status < 400) return unusable(url, "a redirect to another server");
  if (status !== 200) return { kind: "absent" };
  const text = await response.text();
  const fields = readObject(text);
  if (fields) return { kind: "found", fields, url };
  const page = isHtml({ contentType: response.headers.get("content-type") ?? undefined, text });
  return unusable(url, page ? "HTML in the place of JSON" : "it is not a JSON object");
}

/**
 * The first document in which `lacks` finds nothing wrong; otherwise what is wrong with the first one that is not
 * absent. `lacks` answers why fields are not the metadata.
 */
export async function firstDocument(
  urls: readonly URL[],
  requests: AuthRequests,
  lacks: (fields: Fields) => string | undefined,
): Promise<Document> {
  let wrong: Document = { kind: "absent" };
  for (const url of urls) {
    const found = await readDocument(url, requests);
    const lack = found.kind === "found" ? lacks(found.fields) : undefined;
    if (found.kind === "found" && lack === undefined) return found;
    const reason = lack === undefined ? found : unusable(url, lack);
    if (wrong.kind === "absent") wrong = reason;
  }
  return wrong;
}

type IssuerVerdict =
  /** `accepted`: the issuer differs from its address, and the configuration or the user accepts it. */
  | { kind: "same" }
  | { kind: "accepted"; issuer: string }
  | { kind: "differs"; expected: string; found: string };

const withoutSlash = (issuer: string): string => (issuer.endsWith("/") ? issuer.slice(0, -1) : issuer);

/** Google and others write their issuer with and without a slash at its end. Nothing else is treated as equal. */
export const isSameIssuer = (a: string, b: string): boolean =>
  a === b || withoutSlash(a) === b || a === withoutSlash(b);

/**
 * `expected`: the identifier by which the metadata were found; undefined: the user wrote the address of the metadata.
 * `found`: `issuer` of the metadata. `acceptedIssuer`: the one that the user accepted for this server.
 */
export function judgeIssuer({
  expected,
  found,
  plan,
  acceptedIssuer,
}: {
  expected: string | undefined;
  found: string;
  plan: Pick<OAuthPlan, "issuer" | "skipIssuerMetadataValidation">;
  acceptedIssuer: string | undefined;
}): IssuerVerdict {
  const isOwn = expected === undefined || isSameIssuer(expected, found);
  if (plan.issuer !== undefined && !isSameIssuer(plan.issuer, found)) {
    return { kind: "differs", expected: plan.issuer, found };
  }
  if (isOwn) return { kind: "same" };
  const isAccepted =
    plan.issuer !== undefined || acceptedIssuer === found || plan.skipIssuerMetadataValidation === true;
  return isAccepted ? { kind: "accepted", issuer: found } : { kind: "differs", expected, found };
}

export interface ResourceMetadata {
  /** Address at which the metadata are. */
  url: URL;
  /** As the server writes it. Absent: the server does not say. */
  resource?: string;
  issuers: string[];
  scopes?: string[];
  /** Whether it takes tokens that are bound to a key. `unknown`: it requires them, and lists no algorithm of ours. */
  dpop?: DpopWish | "unknown";
}

type ResourceSearch =
  | { kind: "found"; metadata: ResourceMetadata }
  /** `problem`: there was an answer, but it was not metadata. */
  | { kind: "absent"; problem?: SignInProblem };

/** More authorization servers than any server names. */
const ISSUERS = 10;

/** Why fields are not the metadata of a resource: a server may answer any path with some JSON. */
const lacksResource = (fields: Fields): string | undefined =>
  readAddress(fields.resource) === undefined && readAddresses(fields, "authorization_servers").length === 0
    ? "it names neither a resource nor an authorization server"
    : undefined;

/** The one algorithm of our proofs, which RFC 9449 and each of its servers know. */
export const PROOF_ALG = "ES256";

/** RFC 9728, section 2. */
function readDpop(fields: Fields): { dpop?: DpopWish | "unknown" } {
  const algs = readWords(fields.dpop_signing_alg_values_supported);
  const knows = algs?.includes(PROOF_ALG);
  if (readFlag(fields.dpop_bound_access_tokens_required))
    return { dpop: knows === false ? "unknown" : "required" };
  return knows ? { dpop: "offered" } : {};
}

export function readResource(fields: Fields, url: URL): ResourceMetadata {
  const resource = readAddress(fields.resource);
  const scopes = readWords(fields.scopes_supported);
  return {
    url,
    ...(resource === undefined ? {} : { resource }),
    issuers: [...new Set(readAddresses(fields, "authorization_servers"))].slice(0, ISSUERS),
    ...(scopes === undefined ? {} : { scopes }),
    ...readDpop(fields),
  };
}

/** The address in the challenge; undefined if there is none that may be asked. Some servers write a path only. */
function challengedAddress(
  endpoint: URL,
  challenge: AuthChallenge | undefined,
  note: (note: string) => void,
): URL | undefined {
  const text = readAddress(challenge?.resourceMetadata);
  if (text === undefined || !URL.canParse(text, endpoint.href)) return undefined;
  const url = new URL(text, endpoint);
  // A server behind a proxy that ends TLS often takes its own address for http. The well-known address needs no trust.
  if (!addressProblem(url)) return url;
  note(
    `names ${shownAddress(url)} for its metadata, which is not https: its well-known address is asked instead`,
  );
  return undefined;
}

/** Looks at the address in the challenge, then for the endpoint's path, then for its origin. Throws `SignInProblem`. */
export async function findResource({
  url,
  challenge,
  requests,
  onNote,
}: Pick<DiscoveryOptions, "url" | "challenge" | "requests" | "onNote">): Promise<ResourceSearch> {
  const given = challengedAddress(url, challenge, onNote);
  const wellKnown = resourceAddresses(url).filter(({ href }) => href !== given?.href);
  const found = await firstDocument(given ? [given, ...wellKnown] : wellKnown, requests, lacksResource);
  if (found.kind === "found") return { kind: "found", metadata: readResource(found.fields, found.url) };
  return found.kind === "absent" ? { kind: "absent" } : { kind: "absent", problem: found.problem };
}

/** Path with one slash at its end, so that `/mcp` does not cover `/mcp2`. */
const asFolder = (path: string): string => (path.endsWith("/") ? path : `${path}/`);

/**
 * Whether metadata for `resource` are for the endpoint: the same origin, and a path that covers the endpoint's (MCP
 * 2025-11-25, canonical server URI; RFC 9728, section 3.3). Otherwise a server could get tokens for another one.
 */
export function coversEndpoint(resource: string, endpoint: URL): boolean {
  if (!URL.canParse(resource)) return false;
  const { origin, pathname, hash, username, password } = new URL(resource);
  if (origin !== endpoint.origin || hash !== "" || username !== "" || password !== "") return false;
  return asFolder(endpoint.pathname).startsWith(asFolder(pathname));
}

export function checkResource({ resource }: ResourceMetadata, endpoint: URL): void {
  if (resource === undefined || coversEndpoint(resource, endpoint)) return;
  throw new SignInProblem("resource-differs", { expected: shownAddress(endpoint), found: resource });
}

interface MetadataContext {
  /** Address of the metadata. Requests have allowed it. */
  from: URL;
  server: URL;
  plan: Pick<OAuthPlan, "grantType" | "deviceCode">;
  onNote: (note: string) => void;
}

const LISTS = [
  "scopes_supported",
  "grant_types_supported",
  "code_challenge_methods_supported",
  "token_endpoint_auth_methods_supported",
  "token_endpoint_auth_signing_alg_values_supported",
  "revocation_endpoint_auth_methods_supported",
  "dpop_signing_alg_values_supported",
] as const;

const FLAGS = [
  "authorization_response_iss_parameter_supported",
  "client_id_metadata_document_supported",
] as const;

/** Why fields are not the metadata of an authorization server. An issuer is an address (RFC 8414, section 2). */
export function lacksIssuer(fields: Fields): string | undefined {
  const issuer = readAddress(fields.issuer);
  return issuer !== undefined && URL.canParse(issuer) && /^https?:\/\//i.test(issuer)
    ? undefined
    : "it names no issuer";
}

/** `from`: the address that names another one. */
type Named = Pick<MetadataContext, "from" | "server">;

/** The browser opens this address, so no connection checks it. The host of the metadata has been checked already. */
const sendsInside = (url: URL, { from, server }: Named): boolean =>
  namesPrivateHost(url) && hostOf(url) !== hostOf(from) && !namesPrivateHost(server);

/** An absolute address to which something may be sent. Throws `SignInProblem`: bad-answer, not-https. */
function addressIn(key: string, value: unknown, { from }: Named): URL {
  const text = readAddress(value);
  // `https:as.com` is an address for a browser, but for no other program that reads the stored sign-in.
  if (text === undefined || !URL.canParse(text) || /^https?:(?!\/\/)/i.test(text)) {
    throw badAnswer(from, `its ${key} is not an address`);
  }
  const url = new URL(text);
  const problem = addressProblem(url);
  if (problem) throw problem;
  return url;
}

/** The address of a page for the user's browser. Throws `SignInProblem`: bad-answer, not-https, private-address. */
export function pageIn(key: string, value: unknown, named: Named): URL {
  const url = addressIn(key, value, named);
  if (sendsInside(url, named)) throw new SignInProblem("private-address", { url: shownAddress(url) });
  return url;
}

/** Without a usable registration or revocation a sign-in still works, by a configured client and without revocation. */
function endpointIn(
  fields: Fields,
  key: string,
  context: MetadataContext,
  isOptional = false,
): Record<string, string> {
  const value = fields[key] ?? undefined;
  if (value === undefined && isOptional) return {};
  try {
    if (value === undefined) {
      throw new SignInProblem("no-endpoint", { what: key, url: shownAddress(context.from) });
    }
    const url = (key === "authorization_endpoint" ? pageIn : addressIn)(key, value, context);
    // RFC 6749, section 3.1.
    if (url.hash !== "") throw badAnswer(context.from, `its ${key} has a fragment`);
  } catch (error) {
    if (!isOptional || !(error instanceof SignInProblem)) throw error;
    context.onNote(`has a ${key} that is not used (${error.kind})`);
    return {};
  }
  return { [key]: String(value) };
}

/**
 * PKCE is always sent with S256. A server that lists other methods only would not check it; one that lists none may
 * (Entra and Cognito do).
 */
function checkPkce(methods: readonly string[] | undefined, { onNote }: MetadataContext): void {
  if (methods === undefined) {
    onNote("does not say whether its authorization server supports PKCE: it is used with S256");
    return;
  }
  if (!methods.includes("S256")) throw new SignInProblem("pkce-refused");
}

/**
 * `fields` have an issuer (`lacksIssuer`). Throws `SignInProblem`: no-endpoint, not-https, private-address, bad-answer,
 * pkce-refused.
 */
export function readServer(fields: Fields, context: MetadataContext): AuthorizationServer {
  const lists = LISTS.flatMap((key) => {
    const words = readWords(fields[key]);
    return words === undefined ? [] : [[key, words] as const];
  });
  const flags = FLAGS.filter((key) => readFlag(fields[key])).map((key) => [key, true] as const);
  const found: Partial<AuthorizationServer> = Object.fromEntries([...lists, ...flags]);
  const withBrowser = needsUser(context.plan) && context.plan.deviceCode !== true;
  if (withBrowser) checkPkce(found.code_challenge_methods_supported, context);
  return {
    ...found,
    issuer: readAddress(fields.issuer) ?? "",
    ...endpointIn(fields, "token_endpoint", context),
    ...(withBrowser ? endpointIn(fields, "authorization_endpoint", context) : {}),
    ...endpointIn(fields, "device_authorization_endpoint", context, true),
    ...endpointIn(fields, "registration_endpoint", context, true),
    ...endpointIn(fields, "revocation_endpoint", context, true),
  };
}
