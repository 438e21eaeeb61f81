/** Owns: a whole sign-in before a real authorization server on loopback: by browser, by paste, and its ends. */

import { describe, expect, test } from "vitest";
import type { SignInStep } from "../../../../../../src/shared/protocol/session.ts";
import { readServer } from "../../../../../../workers/connection/auth/discovery/metadata.ts";
import { clientFor } from "../../../../../../workers/connection/auth/grants/client.ts";
import { readTokens } from "../../../../../../workers/connection/auth/grants/token-requests.ts";
import { SignInProblem } from "../../../../../../workers/connection/auth/model/model.ts";
import { createKey } from "../../../../../../workers/connection/auth/requests/dpop.ts";
import { recordOf } from "../../../../../../workers/connection/auth/sign-in/prepare.ts";
import { formatRecord, parseRecord } from "../../../../../../workers/connection/auth/store/record.ts";
import { known } from "../../../../../../workers/shared/json.ts";
import { authServer, contextOf, discoveredOf, publicClient } from "../grants/support.ts";
import {
  browse,
  discovered,
  lastAddress,
  pendingWith,
  recordWith,
  type TargetParts,
  type World,
  world,
} from "./support.ts";

type Opened = Extract<SignInStep, { step: "open" }>;

async function opened({ signIns, target }: World, name = "linear", parts: TargetParts = {}) {
  const aimed = target(name, parts);
  const step = await signIns.begin(aimed, {});
  if (step.step !== "open") throw new Error(JSON.stringify(step));
  return { step, target: aimed };
}

const listens = (step: Opened): Promise<boolean> =>
  browse(step.redirectUri).then(
    () => true,
    () => false,
  );

