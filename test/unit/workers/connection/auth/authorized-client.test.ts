/** Owns: the requests of a server with a token, over real HTTP: which header each has, and when one is repeated. */
import { expect, test } from "vitest";
import { ThreadsError } from "../../../../../src/shared/protocol/errors.ts";
import { authorizedClient, type RequestAuth } from "../../../../../workers/connection/auth/auth.ts";
import { createHttpClient, type HttpResponse } from "../../../../../workers/connection/web/client.ts";
import { type Handler, serve, type TestServer } from "../../../../support/http-server.ts";

type Refusal = Parameters<RequestAuth["afterRefusal"]>[0];

interface Asking {
  first: string | undefined;
  /** What each refusal is answered with, in turn. */
  next?: (string | undefined | Error)[];
  method?: "GET" | "POST" | "DELETE";
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

const never = new AbortController().signal;

/** Asks once and answers what the client got, and the refusals that it reported. */
async function ask(
  server: TestServer,
  { first, next = [], method = "POST", headers = {}, signal = never }: Asking,
): Promise<{ response: HttpResponse | Error; refusals: Refusal[] }> {
  const refusals: Refusal[] = [];
  const left = [...next];
  const auth: RequestAuth = {
    token: async () => first,
    afterRefusal: async (refusal) => {
      refusals.push(refusal);
      const answer = left.shift();
      if (answer instanceof Error) throw answer;
      return answer;
    },
  };
  const client = authorizedClient(createHttpClient({}), auth);
  const body = method === "POST" ? { body: '{"method":"ping"}' } : {};
  const response = await client
    .request({ method, url: new URL(server.url), headers, signal, ...body })
    .catch((error: Error) => error);
  if (!(response instanceof Error)) response.body.destroy();
  client.close();
  return { response, refusals };
}

const statusOf = (response: HttpResponse | Error): number | string =>
  response instanceof Error ? response.message : response.status;

const sentTo = (server: TestServer): (string | undefined)[] =>
  server.asked.map(({ headers }) => headers.authorization);

/** Accepts one token only. */
const accepts =
  (token: string, challenge = "Bearer"): Handler =>
  ({ headers }, response) => {
    const isKnown = headers.authorization === `Bearer ${token}`;
    response.writeHead(isKnown ? 200 : 401, isKnown ? {} : { "www-authenticate": challenge }).end();
  };

test("a token -> the request carries it in place of a configured header", async () => {
  const server = await serve(accepts("new"));
  const { response } = await ask(server, {
    first: "new",
    headers: { authorization: "Basic abc", "x-team": "a" },
  });
  expect(statusOf(response)).toBe(200);
  expect(sentTo(server)).toEqual(["Bearer new"]);
  expect(server.asked[0]?.headers["x-team"]).toBe("a");
});

test("no token and no refusal -> the request goes out as configured", async () => {
  const server = await serve((_asked, response) => response.writeHead(200).end());
  await ask(server, { first: undefined, headers: { authorization: "Basic abc" } });
  expect(sentTo(server)).toEqual(["Basic abc"]);
});

test("401 -> the same request is sent once more with the other token", async () => {
  const server = await serve(accepts("new", 'Bearer scope="a b", resource_metadata="https://x/y"'));
  const { response, refusals } = await ask(server, { first: "old", next: ["new"] });
  expect(statusOf(response)).toBe(200);
  expect(sentTo(server)).toEqual(["Bearer old", "Bearer new"]);
  expect(server.asked.map(({ message }) => message.method)).toEqual(["ping", "ping"]);
  expect(refusals).toEqual([
    {
      status: 401,
      sent: "old",
      isRepeated: false,
      challenge: { scheme: "Bearer", scope: "a b", resourceMetadata: "https://x/y" },
    },
  ]);
});

test("401 that no token cures -> the server's answer stands", async () => {
  const server = await serve(accepts("new"));
  const { response } = await ask(server, { first: undefined, next: [undefined] });
  expect(statusOf(response)).toBe(401);
  expect(server.asked).toHaveLength(1);
});

test("a server that refuses every token -> three requests at most", async () => {
  const server = await serve(accepts("none"));
  const { response, refusals } = await ask(server, { first: "a", next: ["b", "c", "d", "e"] });
  expect(statusOf(response)).toBe(401);
  expect(sentTo(server)).toEqual(["Bearer a", "Bearer b", "Bearer c"]);
  expect(refusals).toHaveLength(2);
});

test("a refusal that is explained -> the request fails with the explanation", async () => {
  const server = await serve(accepts("new"));
  const lost = new ThreadsError("needs_auth", "s: it needs a sign-in.");
  const { response } = await ask(server, { first: "old", next: [lost] });
  expect(response).toBe(lost);
});

test.each([
  ['Bearer error="insufficient_scope", scope="write"', 1],
  ['Bearer error="invalid_token"', 0],
  ["", 0],
] as const)("403 with %s -> %i refusals", async (challenge, count) => {
  const server = await serve((_asked, response) =>
    response.writeHead(403, challenge === "" ? {} : { "www-authenticate": challenge }).end(),
  );
  const { response, refusals } = await ask(server, { first: "a" });
  expect(statusOf(response)).toBe(403);
  expect(refusals).toHaveLength(count);
});

test("DELETE that is refused -> it is not repeated", async () => {
  const server = await serve(accepts("new"));
  const { response, refusals } = await ask(server, { first: "old", next: ["new"], method: "DELETE" });
  expect(statusOf(response)).toBe(401);
  expect(refusals).toEqual([]);
});

test("DELETE -> it carries the last token that was sent, and nobody is asked for one, which could begin a renewal", async () => {
  const server = await serve((_asked, response) => response.writeHead(200).end());
  const tokens = ["a", "b"];
  const auth: RequestAuth = { token: async () => tokens.shift(), afterRefusal: async () => undefined };
  const client = authorizedClient(createHttpClient({}), auth);
  for (const method of ["GET", "DELETE"] as const) {
    const { body } = await client.request({ method, url: new URL(server.url), headers: {}, signal: never });
    body.destroy();
  }
  client.close();
  expect(sentTo(server)).toEqual(["Bearer a", "Bearer a"]);
  expect(tokens).toEqual(["b"]);
});

test("a request that is given up while it waits for a token -> nothing is sent", async () => {
  const server = await serve((_asked, response) => response.writeHead(200).end());
  const given = new AbortController();
  given.abort();
  const { response } = await ask(server, { first: "a", signal: given.signal });
  expect(response).toBeInstanceOf(Error);
  expect(server.asked).toEqual([]);
});

test("a body of a refused answer that never ends -> the repetition does not wait for it", async () => {
  const server = await serve(({ headers }, response) => {
    if (headers.authorization === "Bearer new") response.writeHead(200).end();
    else response.writeHead(401, { "www-authenticate": "Bearer" }).write("…");
  });
  const { response } = await ask(server, { first: "old", next: ["new"] });
  expect(statusOf(response)).toBe(200);
});
