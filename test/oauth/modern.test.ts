/** Owns: sign-ins to servers of the stateless era (MCP 2026-07-28): they ask for tokens as servers of the old era do. */
import { expect, test } from "vitest";
import { answering } from "../fixtures/modern/http.mjs";
import type { Answer } from "../support/recording-server.ts";
import { textOf } from "../worker/support.ts";
import { SERVER, saysOfCall, sideBySide, signedIn } from "./support.ts";

function modern(): Answer {
  const answer = answering("modern");
  return ({ method, path: url, headers, body }, response) => answer({ method, url, headers, body }, response);
}
const entry = { protocol: "2026-07-28" };

/** One worker for all stories that need no second session. */
const beside = sideBySide({
  auto: { protection: { answerMcp: modern() } },
  named: { protection: { answerMcp: modern() }, entry },
  refusing: { protection: { answerMcp: modern() }, entry },
});

test.each(["auto", "named"] as const)(
  "the era is %s, nobody is signed in -> needs-auth; after the sign-in a call works",
  async (key) => {
    const story = await beside(key);
    const { at, name } = story;
    expect(await at.settled(name)).toMatchObject({ state: "needs-auth" });
    expect(await saysOfCall(story)).toBe("web: it needs a sign-in. Run /mcp auth web in Pi.");
    expect((await story.signIn()).says).toBe("signed in");
    expect(textOf(await at.call(name, "echo", { text: "hi" }))).toBe("hi");
    const revisions = story.guarded.requests.map(({ headers }) => headers["mcp-protocol-version"]);
    expect(revisions.at(-1)).toBe("2026-07-28");
  },
);

test("a stored sign-in and a known server -> the first call of the next session is one request with the token", async () => {
  const first = await signedIn({ protection: { answerMcp: modern() }, entry });
  await first.at.settled(SERVER);
  const { at, guarded } = await first.again();
  await at.settled(SERVER);
  const before = guarded.requests.length;
  expect(textOf(await at.call(SERVER, "echo", { text: "again" }))).toBe("again");
  const [call, ...others] = guarded.requests.slice(before);
  expect(call?.headers).toMatchObject({ "mcp-method": "tools/call" });
  expect(call?.headers.authorization).toMatch(/^Bearer /);
  expect(others.filter(({ headers }) => !String(headers["mcp-method"]).endsWith("/list"))).toEqual([]);
});

test("the token is no longer taken in a call -> renewed, and the call runs once", async () => {
  const { at, name, guarded, trusted, signIn } = await beside("refusing");
  expect((await signIn()).says).toBe("signed in");
  await at.settled(name);
  const before = guarded.requests.length;
  trusted.book.expireAll();
  expect(textOf(await at.call(name, "echo", { text: "b" }))).toBe("b");
  const calls = guarded.requests
    .slice(before)
    .filter(({ headers }) => headers["mcp-method"] === "tools/call");
  // The first one was refused before it ran.
  expect(calls.length).toBeLessThanOrEqual(2);
});
