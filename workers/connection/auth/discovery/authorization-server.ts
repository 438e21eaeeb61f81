/**
 * Finds the metadata of one authorization server: by its identifier, at an address that the user wrote, or at the MCP
 * server's own origin (MCP 2025-03-26).
 */
import type { OAuthPlan } from "../../config/entry/oauth-plan.ts";
import { type Discovered, SignInProblem } from "../model/model.ts";
import { type AuthRequests, addressProblem, shownAddress } from "../requests/requests.ts";
import { type Document, type Fields, firstDocument } from "./document.ts";
import { judgeIssuer } from "./issuer.ts";
import { lacksIssuer, readServer } from "./server-metadata.ts";
import { serverAddresses } from "./well-known.ts";

export interface ServerQuestion {
  /** The MCP endpoint. */
  url: URL;
  plan: OAuthPlan;
  acceptedIssuer?: string | undefined;
  requests: AuthRequests;
  onNote: (note: string) => void;
}

type FoundServer = Pick<Discovered, "metadata" | "acceptedIssuer">;

/** Checks issuer and endpoints of metadata. `expected` as in issuer.ts. */
function usable(
  { fields, url }: { fields: Fields; url: URL },
  expected: string | undefined,
  { plan, acceptedIssuer, url: server, onNote }: ServerQuestion,
): FoundServer {
  const found = String(fields.issuer);
  const verdict = judgeIssuer({ expected, found, plan, acceptedIssuer });
  if (verdict.kind === "differs") {
    throw new SignInProblem("issuer-differs", { expected: verdict.expected, found: verdict.found });
  }
  if (verdict.kind === "accepted")
    onNote(`is signed in to as ${found}, whose metadata are at ${shownAddress(url)}`);
  const metadata = readServer(fields, { from: url, server, plan, onNote });
  return verdict.kind === "accepted" ? { metadata, acceptedIssuer: found } : { metadata };
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

/**
 * The MCP server's origin as the authorization server. `wrong`: why its protected resource metadata could not be used.
 * Endpoints are only guessed if every address answered that there is nothing. Throws `SignInProblem`.
 */
export async function findServerOfOrigin(
  wrong: SignInProblem | undefined,
  question: ServerQuestion,
): Promise<FoundServer> {
  const { origin } = question.url;
  const addresses = serverAddresses(new URL(origin));
  const document = await firstDocument(addresses, question.requests, lacksIssuer);
  if (document.kind === "found") return usable(document, origin, question);
  if (wrong) throw wrong;
  if (document.kind === "unusable") throw document.problem;
  question.onNote(`publishes no metadata for a sign-in: the endpoints of ${origin} are guessed`);
  return usable({ fields: defaultFields(origin), url: new URL(origin) }, origin, question);
}
