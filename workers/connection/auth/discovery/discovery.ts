/**
 * Finds the authorization server of an MCP server. Owns: the order of MCP 2025-11-25, the fallback of MCP 2025-03-26, whether
 * a server may call itself what its metadata say, and where a secret may go if no person is asked (RFC 9700, section 4.4).
 * Must not: register or sign in.
 */
import { isIP } from "node:net";
import type { OAuthPlan } from "../../config/entry/oauth-keys.ts";
import { type Discovered, type DpopWish, needsKey, needsUser, SignInProblem } from "../model/model.ts";
import { addressProblem, badAnswer, hostOf, isLoopback, shownAddress } from "../requests/addresses.ts";
import { type AuthRequests, endingWith } from "../requests/requests.ts";
import {
  checkResource,
  type DiscoveryOptions,
  type Fields,
  findResource,
  firstDocument,
  isSameIssuer,
  judgeIssuer,
  lacksIssuer,
  PROOF_ALG,
  type ResourceMetadata,
  readFlag,
  readServer,
  serverAddresses,
} from "./metadata.ts";

type FoundServer = Pick<Discovered, "metadata" | "foundAt" | "acceptedIssuer">;

/** Checks issuer and endpoints of metadata. `expected` as in `judgeIssuer`. */
function usable(
  { fields, url }: { fields: Fields; url: URL },
  expected: string | undefined,
  { plan, acceptedIssuer, url: endpoint, onNote }: DiscoveryOptions,
): FoundServer {
  const found = String(fields.issuer);
  const verdict = judgeIssuer({ expected, found, plan, acceptedIssuer });
  if (verdict.kind === "differs") {
    throw new SignInProblem("issuer-differs", { expected: verdict.expected, found: verdict.found });
  }
  if (verdict.kind === "accepted")
    onNote(`is signed in to as ${found}, whose metadata are at ${shownAddress(url)}`);
  const metadata = readServer(fields, { from: url, server: endpoint, plan, onNote });
  const server = { metadata, foundAt: url.href };
  return verdict.kind === "accepted" ? { ...server, acceptedIssuer: found } : server;
}

/** The server whose metadata are at one of the addresses of `url`. `expected`: as in `judgeIssuer`. */
async function serverAt(
  url: URL,
  addresses: readonly URL[],
  expected: string | undefined,
  question: DiscoveryOptions,
): Promise<FoundServer> {
  const document = await firstDocument(addresses, question.requests, lacksIssuer);
  if (document.kind === "found") return usable(document, expected, question);
  if (document.kind === "unusable") throw document.problem;
  throw badAnswer(url, "it holds no metadata of an authorization server");
}

/** An issuer has neither a query nor a fragment (RFC 8414, section 2), behind which its metadata could not be found. */
function issuerUrl(issuer: string): URL {
  if (!URL.canParse(issuer))
    throw new SignInProblem("bad-answer", { url: issuer, what: "it is not an address" });
  const url = new URL(issuer);
  const problem = addressProblem(url);
  if (problem) throw problem;
  if (url.search === "" && url.hash === "") return url;
  throw badAnswer(url, "an issuer has no query");
}

/** The authorization server that the MCP server names. Throws `SignInProblem`. */
async function findNamedServer(issuer: string, question: DiscoveryOptions): Promise<FoundServer> {
  const url = issuerUrl(issuer);
  return serverAt(url, serverAddresses(url), issuer, question);
}

/** Endpoints of a server without metadata (MCP 2025-03-26, fallbacks for servers without metadata discovery). */
const defaultFields = (origin: string): Fields => ({
  issuer: origin,
  authorization_endpoint: `${origin}/authorize`,
  token_endpoint: `${origin}/token`,
  registration_endpoint: `${origin}/register`,
  code_challenge_methods_supported: ["S256"],
});

/** Statuses of a page that no browser could sign in at: it does not exist, or wants a key itself. */
const NO_PAGE = new Set([401, 403, 404, 405, 410]);

