/** Owns: sign-ins in a real gnome-keyring. Runs where dbus-daemon, gdbus, gnome-keyring-daemon and secret-tool are installed. */
import { spawnSync } from "node:child_process";
import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { type Keyring, startKeyring } from "../../../../../../support/secret-store.ts";
import { addTogether, killedWriting } from "../changer.ts";
import { never, openStore, signedIn, type TestStore, write } from "../support.ts";

async function inKeyring(keyring?: Keyring): Promise<TestStore & { keyring: Keyring }> {
  const used = keyring ?? (await startKeyring());
  const { env } = used;
  const at = await openStore({
    tokenStore: () => "system",
    system: { env, platform: "linux", onSpawn: () => undefined, onExit: () => undefined },
  });
  return { ...at, keyring: used };
}

/** How many texts of ours the keyring holds. */
function heldBy({ env }: Keyring): number {
  const { stdout } = spawnSync("secret-tool", ["search", "--all", "service", "pi-mcp-threads"], { env });
  return String(stdout).match(/^secret = /gm)?.length ?? 0;
}

test("a sign-in is written, read by another process's store, replaced and forgotten -> the file has no secret", async () => {
  const at = await inKeyring();
  await write(at.store, signedIn());
  expect(await at.store.read()).toEqual({ record: signedIn(), isInSystem: true });
  const file = await readFile(at.place.file, "utf8");
  expect(file).not.toContain("token-1");
  expect(JSON.parse(file)).toMatchObject({ version: 3, store: "system", parts: 1 });
  const next = signedIn({ access_token: "access-token-2", refresh_token: "r".repeat(16_000) });
  await write(at.store, next);
  expect(await at.store.read()).toEqual({ record: next, isInSystem: true });
  expect(heldBy(at.keyring)).toBe(JSON.parse(await readFile(at.place.file, "utf8")).parts);
  await at.store.locked((held) => held.forget(), never());
  expect(await at.store.read()).toEqual({});
  expect(heldBy(at.keyring)).toBe(0);
});

test("a locked keyring -> the sentence, nothing is changed, and it works again when it is unlocked", async () => {
  const at = await inKeyring();
  await write(at.store, signedIn());
  const file = await readFile(at.place.file, "utf8");
  await at.keyring.lock();
  const locked = { kind: "system-store", facts: { what: "it is locked" } };
  await expect(write(at.store, signedIn({ access_token: "next" }))).rejects.toMatchObject(locked);
  await expect(at.store.locked((held) => held.forget(), never())).rejects.toMatchObject(locked);
  await expect(at.store.check()).rejects.toMatchObject(locked);
  expect(await readFile(at.place.file, "utf8")).toBe(file);
  // What this process knows it goes on using.
  expect(await at.store.read()).toEqual({ record: signedIn(), isInSystem: true });
  await at.keyring.unlock();
  await write(at.store, signedIn({ access_token: "next" }));
  expect(await at.store.read()).toMatchObject({ record: { access_token: "next" } });
});

test("moved there and back -> each place has it alone", async () => {
  const at = await inKeyring();
  const { env } = at.keyring;
  const inFile = await openStore({ agentDir: at.agentDir });
  await write(inFile.store, signedIn());
  expect(await at.store.move("system", never())).toEqual({ how: "moved", keeps: false });
  expect(await readFile(at.place.file, "utf8")).not.toContain("token-1");
  expect(heldBy(at.keyring)).toBe(1);
  expect(await at.store.move("system", never())).toEqual({ how: "there" });
  const back = await openStore({
    agentDir: at.agentDir,
    system: { env, platform: "linux", onSpawn: () => undefined, onExit: () => undefined },
  });
  expect(await back.store.move("file", never())).toEqual({ how: "moved", keeps: false });
  expect(await inFile.store.read()).toEqual({ record: signedIn() });
  expect(heldBy(at.keyring)).toBe(0);
});

test("four processes add to one sign-in -> no change is lost, and one text is left", async () => {
  const at = await inKeyring();
  await addTogether(at, at.keyring.env, 5);
  await write(at.store, signedIn());
  expect(heldBy(at.keyring)).toBe(1);
});

test("kill -9 in the middle of writing, again and again -> old or new, and the next writes clear up", async () => {
  const at = await inKeyring();
  await killedWriting(at, at.keyring.env, 4);
  await write(at.store, signedIn());
  await write(at.store, signedIn({ access_token: "the last" }));
  expect(heldBy(at.keyring)).toBe(1);
});
