/** Owns: what a store reads, writes and forgets, what it keeps if the disk takes nothing, and what it tells. */

import { execFile } from "node:child_process";
import {
  chmod,
  lstat,
  mkdir,
  readdir,
  readFile,
  rename,
  rm,
  symlink,
  utimes,
  writeFile,
} from "node:fs/promises";
import { createServer } from "node:net";
import { basename, dirname, join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, onTestFinished, test } from "vitest";
import { ownId, refusal } from "../../../../../../workers/connection/auth/store/file.ts";
import type { SignInStore } from "../../../../../../workers/connection/auth/store/store.ts";
import { nodeFiles } from "../../../../../../workers/shared/files/file-system.ts";
import { lockPathOf } from "../../../../../../workers/shared/files/lock.ts";
import { refuseChmod } from "../../../../refused-chmod.ts";
import { tempFolder } from "../../../../temp-folder.ts";
import { failingFiles, type Step } from "../../../cache/support.ts";
import { forget, never, openStore, put, settle, signedIn, URL_OF_SERVER, write } from "./support.ts";

const GIVEN = { access_token: "given-token", token_type: "Bearer" };

describe("read", () => {
  test("nothing -> nothing, and nothing is made or told", async () => {
    const { store, agentDir, notes, warnings } = await openStore();
    expect(await store.read()).toEqual({});
    expect([await readdir(agentDir), notes, warnings]).toEqual([[], [], []]);
  });

  test("a sign-in that was written -> the same in another store", async () => {
    const { store, agentDir } = await openStore();
    await write(store, signedIn());
    expect(await (await openStore({ agentDir })).store.read()).toEqual({ record: signedIn() });
  });

  test("another url, another server -> nothing", async () => {
    const { store, agentDir } = await openStore();
    await write(store, signedIn());
    const others = [{ url: "https://other.example/mcp" }, { server: "notion" }, { server: "Linear" }];
    for (const other of others)
      expect(await (await openStore({ agentDir, ...other })).store.read()).toEqual({});
  });

  test.each([
    ["server", { server: "notion" }],
    ["url", { url: "https://other.example/mcp" }],
  ])("a file that was copied from another %s -> absent, noted once", async (_name, over) => {
    const { store, place, notes } = await openStore();
    await put(place.file, signedIn(over));
    expect([await store.read(), await store.read()]).toEqual([{}, {}]);
    expect(notes).toEqual([`${place.file} is not used: it is the sign-in of another server or url.`]);
  });

  test.each([
    ["half a file", JSON.stringify(signedIn()).slice(0, 80)],
    ["no issuer", JSON.stringify({ ...signedIn(), issuer: undefined })],
  ])("%s -> absent, noted once without its content; the next write keeps it aside", async (_name, text) => {
    const { store, place, notes, warnings } = await openStore();
    await put(place.file, text);
    expect([await store.read(), await store.read()]).toEqual([{}, {}]);
    expect([notes.length, warnings]).toEqual([1, []]);
    expect(notes[0]).not.toContain("token-1");
    await write(store, signedIn());
    const [aside = ""] = (await readdir(place.folder)).filter((name) => name.includes(".corrupt-"));
    expect(await readFile(join(place.folder, aside), "utf8")).toBe(text);
    expect(await store.read()).toEqual({ record: signedIn() });
  });

  test("an unchanged file -> one look, not read again; any change -> read again", async () => {
    const { store, place } = await openStore();
    await put(place.file, signedIn({ access_token: "one" }));
    await settle(place.file);
    const { record } = await store.read();
    expect((await store.read()).record).toBe(record);
    // In place and as long as before, as an editor saves it.
    await writeFile(place.file, JSON.stringify(signedIn({ access_token: "two" })));
    expect(await store.read()).toMatchObject({ record: { access_token: "two" } });
  });

  test("a file whose time of change is too new to tell -> read again each time", async () => {
    const { store, place } = await openStore();
    const soon = new Date(Date.now() + 3_600_000);
    await put(place.file, signedIn({ access_token: "one" }));
    await utimes(place.file, soon, soon);
    expect(await store.read()).toMatchObject({ record: { access_token: "one" } });
    await writeFile(place.file, JSON.stringify(signedIn({ access_token: "two" })));
    await utimes(place.file, soon, soon);
    expect(await store.read()).toMatchObject({ record: { access_token: "two" } });
  });
});