/**
 * Whether there is something at the guessed authorization endpoint. It is asked as a browser would, without parameters,
 * so nothing begins there. Who signs in without a browser, or with a client that the configuration names, has no page.
 */
async function hasPage(origin: string, { plan, requests }: DiscoveryOptions): Promise<boolean> {
  if (!needsUser(plan) || plan.clientId !== undefined) return true;
  const { status } = await requests.fetch(`${origin}/authorize`, { method: "GET" });
  return !NO_PAGE.has(status);
}

/**
 * The MCP server's origin as the authorization server. `wrong`: why its protected resource metadata could not be used.
 * Endpoints are only guessed if every address answered that there is nothing, and the guessed page is there. Throws
 * `SignInProblem`; "no-sign-in" if nothing says that the server takes one.
 */
async function findServerOfOrigin(
  wrong: SignInProblem | undefined,
  question: DiscoveryOptions,
): Promise<FoundServer> {
  const { origin } = question.url;
  const addresses = serverAddresses(new URL(origin));
  const document = await firstDocument(addresses, question.requests, lacksIssuer);
  if (document.kind === "found") return usable(document, origin, question);
  const problem = wrong ?? (document.kind === "unusable" ? document.problem : undefined);
  // The server itself says that it has metadata: then their mistake is what the person must know.
  if (problem && question.challenge?.resourceMetadata !== undefined) throw problem;
  if (problem) throw new SignInProblem("no-sign-in", problem.facts);
  if (!(await hasPage(origin, question))) throw new SignInProblem("no-sign-in");
  question.onNote(`publishes no metadata for a sign-in: the endpoints of ${origin} are guessed`);
  return usable({ fields: defaultFields(origin), url: new URL(origin) }, origin, question);
}

/** Paths above an endpoint at which its issuer may be, as `/realms/one` is above `/realms/one/protocol/auth`. */
const ISSUER_DEPTH = 3;

/**
 * Whether the own metadata of the server that has this authorization endpoint promise `iss` in its answers (RFC 9207,
 * section 3). They are looked for at its origin and at the first paths above the endpoint. Throws `SignInProblem` if
 * that server has trouble: then nobody knows what it promises.
 */
export async function promisesIssuer(endpoint: URL, requests: AuthRequests): Promise<boolean> {
  const parts = endpoint.pathname.split("/").slice(1, -1).slice(0, ISSUER_DEPTH);
  const paths = ["", ...parts.map((_, i) => `/${parts.slice(0, i + 1).join("/")}`)];
  for (const path of paths) {
    const addresses = serverAddresses(new URL(`${endpoint.origin}${path}`));
    const document = await firstDocument(addresses, requests, lacksIssuer);
    if (document.kind === "found" && readFlag(document.fields.authorization_response_iss_parameter_supported))
      return true;
  }
  return false;
}

const isBelow = (host: string, parent: string): boolean =>
  parent.includes(".") && host.endsWith(`.${parent}`);

/** On this machine and at a bare address each port may belong to another program. */
const isOneMachine = (host: string): boolean =>
  isIP(host) !== 0 || host === "localhost" || host.endsWith(".localhost");

/**
 * Whether two addresses certainly have the same owner: their host is the same, or one is below the other. Two names below
 * a third one may belong to two customers of a hosting company, so they count as different; a list of public suffixes
 * would be as old as this package.
 */
export function isSameSite(a: URL, b: URL): boolean {
  if (a.origin === b.origin) return true;
  const [one, other] = [hostOf(a), hostOf(b)];
  if (isOneMachine(one) || isOneMachine(other)) return false;
  return one === other || isBelow(one, other) || isBelow(other, one);
}

/**
 * Whether the user's own configuration vouches for the metadata: it names their address, or the issuer under whose own
 * address they were found.
 */
