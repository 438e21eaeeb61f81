/** Owns: servers that a workload signs in to by an assertion of its own (RFC 7523, section 2.1), where it comes from and when it is read. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type AssertionIssuer, assertionIssuer } from "../support/assertions.ts";
import { tempFolder } from "../unit/temp-folder.ts";
import { textOf } from "../worker/support.ts";
import { authorization, expectNoSecret, follow, guarded, type Story, saysOfCall, stored } from "./support.ts";

const BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer";

interface Workload extends Story {
  issuer: AssertionIssuer;
  /** Puts an assertion for this audience into the file. */
  issue(aud: string): Promise<void>;
}

/** `oauthOf`: the keys of `oauth`, from the path of the assertion's file. */
async function workload(oauthOf: (file: string) => Record<string, unknown>): Promise<Workload> {
  const issuer = assertionIssuer("https://workloads.example");
  const trusted = await authorization({ assertions: (assertion, aud) => issuer.check(assertion, aud) });
  const file = join(await tempFolder(), "token");
  const issue = (aud: string): Promise<void> => writeFile(file, `${issuer.issue(aud)}\n`);
  await issue(trusted.issuer);
  const entry = { oauth: { grantType: "jwt_bearer", ...oauthOf(file) } };
  const story = await follow(trusted, await guarded(trusted), { entry });
  return { ...story, issuer, issue };
}

const secretsOf = ({ issuer, trusted }: Workload): string[] => [...issuer.secrets, ...trusted.book.secrets];
const sentBy = ({ trusted }: Workload): (string | null)[] =>
  trusted.asked("/token").map(({ form }) => form.get("assertion"));

test.each<[string, (file: string) => Record<string, unknown>]>([
  ["a file", (assertionFile) => ({ assertionFile })],
  ["a command", (file) => ({ assertion: `!cat '${file}'`, clientId: "ci" })],
])(
  "%s -> a token without a user; each token is asked for with the assertion of now",
  async (_from, oauth) => {
    const story = await workload(oauth);
    const { at, name, trusted, issuer } = story;
    trusted.book.addClient({ id: "ci" });
    expect(textOf(await at.call(name, "echo", { a: 1 }))).toBe('{"a":1}');
    const isIn = { state: "signed-in", renews: true, byItself: true, expiresAt: expect.any(Number) };
    expect(await at.settled(name)).toMatchObject({ state: "connected", signIn: isIn });
    // The program that writes the file has renewed it.
    await story.issue(trusted.issuer);
    trusted.book.expireAll();
    await Promise.all([1, 2, 3].map((a) => at.call(name, "echo", { a })));
    expect(trusted.grants).toEqual([BEARER, BEARER]);
    expect(sentBy(story)).toEqual([...issuer.secrets]);
    expect(await stored(story.place)).toEqual([]);
    const { text } = await at.runtime.ask("signOut", { server: name });
    expect(text).toBe(
      `web signs in by itself, without a user: switch it off, or take grantType out of ${join(story.place.agentDir, "mcp.json")}.`,
    );
    await expectNoSecret(story, secretsOf(story));
  },
);

test("an assertion for another audience -> the user reads which one, and no other grant is tried", async () => {
  const story = await workload((assertionFile) => ({ assertionFile }));
  const { trusted } = story;
  await story.issue("https://other.example");
  expect(await saysOfCall(story)).toBe(
    `web: its authorization server refuses the assertion: The audience is wrong. Of the assertion: its audience is https://other.example. The authorization server is ${trusted.issuer}, and must trust the issuer of the assertion.`,
  );
  expect(new Set(trusted.grants)).toEqual(new Set([BEARER]));
  // Whoever renews the file has mended it: `/mcp auth` connects the server, and no browser opens.
  await story.issue(trusted.issuer);
  expect(await story.signIn()).toMatchObject({ result: { ok: true, tools: 1 } });
  expect(trusted.asked("/authorize")).toEqual([]);
  await expectNoSecret(story, secretsOf(story));
});
