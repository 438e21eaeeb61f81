/** The end of a sign-in: the browser's answer becomes tokens, and the tokens become the stored record. */

import { known } from "../../../shared/json.ts";
import type { GrantContext, PendingAuthorization } from "../grants/grants.ts";
import { type Discovered, SignInProblem, type SignInRecord, type TokenAnswer } from "../model/model.ts";
import type { SignInParts, SignInTarget } from "./contract.ts";
import type { Pasted } from "./paste.ts";
import { tellSecrets } from "./prepare.ts";

function tokenEndpointOf({ metadata }: Discovered): string {
  if (metadata.token_endpoint !== undefined) return metadata.token_endpoint;
  throw new SignInProblem("no-endpoint", { what: "token_endpoint", url: metadata.issuer });
}

/** `nowMs`: milliseconds since the epoch. */
export function recordOf(
  { server, url }: Pick<SignInTarget, "server" | "url">,
  { discovered, client, scope }: PendingAuthorization,
  tokens: TokenAnswer,
  nowMs: number,
): SignInRecord {
  return {
    version: 1,
    server,
    url: url.href,
    issuer: discovered.metadata.issuer,
    tokenEndpoint: tokenEndpointOf(discovered),
    client,
    access_token: tokens.access_token,
    token_type: tokens.token_type,
    obtainedAt: nowMs,
    ...known({
      acceptedIssuer: discovered.acceptedIssuer,
      resource: discovered.resource,
      revocationEndpoint: discovered.metadata.revocation_endpoint,
      refresh_token: tokens.refresh_token,
      expiresAt: tokens.expiresAt,
      requestedScope: scope,
      // RFC 6749, section 5.1: an answer without scope grants what was requested.
      scope: tokens.scope ?? scope,
    }),
  };
}

/** Throws `SignInProblem`. A code is sent once: a second time would end the tokens of the first (RFC 6749, section 4.1.2). */
export async function exchange(
  target: SignInTarget,
  { pending, answer, context }: { pending: PendingAuthorization; answer: Pasted; context: GrantContext },
  { finishAuthorization }: Pick<SignInParts, "finishAuthorization">,
): Promise<SignInRecord> {
  const code = "bareCode" in answer ? answer.bareCode : answer.parameters.get("code");
  if (code) target.onSecret(code);
  const tokens = await finishAuthorization(pending, answer, context);
  const record = recordOf(target, pending, tokens, Date.now());
  tellSecrets(record, target.onSecret);
  return record;
}
