/** Owns: the whole way of a sign-in through the packed worker: discovery, browser or paste, store, tools, and its end. */
import { readFile, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { expect, test } from "vitest";
import { browse, type Page } from "../support/browser.ts";
import { type Oidc, startOidc } from "../support/oidc.ts";
import { startProtectedServer } from "../support/protected-server.ts";
import { isCallback, signInAs } from "../support/signing-in.ts";
import { createPlace, start, textOf } from "../worker/support.ts";
import {
  begin,
  expectNoSecret,
  onCleanup,
  SERVER,
  saysOfCall,
  signedIn,
  stored,
  theStored,
  writeGiven,
} from "./support.ts";

const MODE = 0o777;

test("a sign-in -> the server connects, the tokens are stored for the user only, nothing else holds them", async () => {
  const story = await begin({ protection: { challengeScope: "read" } });
  const { trusted, at, place } = story;
  expect(await at.settled(SERVER)).toMatchObject({ state: "needs-auth", signIn: { state: "needed" } });
  expect(await saysOfCall(story)).toBe("web: it needs a sign-in. Run /mcp auth web in Pi.");
  expect(trusted.requests).toEqual([]);

  const { result, opened, page } = await story.signIn();
  expect(result).toEqual({ ok: true, tools: 1 });
  expect(opened).toMatchObject({ browser: "none", listens: true });
  expect(page?.status).toBe(200);
  expect(textOf(await at.call(SERVER, "echo", { a: 1 }))).toBe('{"a":1}');
  expect(await at.settled(SERVER)).toMatchObject({
    state: "connected",
    signIn: { state: "signed-in", renews: true },
  });

  const [asked] = trusted.asked("/authorize");
  expect(Object.fromEntries(asked?.query ?? [])).toMatchObject({
    response_type: "code",
    code_challenge_method: "S256",
    resource: story.guarded.url,
    scope: "read",
  });
  const { path, record } = await theStored(place);
  expect((await stat(path)).mode & MODE).toBe(0o600);
  expect((await stat(dirname(path))).mode & MODE).toBe(0o700);
  expect(record).toMatchObject({ server: SERVER, url: story.guarded.url, issuer: trusted.issuer });
  await expectNoSecret(story, trusted.book.secrets, page?.text);
});

test("a stored sign-in -> the next session needs no browser and no authorization server", async () => {
  const first = await signedIn();
  const before = first.trusted.requests.length;
  const { at, trusted } = await first.again();
  expect(textOf(await at.call(SERVER, "echo", { a: 2 }))).toBe('{"a":2}');
  expect(trusted.requests).toHaveLength(before);
});

test("the callback cannot be reached -> a pasted address signs in", async () => {
  const story = await begin();
  const wrong: (string | undefined)[] = [];
  const { says, opened } = await story.signIn({
    open: async (opened) => {
      const page = await browse(opened.url, isCallback(opened));
      const paste = async (text: string): Promise<string | undefined> =>
        (await story.at.runtime.ask("pasteSignIn", { id: opened.id, text })).problem;
      wrong.push(await paste("nothing of use here"), await paste(`${opened.redirectUri}?code=a&state=b`));
      wrong.push(await paste(`  ${page.url}\n`));
      return page;
    },
  });
  expect(opened?.listens).toBe(true);
  expect(wrong).toEqual([expect.any(String), expect.any(String), undefined]);
  expect(says).toBe("signed in");
});

test("a bare code -> accepted only if the answer has to name no issuer", async () => {
  const paste = async (story: Awaited<ReturnType<typeof begin>>): Promise<[string | undefined, string]> => {
    let problem: string | undefined;
    const { says } = await story.signIn({
      open: async (opened) => {
        const page = await browse(opened.url, isCallback(opened));
        const text = new URL(page.url).searchParams.get("code") ?? "";
        ({ problem } = await story.at.runtime.ask("pasteSignIn", { id: opened.id, text }));
        if (problem !== undefined) await story.at.runtime.ask("cancelSignIn", { id: opened.id });
        return page;
      },
    });
    return [problem, says];
  };
  const open = await begin({
    behaviour: {
      iss: false,
      metadata: ({ authorization_response_iss_parameter_supported: _, ...rest }) => rest,
    },
  });
  expect(await paste(open)).toEqual([undefined, "signed in"]);
  const strict = await begin();
  const [problem, says] = await paste(strict);
  expect(problem ?? says).not.toBe("signed in");
  expect(await stored(strict.place)).toEqual([]);
});

test("the same server twice -> one sign-in; a cancelled one -> nothing is stored", async () => {
  const story = await begin();
  const ask = () => story.at.runtime.ask("signIn", { server: SERVER });
  const steps = await Promise.all([ask(), ask()]);
  const ids = steps.map((step) => (step.step === "open" ? step.id : step.step));
  expect(new Set(ids).size).toBe(1);
  expect((await story.at.settled(SERVER)).signIn).toEqual({ state: "running" });
  await story.at.runtime.ask("cancelSignIn", { id: ids[0] ?? "" });
  const { result } = await story.at.event("sign-in");
  expect(result).toMatchObject({ ok: false, error: { code: "cancelled" } });
  expect(await stored(story.place)).toEqual([]);
  expect((await story.signIn()).says).toBe("signed in");
});

test("several servers at once -> each has its own sign-in", async () => {
  const place = await createPlace();
  const stories = await Promise.all([begin(), begin()]);
  const [a, b] = stories;
  const at = await start({ a: { url: a.guarded.url }, b: { url: b.guarded.url } }, { place });
  const ended = async (id: string) => (await at.event("sign-in", (event) => event.id === id)).result;
  const open = async (opened: { url: string }): Promise<Page> => browse(opened.url);
  const both = await Promise.all(
    ["a", "b"].map((name) => signInAs({ open }, { runtime: at.runtime, ended }, name)),
  );
  expect(both.map(({ says }) => says)).toEqual(["signed in", "signed in"]);
  expect(a.trusted.grants).toEqual(["authorization_code"]);
  expect(b.trusted.grants).toEqual(["authorization_code"]);
});

test("a sign-out -> the server hears of it, the file is gone, a call says what to do", async () => {
  const story = await signedIn();
  const { record } = await theStored(story.place);
  const { text } = await story.at.runtime.ask("signOut", { server: SERVER });
  expect(text).toBe("web is signed out.");
  expect(story.trusted.book.isAlive(String(record.refresh_token))).toBe(false);
  expect(story.trusted.asked("/revoke").length).toBeGreaterThan(0);
  expect(await stored(story.place)).toEqual([]);
  expect(await saysOfCall(story)).toBe("web: it needs a sign-in. Run /mcp auth web in Pi.");
});

test("a sign-out whose revocation fails -> the file is gone, the user reads that the tokens live on", async () => {
  const story = await signedIn({
    behaviour: { answer: { revoke: (_request, response) => response.writeHead(503).end() } },
  });
  const { text } = await story.at.runtime.ask("signOut", { server: SERVER });
  expect(text).toMatch(
    /^web is signed out here\. Its tokens could not be revoked: web: .* answered status 503\./,
  );
  expect(await stored(story.place)).toEqual([]);
});

test("client_credentials -> connects without a user, and nothing is stored", async () => {
  const story = await begin({
    entry: { oauth: { grantType: "client_credentials", clientId: "ci", clientSecret: "a secret: 100 %+&" } },
  });
  story.trusted.book.addClient({ id: "ci", secret: "a secret: 100 %+&" });
  expect(textOf(await story.at.call(SERVER, "echo", { a: 3 }))).toBe('{"a":3}');
  expect(story.trusted.grants).toEqual(["client_credentials"]);
  expect(await stored(story.place)).toEqual([]);
  story.trusted.book.expireAll();
  await Promise.all([1, 2, 3].map((a) => story.at.call(SERVER, "echo", { a })));
  expect(story.trusted.grants).toEqual(["client_credentials", "client_credentials"]);
  await expectNoSecret(
    story,
    [...story.trusted.book.secrets].filter((secret) => secret.startsWith("access-")),
  );
});

const oidcStory = async (options: Parameters<typeof startOidc>[0] = {}) => {
  const oidc: Oidc = await startOidc(options);
  onCleanup(() => oidc.close());
  const server = await startProtectedServer({
    issuers: [oidc.issuer],
    check: (token, resource) => oidc.check(token, resource),
    challengeScope: "read",
  });
  onCleanup(() => server.close());
  const place = await createPlace();
  const at = await start({ [SERVER]: { url: server.url } }, { place });
  const ended = async (id: string) => (await at.event("sign-in", (event) => event.id === id)).result;
  return { oidc, at, place, signIn: () => signInAs({}, { runtime: at.runtime, ended }, SERVER) };
};

test("oidc-provider: sign-in, renewal, rotation and sign-out -> no token is used twice", async () => {
  const { oidc, at, place, signIn } = await oidcStory();
  expect((await signIn()).says).toBe("signed in");
  expect(textOf(await at.call(SERVER, "echo", { a: 4 }))).toBe('{"a":4}');
  for (const nth of [1, 2]) {
    const { record } = await theStored(place);
    await (await oidc.provider.AccessToken.find(String(record.access_token)))?.destroy();
    expect(textOf(await at.call(SERVER, "echo", { nth }))).toBe(`{"nth":${nth}}`);
  }
  expect(oidc.grants).toEqual(["authorization_code", "refresh_token", "refresh_token"]);
  expect(oidc.refusals).toEqual([]);
  expect(oidc.revoked).toBe(0);
  await at.runtime.ask("signOut", { server: SERVER });
  expect(oidc.revoked).toBe(1);
  await expectNoSecret({ at, place }, oidc.secrets);
});

test("tokens.json of another program -> used for requests, and never written", async () => {
  const story = await begin();
  const { access_token } = story.trusted.issue({ client: "other", resource: story.guarded.url });
  const text = JSON.stringify({ access_token, token_type: "Bearer" });
  const path = await writeGiven(story.place, text);
  expect(textOf(await story.at.call(SERVER, "echo", { a: 5 }))).toBe('{"a":5}');
  expect(await readFile(path, "utf8")).toBe(text);
  expect(story.trusted.requests).toEqual([]);
  story.trusted.book.expireAll();
  expect(await saysOfCall(story)).toBe(
    `web: the tokens in ${path} have expired and cannot be renewed. Renew the file, or sign in: Run /mcp auth web in Pi.`,
  );
  expect(await readFile(path, "utf8")).toBe(text);
  await expectNoSecret(story, story.trusted.book.secrets);
});
