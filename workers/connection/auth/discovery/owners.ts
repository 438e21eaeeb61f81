/**
 * Whose an endpoint is, and who vouches for it (RFC 9700, section 4.4). Owns: which addresses have the same owner, and to
 * whom a secret of the configuration may be sent where no person is asked. Pure.
 */
import { isIP } from "node:net";
import type { OAuthPlan } from "../../config/entry/oauth-keys.ts";
import { type Discovered, SignInProblem } from "../model/model.ts";
import { hostOf, isLoopback, shownAddress } from "../requests/requests.ts";

const isBelow = (host: string, parent: string): boolean =>
  parent.includes(".") && host.endsWith(`.${parent}`);

/** On this machine and at a bare address each port may belong to another program. */
const isOneMachine = (host: string): boolean =>
  isIP(host) !== 0 || host === "localhost" || host.endsWith(".localhost");

/**
 * Whether two addresses certainly have the same owner: their host is the same, or one is below the other. Two names below
 * a third one may belong to two customers of a hosting company, so they count as different; a list of public suffixes
 * would be as old as this package.
 */
export function isSameSite(a: URL, b: URL): boolean {
  if (a.origin === b.origin) return true;
  const [one, other] = [hostOf(a), hostOf(b)];
  if (isOneMachine(one) || isOneMachine(other)) return false;
  return one === other || isBelow(one, other) || isBelow(other, one);
}

/**
 * Whether the user's own configuration vouches for the metadata: it names their address, or the issuer under whose own
 * address they were found.
 */
export const isVouched = (plan: OAuthPlan, { acceptedIssuer }: Discovered): boolean =>
  plan.authServerMetadataUrl !== undefined || (plan.issuer !== undefined && acceptedIssuer === undefined);

/**
 * A secret in the configuration is for the server's own site, or for an authorization server that the configuration
 * names. Metadata of a server could otherwise name any other place for it. On one machine all ports count as one site: a
 * local server is as free to ask for the secret at its own port. A private key is never sent, and what it signs is for the
 * issuer alone, if that is found under its own address. Throws `SignInProblem` "secret-elsewhere".
 */
export function checkSecretTarget(
  discovered: Discovered,
  { plan, url }: { plan: OAuthPlan; url: URL },
): void {
  const { metadata, foundAt, acceptedIssuer } = discovered;
  if (metadata.token_endpoint === undefined || isVouched(plan, discovered)) return;
  const isForIssuer = (plan.privateKey ?? plan.privateKeyFile) !== undefined && acceptedIssuer === undefined;
  const target = new URL(metadata.token_endpoint);
  if (isForIssuer || isSameSite(url, target) || (isLoopback(url) && isLoopback(target))) return;
  // Whoever calls itself the named issuer may be another one, but what goes to that issuer's own site is safe.
  if (plan.issuer !== undefined && URL.canParse(plan.issuer) && isSameSite(new URL(plan.issuer), target))
    return;
  const missing =
    plan.issuer === undefined
      ? { key: "issuer", found: metadata.issuer }
      : { key: "authServerMetadataUrl", found: foundAt };
  throw new SignInProblem("secret-elsewhere", { url: shownAddress(target), ...missing });
}
