/**
 * Enterprise-Managed Authorization of MCP (SEP-990, ext-auth): the messages with the company's identity provider. Owns: which
 * identity assertion (ID token) of its answers counts, the exchange of one for an assertion that a server's authorization
 * server takes (ID-JAG; RFC 8693), and what must be in that before it is sent on. Nobody verifies a signature here: each comes
 * from its issuer over TLS (OpenID Connect Core, section 3.1.3.7, rule 6), and whoever gets it verifies it.
 */
import { type AuthorizationServer, genericTokenEndpointRequest } from "oauth4webapi";
import { isSignedJwt } from "../../config/entry/oauth-keys.ts";
import { isSameIssuer } from "../discovery/metadata.ts";
import { type ClientRecord, type IdentityWish, SignInProblem, type TokenAnswer } from "../model/model.ts";
import { shownAddress } from "../requests/addresses.ts";
import { readObject } from "../requests/mend.ts";
import { refreshTokenOf } from "../store/record.ts";
import { ask, endpointOf, type GrantContext, tokenProblem } from "./ask.ts";
import { LATEST_SECONDS, proofOf } from "./client.ts";

const TOKEN_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange";
const ID_TOKEN = "urn:ietf:params:oauth:token-type:id_token";
const ID_JAG = "urn:ietf:params:oauth:token-type:id-jag";
const ID_JAG_TYPE = "oauth-id-jag+jwt";

/** Header and claims of a JWT; undefined: it is none. Nothing in them is verified. */
export function readJwt(text: unknown) {
  if (typeof text !== "string" || !isSignedJwt(text)) return undefined;
  const [header, claims] = text
    .split(".", 2)
    .map((part) => readObject(Buffer.from(part, "base64url").toString("utf8")));
  return header && claims && { header, claims };
}

const isText = (value: unknown): value is string => typeof value === "string" && value !== "";

/** What is wrong with the claims of an ID token (OpenID Connect Core, sections 2 and 3.1.3.7); undefined: nothing. */
function wrongClaim(
  claims: Record<string, unknown>,
  { issuer, clientId }: { issuer: string; clientId: string },
): string | undefined {
  const { iss, aud, azp, sub, exp } = claims;
  if (!isText(iss) || !isSameIssuer(iss, issuer)) return "has another issuer";
  if (![aud].flat().includes(clientId)) return "is for another client";
  if (azp !== undefined && azp !== clientId) return "is for another client";
  if (!isText(sub)) return "does not say who the user is";
  return typeof exp === "number" && exp > 0 && exp <= LATEST_SECONDS
    ? undefined
    : "does not say when it ends";
}

/**
 * The identity in an answer of the identity provider's token endpoint, in the place of an access token: no other token of the
 * answer is ever used. `before`: the one that it renews, which is of the same user (section 12.2). Throws `SignInProblem`:
 * no-identity; identity-wrong if it is not for this client.
 */
export function readIdentity(
  text: string,
  {
    server,
    clientId,
    before,
  }: { server: AuthorizationServer; clientId: string; before?: string | undefined },
): TokenAnswer {
  const url = shownAddress(endpointOf(server, "token_endpoint"));
  const { id_token: token, refresh_token: refresh } = readObject(text) ?? {};
  if (token === undefined) throw new SignInProblem("no-identity", { url });
  const claims = readJwt(token)?.claims;
  const wrong = claims ? wrongClaim(claims, { issuer: server.issuer, clientId }) : "is no signed assertion";
  const old = readJwt(before)?.claims.sub;
  const what = wrong ?? (old === undefined || old === claims?.sub ? undefined : "is of another user");
  if (!claims || what !== undefined) {
    throw new SignInProblem("identity-wrong", { url, what: `its ID token ${what}` });
  }
  const refreshToken = refreshTokenOf(refresh);
  return {
    access_token: String(token),
    token_type: "N_A",
    ...(refreshToken !== undefined && { refresh_token: refreshToken }),
    expiresAt: Math.floor(Number(claims.exp) * 1_000),
  };
}

type KnownWish = IdentityWish & { resource: string };

/** The assertion in the answer to an exchange (section 4.2), which is for nobody but those whom the wish names. */
function readIdJag(text: string, { audience, resource, clientId }: KnownWish, url: string): string {
  const { access_token: token, issued_token_type: issued } = readObject(text) ?? {};
  const wrong = (what: string): SignInProblem =>
    new SignInProblem("identity-wrong", { url, what: `its assertion ${what}` });
  const jwt = readJwt(token);
  if (!jwt || issued !== ID_JAG) throw wrong("is no ID-JAG");
  const { header, claims } = jwt;
  // Section 4.3. Without this type it could be an assertion of any other kind.
  if (String(header.typ).toLowerCase() !== ID_JAG_TYPE) throw wrong("is no ID-JAG");
  const audiences = [claims.aud].flat();
  const [first] = audiences;
  if (audiences.length !== 1 || !isText(first) || !isSameIssuer(first, audience)) {
    throw wrong(
      `is for ${audiences.join(", ") || "nobody"}, and the server's authorization server is ${audience}`,
    );
  }
  const { resource: named, client_id: client } = claims;
  if (named !== undefined && !(isText(named) && isSameIssuer(named, resource)))
    throw wrong(`is for the resource ${String(named)}, and the server is ${resource}`);
  if (client !== clientId)
    throw wrong(`is for the client ${String(client)}, and the clientId of the server is ${clientId}`);
  return String(token);
}

/**
 * Exchanges the identity for an assertion for one authorization server (section 4). Throws `SignInProblem`: company-denied,
 * identity-refused, identity-wrong, and those of every request.
 */
export async function exchangeIdentity(
  wish: KnownWish,
  { server, client, identity }: { server: AuthorizationServer; client: ClientRecord; identity: string },
  { plan, requests }: GrantContext,
): Promise<string> {
  const endpoint = endpointOf(server, "token_endpoint");
  const url = shownAddress(endpoint);
  const { auth, secrets } = await proofOf(client, plan);
  const { audience, resource, scope } = wish;
  const parameters = {
    requested_token_type: ID_JAG,
    audience,
    resource,
    ...(scope !== undefined && { scope }),
    subject_token: identity,
    subject_token_type: ID_TOKEN,
  };
  return ask({
    endpoint,
    requests,
    secrets,
    send: (options) =>
      genericTokenEndpointRequest(
        server,
        { client_id: client.id },
        auth,
        TOKEN_EXCHANGE,
        parameters,
        options,
      ),
    read: (text) => readIdJag(text, wish, url),
    refused: (refusal) => tokenProblem("identity", refusal, { url, scope }),
  });
}
