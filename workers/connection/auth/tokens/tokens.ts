/**
 * The tokens of one server. Owns: the token of the next request, its renewal (once at a time in this process, and by
 * the store's lock in all processes), and what a refusal of the server means. Must not: open a browser or register a
 * client.
 */
import type { SignInStatus } from "../../../../src/shared/protocol/session.ts";
import { known } from "../../../shared/json.ts";
import { abortable, settledWithin } from "../../../shared/pace/abort.ts";
import type { GrantContext } from "../grants/ask.ts";
import {
  type AccessToken,
  type AuthChallenge,
  isExpired,
  isFresh,
  kindOf,
  needsKey,
  type RefusedRequest,
  refusesProof,
  SignInProblem,
  type SignInRecord,
  tokenTextOf,
} from "../model/model.ts";
import type { StoredSignIn } from "../store/store.ts";
import type { Machine, TokensContext } from "./refresh.ts";

/** MCP 2025-11-25, basic/authorization, "Step-Up Authorization Flow": "no more than a few times". */
const MOST = 2;
const SETS = 100;

/** Scopes have no order (RFC 6749, section 3.3). */
const keyOf = (scope: string | undefined): string =>
  [...new Set((scope ?? "").split(/\s+/))].sort().join(" ").trim();

/** How often a sign-in for the same further scope has not given it. A server that grants less would go on for ever. */
export function createStepUps() {
  const times = new Map<string, number>();
  return {
    count: (scope: string | undefined): void => {
      const key = keyOf(scope);
      times.set(key, (times.get(key) ?? 0) + 1);
      const [oldest] = times.keys();
      if (times.size > SETS && oldest !== undefined) times.delete(oldest);
    },
    isAllowed: (scope: string | undefined): boolean => (times.get(keyOf(scope)) ?? 0) < MOST,
  };
}

/** The protected resource metadata are asked for another authorization server at most this often. */
const MOVED_CHECK_MS = 60_000;
/** A renewal that failed before its time is due again after this pause: the old token still works. */
const EARLY_RETRY_MS = 30_000;

/** Problems of an identity that a sign-in at the company ends. */
const USER_HELPS: ReadonlySet<string> = new Set([
  ...["not-signed-in", "expired", "refresh-refused"],
  ...["client-unknown", "identity-refused", "no-identity"],
]);

type Tokens = Pick<SignInRecord, "access_token" | "dpopKey">;

async function asSent(tokens: Tokens | undefined): Promise<AccessToken | undefined> {
  if (tokens?.access_token === undefined || tokens.dpopKey === undefined) return tokens?.access_token;
  const { boundToken } = await import("../requests/dpop.ts");
  return boundToken(tokens.access_token, tokens.dpopKey);
}

export class ServerTokens {
  readonly #context: TokensContext;
  readonly #lifetime = new AbortController();
  readonly #stepUps = createStepUps();
  /** The last sign-in for further scope, and the token that it gave. */
  #stepUp: { scope: string | undefined; token: string } | undefined;
  #machine: Promise<Machine> | undefined;
  #challenge: AuthChallenge | undefined;
  #status: SignInStatus | undefined;
  /** The renewal that all callers share. */
  #flight: Promise<SignInRecord> | undefined;
  /** The token with which the sign-in was lost. */
  #lostToken: string | undefined;
  /** The token that the server refused although it was just issued: another one of the same sign-in would not help. */
  #refusedFresh: string | undefined;
  #issuerCheckedMs = Number.NEGATIVE_INFINITY;
  /** What the last check of the issuer found. */
  #moved: SignInProblem | undefined;
  #earlyFailedMs = Number.NEGATIVE_INFINITY;

  constructor(context: TokensContext) {
    this.#context = context;
  }

