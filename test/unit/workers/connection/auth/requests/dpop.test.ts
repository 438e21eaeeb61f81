/** Owns: proofs for tokens that are bound to a key (RFC 9449), against servers that check each of them. */
import type { IncomingHttpHeaders, ServerResponse } from "node:http";
import { describe, expect, onTestFinished, test } from "vitest";
import { authorizedClient, type RequestAuth } from "../../../../../../workers/connection/auth/authorized.ts";
import {
  boundToken,
  createKey,
  PROOF_REPEATS,
  proverOf,
  thumbprintOf,
} from "../../../../../../workers/connection/auth/requests/dpop.ts";
import {
  createHttpClient,
  type HttpRequest,
  type HttpResponse,
} from "../../../../../../workers/connection/web/client.ts";
import { checkProof, type Proof } from "../../../../../support/dpop.ts";
import { type Asked, serve, type TestServer } from "../../../../../support/http-server.ts";

const TOKEN = "Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU";
const CHALLENGE = { "www-authenticate": 'DPoP error="use_dpop_nonce"' };
const REFUSED_PROOF = { "www-authenticate": 'DPoP error="invalid_dpop_proof"' };

interface Sending extends Partial<Pick<HttpRequest, "method" | "headers" | "signal">> {
  path?: string;
  token?: ReturnType<typeof boundToken>;
}

async function send(
  server: TestServer,
  { path = "/mcp", token = boundToken(TOKEN, createKey()), ...more }: Sending = {},
): Promise<HttpResponse> {
  const client = createHttpClient({});
  onTestFinished(() => client.close());
  const response = await token.send(client, {
    method: "POST",
    url: new URL(path, server.origin),
    headers: {},
    signal: new AbortController().signal,
    ...more,
  });
  response.body.destroy();
  return response;
}

/** The proof of each request, oldest first, checked as a server does. */
const proofsOf = ({ origin, asked }: TestServer): Proof[] =>
  asked.map(({ http: method, path, headers }: Asked) =>
    checkProof({ method, url: `${origin}${path}`, headers, token: TOKEN }),
  );

/** What each request claims, unchecked. */
const claimsOf = ({ asked }: TestServer): Proof["claims"][] =>
  asked.map(({ headers }) => {
    const [, claims = ""] = String(headers.dpop).split(".");
    return JSON.parse(Buffer.from(claims, "base64url").toString()) as Proof["claims"];
  });

type Reply = { status?: number; headers?: Record<string, string> };

/** Answers in this order; the last answer stays. */
const replying = (...replies: Reply[]): Promise<TestServer> => {
  let nth = 0;
  return serve((_asked, response: ServerResponse) => {
    const { status = 200, headers = {} } = replies[Math.min(nth++, replies.length - 1)] ?? {};
    response.writeHead(status, headers).end();
  });
};

const authorizations = ({ asked }: TestServer): (string | undefined)[] =>
  asked.map(({ headers }: { headers: IncomingHttpHeaders }) => headers.authorization);

describe("the examples of RFC 9449", () => {
  test("section 6.1: the key -> its thumbprint", () => {
    const key = {
      kty: "EC",
      crv: "P-256",
      x: "l8tFrhx-34tV3hRICRDY9zCkDlpBhF42UQUfWVAWBFs",
      y: "9VE4jf_Ok_o64zbTTlcuNJajHmt6v9TDVrU0CdvGRDA",
      d: "",
    } as const;
    expect(thumbprintOf(key)).toBe("0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I");
  });

  test("section 7.1: the token -> its ath", async () => {
    const server = await replying({});
    await send(server);
    expect(proofsOf(server)[0]?.claims.ath).toBe("fUHyO2r2Z3DZ53EsNrWBb0xWXoaNy59IiKCAqksmQEo");
  });
});