describe("read: tokens of others", () => {
  test("tokens.json alone -> given, with its path", async () => {
    const { store, place } = await openStore();
    await put(place.given, { ...GIVEN, expiresAt: 1_800_000_000_000 });
    expect(await store.read()).toEqual({
      given: { tokens: { ...GIVEN, expiresAt: 1_800_000_000_000 }, path: place.given },
    });
  });

  test("an entry whose name a project leads elsewhere -> tokens.json does not count", async () => {
    const { store, place } = await openStore({ takesGiven: false });
    await put(place.given, GIVEN);
    expect(await store.read()).toEqual({});
  });

  test("own tokens -> tokens.json does not count; own record without tokens -> it does", async () => {
    const { store, place } = await openStore();
    await put(place.given, GIVEN);
    await write(store, signedIn());
    expect(await store.read()).toEqual({ record: signedIn() });
    const { access_token, refresh_token, ...registered } = signedIn();
    await write(store, registered);
    expect(await store.read()).toEqual({ record: registered, given: { tokens: GIVEN, path: place.given } });
    expect([access_token, refresh_token]).not.toContain(undefined);
  });

  test("expires_in -> counted from the file's time of change", async () => {
    const { store, place } = await openStore();
    await put(place.given, { ...GIVEN, expires_in: 100_000 });
    await settle(place.given, 60);
    const { given } = await store.read();
    const leftMs = (given?.tokens.expiresAt ?? 0) - Date.now();
    expect(leftMs).toBeGreaterThan(0);
    expect(leftMs).toBeLessThanOrEqual(99_940_000);
  });

  test("an unusable file -> told once by its path, never by its content, also to the next store", async () => {
    const { store, place, warnings, agentDir } = await openStore();
    await put(place.given, '{"access_token": "very secret');
    expect([await store.read(), await store.read()]).toEqual([{}, {}]);
    const next = await openStore({ agentDir });
    expect(await next.store.read()).toEqual({});
    expect([...warnings, ...next.warnings]).toEqual([`${place.given} is not used: it is not a JSON object.`]);
  });

  test("writing and forgetting a sign-in -> tokens.json stays as it is", async () => {
    const { store, place } = await openStore();
    await put(place.given, GIVEN);
    await write(store, signedIn());
    await forget(store);
    expect(await readdir(place.folder)).toEqual(["tokens.json"]);
    expect(await readFile(place.given, "utf8")).toBe(JSON.stringify(GIVEN));
  });
});

