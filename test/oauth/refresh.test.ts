/** Owns: renewals of stored tokens: how often, what a fault of the authorization server loses, and what ends a sign-in. */
import { cp, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, test } from "vitest";
import type { OddAnswer } from "../support/authorization-server.ts";
import { sendHtml } from "../support/recording-server.ts";
import { createPlace, fixtures, forRows, root, textOf } from "../worker/support.ts";
import {
  authorization,
  expectNoSecret,
  follow,
  SERVER,
  type Story,
  type StoryBeside,
  saysOfCall,
  sideBySide,
  signedIn,
  storedOf,
  theStored,
} from "./support.ts";

const CALLS = 20;
const REFRESHED = ["authorization_code", "refresh_token"];

const callTimes = ({ at, name }: StoryBeside, times: number): Promise<string[]> =>
  Promise.all(Array.from({ length: times }, async (_, i) => textOf(await at.call(name, "echo", { i }))));
const answers = (times: number): string[] => Array.from({ length: times }, (_, i) => `{"i":${i}}`);

/** Writes into the stored sign-in that its token ended long ago. */
async function endStored(story: Story): Promise<void> {
  const { path, record } = await theStored(story.place);
  await writeFile(path, JSON.stringify({ ...record, obtainedAt: 1, expiresAt: 2 }));
}

/** One worker for all stories that need no second session. */
const beside = sideBySide({
  shared: {},
  timeless: { behaviour: { tokens: ({ expires_in: _, ...answer }) => answer } },
  ended: {},
  forgotten: {},
  refusing: {},
  moved: {},
});

async function signedInTo(key: Parameters<typeof beside>[0]): Promise<StoryBeside> {
  const story = await beside(key);
  expect((await story.signIn()).says).toBe("signed in");
  return story;
}

/** Signed in. Each test that takes it leaves a sign-in that can be renewed, and both servers as they were. */
const shared = forRows(() => signedInTo("shared"));

/** No renewal opens a browser or registers a client. */
function expectOneSignIn({ trusted }: StoryBeside): void {
  expect(trusted.asked("/authorize")).toHaveLength(1);
  expect(trusted.book.registrations).toBe(1);
}

test(`${CALLS} calls after the token's end -> one token request, and every call is answered`, async () => {
  const first = await signedIn();
  await endStored(first);
  const story = await first.again();
  expect(await callTimes(story, CALLS)).toEqual(answers(CALLS));
  expect(story.trusted.grants).toEqual(REFRESHED);
  expectOneSignIn(story);
});

test(`${CALLS} calls that the server refuses -> one token request, and every call is answered`, async () => {
  const story = await shared();
  const [grants, ran] = [story.trusted.grants.length, story.guarded.ran.length];
  story.trusted.book.expireAll();
  expect(await callTimes(story, CALLS)).toEqual(answers(CALLS));
  expect(story.trusted.grants.slice(grants)).toEqual(["refresh_token"]);
  expect(story.guarded.ran.slice(ran)).toHaveLength(CALLS);
  expectOneSignIn(story);
  await expectNoSecret(story, story.trusted.book.secrets);
});

test.each([true, false])("refresh tokens that rotate: %s -> three renewals, no reuse", async (rotates) => {
  const story = await shared();
  const grants = story.trusted.grants.length;
  story.trusted.behaviour.rotates = rotates;
  for (const i of [0, 1, 2]) {
    story.trusted.book.expireAll();
    expect(textOf(await story.at.call(story.name, "echo", { i }))).toBe(`{"i":${i}}`);
  }
  delete story.trusted.behaviour.rotates;
  expect(story.trusted.grants.slice(grants)).toEqual(Array(3).fill("refresh_token"));
  expect(story.trusted.book.reuses).toBe(0);
  expectOneSignIn(story);
});

test("tokens that do not say when they end -> renewed each time the server refuses one", async () => {
  const story = await signedInTo("timeless");
  for (const i of [0, 1, 2]) {
    story.trusted.book.expireAll();
    expect(textOf(await story.at.call(story.name, "echo", { i }))).toBe(`{"i":${i}}`);
    expect(textOf(await story.at.call(story.name, "echo", { i }))).toBe(`{"i":${i}}`);
  }
  expect(story.trusted.grants).toHaveLength(4);
});

const tokenUrl = ({ trusted }: StoryBeside): string => `${trusted.origin}/token`;

