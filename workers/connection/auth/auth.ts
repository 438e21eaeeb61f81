/**
 * Signing in to the servers of a session. Owns: which servers take a sign-in, the token of each request and the one
 * repetition of a request that the server refused, when the parts behind it are loaded, and the end of all. Must not: know
 * lifecycles or Pi.
 *
 * What stands behind `import()` is loaded by the first server that needs it: a session without OAuth pays nothing.
 * To add a grant: grants/token-requests.ts. To mend what a server gets wrong: requests/mend.ts. To add a failure: a row in
 * model/model.ts.
 */
import { join } from "node:path";
import { ThreadsError } from "../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import type {
  SignInAgreed,
  SignInResult,
  SignInStatus,
  SignInStep,
} from "../../../src/shared/protocol/session.ts";
import { oneLine } from "../../../src/shared/text/unprintable.ts";
import { isFolder } from "../../shared/files/file-system.ts";
import { isFileGone } from "../../shared/log.ts";
import { abortable, settledWithin } from "../../shared/pace/abort.ts";
import type { AskUser } from "../asks/asks.ts";
import type { ServerDefinition } from "../config/entry/definition.ts";
import { isDefaultOAuth, type OAuthPlan } from "../config/entry/oauth-keys.ts";
import { oauthSecrets } from "../secrets/find.ts";
import type { Redactor } from "../secrets/redact.ts";
import type { HttpClient } from "../web/client.ts";
import type { RequestAuth } from "./authorized.ts";
import { Company } from "./company.ts";
import type { GrantContext } from "./grants/ask.ts";
import {
  type AccessToken,
  type AuthChallenge,
  explainProblem,
  type IdentityWish,
  needsUser,
  type RefusedRequest,
  SignInProblem,
  type SignInRecord,
  standsOnCompany,
} from "./model/model.ts";
import { ProviderTokens } from "./provider.ts";
import type { Resolve } from "./requests/addresses.ts";
import type { SignIns } from "./sign-in/sign-in.ts";
import type { StoreOptions } from "./store/file.ts";
import type { SignInStore } from "./store/store.ts";
import type { ServerTokens } from "./tokens/tokens.ts";

export type { RequestAuth } from "./authorized.ts";
export { type AuthChallenge, parseChallenge, standsOnCompany } from "./model/model.ts";

/** The server as its connections and its sign-in see it. An edit may replace it. */
export interface AuthServer {
  definition: ServerDefinition;
  /** The MCP endpoint, as it is resolved. */
  url: string;
  /** The configured headers, as they are resolved. */
  headers: Record<string, string>;
  /** PEM of further certificate authorities, which the authorization server may use, too. */
  ca?: readonly string[] | undefined;
  redact: Redactor;
  onSecret: (secret: string) => void;
  onNote: (note: string) => void;
  /** The company's identity provider, in the place of a server: its url is its issuer. */
  isIdentity?: true;
}

interface ServerAuthContext {
  agentDir: string;
  /** The company's identity provider; undefined: the settings name none. */
  company: () => Promise<Company | undefined>;
  /** Resolves variables and commands of `oauth`. */
  resolvePlan: (server: AuthServer, signal: AbortSignal) => Promise<OAuthPlan>;
  createClient: (server: AuthServer) => Promise<HttpClient>;
  /** Finds the addresses of a host, by default in DNS. */
  resolve?: Resolve;
  tokenStore: StoreOptions["tokenStore"];
  /** What runs for a server is told with the server's name. */
  system: (server: string) => StoreOptions["system"];
  warn: (text: string) => void;
  /** The number of renewals that are out changes by `by`. */
  onRenewing: (by: number) => void;
  onStatus: (server: string) => void;
}

interface Parts {
  tokens: ServerTokens;
  store: SignInStore;
}

interface SignInWish {
  agreed: SignInAgreed;
  /** Connects the server and answers its number of tools. */
  signedIn: () => Promise<number | undefined>;
  /** Fires when nobody waits for the first step any more: then no browser opens. */
  signal: AbortSignal;
}

/** A server that refuses each call is not asked each time what it publishes. */
const OFFER_MS = 60_000;

