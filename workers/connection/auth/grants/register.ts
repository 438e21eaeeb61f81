/**
 * Dynamic registration of a client (RFC 7591). Owns: what is registered, the second attempt with less, and what of the
 * answer is kept. A refused registration is never repeated unchanged.
 */
import {
  type Client,
  dynamicClientRegistrationRequest,
  processDynamicClientRegistrationResponse,
} from "oauth4webapi";
import type { OAuthPlan } from "../../config/entry/oauth-keys.ts";
import { type ClientAuthMethod, type ClientRecord, type Discovered, SignInProblem } from "../model/model.ts";
import { shownAddress } from "../requests/requests.ts";
import { ask } from "./ask.ts";
import { methodWithSecret, registeredMethod } from "./client-auth.ts";
import type { GrantContext } from "./context.ts";
import { endpointOf } from "./endpoint.ts";
import { registrationProblem } from "./refusals.ts";

export interface Registration {
  discovered: Discovered;
  redirectUri: string;
  scope: string | undefined;
}

type Metadata = Parameters<typeof dynamicClientRegistrationRequest>[1];

const CLIENT_NAME = "Pi (pi-mcp-threads)";
const ID_CHARS = 2_000;
const SECRET_CHARS = 4_000;
/** The latest time that a Date can hold, in seconds. Java servers write the largest long for "never". */
const LATEST_SECONDS = 8.64e12;
/** RFC 6749, appendix A.1 and A.2. */
const PRINTABLE = /^[ -~]+$/;
/** Errors after which less may be accepted. */
const TRY_LESS = new Set(["invalid_client_metadata", "invalid_scope"]);

/** OpenID Connect Registration, section 2: a native client may use http on loopback and own schemes, not https. */
const applicationType = (redirectUri: string): "native" | "web" =>
  redirectUri.startsWith("https:") ? "web" : "native";

/** What an authorization server needs to know of a client, and nothing that it may refuse. */
function leastMetadata({ discovered: { metadata }, redirectUri }: Registration, plan: OAuthPlan): Metadata {
  const grants = metadata.grant_types_supported;
  return {
    application_type: applicationType(redirectUri),
    client_name: plan.clientName ?? CLIENT_NAME,
    redirect_uris: [redirectUri],
    grant_types: [
      "authorization_code",
      ...(!grants || grants.includes("refresh_token") ? ["refresh_token"] : []),
    ],
    response_types: ["code"],
    token_endpoint_auth_method: registeredMethod(metadata),
  };
}

const fullMetadata = (wanted: Registration, plan: OAuthPlan): Metadata => ({
  ...leastMetadata(wanted, plan),
  grant_types: ["authorization_code", "refresh_token"],
  ...(plan.clientUri !== undefined && { client_uri: plan.clientUri }),
  ...(plan.logoUri !== undefined && { logo_uri: plan.logoUri }),
  ...(wanted.scope !== undefined && { scope: wanted.scope }),
});

const METHODS: readonly unknown[] = ["none", "client_secret_post", "client_secret_basic"];
const isMethod = (method: unknown): method is ClientAuthMethod => METHODS.includes(method);

/** The method that the answer names, else the one that fits what the answer has. */
function answeredMethod(
  answer: Client,
  secret: string | undefined,
  discovered: Discovered,
): ClientAuthMethod {
  const named = answer.token_endpoint_auth_method;
  if (secret === undefined) return "none";
  return isMethod(named) ? named : methodWithSecret(discovered.metadata);
}

function recordOf(
  answer: Client,
  { discovered, redirectUri }: Registration,
  now: number,
): ClientRecord | undefined {
  const { client_id: id, client_secret: secret, client_secret_expires_at: expires } = answer;
  const isBounded = (text: string, chars: number): boolean => text.length <= chars && PRINTABLE.test(text);
  if (!isBounded(id, ID_CHARS)) return undefined;
  if (secret !== undefined && (typeof secret !== "string" || !isBounded(secret, SECRET_CHARS)))
    return undefined;
  return {
    id,
    method: answeredMethod(answer, secret, discovered),
    kind: "dynamic",
    redirectUris: [redirectUri],
    registeredAt: now,
    ...(secret !== undefined && { secret }),
    // Zero, or a time that never comes: the secret does not expire.
    ...(secret !== undefined &&
      typeof expires === "number" &&
      expires > 0 &&
      expires <= LATEST_SECONDS && { secretExpiresAt: expires * 1_000 }),
  };
}

function send(wanted: Registration, metadata: Metadata, { requests }: GrantContext): Promise<ClientRecord> {
  const server = wanted.discovered.metadata;
  const endpoint = endpointOf(server, "registration_endpoint");
  const { issuer } = server;
  return ask({
    endpoint,
    requests,
    secrets: [],
    send: (options) => dynamicClientRegistrationRequest(server, metadata, options),
    read: async (text) => {
      const answer = await processDynamicClientRegistrationResponse(new Response(text, { status: 201 }));
      const record = recordOf(answer, wanted, Date.now());
      if (record) return record;
      const what = "its client_id or client_secret cannot be sent";
      throw new SignInProblem("bad-answer", { url: shownAddress(endpoint), what });
    },
    refused: (refusal) => registrationProblem(refusal, { issuer, redirectUri: wanted.redirectUri }),
  });
}

/**
 * Throws `SignInProblem`: no-registration, known-clients-only, redirect-refused (also for a loopback address, of which
 * the authorization server may know the other spelling), registration-refused, and those of every request.
 */
export async function register(wanted: Registration, context: GrantContext): Promise<ClientRecord> {
  const { metadata } = wanted.discovered;
  if (metadata.registration_endpoint === undefined) {
    throw new SignInProblem("no-registration", { url: metadata.issuer });
  }
  const full = fullMetadata(wanted, context.plan);
  const least = leastMetadata(wanted, context.plan);
  try {
    return await send(wanted, full, context);
  } catch (error) {
    const isTooMuch = error instanceof SignInProblem && TRY_LESS.has(error.facts.error ?? "");
    if (!isTooMuch || JSON.stringify(full) === JSON.stringify(least)) throw error;
    context.onNote(`${metadata.issuer} refuses what was registered; it is asked once more with less`);
    return send(wanted, least, context);
  }
}
