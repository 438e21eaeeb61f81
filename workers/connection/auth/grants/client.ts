/**
 * Which client signs in, and how it proves who it is (RFC 6749, section 2.3; OpenID Connect Core, section 9). Owns: the
 * configured client, the stored one, a metadata document and the dynamic registration (RFC 7591), whose refusal is never
 * repeated unchanged; the secret of a client, and the proofs of one that holds a private key (RFC 7523, section 2.2), which
 * each request reads anew.
 */
import { createPrivateKey, type KeyObject } from "node:crypto";
import {
  type AuthorizationServer,
  type Client,
  type ClientAuth,
  ClientSecretPost,
  dynamicClientRegistrationRequest,
  modifyAssertion,
  None,
  PrivateKeyJwt,
  processDynamicClientRegistrationResponse,
} from "oauth4webapi";
import { withoutBom } from "../../../../src/shared/text/reading.ts";
import { readRegularText, whyUnread } from "../../../shared/files/read-regular.ts";
import { isSignedJwt, type OAuthPlan } from "../../config/entry/oauth-keys.ts";
import { type ClientAuthMethod, type ClientRecord, type Discovered, SignInProblem } from "../model/model.ts";
import { shownAddress } from "../requests/addresses.ts";
import { ask, endpointOf, type GrantContext, registrationProblem } from "./ask.ts";

/** A PEM of an RSA key of 16,384 bits has 13 KB. */
const FILE_BYTES = 64 * 1024;
/** Enough for a slow network and a clock that is a minute behind. */
const ASSERTION_SECONDS = 120;
const SHORTEST_RSA_BITS = 2048;
const ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

type ImportParameters = Parameters<typeof crypto.subtle.importKey>[2];

const unusable = (key: string, what: string): SignInProblem =>
  new SignInProblem("bad-settings", { key: `oauth.${key}`, what });

const rsa = (name: string, bits: number): ImportParameters => ({ name, hash: `SHA-${bits}` });

/** Names of RFC 7518, section 3.1, and RFC 8037, and what WebCrypto calls them. */
const RSA_ALGORITHMS: Readonly<Record<string, ImportParameters>> = {
  RS256: rsa("RSASSA-PKCS1-v1_5", 256),
  RS384: rsa("RSASSA-PKCS1-v1_5", 384),
  RS512: rsa("RSASSA-PKCS1-v1_5", 512),
  PS256: rsa("RSA-PSS", 256),
  PS384: rsa("RSA-PSS", 384),
  PS512: rsa("RSA-PSS", 512),
};
const CURVES: Readonly<Record<string, { alg: string; namedCurve: string }>> = {
  prime256v1: { alg: "ES256", namedCurve: "P-256" },
  secp384r1: { alg: "ES384", namedCurve: "P-384" },
  secp521r1: { alg: "ES512", namedCurve: "P-521" },
};

/** The algorithms that fit a key, the default one first. */
function algorithmsFor(key: KeyObject): [alg: string, parameters: ImportParameters][] {
  const { namedCurve = "" } = key.asymmetricKeyDetails ?? {};
  const curve = CURVES[namedCurve];
  if (key.asymmetricKeyType === "rsa") return Object.entries(RSA_ALGORITHMS);
  if (curve) return [[curve.alg, { name: "ECDSA", namedCurve: curve.namedCurve }]];
  if (key.asymmetricKeyType === "ed25519") {
    // RFC 9864 renames it; servers know the older name.
    return [
      ["EdDSA", { name: "Ed25519" }],
      ["Ed25519", { name: "Ed25519" }],
    ];
  }
  return [];
}

/** Environment variables often hold a PEM in one line, with `\n` for each line end. */
const asPem = (text: string): string => withoutBom(text).replaceAll("\\n", "\n").trim();

async function readFile(name: "privateKeyFile" | "assertionFile", path: string): Promise<string> {
  const read = await readRegularText(path, FILE_BYTES);
  if (read.kind === "text") return read.text;
  throw unusable(name, whyUnread(read));
}

/** The key and the name of its setting, for errors. */
async function readKey(plan: OAuthPlan): Promise<{ key: KeyObject; setting: string }> {
  const { privateKey, privateKeyFile } = plan;
  const setting = privateKey === undefined ? "privateKeyFile" : "privateKey";
  if (privateKey === undefined && privateKeyFile === undefined) throw unusable("privateKey", "it is missing");
  const text = privateKey ?? (await readFile("privateKeyFile", privateKeyFile ?? ""));
  try {
    return { key: createPrivateKey(asPem(text)), setting };
  } catch {
    // The reason of OpenSSL names its functions and helps nobody.
    const isEncrypted = /ENCRYPTED/.test(text);
    throw unusable(setting, isEncrypted ? "the key is encrypted" : "it is not a private key in PEM form");
  }
}

