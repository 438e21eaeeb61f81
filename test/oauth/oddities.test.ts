/** Owns: what the user reads for each oddity of rows.ts, and for what stands in the way on this machine. */

import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { browse } from "../support/browser.ts";
import { textOf } from "../worker/support.ts";
import { ODDITIES } from "./rows.ts";
import { begin, expectNoSecret, onCleanup, SERVER, stored } from "./support.ts";

test.each(Object.entries(ODDITIES))("%s -> what the user reads", async (_name, row) => {
  const story = await begin({
    ...(row.behaviour ? { behaviour: { ...row.behaviour } } : {}),
    ...(row.protection ? { protection: row.protection } : {}),
    ...(row.entry ? { entry: row.entry } : {}),
  });
  row.prepare?.(story);
  const { says, questions, result } = await story.signIn();
  const wanted = typeof row.says === "function" ? row.says(story) : (row.says ?? "signed in");
  if (typeof wanted === "string") expect(says).toBe(wanted);
  else expect(says).toMatch(wanted);
  expect(questions.map(({ text }) => text)).toEqual(row.asks?.(story) ?? []);
  const asked = row.neverAsks === undefined ? [] : story.trusted.asked(row.neverAsks);
  expect(asked).toEqual([]);

  if (result.ok) expect(textOf(await story.at.call(SERVER, "echo", { a: 1 }))).toBe('{"a":1}');
  else expect((await stored(story.place)).filter(({ record }) => "access_token" in record)).toEqual([]);
  const written = JSON.stringify(row.entry ?? {});
  const secrets = [...story.trusted.book.secrets].filter((secret) => !written.includes(secret));
  await expectNoSecret(story, secrets, says);
});

test("the user does not trust another issuer -> nothing is asked there, nothing is stored", async () => {
  const story = await begin({
    behaviour: { metadata: (metadata) => ({ ...metadata, issuer: "https://login.example.test" }) },
  });
  const { says } = await story.signIn({ agrees: false });
  expect(says).toMatch(/Trust it\?$/);
  expect(story.trusted.book.registrations).toBe(0);
  expect(await stored(story.place)).toEqual([]);
});

test("another program uses the port of oauth.callbackPort -> the sentence names the port", async () => {
  const other = createServer().listen(0, "127.0.0.1");
  await once(other, "listening");
  onCleanup(async () => {
    other.close();
    await once(other, "close");
  });
  const { port } = other.address() as AddressInfo;
  const story = await begin({ entry: { oauth: { callbackPort: port } } });
  expect((await story.signIn()).says).toBe(
    `web: another program uses port ${port}, on which the browser must answer. End that program, or change oauth.callbackPort. Run /mcp auth web again.`,
  );
  expect(story.trusted.book.registrations).toBe(0);
});

test("the address of the answer is opened by a page of another site -> the sign-in waits on", async () => {
  const story = await begin();
  const statuses: number[] = [];
  const { says } = await story.signIn({
    open: async ({ redirectUri, url }) => {
      for (const query of ["", "?code=stolen", "?code=stolen&state=guessed", "?error=access_denied"]) {
        statuses.push((await fetch(`${redirectUri}${query}`)).status);
      }
      return browse(url);
    },
  });
  expect(statuses.every((status) => status >= 400 && status < 500)).toBe(true);
  expect(says).toBe("signed in");
});