describe("locked", () => {
  test("the record -> as it stands in the file, and after each step as it stands then", async () => {
    const { store, agentDir } = await openStore();
    await write((await openStore({ agentDir })).store, signedIn());
    const seen = await store.locked(async (held) => {
      const before = held.record;
      await held.write(signedIn({ access_token: "new" }));
      const written = held.record;
      await held.forget();
      return [before, written, held.record];
    }, never());
    expect(seen).toEqual([signedIn(), signedIn({ access_token: "new" }), undefined]);
  });

  test("work that fails -> its error, and the lock is free", async () => {
    const { store } = await openStore();
    await expect(store.locked(() => Promise.reject(new Error("mine")), never())).rejects.toThrow("mine");
    await write(store, signedIn());
    expect(await store.read()).toEqual({ record: signedIn() });
  });

  test("twenty at once in two stores -> one after the other", async () => {
    const { store, agentDir } = await openStore();
    const stores = [store, (await openStore({ agentDir })).store];
    await write(store, signedIn({ obtainedAt: 0 }));
    const add = (one: typeof store): Promise<void> =>
      one.locked(async (held) => {
        const { record = signedIn() } = held;
        await held.write({ ...record, obtainedAt: (record.obtainedAt ?? 0) + 1 });
      }, never());
    await Promise.all(Array.from({ length: 20 }, (_, i) => add(stores[i % 2] ?? store)));
    expect(await store.read()).toMatchObject({ record: { obtainedAt: 20 } });
  });

  test("another process holds the lock for longer than the wait -> lock-busy with the file", async () => {
    const times = { waitMs: 60, beatMs: 1_000, silentMs: 45_000 };
    const { store, place } = await openStore({}, { lockTimes: times });
    await put(join(lockPathOf(place.file), "00000000-1-0123456789ab.0"), "");
    const busy = { name: "SignInProblem", kind: "lock-busy", facts: { path: place.file } };
    await expect(store.locked(async () => 1, never())).rejects.toMatchObject(busy);
  });

  test("this process holds it for longer than the wait -> lock-busy; the holder goes on", async () => {
    const times = { waitMs: 60, beatMs: 1_000, silentMs: 45_000 };
    const { store } = await openStore({}, { lockTimes: times });
    const { promise: end, resolve } = Promise.withResolvers<void>();
    const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
    const first = store.locked(async (held) => {
      begin();
      await end;
      await held.write(signedIn());
    }, never());
    await begun;
    await expect(store.locked(async () => 1, never())).rejects.toMatchObject({ kind: "lock-busy" });
    resolve();
    await first;
    expect(await store.read()).toEqual({ record: signedIn() });
  });

  test.each(["this process", "another process"])(
    "cancelled while %s holds it -> cancelled at once, and nothing is left of the contender",
    async (who) => {
      const { store, place } = await openStore();
      const { promise: end, resolve } = Promise.withResolvers<void>();
      const first = who === "this process" ? store.locked(() => end, never()) : undefined;
      const held = join(lockPathOf(place.file), "00000000-1-0123456789ab.0");
      if (!first) await put(held, "");
      const controller = new AbortController();
      const second = store.locked(async () => 1, controller.signal);
      // Besides the lock, the folder then holds what the contender has prepared.
      if (!first) await expect.poll(() => readdir(place.folder)).toHaveLength(2);
      controller.abort();
      await expect(second).rejects.toMatchObject({ kind: "cancelled" });
      resolve();
      await first;
      if (!first) expect(await readdir(place.folder)).toEqual([basename(dirname(held))]);
    },
  );

  test("work that writes nothing -> no folder of the server is left", async () => {
    const { store, place } = await openStore();
    await store.locked(async () => undefined, never());
    expect(await readdir(place.root)).toEqual([]);
  });
});

describe("forget", () => {
  test("the file, its copies that were kept aside and what killed writers left -> gone, the folder too", async () => {
    const { store, place } = await openStore();
    await put(place.file, "broken");
    await write(store, signedIn());
    await put(join(place.folder, `.${basename(place.file)}.0123456789ab.tmp`), "half of it");
    await forget(store);
    expect(await store.read()).toEqual({});
    expect(await readdir(place.root)).toEqual([]);
  });

  test("other urls of the server, other files -> they stay", async () => {
    const { store, place, agentDir } = await openStore();
    const other = await openStore({ agentDir, url: `${URL_OF_SERVER}/v2` });
    await write(store, signedIn());
    await write(other.store, signedIn({ url: `${URL_OF_SERVER}/v2` }));
    await put(join(place.folder, "notes.txt"), "mine");
    await forget(store);
    expect((await readdir(place.folder)).sort()).toEqual([basename(other.place.file), "notes.txt"].sort());
  });

  test("nothing to forget -> nothing happens", async () => {
    const { store, warnings } = await openStore();
    await forget(store);
    expect(warnings).toEqual([]);
  });
});

