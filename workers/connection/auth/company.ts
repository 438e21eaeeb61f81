/**
 * The company's identity provider (SEP-990), at which one sign-in serves many servers. Owns: who has signed in there, what a
 * sign-in of a server asks there, and its end for all servers. The sign-in itself is kept and renewed like that of a server.
 */
import type { GrantContext } from "./grants/ask.ts";
import type { IdentityWish, SignInRecord } from "./model/model.ts";
import type { SignInStore } from "./store/store.ts";
import type { ServerTokens } from "./tokens/tokens.ts";

/** The sign-in at the identity provider, as that of a server. */
interface KeptSignIn {
  /** Its name in texts and in the store, its issuer, and whether a user signs in there: otherwise another program says who. */
  name: string;
  url: string;
  hasUser: boolean;
  onSecret: (secret: string) => void;
  /** Fires when nobody needs an answer any more. */
  signal: AbortSignal;
  open(): Promise<{ tokens: ServerTokens; store: SignInStore }>;
  grant(): Promise<GrantContext>;
  /** Answers why the tokens could not be revoked. */
  revoke(record: SignInRecord): Promise<Error | undefined>;
}

/** Another program says each time who it is. */
const GIVEN = "given";
/** An older version of this package has written the sign-in. */
const UNNAMED = "unnamed";

export class Company {
  readonly #kept: KeptSignIn;

  constructor(kept: KeptSignIn) {
    this.#kept = kept;
  }

  get host(): string {
    return new URL(this.#kept.url).host;
  }

  /** Who has signed in, as it is stored, or any text if another program says it each time. Undefined: nobody. */
  async identity(): Promise<string | undefined> {
    if (!this.#kept.hasUser) return GIVEN;
    const { record } = await (await this.#kept.open()).store.read();
    return record?.access_token ?? record?.refresh_token;
  }

  /** Which sign-in there is: renewals keep it. Undefined: there is none. */
  async signIn(): Promise<string | undefined> {
    if (!this.#kept.hasUser) return GIVEN;
    const { record } = await (await this.#kept.open()).store.read();
    const isThere = (record?.access_token ?? record?.refresh_token) !== undefined;
    return isThere ? (record?.id ?? UNNAMED) : undefined;
  }

  /** An assertion for the server at `url`. Throws `SignInProblem`. */
  async identityFor(wish: IdentityWish, url: URL): Promise<string> {
    const { signal, url: issuer } = this.#kept;
    const [room, parts, grant] = await Promise.all([
      import("./tokens/identity.ts"),
      this.#kept.open(),
      this.#kept.grant(),
    ]);
    return room.identityFor(wish, url, { ...parts, grant, issuer: new URL(issuer), signal });
  }

  /**
   * What is other in the sign-in of a server because it is here; undefined: no user signs in. `prove` asks for the server's own
   * token, and rejects with `ThreadsError`.
   */
  async target(prove: () => Promise<void>) {
    const { name: server, url, hasUser, onSecret } = this.#kept;
    if (!hasUser) return undefined;
    const [{ tokens, store }, grant] = await Promise.all([this.#kept.open(), this.#kept.grant()]);
    // Before the browser: a code can be exchanged once, and the tokens must have a place then.
    await store.check();
    return {
      ...grant,
      url: new URL(url),
      store,
      challenge: undefined,
      isOwnPlan: true,
      keeper: { server, url: new URL(url), prove },
      renew: (signal: AbortSignal) => tokens.renew(signal),
      onSecret,
    };
  }

  /** Ends the sign-in for all its servers, of which `name` is one. Answers one sentence for the user. */
  async signOut(name: string, signal: AbortSignal): Promise<string> {
    if (!this.#kept.hasUser) {
      return `${name} signs in with what settings.identityProvider says of you: there is nothing to sign out of.`;
    }
    const { store } = await this.#kept.open();
    return store.locked(async (held) => {
      if (!held.record) return `${name} is not signed in.`;
      const failure = await this.#kept.revoke(held.record);
      await held.forget();
      const out = `${name} is signed out, and so is every other server that you use through ${this.host}.`;
      return failure === undefined ? out : `${out} The sign-in could not be revoked: ${failure.message}`;
    }, signal);
  }
}
