/**
 * Everything in a sign-in but the wait for the browser: the stored sign-in that may renew itself, Pi's own sign-in, finding
 * the authorization server, the question that guards against a mix-up (RFC 9700, section 4.4: metadata of one server send the
 * browser to the page of another one and take the code to their own token endpoint), the client, the address for the
 * browser, and the record of the new tokens.
 */

import { randomUUID } from "node:crypto";
import type { SignInAgreed, SignInQuestion } from "../../../../src/shared/protocol/session.ts";
import { isOpenable } from "../../../../src/shared/text/reading.ts";
import { oneLine } from "../../../../src/shared/text/unprintable.ts";
import { known } from "../../../shared/json.ts";
import { settledWithin } from "../../../shared/pace/abort.ts";
import { type OAuthPlan, scopesOf } from "../../config/entry/oauth-keys.ts";
import { borrowedName, discover, isSameSite, isVouched, promisesIssuer } from "../discovery/discovery.ts";
import { isSameIssuer } from "../discovery/metadata.ts";
import type { GrantContext, PendingAuthorization, Receiver } from "../grants/ask.ts";
import {
  type AuthorizationAnswer,
  beginAuthorization,
  chooseScope,
  grantedScope,
} from "../grants/authorize.ts";
import { clientFor, DEVICE_GRANT, usesDocument } from "../grants/client.ts";
import type { PendingDevice } from "../grants/device.ts";
import { finishAuthorization } from "../grants/token-requests.ts";
import {
  type AuthChallenge,
  type Discovered,
  needsKey,
  needsUser,
  SignInProblem,
  type SignInRecord,
  type TokenAnswer,
} from "../model/model.ts";
import type { SignInStore } from "../store/store.ts";
import { hasBrowser, openBrowser } from "./browser.ts";
import type { Listeners, Listening } from "./callback.ts";
import { listenAndRegister } from "./redirect.ts";

export interface SignInTarget extends GrantContext {
  server: string;
  url: URL;
  store: SignInStore;
  challenge: AuthChallenge | undefined;
  /**
   * The company's identity provider, if the sign-in is there and not at the server's authorization server. `prove`: asks for
   * the server's own token. Rejects with `ThreadsError`.
   */
  keeper?: { server: string; url: URL; prove: () => Promise<void> };
  /** Whether `plan` is the user's own: no file of a project wrote it. */
  isOwnPlan: boolean;
  /** Renews the stored sign-in if that is possible. True: the server can be connected now. Rejects only without a user. */
  renew(signal: AbortSignal): Promise<boolean>;
  /** Takes a token, code, verifier or secret that no text may show from now on. */
  onSecret: (secret: string) => void;
  redact: (text: string) => string;
  /** Called once a new sign-in is in the store: connects the server. Answers its number of tools, if it connected. */
  signedIn(): Promise<number | undefined>;
}

const FLOWS = 8;
/** From the opened browser to its answer. */
const FLOW_MS = 5 * 60_000;
/** From the code for another device to the user's answer there. Servers allow 5 to 30 minutes. */
const DEVICE_MS = 15 * 60_000;
/** Everything before the browser opens, and again the exchange of the code. */
const TALK_MS = 20_000;
/** The part before the browser in which the stored sign-in may renew itself. */
const RENEW_MS = 8_000;
/** Between two looks whether the user has signed in in another session. */
const LOOK_MS = 1_000;
const PAGE_MS = 8_000;
const CONNECTION_MS = 10_000;

/** The work of the neighbours. Tests pass small ones. */
export const PARTS = {
  discover,
  promisesIssuer,
  clientFor,
  chooseScope,
  beginAuthorization,
  finishAuthorization,
  hasBrowser,
  openBrowser,
  limits: {
    flows: FLOWS,
    flowMs: FLOW_MS,
    deviceMs: DEVICE_MS,
    lookMs: LOOK_MS,
    /** The unit in which a server counts the time between two questions. */
    secondMs: 1_000,
    talkMs: TALK_MS,
    renewMs: RENEW_MS,
    pageMs: PAGE_MS,
    connectionMs: CONNECTION_MS,
  },
};
export type SignInParts = typeof PARTS;

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
    }
  /** The user enters a code at another device. */
  | { kind: "device"; pending: PendingDevice };