/** The authorization of a `Bearer` challenge is a token. A server that wants a password wants a header of the user. */
const wantsToken = (challenge: AuthChallenge | undefined): boolean =>
  challenge === undefined || /^(bearer|dpop)$/i.test(challenge.scheme);

export class ServerAuth implements RequestAuth {
  /** Whether the server offers a sign-in, as it was found at `foundMs`, by `performance.now()`. */
  #offer: { offers: boolean; foundMs: number } | undefined;
  readonly #context: ServerAuthContext;
  readonly #lifetime = new AbortController();
  /** The identity with which the server's last token was asked for in vain. */
  #vain: { identity: string | undefined } | undefined;
  /** The identity provider of the last token, and which sign-in there gave it. */
  #stoodOn: { company: Company; signIn: string | undefined } | undefined;
  #server: AuthServer;
  #parts: Promise<Parts> | undefined;
  #loaded: Parts | undefined;
  #client: Promise<HttpClient> | undefined;
  /** A server that was public once may name no private address, wherever its name leads later. */
  readonly #reached = { isPublic: false };

  constructor(server: AuthServer, context: ServerAuthContext) {
    this.#server = server;
    this.#context = context;
  }

  /** The definition that holds from now on. Its name, its url and its sign-in are the same. */
  update(server: AuthServer): void {
    this.#server = server;
  }

  get isChallenged(): boolean {
    return this.#loaded?.tokens.challenge !== undefined;
  }

  get status(): SignInStatus | undefined {
    return this.#loaded?.tokens.status;
  }