describe("a disk that takes nothing", () => {
  const failing = (step: Step, code: string) => failingFiles(step, code, /mcp-oauth/);

  test.each<[string, Step, string]>([
    ["read-only", "create", "EROFS"],
    ["full", "create", "ENOSPC"],
    ["full in the middle of the content", "write", "ENOSPC"],
    ["broken", "sync", "EIO"],
    ["closed to this user", "create", "EACCES"],
  ])(
    "%s -> the sign-in counts in this process, told once, and nothing half is left",
    async (_name, step, code) => {
      const files = failing(step, code);
      const { store, place, agentDir, warnings } = await openStore({}, { files });
      await write(store, signedIn());
      await write(store, signedIn({ access_token: "second" }));
      const other = await openStore({ agentDir }, { files });
      expect(await other.store.read()).toEqual({ record: signedIn({ access_token: "second" }) });
      expect(await other.store.locked(async ({ record }) => record, never())).toMatchObject({
        access_token: "second",
      });
      expect(warnings).toHaveLength(1);
      expect(warnings[0]).toContain(`linear: the sign-in could not be written to ${place.file}: ${code}`);
      expect(warnings[0]).toContain("It holds until this session ends.");
      expect(warnings[0]).not.toContain("token-1");
      expect(other.warnings).toEqual([]);
      const left = await readdir(place.folder).catch(() => []);
      expect(left.filter((name) => !name.includes(".lock"))).toEqual([]);
    },
  );

  test("no modes of its own, and the folder is open to others -> nothing is written; it is private -> written", async () => {
    const { store, place, warnings } = await openStore();
    await mkdir(place.folder, { recursive: true, mode: 0o700 });
    await chmod(place.root, 0o755);
    await refuseChmod();
    await write(store, signedIn());
    expect(warnings).toEqual([expect.stringContaining("EPERM: injected, chmod")]);
    expect(await readdir(place.folder).catch(() => [])).toEqual([]);
    const other = await openStore();
    await write(other.store, signedIn());
    expect(other.warnings).toEqual([]);
    expect(await readFile(other.place.file, "utf8")).toContain("token-1");
  });

  test("it takes something again -> the next write is on the disk, and a later failure is told again", async () => {
    const { agentDir, store, warnings } = await openStore({}, { files: failing("rename", "ENOSPC") });
    await write(store, signedIn({ access_token: "kept" }));
    const healthy = await openStore({ agentDir });
    await healthy.store.locked((held) => held.write({ ...signedIn(), ...held.record, scope: "a" }), never());
    expect(await healthy.store.read()).toMatchObject({ record: { access_token: "kept", scope: "a" } });
    expect(JSON.parse(await readFile(healthy.place.file, "utf8"))).toMatchObject({ access_token: "kept" });
    await write(store, signedIn({ access_token: "again" }));
    expect(warnings).toHaveLength(2);
  });

  /** A disk that is full until it is told otherwise. */
  function fillable() {
    const disk = { isFull: true };
    const create: typeof nodeFiles.create = async (...given) => {
      if (disk.isFull) throw Object.assign(new Error("ENOSPC: no space"), { code: "ENOSPC" });
      return nodeFiles.create(...given);
    };
    return { disk, files: { ...nodeFiles, create } };
  }

  const WAYS: [string, (store: SignInStore) => Promise<unknown>][] = [
    ["a read", (store) => store.read()],
    ["the lock", (store) => store.locked(async () => undefined, never())],
    ["the end of the session", (store) => store.writeKept()],
  ];
  test.each(WAYS)(
    "it has room again, and then %s -> the sign-in is on the disk for the next session",
    async (_name, way) => {
      const { disk, files } = fillable();
      const { store, place, warnings } = await openStore({}, { files, keptMs: 0 });
      disk.isFull = false;
      await write(store, signedIn({ refresh_token: "spent" }));
      disk.isFull = true;
      await write(store, signedIn({ refresh_token: "renewed" }));
      await way(store);
      expect(await readFile(place.file, "utf8")).toContain("spent");
      disk.isFull = false;
      await way(store);
      await expect.poll(() => readFile(place.file, "utf8")).toContain("renewed");
      // A read does not wait for it.
      await store.locked(async () => undefined, never());
      expect(await store.read()).toMatchObject({ record: { refresh_token: "renewed" } });
      expect(warnings).toHaveLength(1);
    },
  );

  test("it has room again, but another process has signed in meanwhile -> its sign-in stays", async () => {
    const { disk, files } = fillable();
    const { store, place } = await openStore({}, { files });
    await write(store, signedIn({ access_token: "kept" }));
    await put(place.file, signedIn({ access_token: "of-the-other" }));
    disk.isFull = false;
    await store.writeKept();
    expect(await readFile(place.file, "utf8")).toContain("of-the-other");
    expect(await store.read()).toMatchObject({ record: { access_token: "of-the-other" } });
  });

  test("another process writes meanwhile -> the file counts, not what was kept", async () => {
    const { store, place } = await openStore({}, { files: failingFiles("rename", "EROFS", /\.json$/) });
    await write(store, signedIn({ access_token: "kept" }));
    await put(place.file, signedIn({ access_token: "of-the-other" }));
    expect(await store.read()).toMatchObject({ record: { access_token: "of-the-other" } });
  });

  test("a file that cannot be removed -> forgotten in this process, and the user is told to delete it", async () => {
    const { agentDir, store } = await openStore();
    await write(store, signedIn());
    const stuck = await openStore({ agentDir }, { files: failingFiles("remove", "EROFS", /\.json$/) });
    await forget(stuck.store);
    expect([await stuck.store.read(), await store.read()]).toEqual([{}, {}]);
    expect(stuck.warnings).toEqual([
      `linear: the sign-in could not be removed from ${stuck.place.file}: EROFS: injected, remove. Delete the file.`,
    ]);
  });

  test.each([
    ["a value that would be lost", { access_token: "two words" }, "it has a value that no sign-in has"],
    [
      "more than 64 KiB",
      {
        access_token: "x".repeat(16_384),
        refresh_token: "y".repeat(16_384),
        scope: "ü".repeat(8_192),
        requestedScope: "ü".repeat(8_192),
        resource: "z".repeat(8_192),
      },
      "it is larger than 65536 bytes",
    ],
  ])("%s -> kept in memory, and the old file stays", async (_name, over, why) => {
    const { store, place, warnings } = await openStore();
    await write(store, signedIn());
    const before = await readFile(place.file, "utf8");
    await write(store, signedIn(over));
    expect(await store.read()).toEqual({ record: signedIn(over) });
    expect(await readFile(place.file, "utf8")).toBe(before);
    expect(warnings[0]).toContain(why);
  });
});

