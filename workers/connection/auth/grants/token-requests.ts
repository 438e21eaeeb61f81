/**
 * The requests to the token endpoint (RFC 6749, sections 4.1.3, 4.4.2 and 6; RFC 7523, section 2.1) and the revocation of
 * tokens (RFC 7009).
 * Owns: what each sends, which tokens of an answer can be sent at all, and until when they hold. An `id_token` is never
 * looked at: nothing here asks who the user is. Only a request whose proof of a key is refused is repeated here: otherwise
 * the caller knows whether that is safe.
 */
import {
  type AuthorizationServer,
  authorizationCodeGrantRequest,
  type Client,
  type ClientAuth,
  clientCredentialsGrantRequest,
  genericTokenEndpointRequest,
  processGenericTokenEndpointResponse,
  refreshTokenGrantRequest,
  revocationRequest,
} from "oauth4webapi";
import type { OAuthPlan } from "../../config/entry/oauth-keys.ts";
import type { Signer } from "../../web/client.ts";
import {
  type ClientRecord,
  type Discovered,
  kindOf,
  SignInProblem,
  type SignInRecord,
  type TokenAnswer,
} from "../model/model.ts";
import { shownAddress } from "../requests/addresses.ts";
import { readObject } from "../requests/mend.ts";
import { refreshTokenOf, tokenOf } from "../store/record.ts";
import {
  ask,
  endpointOf,
  type Grant,
  type GrantContext,
  type PendingAuthorization,
  type SendOptions,
  tokenProblem,
} from "./ask.ts";
import { type AuthorizationAnswer, checkedAnswer, grantedScope } from "./authorize.ts";
import { configuredClient, machineClient, proofOf, readyAssertion } from "./client.ts";
import { readIdentity, readJwt } from "./id-jag.ts";

const LONGEST_LIFE_SECONDS = 10 * 365 * 24 * 60 * 60;

/** Seconds, also as text. Undefined: the server says nothing that can be believed, and the token holds until a 401. */
export function lifeSeconds(expiresIn: unknown): number | undefined {
  const seconds = typeof expiresIn === "string" && expiresIn.trim() !== "" ? Number(expiresIn) : expiresIn;
  if (typeof seconds !== "number" || !(seconds > 0)) return undefined;
  return Math.min(seconds, LONGEST_LIFE_SECONDS);
}

/**
 * `isBound`: the request proved that it has a key, so the answer must be bound to that. Throws `SignInProblem` "bad-answer"
 * or "not-bound", or an error of oauth4webapi.
 */
export async function readTokens(
  server: AuthorizationServer,
  client: Client,
  received: string,
  isBound = false,
): Promise<TokenAnswer> {
  const now = Date.now();
  const found = readObject(received);
  // oauth4webapi would refuse the answer for a wrong one of these.
  const { id_token: _ignored, expires_in: expiresIn, ...rest } = found ?? {};
  const life = lifeSeconds(expiresIn);
  const text = found ? JSON.stringify(rest) : received;
  const answer = await processGenericTokenEndpointResponse(server, client, new Response(text));
  const { access_token: token, refresh_token: refresh } = answer;
  const url = shownAddress(endpointOf(server, "token_endpoint"));
  const wrong = (what: string): SignInProblem => new SignInProblem("bad-answer", { url, what });
  // RFC 9449, section 5: a bearer token in the place of a bound one is refused.
  if (isBound && answer.token_type !== "dpop") throw new SignInProblem("not-bound", { url });
  // oauth4webapi also takes DPoP, which binds the token to a key that was never sent.
  if (!isBound && answer.token_type !== "bearer") throw wrong("its token_type is not Bearer");
  if (tokenOf(token) === undefined) throw wrong("its access_token cannot be sent");
  if (refresh !== undefined && refreshTokenOf(refresh) === undefined) {
    throw wrong("its refresh_token cannot be sent");
  }
  const scope = grantedScope(answer.scope);
  return {
    access_token: token,
    token_type: isBound ? "DPoP" : "Bearer",
    ...(refresh !== undefined && { refresh_token: refresh }),
    ...(life !== undefined && { expiresAt: now + Math.floor(life * 1_000) }),
    ...(scope !== undefined && { scope }),
  };
}

interface TokenRequest {
  grant: Grant;
  server: AuthorizationServer;
  /** Undefined: the request names none. */
  client: ClientRecord | undefined;
  scope: string | undefined;
  /** The token that is renewed. */
  before?: string | undefined;
  send(client: Client, auth: ClientAuth, options: SendOptions): Promise<Response>;
}

/**
 * With a key in the context, each request has a proof of its own (RFC 9449, section 5). A request whose proof is refused has
 * done nothing: it is sent again with the nonce or the time that the answer names (section 8).
 */