  /** Whether someone has signed in since the server refused the last token. */
  async hasOther(): Promise<boolean> {
    if (!standsOnCompany(this.#server.definition.oauth))
      return (await this.#loaded?.tokens.hasOther()) ?? false;
    const identity = await this.#identity();
    return this.#vain !== undefined && identity !== undefined && identity !== this.#vain.identity;
  }

  /** Who has signed in at the company. Never rejects: whoever asks for a token is told why there is none. */
  async #identity(): Promise<string | undefined> {
    return this.#company()
      .then((company) => company?.identity())
      .catch(() => undefined);
  }

  /** Undefined: the server has a sign-in of its own. Throws `SignInProblem`. */
  async #company(): Promise<Company | undefined> {
    if (!standsOnCompany(this.#server.definition.oauth)) return undefined;
    const company = await this.#context.company();
    if (company) return company;
    throw new SignInProblem("bad-settings", { key: "settings.identityProvider", what: "it is missing" });
  }

  async token(signal: AbortSignal): Promise<AccessToken | undefined> {
    // Nobody has ever signed in: nothing is loaded before the server asks for it.
    if (!this.#parts && !(await isFolder(join(this.#context.agentDir, "mcp-oauth")))) return undefined;
    return this.#explained(async () => {
      // The user has signed out at the company, here or in another process, and perhaps in as somebody else.
      const { company, signIn } = this.#stoodOn ?? {};
      if (company && (await company.signIn()) !== signIn) await this.endGiven();
      return (await this.#open()).tokens.token(signal);
    });
  }

  async afterRefusal(refused: RefusedRequest, signal: AbortSignal): Promise<AccessToken | undefined> {
    (await import("./requests/addresses.ts")).noteAnswer(this.#reached, refused.address);
    if (refused.sent === undefined && !(await this.#takes(refused, signal))) return undefined;
    return this.#explained(async () => {
      try {
        return await (await this.#open()).tokens.afterRefusal(refused, signal);
      } catch (error) {
        this.#vain = { identity: await this.#identity() };
        throw error;
      }
    });
  }

  /** For a server that is only tried: rejects as for a user who never signed in if it takes a sign-in. Reads no tokens. */
  async afterTrial(refused: RefusedRequest, signal: AbortSignal): Promise<undefined> {
    (await import("./requests/addresses.ts")).noteAnswer(this.#reached, refused.address);
    if (await this.#takes(refused, signal)) throw this.#explain(new SignInProblem("not-signed-in"));
  }

  /**
   * Whether a sign-in can answer the refusal. A server that wants a key answers 401 as well, so there must be evidence:
   * the challenge, the configuration, or what the server publishes. Otherwise its own words stand.
   */
  async #takes({ status, challenge }: RefusedRequest, signal: AbortSignal): Promise<boolean> {
    if (!wantsToken(challenge)) return false;
    const { auth, oauth } = this.#server.definition;
    const isConfigured = auth.scheme === "oauth" || !isDefaultOAuth(oauth);
    if (status !== 401 || challenge?.resourceMetadata !== undefined || isConfigured) return true;
    const nowMs = performance.now();
    if (this.#offer && nowMs - this.#offer.foundMs < OFFER_MS) return this.#offer.offers;
    const { offersSignIn } = await import("./discovery/discovery.ts");
    const url = new URL(this.#server.url);
    const asking = this.#grant().then((grant) => offersSignIn({ url, challenge, ...grant }));
    const offers = await this.#explained(() => abortable(asking, signal, "The look for a sign-in"));
    this.#offer = { offers, foundMs: nowMs };
    return offers;
  }

  async signIn(signIns: SignIns, { agreed, signedIn, signal }: SignInWish): Promise<SignInStep> {
    const { tokens, store } = await this.#open();
    const { definition, url, onSecret, redact } = this.#server;
    const [grant, company] = await this.#explained(async () => {
      tokens.checkStepUp();
      // Before the browser: a code can be exchanged once, and the tokens must have a place then.
      if (definition.oauth === false || needsUser(definition.oauth)) await store.check();
      return Promise.all([this.#grant(), this.#atCompany()]);
    });
    return signIns.begin(
      {
        ...grant,
        server: definition.name,
        url: new URL(url),
        store,
        challenge: tokens.challenge,
        isOwnPlan: !definition.project,
        renew: (signal) => tokens.renew(signal),
        redact,
        signedIn: async () => {
          await tokens.signedIn();
          return signedIn();
        },
        ...company,
        onSecret: (secret) => {
          onSecret(secret);
          company?.onSecret(secret);
        },
      },
      agreed,
      signal,
    );
  }

  async #atCompany() {
    const company = await this.#company();
    const { tokens } = await this.#open();
    return company?.target(async () => {
      await this.#explained(() => tokens.renew(this.#lifetime.signal));
    });
  }

  /** The sign-in itself, if this stands for the company's identity provider. */
  get kept(): ConstructorParameters<typeof Company>[0] {
    const { definition, url, onSecret } = this.#server;
    return {
      ...{ name: definition.name, url, onSecret, signal: this.#lifetime.signal },
      hasUser: definition.oauth === false || needsUser(definition.oauth),
      open: () => this.#open(),
      grant: () => this.#grant(),
      revoke: (record) => this.#revoke(record),
    };
  }

  /** Ends what the sign-in at the company gave. Never rejects: the token ends by itself as well. */
  async endGiven(): Promise<void> {
    if (!this.#stoodOn) return;
    this.#stoodOn = undefined;
    await this.#loaded?.tokens.endGiven().catch((error: unknown) => {
      this.#server.onNote(`its token could not be revoked: ${this.#explain(error).message}`);
    });
  }

  /** Revokes and forgets. Answers one sentence for the user. */
  async signOut(signal: AbortSignal): Promise<string> {
    const { store } = await this.#open();
    const { definition } = this.#server;
    const { name, oauth } = definition;
    const { record, given, isInSystem } = await this.#explained(() => store.read());
    if (oauth !== false && !needsUser(oauth) && !record) {
      const company = await this.#explained(() => this.#company());
      if (company) return this.#explained(() => company.signOut(name, signal));
      return `${name} signs in by itself, without a user: switch it off, or take grantType out of ${definition.file}.`;
    }
    if (!record) {
      return given
        ? `${name} uses the tokens in ${given.path}, which another program wrote: remove that file to sign out.`
        : `${name} is not signed in.`;
    }
    return this.#explained(() =>
      store.locked(async (held) => {
        const failure = held.record && (await this.#revoke(held.record));
        await held.forget();
        const gone = isInSystem ? " The system's credential store has no token of it any more." : "";
        if (failure === undefined) return `${name} is signed out.${gone}`;
        return `${name} is signed out here.${gone} Its tokens could not be revoked: ${failure.message}`;
      }, signal),
    );
  }

  /** Answers why the tokens could not be revoked. The user is signed out here even if the configuration is wrong. */
  async #revoke(record: SignInRecord): Promise<Error | undefined> {
    try {
      const { revokeTokens } = await import("./grants/token-requests.ts");
      await revokeTokens(record, await this.#grant());
      return undefined;
    } catch (error) {
      // Another worker can, and until then nothing is forgotten.
      if (isFileGone(error)) throw error;
      return this.#explain(error);
    }
  }

  /** Waits for a renewal that is out, and for what no disk has taken yet, at most `maxMs`. Never rejects. */
  async close(maxMs: number): Promise<void> {
    // Whoever asked for the parts or the client was told why there are none.
    const parts = await this.#parts?.catch(() => undefined);
    const closing = parts?.tokens.close(maxMs).then(() => parts.store.writeKept());
    if (closing) await settledWithin(closing, maxMs);
    this.#lifetime.abort();
    const client = await this.#client?.catch(() => undefined);
    client?.close();
  }

  #open(): Promise<Parts> {
    this.#parts ??= this.#load();
    return this.#parts;
  }

  async #load(): Promise<Parts> {
    const [{ openSignInStore }, room] = await Promise.all([
      import("./store/store.ts"),
      import("./tokens/tokens.ts"),
    ]);
    const { agentDir, tokenStore, system, warn, onRenewing, onStatus } = this.#context;
    const { definition, url, isIdentity } = this.#server;
    const { name: server, oauth, project } = definition;
    const onNote = (note: string): void => this.#server.onNote(note);
    const store = openSignInStore({
      agentDir,
      server,
      url,
      // A file of the project decides where this server's name leads.
      takesGiven: !project && !isIdentity,
      tokenStore,
      system: system(server),
      onNote,
      warn,
      client: () => this.#configuredClient(),
    });
    const tokens = new room.ServerTokens({
      server,
      url: new URL(url),
      store,
      isMachine: oauth !== false && !needsUser(oauth),
      dpop: oauth === false ? undefined : oauth.dpop,
      through: () => this.#stoodOn?.company.host,
      grant: () => this.#grant(),
      onSecret: (secret) => this.#server.onSecret(secret),
      onNote,
      onRenewing,
      onStatus: () => onStatus(server),
      nowMs: Date.now,
    });
    this.#loaded = { tokens, store };
    return this.#loaded;
  }

  async #configuredClient(): Promise<{ id: string; hasSecret: boolean } | undefined> {
    const { clientId: id, clientSecret } = await this.#context.resolvePlan(
      this.#server,
      this.#lifetime.signal,
    );
    return id === undefined ? undefined : { id, hasSecret: clientSecret !== undefined };
  }

  async #grant(): Promise<GrantContext> {
    const server = this.#server;
    const { signal } = this.#lifetime;
    const [{ createAuthRequests }, plan] = await Promise.all([
      import("./requests/requests.ts"),
      this.#context.resolvePlan(server, signal),
    ]);
    for (const secret of oauthSecrets(server.definition.oauth, plan).named) server.onSecret(secret);
    this.#client ??= this.#context.createClient(server);
    // What a project's file names is no more trusted than what a server names.
    const named = server.definition.project ? [] : [plan.authServerMetadataUrl, plan.issuer];
    const trusted = named.filter((url) => url !== undefined);
    const requests = createAuthRequests({
      client: await this.#client,
      server: new URL(server.url),
      headers: server.headers,
      trusted,
      reached: this.#reached,
      ...(this.#context.resolve && { resolve: this.#context.resolve }),
      signal,
    });
    const company = await this.#company();
    const url = new URL(server.url);
    return {
      ...{ plan, requests, onNote: server.onNote, onSecret: server.onSecret },
      ...(server.isIdentity && { isIdentity: true }),
      ...(company && { identityFor: (wish) => this.#identityFor(wish, url, company) }),
    };
  }

  /** The sign-in is noted as it was before: the next request notices whoever signs in meanwhile. */
  async #identityFor(wish: IdentityWish, url: URL, company: Company): Promise<string> {
    const signIn = await company.signIn();
    const identity = await company.identityFor(wish, url);
    this.#stoodOn = { company, signIn };
    return identity;
  }

  async #explained<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw this.#explain(error);
    }
  }

  #explain(error: unknown): Error {
    const { definition, redact } = this.#server;
    if (error instanceof SignInProblem) return explainProblem(error, { server: definition.name, redact });
    return error instanceof Error ? error : new Error(String(error));
  }
}

interface SessionAuthContext extends Omit<ServerAuthContext, "company"> {
  /** The company's identity provider as the settings name it. */
  company: () => Promise<AuthServer | undefined>;
  /** Asks Pi for the token of a provider. */
  askUser: AskUser;
  log: { info(message: string): void; warn(message: string): void };
  env: Readonly<Record<string, string | undefined>>;
  platform: NodeJS.Platform;
  onEnd: (end: { id: string; server: string; result: SignInResult }) => void;
}

export type SessionAuth = ReturnType<typeof createSessionAuth>;

type Asked = Pick<ServerDefinition, "auth" | "oauth" | "target">;

/** Why the user cannot sign in to a server, and what helps; undefined: the user can. `headers`: as they are resolved. */
function whyNoSignIn({ auth, oauth, target }: Asked, headers: Record<string, string>) {
  if (target.kind !== "http") return ["is a local program and needs no sign-in", "Nothing to do."] as const;
  const { provider } = auth;
  if (provider !== undefined) {
    const name = oneLine(provider, PROVIDER_CHARS);
    const how = `Run /login ${name} or /logout ${name} in Pi.`;
    return [`sends the token of the provider ${name}, to which you sign in with Pi itself`, how] as const;
  }
  if (oauth === false) {
    const remedy = 'Remove "auth" or "oauth" there to sign in.';
    return ["takes no sign-in, as mcp.json says", remedy] as const;
  }
  const isAuthorized = Object.keys(headers).some((name) => name.toLowerCase() === "authorization");
  if (auth.scheme === "oauth" || (auth.scheme === "auto" && !isAuthorized)) return undefined;
  const remedy = 'Remove it there, or write "auth": "oauth", to sign in.';
  return ["sends the Authorization header of mcp.json", remedy] as const;
}

const PROVIDER_CHARS = 200;

export const takesSignIn = (definition: Asked, headers: Record<string, string>): boolean =>
  whyNoSignIn(definition, headers) === undefined;

/** Throws `bad_config` for a server to which the user cannot sign in here. */
function refuseSignIn({ definition, headers }: AuthServer): void {
  const { name: server } = definition;
  const [what, remedy] = whyNoSignIn(definition, headers) ?? [];
  if (what) throw new ThreadsError("bad_config", `${server} ${what}.`, { remedy, data: { server } });
}

function providerOf(
  { definition, url, redact, onSecret }: AuthServer,
  { askUser, env }: SessionAuthContext,
): ProviderTokens | undefined {
  const { name: server, auth } = definition;
  const { provider } = auth;
  if (provider === undefined) return undefined;
  return new ProviderTokens({ server, url: new URL(url), provider, env, askUser, redact, onSecret });
}

const signInsOf = (room: typeof import("./sign-in/sign-in.ts"), context: SessionAuthContext): SignIns =>
  new room.SignIns({
    ...context,
    onEnd: (end) => {
      context.onEnd(end);
      context.onStatus(end.server);
    },
  });

export function createSessionAuth(context: SessionAuthContext) {
  const servers = new Map<string, { identity: string; auth: ServerAuth }>();
  const providers = new Map<string, ProviderTokens | undefined>();
  let signIns: SignIns | undefined;
  /** Sign-ins that have not answered their first step, by server: nothing else knows of them that could end them. */
  const beginnings = new Map<string, AbortController>();
  const abandon = (name: string): void => {
    beginnings.get(name)?.abort();
    beginnings.delete(name);
    signIns?.abandon(name);
  };
  const leaving = new Set<Promise<void>>();

  /** A renewal that is out goes on: its answer holds the only refresh token that works from then on. */
  const leave = (auth: ServerAuth): void => {
    const left = auth.close(LIMITS.renewalEndMs).finally(() => leaving.delete(left));
    leaving.add(left);
  };
  const of = (server: AuthServer): ServerAuth => {
    const { name, oauth } = server.definition;
    const identity = JSON.stringify([server.url, server.definition.auth, oauth, server.ca]);
    const known = servers.get(name);
    if (known?.identity === identity) {
      known.auth.update(server);
      return known.auth;
    }
    if (known) leave(known.auth);
    const auth = new ServerAuth(server, { ...context, company });
    servers.set(name, { identity, auth });
    return auth;
  };

  const company = async (): Promise<Company | undefined> => {
    const found = await context.company();
    return found && new Company(of(found).kept);
  };

  return {
    /** What the requests to a server ask. Undefined: no sign-in applies, and the requests go out as configured. */
    of: (server: AuthServer): RequestAuth | undefined => {
      const tokens = providerOf(server, context);
      providers.set(server.definition.name, tokens);
      return tokens ?? (takesSignIn(server.definition, server.headers) ? of(server) : undefined);
    },
    /**
     * What the requests to a server ask that is only tried. No stored token goes there, and nothing is remembered: they
     * fail as for a user who never signed in, or with the server's own words. The token of a provider goes along, as a key in
     * the entry does: the person has written its name.
     */
    forTrial: (server: AuthServer): RequestAuth | undefined => {
      const tokens = providerOf(server, context);
      if (tokens || !takesSignIn(server.definition, server.headers)) return tokens;
      return {
        token: async () => undefined,
        afterRefusal: async (refused, signal) => {
          const auth = new ServerAuth(server, { ...context, company });
          return auth.afterTrial(refused, signal).finally(() => leave(auth));
        },
      };
    },
    status: (server: string): SignInStatus | undefined => {
      return signIns?.isRunning(server) ? { state: "running" } : servers.get(server)?.auth.status;
    },
    /** Whether someone has signed in to the server, in this process or another one, since it refused its last token. */
    hasOther: async (server: string) =>
      (await (providers.get(server) ?? servers.get(server)?.auth)?.hasOther()) ?? false,
    isChallenged: (server: string) => servers.get(server)?.auth.isChallenged ?? false,
    signIn: async (server: AuthServer, wanted: SignInWish): Promise<SignInStep> => {
      const { name } = server.definition;
      refuseSignIn(server);
      try {
        const end = beginnings.get(name) ?? new AbortController();
        beginnings.set(name, end);
        const signal = AbortSignal.any([wanted.signal, end.signal]);
        const beginning = import("./sign-in/sign-in.ts").then((room) => {
          signIns ??= signInsOf(room, context);
          return of(server).signIn(signIns, { ...wanted, signal });
        });
        return await abortable(beginning, end.signal, `The sign-in to ${name}`);
      } finally {
        // Also after a failure: a status of the meantime says that a sign-in is under way.
        context.onStatus(name);
      }
    },
    paste: async (id: string, text: string) => signIns?.paste(id, text) ?? "This sign-in has ended.",
    cancel: (id: string) => signIns?.cancel(id),
    signOut: async (server: AuthServer, signal: AbortSignal): Promise<string> => {
      if (server.definition.auth.provider !== undefined) refuseSignIn(server);
      // Tokens that come later would sign the user in again.
      abandon(server.definition.name);
      const text = await of(server).signOut(signal);
      if (standsOnCompany(server.definition.oauth))
        await Promise.all([...servers.values()].map(({ auth }) => auth.endGiven()));
      return text;
    },
    abandon: (names: readonly string[]): void => names.forEach(abandon),
    /** Waits for renewals that are out, at most `maxMs`. */
    close: async (maxMs: number): Promise<void> => {
      const open = [...servers.values()].map(({ auth }) => auth.close(maxMs));
      await Promise.allSettled([signIns?.close(), ...open, ...leaving]);
    },
  };
}
