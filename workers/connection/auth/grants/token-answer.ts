/**
 * The answer of the token endpoint (RFC 6749, section 5.1). Owns: which tokens can be sent at all, and until when they
 * hold. An `id_token` is never looked at: nothing here asks who the user is.
 */
import { type AuthorizationServer, type Client, processGenericTokenEndpointResponse } from "oauth4webapi";
import { isObject } from "../../../../src/shared/protocol/is-object.ts";
import { SignInProblem, type TokenAnswer } from "../model/model.ts";
import { shownAddress } from "../requests/requests.ts";
import { endpointOf } from "./endpoint.ts";
import { grantedScope } from "./scope.ts";

const TOKEN_CHARS = 16 * 1024;
/** What a header can carry (RFC 6750, section 2.1, and what servers issue beyond it). */
const ACCESS_TOKEN = /^[!-~]+$/;
/** RFC 6749, appendix A.17. */
const REFRESH_TOKEN = /^[ -~]+$/;
const LONGEST_LIFE_SECONDS = 10 * 365 * 24 * 60 * 60;

/** Seconds, also as text. Undefined: the server says nothing that can be believed, and the token holds until a 401. */
export function lifeSeconds(expiresIn: unknown): number | undefined {
  const seconds = typeof expiresIn === "string" && expiresIn.trim() !== "" ? Number(expiresIn) : expiresIn;
  if (typeof seconds !== "number" || !(seconds > 0)) return undefined;
  return Math.min(seconds, LONGEST_LIFE_SECONDS);
}

/** The answer without what oauth4webapi would refuse it for, and the life of the token. */
function prepared(text: string): { text: string; life: number | undefined } {
  let answer: unknown;
  try {
    answer = JSON.parse(text);
  } catch {
    // oauth4webapi says what is wrong.
    return { text, life: undefined };
  }
  if (!isObject(answer)) return { text, life: undefined };
  const { id_token: _ignored, expires_in: expiresIn, ...rest } = answer;
  return { text: JSON.stringify(rest), life: lifeSeconds(expiresIn) };
}

/** Throws `SignInProblem` "bad-answer", or an error of oauth4webapi. */
export async function readTokens(
  server: AuthorizationServer,
  client: Client,
  received: string,
): Promise<TokenAnswer> {
  const now = Date.now();
  const { text, life } = prepared(received);
  const answer = await processGenericTokenEndpointResponse(server, client, new Response(text));
  const { access_token: token, refresh_token: refresh } = answer;
  const wrong = (what: string): SignInProblem =>
    new SignInProblem("bad-answer", { url: shownAddress(endpointOf(server, "token_endpoint")), what });
  // oauth4webapi also takes DPoP, which binds the token to a key that was never sent.
  if (answer.token_type !== "bearer") throw wrong("its token_type is not Bearer");
  if (token.length > TOKEN_CHARS || !ACCESS_TOKEN.test(token)) throw wrong("its access_token cannot be sent");
  if (refresh !== undefined && (refresh.length > TOKEN_CHARS || !REFRESH_TOKEN.test(refresh))) {
    throw wrong("its refresh_token cannot be sent");
  }
  const scope = grantedScope(answer.scope);
  return {
    access_token: token,
    token_type: "Bearer",
    ...(refresh !== undefined && { refresh_token: refresh }),
    ...(life !== undefined && { expiresAt: now + Math.floor(life * 1_000) }),
    ...(scope !== undefined && { scope }),
  };
}
