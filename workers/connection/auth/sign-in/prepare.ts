/**
 * Everything in a sign-in before the browser opens: the stored sign-in that may renew itself, Pi's own sign-in, finding
 * the authorization server, the listener, the client, and the address for the browser.
 */

import type { SignInAgreed, SignInQuestion } from "../../../../src/shared/protocol/sign-in.ts";
import { isOpenable } from "../../../../src/shared/text/reading.ts";
import { oneLine } from "../../../../src/shared/text/unprintable.ts";
import { settledWithin } from "../../../shared/pace/abort.ts";
import type { GrantContext, PendingAuthorization } from "../grants/grants.ts";
import { type Discovered, SignInProblem, type SignInRecord } from "../model/model.ts";
import type { SignInParts, SignInTarget } from "./contract.ts";
import { listenAndRegister } from "./listen.ts";
import type { Listeners, Listening } from "./listeners.ts";
import { mixUpOf } from "./mix-up.ts";

export type Prepared =
  /** The server can be connected: the old sign-in was renewed, or Pi's was taken over. */
  | { kind: "signed-in" }
  | { kind: "ask"; question: SignInQuestion }
  | {
      kind: "open";
      pending: PendingAuthorization;
      /** Absent: the user pastes the answer. */
      listening?: Listening;
      /** The dynamic client was registered by an earlier sign-in, and may be gone at the authorization server. */
      isOldClient: boolean;
    };

export interface Preparation {
  target: SignInTarget;
  agreed: SignInAgreed;
  /** `target`'s, with requests that end with this sign-in. */
  context: GrantContext;
  parts: SignInParts;
  listeners: Listeners;
  /** A dynamic client with which the last sign-in was not finished. */
  deadClient: string | undefined;
  /** Ends the preparation. */
  signal: AbortSignal;
  /** Ends the listening. */
  listenSignal: AbortSignal;
}

const ISSUER_CHARS = 300;
const EXPECTED_CHARS = 200;

export const tellSecrets = (
  { access_token, refresh_token, client }: Partial<SignInRecord>,
  onSecret: (secret: string) => void,
): void => {
  for (const secret of [access_token, refresh_token, client?.secret]) {
    if (secret !== undefined) onSecret(secret);
  }
};

async function renewed({ target, parts, signal }: Preparation): Promise<boolean> {
  const limit = new AbortController();
  const renewing = target.renew(AbortSignal.any([signal, limit.signal]));
  if (await settledWithin(renewing, parts.limits.renewMs)) return renewing;
  limit.abort();
  return false;
}

async function fromPi({ target, agreed, signal }: Preparation): Promise<Prepared | undefined> {
  if (agreed.fromPi === false) return undefined;
  const found = await target.store.findInPi();
  if (found === undefined) return undefined;
  if (agreed.fromPi === undefined) {
    const { host } = new URL(found.tokenEndpoint);
    const text = `Pi itself is signed in to ${target.server}, and ${host} renews its tokens. Move that sign-in here? Pi's own MCP client must then sign in again.`;
    return { kind: "ask", question: { about: "pi", text } };
  }
  const record = await target.store.takeFromPi(signal);
  if (record === undefined) return undefined;
  tellSecrets(record, target.onSecret);
  return { kind: "signed-in" };
}

/**
 * The question about an issuer that differs; undefined if the user has answered it or could not read the names.
 * `oauth.issuer` is the one issuer to accept, so nothing is asked there.
 */
function issuerQuestion(
  error: unknown,
  { target: { server, redact, plan }, agreed }: Preparation,
): SignInQuestion | undefined {
  if (!(error instanceof SignInProblem) || error.kind !== "issuer-differs") return undefined;
  if (plan.issuer !== undefined) return undefined;
  const { found = "", expected = "" } = error.facts;
  if (agreed.issuer !== undefined || !URL.canParse(found) || oneLine(found, ISSUER_CHARS) !== found)
    return undefined;
  const text = `${server} should use ${oneLine(redact(expected), EXPECTED_CHARS)}, which says it is ${found}. Trust it?`;
  return { about: "issuer", issuer: found, text };
}

