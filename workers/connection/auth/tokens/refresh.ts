/**
 * What asks for tokens without the user. Owns: the renewal of a stored sign-in under the lock that all processes share, and
 * the token of a server without a user. A refresh token that rotates works once, so only the holder of the lock sends it, and
 * the answer is written before anybody uses it. Nothing here opens a browser or registers a client.
 */
import { abortable } from "../../../shared/pace/abort.ts";
import { checkSecretTarget, discover } from "../discovery/discovery.ts";
import type { GrantContext } from "../grants/ask.ts";
import { chooseScope } from "../grants/authorize.ts";
import { machineClient } from "../grants/client.ts";
import { machineTokens, refreshTokens, revokeTokens } from "../grants/token-requests.ts";
import {
  type AuthChallenge,
  type Discovered,
  type DpopKey,
  isFresh,
  kindOf,
  SignInProblem,
  type SignInProblemKind,
  type SignInRecord,
  type TokenAnswer,
} from "../model/model.ts";
import { SYSTEM_STORE } from "../store/in-system.ts";
import type { HeldSignIn } from "../store/record.ts";
import type { SignInStore } from "../store/store.ts";

export interface TokensContext {
  server: string;
  url: URL;
  store: SignInStore;
  /** Whether the server is signed in to without a user. */
  isMachine: boolean;
  /** `oauth.dpop`: true means that only tokens that are bound to a key are sent. */
  dpop?: boolean | undefined;
  /** Host of the company's identity provider on whose sign-in this one stands. */
  through: () => string | undefined;
  /** Resolves the configuration's values; called only when a request to the authorization server is due. */
  grant: () => Promise<GrantContext>;
  onSecret: (secret: string) => void;
  onNote: (note: string) => void;
  /** The number of renewals that are out changes by `by`: the session's end waits for them. */
  onRenewing: (by: number) => void;
  onStatus: () => void;
  nowMs: () => number;
}

interface RefreshContext extends TokensContext {
  /** Rejects with `SignInProblem` "moved" if the server names another authorization server than the record's. */
  checkIssuer: (record: SignInRecord, grant: GrantContext) => Promise<void>;
}

/**
 * Answers the record with a token that can be used. `refused`: a token that the server does not accept, whatever its
 * time. Throws `SignInProblem`.
 */
export async function refresh(
  refused: string | undefined,
  context: RefreshContext,
  signal: AbortSignal,
): Promise<SignInRecord> {
  const renewed = await context.store.locked(async (held) => {
    const { record } = held;
    if (!record) throw new SignInProblem("not-signed-in");
    const { access_token } = record;
    const isOther = access_token !== undefined && access_token !== refused;
    // Another process was faster.
    if (isOther && isFresh(record, context.nowMs())) return record;
    if (record.refresh_token === undefined) throw new SignInProblem("expired");
    const grant = await context.grant();
    if (refused !== undefined && !grant.isIdentity) await context.checkIssuer(record, grant);
    return renew(held, record, { grant, context });
  }, signal);
  return renewed ?? refresh(refused, context, signal);
}

/**
 * Undefined: another process took the lock while this one stood still, and its sign-in counts. The old token is then spent, and
 * a second use may end the whole sign-in (RFC 9700, section 4.14.2).
 */
async function renew(
  held: HeldSignIn,
  record: SignInRecord,
  { grant, context }: { grant: GrantContext; context: RefreshContext },
): Promise<SignInRecord | undefined> {
  // The token is not spent if the next one would be lost: the system's store may work again any moment. A store that gives a
  // sign-in may still take none, and the mark alone is not written there.
  await context.store.check();
  const marked = { ...record, refreshing: { at: context.nowMs(), pid: process.pid } };
  const why = await held.tryToWrite(marked);
  if (why?.path === SYSTEM_STORE) throw new SignInProblem("system-store", { what: why.what });
  if (why !== undefined) await held.write(marked);
  if (held.record?.refresh_token !== record.refresh_token) return undefined;
  const { refreshing: _, ...before } = record;
  try {
    const answer = await askTwice(record, grant);
    context.onSecret(answer.access_token);
    if (answer.refresh_token !== undefined) context.onSecret(answer.refresh_token);
    const next = renewedRecord(before, answer, context.nowMs());
    await held.write(next);
    return next;
  } catch (error) {
    const others = await writtenByOthers(error, before, context);
    if (others) return others;
    await settleFailure(held, before, error);
    throw error;
  }
}

/** A program that does not know the lock may have renewed the sign-in meanwhile: its tokens are the ones that work. */
async function writtenByOthers(
  error: unknown,
  before: SignInRecord,
  { store, nowMs }: RefreshContext,
): Promise<SignInRecord | undefined> {
  if (kindOf(error) !== "refresh-refused") return undefined;
  const { record } = await store.read();
  const isOther = record?.access_token !== undefined && record.access_token !== before.access_token;
  return isOther && isFresh(record, nowMs()) ? record : undefined;
}

