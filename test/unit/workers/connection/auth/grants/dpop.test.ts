/** Owns: requests for tokens that are bound to a key (RFC 9449), with a server that checks each proof. */
import { generateKeyPairSync } from "node:crypto";
import { describe, expect, onTestFinished, test } from "vitest";
import type { GrantContext } from "../../../../../../workers/connection/auth/grants/ask.ts";
import { beginAuthorization } from "../../../../../../workers/connection/auth/grants/authorize.ts";
import {
  finishAuthorization,
  machineTokens,
  refreshTokens,
} from "../../../../../../workers/connection/auth/grants/token-requests.ts";
import type { TokenAnswer } from "../../../../../../workers/connection/auth/model/model.ts";
import {
  createKey,
  PROOF_REPEATS,
  thumbprintOf,
} from "../../../../../../workers/connection/auth/requests/dpop.ts";
import { createAuthRequests } from "../../../../../../workers/connection/auth/requests/requests.ts";
import { createHttpClient } from "../../../../../../workers/connection/web/client.ts";
import { checkProof, type Proof } from "../../../../../support/dpop.ts";
import {
  type Answering,
  type AuthServer,
  authServer,
  contextOf,
  discoveredOf,
  problemOf,
  publicClient,
  recordOf,
} from "./support.ts";

const BOUND = { access_token: "new-access", token_type: "DPoP" };
const REDIRECT = "http://127.0.0.1:3118/callback";
const { privateKey } = generateKeyPairSync("ec", {
  namedCurve: "P-256",
  privateKeyEncoding: { type: "pkcs8", format: "pem" },
  publicKeyEncoding: { type: "spki", format: "pem" },
});

const contextFor = (server: AuthServer, plan: Parameters<typeof contextOf>[0] = {}): GrantContext => {
  const client = createHttpClient({});
  onTestFinished(() => client.close());
  const { signal } = new AbortController();
  return {
    ...contextOf(plan),
    requests: createAuthRequests({ client, server: new URL(server.issuer), signal }),
  };
};

const proofsOf = (server: AuthServer): Proof[] =>
  server.asked.map(({ path, headers }) =>
    checkProof({ method: "POST", url: `${server.issuer}${path}`, headers }),
  );

async function byCode(server: AuthServer): Promise<TokenAnswer> {
  const context = contextFor(server);
  const discovered = discoveredOf(server.metadata, { bindsTokens: true });
  const asked = { discovered, client: publicClient, redirectUri: REDIRECT, scope: undefined };
  const pending = await beginAuthorization(asked, context);
  const parameters = new URLSearchParams({ code: "code-1", state: pending.state });
  return finishAuthorization(pending, { parameters }, context);
}

const byRefresh = (server: AuthServer): Promise<TokenAnswer> =>
  refreshTokens(recordOf(server, { version: 2, dpopKey: createKey() }), contextFor(server));

const byMachine = (server: AuthServer): Promise<TokenAnswer> => {
  const plan = { grantType: "client_credentials", clientId: "ci", privateKey } as const;
  const asked = { discovered: discoveredOf(server.metadata), scope: undefined };
  return machineTokens(asked, { ...contextFor(server, plan), dpopKey: createKey() });
};

const GRANTS = [
  ["authorization_code", byCode],
  ["refresh_token", byRefresh],
  ["client_credentials", byMachine],
] as const;

describe.each(GRANTS)("section 5, %s", (_grant, ask) => {
  test("the request has a proof without ath, and the answer is bound", async () => {
    const server = await authServer(() => ({ body: BOUND }));
    expect(await ask(server)).toEqual(BOUND);
    expect(proofsOf(server).map(({ claims }) => [claims.htm, claims.ath])).toEqual([["POST", undefined]]);
    expect(server.asked[0]?.headers.authorization).toBeUndefined();
  });

  test.each([
    ["Bearer", { token_type: "Bearer" }],
    ["no type", { token_type: undefined }],
  ])("the answer is %s -> refused, once", async (_type, more) => {
    const server = await authServer(() => ({ body: { ...BOUND, ...more } }));
    const url = `${server.issuer}/token`;
    expect(await problemOf(ask(server))).toMatchObject({ kind: "not-bound", facts: { url } });
    expect(server.asked).toHaveLength(1);
  });
});

const refusing =
  (...nonces: (string | undefined)[]): Answering =>
  (_asked, nth) => {
    const nonce = nonces[Math.min(nth, nonces.length - 1)];
    return {
      status: 400,
      headers: nonce === undefined ? {} : { "dpop-nonce": nonce },
      body: { error: "use_dpop_nonce" },
    };
  };
const refusingFirst =
  (nonce: string): Answering =>
  (asked, nth) =>
    nth === 0 ? refusing(nonce)(asked, nth) : { body: BOUND };