describe("by the browser", () => {
  test("the answer comes -> tokens are stored, the server connects, the page and the end say so", async () => {
    const all = await world();
    const { step, target } = await opened(all);
    expect(step).toEqual({
      step: "open",
      id: expect.any(String),
      codeGoesTo: new URL(all.server.origin).host,
      url: expect.stringContaining(`${all.server.origin}/authorize?`),
      redirectUri: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/callback\/[0-9a-f]{16}$/),
      browser: "started",
      listens: true,
      endsInMs: 300_000,
    });
    expect(all.opened).toEqual([step.url]);
    expect(all.signIns.isRunning("linear")).toBe(true);
    expect((await browse(step.url)).body).toContain("Signed in");
    expect(await all.ended()).toEqual({ ok: true, tools: 23 });
    expect(all.ends).toMatchObject([{ id: step.id, server: "linear" }]);
    expect(target.store.record).toMatchObject({
      server: "linear",
      url: "https://linear.test/mcp",
      issuer: all.server.origin,
      client: { id: "client-1", redirectUris: [step.redirectUri] },
    });
    expect(all.server.secrets).toContain(target.store.record?.access_token);
    expect(all.signIns.isRunning("linear")).toBe(false);
  });

  test("the end -> nothing listens any more", async () => {
    const all = await world();
    const { step } = await opened(all);
    await browse(step.url);
    await all.ended();
    await expect.poll(() => listens(step)).toBe(false);
  });

  test("codes, verifiers and tokens -> all are told as secrets, and none is in the log or a page", async () => {
    const all = await world();
    const { step, target } = await opened(all);
    const { body } = await browse(step.url);
    await all.ended();
    const { secrets } = all.server;
    expect(secrets).toHaveLength(4);
    expect([...target.secrets].sort()).toEqual([...secrets].sort());
    for (const secret of secrets)
      expect(`${all.written.join("\n")}${body}${JSON.stringify(all.ends)}`).not.toContain(secret);
  });

  test("a wrong state comes first -> 400, and the right answer still counts", async () => {
    const all = await world();
    const { step } = await opened(all);
    expect((await browse(`${step.redirectUri}?code=stolen-code&state=wrong`)).status).toBe(400);
    expect((await browse(step.url)).status).toBe(200);
    expect(await all.ended()).toMatchObject({ ok: true });
  });

  test("the browser asks twice for its last page -> one token request, and both pages tell the same", async () => {
    const token = Promise.withResolvers<void>();
    const all = await world({ tokenWait: token.promise });
    const { step } = await opened(all);
    const last = await lastAddress(step.url);
    const pages = [browse(last), browse(last)];
    await expect.poll(() => all.server.asked).toContain("POST /token");
    token.resolve();
    for (const page of await Promise.all(pages)) expect(page.body).toContain("Signed in");
    expect(all.server.asked.filter((line) => line === "POST /token")).toHaveLength(1);
  });

  test("a browser faster than its own start -> the step comes first, then the end", async () => {
    const order: string[] = [];
    const all = await world(
      {},
      {
        openBrowser: async (url) => {
          void browse(url).then(() => order.push("page"));
          await expect.poll(() => all.server.asked).toContain("GET /authorize");
          return "started";
        },
      },
    );
    await opened(all);
    order.push("step");
    await all.ended();
    expect(order[0]).toBe("step");
  });

  test.each<[string, Parameters<typeof world>[0], TargetParts & { renews?: true }]>([
    ["the browser answers an error before its start is known", { error: "access_denied" }, {}],
    ["the old sign-in is renewed, and the server connects at once", {}, { renews: true }],
  ])("%s -> the end is told in a later turn than the step", async (_title, odd, { renews }) => {
    const all = await world(odd, {
      openBrowser: async (url) => {
        void browse(url);
        await expect.poll(() => all.server.asked).toContain("GET /authorize");
        await new Promise((resolve) => setTimeout(resolve, 50));
        return "started";
      },
    });
    const renewed = { renew: async () => true, record: recordWith(all.server) };
    const step = await all.signIns.begin(all.target("linear", renews ? renewed : {}), {});
    // The answer passes through promises on its way to main.
    for (let passed = 0; passed < 100; passed++) await undefined;
    expect([step.step, all.ends]).toEqual([renews ? "renewed" : "open", []]);
    expect(await all.ended()).toMatchObject({ ok: renews === true });
    expect(all.ends).toMatchObject([{ id: "id" in step && step.id }]);
  });

  test.each<[string, Parameters<typeof world>[0], string, string]>([
    ["the user declines", { error: "access_denied" }, "denied", "declined"],
    ["the code is refused", { codeRefused: true }, "code-refused", "no longer accepts the code"],
    [
      "another issuer answers",
      { iss: "https://evil.test" },
      "response-issuer-wrong",
      "another authorization server",
    ],
  ])("%s -> the end and the page say so, and nothing is stored", async (_title, odd, reason, words) => {
    const all = await world(odd);
    const { step, target } = await opened(all);
    expect((await browse(step.url)).body).toContain("Not signed in");
    expect(await all.ended()).toMatchObject({
      ok: false,
      error: {
        code: "needs_auth",
        message: expect.stringContaining(words),
        data: { server: "linear", reason },
      },
    });
    expect(target.store.record).toBeUndefined();
    expect(all.server.asked.filter((line) => line === "POST /token").length).toBeLessThanOrEqual(1);
  });

  test("the store's lock is busy -> its problem is the end, and the server is not connected", async () => {
    const all = await world();
    let connects = 0;
    const { step, target } = await opened(all, "linear", { signedIn: async () => ++connects });
    target.store.failure = new SignInProblem("lock-busy", { path: "/store" });
    await browse(step.url);
    expect(await all.ended()).toMatchObject({ ok: false, error: { data: { reason: "lock-busy" } } });
    expect(connects).toBe(0);
  });

  test.each<[string, () => Promise<number | undefined>]>([
    ["does not connect", async () => undefined],
    ["fails to connect", () => Promise.reject(new Error("no route"))],
  ])("the server %s afterwards -> signed in, without a number of tools", async (_title, signedIn) => {
    const all = await world();
    const { step } = await opened(all, "linear", { signedIn });
    await browse(step.url);
    expect(await all.ended()).toEqual({ ok: true });
  });
});

