/**
 * Owns: sign-ins with a code for another device (RFC 8628) and with a client metadata document through the packed worker: a
 * certified server, an odd one, and what the user reads at the end.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Behaviour } from "../support/authorization-server.ts";
import { browse } from "../support/browser.ts";
import { sendJson } from "../support/recording-server.ts";
import type { User } from "../support/signing-in.ts";
import { root, textOf } from "../worker/support.ts";
import {
  expectNoSecret,
  oidcStory,
  SERVER,
  type StoryBeside,
  saysOfCall,
  sideBySide,
  storedOf,
  theStored,
} from "./support.ts";

const DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code";
const offering = (more: Record<string, unknown> = {}, rest: Behaviour = {}) => ({
  behaviour: { device: (answer: Record<string, unknown>) => ({ ...answer, ...more }), ...rest },
});
/** The entry wants the code, so that nothing is signed in to with a link. */
const always = (more: Record<string, unknown> = {}, rest: Behaviour = {}) => ({
  ...offering(more, rest),
  entry: { oauth: { deviceCode: true } },
});
const refuses =
  (error: string): NonNullable<NonNullable<Behaviour["answer"]>["token"]> =>
  ({ form }, response) =>
    form.get("grant_type") === DEVICE_GRANT && sendJson(response, 400, { error });

const unauthorized: NonNullable<NonNullable<Behaviour["answer"]>["device"]> = (_asked, response) =>
  sendJson(response, 400, { error: "unauthorized_client" });

/** One worker for all. No browser can be opened in it. */
const story = sideBySide({
  usual: { ...offering(), protection: { challengeScope: "read" } },
  again: offering(),
  never: { ...offering(), entry: { oauth: { deviceCode: false } } },
  none: {},
  "wanted-of-none": {},
  "wanted-and-refused": offering({}, { answer: { device: unauthorized } }),
  "wanted-after-all": { ...offering(), entry: { oauth: { deviceCode: false } } },
  cancelled: offering(),
  declined: offering(),
  expired: offering({}, { answer: { token: refuses("expired_token") } }),
  late: offering({ expires_in: 1 }),
  unknown: offering({}, { answer: { token: refuses("invalid_grant") } }),
  refused: offering({}, { answer: { device: unauthorized } }),
  elsewhere: offering({ verification_uri: "https://accounts.bank.example/device" }),
  "elsewhere-always": always({ verification_uri: "https://accounts.bank.example/device" }),
  odd: always({ verification_uri: "javascript:alert(1)" }),
  wider: offering({}, { tokens: (answer) => ({ ...answer, scope: "read admin" }) }),
  "in-the-open": offering(
    {},
    { metadata: (usual) => ({ ...usual, device_authorization_endpoint: "http://auth.example.test/device" }) },
  ),
});

const agree = ({ trusted }: StoryBeside): User => ({
  enter: async ({ userCode }) => expect(trusted.book.answerDevice(userCode, "agreed")).toBe(true),
});
const AGAIN = "Run /mcp auth web again.";

test("oidc-provider: the code is entered at its page -> signed in; signed out, and in again", {
  tags: "thorough",
}, async () => {
  const { oidc, at, place, signIn } = await oidcStory({ device: true });
  const enter: User["enter"] = ({ url, userCode }) => browse(url, undefined, { user_code: userCode });
  const { says, shown, opened } = await signIn({ enter });
  expect(says).toBe("signed in");
  expect(opened).toBeUndefined();
  expect(shown).toEqual({
    step: "device",
    id: expect.any(String),
    url: `${oidc.issuer}/device`,
    userCode: expect.stringMatching(/^[A-Z]{4}-[A-Z]{4}$/),
    urlWithCode: `${oidc.issuer}/device?user_code=${shown?.userCode}`,
    codeFrom: new URL(oidc.issuer).host,
    endsInMs: expect.any(Number),
  });
  expect(textOf(await at.call(SERVER, "echo", { a: 1 }))).toBe('{"a":1}');
  const { record } = await theStored(place);
  expect(record).toMatchObject({ issuer: oidc.issuer, refresh_token: expect.any(String) });
  await at.runtime.ask("signOut", { server: SERVER });
  expect((await signIn({ enter })).says).toBe("signed in");
  expect(new Set(oidc.grants)).toEqual(new Set([DEVICE_GRANT]));
  await expectNoSecret({ at, place }, oidc.secrets);
});

test("oidc-provider with keys (DPoP): the page that has the code already -> tokens that are bound", {
  tags: "thorough",
}, async () => {
  const { signIn, place } = await oidcStory({ device: true, binding: {}, nonces: true });
  const { says } = await signIn({ enter: ({ urlWithCode = "" }) => browse(urlWithCode, undefined, {}) });
  expect(says).toBe("signed in");
  expect((await theStored(place)).record).toMatchObject({ token_type: "DPoP" });
});

test.each([true, false])(
  "oidc-provider: the package's client metadata document, published (by a device: %s) -> signed in, and nothing is registered",
  { tags: "thorough" },
  async (device) => {
    const id = "https://company.example/oauth-client.json";
    const written = JSON.parse(await readFile(join(root, "oauth-client.json"), "utf8"));
    const { place, signIn } = await oidcStory({
      device,
      documents: { [id]: { ...written, client_id: id } },
      settings: { clientMetadataUrl: id },
    });
    const { says } = await signIn({
      enter: ({ url, userCode }) => browse(url, undefined, { user_code: userCode }),
    });
    expect(says).toBe("signed in");
    expect((await theStored(place)).record).toMatchObject({ client: { id, kind: "metadata-document" } });
  },
);