describe("section 8, a nonce of the authorization server", () => {
  test.each(GRANTS)(
    "%s: use_dpop_nonce -> once more, with the nonce and another proof",
    async (_grant, ask) => {
      const server = await authServer(refusingFirst("n1"));
      expect(await ask(server)).toEqual(BOUND);
      const proofs = proofsOf(server);
      expect(proofs.map(({ claims }) => claims.nonce)).toEqual([undefined, "n1"]);
      expect(new Set(proofs.map(({ claims }) => claims.jti)).size).toBe(2);
      expect(new Set(proofs.map(({ jkt }) => jkt)).size).toBe(1);
    },
  );

  test("private_key_jwt -> the repetition has an assertion of its own (RFC 7523, section 3, jti)", async () => {
    const server = await authServer(refusingFirst("n1"));
    await byMachine(server);
    const assertions = server.asked.map(({ form }) => form.client_assertion);
    expect(assertions.every((one) => one !== undefined)).toBe(true);
    expect(new Set(assertions).size).toBe(2);
  });

  test("a nonce in the answer with the tokens -> the next renewal holds it", async () => {
    const server = await authServer(() => ({ headers: { "dpop-nonce": "n1" }, body: BOUND }));
    const record = recordOf(server, { version: 2, dpopKey: createKey() });
    const context = contextFor(server);
    for (const _ of [1, 2]) await refreshTokens(record, context);
    expect(proofsOf(server).map(({ claims }) => claims.nonce)).toEqual([undefined, "n1"]);
  });

  test.each<[string, (string | undefined)[], requests: number]>([
    ["the same nonce for ever", ["n1"], 2],
    ["another nonce each time", ["n1", "n2", "n3", "n4", "n5"], 1 + PROOF_REPEATS],
    ["no nonce", [undefined], 1],
    ["a nonce with a space", ["a b"], 1],
    ["a nonce of 3,000 characters", ["n".repeat(3_000)], 1],
  ])("%s -> the problem, after $2 requests", async (_name, nonces, requests) => {
    const server = await authServer(refusing(...nonces));
    expect(await problemOf(byRefresh(server))).toMatchObject({
      kind: "proof-refused",
      facts: { url: `${server.issuer}/token`, error: "use_dpop_nonce" },
    });
    expect(server.asked).toHaveLength(requests);
  });

  test("a nonce of 1 MB -> unreachable: Node reads no such header", async () => {
    const server = await authServer(refusing("n".repeat(1_000_000)));
    expect(await problemOf(byRefresh(server))).toMatchObject({ kind: "unreachable" });
    expect(server.asked).toHaveLength(1);
  });

  test("a clock that is an hour ahead -> once more by its time", async () => {
    const date = new Date(Date.now() + 3_600_000).toUTCString();
    const server = await authServer((_asked, nth) =>
      nth === 0
        ? { status: 400, headers: { date }, body: { error: "invalid_dpop_proof" } }
        : { headers: { date }, body: BOUND },
    );
    expect(await byRefresh(server)).toEqual(BOUND);
    const late = server.asked.map(({ headers }) => {
      const [, claims = ""] = String(headers.dpop).split(".");
      const { iat } = JSON.parse(Buffer.from(claims, "base64url").toString()) as { iat: number };
      return Math.round((iat * 1_000 - Date.now()) / 3_600_000) || 0;
    });
    expect(late).toEqual([0, 1]);
  });

  test("use_dpop_nonce although no proof was sent -> the problem, once", async () => {
    const server = await authServer(refusing("n1"));
    const asking = refreshTokens(recordOf(server), contextFor(server));
    expect(await problemOf(asking)).toMatchObject({ kind: "proof-refused" });
    expect(server.asked).toHaveLength(1);
  });
});

describe("section 10, the code is for one key", () => {
  const beginning = async (bindsTokens: boolean) => {
    const server = await authServer(() => ({ body: BOUND }), {
      authorization_endpoint: "https://as.example/authorize?dpop_jkt=theirs",
    });
    const discovered = discoveredOf(server.metadata, bindsTokens ? { bindsTokens } : {});
    const asked = { discovered, client: publicClient, redirectUri: REDIRECT, scope: undefined };
    const pending = await beginAuthorization(asked, contextOf());
    return { pending, jkt: new URL(pending.url).searchParams.getAll("dpop_jkt") };
  };

  test("tokens are to be bound -> dpop_jkt is the thumbprint of a new key for each sign-in", async () => {
    const [one, other] = [await beginning(true), await beginning(true)];
    for (const { pending, jkt } of [one, other])
      expect(jkt).toEqual([pending.dpopKey && thumbprintOf(pending.dpopKey)]);
    expect(one.jkt).not.toEqual(other.jkt);
  });

  test("otherwise -> no key and no dpop_jkt, not even that of the endpoint", async () => {
    const { pending, jkt } = await beginning(false);
    expect([pending.dpopKey, jkt]).toEqual([undefined, []]);
  });
});
