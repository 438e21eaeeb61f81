/**
 * Owns: tokens that are bound to a key (RFC 9449), between a certified authorization server and a server that checks each
 * proof, with nonces of both.
 */
import { expect, test } from "vitest";
import { start, textOf } from "../worker/support.ts";
import {
  begin,
  expectNoSecret,
  oidcStory,
  SERVER,
  saysOfCall,
  signedIn,
  theStored,
  writeGiven,
} from "./support.ts";

type Bound = Awaited<ReturnType<typeof oidcStory>>;

/** Refusals of the authorization server other than that it wants its nonce. */
const refusals = ({ oidc }: Pick<Bound, "oidc">): string[] =>
  oidc.refusals.filter((error) => error !== "use_dpop_nonce");

const keyOf = async ({ place }: Pick<Bound, "place">): Promise<string> =>
  ((await theStored(place)).record.dpopKey as { d: string }).d;

test("sign-in, calls, renewals, another process and sign-out -> each request has a proof of its own", async () => {
  const story = await oidcStory({ nonces: true, binding: { nonceUses: 10 } });
  const { oidc, at, place, signIn, guarded } = story;
  expect((await signIn()).says).toBe("signed in");
  expect((await theStored(place)).record).toMatchObject({ version: 2, token_type: "DPoP" });
  const key = await keyOf(story);
  for (const nth of [1, 2]) {
    const { record } = await theStored(place);
    await (await oidc.provider.AccessToken.find(String(record.access_token)))?.destroy();
    expect(textOf(await at.call(SERVER, "echo", { nth }))).toBe(`{"nth":${nth}}`);
  }
  const { servers } = await at.runtime.ask("status", {});
  expect(servers[0]?.signIn).toMatchObject({ state: "signed-in", renews: true, isBound: true });
  await at.runtime.stop();

  const next = await start({ [SERVER]: { url: guarded.url } }, { place });
  expect(textOf(await next.call(SERVER, "echo", { a: 1 }))).toBe('{"a":1}');
  expect(await keyOf(story)).toBe(key);
  expect(oidc.grants).toEqual(["authorization_code", "refresh_token", "refresh_token"]);
  expect(refusals(story)).toEqual([]);
  expect(guarded.proofs.size).toBeGreaterThan(5);
  const sent = guarded.requests
    .map(({ headers }) => headers.authorization)
    .filter((text) => text !== undefined);
  expect(sent.filter((text) => !text.startsWith("DPoP "))).toEqual([]);
  await next.runtime.ask("signOut", { server: SERVER });
  expect(oidc.revoked).toBe(1);
  await expectNoSecret({ at: next, place }, [...oidc.secrets, key]);
});

test("the server asks for no bound tokens, although the authorization server offers them -> bearer tokens", {
  tags: "thorough",
}, async () => {
  const { oidc, signIn, place } = await oidcStory();
  const published = await fetch(`${oidc.issuer}/.well-known/openid-configuration`);
  expect(await published.json()).toHaveProperty("dpop_signing_alg_values_supported");
  expect((await signIn()).says).toBe("signed in");
  expect((await theStored(place)).record).toMatchObject({ version: 1, token_type: "Bearer" });
});

test("a server without a user -> its tokens are bound, to one key in all renewals", async () => {
  const client = {
    client_id: "ci",
    client_secret: "a-secret-of-ci",
    grant_types: ["client_credentials"],
    redirect_uris: [],
    response_types: [],
    token_endpoint_auth_method: "client_secret_basic",
  };
  const story = await oidcStory({
    nonces: true,
    clients: [client],
    binding: { nonceUses: 10 },
    entry: {
      oauth: {
        grantType: "client_credentials",
        clientId: "ci",
        clientSecret: client.client_secret,
        scope: "read",
      },
    },
  });
  const { oidc, at, place } = story;
  expect(textOf(await at.call(SERVER, "echo", { a: 1 }))).toBe('{"a":1}');
  const [first = ""] = oidc.secrets;
  await (await oidc.provider.ClientCredentials.find(first))?.destroy();
  await Promise.all([1, 2, 3].map((a) => at.call(SERVER, "echo", { a })));
  expect(oidc.grants).toEqual(["client_credentials", "client_credentials"]);
  const [, second = ""] = oidc.secrets;
  expect(await oidc.boundTo(second)).toMatch(/^[\w-]{43}$/);
  expect(refusals(story)).toEqual([]);
  await expectNoSecret({ at, place }, oidc.secrets);
});

test("the server begins to want bound tokens -> one sentence, and a sign-in mends it", async () => {
  const story = await oidcStory();
  const { at, oidc, guarded, signIn } = story;
  await signIn();
  expect(textOf(await at.call(SERVER, "echo", { a: 1 }))).toBe('{"a":1}');
  guarded.protection.binding = { boundTo: oidc.boundTo };
  expect(await saysOfCall({ at, name: SERVER })).toBe(
    "web: it takes only tokens that are bound to a key (DPoP). Run /mcp auth web in Pi.",
  );
  expect((await signIn()).says).toBe("signed in");
  expect(textOf(await at.call(SERVER, "echo", { a: 2 }))).toBe('{"a":2}');
  expect(oidc.grants).toEqual(["authorization_code", "authorization_code"]);
});

test("a server that wants bound tokens, and an authorization server without them -> told before a browser opens", async () => {
  const story = await begin({ protection: { binding: { boundTo: async () => undefined } } });
  const { says, opened } = await story.signIn();
  expect(says).toBe(
    `web: it asks for tokens that are bound to a key (DPoP), and ${story.trusted.issuer} offers none with ES256. Only its operator can change that.`,
  );
  expect([opened, story.trusted.book.registrations]).toEqual([undefined, 0]);
});

test("a bearer token in the place of a bound one -> the sign-in fails, and nothing is stored or sent", async () => {
  const story = await begin({
    behaviour: { metadata: (answer) => ({ ...answer, dpop_signing_alg_values_supported: ["ES256"] }) },
    protection: { binding: { boundTo: async () => undefined } },
  });
  const { says } = await story.signIn();
  expect(says).toBe(
    `web: ${story.trusted.origin}/token gave a token that is not bound to the key of the sign-in (DPoP). The token is not used. Only the user can decide to take such tokens: "dpop": false in oauth.`,
  );
  await expect(theStored(story.place)).rejects.toThrow("0 sign-ins");
  const sent = story.guarded.requests.flatMap(({ headers }) => headers.authorization ?? []);
  expect(sent).toEqual([]);
});

test("oauth.dpop is set later -> neither the bearer sign-in nor tokens.json is sent any more", {
  tags: "thorough",
}, async () => {
  const story = await signedIn();
  await writeGiven(story, JSON.stringify({ access_token: "given-token" }));
  const next = await story.again();
  expect(textOf(await next.at.call(SERVER, "echo", { a: 1 }))).toBe('{"a":1}');
  await next.at.runtime.stop();
  const before = story.guarded.requests.length;
  const entry = { url: story.guarded.url, oauth: { dpop: true } };
  const at = await start({ [SERVER]: entry }, { place: story.place });
  expect(await saysOfCall({ at, name: SERVER })).toBe(
    "web: it takes only tokens that are bound to a key (DPoP). Run /mcp auth web in Pi.",
  );
  const sent = story.guarded.requests.slice(before).flatMap(({ headers }) => headers.authorization ?? []);
  expect(sent).toEqual([]);
});