test("the user agrees -> signed in with the scope that was asked for; a call works", async () => {
  const usual = await story("usual");
  const { says, shown } = await usual.signIn(agree(usual));
  expect(says).toBe("signed in");
  expect(shown?.urlWithCode).toBe(`${usual.trusted.origin}/device?user_code=${shown?.userCode}`);
  const [asked] = usual.trusted.asked("/device/code");
  expect(Object.fromEntries(asked?.form ?? [])).toMatchObject({ scope: "read", resource: usual.guarded.url });
  const [registered] = usual.trusted.asked("/register");
  expect(JSON.parse(registered?.body ?? "")).toMatchObject({
    grant_types: ["authorization_code", "refresh_token", DEVICE_GRANT],
  });
  expect(textOf(await usual.at.call(usual.name, "echo", { a: 1 }))).toBe('{"a":1}');
  await expectNoSecret(usual, usual.trusted.book.secrets);
});

test("the authorization server has ended the sign-in -> the next code is for the same client", async () => {
  const again = await story("again");
  const { trusted, at, name, place } = again;
  expect((await again.signIn(agree(again))).says).toBe("signed in");
  trusted.book.revoke(String((await theStored(place, name)).record.refresh_token));
  expect(await saysOfCall(again)).toContain("ended the sign-in");
  expect((await again.signIn(agree(again))).says).toBe("signed in");
  expect(trusted.book.registrations).toBe(1);
  expect(trusted.asked("/device/code")).toHaveLength(2);
  expect(textOf(await at.call(name, "echo", { a: 2 }))).toBe('{"a":2}');
});

test("another scope than the one asked for -> the sign-in keeps what was granted", async () => {
  const wider = await story("wider");
  expect((await wider.signIn(agree(wider))).says).toBe("signed in");
  expect((await theStored(wider.place, wider.name)).record).toMatchObject({ scope: "read admin" });
});

test("the user cancels -> the server is asked no more, and nothing is stored", async () => {
  const cancelled = await story("cancelled");
  const { trusted, at } = cancelled;
  const { says } = await cancelled.signIn({
    enter: async ({ id }) => {
      await expect.poll(() => trusted.grants.length).toBeGreaterThan(0);
      await at.runtime.ask("cancelSignIn", { id });
    },
  });
  expect(says).toMatch(/the sign-in was cancelled/);
  expect(await storedOf(cancelled)).toEqual([]);
  expect(await saysOfCall(cancelled)).toBe("web: it needs a sign-in. Run /mcp auth web in Pi.");
});

test.each<[Parameters<typeof story>[0], string | RegExp]>([
  ["expired", `web: the sign-in was not finished in time. ${AGAIN}`],
  ["late", `web: the sign-in was not finished in time. ${AGAIN}`],
  ["unknown", `web: the authorization server no longer accepts the code of this sign-in. ${AGAIN}`],
  ["odd", /gave an answer that cannot be used|is not https/],
])("%s -> what the user reads", async (key, wanted) => {
  const one = await story(key);
  expect((await one.signIn()).says).toMatch(wanted);
  expect(await storedOf(one)).toEqual([]);
});

test("the user declines at the other device -> says so", async () => {
  const declined = await story("declined");
  const { says } = await declined.signIn({
    enter: async ({ userCode }) => declined.trusted.book.answerDevice(userCode, "refused"),
  });
  expect(says).toBe(`web: the sign-in was declined in the browser. ${AGAIN}`);
});

test.each<[Parameters<typeof story>[0], User, string]>([
  ["never", {}, "deviceCode is false"],
  ["none", {}, "nothing is offered"],
  ["refused", {}, "the server gives no code"],
  ["elsewhere", {}, "the page is another server's, and no person wanted it"],
  ["in-the-open", {}, "the endpoint is not https"],
])("%s -> a link, with user %j: %s", async (key, user) => {
  const one = await story(key);
  const { says, opened, shown } = await one.signIn(user);
  expect({ says, shown }).toEqual({ says: "signed in", shown: undefined });
  expect(opened?.listens).toBe(true);
  expect(one.trusted.grants).toEqual(["authorization_code"]);
});

test("the user wants a code that the server does not offer, or gives to no client -> says so", async () => {
  const none = await story("wanted-of-none");
  const refused = await story("wanted-and-refused");
  const never = await story("wanted-after-all");
  expect((await none.signIn({ device: true })).says).toMatch(
    /^web: its authorization server offers no sign-in with a code for another device\./,
  );
  expect((await refused.signIn({ device: true })).says).toMatch(/no longer knows this client/);
  expect((await never.signIn({ device: true, ...agree(never) })).shown?.userCode).toBeDefined();
});

test("the page is another server's -> asked, with who gives the code; a no signs in to nothing", async () => {
  const one = await story("elsewhere-always");
  const { origin } = one.trusted;
  const { says, questions } = await one.signIn({ agrees: false });
  const { host } = new URL(origin);
  expect(says).toBe(
    `web sends you to accounts.bank.example with a code that ${host} gives, as ${host} says. Whoever made the code can act as you at accounts.bank.example. Go on only if you know that they belong together.`,
  );
  expect(questions).toMatchObject([
    { about: "endpoints", endpoints: `${origin} https://accounts.bank.example ${origin} ${origin}` },
  ]);
  const { shown, says: agreed } = await one.signIn(agree(one));
  // The page that has the code is of another origin than the one that was agreed to.
  expect(shown).toMatchObject({ url: "https://accounts.bank.example/device" });
  expect(shown).not.toHaveProperty("urlWithCode");
  expect(agreed).toBe("signed in");
});
