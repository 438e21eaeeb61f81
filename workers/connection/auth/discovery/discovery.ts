/**
 * Finds the authorization server of an MCP server. Owns: protected resource metadata (RFC 9728), the metadata of the
 * authorization server (RFC 8414, OpenID Connect Discovery) in the order of MCP 2025-11-25, the fallback of MCP
 * 2025-03-26, and the checks of issuer and resource. Must not: register or sign in. Called by: tokens, sign-in.
 */
import type { OAuthPlan } from "../../config/entry/oauth-keys.ts";
import { type AuthChallenge, type Discovered, SignInProblem } from "../model/model.ts";
import { type AuthRequests, shownAddress } from "../requests/requests.ts";
import { findNamedServer, findServerAt, findServerOfOrigin } from "./authorization-server.ts";
import { isSameIssuer } from "./issuer.ts";
import { checkResource, findResource, type ResourceMetadata } from "./resource.ts";

export { promisesIssuer } from "./authorization-server.ts";
export { checkSecretTarget, isSameSite, isVouched } from "./owners.ts";

export interface DiscoveryOptions {
  /** The MCP endpoint. */
  url: URL;
  /** The server's last challenge. */
  challenge: AuthChallenge | undefined;
  /** Resolved: no variables. */
  plan: OAuthPlan;
  /** The issuer that the user accepted for this server. */
  acceptedIssuer?: string | undefined;
  requests: AuthRequests;
  onNote: (note: string) => void;
}

/** The endpoint without what is not part of a resource's identifier (RFC 8707, section 2). */
const canonical = ({ origin, pathname }: URL): string => (pathname === "/" ? origin : `${origin}${pathname}`);

/** `resource` to send: the configured one, else the one that the server names, as it is written. */
function resourceToSend(
  { plan, url }: DiscoveryOptions,
  metadata: ResourceMetadata | undefined,
): { resource?: string } {
  if (plan.resource === false) return {};
  if (plan.resource !== undefined) return { resource: plan.resource };
  return metadata === undefined ? {} : { resource: metadata.resource ?? canonical(url) };
}

/** Problems of one authorization server, after which the next one is tried. Trouble that may pass is not among them. */
const NEXT: ReadonlySet<SignInProblem["kind"]> = new Set([
  "bad-answer",
  "issuer-differs",
  "no-endpoint",
  "not-https",
  "pkce-refused",
  "private-address",
]);

type FoundServer = Pick<Discovered, "metadata" | "foundAt" | "acceptedIssuer">;

/** The first authorization server that can be used, and the configured issuer before all others. */
async function firstUsable(issuers: readonly string[], options: DiscoveryOptions): Promise<FoundServer> {
  const { plan, onNote } = options;
  const order = [...issuers].sort((a, b) => Number(b === plan.issuer) - Number(a === plan.issuer));
  let first: unknown;
  for (const issuer of order) {
    try {
      const found = await findNamedServer(issuer, options);
      if (issuers.length > 1) onNote(`names ${issuers.length} authorization servers: ${issuer} is used`);
      return found;
    } catch (error) {
      if (!(error instanceof SignInProblem) || !NEXT.has(error.kind)) throw error;
      first ??= error;
    }
  }
  throw first;
}

async function fromResource(metadata: ResourceMetadata, options: DiscoveryOptions): Promise<Discovered> {
  const { plan, url, onNote } = options;
  if (plan.resource === undefined) checkResource(metadata, url);
  const { issuers, scopes } = metadata;
  if (issuers.length === 0) {
    onNote(`names no authorization server in ${shownAddress(metadata.url)}: its own origin is asked`);
  }
  return {
    ...(await firstUsable(issuers.length === 0 ? [url.origin] : issuers, options)),
    ...resourceToSend(options, metadata),
    ...(scopes === undefined ? {} : { resourceScopes: scopes }),
    legacy: false,
  };
}

/** Throws `SignInProblem`. */
export async function discover(options: DiscoveryOptions): Promise<Discovered> {
  const { plan } = options;
  if (plan.authServerMetadataUrl !== undefined) {
    const found = await findServerAt(plan.authServerMetadataUrl, options);
    return { ...found, ...resourceToSend(options, undefined), legacy: false };
  }
  const search = await findResource(options);
  if (search.kind === "found") return await fromResource(search.metadata, options);
  const found = await findServerOfOrigin(search.problem, options);
  return { ...found, ...resourceToSend(options, undefined), legacy: true };
}

/**
 * Whether anything at the server's own origin says that it takes a sign-in: metadata, or the endpoints of MCP 2025-03-26.
 * No other server is asked, because the user has not begun a sign-in. A server that has trouble, or whose metadata have a
 * mistake, may take one: the sign-in says what is wrong. Throws what is no problem of a sign-in.
 */
export async function offersSignIn(question: Omit<DiscoveryOptions, "onNote">): Promise<boolean> {
  const options = { ...question, requests: limited(question.requests, ALL_MS), onNote: () => undefined };
  try {
    const search = await findResource(options);
    if (search.kind === "found" && search.metadata.issuers.length > 0) return true;
    await findServerOfOrigin(search.kind === "found" ? undefined : search.problem, options);
    return true;
  } catch (error) {
    if (!(error instanceof SignInProblem)) throw error;
    return error.kind !== "no-sign-in";
  }
}

/** Trouble that may pass: it says nothing about a move. */
const PASSING: ReadonlySet<SignInProblem["kind"]> = new Set(["cancelled", "unavailable", "unreachable"]);

type Ask = () => Promise<string | undefined>;

/** What `ask` answers; undefined after trouble that may pass, and `otherwise` after any other problem. */
async function answerOr(otherwise: string | undefined, ask: Ask): Promise<string | undefined> {
  try {
    return await ask();
  } catch (error) {
    if (!(error instanceof SignInProblem)) throw error;
    return PASSING.has(error.kind) ? undefined : otherwise;
  }
}

/** All requests of one question together: it is asked under the lock of the sign-in, or while a server connects. */
const ALL_MS = 20_000;

export interface MoveQuestion extends Omit<DiscoveryOptions, "onNote"> {
  /** Issuer of the stored sign-in. */
  issuer: string;
  limitMs?: number;
}

/** The requests, which end with the limit. A server that names many slow ones would otherwise hold the lock for minutes. */
function limited(requests: AuthRequests, limitMs: number): AuthRequests {
  const limit = AbortSignal.timeout(limitMs);
  const both = (own: AbortSignal | null | undefined): AbortSignal =>
    own ? AbortSignal.any([own, limit]) : limit;
  return { fetch: (url, init) => requests.fetch(url, { ...init, signal: both(init.signal) }) };
}

/**
 * The authorization server to which the MCP server has moved since a sign-in with `issuer`. Undefined: it has not moved,
 * it names none, or it could not be asked. Many authorization servers are named otherwise than they name themselves, so
 * the metadata of an unknown name decide.
 */
export function movedTo(question: MoveQuestion): Promise<string | undefined> {
  const { issuer, limitMs = ALL_MS } = question;
  const options = { ...question, requests: limited(question.requests, limitMs), onNote: () => undefined };
  return answerOr(undefined, async () => {
    if (options.plan.authServerMetadataUrl !== undefined) return undefined;
    const search = await findResource(options);
    const issuers = search.kind === "found" ? search.metadata.issuers : [];
    const [first] = issuers;
    if (first === undefined || issuers.some((named) => isSameIssuer(named, issuer))) return undefined;
    return await answerOr(first, async () => {
      const { metadata } = await firstUsable(issuers, options);
      return isSameIssuer(metadata.issuer, issuer) ? undefined : first;
    });
  });
}
