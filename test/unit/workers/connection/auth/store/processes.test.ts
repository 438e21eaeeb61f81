/** Owns: several processes with one sign-in: none loses what another wrote, and a killed one leaves old or new. */
import { readdir, readFile } from "node:fs/promises";
import { basename } from "node:path";
import { describe, expect, test } from "vitest";
import { parseRecord } from "../../../../../../workers/connection/auth/store/record.ts";
import { startChanger } from "./changer.ts";
import { inPi, PI_KEY, piText } from "./pi-file-of-test.ts";
import { never, openStore, piFileOf, put, signedIn, type TestStore, write } from "./support.ts";

const readWhole = async ({ place }: TestStore): Promise<number> => {
  const parsed = parseRecord(await readFile(place.file, "utf8"));
  if ("what" in parsed) throw new Error(parsed.what);
  const { obtainedAt = 0, refresh_token } = parsed.value;
  expect(refresh_token?.startsWith(`t${obtainedAt}-`)).toBe(true);
  return obtainedAt;
};

test("four processes add to one sign-in -> no change is lost, nothing else is left", async () => {
  const at = await openStore();
  const changers = Array.from({ length: 4 }, () => startChanger(at.agentDir, "6"));
  const ends = await Promise.all(changers.map(({ ended }) => ended));
  expect(ends.map(({ code, errors }) => ({ code, errors }))).toEqual(
    changers.map(() => ({ code: 0, errors: "" })),
  );
  expect(ends.map(({ last }) => Number(last))).toContain(24);
  expect(await readWhole(at)).toBe(24);
  expect(await readdir(at.place.folder)).toEqual([basename(at.place.file)]);
});

describe("kill -9", () => {
  test("in the middle of writing, again and again -> old or new, never half, and the next one goes on", async () => {
    const at = await openStore();
    let last = 0;
    for (let round = 1; round <= 3; round++) {
      const { child, printed, ended } = startChanger(at.agentDir, "100000");
      await printed(round);
      child.kill("SIGKILL");
      await ended;
      const now = await readWhole(at);
      expect(now).toBeGreaterThanOrEqual(last + round);
      last = now;
    }
    await write(at.store, signedIn());
    expect(await at.store.read()).toEqual({ record: signedIn() });
  });

  test("while it holds the lock -> the next one gets the lock, however long silence is allowed", async () => {
    const at = await openStore();
    await write(at.store, signedIn());
    const { child, printed, ended } = startChanger(at.agentDir, "hold");
    await printed(1);
    const next = at.store.locked(async ({ record }) => record, never());
    child.kill("SIGKILL");
    await ended;
    expect(await next).toEqual(signedIn());
  });
});

test("three processes take Pi's sign-in at once -> one gets it", async () => {
  const at = await openStore();
  await put(piFileOf(at.agentDir), piText({ [PI_KEY]: inPi() }));
  const takers = Array.from({ length: 3 }, () => startChanger(at.agentDir, "take"));
  const ends = await Promise.all(takers.map(({ ended }) => ended));
  expect(ends.map(({ last }) => last).sort()).toEqual(["none", "none", "pi-refresh"]);
  expect(await at.store.read()).toMatchObject({ record: { refresh_token: "pi-refresh" } });
  expect(await readFile(piFileOf(at.agentDir), "utf8")).toBe("{}\n");
});

test("another process writes -> a store that read before sees it", async () => {
  const at = await openStore();
  await write(at.store, signedIn({ obtainedAt: 41 }));
  await at.store.read();
  await startChanger(at.agentDir, "1").ended;
  expect(await at.store.read()).toMatchObject({ record: { obtainedAt: 42 } });
});
