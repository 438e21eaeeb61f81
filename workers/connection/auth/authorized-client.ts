/**
 * An `HttpClient` whose requests carry the server's token. Owns: the Authorization header of each request, and the one
 * repetition of a request that the server refused. Repeating is safe: a server that answers 401 or 403 has not carried
 * the request out. Called by: auth.ts.
 */

import type { HttpClient, HttpRequest, HttpResponse } from "../web/client.ts";
import { type AuthChallenge, parseChallenge, type RefusedRequest } from "./model/model.ts";

/** What a request asks about the server's sign-in. Rejects with `ThreadsError`, which explains the failure. */
export interface RequestAuth {
  /** The token to send; undefined: none. */
  token(signal: AbortSignal): Promise<string | undefined>;
  /** Another token to send once; undefined: the server's answer stands. */
  afterRefusal(refused: RefusedRequest, signal: AbortSignal): Promise<string | undefined>;
}

/** A replaced token can be refused, too: `afterRefusal` then says what that means. */
const REPETITIONS = 2;

const withToken = (request: HttpRequest, token: string | undefined): HttpRequest => {
  if (token === undefined) return request;
  const others = Object.entries(request.headers).filter(([name]) => name.toLowerCase() !== "authorization");
  return { ...request, headers: { ...Object.fromEntries(others), Authorization: `Bearer ${token}` } };
};

/** Undefined for an answer that says nothing about the sign-in. */
function challengeOf({
  status,
  headers,
}: HttpResponse): { challenge: AuthChallenge | undefined } | undefined {
  const challenge = parseChallenge(headers["www-authenticate"]);
  if (status === 401) return { challenge };
  // RFC 6750, section 3.1.
  return status === 403 && challenge?.error === "insufficient_scope" ? { challenge } : undefined;
}

export function authorizedClient(client: HttpClient, auth: RequestAuth): HttpClient {
  let last: string | undefined;
  const request = async (asked: HttpRequest): Promise<HttpResponse> => {
    // The end of a session is told with the last token: it is worth no renewal.
    const ends = asked.method === "DELETE";
    let sent = ends ? last : await auth.token(asked.signal);
    for (let repeated = 0; ; repeated++) {
      asked.signal.throwIfAborted();
      last = sent;
      const response = await client.request(withToken(asked, sent));
      const refusal = ends ? undefined : challengeOf(response);
      if (!refusal || repeated === REPETITIONS) return response;
      const asks = { status: response.status, ...refusal, sent, isRepeated: repeated > 0 };
      const next = await auth.afterRefusal(asks, asked.signal).catch((error: unknown) => {
        response.body.destroy();
        throw error;
      });
      if (next === undefined) return response;
      response.body.destroy();
      sent = next;
    }
  };
  return { request, close: () => client.close() };
}
