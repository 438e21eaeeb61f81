/** A server's sign-in in words. Pure. */
import { wantsKey } from "../shared/protocol/errors.ts";
import type { SignInStatus } from "../shared/protocol/sign-in.ts";
import type { ServerStatus } from "../shared/protocol/status.ts";
import { durationText } from "../shared/text/amounts.ts";

/** For example `signed in, expires in 42 min, renews itself`. `now`: milliseconds since the epoch. */
export function signInText(signIn: SignInStatus, now: number): string {
  if (signIn.state === "needed") return "needs sign-in";
  if (signIn.state === "running") return "signing in";
  const { expiresAt, renews } = signIn;
  const renewal = renews ? "renews itself" : "cannot renew";
  if (expiresAt === undefined) return `signed in, ${renewal}`;
  const expiry = expiresAt > now ? `expires in ${durationText(expiresAt - now)}` : "expired";
  return `signed in, ${expiry}, ${renewal}`;
}

/** What a server that answers 401 needs. */
export function needsText({ error }: Pick<ServerStatus, "error">): string {
  if (!error || !wantsKey(error)) return "needs sign-in";
  return error.data?.reason === "key-refused" ? "key refused" : "needs a key";
}

/** Whether a sign-in would help the server now. A server that takes none, or whose own header it refuses, is not one. */
export const canSignIn = ({ state, signIn }: ServerStatus): boolean =>
  signIn !== undefined && (signIn.state === "needed" || state === "needs-auth");

/** Whether the person has to say where the server's key is. */
export const lacksKey = ({ state, error }: ServerStatus): boolean =>
  state === "needs-auth" && error !== undefined && wantsKey(error);
