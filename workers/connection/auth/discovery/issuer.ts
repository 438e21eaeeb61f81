/** Owns whether an authorization server may call itself what its metadata say (RFC 8414, section 3.3). Pure. */
import type { OAuthPlan } from "../../config/entry/oauth-keys.ts";

export type IssuerVerdict =
  /** `accepted`: the issuer differs from its address, and the configuration or the user accepts it. */
  | { kind: "same" }
  | { kind: "accepted"; issuer: string }
  | { kind: "differs"; expected: string; found: string };

export interface IssuerQuestion {
  /** Identifier by which the metadata were found; undefined: the user wrote the address of the metadata. */
  expected: string | undefined;
  /** `issuer` of the metadata. */
  found: string;
  plan: Pick<OAuthPlan, "issuer" | "skipIssuerMetadataValidation">;
  /** The issuer that the user accepted for this server. */
  acceptedIssuer: string | undefined;
}

const withoutSlash = (issuer: string): string => (issuer.endsWith("/") ? issuer.slice(0, -1) : issuer);

/** Google and others write their issuer with and without a slash at its end. Nothing else is treated as equal. */
export const isSameIssuer = (a: string, b: string): boolean =>
  a === b || withoutSlash(a) === b || a === withoutSlash(b);

export function judgeIssuer({ expected, found, plan, acceptedIssuer }: IssuerQuestion): IssuerVerdict {
  const isOwn = expected === undefined || isSameIssuer(expected, found);
  if (plan.issuer !== undefined && !isSameIssuer(plan.issuer, found)) {
    return { kind: "differs", expected: plan.issuer, found };
  }
  if (isOwn) return { kind: "same" };
  const isAccepted =
    plan.issuer !== undefined || acceptedIssuer === found || plan.skipIssuerMetadataValidation === true;
  return isAccepted ? { kind: "accepted", issuer: found } : { kind: "differs", expected, found };
}
