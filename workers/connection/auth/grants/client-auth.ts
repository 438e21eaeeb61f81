/**
 * How a client proves to the token endpoint who it is (RFC 6749, section 2.3; OpenID Connect Core, section 9). Owns: the
 * choice of the method and the secret that goes with it.
 */
import { type AuthorizationServer, type ClientAuth, ClientSecretPost, None } from "oauth4webapi";
import type { OAuthPlan } from "../../config/entry/oauth-keys.ts";
import { type ClientAuthMethod, type ClientRecord, SignInProblem } from "../model/model.ts";
import { assertionAuth, hasAssertion } from "./assertion.ts";

export interface ClientProof {
  auth: ClientAuth;
  /** What no text may show. */
  secrets: string[];
}

const SECRET_METHODS = ["client_secret_basic", "client_secret_post"] as const;

/** The method of a client with a secret: RFC 8414 names Basic as the default. */
export function methodWithSecret(metadata: AuthorizationServer): ClientAuthMethod {
  const supported = metadata.token_endpoint_auth_methods_supported;
  const found = SECRET_METHODS.find((method) => supported?.includes(method));
  return found ?? (supported?.includes("none") ? "none" : "client_secret_basic");
}

/** The method of the client that the configuration names. */
export function configuredMethod(plan: OAuthPlan, metadata: AuthorizationServer): ClientAuthMethod {
  if (hasAssertion(plan)) return "private_key_jwt";
  return plan.clientSecret === undefined ? "none" : methodWithSecret(metadata);
}

/** The method to ask for in a registration. A program on a user's machine can keep no secret, so `none` goes first. */
export function registeredMethod(metadata: AuthorizationServer): ClientAuthMethod {
  const supported = metadata.token_endpoint_auth_methods_supported ?? ["none"];
  const methods = ["none", "client_secret_post", "client_secret_basic"] as const;
  return methods.find((method) => supported.includes(method)) ?? "none";
}

/**
 * Both parts of Basic are form-encoded (RFC 6749, section 2.3.1). oauth4webapi also encodes `-`, `.` and `_` and writes a
 * space as `+`, which is allowed. But servers that do not decode then know no client whose id is a UUID, and servers
 * that decode percent signs alone read another secret.
 */
const formEncoded = (text: string): string => encodeURIComponent(text.toWellFormed());

const basic =
  (secret: string): ClientAuth =>
  (_server, client, _body, headers) => {
    const credentials = `${formEncoded(client.client_id)}:${formEncoded(secret)}`;
    headers.set("authorization", `Basic ${Buffer.from(credentials).toString("base64")}`);
  };

/** A secret or key of the configuration proves only the client that stands beside it. */
function checkConfigured(client: ClientRecord, plan: OAuthPlan): void {
  if (client.kind !== "configured" || plan.clientId === client.id) return;
  const what = "it is not the client of the sign-in";
  throw new SignInProblem("bad-settings", { key: "oauth.clientId", what });
}

function secretOf(client: ClientRecord, plan: OAuthPlan): string {
  const secret = client.kind === "configured" ? plan.clientSecret : client.secret;
  if (secret !== undefined) return secret;
  if (client.kind !== "configured") throw new SignInProblem("client-unknown");
  throw new SignInProblem("bad-settings", { key: "oauth.clientSecret", what: "the sign-in needs it" });
}

/** Throws `SignInProblem`: bad-settings; client-unknown if a dynamic client has lost its secret. */
export async function proofOf(client: ClientRecord, plan: OAuthPlan): Promise<ClientProof> {
  if (client.method === "none") return { auth: None(), secrets: [] };
  checkConfigured(client, plan);
  if (client.method === "private_key_jwt") return { auth: await assertionAuth(plan), secrets: [] };
  const secret = secretOf(client, plan);
  const auth = client.method === "client_secret_basic" ? basic(secret) : ClientSecretPost(secret);
  return { auth, secrets: [secret] };
}
