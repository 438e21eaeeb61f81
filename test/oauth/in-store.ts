/**
 * Owns: the proof that processes share one sign-in whose tokens are in the system's credential store, for each store that is
 * found with an environment.
 */
import { expect } from "vitest";
import { filesBelow } from "../support/files-below.ts";
import { findSecrets, readBelow } from "../support/find-secrets.ts";
import { repeats } from "../support/long.ts";
import { startCaller } from "./caller.ts";
import { expectNoSecret, oidcStory, onCleanup, storeOf } from "./support.ts";

const TOKEN_MS = 300;
const SHARED_MS = repeats("OAUTH_PROCESSES_MS", 700);

/** Both this process and those that it starts find the store with these variables. */
function useEnvironment(env: Record<string, string | undefined>): void {
  const before = { ...process.env };
  onCleanup(() => {
    for (const name of Object.keys(env)) {
      if (before[name] === undefined) delete process.env[name];
      else process.env[name] = before[name];
    }
  });
  // The person's own home stays: a worker would look for other programs' files there.
  for (const [name, value] of Object.entries(env))
    if (value !== undefined && name !== "HOME") process.env[name] = value;
}

/** Two processes renew the tokens of one sign-in for a while. Nothing of a token is on the disk then. */
export async function renewTogether(env: Record<string, string | undefined>): Promise<void> {
  useEnvironment(env);
  const story = await oidcStory({ tokenMs: TOKEN_MS, settings: { tokenStore: "system" } });
  const { oidc, place, signIn, at } = story;
  expect((await signIn()).says).toBe("signed in");
  const callers = Array.from({ length: 2 }, () => startCaller(place, SHARED_MS));
  const told = await Promise.all(callers.map((caller) => caller.told));
  expect(oidc.refusals).toEqual([]);
  expect(oidc.revoked).toBe(0);
  expect(oidc.grants.filter((grant) => grant === "refresh_token").length).toBeGreaterThan(0);
  for (const { succeeded, failures } of told) {
    expect(succeeded).toBeGreaterThan(0);
    // A busy machine may need longer for one renewal, or for three in a row, than a token lives. Such a call fails, and the
    // sign-in lives on.
    const others = Object.keys(failures).filter(
      (says) => !/^web: it refused a token that was just issued|^web\S* .*answered 401/.test(says),
    );
    expect(others).toEqual([]);
  }
  await expectNoSecret({ at, place }, oidc.secrets);
  expect((await filesBelow(storeOf(place))).length).toBe(1);
  expect(findSecrets(await readBelow(storeOf(place)), oidc.secrets)).toEqual([]);
}