describe("by paste", () => {
  test("the address -> signed in", async () => {
    const all = await world();
    const { step } = await opened(all);
    expect(await all.signIns.paste(step.id, ` ${await lastAddress(step.url)}\n`)).toBeUndefined();
    expect(await all.ended()).toEqual({ ok: true, tools: 23 });
  });

  test("the code alone -> signed in", async () => {
    const all = await world();
    const { step } = await opened(all);
    const code = new URL(await lastAddress(step.url)).searchParams.get("code") ?? "";
    expect(await all.signIns.paste(step.id, code)).toBeUndefined();
    expect(await all.ended()).toMatchObject({ ok: true });
  });

  test("the code alone where the answer names its issuer -> a sentence; then the address -> signed in", async () => {
    const all = await world();
    all.server.odd.iss = all.server.origin;
    const { step } = await opened(all);
    expect(step.redirectUri).toMatch(/\/callback$/);
    const last = await lastAddress(step.url);
    const code = new URL(last).searchParams.get("code") ?? "";
    expect(await all.signIns.paste(step.id, code)).toMatch(/more than the code/);
    expect(await all.signIns.paste(step.id, last)).toBeUndefined();
    expect(await all.ended()).toMatchObject({ ok: true });
  });

  test("wrong texts -> a sentence for each, and the sign-in waits on", async () => {
    const all = await world();
    const { step } = await opened(all);
    expect(await all.signIns.paste(step.id, "hm")).toMatch(/no code/);
    expect(await all.signIns.paste(step.id, step.url)).toMatch(/does not begin with/);
    expect(all.server.asked).not.toContain("POST /token");
    await browse(step.url);
    expect(await all.ended()).toMatchObject({ ok: true });
  });

  test("paste and browser -> the first counts, and there is one token request", async () => {
    const token = Promise.withResolvers<void>();
    const all = await world({ tokenWait: token.promise });
    const { step } = await opened(all);
    const last = await lastAddress(step.url);
    const page = browse(last);
    await expect.poll(() => all.server.asked).toContain("POST /token");
    expect(await all.signIns.paste(step.id, last)).toBeUndefined();
    token.resolve();
    expect((await page).body).toContain("Signed in");
    expect(await all.ended()).toMatchObject({ ok: true });
    expect(all.server.asked.filter((line) => line === "POST /token")).toHaveLength(1);
  });

  test("the sign-in has ended, or never was -> a sentence", async () => {
    const all = await world();
    expect(await all.signIns.paste("no-such-id", "code-1234567890")).toMatch(/has ended/);
  });

  test("a redirect URI with https -> nothing listens, and the pasted address signs in", async () => {
    const all = await world();
    const { step } = await opened(all, "linear", { plan: { redirectUri: "https://me.test/cb" } });
    expect(step).toMatchObject({ listens: false, redirectUri: "https://me.test/cb" });
    expect(await all.signIns.paste(step.id, await lastAddress(step.url))).toBeUndefined();
    expect(await all.ended()).toMatchObject({ ok: true });
  });
});