export interface Preparation {
  target: SignInTarget;
  agreed: SignInAgreed;
  /** `target`'s, with requests that end with this sign-in, and with what the user wants of `deviceCode`. */
  context: GrantContext;
  env: Readonly<Record<string, string | undefined>>;
  platform: NodeJS.Platform;
  /** Undefined: there is no code, and the sign-in goes on with a link. */
  prepareDevice(
    preparation: Preparation,
    discovered: Discovered,
    old: SignInRecord | undefined,
  ): Promise<Prepared | undefined>;
  parts: SignInParts;
  listeners: Listeners;
  /** A dynamic client with which the last sign-in was not finished. */
  deadClient: string | undefined;
  signal: AbortSignal;
  listenSignal: AbortSignal;
}

const ISSUER_CHARS = 300;
const EXPECTED_CHARS = 200;

export const tellSecrets = (
  { access_token, refresh_token, client, dpopKey }: Partial<SignInRecord>,
  onSecret: (secret: string) => void,
): void => {
  for (const secret of [access_token, refresh_token, client?.secret, dpopKey?.d]) {
    if (secret !== undefined) onSecret(secret);
  }
};

/**
 * Whether the stored sign-in is one that the plan asks for: an edit of the plan counts only for another sign-in. A record
 * without an id, as Pi's are, may have been asked for more than it holds: what is missing there is not compared.
 */
function fits(
  { id, client, requestedScope, resource, issuer, acceptedIssuer }: SignInRecord,
  plan: OAuthPlan,
): boolean {
  if (plan.clientId !== undefined && plan.clientId !== client.id) return false;
  const isKnown = (value: string | undefined): boolean => value !== undefined || id !== undefined;
  if (plan.resource !== undefined && isKnown(resource) && (plan.resource || undefined) !== resource)
    return false;
  const isOtherIssuer = plan.issuer !== undefined && !isSameIssuer(plan.issuer, issuer);
  if (isOtherIssuer && acceptedIssuer === undefined) return false;
  if (plan.scope === undefined || !isKnown(requestedScope)) return true;
  const requested = new Set(scopesOf(requestedScope ?? ""));
  return scopesOf(grantedScope(plan.scope) ?? "").every((right) => requested.has(right));
}

async function renewed(
  { target, context: { plan }, parts, signal }: Preparation,
  record: SignInRecord | undefined,
): Promise<boolean> {
  if (record && !fits(record, plan)) return false;
  const limit = new AbortController();
  const renewing = target.renew(AbortSignal.any([signal, limit.signal]));
  if (await settledWithin(renewing, parts.limits.renewMs)) return renewing;
  limit.abort();
  return false;
}

