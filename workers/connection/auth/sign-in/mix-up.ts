/**
 * Guards against a mix-up (RFC 9700, section 4.4): metadata of one server send the browser to the page of another one, where
 * the person signs in as usual, and take the code to their own token endpoint. Owns: which endpoints belong together, and
 * what the person is asked if they do not.
 */
import { isIP } from "node:net";
import type { SignInQuestion } from "../../../../src/shared/protocol/sign-in.ts";
import type { OAuthPlan } from "../../config/entry/oauth-plan.ts";
import type { Discovered } from "../model/model.ts";
import { hostOf } from "../requests/requests.ts";

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

export interface MixUp {
  question: Extract<SignInQuestion, { about: "endpoints" }>;
  /** The page at which the person would sign in. */
  page: URL;
}

/**
 * Whether the user's own configuration vouches for the metadata: it names their address, or the issuer under whose own
 * address they were found.
 */
const isVouched = (plan: OAuthPlan, { acceptedIssuer }: Discovered): boolean =>
  plan.authServerMetadataUrl !== undefined || (plan.issuer !== undefined && acceptedIssuer === undefined);

/**
 * What the person must agree to if the page of a sign-in does not belong to the server that describes it; undefined if it
 * does. `isOwnPlan`: no file of a project wrote the plan.
 */
export function mixUpOf(
  discovered: Discovered,
  { server, plan, isOwnPlan }: { server: string; plan: OAuthPlan; isOwnPlan: boolean },
): MixUp | undefined {
  const { authorization_endpoint: page, token_endpoint: token } = discovered.metadata;
  // Whoever needs them says that they are missing.
  if (page === undefined || token === undefined) return undefined;
  const [described, shown, taken] = [new URL(discovered.foundAt), new URL(page), new URL(token)];
  if (isSameSite(described, shown) || (isOwnPlan && isVouched(plan, discovered))) return undefined;
  const text = `${server} sends you to sign in at ${shown.host}, and the code of that sign-in goes to ${taken.host}, as ${described.host} says. Whoever gets the code can act as you at ${shown.host}. Go on only if you know that they belong together.`;
  const endpoints = [described, shown, taken].map(({ origin }) => origin).join(" ");
  return { question: { about: "endpoints", endpoints, text }, page: shown };
}
