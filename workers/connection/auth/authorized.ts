/**
 * The requests to a server with the token of its sign-in: the header, and the repetition of a request that the server
 * refused. Must not: know where tokens come from.
 */
import type { HttpClient, HttpRequest, HttpResponse } from "../web/client.ts";
import { type AccessToken, type AuthChallenge, parseChallenge, type RefusedRequest } from "./model/model.ts";

/** What a request asks about the server's sign-in. Rejects with `ThreadsError`, which explains the failure. */
export interface RequestAuth {
  token(signal: AbortSignal): Promise<AccessToken | undefined>;
  /** Another token to send once; undefined: the server's answer stands. */
  afterRefusal(refused: RefusedRequest, signal: AbortSignal): Promise<AccessToken | undefined>;
}

/** A replaced token can be refused, too: `afterRefusal` then says what that means. */
const REPETITIONS = 2;

const withToken = (request: HttpRequest, token: string | undefined): HttpRequest => {
  if (token === undefined) return request;
  const others = Object.entries(request.headers).filter(([name]) => name.toLowerCase() !== "authorization");
  return { ...request, headers: { ...Object.fromEntries(others), Authorization: `Bearer ${token}` } };
};

/** Undefined for an answer that says nothing about the sign-in. */
function challengeOf(
  { status, headers }: HttpResponse,
  sent: AccessToken | undefined,
): { challenge: AuthChallenge | undefined } | undefined {
  const challenge = parseChallenge(headers["www-authenticate"], typeof sent === "object" ? "dpop" : "bearer");
  if (status === 401) return { challenge };
  // RFC 6750, section 3.1.
  return status === 403 && challenge?.error === "insufficient_scope" ? { challenge } : undefined;
}

export function authorizedClient(client: HttpClient, auth: RequestAuth): HttpClient {
  let last: AccessToken | undefined;
  const request = async (asked: HttpRequest): Promise<HttpResponse> => {
    // The end of a session is told with the last token: it is worth no renewal.
    const ends = asked.method === "DELETE";
    let sent = ends ? last : await auth.token(asked.signal);
    for (let repeated = 0; ; repeated++) {
      asked.signal.throwIfAborted();
      last = sent;
      const response = await (typeof sent === "object"
        ? sent.send(client, asked)
        : client.request(withToken(asked, sent)));
      const refusal = ends ? undefined : challengeOf(response, sent);
      if (!refusal || repeated === REPETITIONS) return response;
      const { status, address } = response;
      const asks = { status, address, ...refusal, sent, isRepeated: repeated > 0 };
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