async function fromPi({
  target,
  agreed,
  context: { plan },
  signal,
}: Preparation): Promise<Prepared | undefined> {
  // Pi's tokens are bound to no key.
  if (agreed.fromPi === false || needsKey(target.plan.dpop, target.challenge)) return undefined;
  const found = await target.store.findInPi();
  if (found === undefined || !fits(found, plan)) return undefined;
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

/** Whether a sign-in with this scope has all rights that the server wants. Another sign-in than a step-up wants none. */
export function isEnough(scope: string | undefined, target: SignInTarget): boolean {
  const granted = new Set(scopesOf(scope ?? ""));
  return !isStepUp(target) || scopesOf(target.challenge?.scope ?? "").every((right) => granted.has(right));
}

/**
 * Whether the stored client is one of the authorization server (MCP 2026-07-28, authorization binding). Metadata can claim the
 * name of another one, so the client's secret goes only where it went before.
 */
const isOf = ({ metadata: { issuer, token_endpoint: token } }: Discovered, old: SignInRecord): boolean =>
  old.issuer === issuer && isSameSite(new URL(old.tokenEndpoint), new URL(token ?? old.tokenEndpoint));

/** The stored client, whether it may be used again, and the scope to ask for. */
export function wantedOf(
  { target, context: { plan }, parts, deadClient }: Preparation,
  discovered: Discovered,
  old: SignInRecord | undefined,
) {
  const stored = old && isOf(discovered, old) ? old.client : undefined;
  const reuse = stored === undefined || stored.id !== deadClient;
  const scope = parts.chooseScope({
    plan,
    discovered,
    challenged: target.challenge?.scope,
    requested: stored && isStepUp(target) ? old?.requestedScope : undefined,
    granted: stored && isStepUp(target) ? old?.scope : undefined,
  });
  return { stored, reuse, scope };
}

async function authorize(
  preparation: Preparation,
  discovered: Discovered,
  old: SignInRecord | undefined,
): Promise<Prepared> {
  const { target, context, parts, listeners, listenSignal } = preparation;
  const { plan, onNote } = context;
  const { issuer } = discovered.metadata;
  const { stored, reuse, scope } = wantedOf(preparation, discovered, old);
  const hasDocument = usesDocument(plan, discovered);
  const sendsIssuer = discovered.metadata.authorization_response_iss_parameter_supported === true;
  const { client, redirectUri, listening } = await listenAndRegister(
    { plan, server: target.server, issuer, stored: reuse ? stored : undefined, sendsIssuer, hasDocument },
    { listeners, signal: listenSignal, onNote },
    (uri) => parts.clientFor({ discovered, redirectUri: uri, scope, stored, reuse }, context),
  );
  const pending = await parts.beginAuthorization({ discovered, client, redirectUri, scope }, context);
  tellSecrets({ client, ...known({ dpopKey: pending.dpopKey }) }, target.onSecret);
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
  // There is no page for a browser, and whoever asks for a sign-in reads why there is no token.
  if (!needsUser(context.plan)) {
    await target.renew(signal);
    return { kind: "signed-in" };
  }
  const { record, given } = await target.store.read();
  if (!isStepUp(target)) {
    if ((record ?? given) !== undefined && (await renewed(preparation, record))) return { kind: "signed-in" };
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
  if (await wantsDevice(preparation, discovered)) {
    const prepared = await preparation.prepareDevice(preparation, discovered, record);
    if (prepared) return prepared;
    signal.throwIfAborted();
  }
  const { server, isOwnPlan } = target;
  const mixUp = mixUpOf(discovered, { server, plan: context.plan, isOwnPlan });
  if (mixUp === undefined) return authorize(preparation, discovered, record);
  // What was agreed to must be what the metadata say now.
  if (agreed.endpoints !== mixUp.question.endpoints) return { kind: "ask", question: mixUp.question };
  const isDue = await parts.promisesIssuer(mixUp.page, context.requests);
  return authorize(preparation, isDue ? withIssuerDue(discovered) : discovered, record);
}

/**
 * Whether the user signs in with a code for another device: if the user wants that, or no browser can be opened here and the
 * authorization server offers it (RFC 8628, section 4). Throws `SignInProblem` "no-device-code".
 */
async function wantsDevice(
  { context: { plan }, parts, env, platform }: Preparation,
  { metadata }: Discovered,
): Promise<boolean> {
  const isOffered = metadata.device_authorization_endpoint !== undefined;
  if (plan.deviceCode === true && !isOffered) throw new SignInProblem("no-device-code");
  if (plan.deviceCode !== undefined) return plan.deviceCode;
  const grants = metadata.grant_types_supported;
  if (!isOffered || (grants && !grants.includes(DEVICE_GRANT))) return false;
  return !(await parts.hasBrowser({ env, platform }));
}

/**
 * What the person must agree to if the page of a sign-in does not belong to the server that describes it, or if that server
 * passes as another one; undefined if neither is so. `isOwnPlan`: no file of a project wrote the plan.
 */
export function mixUpOf(
  discovered: Discovered,
  { server, plan, isOwnPlan }: Pick<SignInTarget, "server" | "plan" | "isOwnPlan">,
) {
  const { authorization_endpoint: page, token_endpoint: token } = discovered.metadata;
  // Whoever needs them says that they are missing.
  if (page === undefined || token === undefined) return undefined;
  const [described, shown, taken] = [new URL(discovered.foundAt), new URL(page), new URL(token)];
  const isOwnPage = isSameSite(described, shown);
  const other = borrowedName(plan, discovered, [shown, taken]);
  if ((isOwnPage && other === undefined) || (isOwnPlan && isVouched(plan, discovered))) return undefined;
  const name = other === undefined ? "" : `, which calls itself ${other}`;
  // A page of its own can lead on to that of the server as which it passes.
  const where = (isOwnPage && other) || shown.host;
  const goes = plan.clientSecret === undefined ? "goes" : "and your client secret go";
  const text = `${server} sends you to sign in at ${shown.host}, and the code of that sign-in ${goes} to ${taken.host}, as ${described.host} says${name}. Whoever gets the code can act as you at ${where}. Go on only if you know that they belong together.`;
  const endpoints = [described, shown, taken].map(({ origin }) => origin).join(" ");
  // `page`: the one at which the person would sign in.
  return { question: { about: "endpoints" as const, endpoints, text }, page: shown };
}

/** `nowMs`: milliseconds since the epoch. */
export function recordOf(
  target: Pick<SignInTarget, "server" | "url" | "keeper">,
  { discovered, client, scope, dpopKey }: Receiver,
  tokens: TokenAnswer,
  nowMs: number,
): SignInRecord {
  const {
    issuer,
    token_endpoint: tokenEndpoint,
    revocation_endpoint: revocationEndpoint,
  } = discovered.metadata;
  if (tokenEndpoint === undefined)
    throw new SignInProblem("no-endpoint", { what: "token_endpoint", url: issuer });
  const { server, url } = target.keeper ?? target;
  return {
    version: dpopKey === undefined ? 1 : 2,
    id: randomUUID(),
    server,
    url: url.href,
    issuer,
    tokenEndpoint,
    client,
    access_token: tokens.access_token,
    token_type: tokens.token_type,
    obtainedAt: nowMs,
    ...known({
      acceptedIssuer: discovered.acceptedIssuer,
      resource: discovered.resource,
      revocationEndpoint,
      refresh_token: tokens.refresh_token,
      expiresAt: tokens.expiresAt,
      requestedScope: scope,
      // RFC 6749, section 5.1: an answer without scope grants what was requested.
      scope: tokens.scope ?? scope,
      dpopKey,
    }),
  };
}

/** The record of tokens that have just come. No text shows them from now on. */
export function receive(target: SignInTarget, pending: Receiver, tokens: TokenAnswer): SignInRecord {
  const record = recordOf(target, pending, tokens, Date.now());
  tellSecrets(record, target.onSecret);
  return record;
}

/** Throws `SignInProblem`. A code is sent once: a second time would end the tokens of the first (RFC 6749, section 4.1.2). */
export async function exchange(
  target: SignInTarget,
  {
    pending,
    answer,
    context,
  }: { pending: PendingAuthorization; answer: AuthorizationAnswer; context: GrantContext },
  { finishAuthorization }: Pick<SignInParts, "finishAuthorization">,
): Promise<SignInRecord> {
  const code = "bareCode" in answer ? answer.bareCode : answer.parameters.get("code");
  if (code) target.onSecret(code);
  return receive(target, pending, await finishAuthorization(pending, answer, context));
}