export const isVouched = (plan: OAuthPlan, { acceptedIssuer }: Discovered): boolean =>
  plan.authServerMetadataUrl !== undefined || (plan.issuer !== undefined && acceptedIssuer === undefined);

/**
 * Host of the issuer as which metadata from elsewhere pass, if one of these endpoints is not of its site. A name that the user
 * wrote or agreed to says nothing about them: anybody can claim it, and the real issuer's page then answers with the right
 * `iss`. Who takes any issuer wants no such check.
 */
export function borrowedName(
  plan: OAuthPlan,
  { metadata, acceptedIssuer }: Discovered,
  endpoints: readonly URL[],
): string | undefined {
  const takesAny = plan.issuer === undefined && plan.skipIssuerMetadataValidation === true;
  if (acceptedIssuer === undefined || takesAny) return undefined;
  const issuer = new URL(metadata.issuer);
  return endpoints.every((endpoint) => isSameSite(issuer, endpoint)) ? undefined : issuer.host;
}

/**
 * A secret or an assertion of the configuration is for the server's own site, or for an authorization server that the configuration
 * names. Metadata of a server could otherwise name any other place for it. On one machine all ports count as one site: a
 * local server is as free to ask for the secret at its own port. A private key is never sent, and what it signs is for the
 * issuer alone, if that is found under its own address. `key`: the endpoint that would get it. Throws `SignInProblem`
 * "secret-elsewhere".
 */
export function checkSecretTarget(
  discovered: Discovered,
  { plan, url }: { plan: OAuthPlan; url: URL },
  key: "token_endpoint" | "device_authorization_endpoint" = "token_endpoint",
): void {
  const { metadata, foundAt, acceptedIssuer } = discovered;
  const address = metadata[key];
  if (address === undefined || isVouched(plan, discovered)) return;
  const isGrant = plan.grantType === "jwt_bearer" || plan.grantType === "identity_provider";
  const isSigned = !isGrant && (plan.privateKey ?? plan.privateKeyFile) !== undefined;
  const isForIssuer = isSigned && acceptedIssuer === undefined;
  const target = new URL(address);
  if (isForIssuer || isSameSite(url, target) || (isLoopback(url) && isLoopback(target))) return;
  // Whoever calls itself the named issuer may be another one, but what goes to that issuer's own site is safe.
  if (plan.issuer !== undefined && isSameSite(new URL(plan.issuer), target)) return;
  const missing =
    plan.issuer === undefined
      ? { key: "issuer", found: metadata.issuer }
      : { key: "authServerMetadataUrl", found: foundAt };
  const what = isGrant ? "assertion" : "client secret";
  throw new SignInProblem("secret-elsewhere", { url: shownAddress(target), what, ...missing });
}

/** The endpoint without what is not part of a resource's identifier (RFC 8707, section 2). */
export const canonical = ({ origin, pathname }: URL): string =>
  pathname === "/" ? origin : `${origin}${pathname}`;

/** `resource` to send: the configured one, else the one that the server names, as it is written. */
function resourceToSend(
  { plan, url }: DiscoveryOptions,
  metadata: ResourceMetadata | undefined,
): { resource?: string } {
  if (plan.resource === false) return {};
  if (plan.resource !== undefined) return { resource: plan.resource };
  return metadata === undefined ? {} : { resource: metadata.resource ?? canonical(url) };
}

/**
 * Whether the tokens are to be bound to a key: where the configuration or the server wants that, or where server and
 * authorization server offer it. What an authorization server offers by itself says nothing about the server, which may
 * take bearer tokens only. Throws `SignInProblem`: no-dpop, bad-settings.
 */