describe("a holder that stood still and lost its lock", () => {
  /** No beat renames the owner's entry while the lock is removed. */
  const SELDOM = { waitMs: 60_000, beatMs: 20_000, silentMs: 45_000 };
  /** Removes the lock, as a contender does that takes the holder for dead, and leaves again. */
  const loseLock = (file: string): Promise<void> => rm(lockPathOf(file), { recursive: true });

  test("nobody renewed the sign-in meanwhile -> written under a new lock", async () => {
    const { store, place } = await openStore({}, { lockTimes: SELDOM });
    await write(store, signedIn());
    await store.locked(async (held) => {
      await loseLock(place.file);
      await held.write(signedIn({ refresh_token: "rotated" }));
    }, never());
    expect(await store.read()).toMatchObject({ record: { refresh_token: "rotated" } });
  });

  test("another process renewed it -> that one counts, and a note says so", async () => {
    const { store, place, notes } = await openStore({}, { lockTimes: SELDOM });
    await write(store, signedIn());
    const record = await store.locked(async (held) => {
      await loseLock(place.file);
      await put(place.file, signedIn({ refresh_token: "of-the-other" }));
      await held.write(signedIn({ refresh_token: "too-late" }));
      return held.record;
    }, never());
    expect(record).toMatchObject({ refresh_token: "of-the-other" });
    expect(await store.read()).toMatchObject({ record: { refresh_token: "of-the-other" } });
    expect(notes).toHaveLength(1);
  });

  test("another process dropped the tokens -> the renewed ones are written", async () => {
    const { store, place } = await openStore({}, { lockTimes: SELDOM });
    await write(store, signedIn());
    await store.locked(async (held) => {
      await loseLock(place.file);
      const { access_token: _a, refresh_token: _r, ...dropped } = signedIn();
      await put(place.file, dropped);
      await held.write(signedIn({ refresh_token: "rotated" }));
    }, never());
    expect(await store.read()).toMatchObject({ record: { refresh_token: "rotated" } });
  });
});