describe("section 4.2, the proof of a request", () => {
  test.each(["GET", "POST", "DELETE"] as const)(
    "%s with a query -> its method, its address without the query, and the scheme DPoP",
    async (method) => {
      const server = await replying({});
      await send(server, { method, path: "/mcp?session=1" });
      expect(proofsOf(server)[0]?.claims).toMatchObject({ htm: method, htu: `${server.origin}/mcp` });
      expect(authorizations(server)).toEqual([`DPoP ${TOKEN}`]);
    },
  );

  test("ten requests with one token -> one key, ten different proofs", async () => {
    const server = await replying({});
    const key = createKey();
    await Promise.all(Array.from({ length: 10 }, () => send(server, { token: boundToken(TOKEN, key) })));
    const proofs = proofsOf(server);
    expect(new Set(proofs.map(({ jkt }) => jkt))).toEqual(new Set([thumbprintOf(key)]));
    expect(new Set(proofs.map(({ claims }) => claims.jti)).size).toBe(10);
  });

  test("Authorization and DPoP among the configured headers -> neither is sent", async () => {
    const server = await replying({});
    await send(server, { headers: { AUTHORIZATION: "Basic abc", dpop: "old", "x-team": "a" } });
    expect(proofsOf(server)).toHaveLength(1);
    expect(authorizations(server)).toEqual([`DPoP ${TOKEN}`]);
    expect(server.asked[0]?.headers["x-team"]).toBe("a");
  });

  test("redirects within the origin -> each address gets a proof of its own", async () => {
    const server = await serve(({ path }, response) => {
      const hop = Number(path.slice(-1));
      response.writeHead(hop < 3 ? 307 : 200, { location: `/mcp${hop + 1}` }).end();
    });
    expect((await send(server, { path: "/mcp1" })).status).toBe(200);
    expect(proofsOf(server).map(({ claims }) => claims.htu)).toEqual(
      [1, 2, 3].map((hop) => `${server.origin}/mcp${hop}`),
    );
  });

  test("a redirect to another origin -> the token and its proof do not go there", async () => {
    const other = await replying({});
    const server = await replying({ status: 307, headers: { location: other.url } });
    expect((await send(server)).status).toBe(307);
    expect(other.asked).toEqual([]);
  });
});

