/**
 * Signing in to servers. Owns: a server's tokens and how they are renewed, the sign-in with a browser, and where both
 * are stored. Must not: know lifecycles or Pi. Called by: transports/http (challenges, tokens), session (sign-ins).
 *
 * What stands behind `import()` is loaded by the first server that needs it: a session without OAuth pays nothing.
 * To add a grant: grants/. To mend what a server gets wrong: requests/. To add a failure: a row in model/problem.ts.
 */
import type { openBrowser } from "./sign-in/sign-in.ts";

export { authorizedClient, type RequestAuth } from "./authorized-client.ts";
export { type AuthChallenge, parseChallenge } from "./model/model.ts";
export type { AuthServer } from "./server-auth.ts";
export { createSessionAuth, type SessionAuth, takesSignIn } from "./session-auth.ts";

/** Starts the user's browser. Never rejects. */
export const openPage: typeof openBrowser = async (...page) =>
  (await import("./sign-in/sign-in.ts")).openBrowser(...page);