async function signedByKey(plan: OAuthPlan): Promise<ClientAuth> {
  const { key, setting } = await readKey(plan);
  const known = algorithmsFor(key);
  if (known.length === 0) throw unusable(setting, "the key is not RSA, EC P-256 to P-521 or Ed25519");
  if ((key.asymmetricKeyDetails?.modulusLength ?? SHORTEST_RSA_BITS) < SHORTEST_RSA_BITS) {
    throw unusable(setting, `the RSA key has less than ${SHORTEST_RSA_BITS} bits`);
  }
  const found = plan.signingAlg === undefined ? known[0] : known.find(([alg]) => alg === plan.signingAlg);
  if (!found)
    throw unusable("signingAlg", `the key can be used with ${known.map(([alg]) => alg).join(", ")}`);
  const [alg, parameters] = found;
  const pkcs8 = new Uint8Array(key.export({ type: "pkcs8", format: "der" }));
  const imported = await crypto.subtle.importKey("pkcs8", pkcs8, parameters, false, ["sign"]);
  const kid = plan.keyId === undefined ? {} : { kid: plan.keyId };
  return PrivateKeyJwt(
    { key: imported, ...kid },
    {
      [modifyAssertion]: (header, claims) => {
        header.alg = alg;
        claims.exp = Number(claims.iat) + ASSERTION_SECONDS;
        // A server whose clock is a second behind would refuse an assertion that is not valid yet.
        delete claims.nbf;
      },
    },
  );
}

/** The assertion that another program has signed, as it is now. Throws `SignInProblem` "bad-settings". */
export async function readyAssertion({ assertion: given, assertionFile = "" }: OAuthPlan): Promise<string> {
  const text = given ?? (await readFile("assertionFile", assertionFile));
  const assertion = withoutBom(text).trim();
  if (isSignedJwt(assertion)) return assertion;
  throw unusable(given === undefined ? "assertionFile" : "assertion", "it holds no signed assertion");
}

async function signedByOther(plan: OAuthPlan): Promise<ClientAuth> {
  const assertion = await readyAssertion(plan);
  return (_server, client, body) => {
    body.set("client_id", client.client_id);
    body.set("client_assertion_type", ASSERTION_TYPE);
    body.set("client_assertion", assertion);
  };
}

const hasKey = ({ privateKey, privateKeyFile }: OAuthPlan): boolean =>
  (privateKey ?? privateKeyFile) !== undefined;
const hasReady = ({ assertion, assertionFile }: OAuthPlan): boolean =>
  (assertion ?? assertionFile) !== undefined;

/** Whether the client proves itself by an assertion. That of `jwt_bearer` is the grant, not the client's proof. */
const hasAssertion = (plan: OAuthPlan): boolean =>
  hasKey(plan) || (plan.grantType !== "jwt_bearer" && hasReady(plan));

/** A key goes before an assertion that another program has signed. Throws `SignInProblem` "bad-settings". */
const assertionAuth = (plan: OAuthPlan): Promise<ClientAuth> =>
  hasReady(plan) && !hasKey(plan) ? signedByOther(plan) : signedByKey(plan);

interface ClientProof {
  auth: ClientAuth;
  /** What no text may show. */
  secrets: string[];
}

const SECRET_METHODS = ["client_secret_basic", "client_secret_post"] as const;

/** The method of a client with a secret: RFC 8414 names Basic as the default. */
function methodWithSecret(metadata: AuthorizationServer): ClientAuthMethod {
  const supported = metadata.token_endpoint_auth_methods_supported;
  const found = SECRET_METHODS.find((method) => supported?.includes(method));
  return found ?? (supported?.includes("none") ? "none" : "client_secret_basic");
}

const METHODS = ["none", "client_secret_post", "client_secret_basic"] as const;