describe("the user signs in in another session meanwhile", () => {
  const LOOKS = { limits: { lookMs: 1 } };
  const ofSession = ({ server }: World, id: string) => ({
    ...recordWith(server),
    ...{ id, access_token: `access-${id}` },
  });

  /** Settles when the sign-in has looked at what is stored now, and has gone on after that. */
  const looked = ({ store }: Awaited<ReturnType<typeof opened>>["target"]): Promise<void> => {
    const { read } = store;
    const { promise, resolve } = Promise.withResolvers<void>();
    let looks = 0;
    store.read = async () => {
      if (++looks > 2) resolve();
      return read();
    };
    return promise;
  };

  test("-> signed in, nothing is stored again, and nothing listens", async () => {
    const all = await world({}, LOOKS);
    const { step, target } = await opened(all, "linear", { record: ofSession(all, "old") });
    const theirs = ofSession(all, "new");
    target.store.record = theirs;
    expect(await all.ended()).toEqual({ ok: true, tools: 23 });
    expect(target.store.record).toBe(theirs);
    await expect.poll(() => listens(step)).toBe(false);
    expect(all.server.asked).not.toContain("POST /token");
  });

  test.each([
    ["renews the old sign-in", "renewed"],
    ["signs out", undefined],
  ])("another session %s -> it waits on", async (_what, token) => {
    const all = await world({}, LOOKS);
    const { step, target } = await opened(all, "linear", { record: ofSession(all, "old") });
    target.store.record = token === undefined ? undefined : { ...ofSession(all, "old"), access_token: token };
    await looked(target);
    expect(all.ends).toEqual([]);
    await browse(step.url);
    expect(await all.ended()).toMatchObject({ ok: true });
  });

  test.each([
    ["less than the rights for which it asks", "read"],
    ["rights that nobody has named", undefined],
  ])("with %s -> it waits on, until a sign-in has them", async (_what, scope) => {
    const all = await world({}, LOOKS);
    const challenge = { scheme: "Bearer", error: "insufficient_scope", scope: "write  read" };
    const signedIn = (id: string, more: object) => ({ ...ofSession(all, id), ...more });
    const { target } = await opened(all, "linear", {
      challenge,
      record: signedIn("old", { scope: "read" }),
    });
    target.store.record = signedIn("less", known({ scope }));
    await Promise.race([looked(target), all.ended()]);
    expect(all.ends).toEqual([]);
    target.store.record = signedIn("enough", { scope: "read admin write" });
    expect(await all.ended()).toEqual({ ok: true, tools: 23 });
    expect(all.server.asked).not.toContain("POST /token");
  });
});

describe("the end without an answer", () => {
  test("cancel -> one end, cancelled, and nothing listens", async () => {
    const all = await world();
    const { step } = await opened(all);
    all.signIns.cancel(step.id);
    expect(await all.ended()).toMatchObject({ ok: false, error: { code: "cancelled" } });
    all.signIns.cancel(step.id);
    await expect.poll(() => listens(step)).toBe(false);
    expect(all.ends).toHaveLength(1);
  });

  test("the time is over -> timed-out", async () => {
    const all = await world({}, { limits: { flowMs: 1 } });
    const { step } = await opened(all);
    expect(await all.ended()).toMatchObject({
      ok: false,
      error: { code: "needs_auth", data: { reason: "timed-out" } },
    });
    expect(await all.signIns.paste(step.id, "code-1234567890")).toMatch(/has ended/);
  });

  test("cancel while the code is exchanged -> cancelled, nothing is stored, and the request ends", async () => {
    const all = await world({ tokenWait: new Promise(() => undefined) });
    const { step, target } = await opened(all);
    void browse(step.url).catch(() => undefined);
    await expect.poll(() => all.server.asked).toContain("POST /token");
    all.signIns.cancel(step.id);
    expect(await all.ended()).toMatchObject({ ok: false, error: { code: "cancelled" } });
    expect(target.store.record).toBeUndefined();
  });

  test("the token endpoint never answers -> timed-out", async () => {
    const all = await world({ tokenWait: new Promise(() => undefined) });
    const { step } = await opened(all);
    all.limits.talkMs = 1;
    void browse(step.url).catch(() => undefined);
    expect(await all.ended()).toMatchObject({ ok: false, error: { data: { reason: "timed-out" } } });
  });

  test("cancel once the tokens are there -> the user is signed in", async () => {
    const connected = Promise.withResolvers<number>();
    const all = await world();
    const { step, target } = await opened(all, "linear", { signedIn: () => connected.promise });
    await browse(step.url);
    all.signIns.cancel(step.id);
    connected.resolve(5);
    expect(await all.ended()).toEqual({ ok: true, tools: 5 });
    expect(target.store.record).toBeDefined();
  });

  test("the server is edited -> its sign-in ends, another server's goes on", async () => {
    const all = await world();
    await opened(all, "linear");
    const { step } = await opened(all, "notion");
    all.signIns.abandon("linear");
    expect(await all.ended()).toMatchObject({ ok: false, error: { code: "cancelled" } });
    expect([all.signIns.isRunning("linear"), all.signIns.isRunning("notion")]).toEqual([false, true]);
    await browse(step.url);
    expect(await all.ended(2)).toMatchObject({ ok: true });
  });

  test("close -> all end, nothing listens, and what is being stored is stored", async () => {
    const all = await world();
    const { step: one } = await opened(all, "linear");
    const storing = Promise.withResolvers<void>();
    const { step: two, target } = await opened(all, "notion");
    const { locked } = target.store;
    let inLock = false;
    target.store.locked = async (work, signal) => {
      inLock = true;
      await storing.promise;
      return locked(work, signal);
    };
    void browse(two.url).catch(() => undefined);
    await expect.poll(() => inLock).toBe(true);
    let isClosed = false;
    const closed = all.signIns.close().then(() => {
      isClosed = true;
    });
    await expect.poll(() => listens(one)).toBe(false);
    expect(isClosed).toBe(false);
    storing.resolve();
    await closed;
    expect(target.store.record).toBeDefined();
    expect(await Promise.all([listens(one), listens(two)])).toEqual([false, false]);
    expect(all.ends).toHaveLength(2);
  });
});

