/** Owns: the token of a server without a user, with a real server on loopback that is its own authorization server. */
import { expect, onTestFinished, test } from "vitest";
import { createAuthRequests } from "../../../../../../workers/connection/auth/requests/requests.ts";
import { createMachine } from "../../../../../../workers/connection/auth/tokens/refresh.ts";
import { createHttpClient } from "../../../../../../workers/connection/web/client.ts";
import { serve } from "../../../../../support/http-server.ts";

const signal = new AbortController().signal;

/** The token endpoint issues `access-1`, `access-2` and so on, each for an hour. */
async function machineOf() {
  const server = await serve(({ http }, response, nth) => {
    if (http !== "POST") return response.writeHead(404).end();
    const answer = { access_token: `access-${nth + 1}`, token_type: "Bearer", expires_in: 3_600 };
    return response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answer));
  });
  const client = createHttpClient({});
  onTestFinished(() => client.close());
  const url = new URL(server.url);
  const requests = createAuthRequests({ client, server: url, signal });
  const secrets: string[] = [];
  const clock = { nowMs: 1_000_000_000 };
  const plan = {
    grantType: "client_credentials",
    clientRegistration: "auto",
    clientId: "ci",
    clientSecret: "pw",
  } as const;
  const machine = createMachine(
    {
      server: "s",
      url,
      grant: async () => ({ plan, requests, onNote: () => undefined }),
      onSecret: (secret) => secrets.push(secret),
      nowMs: () => clock.nowMs,
    },
    () => undefined,
  );
  return { machine, secrets, server };
}

test("a server that has not asked for a token -> none, and nothing is asked", async () => {
  const { machine, server } = await machineOf();
  expect(await machine.token(signal)).toBeUndefined();
  expect(server.log).toEqual([]);
});

test("ten refusals at once -> one token for all, which no text may show", async () => {
  const { machine, secrets } = await machineOf();
  const ten = Array.from({ length: 10 }, () => machine.renewed(undefined, signal));
  expect(new Set(await Promise.all(ten))).toEqual(new Set(["access-1"]));
  expect(secrets).toEqual(["access-1"]);
  expect(await machine.token(signal)).toBe("access-1");
});

test("the token is refused -> another one, which no text may show either", async () => {
  const { machine, secrets } = await machineOf();
  await machine.renewed(undefined, signal);
  expect(await machine.renewed("access-1", signal)).toBe("access-2");
  expect(secrets).toEqual(["access-1", "access-2"]);
});