export async function askForTokens(request: TokenRequest, context: GrantContext): Promise<TokenAnswer> {
  const { dpopKey } = context;
  if (dpopKey === undefined) return askOnce(request, context);
  const { PROOF_REPEATS, proverOf } = await import("../requests/dpop.ts");
  for (let repeats = 0; ; repeats++) {
    const signer = proverOf(dpopKey).signer();
    try {
      return await askOnce(request, context, signer);
    } catch (error) {
      if (kindOf(error) !== "proof-refused" || repeats === PROOF_REPEATS || !signer.isOutdated) throw error;
    }
  }
}

async function askOnce(
  request: TokenRequest,
  { plan, requests, isIdentity }: GrantContext,
  signer?: Signer,
): Promise<TokenAnswer> {
  const { grant, server, scope } = request;
  const endpoint = endpointOf(server, "token_endpoint");
  const { auth, secrets } = await proofOf(request.client, plan);
  // oauth4webapi wants an id, which without a client is not sent.
  const client: Client = { client_id: request.client?.id ?? "none" };
  const url = shownAddress(endpoint);
  return ask({
    endpoint,
    requests,
    secrets,
    signer,
    send: (options) => request.send(client, auth, options),
    read: (text) =>
      isIdentity
        ? readIdentity(text, { server, clientId: client.client_id, before: request.before })
        : readTokens(server, client, text, signer !== undefined),
    refused: (refusal) => tokenProblem(grant, refusal, { url, scope }),
  });
}

export const resourceOf = (resource: string | undefined): Record<string, string> =>
  resource === undefined ? {} : { resource };

/**
 * Checks the browser's answer (`state`, `iss`, `error`) and exchanges the code. `bareCode`: the user pasted only the
 * code, so there is no `state` to check; it is refused where the answer must have `iss`. Throws `SignInProblem`. Once
 * `state` and `iss` are right, the authorization is used up.
 */
export async function finishAuthorization(
  pending: PendingAuthorization,
  answer: AuthorizationAnswer,
  context: GrantContext,
): Promise<TokenAnswer> {
  const { client, discovered, redirectUri, verifier, scope, dpopKey } = pending;
  const code = checkedAnswer(pending, answer);
  const server = discovered.metadata;
  const additionalParameters = resourceOf(discovered.resource);
  return askForTokens(
    {
      grant: "code",
      server,
      client,
      scope,
      send: (as, auth, options) =>
        authorizationCodeGrantRequest(server, as, auth, code, redirectUri, verifier, {
          ...options,
          additionalParameters,
        }),
    },
    { ...context, dpopKey },
  );
}

/** What is known of the authorization server of a stored sign-in. */
export const serverOf = ({
  issuer,
  tokenEndpoint,
  revocationEndpoint,
}: SignInRecord): AuthorizationServer => ({
  issuer,
  token_endpoint: tokenEndpoint,
  ...(revocationEndpoint !== undefined && { revocation_endpoint: revocationEndpoint }),
});

/**
 * Throws `SignInProblem`: expired (there is no refresh token), refresh-refused (invalid_grant), client-unknown
 * (invalid_client, unauthorized_client), bad-settings, resource-refused, unreachable, unavailable, bad-answer, refused.
 * Only the first three say that the sign-in is lost. After unreachable the same refresh token may be sent once more.
 * `scope` and `refresh_token` are absent if the answer has none.
 */
export async function refreshTokens(record: SignInRecord, context: GrantContext): Promise<TokenAnswer> {
  const { refresh_token: refreshToken, client } = record;
  if (refreshToken === undefined) throw new SignInProblem("expired");
  const server = serverOf(record);
  const additionalParameters = resourceOf(record.resource);
  return askForTokens(
    {
      grant: "refresh",
      server,
      client,
      scope: record.scope,
      before: record.access_token,
      send: (as, auth, options) =>
        refreshTokenGrantRequest(server, as, auth, refreshToken, { ...options, additionalParameters }),
    },
    { ...context, dpopKey: record.dpopKey },
  );
}

interface MachineRequest {
  discovered: Discovered;
  scope: string | undefined;
}

const parametersOf = ({ discovered: { resource }, scope }: MachineRequest): Record<string, string> => ({
  ...resourceOf(resource),
  ...(scope !== undefined && { scope }),
});

/** `client_credentials`, with a secret or `private_key_jwt`. Throws `SignInProblem`. */
async function clientCredentials(asked: MachineRequest, context: GrantContext): Promise<TokenAnswer> {
  const { discovered, scope } = asked;
  const client = configuredClient(context.plan, discovered);
  if (!client) throw new SignInProblem("bad-settings", { key: "oauth.clientId", what: "it is missing" });
  if (client.method === "none") {
    throw new SignInProblem("bad-settings", { key: "oauth.clientSecret", what: "it is missing" });
  }
  const server = discovered.metadata;
  const parameters = parametersOf(asked);
  return askForTokens(
    {
      grant: "client",
      server,
      client,
      scope,
      send: (as, auth, options) => clientCredentialsGrantRequest(server, as, auth, parameters, options),
    },
    context,
  );
}