/** The connection may break after the token was taken: a server with a grace period answers the same again. */
async function askTwice(record: SignInRecord, grant: GrantContext): Promise<TokenAnswer> {
  try {
    return await refreshTokens(record, grant);
  } catch (error) {
    if (kindOf(error) !== "unreachable") throw error;
    return refreshTokens(record, grant);
  }
}

/** The record after a renewal. What the answer leaves out stays as it was (RFC 6749, sections 5.1 and 6). */
function renewedRecord(before: SignInRecord, answer: TokenAnswer, nowMs: number): SignInRecord {
  const { expiresAt: _, refreshing: __, ...kept } = before;
  return { ...kept, ...answer, obtainedAt: nowMs };
}

/** After these the tokens are worth nothing. */
const LOST: ReadonlySet<SignInProblemKind> = new Set(["client-unknown", "no-identity", "refresh-refused"]);

/** Only a clear no of the authorization server ends a sign-in. A fault of the network or the server loses nothing. */
async function settleFailure(held: HeldSignIn, before: SignInRecord, error: unknown): Promise<void> {
  const kind = kindOf(error);
  if (kind === "client-unknown" && before.client.kind === "dynamic") return held.forget();
  if (kind !== undefined && LOST.has(kind)) return held.write(withoutTokens(before));
  return held.write(before);
}

const withoutTokens = ({
  access_token: _,
  refresh_token: __,
  token_type: ___,
  expiresAt: ____,
  dpopKey: _____,
  ...rest
}: SignInRecord): SignInRecord => ({ ...rest, version: 1 });

type Held = TokenAnswer & { obtainedAt: number } & Pick<SignInRecord, "dpopKey">;

/**
 * The token of a server without a user, in memory. Nothing is stored: the configuration's secret gives another token at
 * any time. `challenge`: the last one of the server, which may name its metadata and its scope. `onToken` gets each one.
 */
export function createMachine(
  context: Pick<TokensContext, "server" | "url" | "grant" | "onSecret" | "nowMs">,
  challenge: () => AuthChallenge | undefined,
  onToken: (token: Held) => void,
) {
  let held: Held | undefined;
  let discovered: Discovered | undefined;
  let dpopKey: DpopKey | undefined;
  let flight: Promise<Held> | undefined;

  const ask = async (): Promise<Held> => {
    const grant = await context.grant();
    const { plan, requests, onNote } = grant;
    // The server has said since then that it takes no bearer token.
    if (challenge()?.dpop === "required" && !discovered?.bindsTokens) discovered = undefined;
    discovered ??= await discover({ url: context.url, challenge: challenge(), plan, requests, onNote });
    checkSecretTarget(discovered, { plan, url: context.url });
    const challenged = challenge()?.scope;
    const known = { plan, discovered, challenged, requested: undefined, granted: undefined };
    const { bindsTokens } = discovered;
    if (bindsTokens) dpopKey ??= (await import("../requests/dpop.ts")).createKey();
    const bound = bindsTokens && dpopKey ? { dpopKey } : {};
    const asked = { discovered, scope: chooseScope(known) };
    const answer = await machineTokens(asked, { ...grant, ...bound });
    context.onSecret(answer.access_token);
    held = { ...answer, ...bound, obtainedAt: context.nowMs() };
    onToken(held);
    return held;
  };

  const renewed = async (refused: string | undefined, signal: AbortSignal): Promise<Held> => {
    if (held && held.access_token !== refused && isFresh(held, context.nowMs())) return held;
    if (!flight) {
      flight = ask().finally(() => {
        flight = undefined;
      });
      // A caller that was aborted does not wait for it.
      flight.catch(() => {
        // The server may have moved.
        discovered = undefined;
      });
    }
    return abortable(flight, signal, `the sign-in of ${context.server}`);
  };

  return {
    /** Undefined until the server has asked for a token. Throws `SignInProblem`. */
    token: async (signal: AbortSignal) => (held === undefined ? undefined : renewed(undefined, signal)),
    /** Another token than the refused one. Throws `SignInProblem`. */
    renewed,
    /** Another token than the one at hand, which stays if there is none. Throws `SignInProblem`. */
    another: async (signal: AbortSignal) => renewed(held?.access_token, signal),
    /** Forgets the token, and revokes it (RFC 7009) where that is possible. Throws `SignInProblem`. */
    end: async (): Promise<void> => {
      const ended = held;
      held = undefined;
      const { issuer, token_endpoint, revocation_endpoint } = discovered?.metadata ?? {};
      if (!ended || !discovered || !issuer || !token_endpoint || !revocation_endpoint) return;
      const grant = await context.grant();
      const client = machineClient(grant.plan, discovered);
      if (!client) return;
      await revokeTokens(
        {
          ...{ version: 1, server: context.server, url: context.url.href, issuer, client },
          ...{ tokenEndpoint: token_endpoint, revocationEndpoint: revocation_endpoint },
          access_token: ended.access_token,
        },
        grant,
      );
    },
  };
}

export type Machine = ReturnType<typeof createMachine>;
