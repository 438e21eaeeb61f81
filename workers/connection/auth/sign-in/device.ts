/**
 * A sign-in by another device (RFC 8628). Owns: the client for it, what the person must agree to before a code is shown, and how
 * often the authorization server is asked whether the person has answered. Loaded by the first sign-in that uses it.
 */
import { known } from "../../../shared/json.ts";
import { borrowedName, checkSecretTarget, isSameSite, isVouched } from "../discovery/discovery.ts";
import { endpointOf, type GrantContext } from "../grants/ask.ts";
import { beginDevice, deviceTokens, type PendingDevice } from "../grants/device.ts";
import {
  type Discovered,
  kindOf,
  SignInProblem,
  type SignInRecord,
  type TokenAnswer,
} from "../model/model.ts";
import { type Preparation, type Prepared, tellSecrets, wantedOf } from "./prepare.ts";
import { unusedRedirect } from "./redirect.ts";

/** A client that this sign-in did not register may be gone, or may not ask for codes: then another one is registered. */
async function codesFor(
  preparation: Preparation,
  discovered: Discovered,
  old: SignInRecord | undefined,
): Promise<PendingDevice> {
  const { target, context, parts } = preparation;
  const { plan } = context;
  const { scope, ...wanted } = wantedOf(preparation, discovered, old);
  const begin = async (reuse: boolean): Promise<PendingDevice> => {
    const redirectUri = unusedRedirect(plan);
    const client = await parts.clientFor(
      { discovered, redirectUri, scope, forDevice: true, ...wanted, reuse },
      context,
    );
    const dpopKey = discovered.bindsTokens ? (await import("../requests/dpop.ts")).createKey() : undefined;
    tellSecrets({ client, ...known({ dpopKey }) }, target.onSecret);
    // Unlike the code of a browser, the request goes out before a person has seen an address.
    if (client.kind === "configured" && client.method !== "none") {
      checkSecretTarget(discovered, { plan, url: target.url });
      checkSecretTarget(discovered, { plan, url: target.url }, "device_authorization_endpoint");
    }
    try {
      return await beginDevice({ discovered, client, scope, dpopKey }, context, target.url);
    } catch (error) {
      const isOld = client.kind === "dynamic" && client.id === wanted.stored?.id;
      if (!isOld || kindOf(error) !== "client-unknown") throw error;
      return begin(false);
    }
  };
  return begin(wanted.reuse);
}

/**
 * What the person must agree to if the page for the code does not belong to the server that describes the sign-in, or if that
 * server passes as another one. A server can get a code from another one, as any program can, and show it as its own: who agrees to it on the real page of the other
 * server gives the first one the tokens (RFC 8628, section 5.4).
 */
function mixUpOf(pending: PendingDevice, { target: { server, isOwnPlan }, context: { plan } }: Preparation) {
  const { discovered, url } = pending;
  const [described, shown] = [new URL(discovered.foundAt), new URL(url)];
  const giver = endpointOf(discovered.metadata, "device_authorization_endpoint");
  const taken = endpointOf(discovered.metadata, "token_endpoint");
  const isOwnPage = isSameSite(described, shown);
  const other = borrowedName(plan, discovered, [shown, giver, taken]);
  if ((isOwnPage && other === undefined) || (isOwnPlan && isVouched(plan, discovered))) return undefined;
  const name = other === undefined ? "" : `, which calls itself ${other}`;
  const where = (isOwnPage && other) || shown.host;
  const text = `${server} sends you to ${shown.host} with a code that ${giver.host} gives, as ${described.host} says${name}. Whoever made the code can act as you at ${where}. Go on only if you know that they belong together.`;
  const endpoints = [described, shown, giver, taken].map(({ origin }) => origin).join(" ");
  return { about: "endpoints" as const, endpoints, text };
}

/**
 * The codes, or the question before them. Undefined: nobody asked for codes, and without them the sign-in can go on with a
 * link. Throws `SignInProblem`.
 */
export async function prepareDevice(
  preparation: Preparation,
  discovered: Discovered,
  old: SignInRecord | undefined,
): Promise<Prepared | undefined> {
  const { target, agreed, context, signal } = preparation;
  const isWanted = context.plan.deviceCode === true;
  let pending: PendingDevice;
  try {
    pending = await codesFor(preparation, discovered, old);
  } catch (error) {
    if (isWanted || signal.aborted || !(error instanceof SignInProblem)) throw error;
    context.onNote(
      `offers codes for another device and gives none (${error.kind}): it is signed in to with a link`,
    );
    return undefined;
  }
  target.onSecret(pending.deviceCode);
  const question = mixUpOf(pending, preparation);
  if (question === undefined || agreed.endpoints === question.endpoints) return { kind: "device", pending };
  if (isWanted) return { kind: "ask", question };
  context.onNote(`sends its user to ${new URL(pending.url).host} for a code: it is signed in to with a link`);
  return undefined;
}

/** RFC 8628, section 3.5: what "slow_down" adds, in seconds. */
const SLOWER_SECONDS = 5;

/** Trouble that may pass: the next question may be answered. */
const PASSING = new Set<string>(["unreachable", "unavailable"]);

/**
 * The tokens, once the person has agreed. Asks as often as the authorization server wants, and half as often after each
 * trouble (RFC 8628, section 3.5). `wait`: rejects at the end of the sign-in. Throws `SignInProblem`.
 */
export async function pollTokens(
  pending: PendingDevice,
  context: GrantContext,
  wait: (seconds: number) => Promise<unknown>,
): Promise<TokenAnswer> {
  for (let { interval } = pending; ; ) {
    await wait(interval);
    try {
      return await deviceTokens(pending, context);
    } catch (error) {
      if (!(error instanceof SignInProblem)) throw error;
      if (error.facts.error === "slow_down") interval += SLOWER_SECONDS;
      else if (PASSING.has(error.kind)) interval *= 2;
      else if (error.facts.error !== "authorization_pending") throw error;
    }
  }
}