/** A challenge that wants more scope is not met by tokens that exist already. */
const isStepUp = ({ challenge }: SignInTarget): boolean => challenge?.error === "insufficient_scope";

async function authorize(
  preparation: Preparation,
  discovered: Discovered,
  old: SignInRecord | undefined,
): Promise<Prepared> {
  const { target, context, parts, listeners, listenSignal, deadClient } = preparation;
  const { plan, onNote } = context;
  const { issuer } = discovered.metadata;
  // Clients belong to their authorization server (MCP 2026-07-28, authorization binding).
  const stored = old?.issuer === issuer ? old.client : undefined;
  const reuse = stored === undefined || stored.id !== deadClient;
  const scope = parts.chooseScope({
    plan,
    discovered,
    challenged: target.challenge?.scope,
    requested: stored && isStepUp(target) ? old?.requestedScope : undefined,
    granted: stored && isStepUp(target) ? old?.scope : undefined,
  });
  const sendsIssuer = discovered.metadata.authorization_response_iss_parameter_supported === true;
  const { client, redirectUri, listening } = await listenAndRegister(
    { plan, server: target.server, issuer, stored: reuse ? stored : undefined, sendsIssuer },
    { listeners, signal: listenSignal, onNote },
    (uri) => parts.clientFor({ discovered, redirectUri: uri, scope, stored, reuse }, context),
  );
  tellSecrets({ client }, target.onSecret);
  const pending = await parts.beginAuthorization({ discovered, client, redirectUri, scope }, context);
  target.onSecret(pending.verifier);
  if (!isOpenable(URL.parse(pending.url)))
    throw new SignInProblem("not-https", { url: withoutQuery(pending.url) });
  const isOldClient = client.kind === "dynamic" && client.id === stored?.id;
  return { kind: "open", pending, isOldClient, ...(listening ? { listening } : {}) };
}

/** The page's own server names itself in each answer, so an answer without a name, or with another one, is not for us. */
const withIssuerDue = (discovered: Discovered): Discovered => ({
  ...discovered,
  metadata: { ...discovered.metadata, authorization_response_iss_parameter_supported: true },
});

const withoutQuery = (url: string): string => url.replace(/[?#].*$/s, "");

/** Throws `SignInProblem`. What it opened is closed by `listenSignal`. */
export async function prepare(preparation: Preparation): Promise<Prepared> {
  const { target, agreed, context, parts, signal } = preparation;
  // A machine asks for a token with its next request, and there is no page for a browser.
  if (context.plan.grantType === "client_credentials") return { kind: "signed-in" };
  const { record, given } = await target.store.read();
  if (!isStepUp(target)) {
    if ((record ?? given) !== undefined && (await renewed(preparation))) return { kind: "signed-in" };
    signal.throwIfAborted();
    const taken = await fromPi(preparation);
    if (taken) return taken;
  }
  signal.throwIfAborted();
  let discovered: Discovered;
  try {
    discovered = await parts.discover({
      url: target.url,
      challenge: target.challenge,
      acceptedIssuer: agreed.issuer ?? record?.acceptedIssuer,
      ...context,
    });
  } catch (error) {
    const question = issuerQuestion(error, preparation);
    if (question) return { kind: "ask", question };
    throw error;
  }
  signal.throwIfAborted();
  const { server, isOwnPlan } = target;
  const mixUp = mixUpOf(discovered, { server, plan: context.plan, isOwnPlan });
  if (mixUp === undefined) return authorize(preparation, discovered, record);
  // What was agreed to must be what the metadata say now.
  if (agreed.endpoints !== mixUp.question.endpoints) return { kind: "ask", question: mixUp.question };
  const isDue = await parts.promisesIssuer(mixUp.page, context.requests);
  return authorize(preparation, isDue ? withIssuerDue(discovered) : discovered, record);
}
