/** Owns: the whole way of a sign-in through the packed worker: discovery, browser or paste, store, tools, and its end. */
import { readFile, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { expect, test } from "vitest";
import { browse, type Page } from "../support/browser.ts";
import { isCallback } from "../support/signing-in.ts";
import { textOf } from "../worker/support.ts";
import {
  expectNoSecret,
  oidcStory,
  SERVER,
  type StoryBeside,
  saysOfCall,
  sideBySide,
  signedIn,
  storedOf,
  theStored,
  writeGiven,
} from "./support.ts";

const MODE = 0o777;
const MACHINE_SECRET = "a secret: 100 %+&";

/** One worker for all stories that need no second session. */
const story = sideBySide({
  usual: { protection: { challengeScope: "read" } },
  pasted: {},
  "bare-code": {
    behaviour: {
      iss: false,
      metadata: ({ authorization_response_iss_parameter_supported: _, ...rest }) => rest,
    },
  },
  "bare-code-of-many": {},
  twice: {},
  one: {},
  another: {},
  "signs-out": {},
  "keeps-tokens": {
    behaviour: { answer: { revoke: (_request, response) => response.writeHead(503).end() } },
  },
  machine: {
    entry: { oauth: { grantType: "client_credentials", clientId: "ci", clientSecret: MACHINE_SECRET } },
    prepare: ({ trusted }) => trusted.book.addClient({ id: "ci", secret: MACHINE_SECRET }),
  },
  given: {},
});

async function signedInTo(key: Parameters<typeof story>[0]): Promise<StoryBeside> {
  const begun = await story(key);
  expect((await begun.signIn()).says).toBe("signed in");
  return begun;
}

test("a sign-in -> the server connects, the tokens are stored for the user only, nothing else holds them", async () => {
  const usual = await story("usual");
  const { trusted, at, place, name } = usual;
  expect(await at.settled(name)).toMatchObject({ state: "needs-auth", signIn: { state: "needed" } });
  expect(await saysOfCall(usual)).toBe("web: it needs a sign-in. Run /mcp auth web in Pi.");
  expect(trusted.requests).toEqual([]);

  const { result, opened, page } = await usual.signIn();
  expect(result).toEqual({ ok: true, tools: 1 });
  expect(opened).toMatchObject({ browser: "none", listens: true });
  expect(page?.status).toBe(200);
  expect(textOf(await at.call(name, "echo", { a: 1 }))).toBe('{"a":1}');
  expect(await at.settled(name)).toMatchObject({
    state: "connected",
    signIn: { state: "signed-in", renews: true },
  });

  const [asked] = trusted.asked("/authorize");
  expect(Object.fromEntries(asked?.query ?? [])).toMatchObject({
    response_type: "code",
    code_challenge_method: "S256",
    resource: usual.guarded.url,
    scope: "read",
  });
  const { path, record } = await theStored(place, name);
  expect((await stat(path)).mode & MODE).toBe(0o600);
  expect((await stat(dirname(path))).mode & MODE).toBe(0o700);
  expect(record).toMatchObject({ server: name, url: usual.guarded.url, issuer: trusted.issuer });
  await expectNoSecret(usual, trusted.book.secrets, page?.text);
});

test("a stored sign-in -> the next session needs no browser and no authorization server", async () => {
  const first = await signedIn();
  const before = first.trusted.requests.length;
  const { at, trusted } = await first.again();
  expect(textOf(await at.call(SERVER, "echo", { a: 2 }))).toBe('{"a":2}');
  expect(trusted.requests).toHaveLength(before);
});

test("the callback cannot be reached -> a pasted address signs in", async () => {
  const pasted = await story("pasted");
  const wrong: (string | undefined)[] = [];
  const { says, opened } = await pasted.signIn({
    open: async (opened) => {
      const page = await browse(opened.url, isCallback(opened));
      const paste = async (text: string): Promise<string | undefined> =>
        (await pasted.at.runtime.ask("pasteSignIn", { id: opened.id, text })).problem;
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
  const paste = async ({ at, signIn }: StoryBeside): Promise<[string | undefined, string]> => {
    let problem: string | undefined;
    const { says } = await signIn({
      open: async (opened) => {
        const page = await browse(opened.url, isCallback(opened));
        const text = new URL(page.url).searchParams.get("code") ?? "";
        ({ problem } = await at.runtime.ask("pasteSignIn", { id: opened.id, text }));
        if (problem !== undefined) await at.runtime.ask("cancelSignIn", { id: opened.id });
        return page;
      },
    });
    return [problem, says];
  };
  const open = await story("bare-code");
  expect(await paste(open)).toEqual([undefined, "signed in"]);
  const strict = await story("bare-code-of-many");
  const [problem, says] = await paste(strict);
  expect(problem ?? says).not.toBe("signed in");
  expect(await storedOf(strict)).toEqual([]);
});

test("the same server twice -> one sign-in; a cancelled one -> nothing is stored", async () => {
  const twice = await story("twice");
  const { at, name } = twice;
  const ask = () => at.runtime.ask("signIn", { server: name });
  const steps = await Promise.all([ask(), ask()]);
  const ids = steps.map((step) => (step.step === "open" ? step.id : step.step));
  expect(new Set(ids).size).toBe(1);
  expect((await at.settled(name)).signIn).toEqual({ state: "running" });
  await at.runtime.ask("cancelSignIn", { id: ids[0] ?? "" });
  const { result } = await at.event("sign-in", ({ server }) => server === name);
  expect(result).toMatchObject({ ok: false, error: { code: "cancelled" } });
  expect(await storedOf(twice)).toEqual([]);
  expect((await twice.signIn()).says).toBe("signed in");
});

test("several servers at once -> each has its own sign-in", async () => {
  const both = await Promise.all([story("one"), story("another")]);
  const open = async (opened: { url: string }): Promise<Page> => browse(opened.url);
  const ended = await Promise.all(both.map(({ signIn }) => signIn({ open })));
  expect(ended.map(({ says }) => says)).toEqual(["signed in", "signed in"]);
  for (const { trusted } of both) expect(trusted.grants).toEqual(["authorization_code"]);
});

test("a sign-out -> the server hears of it, the file is gone, a call says what to do", async () => {
  const out = await signedInTo("signs-out");
  const { at, place, name, trusted } = out;
  const { record } = await theStored(place, name);
  const { text } = await at.runtime.ask("signOut", { server: name });
  expect(text).toBe(`${name} is signed out.`);
  expect(trusted.book.isAlive(String(record.refresh_token))).toBe(false);
  expect(trusted.asked("/revoke").length).toBeGreaterThan(0);
  expect(await storedOf(out)).toEqual([]);
  expect(await saysOfCall(out)).toBe("web: it needs a sign-in. Run /mcp auth web in Pi.");
});

test("a sign-out whose revocation fails -> the file is gone, the user reads that the tokens live on", async () => {
  const out = await signedInTo("keeps-tokens");
  const { at, name } = out;
  const { text } = await at.runtime.ask("signOut", { server: name });
  const says = `${name} is signed out here. Its tokens could not be revoked: ${name}: `;
  expect(text.slice(0, says.length)).toBe(says);
  expect(text).toMatch(/ answered status 503\./);
  expect(await storedOf(out)).toEqual([]);
});

test("client_credentials -> connects without a user, and nothing is stored", async () => {
  const machine = await story("machine");
  const { at, name, trusted } = machine;
  expect(textOf(await at.call(name, "echo", { a: 3 }))).toBe('{"a":3}');
  expect(trusted.grants).toEqual(["client_credentials"]);
  expect(await storedOf(machine)).toEqual([]);
  trusted.book.expireAll();
  await Promise.all([1, 2, 3].map((a) => at.call(name, "echo", { a })));
  expect(trusted.grants).toEqual(["client_credentials", "client_credentials"]);
  await expectNoSecret(
    machine,
    [...trusted.book.secrets].filter((secret) => secret.startsWith("access-")),
  );
});

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
  const given = await story("given");
  const { at, name, trusted } = given;
  const { access_token } = trusted.issue({ client: "other", resource: given.guarded.url });
  const text = JSON.stringify({ access_token, token_type: "Bearer" });
  const path = await writeGiven(given, text);
  expect(textOf(await at.call(name, "echo", { a: 5 }))).toBe('{"a":5}');
  expect(await readFile(path, "utf8")).toBe(text);
  expect(trusted.requests).toEqual([]);
  trusted.book.expireAll();
  expect(await saysOfCall(given)).toBe(
    `web: the tokens in ${path.replace(name, SERVER)} have expired and cannot be renewed. Renew the file, or sign in: Run /mcp auth web in Pi.`,
  );
  expect(await readFile(path, "utf8")).toBe(text);
  await expectNoSecret(given, trusted.book.secrets);
});