  /** What talks to an authorization server is loaded when a request to one is due: a stored token needs none. */
  #asMachine(): Promise<Machine> {
    this.#machine ??= import("./refresh.ts").then(({ createMachine }) =>
      createMachine(
        this.#context,
        () => this.#challenge,
        ({ expiresAt, dpopKey }) => {
          const through = this.#context.through();
          const byItself = through === undefined ? (true as const) : undefined;
          const more = known({ expiresAt, byItself, through, isBound: dpopKey && (true as const) });
          this.#setStatus({ state: "signed-in", renews: true, ...more });
        },
      ),
    );
    return this.#machine;
  }

  get challenge(): AuthChallenge | undefined {
    return this.#challenge;
  }

  get status(): SignInStatus | undefined {
    return this.#status;
  }

  /** The token for the next request; undefined: there is none. Throws `SignInProblem`. */
  async token(signal: AbortSignal): Promise<AccessToken | undefined> {
    const { isMachine } = this.#context;
    return asSent(
      isMachine ? await this.#ofCompany((await this.#asMachine()).token(signal)) : await this.#usable(signal),
    );
  }

  /** A token that stands on the company's sign-in, which the user can renew if it is what is missing. */
  async #ofCompany<T>(asking: Promise<T>): Promise<T> {
    try {
      return await asking;
    } catch (error) {
      const isAtCompany = error instanceof SignInProblem && error.facts.at !== undefined;
      if (isAtCompany && USER_HELPS.has(error.kind)) this.#setStatus({ state: "needed" });
      else if (this.#status?.state === "needed") this.#setStatus(undefined);
      throw error;
    }
  }

  async #usable(signal: AbortSignal): Promise<Tokens | undefined> {
    const stored = await this.#read();
    const { record } = stored;
    const nowMs = this.#context.nowMs();
    if (record?.access_token === undefined) return this.#without(stored, signal);
    if (isFresh(record, nowMs)) return record;
    const isOver = isExpired(record, nowMs);
    // The server says whether a token without a way to renew it still works.
    if (record.refresh_token === undefined) return record;
    if (!isOver && nowMs - this.#earlyFailedMs < EARLY_RETRY_MS) return record;
    try {
      return await this.#renewed(undefined, signal);
    } catch (error) {
      if (isOver || signal.aborted || this.#endsSignIn(error)) throw error;
      this.#earlyFailedMs = nowMs;
      this.#context.onNote(`could not renew its sign-in before its end (${kindOf(error) ?? "cancelled"})`);
      return record;
    }
  }

  /** There is no access token of our own. */
  async #without({ record, given }: StoredSignIn, signal: AbortSignal): Promise<Tokens | undefined> {
    return record?.refresh_token === undefined ? given?.tokens : this.#renewed(undefined, signal);
  }

  /** Another token with which the request is worth repeating once. Throws `SignInProblem`. */
  async afterRefusal(refused: RefusedRequest, signal: AbortSignal): Promise<AccessToken> {
    const { challenge, sent } = refused;
    // The token is as good as before.
    if (typeof sent === "object" && refusesProof(challenge?.error)) {
      const { origin, pathname } = this.#context.url;
      throw new SignInProblem("proof-refused", { url: `${origin}${pathname}`, error: challenge.error });
    }
    const next = await asSent(await this.#other({ ...refused, sent: tokenTextOf(sent) }, signal));
    if (next === undefined) throw this.#lost(new SignInProblem("expired"));
    return next;
  }

  async #other(
    { status, challenge, sent, isRepeated }: RefusedRequest & { sent: string | undefined },
    signal: AbortSignal,
  ): Promise<Tokens> {
    this.#challenge = challenge ?? this.#challenge;
    this.#lostToken = sent;
    const wantsScope = status === 403;
    if (wantsScope) this.#countStepUp(sent);
    if (this.#context.isMachine) {
      if (wantsScope || isRepeated) throw this.#refusal(wantsScope);
      return this.#ofCompany((await this.#asMachine()).renewed(sent, signal));
    }
    const { record, given, isUnbound } = await this.#read();
    if (isUnbound) throw this.#lost(new SignInProblem("binding-wanted"));
    const now = record?.access_token === undefined ? given?.tokens : record;
    // Another process or the user has written other tokens meanwhile.
    if (now !== undefined && now.access_token !== sent && !wantsScope) return now;
    // The token is as good as before for what it may do.
    if (wantsScope) throw sent === undefined ? this.#lost(this.#refusal(true)) : this.#refusal(true);
    // A token that lives for moments may have ended before the server saw it.
    const isFreshlyRefused =
      isRepeated && sent !== undefined && !isExpired(record ?? {}, this.#context.nowMs());
    if (isFreshlyRefused) {
      this.#refusedFresh = sent;
      throw this.#lost(this.#refusal(false));
    }
    if (record?.refresh_token === undefined) {
      throw this.#lost(
        new SignInProblem(
          now === undefined ? "not-signed-in" : "expired",
          record === undefined && given ? { path: given.path } : {},
        ),
      );
    }
    return this.#renewed(sent, signal);
  }

  /** The user has signed in anew. Never rejects. */
  async signedIn(): Promise<void> {
    this.#issuerCheckedMs = Number.NEGATIVE_INFINITY;
    this.#moved = undefined;
    this.#stepUp = undefined;
    if (this.#challenge?.error !== "insufficient_scope") return;
    // The next sign-in is an ordinary one, unless the server wants more again.
    const { error: _, scope, ...challenge } = this.#challenge;
    // Without a user each token is asked for with the scope of the last challenge.
    this.#challenge = { ...challenge, ...(this.#context.isMachine && known({ scope })) };
    // The next request says why there is none.
    const token = tokenTextOf(await this.token(this.#lifetime.signal).catch(() => undefined));
    if (token !== undefined) this.#stepUp = { scope, token };
  }

  /** A sign-in for further scope has failed only if the server wants the same again when it gets the token of it. */
  #countStepUp(sent: string | undefined): void {
    const { scope } = this.#challenge ?? {};
    if (!this.#stepUp || this.#stepUp.token !== sent || keyOf(this.#stepUp.scope) !== keyOf(scope)) return;
    this.#stepUp = undefined;
    this.#stepUps.count(scope);
  }

  /**
   * Renews the stored sign-in, whatever its age. True: a request can be tried now. Only that of a server without a user
   * rejects, with `SignInProblem`: nothing else can be tried.
   */
  async renew(signal: AbortSignal): Promise<boolean> {
    if (this.#context.isMachine) {
      await this.#ofCompany((await this.#asMachine()).another(signal));
      return true;
    }
    try {
      const { record } = await this.#read();
      if (record?.refresh_token === undefined) return false;
      // More scope comes from the user only, and so does a token for a server that refuses those of this sign-in.
      if (this.#challenge?.error === "insufficient_scope") return false;
      if (record.access_token !== undefined && record.access_token === this.#refusedFresh) return false;
      await this.#renewed(record.access_token, signal);
      return true;
    } catch (error) {
      this.#context.onNote(`could not renew its sign-in (${kindOf(error) ?? "cancelled"})`);
      return false;
    }
  }

  /** Ends what a sign-in of somebody else gave: the token is forgotten, and revoked where that is possible. */
  async endGiven(): Promise<void> {
    this.#setStatus(undefined);
    await (await this.#machine)?.end();
  }

  /** Whether there is another token than the one that the server refused last: someone has signed in meanwhile. */
  async hasOther(): Promise<boolean> {
    // Whoever asks for the token is told why there is none.
    const { record, given } = await this.#read().catch((): StoredSignIn => ({}));
    const token = record?.access_token ?? given?.tokens.access_token;
    return token !== undefined && token !== this.#lostToken;
  }

  /** Throws `SignInProblem` "scope-loop" if the server still wants the scope for which the user has signed in twice. */
  checkStepUp(): void {
    const { error, scope } = this.#challenge ?? {};
    if (error !== "insufficient_scope" || this.#stepUps.isAllowed(scope)) return;
    throw new SignInProblem("scope-loop", scope === undefined ? {} : { scope });
  }

  /** Waits for a renewal that is out, at most `maxMs`. */
  async close(maxMs: number): Promise<void> {
    if (this.#flight) await settledWithin(this.#flight, maxMs);
    this.#lifetime.abort();
  }

  #refusal(wantsScope: boolean): SignInProblem {
    if (!wantsScope) return new SignInProblem("fresh-token-refused");
    const scope = this.#challenge?.scope;
    return new SignInProblem("scope-wanted", scope === undefined ? {} : { scope });
  }

  #lost(problem: SignInProblem): SignInProblem {
    this.#setStatus({ state: "needed" });
    return problem;
  }

  #endsSignIn(error: unknown): boolean {
    return ["refresh-refused", "client-unknown", "moved", "no-identity"].includes(kindOf(error) ?? "");
  }

  /** The record after a renewal. Callers share it, and each may stop waiting for it. */
  async #renewed(refused: string | undefined, signal: AbortSignal): Promise<SignInRecord> {
    this.#flight ??= this.#startFlight(refused);
    try {
      const record = await abortable(this.#flight, signal, `the sign-in of ${this.#context.server}`);
      const isInSystem = this.#status?.state === "signed-in" && this.#status.isInSystem;
      this.#show({ record, ...(isInSystem && { isInSystem }) });
      return record;
    } catch (error) {
      if (this.#endsSignIn(error)) this.#setStatus({ state: "needed" });
      throw error;
    }
  }

  #startFlight(refused: string | undefined): Promise<SignInRecord> {
    const { onRenewing } = this.#context;
    onRenewing(1);
    const checkIssuer = (record: SignInRecord, use: GrantContext) => this.#checkIssuer(record, use);
    const flight = import("./refresh.ts")
      .then(({ refresh }) => refresh(refused, { ...this.#context, checkIssuer }, this.#lifetime.signal))
      .finally(() => {
        this.#flight = undefined;
        onRenewing(-1);
      });
    // A caller that was aborted does not wait for it.
    flight.catch(() => undefined);
    return flight;
  }

  async #checkIssuer(record: SignInRecord, { plan, requests }: GrantContext): Promise<void> {
    const nowMs = this.#context.nowMs();
    if (nowMs - this.#issuerCheckedMs < MOVED_CHECK_MS) {
      if (this.#moved) throw this.#moved;
      return;
    }
    this.#issuerCheckedMs = nowMs;
    this.#moved = undefined;
    const { movedTo } = await import("../discovery/discovery.ts");
    const found = await movedTo({
      url: this.#context.url,
      challenge: this.#challenge,
      plan,
      requests,
      issuer: record.issuer,
      acceptedIssuer: record.acceptedIssuer,
    });
    if (found === undefined) return;
    this.#moved = new SignInProblem("moved", { found });
    throw this.#moved;
  }

  /** `isUnbound`: the stored tokens count as absent, because only tokens that are bound to a key may be sent. */
  async #read(): Promise<StoredSignIn & { isUnbound?: boolean }> {
    const stored = await this.#context.store.read();
    const { record, given } = stored;
    const tokens = record ?? given?.tokens;
    const secrets = [tokens?.access_token, tokens?.refresh_token, record?.client.secret, record?.dpopKey?.d];
    for (const secret of secrets) if (secret !== undefined) this.#context.onSecret(secret);
    const isUnbound =
      (tokens?.access_token ?? tokens?.refresh_token) !== undefined &&
      record?.dpopKey === undefined &&
      needsKey(this.#context.dpop, this.#challenge);
    const counts = isUnbound ? {} : stored;
    this.#show(counts);
    return { ...counts, isUnbound };
  }

  #show({ record, given, isInSystem }: StoredSignIn): void {
    const tokens = record ?? given?.tokens;
    if (tokens?.access_token === undefined) {
      // The user has signed out, here or in another process.
      const isOut = tokens?.refresh_token === undefined && this.#status?.state === "signed-in";
      if (isOut) this.#setStatus(undefined);
      return;
    }
    this.#setStatus({
      state: "signed-in",
      ...(tokens.expiresAt === undefined ? {} : { expiresAt: tokens.expiresAt }),
      // Only the program that wrote `tokens.json` renews it.
      renews: record?.refresh_token !== undefined,
      ...(record?.dpopKey && { isBound: true }),
      ...(isInSystem && { isInSystem }),
    });
  }

  #setStatus(status: SignInStatus | undefined): void {
    if (JSON.stringify(status) === JSON.stringify(this.#status)) return;
    this.#status = status;
    this.#context.onStatus();
  }
}