function binding(
  { metadata: { issuer, dpop_signing_alg_values_supported: algs } }: FoundServer,
  { plan, challenge }: DiscoveryOptions,
  resource?: ResourceMetadata,
): { bindsTokens?: true } {
  const isAsked = needsKey(plan.dpop, challenge);
  const wishes: (DpopWish | "unknown" | undefined)[] = [
    isAsked ? "required" : challenge?.dpop,
    resource?.dpop,
  ];
  const isRequired = wishes.some((wish) => wish === "required" || wish === "unknown");
  if (plan.dpop === false) {
    if (!isRequired) return {};
    const what = "the server takes only tokens that are bound to a key";
    throw new SignInProblem("bad-settings", { key: "oauth.dpop", what });
  }
  const key = plan.dpop === true ? { key: "oauth.dpop" } : {};
  if (resource?.dpop === "unknown") throw new SignInProblem("no-dpop", { url: shownAddress(resource.url) });
  const isOffered = algs?.includes(PROOF_ALG) === true;
  if (isRequired && !isOffered) throw new SignInProblem("no-dpop", { url: issuer, ...key });
  return isOffered && wishes.some((wish) => wish !== undefined) ? { bindsTokens: true } : {};
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
  const found = await firstUsable(issuers.length === 0 ? [url.origin] : issuers, options);
  return {
    ...found,
    ...resourceToSend(options, metadata),
    ...(scopes === undefined ? {} : { resourceScopes: scopes }),
    ...binding(found, options, metadata),
  };
}

export async function discover(options: DiscoveryOptions): Promise<Discovered> {
  const { plan, isIdentity } = options;
  if (isIdentity && plan.authServerMetadataUrl === undefined) {
    return findNamedServer(plan.issuer ?? options.url.href, options);
  }
  if (plan.authServerMetadataUrl !== undefined) {
    const named = new URL(plan.authServerMetadataUrl);
    const found = await serverAt(named, [named], undefined, options);
    return { ...found, ...resourceToSend(options, undefined), ...binding(found, options) };
  }
  const search = await findResource(options);
  if (search.kind === "found") return await fromResource(search.metadata, options);
  const found = await findServerOfOrigin(search.problem, options);
  return { ...found, ...resourceToSend(options, undefined), ...binding(found, options) };
}

/**
 * All requests of one question together: it is asked under the lock of the sign-in, or while a server connects. A server
 * that names many slow ones would otherwise hold the lock for minutes.
 */
const ALL_MS = 20_000;

/** The question with that time for all its requests, and without notes. */
const within = (ms: number, question: Omit<DiscoveryOptions, "onNote">): DiscoveryOptions => ({
  ...question,
  requests: endingWith(question.requests, AbortSignal.timeout(ms)),
  onNote: () => undefined,
});

/**
 * Whether anything at the server's own origin says that it takes a sign-in: metadata, or the endpoints of MCP 2025-03-26.
 * No other server is asked, because the user has not begun a sign-in. A server that has trouble, or whose metadata have a
 * mistake, may take one: the sign-in says what is wrong. Throws what is no problem of a sign-in.
 */
export async function offersSignIn(question: Omit<DiscoveryOptions, "onNote">): Promise<boolean> {
  const options = within(ALL_MS, question);
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

/** What `ask` answers; undefined after trouble that may pass, and `otherwise` after any other problem. */
async function answerOr(
  otherwise: string | undefined,
  ask: () => Promise<string | undefined>,
): Promise<string | undefined> {
  try {
    return await ask();
  } catch (error) {
    if (!(error instanceof SignInProblem)) throw error;
    return PASSING.has(error.kind) ? undefined : otherwise;
  }
}

interface MoveQuestion extends Omit<DiscoveryOptions, "onNote"> {
  issuer: string;
  limitMs?: number;
}

/**
 * The authorization server to which the MCP server has moved since a sign-in with `issuer`. Undefined: it has not moved,
 * it names none, or it could not be asked. Many authorization servers are named otherwise than they name themselves, so
 * the metadata of an unknown name decide.
 */
export function movedTo(question: MoveQuestion): Promise<string | undefined> {
  const { issuer, limitMs = ALL_MS } = question;
  const options = within(limitMs, question);
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