const modeOf = async (path: string): Promise<number> => (await lstat(path)).mode & 0o777;

describe("refusal", () => {
  async function found(make: (path: string) => Promise<unknown>) {
    const path = join(await tempFolder(), "f");
    await make(path);
    return lstat(path, { bigint: true });
  }
  const file = () => found((path) => writeFile(path, ""));
  const folder = () => found((path) => mkdir(path));
  const link = () => found((path) => symlink("/dev/null", path));
  const pipe = () => found((path) => promisify(execFile)("mkfifo", [path]));

  test.each<[string, typeof file, "file" | "folder", string | undefined]>([
    ["a file as a file", file, "file", undefined],
    ["a folder as a folder", folder, "folder", undefined],
    ["a folder as a file", folder, "file", "it is a folder, not a regular file"],
    ["a file as a folder", file, "folder", "it is not a folder"],
    ["a link as a file", link, "file", "it is a link"],
    ["a link as a folder", link, "folder", "it is a link"],
    ["a pipe as a file", pipe, "file", "it is a named pipe, not a regular file"],
  ])("%s -> $3", async (_name, make, wanted, what) => {
    expect(refusal(await make(), wanted, ownId())).toBe(what);
  });

  test.each<["file" | "folder", typeof file]>([
    ["file", file],
    ["folder", folder],
  ])("a %s of another user -> refused; where files have no owner -> used", async (wanted, make) => {
    const stats = await make();
    expect(refusal(stats, wanted, Number(stats.uid) + 1)).toBe("it belongs to another user");
    expect(refusal(stats, wanted, undefined)).toBeUndefined();
  });
});

