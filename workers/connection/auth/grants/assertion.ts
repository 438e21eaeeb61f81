/**
 * Proofs of a client that holds a private key: `private_key_jwt` (RFC 7523, section 2.2), signed by oauth4webapi with the
 * key of the configuration, or a ready assertion in a file, which another program renews. Owns: reading both. Neither
 * is kept: each request reads them anew.
 */
import { createPrivateKey, type KeyObject } from "node:crypto";
import { type ClientAuth, modifyAssertion, PrivateKeyJwt } from "oauth4webapi";
import { withoutBom } from "../../../../src/shared/text/bom.ts";
import { readRegularText, whyUnread } from "../../../shared/files/read-regular.ts";
import type { OAuthPlan } from "../../config/entry/oauth-keys.ts";
import { SignInProblem } from "../model/model.ts";

/** A PEM of an RSA key of 16,384 bits has 13 KB. */
const FILE_BYTES = 64 * 1024;
const ASSERTION_CHARS = 16 * 1024;
/** Enough for a slow network and a clock that is a minute behind. */
const ASSERTION_SECONDS = 120;
const SHORTEST_RSA_BITS = 2048;
const ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
/** Header, claims and signature (RFC 7515, section 3.1). */
const JWT = /^[\w-]+\.[\w-]+\.[\w-]+$/;

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
    throw unusable(setting, isEncrypted ? "the key is encrypted" : "it is no private key in PEM form");
  }
}

async function signedByKey(plan: OAuthPlan): Promise<ClientAuth> {
  const { key, setting } = await readKey(plan);
  const known = algorithmsFor(key);
  if (known.length === 0) throw unusable(setting, "the key is none of RSA, EC P-256 to P-521 and Ed25519");
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

async function readyAssertion(path: string): Promise<ClientAuth> {
  const assertion = withoutBom(await readFile("assertionFile", path)).trim();
  if (assertion.length > ASSERTION_CHARS || !JWT.test(assertion)) {
    throw unusable("assertionFile", "it holds no signed assertion");
  }
  return (_server, client, body) => {
    body.set("client_id", client.client_id);
    body.set("client_assertion_type", ASSERTION_TYPE);
    body.set("client_assertion", assertion);
  };
}

export const hasAssertion = ({ privateKey, privateKeyFile, assertionFile }: OAuthPlan): boolean =>
  (privateKey ?? privateKeyFile ?? assertionFile) !== undefined;

/** A key goes before a file with an assertion. Throws `SignInProblem` "bad-settings". */
export function assertionAuth(plan: OAuthPlan): Promise<ClientAuth> {
  const { privateKey, privateKeyFile, assertionFile } = plan;
  const hasKey = (privateKey ?? privateKeyFile) !== undefined;
  return assertionFile === undefined || hasKey ? signedByKey(plan) : readyAssertion(assertionFile);
}