/** A fault of the token endpoint, and what the user reads. */
const FAULTS: Record<string, { answer: OddAnswer; says: (story: StoryBeside) => string | RegExp }> = {
  "status 503": {
    answer: (_request, response) => response.writeHead(503).end(),
    says: (story) =>
      `web: ${tokenUrl(story)} answered status 503. Nothing is lost: the next call or /mcp auth web tries again.`,
  },
  "status 429": {
    answer: (_request, response) => response.writeHead(429, { "retry-after": "1" }).end(),
    says: (story) =>
      `web: ${tokenUrl(story)} answered status 429. Nothing is lost: the next call or /mcp auth web tries again.`,
  },
  "status 429 that asks to wait 31 years": {
    answer: (_request, response) => response.writeHead(429, { "retry-after": "999999999" }).end(),
    says: (story) =>
      `web: ${tokenUrl(story)} answered status 429. Nothing is lost: the next call or /mcp auth web tries again.`,
  },
  "a reset connection": {
    answer: (_request, response) => response.destroy(),
    says: (story) =>
      new RegExp(
        `^web: ${tokenUrl(story)} could not be reached: .*\\. Nothing is lost: the next call or /mcp auth web tries again\\.$`,
      ),
  },
  "an answer that never comes": {
    answer: () => undefined,
    says: (story) =>
      new RegExp(
        `^web: ${tokenUrl(story)} could not be reached: .*\\. Nothing is lost: the next call or /mcp auth web tries again\\.$`,
      ),
  },
  "HTML in the place of JSON": {
    answer: (_request, response) => sendHtml(response, 200, "Please wait."),
    says: (story) =>
      `web: ${tokenUrl(story)} gave an answer that cannot be used: HTML in the place of JSON, with status 200. Check the url in mcp.json, or oauth.authServerMetadataUrl.`,
  },
};

test.each(Object.entries(FAULTS))(
  "the token endpoint answers with %s -> nothing is lost",
  async (_name, { answer, says }) => {
    const story = await shared();
    const { record } = await theStored(story.place, story.name);
    story.trusted.book.expireAll();
    story.trusted.behaviour.answer = { token: answer };
    const expected = says(story);
    const heard = await saysOfCall(story);
    if (typeof expected === "string") expect(heard).toBe(expected);
    else expect(heard).toMatch(expected);
    expect((await theStored(story.place, story.name)).record).toEqual(record);

    story.trusted.behaviour.answer = {};
    expect(await callTimes(story, 1)).toEqual(answers(1));
    expect(story.trusted.book.reuses).toBe(0);
    expectOneSignIn(story);
    await expectNoSecret(story, story.trusted.book.secrets);
  },
);

test("the connection breaks once -> the same request goes out again", async () => {
  const story = await shared();
  const grants = story.trusted.grants.length;
  story.trusted.book.expireAll();
  let broken = 0;
  story.trusted.behaviour.answer = {
    token: (_request, response) => {
      if (broken > 0) return false;
      broken += 1;
      return response.destroy();
    },
  };
  expect(await callTimes(story, 1)).toEqual(answers(1));
  story.trusted.behaviour.answer = {};
  expect(broken).toBe(1);
  expect(story.trusted.grants.slice(grants)).toEqual(["refresh_token", "refresh_token"]);
});

test("the sign-in was ended at the server -> one sentence, no browser, the client is kept", async () => {
  const story = await signedInTo("ended");
  story.trusted.book.revokeAll();
  expect(await saysOfCall(story)).toBe(
    "web: the authorization server ended the sign-in. Run /mcp auth web in Pi.",
  );
  expect((await story.at.settled(story.name)).state).toBe("needs-auth");
  const [file] = await storedOf(story);
  expect(file?.record).not.toHaveProperty("refresh_token");
  expectOneSignIn(story);
  expect((await story.signIn()).says).toBe("signed in");
  expect(story.trusted.book.registrations).toBe(1);
  expect(await callTimes(story, 1)).toEqual(answers(1));
});

test("the client was deleted at the server -> one sentence, and the next sign-in registers another", async () => {
  const story = await signedInTo("forgotten");
  story.trusted.book.expireAll();
  story.trusted.book.forgetClients();
  expect(await saysOfCall(story)).toBe(
    "web: its authorization server no longer knows this client. Run /mcp auth web again. With a configured client, check oauth.clientId and oauth.clientSecret.",
  );
  expectOneSignIn(story);
  expect((await story.signIn()).says).toBe("signed in");
  expect(story.trusted.book.registrations).toBe(2);
});