describe("a file that must not be used -> absent, told once, neither followed nor changed", () => {
  test.each(["file", "given"] as const)("%s is a link to a file that would count", async (which) => {
    const { store, place, warnings } = await openStore();
    const real = join(dirname(place.root), "real.json");
    await put(real, { ...signedIn() });
    await mkdir(place.folder, { recursive: true });
    await symlink(real, place[which]);
    expect(await store.read()).toEqual({});
    expect(await store.read()).toEqual({});
    expect(warnings).toEqual([`${place[which]} is not used for a sign-in: it is a link.`]);
    expect((await lstat(place[which])).isSymbolicLink()).toBe(true);
  });

  test.each(["root", "folder"] as const)("the %s is a link", async (which) => {
    const { store, place, warnings, agentDir } = await openStore();
    const elsewhere = await openStore();
    await write(elsewhere.store, signedIn());
    await put(elsewhere.place.given, { access_token: "abc" });
    await mkdir(dirname(place[which]), { recursive: true });
    await symlink(elsewhere.place[which], place[which]);
    expect(await store.read()).toEqual({});
    expect(warnings).toEqual([`${place[which]} is not used for a sign-in: it is a link.`]);
    const before = await readFile(elsewhere.place.file, "utf8");
    await write(store, signedIn({ access_token: "new" }));
    expect(await readFile(elsewhere.place.file, "utf8")).toBe(before);
    expect(await store.read()).toMatchObject({ record: { access_token: "new" } });
    expect(warnings[1]).toContain(`${place[which]}: it is a link`);
    await forget(store);
    expect(await readFile(elsewhere.place.file, "utf8")).toBe(before);
    expect((await readdir(elsewhere.place.folder)).sort()).toEqual((await readdir(place.folder)).sort());
    expect(await readdir(agentDir)).toEqual(["mcp-oauth"]);
  });

  test("the file is a link -> a new sign-in stays in memory, the target stays as it is", async () => {
    const { store, place, warnings } = await openStore();
    const target = join(dirname(place.root), "target");
    await put(target, "precious");
    await mkdir(place.folder, { recursive: true });
    await symlink(target, place.file);
    await write(store, signedIn());
    expect(await store.read()).toEqual({ record: signedIn() });
    await forget(store);
    expect(await store.read()).toEqual({});
    expect(await readFile(target, "utf8")).toBe("precious");
    expect((await lstat(place.file)).isSymbolicLink()).toBe(true);
    expect(warnings).toHaveLength(2);
  });

  test.each<[string, (path: string) => Promise<unknown>, string]>([
    ["a folder", (path) => mkdir(path), "it is a folder, not a regular file"],
    [
      "a pipe that nobody writes to",
      (path) => promisify(execFile)("mkfifo", [path]),
      "it is a named pipe, not a regular file",
    ],
    [
      "a socket",
      async (path) => {
        const server = createServer();
        onTestFinished(() => void server.close());
        await new Promise<void>((resolve) => server.listen(path, resolve));
      },
      "it is a socket, not a regular file",
    ],
  ])("%s", async (_name, make, what) => {
    const { store, place, warnings } = await openStore();
    await mkdir(place.folder, { recursive: true });
    await make(place.file);
    await make(place.given);
    expect(await store.read()).toEqual({});
    expect(warnings).toEqual(
      [place.file, place.given].map((path) => `${path} is not used for a sign-in: ${what}.`),
    );
  });

  test("a file in the place of the folder -> absent; a sign-in stays in memory", async () => {
    const { store, place, warnings } = await openStore();
    await put(place.folder, "a file");
    expect(await store.read()).toEqual({});
    expect(warnings).toEqual([`${place.folder} is not used for a sign-in: it is not a folder.`]);
    await write(store, signedIn());
    expect(await store.read()).toEqual({ record: signedIn() });
    expect(await readFile(place.folder, "utf8")).toBe("a file");
  });

  test("a file of more than 64 KiB -> absent, and a new sign-in keeps it aside", async () => {
    const { store, place, notes } = await openStore();
    await put(place.file, " ".repeat(65_537));
    expect(await store.read()).toEqual({});
    expect(notes).toEqual([`${place.file} is not used: it is larger than 65,536 bytes.`]);
    await write(store, signedIn());
    expect(await store.read()).toEqual({ record: signedIn() });
    expect(await readdir(place.folder)).toHaveLength(2);
  });

  test("the link becomes a file -> used; becomes a link again -> told again", async () => {
    const { store, place, warnings } = await openStore();
    await mkdir(place.folder, { recursive: true });
    await symlink("nowhere", place.file);
    await store.read();
    await rm(place.file);
    await put(`${place.file}.new`, signedIn());
    await rename(`${place.file}.new`, place.file);
    expect(await store.read()).toEqual({ record: signedIn() });
    await rm(place.file);
    await symlink("nowhere", place.file);
    expect(await store.read()).toEqual({});
    expect(warnings).toHaveLength(2);
  });
});

describe("modes", () => {
  test("a new sign-in -> file 0600, folders 0700", async () => {
    const { store, place } = await openStore();
    await write(store, signedIn());
    expect(await Promise.all([place.root, place.folder, place.file].map(modeOf))).toEqual([
      0o700, 0o700, 0o600,
    ]);
    expect(await readdir(place.folder)).toEqual([place.file.slice(place.folder.length + 1)]);
  });

  test("file and folders that others may read -> closed with the next write", async () => {
    const { store, place } = await openStore();
    await write(store, signedIn());
    await chmod(place.file, 0o644);
    await chmod(place.folder, 0o755);
    await chmod(place.root, 0o777);
    await write(store, signedIn({ access_token: "new" }));
    expect(await Promise.all([place.root, place.folder, place.file].map(modeOf))).toEqual([
      0o700, 0o700, 0o600,
    ]);
  });
});
