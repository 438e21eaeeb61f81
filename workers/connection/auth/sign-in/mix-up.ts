/**
 * Guards against a mix-up (RFC 9700, section 4.4): metadata of one server send the browser to the page of another one, where
 * the person signs in as usual, and take the code to their own token endpoint. Owns: what the
 * person is asked if the endpoints do not belong together.
 */
import type { SignInQuestion } from "../../../../src/shared/protocol/sign-in.ts";
import type { OAuthPlan } from "../../config/entry/oauth-keys.ts";
import { isSameSite, isVouched } from "../discovery/discovery.ts";
import type { Discovered } from "../model/model.ts";

export interface MixUp {
  question: Extract<SignInQuestion, { about: "endpoints" }>;
  /** The page at which the person would sign in. */
  page: URL;
}

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