test("the server refuses a new token, too -> one renewal, one repetition, one sentence, and the browser helps", async () => {
  const story = await signedInTo("refusing");
  story.guarded.protection.check = () => undefined;
  expect(await saysOfCall(story)).toBe(
    "web: it refused a token that was just issued for it. Run /mcp auth web in Pi. If that does not help, its operator must look at the token's audience.",
  );
  expect(story.trusted.grants).toEqual(REFRESHED);
  // Only another sign-in gives a token for the audience that the server wants.
  const { trusted } = story;
  story.guarded.protection.check = (token, resource) => trusted.book.check(token, resource);
  const { opened, says } = await story.signIn();
  expect([opened?.step, says]).toEqual(["open", "signed in"]);
});

test("the server has moved -> no token and no client of the old one reaches the new one", async () => {
  const story = await signedInTo("moved");
  const other = await authorization();
  story.guarded.protection.issuers = [other.issuer];
  story.guarded.protection.check = (token, resource) => other.book.check(token, resource);
  expect(await saysOfCall(story)).toBe(
    `web: it has moved to another authorization server (${other.issuer}). Run /mcp auth web in Pi.`,
  );
  expect(story.trusted.grants).toEqual(["authorization_code"]);
  expect(other.requests.filter(({ method }) => method === "POST")).toEqual([]);
  expect((await story.signIn()).says).toBe("signed in");
  expect(other.book.registrations).toBe(1);
  const sent = JSON.stringify(
    other.requests.map(({ headers, body, query }) => [headers, body, String(query)]),
  );
  for (const secret of story.trusted.book.secrets) expect(sent).not.toContain(secret);
  expect(sent).not.toContain(String(story.trusted.asked("/authorize")[0]?.query.get("client_id")));
});

test("another process has renewed the sign-in -> its token is used, and no request is made", async () => {
  const story = await signedIn();
  const beside = await follow(story.trusted, story.guarded, { start: { place: story.place } });
  story.trusted.book.expireAll();
  expect(await callTimes(beside, 1)).toEqual(answers(1));
  expect(await callTimes(story, 1)).toEqual(answers(1));
  expect(story.trusted.grants).toEqual(REFRESHED);
});

test("the package was updated, and the renewal needs code that was not loaded -> another worker has it, and renews", {
  tags: "thorough",
}, async () => {
  const place = await createPlace();
  const folder = join(place.cwd, "..", "package");
  await cp(join(root, "dist/workers"), folder, { recursive: true });
  await writeFile(join(folder, "package.json"), '{"type":"module"}');
  const workerUrl = pathToFileURL(join(folder, "connection.js"));
  // The sign-in itself loads what renews: the next session has not.
  const story = await (await signedIn({ start: { place, workerUrl } })).again();
  expect(await callTimes(story, 1)).toEqual(answers(1));
  // A publication that is still due needs such code as well, and its worker would be another one before the call.
  await story.at.runtime.settleTools({ timeoutMs: 1_000 }, undefined);
  const hashed = (await readdir(folder)).filter((name) => /-[A-Z0-9]{8}\.js$/.test(name));
  for (const name of hashed) await rename(join(folder, name), join(folder, `next-${name}`));
  story.trusted.book.expireAll();
  expect(await story.at.failedCall(SERVER, "echo")).toMatchObject({ code: "runtime_restarted" });
  expect(await callTimes(story, 1)).toEqual(answers(1));
  expect(story.trusted.grants).toEqual(REFRESHED);
  expect(story.at.crashes).toHaveLength(1);
});

test("a full disk -> the renewed token holds for this session, and one warning says so", async () => {
  const workerUrl = pathToFileURL(join(fixtures, "workers", "full-disk.mjs"));
  const story = await signedIn({ start: { workerUrl } });
  const full = join(story.place.agentDir, "mcp-threads.log.full");
  await writeFile(full, "");
  const { path } = await theStored(story.place);
  const before = await readFile(path, "utf8");
  for (const i of [0, 1]) {
    story.trusted.book.expireAll();
    expect(textOf(await story.at.call(SERVER, "echo", { i }))).toBe(`{"i":${i}}`);
  }
  expect(story.trusted.book.reuses).toBe(0);
  expect(await readFile(path, "utf8")).toBe(before);
  const warnings = story.at.events.flatMap((event) =>
    event.type === "notice" && event.level === "warning" ? [event.text] : [],
  );
  expect(warnings).toEqual([expect.stringContaining(path)]);
  await rm(full);
  story.trusted.book.expireAll();
  expect(await callTimes(story, 1)).toEqual(answers(1));
  expect((await theStored(story.place)).record).not.toEqual(JSON.parse(before));
  await expectNoSecret(story, story.trusted.book.secrets);
});
