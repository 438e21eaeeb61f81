/** Which client signs in: the configured one, the stored one, a metadata document, or one that is registered now. */
import type { OAuthPlan } from "../../config/entry/oauth-keys.ts";
import { type ClientRecord, SignInProblem } from "../model/model.ts";
import { hasAssertion } from "./assertion.ts";
import { configuredMethod } from "./client-auth.ts";
import type { GrantContext } from "./context.ts";
import { type Registration, register } from "./register.ts";

export interface WantedClient extends Registration {
  /** Of a sign-in at the same issuer: credentials are for the issuer alone that gave them. */
  stored: ClientRecord | undefined;
  /** False: a stored dynamic client is not used again. */
  reuse: boolean;
}

/** The client that the configuration names by its id. */
export const configuredClient = (
  plan: OAuthPlan,
  { metadata }: WantedClient["discovered"],
): ClientRecord | undefined =>
  plan.clientId === undefined
    ? undefined
    : { id: plan.clientId, method: configuredMethod(plan, metadata), kind: "configured" };

/** The stored client if it still fits. */
function storedClient({ stored, reuse, redirectUri }: WantedClient, now: number): ClientRecord | undefined {
  if (!reuse || stored?.kind !== "dynamic") return undefined;
  if (!stored.redirectUris?.includes(redirectUri)) return undefined;
  return stored.secretExpiresAt !== undefined && stored.secretExpiresAt <= now ? undefined : stored;
}

/** The client whose id is the address of its description (Client ID Metadata Documents). */
function documentClient(plan: OAuthPlan, { metadata }: WantedClient["discovered"]): ClientRecord | undefined {
  const { clientMetadataUrl: id, clientRegistration } = plan;
  if (clientRegistration === "cimd" && id === undefined) {
    const what = 'with "clientRegistration": "cimd" it is needed';
    throw new SignInProblem("bad-settings", { key: "oauth.clientMetadataUrl", what });
  }
  if (id === undefined || clientRegistration === "dcr") return undefined;
  const isKnown = metadata.client_id_metadata_document_supported === true;
  if (clientRegistration === "auto" && !isKnown) return undefined;
  return { id, method: hasAssertion(plan) ? "private_key_jwt" : "none", kind: "metadata-document" };
}

/**
 * The client of `plan`, else `stored` if it fits, else a metadata document, else a new registration. Throws
 * `SignInProblem`.
 */
export async function clientFor(wanted: WantedClient, context: GrantContext): Promise<ClientRecord> {
  const { plan } = context;
  const configured = configuredClient(plan, wanted.discovered);
  if (configured) return configured;
  const stored = plan.clientRegistration === "cimd" ? undefined : storedClient(wanted, Date.now());
  return stored ?? documentClient(plan, wanted.discovered) ?? (await register(wanted, context));
}