describe("a client that the authorization server may have forgotten", () => {
  const END: Record<string, (all: World, step: Opened) => unknown> = {
    "is cancelled": ({ signIns }, { id }) => signIns.cancel(id),
    fails: (_all, { url }) => browse(url),
  };

  test.each(Object.keys(END))(
    "the sign-in with a stored client %s -> the next one registers anew",
    async (end) => {
      const all = await world({ error: "access_denied" });
      const { step: first, target } = await opened(all);
      const record = recordWith(all.server, { redirectUris: [first.redirectUri] });
      all.signIns.cancel(first.id);
      await expect.poll(() => listens(first)).toBe(false);
      expect(all.server.registered).toHaveLength(1);
      const second = await opened(all, "linear", { record });
      expect(second.step).toMatchObject({
        redirectUri: first.redirectUri,
        url: expect.stringContaining("old-client"),
      });
      await END[end]?.(all, second.step);
      await all.ended(2);
      expect(all.server.registered).toHaveLength(1);
      const third = await opened(all, "linear", { record });
      expect(third.step.url).toContain("client_id=client-2");
      expect(target.secrets).toHaveLength(1);
    },
  );

  test("a new client's sign-in is cancelled -> the stored client counts as before", async () => {
    const all = await world();
    const { step } = await opened(all);
    all.signIns.cancel(step.id);
    const record = recordWith(all.server, { redirectUris: ["http://127.0.0.1:1/other"] });
    const { step: next } = await opened(all, "linear", { record });
    all.signIns.cancel(next.id);
    const known = recordWith(all.server, { redirectUris: [next.redirectUri] });
    await expect.poll(() => listens(next)).toBe(false);
    expect((await opened(all, "linear", { record: known })).step.url).toContain("old-client");
  });
});

const TARGET = { server: "linear", url: new URL("https://linear.test/mcp") };
const TOKENS = { access_token: "a", token_type: "bearer" };
const LEAST = {
  id: expect.any(String),
  version: 1,
  server: "linear",
  url: "https://linear.test/mcp",
  issuer: "https://as.test",
  tokenEndpoint: "https://as.test/token",
  client: { id: "c", method: "none", kind: "dynamic" },
  access_token: "a",
  token_type: "bearer",
  obtainedAt: 7,
};

test("the least answer -> the least record, without keys that are undefined", () => {
  expect(recordOf(TARGET, pendingWith(), TOKENS, 7)).toStrictEqual(LEAST);
});

test("the fullest answer -> everything is in the record", () => {
  const pending = pendingWith({
    scope: "read write",
    discovered: {
      ...discovered({ revocation_endpoint: "https://as.test/revoke" }),
      resource: "https://linear.test/mcp",
      acceptedIssuer: "https://as.test",
    },
  });
  const tokens = { ...TOKENS, refresh_token: "r", expiresAt: 9, scope: "read" };
  expect(recordOf(TARGET, pending, tokens, 7)).toStrictEqual({
    ...LEAST,
    acceptedIssuer: "https://as.test",
    resource: "https://linear.test/mcp",
    revocationEndpoint: "https://as.test/revoke",
    refresh_token: "r",
    expiresAt: 9,
    requestedScope: "read write",
    scope: "read",
  });
});

