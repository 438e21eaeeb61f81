/**
 * The sign-ins of one session, by server. Owns: which servers take a sign-in, and the end of all. Called by: auth.ts.
 */
import { ThreadsError } from "../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import type { SignInResult, SignInStatus, SignInStep } from "../../../src/shared/protocol/sign-in.ts";
import type { ServerDefinition } from "../config/entry/definition.ts";
import type { RequestAuth } from "./authorized-client.ts";
import { type AuthServer, ServerAuth, type ServerAuthContext, type SignInWish } from "./server-auth.ts";
import type { SignIns } from "./sign-in/sign-in.ts";

export interface SessionAuthContext extends ServerAuthContext {
  log: { info(message: string): void; warn(message: string): void };
  env: Readonly<Record<string, string | undefined>>;
  platform: NodeJS.Platform;
  onEnd: (end: { id: string; server: string; result: SignInResult }) => void;
}

export interface SessionAuth {
  /** What the requests to a server ask. Undefined: no sign-in applies, and the requests go out as configured. */
  of(server: AuthServer): RequestAuth | undefined;
  /**
   * What the requests to a server ask that is only tried. No stored token goes there, and nothing is remembered: they
   * fail as for a user who never signed in, or with the server's own words.
   */
  forTrial(server: AuthServer): RequestAuth | undefined;
  status(server: string): SignInStatus | undefined;
  /** Whether someone has signed in to the server, in this process or another one, since it refused its last token. */
  hasOther(server: string): Promise<boolean>;
  /** Whether the server has said how it wants to be signed in to. */
  isChallenged(server: string): boolean;
  /** Throws `ThreadsError`. */
  signIn(server: AuthServer, wish: SignInWish): Promise<SignInStep>;
  paste(id: string, text: string): Promise<string | undefined>;
  cancel(id: string): void;
  signOut(server: AuthServer, signal: AbortSignal): Promise<string>;
  /** Ends the sign-ins under way of servers that were edited or removed. */
  abandon(servers: readonly string[]): void;
  /** Waits for renewals that are out, at most `maxMs`. */
  close(maxMs: number): Promise<void>;
}

/** Whether a definition may be signed in to. `headers`: as they are resolved. */
export function takesSignIn(
  { auth, oauth, target }: Pick<ServerDefinition, "auth" | "oauth" | "target">,
  headers: Record<string, string>,
): boolean {
  if (target.kind !== "http" || oauth === false) return false;
  if (auth.scheme === "oauth") return true;
  const isAuthorized = Object.keys(headers).some((name) => name.toLowerCase() === "authorization");
  return auth.scheme === "auto" && !isAuthorized;
}

export function createSessionAuth(context: SessionAuthContext): SessionAuth {
  const servers = new Map<string, { identity: string; auth: ServerAuth }>();
  let signIns: SignIns | undefined;
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
    const auth = new ServerAuth(server, context);
    servers.set(name, { identity, auth });
    return auth;
  };

  return {
    of: (server) => (takesSignIn(server.definition, server.headers) ? of(server) : undefined),
    forTrial: (server) => {
      if (!takesSignIn(server.definition, server.headers)) return undefined;
      return {
        token: async () => undefined,
        afterRefusal: async (refused, signal) => {
          const auth = new ServerAuth(server, context);
          return auth.afterTrial(refused, signal).finally(() => leave(auth));
        },
      };
    },
    status: (server) => {
      if (signIns?.isRunning(server)) return { state: "running" };
      return servers.get(server)?.auth.status;
    },
    hasOther: async (server) => (await servers.get(server)?.auth.hasOther()) ?? false,
    isChallenged: (server) => servers.get(server)?.auth.isChallenged ?? false,
    signIn: async (server, wish) => {
      if (!takesSignIn(server.definition, server.headers)) throw noSignIn(server.definition);
      const { createSignIns } = await import("./sign-in/sign-in.ts");
      const { onEnd, onStatus, log, env, platform } = context;
      signIns ??= createSignIns({
        onEnd: (end) => {
          onEnd(end);
          onStatus(end.server);
        },
        log,
        env,
        platform,
      });
      try {
        return await of(server).signIn(signIns, wish);
      } finally {
        // Also after a failure: a status of the meantime says that a sign-in is under way.
        onStatus(server.definition.name);
      }
    },
    paste: async (id, text) => signIns?.paste(id, text) ?? "This sign-in has ended.",
    cancel: (id) => signIns?.cancel(id),
    signOut: (server, signal) => {
      // Tokens that come later would sign the user in again.
      signIns?.abandon(server.definition.name);
      return of(server).signOut(signal);
    },
    abandon: (names) => {
      for (const name of names) signIns?.abandon(name);
    },
    close: async (maxMs) => {
      const open = [...servers.values()].map(({ auth }) => auth.close(maxMs));
      await Promise.allSettled([signIns?.close(), ...open, ...leaving]);
    },
  };
}

/** Why the user cannot sign in to a server. */
function noSignIn({ name, target, oauth }: ServerDefinition): ThreadsError {
  const because = (what: string, remedy: string): ThreadsError =>
    new ThreadsError("bad_config", `${name} ${what}.`, { remedy, data: { server: name } });
  if (target.kind !== "http") return because("is a local program and takes no sign-in", "Nothing to do.");
  if (oauth === false) {
    return because("takes no sign-in, as mcp.json says", 'Remove "auth" or "oauth" there to sign in.');
  }
  return because(
    "sends the Authorization header of mcp.json",
    'Remove it there, or write "auth": "oauth", to sign in.',
  );
}
