/**
 * Finds the metadata of one authorization server: by its identifier, at an address that the user wrote, or at the MCP
 * server's own origin (MCP 2025-03-26).
 */
import type { OAuthPlan } from "../../config/entry/oauth-keys.ts";
import { type AuthChallenge, type Discovered, SignInProblem } from "../model/model.ts";
import { type AuthRequests, addressProblem, shownAddress } from "../requests/requests.ts";
import { type Document, type Fields, firstDocument } from "./document.ts";
import { readFlag } from "./fields.ts";
import { judgeIssuer } from "./issuer.ts";
import { lacksIssuer, readServer } from "./server-metadata.ts";
import { serverAddresses } from "./well-known.ts";

export interface ServerQuestion {
  /** The MCP endpoint. */
  url: URL;
  /** The server's last challenge. */
  challenge: AuthChallenge | undefined;
  plan: OAuthPlan;
  acceptedIssuer?: string | undefined;
  requests: AuthRequests;
  onNote: (note: string) => void;
}

type FoundServer = Pick<Discovered, "metadata" | "foundAt" | "acceptedIssuer">;

/** Checks issuer and endpoints of metadata. `expected` as in issuer.ts. */
function usable(
  { fields, url }: { fields: Fields; url: URL },
  expected: string | undefined,
  { plan, acceptedIssuer, url: endpoint, onNote }: ServerQuestion,
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

const noMetadata = (url: string): SignInProblem =>
  new SignInProblem("bad-answer", { url, what: "there are no metadata of an authorization server" });

/** Why there are no usable metadata. */
const problemIn = (document: Exclude<Document, { kind: "found" }>, url: string): SignInProblem =>
  document.kind === "unusable" ? document.problem : noMetadata(url);

/** An issuer has neither a query nor a fragment (RFC 8414, section 2), behind which its metadata could not be found. */
function issuerUrl(issuer: string): URL {
  if (!URL.canParse(issuer))
    throw new SignInProblem("bad-answer", { url: issuer, what: "it is not an address" });
  const url = new URL(issuer);
  const problem = addressProblem(url);
  if (problem) throw problem;
  if (url.search === "" && url.hash === "") return url;
  throw new SignInProblem("bad-answer", { url: shownAddress(url), what: "an issuer has no query" });
}

/** The authorization server that the MCP server names. Throws `SignInProblem`. */
export async function findNamedServer(issuer: string, question: ServerQuestion): Promise<FoundServer> {
  const url = issuerUrl(issuer);
  const document = await firstDocument(serverAddresses(url), question.requests, lacksIssuer);
  if (document.kind === "found") return usable(document, issuer, question);
  throw problemIn(document, shownAddress(url));
}

/** The authorization server whose metadata are at an address of the configuration. Throws `SignInProblem`. */
export async function findServerAt(address: string, question: ServerQuestion): Promise<FoundServer> {
  if (!URL.canParse(address)) {
    throw new SignInProblem("bad-settings", {
      key: "oauth.authServerMetadataUrl",
      what: "it is not an address",
    });
  }
  const url = new URL(address);
  const document = await firstDocument([url], question.requests, lacksIssuer);
  if (document.kind === "found") return usable(document, undefined, question);
  throw problemIn(document, shownAddress(url));
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
async function hasPage(origin: string, { plan, requests }: ServerQuestion): Promise<boolean> {
  if (plan.grantType === "client_credentials" || plan.clientId !== undefined) return true;
  const { status } = await requests.fetch(`${origin}/authorize`, { method: "GET" });
  return !NO_PAGE.has(status);
}

/**
 * The MCP server's origin as the authorization server. `wrong`: why its protected resource metadata could not be used.
 * Endpoints are only guessed if every address answered that there is nothing, and the guessed page is there. Throws
 * `SignInProblem`; "no-sign-in" if nothing says that the server takes one.
 */
export async function findServerOfOrigin(
  wrong: SignInProblem | undefined,
  question: ServerQuestion,
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
