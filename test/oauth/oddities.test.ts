/** Owns: what the user reads for each oddity of rows.ts, and for what stands in the way on this machine. */

import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { browse } from "../support/browser.ts";
import { signInAs } from "../support/signing-in.ts";
import { createPlace, forRows, start, textOf } from "../worker/support.ts";
import { ODDITIES } from "./rows.ts";
import {
  authorization,
  begin,
  endedIn,
  expectNoSecret,
  guarded,
  onCleanup,
  SERVER,
  type Servers,
  sideBySide,
  stored,
  storedOf,
} from "./support.ts";

const ROWS = Object.values(ODDITIES);
/** The name of a row's server: no part of any sentence, so that the test can put the usual name in its place. */
const nameOf = (index: number): string => `qx${index}z`;
const withUsualName = (text: string, name: string): string => text.replaceAll(name, SERVER);

/** One worker with the servers of all rows. */
const shared = forRows(async () => {
  const servers: Servers[] = [];
  for (const row of ROWS) {
    const trusted = await authorization({ ...row.behaviour });
    const server = { trusted, guarded: await guarded(trusted, row.protection) };
    row.prepare?.(server);
    servers.push(server);
  }
  const place = await createPlace();
  const entries = ROWS.map((row, i) => [nameOf(i), { url: servers[i]?.guarded.url, ...row.entry }]);
  return { servers, place, at: await start(Object.fromEntries(entries), { place }) };
});

test.each(Object.keys(ODDITIES).map((title, index) => [title, index] as const))(
  "%s -> what the user reads",
  async (title, index) => {
    const { servers, place, at } = await shared();
    const [row, own, name] = [ODDITIES[title], servers[index], nameOf(index)];
    if (!row || !own) throw new Error(`no row ${title}`);
    const { says, questions, result } = await signInAs({}, { runtime: at.runtime, ended: endedIn(at) }, name);
    const read = withUsualName(says, name);
    const wanted = typeof row.says === "function" ? row.says(own) : (row.says ?? "signed in");
    if (typeof wanted === "string") expect(read).toBe(wanted);
    else expect(read).toMatch(wanted);
    expect(questions.map(({ text }) => withUsualName(text, name))).toEqual(row.asks?.(own) ?? []);
    const asked = row.neverAsks === undefined ? [] : own.trusted.asked(row.neverAsks);
    expect(asked).toEqual([]);

    const kept = (await stored(place)).filter(({ record }) => record.server === name);
    const hasToken = kept.some(({ record }) => "access_token" in record);
    expect(hasToken).toBe(result.ok);
    if (result.ok) expect(textOf(await at.call(name, "echo", { a: 1 }))).toBe('{"a":1}');
    const written = JSON.stringify(row.entry ?? {});
    const secrets = [...own.trusted.book.secrets].filter((secret) => !written.includes(secret));
    await expectNoSecret({ at, place }, secrets, says);
  },
);

const beside = sideBySide({
  distrusted: {
    behaviour: { metadata: (metadata) => ({ ...metadata, issuer: "https://login.example.test" }) },
  },
  visited: {},
});

test("the user does not trust another issuer -> nothing is asked there, nothing is stored", async () => {
  const story = await beside("distrusted");
  const { says } = await story.signIn({ agrees: false });
  expect(says).toMatch(/Trust it\?$/);
  expect(story.trusted.book.registrations).toBe(0);
  expect(await storedOf(story)).toEqual([]);
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
  const story = await beside("visited");
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
