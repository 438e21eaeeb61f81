/**
 * Owns: servers of a company, which one sign-in at its identity provider serves (SEP-990): the sign-in, its renewal and its end in
 * all sessions, and what the user reads if the company or a server says no.
 */
import { stat, writeFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { DEVICE_GRANT } from "../support/authorization-server.ts";
import { type Policy, startCompany } from "../support/identity-provider.ts";
import { startOidc } from "../support/oidc.ts";
import { signInAs, type User } from "../support/signing-in.ts";
import { createPlace, forRows, type Started, start, textOf } from "../worker/support.ts";
import { endedIn, expectNoSecret, onCleanup, stored } from "./support.ts";

const CODE = "authorization_code";
const REFRESH = "refresh_token";
const EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange";
const BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const MODE = 0o777;
/** In seconds since 1970: any time that is over. */
const LONG_AGO = 1_000_000_000;

/** `settings`: in the place of those that name the identity provider. */
async function company(more: { settings?: Record<string, unknown> } = {}) {
  const started = await startCompany();
  const { idp, servers, mcpServers } = started;
  const place = await createPlace();
  const settings = more.settings ?? started.settings;
  /** A session of the same user, beside others. */
  const session = (): Promise<Started> => start(mcpServers, { place, settings });
  const at = await session();
  return {
    ...{ ...started, ...servers, at, beside: session },
    host: new URL(idp.server.issuer).host,
    signIn: (server = "docs", user: User = {}) =>
      signInAs(user, { runtime: at.runtime, ended: endedIn(at) }, server),
    call: async (server: string, of = at) => textOf(await of.call(server, "echo", { a: 1 })),
    says: async (server: string, of = at) => {
      const { message, remedy } = await of.failedCall(server, "echo");
      return `${message} ${remedy}`;
    },
  };
}

const ANSWER = '{"a":1}';

const oneCompany = forRows(() => company());
/** One company and session for the sign-ins that come to nothing. Nobody is signed in when a test begins. */
async function refusing() {
  const shared = await oneCompany();
  const { idp, docs, at } = shared;
  idp.policy = {};
  await at.runtime.ask("signOut", { server: "docs" });
  const [atIdp, atDocs] = [idp.server.grants.length, docs.trusted.grants.length];
  return {
    ...shared,
    /** What the identity provider, and the server's authorization server, have granted in this test. */
    granted: () => [idp.server.grants.slice(atIdp), docs.trusted.grants.slice(atDocs)],
  };
}

test("one sign-in at the company -> all its servers work, and no server shows a page of its own", async () => {
  const { idp, docs, wiki, at, host, secrets, signIn, call, says } = await company();
  expect(await says("docs")).toBe(
    `docs: it needs a sign-in (at the identity provider ${host}). Run /mcp auth docs in Pi.`,
  );
  expect(await says("wiki")).toContain("it needs a sign-in");
  expect(await at.settled("wiki")).toMatchObject({ state: "needs-auth", signIn: { state: "needed" } });
  const { result, opened, page } = await signIn();
  expect(result).toEqual({ ok: true, tools: 1 });
  expect(opened?.url).toContain(`${idp.server.origin}/authorize?`);
  expect(opened?.codeGoesTo).toBe(host);
  expect(page?.status).toBe(200);
  // It connects by itself, and so its tools are known.
  await at.event("server", ({ status }) => status.name === "wiki" && status.state === "connected");
  expect([await call("docs"), await call("wiki")]).toEqual([ANSWER, ANSWER]);
  const signedIn = { state: "signed-in", renews: true, through: host };
  expect(await at.settled("wiki")).toMatchObject({ state: "connected", signIn: signedIn });
  expect(idp.server.grants).toEqual([CODE, EXCHANGE, EXCHANGE]);
  for (const { trusted, guarded: server } of [docs, wiki]) {
    expect(trusted.grants).toEqual([BEARER]);
    expect(trusted.asked("/authorize")).toEqual([]);
    const exchange = idp.server.asked("/token").find(({ form }) => form.get("audience") === trusted.issuer);
    expect(exchange?.form.get("resource")).toBe(server.url);
  }
  // Of the answer of the identity provider only the identity is kept.
  const [file, ...others] = await stored(at);
  expect(others).toEqual([]);
  expect(file?.record).toMatchObject({ server: "settings.identityProvider", issuer: idp.server.issuer });
  expect(idp.issues.secrets.has(String(file?.record.access_token))).toBe(true);
  expect((await stat(file?.path ?? "")).mode & MODE).toBe(0o600);
  await expectNoSecret({ at, place: at }, secrets());
});

test("an identity that has ended -> it is renewed once, by one session for all, and the server gets a token", async () => {
  const { idp, docs, signIn, beside, call } = await company();
  idp.policy = { identity: { exp: LONG_AGO } };
  // The sign-in is good, and the identity that comes with it has ended before it is used.
  const signing = signIn();
  await signing;
  expect(idp.server.grants.slice(0, 2)).toEqual([CODE, REFRESH]);
  idp.policy = {};
  expect(await call("docs")).toBe(ANSWER);
  const before = idp.server.grants.filter((grant) => grant === REFRESH).length;
  const other = await beside();
  expect([await call("wiki"), await call("wiki", other), await call("docs", other)]).toEqual([
    ANSWER,
    ANSWER,
    ANSWER,
  ]);
  expect(idp.server.grants.filter((grant) => grant === REFRESH)).toHaveLength(before);
  expect(idp.server.book.reuses).toBe(0);
  expect(docs.trusted.asked("/authorize")).toEqual([]);
});

test.each([
  ["access_denied", "Policy 7 forbids it."],
  ["invalid_target", "Nobody knows that server."],
  ["unauthorized_client", "Pi is not allowed."],
])(
  "the company refuses the exchange with %s -> the user reads that the company does not allow it",
  async (error, why) => {
    const { idp, at, host, granted, signIn, says } = await refusing();
    idp.policy = { refuses: () => [error, why] };
    const sentence = `docs: your company does not allow it: ${why.slice(0, -1)} (at the identity provider ${host}). Ask those who manage the identity provider to allow this server for you and for Pi.`;
    expect((await signIn()).says).toBe(sentence);
    expect(await says("docs")).toBe(sentence);
    expect(granted()[1]).toEqual([]);
    // A sign-in would not help.
    expect(await at.settled("docs")).not.toHaveProperty("signIn");
    // Whoever manages it allows it: no new sign-in is needed.
    idp.policy = {};
    const again = await signIn();
    expect(again.result).toEqual({ ok: true, tools: 1 });
    expect(again.opened).toBeUndefined();
  },
);

test("the company ended the session -> it is tried to renew it once, and then the user must sign in", async () => {
  const { idp, at, host, docs, signIn, call, says } = await company();
  await signIn();
  await at.event("server", ({ status }) => status.name === "wiki" && status.state === "connected");
  const before = idp.server.grants.length;
  idp.policy = { refuses: () => ["invalid_grant", "The session has ended."] };
  docs.trusted.book.expireAll();
  expect(await says("docs")).toBe(
    `docs: your sign-in is not accepted any more: The session has ended (at the identity provider ${host}). Run /mcp auth docs in Pi. If that does not help, ask those who manage the identity provider.`,
  );
  expect(idp.server.grants.slice(before)).toEqual([EXCHANGE, REFRESH, EXCHANGE]);
  idp.policy = {};
  const { opened, result } = await signIn("wiki");
  expect([opened?.step, result.ok]).toEqual(["open", true]);
  expect(await call("docs")).toBe(ANSWER);
});

test.each<[string, Policy, RegExp]>([
  [
    "another audience",
    { jag: { aud: "https://other.example" } },
    /its assertion is for https:\/\/other\.example, and the server's/,
  ],
  ["two audiences", { jag: { aud: ["a", "b"] } }, /its assertion is for a, b, and the server's/],
  [
    "another resource",
    { jag: { resource: "https://other.example" } },
    /is for the resource https:\/\/other\.example/,
  ],
  [
    "another client",
    { jag: { client_id: "other" } },
    /is for the client other, and the clientId of the server is pi-at-docs/,
  ],
  ["another type of token", { jagType: "at+jwt" }, /its assertion is no ID-JAG/],
  ["another type in the answer", { answer: { issued_token_type: "x" } }, /its assertion is no ID-JAG/],
  ["no assertion", { answer: { access_token: "opaque" } }, /its assertion is no ID-JAG/],
])(
  "the company's assertion has %s -> it is sent to nobody, and the user reads it",
  async (_what, policy, says) => {
    const { idp, granted, signIn } = await refusing();
    idp.policy = policy;
    const { opened, says: said } = await signIn();
    expect([opened?.step, said]).toEqual(["open", expect.stringMatching(says)]);
    expect(granted()[1]).toEqual([]);
  },
);

test("a sign-out -> it ends for all servers and all sessions; the tokens are revoked", {
  tags: "thorough",
}, async () => {
  const { idp, docs, wiki, at, host, signIn, beside, call, says } = await company();
  await signIn();
  const other = await beside();
  expect([await call("wiki"), await call("docs", other)]).toEqual([ANSWER, ANSWER]);
  const { text } = await at.runtime.ask("signOut", { server: "wiki" });
  expect(text).toBe(`wiki is signed out, and so is every other server that you use through ${host}.`);
  expect(await stored(at)).toEqual([]);
  expect(idp.server.asked("/revoke").map(({ form }) => form.get("token_type_hint"))).toEqual([
    "refresh_token",
  ]);
  for (const { trusted } of [docs, wiki]) expect(trusted.asked("/revoke")).toHaveLength(1);
  for (const [server, session] of [
    ["docs", at],
    ["wiki", at],
    ["docs", other],
  ] as const)
    expect(await says(server, session)).toContain("it needs a sign-in");
  expect(await (await at.runtime.ask("signOut", { server: "wiki" })).text).toBe("wiki is not signed in.");
});

test("somebody else signs in between two calls of another session -> its next call goes out for that person", {
  tags: "thorough",
}, async () => {
  const { idp, docs, at, signIn, beside, call } = await company();
  await signIn();
  const other = await beside();
  expect(await call("docs", other)).toBe(ANSWER);
  const [first] = await stored(at);
  await at.runtime.ask("signOut", { server: "docs" });
  await signIn();
  const [second] = await stored(at);
  expect(second?.record.access_token).not.toBe(first?.record.access_token);
  const exchanged = () => {
    const asked = idp.server.asked("/token").map(({ form }) => form);
    const forDocs = asked.filter((form) => form.get("audience") === docs.trusted.issuer);
    return forDocs.map((form) => form.get("subject_token"));
  };
  const before = exchanged().length;
  const revoked = docs.trusted.asked("/revoke").length;
  expect(await call("docs", other)).toBe(ANSWER);
  expect(exchanged().slice(before)).toEqual([second?.record.access_token]);
  expect(docs.trusted.asked("/revoke")).toHaveLength(revoked + 1);
  // The same sign-in goes on with its token.
  expect(await call("docs", other)).toBe(ANSWER);
  expect(exchanged()).toHaveLength(before + 1);
});

test("oidc-provider as the identity provider -> its ID token counts, also after a renewal; it exchanges none, and the user reads it", {
  tags: "thorough",
}, async () => {
  const clientId = "pi";
  const oidc = await startOidc({
    clients: [
      {
        ...{ client_id: clientId, token_endpoint_auth_method: "none", application_type: "native" },
        grant_types: ["authorization_code", "refresh_token"],
        redirect_uris: ["http://127.0.0.1/callback"],
      },
    ],
  });
  onCleanup(() => oidc.close());
  const settings = { identityProvider: { issuer: oidc.issuer, clientId } };
  const { at, docs, signIn } = await company({ settings });
  const says = /^docs: your company does not allow it: unsupported grant_type requested \(at the identity/;
  expect((await signIn()).says).toMatch(says);
  const [first] = await stored(at);
  expect((await signIn("wiki")).says).toContain(`does not allow it`);
  const [renewed] = await stored(at);
  expect(oidc.grants).toEqual([CODE, REFRESH]);
  for (const file of [first, renewed]) {
    const { access_token: identity, issuer, expiresAt } = file?.record ?? {};
    const [, claims = ""] = String(identity).split(".");
    const { iss, aud, exp } = JSON.parse(Buffer.from(claims, "base64url").toString("utf8"));
    expect([iss, aud, exp * 1_000]).toEqual([oidc.issuer, clientId, expiresAt]);
    expect(issuer).toBe(oidc.issuer);
    expect(oidc.secrets.has(String(identity))).toBe(true);
  }
  expect(docs.trusted.grants).toEqual([]);
  await expectNoSecret({ at, place: at }, oidc.secrets);
});

test("no browser here, and the identity provider offers codes -> the user signs in at another device", {
  tags: "thorough",
}, async () => {
  const { idp, signIn, call } = await company();
  idp.server.behaviour = { ...idp.server.behaviour, device: (answer) => answer };
  const { server } = idp;
  const { says, shown } = await signIn("docs", {
    device: true,
    enter: async ({ userCode }) => expect(server.book.answerDevice(userCode, "agreed")).toBe(true),
  });
  expect(says).toBe("signed in");
  expect(shown?.codeFrom).toBe(new URL(server.issuer).host);
  expect([await call("docs"), await call("wiki")]).toEqual([ANSWER, ANSWER]);
  expect(server.grants).toEqual([DEVICE_GRANT, EXCHANGE, EXCHANGE]);
});

test("an identity that has ended, and eight calls of two sessions at once -> its refresh token is sent once", {
  tags: "thorough",
}, async () => {
  const { idp, docs, wiki, at, signIn, beside, call } = await company();
  await signIn();
  const other = await beside();
  for (const session of [at, other]) for (const name of ["docs", "wiki"]) await call(name, session);
  const [file] = await stored(at);
  await writeFile(file?.path ?? "", JSON.stringify({ ...file?.record, expiresAt: LONG_AGO * 1_000 }));
  for (const { trusted } of [docs, wiki]) trusted.book.expireAll();
  const calls = ["docs", "wiki", "docs", "wiki"].flatMap((name) => [call(name), call(name, other)]);
  expect(new Set(await Promise.all(calls))).toEqual(new Set([ANSWER]));
  expect(idp.server.grants.filter((grant) => grant === REFRESH)).toEqual([REFRESH]);
  expect(idp.server.book.reuses).toBe(0);
});

test("the identity provider sends no ID token -> the user reads it, and nothing is exchanged", async () => {
  const { idp, host, granted, signIn } = await refusing();
  idp.policy = { identity: false };
  expect((await signIn()).says).toBe(
    `docs: http://${host}/token does not say who you are (it sent no id_token) (at the identity provider ${host}). Run /mcp auth docs in Pi. The scope must hold openid.`,
  );
  expect(granted()).toEqual([[CODE], []]);
});

test("the settings name no identity provider -> the error says where it is missing", async () => {
  const { says } = await company({ settings: {} });
  expect(await says("docs")).toBe(
    "docs: settings.identityProvider cannot be used: it is missing. Correct it in mcp.json.",
  );
});