describe("sections 8 and 9, nonces", () => {
  test.each([
    ["200", { headers: { "dpop-nonce": "n1" } }],
    ["500", { status: 500, headers: { "dpop-nonce": "n1" } }],
  ])("an answer %s with a nonce -> the next proof holds it", async (_status, first) => {
    const server = await replying(first, {});
    const token = boundToken(TOKEN, createKey());
    await send(server, { token });
    await send(server, { token });
    expect(proofsOf(server).map(({ claims }) => claims.nonce)).toEqual([undefined, "n1"]);
  });

  test("a nonce of one origin -> another origin does not get it", async () => {
    const servers = await Promise.all([replying({ headers: { "dpop-nonce": "n1" } }), replying({})]);
    const key = createKey();
    for (const server of servers) await send(server, { token: boundToken(TOKEN, key) });
    expect(proofsOf(servers[1]).map(({ claims }) => claims.nonce)).toEqual([undefined]);
  });

  test("a nonce in a redirect -> the proof of the next address holds it", async () => {
    const server = await replying(
      { status: 307, headers: { location: "/mcp2", "dpop-nonce": "n1" } },
      { status: 200 },
    );
    await send(server);
    expect(proofsOf(server).map(({ claims }) => claims.nonce)).toEqual([undefined, "n1"]);
  });

  const refusal = (nonce?: string): Reply => ({
    status: 401,
    headers: { ...CHALLENGE, ...(nonce === undefined ? {} : { "dpop-nonce": nonce }) },
  });
  test.each<[string, Reply[], status: number, nonces: (string | undefined)[]]>([
    ["a nonce is wanted -> once more with it", [refusal("n1"), {}], 200, [undefined, "n1"]],
    [
      "it is refused for a newer one -> with that",
      [refusal("n1"), refusal("n2"), {}],
      200,
      [undefined, "n1", "n2"],
    ],
    ["the same nonce for ever -> one repetition", [refusal("n1")], 401, [undefined, "n1"]],
    ["none is named -> no repetition", [refusal()], 401, [undefined]],
    ["it holds a space -> no repetition", [refusal("a b")], 401, [undefined]],
    ["it holds a quote -> no repetition", [refusal('a"b')], 401, [undefined]],
    ["it holds a backslash -> no repetition", [refusal("a\\b")], 401, [undefined]],
    ["it holds letters beyond ASCII -> no repetition", [refusal("nöncé")], 401, [undefined]],
    ["it has 2,049 characters -> no repetition", [refusal("n".repeat(2_049))], 401, [undefined]],
    [
      "it has 2,048 characters -> it counts",
      [refusal("n".repeat(2_048)), {}],
      200,
      [undefined, "n".repeat(2_048)],
    ],
    [
      "401 for another reason, with a nonce -> no repetition",
      [{ status: 401, headers: { "www-authenticate": 'DPoP error="invalid_token"', "dpop-nonce": "n1" } }],
      401,
      [undefined],
    ],
    [
      "use_dpop_nonce in words of Bearer -> no repetition",
      [
        {
          status: 401,
          headers: { "www-authenticate": 'Bearer realm="DPoP use_dpop_nonce"', "dpop-nonce": "n1" },
        },
      ],
      401,
      [undefined],
    ],
    [
      "behind a challenge of Bearer -> once more",
      [
        {
          status: 401,
          headers: {
            "www-authenticate": 'Bearer error="invalid_token", DPoP algs="ES256", error="use_dpop_nonce"',
            "dpop-nonce": "n1",
          },
        },
        {},
      ],
      200,
      [undefined, "n1"],
    ],
  ])("%s", async (_name, replies, status, nonces) => {
    const server = await replying(...replies);
    expect((await send(server)).status).toBe(status);
    expect(proofsOf(server).map(({ claims }) => claims.nonce)).toEqual(nonces);
  });

  test("two nonces in one answer -> none of them counts", async () => {
    const server = await serve((_asked, response) => {
      response
        .writeHead(
          401,
          [
            ["www-authenticate", CHALLENGE["www-authenticate"]],
            ["dpop-nonce", "a"],
            ["dpop-nonce", "b"],
          ].flat(),
        )
        .end();
    });
    expect((await send(server)).status).toBe(401);
    expect(server.asked).toHaveLength(1);
  });

  test("another nonce each time -> the repetitions end", async () => {
    let nth = 0;
    const server = await serve((_asked, response) => {
      response.writeHead(401, { ...CHALLENGE, "dpop-nonce": `n${++nth}` }).end();
    });
    expect((await send(server)).status).toBe(401);
    expect(server.asked).toHaveLength(1 + PROOF_REPEATS);
  });

  test("requests at once, before a nonce is known -> each is sent at most once more", async () => {
    const server = await serve(({ http: method, headers, path }, response) => {
      const { claims } = checkProof({ method, url: `${server.origin}${path}`, headers, token: TOKEN });
      response.writeHead(claims.nonce === "n1" ? 200 : 401, { ...CHALLENGE, "dpop-nonce": "n1" }).end();
    });
    const key = createKey();
    const five = Array.from({ length: 5 }, () => send(server, { token: boundToken(TOKEN, key) }));
    expect((await Promise.all(five)).map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
    expect(server.asked.length).toBeLessThanOrEqual(10);
  });

  test("a request that is given up before its repetition -> nothing more is sent", async () => {
    const given = new AbortController();
    const server = await serve((_asked, response) => {
      given.abort();
      response.writeHead(401, { ...CHALLENGE, "dpop-nonce": "n1" }).end();
    });
    await expect(send(server, { signal: given.signal })).rejects.toThrow();
    expect(server.asked).toHaveLength(1);
  });
});

describe("section 11.1, a clock that differs", () => {
  const HOUR_MS = 3_600_000;
  const dateOf = (aheadMs: number): string => new Date(Date.now() + aheadMs).toUTCString();
  const hours = (server: TestServer): number[] =>
    claimsOf(server).map(({ iat }) => Math.round((iat * 1_000 - Date.now()) / HOUR_MS) || 0);

  test.each([
    ["an hour ahead", HOUR_MS, [0, 1]],
    ["an hour behind", -HOUR_MS, [0, -1]],
  ])("a proof is refused by a server %s -> once more by its time", async (_name, aheadMs, expected) => {
    const server = await replying(
      { status: 401, headers: { ...REFUSED_PROOF, date: dateOf(aheadMs) } },
      { headers: { date: dateOf(aheadMs) } },
    );
    expect((await send(server)).status).toBe(200);
    expect(hours(server)).toEqual(expected);
  });

  test.each([
    ["the same time", dateOf(0)],
    ["no time", "soon"],
  ])("a proof is refused with %s -> no repetition", async (_name, date) => {
    const server = await replying({ status: 401, headers: { ...REFUSED_PROOF, date } });
    expect((await send(server)).status).toBe(401);
    expect(server.asked).toHaveLength(1);
  });

  test("a good answer with an old date, as from a cache -> our own clock counts", async () => {
    const server = await replying({ headers: { date: dateOf(-HOUR_MS) } });
    const token = boundToken(TOKEN, createKey());
    await send(server, { token });
    await send(server, { token });
    expect(hours(server)).toEqual([0, 0]);
  });
});

test("one key -> one prover in this process, so that renewals and requests know the same nonces", () => {
  const key = createKey();
  expect(proverOf({ ...key })).toBe(proverOf(key));
  expect(proverOf(createKey())).not.toBe(proverOf(key));
});

describe("the requests of a connection", () => {
  const clientOf = (auth: RequestAuth) => {
    const client = authorizedClient(createHttpClient({}), auth);
    onTestFinished(() => client.close());
    return client;
  };
  const request = (server: TestServer, method: HttpRequest["method"] = "POST"): HttpRequest => ({
    method,
    url: new URL(server.url),
    headers: {},
    signal: new AbortController().signal,
  });

  test("a refusal with challenges of both schemes -> that of DPoP is told, with the token", async () => {
    const server = await replying({
      status: 401,
      headers: {
        "www-authenticate": 'Bearer scope="a", error="x", DPoP algs="ES256", error="invalid_token"',
      },
    });
    const token = boundToken(TOKEN, createKey());
    const refusals: unknown[] = [];
    const client = clientOf({
      token: async () => token,
      afterRefusal: async (refused) => void refusals.push(refused),
    });
    (await client.request(request(server))).body.destroy();
    expect(refusals).toEqual([
      {
        status: 401,
        sent: token,
        address: "127.0.0.1",
        isRepeated: false,
        challenge: { scheme: "DPoP", error: "invalid_token", scope: "a", dpop: "offered" },
      },
    ]);
  });

  test("another token after a refusal, and the end of the session -> each with a proof, none as bearer", async () => {
    const server = await replying({ status: 401, headers: { "www-authenticate": "DPoP" } }, {});
    const key = createKey();
    const client = clientOf({
      token: async () => boundToken("old", key),
      afterRefusal: async () => boundToken(TOKEN, key),
    });
    for (const method of ["POST", "DELETE"] as const)
      (await client.request(request(server, method))).body.destroy();
    expect(authorizations(server)).toEqual(["DPoP old", `DPoP ${TOKEN}`, `DPoP ${TOKEN}`]);
    expect(proofsOf({ ...server, asked: server.asked.slice(1) } as TestServer)).toHaveLength(2);
  });
});