/** What an assertion says of itself that explains a refusal. Nobody trusts it: its signature is not looked at. */
function claimsWords(assertion: string): string | undefined {
  const { aud, exp } = readJwt(assertion)?.claims ?? {};
  const audience = [aud].flat().filter((one) => typeof one === "string");
  const isOver = typeof exp === "number" && exp * 1_000 <= Date.now();
  const words = [
    ...(audience.length > 0 ? [`its audience is ${audience.join(", ")}`] : []),
    ...(isOver ? [`it ended ${Math.floor(Date.now() / 1_000 - exp)} s ago`] : []),
  ];
  return words.length === 0 ? undefined : words.join(", and ");
}

const JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer";

/** An assertion that someone else signed is the grant (RFC 7523, section 2.1). Throws `SignInProblem`. */
async function byAssertion(
  asked: MachineRequest,
  assertion: string,
  context: GrantContext,
): Promise<TokenAnswer> {
  const { discovered, scope } = asked;
  const server = discovered.metadata;
  // Whoever gets it could repeat it in an answer.
  context.onSecret?.(assertion);
  const parameters = { ...parametersOf(asked), assertion };
  try {
    return await askForTokens(
      {
        grant: "assertion",
        server,
        client: machineClient(context.plan, discovered),
        scope,
        send: (as, auth, options) =>
          genericTokenEndpointRequest(server, as, auth, JWT_BEARER, parameters, options),
      },
      context,
    );
  } catch (error) {
    if (kindOf(error) !== "assertion-refused") throw error;
    const { facts } = error as SignInProblem;
    const found = claimsWords(assertion);
    throw new SignInProblem("assertion-refused", {
      ...facts,
      expected: server.issuer,
      ...(found && { found }),
    });
  }
}

const jwtBearer = async (asked: MachineRequest, context: GrantContext): Promise<TokenAnswer> =>
  byAssertion(asked, await readyAssertion(context.plan), context);

/** `identity_provider`: the company's identity provider signs the assertion (SEP-990). Throws `SignInProblem`. */
async function identityProvider(asked: MachineRequest, context: GrantContext): Promise<TokenAnswer> {
  const { metadata, resource } = asked.discovered;
  const client = machineClient(context.plan, asked.discovered);
  if (!client) throw new SignInProblem("bad-settings", { key: "oauth.clientId", what: "it is missing" });
  if (!context.identityFor) throw new TypeError("there is no identity provider");
  const wish = { audience: metadata.issuer, resource, scope: asked.scope, clientId: client.id };
  return byAssertion(asked, await context.identityFor(wish), context);
}

/** Grants without a user, by their `grantType`. To add one: a row here, its errors in `OF` of ask.ts, its keys in config. */
const MACHINE_GRANTS = {
  client_credentials: clientCredentials,
  identity_provider: identityProvider,
  jwt_bearer: jwtBearer,
} satisfies Record<Exclude<OAuthPlan["grantType"], "authorization_code">, typeof clientCredentials>;

/** The answer has no refresh token: the client can always ask again (RFC 6749, section 4.4.3; RFC 7521, section 4.1). */
export async function machineTokens(asked: MachineRequest, context: GrantContext): Promise<TokenAnswer> {
  const { grantType } = context.plan;
  if (grantType === "authorization_code") throw new TypeError("this grant needs a user");
  const { refresh_token: _unused, ...tokens } = await MACHINE_GRANTS[grantType](asked, context);
  return tokens;
}

async function revoke(
  record: SignInRecord,
  { token, hint }: { token: string; hint: string },
  { plan, requests }: GrantContext,
): Promise<void> {
  const server = serverOf(record);
  const { auth, secrets } = await proofOf(record.client, plan);
  const additionalParameters = { token_type_hint: hint };
  await ask({
    endpoint: endpointOf(server, "revocation_endpoint"),
    requests,
    secrets,
    send: (options) =>
      revocationRequest(server, { client_id: record.client.id }, auth, token, {
        ...options,
        additionalParameters,
      }),
    // RFC 7009, section 2.2: the status alone counts.
    read: () => undefined,
    refused: ({ error, what }) =>
      error === undefined ? undefined : new SignInProblem("refused", { error, ...(what && { what }) }),
  });
}

/**
 * Revokes refresh and access token (RFC 7009), the refresh token first, which ends the sign-in. Both are tried. Throws
 * `SignInProblem` if one of them fails. Resolves if the authorization server has no revocation.
 */
export async function revokeTokens(record: SignInRecord, context: GrantContext): Promise<void> {
  const { refresh_token: refreshToken, token_type: type, revocationEndpoint } = record;
  // An identity is no token that could be revoked.
  const accessToken = type === "N_A" ? undefined : record.access_token;
  if (revocationEndpoint === undefined) return;
  const problems: unknown[] = [];
  for (const [hint, token] of Object.entries({ refresh_token: refreshToken, access_token: accessToken })) {
    if (token === undefined) continue;
    await revoke(record, { token, hint }, context).catch((error: unknown) => problems.push(error));
  }
  if (problems.length > 0) throw problems[0];
}
