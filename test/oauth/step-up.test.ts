/** Owns: calls that want more scope than was granted (403, insufficient_scope). */
import { expect, test } from "vitest";
import { textOf } from "../worker/support.ts";
import { saysOfCall, sideBySide } from "./support.ts";

const WANTS_WRITE = "web: it wants more rights: write. Run /mcp auth web in Pi.";
const scopesOf = (text: string | null | undefined): string[] => (text ?? "").split(" ").sort();

const MACHINE_SECRET = "machine-secret";
const needs = { change: ["write"] };

/** One worker for all stories. */
const beside = sideBySide({
  agreeing: { protection: { challengeScope: "read", needs } },
  discontent: {
    protection: { challengeScope: "read", needs },
    behaviour: { tokens: (answer) => ({ ...answer, scope: "read" }) },
  },
  machine: {
    entry: { oauth: { grantType: "client_credentials", clientId: "ci", clientSecret: MACHINE_SECRET } },
    protection: { needs },
    prepare: ({ trusted }) => trusted.book.addClient({ id: "ci", secret: MACHINE_SECRET }),
  },
});

test("a tool wants more scope -> the next sign-in asks for all scopes, and the call works", async () => {
  const story = await beside("agreeing");
  expect((await story.signIn()).says).toBe("signed in");
  expect(textOf(await story.at.call(story.name, "echo", {}))).toBe("{}");
  const connects = (): number =>
    story.guarded.requests.filter(({ body }) => body.includes('"initialize"')).length;
  const before = connects();
  expect(await saysOfCall(story, "change")).toBe(WANTS_WRITE);
  expect(story.trusted.grants).toEqual(["authorization_code"]);
  // Its other tools go on with the token that it has.
  expect(await story.at.settled(story.name)).toMatchObject({
    state: "connected",
    signIn: { state: "signed-in" },
  });
  expect(textOf(await story.at.call(story.name, "echo", {}))).toBe("{}");
  expect(connects()).toBe(before);
  expect((await story.signIn()).says).toBe("signed in");
  expect(textOf(await story.at.call(story.name, "change", {}))).toBe("{}");
  const asked = story.trusted.asked("/authorize").map(({ query }) => scopesOf(query.get("scope")));
  expect(asked).toEqual([["read"], ["read", "write"]]);
  expect(story.trusted.book.registrations).toBe(1);
});

test("a server that is never content -> two more sign-ins, then a clear end", async () => {
  const story = await beside("discontent");
  expect((await story.signIn()).says).toBe("signed in");
  story.guarded.protection.check = (token, resource) =>
    story.trusted.book.check(token, resource) ? ["read"] : undefined;
  const outcomes: string[] = [];
  for (let i = 0; i < 4; i++) {
    await saysOfCall(story, "change");
    outcomes.push((await story.signIn()).says);
  }
  expect(outcomes.slice(0, 2)).toEqual(["signed in", "signed in"]);
  expect(outcomes[2]).not.toBe("signed in");
  expect(story.trusted.asked("/authorize")).toHaveLength(3);
});

test("a machine that lacks scope -> an error at once, no further token request before the user asks for it", async () => {
  const story = await beside("machine");
  expect(await saysOfCall(story, "change")).toBe(WANTS_WRITE);
  expect(story.trusted.grants).toEqual(["client_credentials"]);
  // Whoever asks for a sign-in gets another token, with the scope that is wanted.
  expect((await story.signIn()).says).toBe("signed in");
  expect(story.trusted.grants).toEqual(["client_credentials", "client_credentials"]);
  expect(textOf(await story.at.call(story.name, "change", {}))).toBe("{}");
});