test("tokens that are bound to a key -> the key is in the record, and its version shuts older programs out", () => {
  const dpopKey = createKey();
  const bound = { ...TOKENS, token_type: "DPoP" };
  const record = recordOf(TARGET, pendingWith({ dpopKey }), bound, 7);
  expect(record).toStrictEqual({ ...LEAST, version: 2, token_type: "DPoP", dpopKey });
  expectStored(record);
});

test("an answer without scope -> the requested one was granted", () => {
  expect(recordOf(TARGET, pendingWith({ scope: "read" }), TOKENS, 7)).toMatchObject({ scope: "read" });
});

test("metadata without a token endpoint -> no-endpoint", () => {
  const metadata = { issuer: "https://as.test" };
  const pending = pendingWith({ discovered: { metadata, foundAt: metadata.issuer } });
  expect(() => recordOf(TARGET, pending, TOKENS, 7)).toThrow(SignInProblem);
});

const WELL = {
  issuer: "https://as.test",
  authorization_endpoint: "https://as.test/authorize",
  token_endpoint: "https://as.test/token",
};

/** Fails if a field of the record would be lost: the store refuses to write such a record. */
function expectStored(record: ReturnType<typeof recordOf>): void {
  expect(parseRecord(formatRecord(record))).toEqual({ value: record });
}

test.each<[string, object]>([
  ["that never ends, as Java writes it", { client_secret_expires_at: Number("9223372036854775807") }],
  ["that ends at an infinite time", { client_secret_expires_at: 1e308 }],
  ["of 4,000 characters that JSON escapes", { client_secret: '"'.repeat(4_000) }],
  ["of a client whose id has 2,000 spaces", { client_id: " ".repeat(2_000) }],
])("a secret %s -> the client is stored", async (_condition, more) => {
  const answer = { client_id: "new", client_secret: "s", client_secret_expires_at: 0, ...more };
  const server = await authServer(() => ({ status: 201, body: answer }));
  const redirectUri = "http://127.0.0.1:1/callback";
  const discovered = discoveredOf(server.metadata);
  const wanted = { discovered, redirectUri, scope: undefined, stored: undefined, reuse: true };
  const client = await clientFor(wanted, contextOf());
  expectStored(recordOf(TARGET, pendingWith({ discovered, client }), TOKENS, 7));
});

test.each<[string, object]>([
  ["a refresh token with spaces", { refresh_token: "a b c" }],
  ["a life of 1e308 s", { expires_in: 1e308 }],
  ["a life of a moment", { expires_in: 1e-300 }],
  ["a life of minus 1 s", { expires_in: -1 }],
  ["a life that is no number", { expires_in: "NaN" }],
  ["10,000 scopes", { scope: Array.from({ length: 10_000 }, (_, i) => `scope-${i}`).join(" ") }],
  ["scopes with quotes and control characters", { scope: 'a" b\u0007 c' }],
])("%s -> the tokens are stored", async (_condition, more) => {
  const text = JSON.stringify({ access_token: "a", token_type: "bearer", ...more });
  const tokens = await readTokens(WELL, { client_id: "c" }, text);
  const pending = pendingWith({ client: publicClient, discovered: discoveredOf(WELL) });
  expectStored(recordOf(TARGET, pending, tokens, 7));
});

test.each(["https:as.test/token", "https:\\\\as.test\\token", "https:/as.test/token"])(
  "%s as the token endpoint -> refused before the user signs in",
  (token_endpoint) => {
    const plan = { grantType: "authorization_code" } as const;
    const context = { from: new URL(WELL.issuer), server: TARGET.url, plan, onNote: () => undefined };
    expect(() => readServer({ ...WELL, token_endpoint }, context)).toThrow(/bad-answer/);
  },
);
