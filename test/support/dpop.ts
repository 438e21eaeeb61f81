/** Owns: how a server checks a DPoP proof (RFC 9449, section 4.3), written apart from the code that makes them. */
import { createHash, createPublicKey, type JsonWebKey, verify } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";

export interface Proof {
  /** Thumbprint of its key (RFC 7638). */
  jkt: string;
  claims: { jti: string; htm: string; htu: string; iat: number; ath?: string; nonce?: string };
}

export interface Presented {
  method: string;
  /** The address as the server knows itself. */
  url: string;
  headers: IncomingHttpHeaders;
  /** The token that the request presents. Absent: a request for tokens. */
  token?: string | undefined;
}

const LATE_SECONDS = 60;

const sha256 = (text: string): string => createHash("sha256").update(text).digest("base64url");
const jsonOf = (part = ""): Record<string, unknown> =>
  JSON.parse(Buffer.from(part, "base64url").toString("utf8")) as Record<string, unknown>;

/** Throws what is wrong with the proof. The nonce and the use of a proof for a second time are the caller's to judge. */
export function checkProof({ method, url, headers, token }: Presented, nowMs = Date.now()): Proof {
  const fail = (what: string): never => {
    throw new Error(`DPoP: ${what}`);
  };
  const { dpop } = headers;
  if (typeof dpop !== "string" || dpop.includes(",")) return fail("not one proof");
  const [head, body, signature = "", ...more] = dpop.split(".");
  if (more.length > 0) return fail("no JWT");
  const { typ, alg, jwk } = jsonOf(head) as { typ?: string; alg?: string; jwk?: JsonWebKey };
  if (typ !== "dpop+jwt" || alg !== "ES256" || jwk === undefined) return fail("typ, alg or jwk");
  if (jwk.d !== undefined) return fail("it holds the private key");
  const key = createPublicKey({ key: jwk, format: "jwk" });
  const signed = { key, dsaEncoding: "ieee-p1363" } as const;
  if (!verify("sha256", Buffer.from(`${head}.${body}`), signed, Buffer.from(signature, "base64url")))
    return fail("signature");
  const claims = jsonOf(body) as Proof["claims"];
  if (typeof claims.jti !== "string" || claims.jti.length < 16) return fail("jti");
  if (claims.htm !== method) return fail(`htm ${claims.htm}`);
  const address = new URL(url);
  if (claims.htu !== `${address.origin}${address.pathname}`) return fail(`htu ${claims.htu}`);
  if (Math.abs(nowMs / 1_000 - claims.iat) > LATE_SECONDS) return fail("iat");
  if (claims.ath !== (token === undefined ? undefined : sha256(token))) return fail("ath");
  const { crv, kty, x, y } = jwk;
  return { jkt: sha256(JSON.stringify({ crv, kty, x, y })), claims };
}
