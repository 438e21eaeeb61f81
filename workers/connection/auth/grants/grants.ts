/**
 * The protocol messages of OAuth. Owns: the client (configured, stored, metadata document, dynamic registration), the
 * scope, the authorization request and its answer, and every token request. oauth4webapi builds and checks them. Must
 * not: keep anything, or decide when. Called by: tokens, sign-in.
 *
 * To add a grant: a function in token-requests.ts, and the meaning of its errors in refusals.ts.
 */
export { beginAuthorization } from "./authorize-url.ts";
export { clientFor } from "./client.ts";
export type { GrantContext, PendingAuthorization } from "./context.ts";
export { chooseScope } from "./scope.ts";
export { clientCredentials, finishAuthorization, refreshTokens, revokeTokens } from "./token-requests.ts";
