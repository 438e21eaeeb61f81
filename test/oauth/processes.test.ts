/**
 * Owns: processes that share one sign-in, are killed or end in the middle of a renewal. A default run is short;
 * OAUTH_PROCESSES_MS=60000 lasts a minute.
 */
import { expect, test } from "vitest";
import type { Behaviour, OddAnswer } from "../support/authorization-server.ts";
import { repeats } from "../support/long.ts";
import { newestCatalog, textOf } from "../worker/support.ts";
import { startCaller } from "./caller.ts";
import {
  begin,
  endedIn,
  follow,
  oidcStory,
  SERVER,
  type Story,
  saysOfCall,
  signedIn,
  theStored,
} from "./support.ts";

const TOKEN_MS = 300;
const SHARED_MS = repeats("OAUTH_PROCESSES_MS", 700);
/** Longer than any test. */
const ENDLESS_MS = 3_600_000;

test.each([
  ["4 processes", 4, {}],
  ["2 processes, tokens that are bound to a key", 2, { binding: { nonceUses: 20 }, nonces: true }],
] as const)(
  "%s, one sign-in, tokens of a moment -> no token is used twice, the sign-in lives",
  { tags: "thorough" },
  async (_what, processes, more) => {
    const { oidc, place, signIn, guarded } = await oidcStory({ tokenMs: TOKEN_MS, ...more });
    expect((await signIn()).says).toBe("signed in");

    const callers = Array.from({ length: processes }, () => startCaller(place, SHARED_MS));
    const told = await Promise.all(callers.map((caller) => caller.told));
    expect(oidc.refusals.filter((error) => error !== "use_dpop_nonce")).toEqual([]);
    expect(oidc.revoked).toBe(0);
    const schemes = guarded.requests.flatMap(({ headers }) => headers.authorization?.split(" ", 1) ?? []);
    expect(new Set(schemes)).toEqual(new Set(["binding" in more ? "DPoP" : "Bearer"]));
    expect(new Set(oidc.grants)).toEqual(new Set(["authorization_code", "refresh_token"]));
    for (const { succeeded, failures } of told) {
      expect(succeeded).toBeGreaterThan(0);
      // A busy machine may need longer than a token lives. Such a call fails, and the sign-in lives on.
      const others = Object.keys(failures).filter(
        (says) => !says.startsWith("web: it refused a token that was just issued"),
      );
      expect(others).toEqual([]);
    }
    const { record } = await theStored(place);
    expect((await oidc.provider.RefreshToken.find(String(record.refresh_token)))?.isValid).toBe(true);
  },
);

interface Held {
  /** Resolves when a renewal has reached the authorization server. */
  reached: Promise<void>;
  /** Lets the server go on. */
  release(): void;
}

/** Holds the next renewal at the server. `carriesOut`: the server then answers, or else forgets the request. */
function holdRenewal({ trusted }: Story, carriesOut: boolean): Held {
  const reached = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  let held = false;
  const token: OddAnswer = async ({ form }, response) => {
    if (form.get("grant_type") !== "refresh_token" || held) return false;
    held = true;
    reached.resolve();
    await released.promise;
    return carriesOut ? false : response.destroy();
  };
  trusted.behaviour.answer = { token };
  return { reached: reached.promise, release: released.resolve };
}

const callOnce = async ({ at }: Story): Promise<string> => textOf(await at.call(SERVER, "echo", { a: 1 }));

/** A second process is killed while it renews the tokens of a sign-in. */
async function killedInRenewal(carriesOut: boolean): Promise<Story> {
  const story = await signedIn();
  await story.at.runtime.stop();
  story.trusted.book.expireAll();
  const { reached, release } = holdRenewal(story, carriesOut);
  const caller = startCaller(story.place, ENDLESS_MS);
  await Promise.race([reached, caller.told]);
  caller.child.kill("SIGKILL");
  await caller.told.catch(() => undefined);
  release();
  return story.again();
}

test("kill -9 before the server has renewed -> the next process renews with the same token", async () => {
  const next = await killedInRenewal(false);
  expect(await callOnce(next)).toBe('{"a":1}');
  expect(next.trusted.book.reuses).toBe(0);
  expect((await theStored(next.place)).record).not.toHaveProperty("refreshing");
});

test("kill -9 after the server has renewed -> one sentence, and a sign-in mends it", {
  tags: "thorough",
}, async () => {
  const next = await killedInRenewal(true);
  expect(await saysOfCall(next)).toBe(
    "web: the authorization server ended the sign-in. Run /mcp auth web in Pi.",
  );
  expect((await next.signIn()).says).toBe("signed in");
  expect(await callOnce(next)).toBe('{"a":1}');
});

test("the session ends in the middle of a renewal -> the end waits, and the new token is stored", async () => {
  const story = await signedIn();
  story.trusted.book.expireAll();
  const before = (await theStored(story.place)).record.refresh_token;
  const { reached, release } = holdRenewal(story, true);
  const call = story.at.call(SERVER, "echo").catch((error: unknown) => error);
  await reached;
  const stopped = story.at.runtime.stop();
  release();
  await stopped;
  await call;
  const { record } = await theStored(story.place);
  expect(record.refresh_token).not.toBe(before);
  expect(record).not.toHaveProperty("refreshing");
  const next = await story.again();
  expect(await callOnce(next)).toBe('{"a":1}');
  expect(story.trusted.book.reuses).toBe(0);
});

/** Nobody is signed in, and two sessions have the same server. */
async function twoSessions(behaviour: Behaviour = {}): Promise<[first: Story, second: Story]> {
  const first = await begin({ behaviour });
  return [first, await follow(first.trusted, first.guarded, { start: { place: first.place } })];
}

test("the user signs in in another session -> the next call of this one has the token", async () => {
  const [first, second] = await twoSessions();
  expect(await saysOfCall(second)).toMatch(/^web: it needs a sign-in/);
  expect((await first.signIn()).says).toBe("signed in");
  expect(await callOnce(second)).toBe('{"a":1}');
});

test("the user signs in in another session -> the next search of this one finds the tools", {
  tags: "thorough",
}, async () => {
  const [first, second] = await twoSessions();
  const { runtime } = second.at;
  await runtime.settleTools({ timeoutMs: 40_000 }, undefined);
  const state = async () => (await runtime.ask("status", {})).servers[0]?.state;
  expect(await state()).toBe("needs-auth");
  expect((await first.signIn()).says).toBe("signed in");
  expect(await runtime.settleTools({ timeoutMs: 40_000 }, undefined)).toEqual([]);
  expect(await state()).toBe("connected");
  expect(newestCatalog(second.at).servers.map(({ name }) => name)).toEqual([SERVER]);
});

test.each<[string, string, Behaviour]>([
  ["its browser", "open", {}],
  ["another device", "device", { device: (answer) => answer }],
])(
  "a sign-in waits for %s, and the user signs in in another session -> it ends as signed in",
  { tags: "thorough" },
  async (_what, kind, behaviour) => {
    const [first, second] = await twoSessions(behaviour);
    const step = await second.at.runtime.ask("signIn", { server: SERVER });
    if (step.step === "ask" || step.step !== kind) throw new Error(`the sign-in does not wait: ${step.step}`);
    expect((await first.signIn({ device: false })).says).toBe("signed in");
    expect(await endedIn(second.at)(step.id)).toMatchObject({ ok: true, tools: expect.any(Number) });
    expect(await callOnce(second)).toBe('{"a":1}');
    expect(first.trusted.book.reuses).toBe(0);
  },
);