/** The method to ask for in a registration. A program on a user's machine can keep no secret, so `none` goes first. */
function registeredMethod(metadata: AuthorizationServer): ClientAuthMethod {
  const supported = metadata.token_endpoint_auth_methods_supported ?? ["none"];
  return METHODS.find((method) => supported.includes(method)) ?? "none";
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

/**
 * Undefined: the request names no client (RFC 7523, section 3.1). Throws `SignInProblem`: bad-settings; client-unknown if
 * a dynamic client has lost its secret.
 */
export async function proofOf(client: ClientRecord | undefined, plan: OAuthPlan): Promise<ClientProof> {
  if (!client) return { auth: () => undefined, secrets: [] };
  if (client.method === "none") return { auth: None(), secrets: [] };
  checkConfigured(client, plan);
  if (client.method === "private_key_jwt") return { auth: await assertionAuth(plan), secrets: [] };
  const secret = secretOf(client, plan);
  const auth = client.method === "client_secret_basic" ? basic(secret) : ClientSecretPost(secret);
  return { auth, secrets: [secret] };
}

interface WantedClient extends Registration {
  /** Of a sign-in at the same issuer: credentials are for the issuer alone that gave them. */
  stored: ClientRecord | undefined;
  /** False: a stored dynamic client is not used again. */
  reuse: boolean;
}

/** The client that the configuration names by its id. */
export function configuredClient(plan: OAuthPlan, { metadata }: Discovered): ClientRecord | undefined {
  const { clientId: id, clientSecret } = plan;
  if (id === undefined) return undefined;
  const method = clientSecret === undefined ? "none" : methodWithSecret(metadata);
  return { id, method: hasAssertion(plan) ? "private_key_jwt" : method, kind: "configured" };
}

function storedClient({ stored, reuse, redirectUri }: WantedClient, now: number): ClientRecord | undefined {
  if (!reuse || stored?.kind !== "dynamic") return undefined;
  if (!stored.redirectUris?.includes(redirectUri)) return undefined;
  return stored.secretExpiresAt !== undefined && stored.secretExpiresAt <= now ? undefined : stored;
}

/** Whether a client without an id is known by its description (Client ID Metadata Documents), and not registered. */
export const usesDocument = (
  { clientMetadataUrl, clientRegistration: way }: OAuthPlan,
  { metadata }: Pick<Discovered, "metadata">,
): boolean =>
  way === "cimd" ||
  (way === "auto" &&
    clientMetadataUrl !== undefined &&
    metadata.client_id_metadata_document_supported === true);

/** The client whose id is the address of its description. */
function documentClient(plan: OAuthPlan, discovered: Discovered): ClientRecord | undefined {
  const { clientMetadataUrl: id } = plan;
  if (!usesDocument(plan, discovered)) return undefined;
  if (id === undefined) {
    const what = 'with "clientRegistration": "cimd" it is needed';
    throw new SignInProblem("bad-settings", { key: "oauth.clientMetadataUrl", what });
  }
  return { id, method: hasAssertion(plan) ? "private_key_jwt" : "none", kind: "metadata-document" };
}

/** The client of a grant without a user, which registers none. Undefined: the plan names none. */
export const machineClient = (plan: OAuthPlan, discovered: Discovered): ClientRecord | undefined =>
  configuredClient(plan, discovered) ?? documentClient(plan, discovered);

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

interface Registration {
  discovered: Discovered;
  redirectUri: string;
  scope: string | undefined;
  /** The client will ask for codes for another device as well (RFC 8628). */
  forDevice?: boolean;
}

type Metadata = Parameters<typeof dynamicClientRegistrationRequest>[1];

const CLIENT_NAME = "Pi (pi-mcp-threads)";
const ID_CHARS = 2_000;
const SECRET_CHARS = 4_000;
/** The latest time that a Date can hold, in seconds. Java servers write the largest long for "never". */
export const LATEST_SECONDS = 8.64e12;
/** RFC 6749, appendix A.1 and A.2. */
const PRINTABLE = /^[ -~]+$/;
/** Errors after which less may be accepted. */
const TRY_LESS = new Set(["invalid_client_metadata", "invalid_scope"]);

/** RFC 8628, section 3.4. */
export const DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code";

const deviceGrant = ({ forDevice }: Registration): string[] => (forDevice ? [DEVICE_GRANT] : []);

/** What an authorization server needs to know of a client, and nothing that it may refuse. */
function leastMetadata(wanted: Registration, plan: OAuthPlan): Metadata {
  const { discovered, redirectUri } = wanted;
  const { metadata } = discovered;
  const grants = metadata.grant_types_supported;
  return {
    // OpenID Connect Registration, section 2: a native client may use http on loopback and own schemes, not https.
    application_type: redirectUri.startsWith("https:") ? "web" : "native",
    client_name: plan.clientName ?? CLIENT_NAME,
    redirect_uris: [redirectUri],
    grant_types: [
      "authorization_code",
      ...(!grants || grants.includes("refresh_token") ? ["refresh_token"] : []),
      ...deviceGrant(wanted),
    ],
    response_types: ["code"],
    token_endpoint_auth_method: registeredMethod(metadata),
  };
}

const fullMetadata = (wanted: Registration, plan: OAuthPlan): Metadata => ({
  ...leastMetadata(wanted, plan),
  grant_types: ["authorization_code", "refresh_token", ...deviceGrant(wanted)],
  ...(plan.clientUri !== undefined && { client_uri: plan.clientUri }),
  ...(plan.logoUri !== undefined && { logo_uri: plan.logoUri }),
  ...(wanted.scope !== undefined && { scope: wanted.scope }),
});

/** The method that the answer names, else the one that fits what the answer has. */
function answeredMethod(
  answer: Client,
  secret: string | undefined,
  discovered: Discovered,
): ClientAuthMethod {
  if (secret === undefined) return "none";
  const named = METHODS.find((method) => method === answer.token_endpoint_auth_method);
  return named ?? methodWithSecret(discovered.metadata);
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
async function register(wanted: Registration, context: GrantContext): Promise<ClientRecord> {
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
