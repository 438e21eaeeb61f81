/** Owns: an issuer of signed assertions (JWT, ES256), and what an authorization server checks of one (RFC 7523, section 3). */
import { generateKeyPairSync, randomUUID, sign, verify } from "node:crypto";

export interface Claims {
  iss?: string | undefined;
  sub?: string | undefined;
  aud?: string | string[] | undefined;
  exp?: number | undefined;
  [name: string]: unknown;
}

export interface AssertionIssuer {
  issuer: string;
  /** An assertion for this audience that lives for five minutes, changed by `more`. */
  issue(aud: string, more?: Claims, typ?: string): string;
  /** The claims of an assertion of this issuer for this audience; a text says why it is refused. */
  check(assertion: string, aud: string, typ?: string): Claims | string;
  /** Every assertion that was issued. */
  secrets: ReadonlySet<string>;
}

const LIFE_SECONDS = 300;
const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");
const read = (text: string | undefined): Record<string, unknown> =>
  JSON.parse(Buffer.from(text ?? "", "base64url").toString("utf8")) as Record<string, unknown>;

export function assertionIssuer(issuer: string): AssertionIssuer {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const secrets = new Set<string>();
  return {
    issuer,
    secrets,
    issue: (aud, more = {}, typ = "JWT") => {
      const iat = Math.floor(Date.now() / 1_000);
      const own = { iss: issuer, sub: "workload", aud, iat, exp: iat + LIFE_SECONDS, jti: randomUUID() };
      const signed = `${part({ alg: "ES256", typ })}.${part({ ...own, ...more })}`;
      const signature = sign("sha256", Buffer.from(signed), { key: privateKey, dsaEncoding: "ieee-p1363" });
      const assertion = `${signed}.${signature.toString("base64url")}`;
      secrets.add(assertion);
      return assertion;
    },
    check: (assertion, aud, typ = "JWT") => {
      const [header, claims, signature = ""] = assertion.split(".");
      const key = { key: publicKey, dsaEncoding: "ieee-p1363" } as const;
      const isSigned = verify(
        "sha256",
        Buffer.from(`${header}.${claims}`),
        key,
        Buffer.from(signature, "base64url"),
      );
      if (!isSigned) return "The signature is wrong.";
      if (read(header).typ !== typ) return "The type is wrong.";
      const found: Claims = read(claims);
      if (found.iss !== issuer) return "The issuer is wrong.";
      if (found.aud !== aud) return "The audience is wrong.";
      if (found.exp === undefined || found.exp * 1_000 <= Date.now()) return "The assertion has expired.";
      return found;
    },
  };
}
