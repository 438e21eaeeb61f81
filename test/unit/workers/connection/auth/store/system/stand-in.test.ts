/**
 * Owns: what holds whatever the program of the system's store does, with a stand-in for `secret-tool`: fail closed with a
 * sentence, lose nothing, write no secret into a file or a command line, and run seldom.
 */
import { copyFile, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { describe, expect, test } from "vitest";
import { nodeFiles } from "../../../../../../../workers/shared/files/file-system.ts";
import { lockPathOf } from "../../../../../../../workers/shared/files/lock.ts";
import { type Misdeed, type StandIn, standInStore } from "../../../../../../support/secret-store.ts";
import { addTogether, killedWriting, startChanger } from "../changer.ts";
import { inPi, PI_KEY, piText } from "../pi-file-of-test.ts";
import {
  forget,
  never,
  openStore,
  piFileOf,
  put,
  settle,
  signedIn,
  type TestStore,
  write,
} from "../support.ts";

type At = TestStore & { system: StandIn; pids: Set<number> };

async function inSystem(over: Parameters<typeof openStore>[0] = {}, waitMs = 60_000): Promise<At> {
  const system = await standInStore();
  const pids = new Set<number>();
  const at = await openStore({
    tokenStore: () => "system",
    system: {
      env: system.env,
      platform: "linux",
      onSpawn: (pid) => pids.add(pid),
      onExit: (pid) => pids.delete(pid),
      waitMs,
    },
    ...over,
  });
  return { ...at, system, pids };
}

/** Another store on the same place, as another process has it. */
const again = async (at: At, over: Parameters<typeof openStore>[0] = {}): Promise<TestStore> =>
  openStore({
    agentDir: at.agentDir,
    tokenStore: () => "system",
    system: { env: at.system.env, platform: "linux", onSpawn: () => undefined, onExit: () => undefined },
    ...over,
  });

const unusable = (what: string | RegExp) => ({
  kind: "system-store",
  facts: { what: typeof what === "string" ? what : expect.stringMatching(what) },
});

const fileOf = ({ place }: TestStore) => readFile(place.file, "utf8");
const decoded = async ({ system }: At): Promise<string[]> =>
  (await system.texts()).map((text) => Buffer.from(text, "base64url").toString());

describe("what lies where", () => {
  test("a sign-in -> one text in the store, a file without a secret, no secret in a command line", async () => {
    const at = await inSystem();
    await write(at.store, signedIn());
    expect((await decoded(at)).map((text) => JSON.parse(text) as unknown)).toEqual([signedIn()]);
    const file = await fileOf(at);
    expect(Object.keys(JSON.parse(file) as object)).toEqual([
      "version",
      "server",
      "url",
      "store",
      "item",
      "parts",
    ]);
    const written = file + (await at.system.runs()).join("\n");
    for (const secret of ["access-token-1", "refresh-token-1", ...(await at.system.texts())])
      expect(written).not.toContain(secret);
    expect(await at.store.read()).toEqual({ record: signedIn(), isInSystem: true });
    expect(await (await again(at)).store.read()).toEqual({ record: signedIn(), isInSystem: true });
    expect(at.pids.size).toBe(0);
  });

  test("a renewal -> the old text is gone, and nothing else is left", async () => {
    const at = await inSystem();
    await write(at.store, signedIn());
    await write(at.store, signedIn({ access_token: "access-token-2" }));
    expect(await decoded(at)).toEqual([expect.stringContaining("access-token-2")]);
    expect(JSON.parse(await fileOf(at))).not.toHaveProperty("remove");
    expect(await readdir(at.place.folder)).toEqual([basename(at.place.file)]);
    await forget(at.store);
    expect(await at.system.texts()).toEqual([]);
    expect(await at.store.read()).toEqual({});
    await expect(readdir(at.place.folder)).rejects.toMatchObject({ code: "ENOENT" });
  });

  test("a server's name with control characters -> it is in no command line", async () => {
    const server = "a\n\u001b[31m; rm -rf ~ $(id) `id` --label=x \u202e";
    const at = await inSystem({ server });
    const record = signedIn({ server });
    await write(at.store, record);
    expect(await at.store.read()).toEqual({ record, isInSystem: true });
    expect((await at.system.runs()).join("\n")).toMatch(
      /^(?:(?:store --label=pi-mcp-threads: h-[0-9a-f]{32}|search --unlock|clear) service pi-mcp-threads item [0-9a-f.]+\n?)+$/,
    );
  });

  test("a sign-in of 64 KiB -> parts, each of which the program takes", async () => {
    const at = await inSystem();
    const record = signedIn({ access_token: "a".repeat(16_000), refresh_token: "r".repeat(16_000) });
    await write(at.store, record);
    expect(await (await again(at)).store.read()).toEqual({ record, isInSystem: true });
    const { parts } = JSON.parse(await fileOf(at)) as { parts: number };
    expect(parts).toBe(6);
    expect((await at.system.texts()).length).toBe(parts);
    await write(at.store, signedIn());
    expect((await at.system.texts()).length).toBe(1);
  });

  test("the setting is off again -> the sign-in stays in the store, a new one goes to a file", async () => {
    const at = await inSystem();
    await write(at.store, signedIn());
    const off = await again(at, { tokenStore: () => "file" });
    await write(off.store, signedIn({ access_token: "access-token-2" }));
    expect(await decoded(at)).toEqual([expect.stringContaining("access-token-2")]);
    expect(await fileOf(at)).not.toContain("token-2");
    await forget(off.store);
    await write(off.store, signedIn());
    expect(await at.system.texts()).toEqual([]);
    expect(await off.store.read()).toEqual({ record: signedIn() });
  });

  test("the setting is on -> a sign-in of a file moves with its next renewal", async () => {
    const at = await inSystem();
    const before = await openStore({ agentDir: at.agentDir });
    await write(before.store, signedIn());
    expect(await at.store.read()).toEqual({ record: signedIn() });
    expect(await at.system.runs()).toEqual([]);
    await write(at.store, signedIn({ access_token: "access-token-2" }));
    expect(await fileOf(at)).not.toContain("token");
    expect((await at.store.read()).isInSystem).toBe(true);
  });
});

describe("how often the program runs", () => {
  test("100 reads, then another process renews -> one run for each process and item", async () => {
    const at = await inSystem();
    await write(at.store, signedIn());
    const other = await again(at);
    const before = (await at.system.runs()).length;
    await Promise.all(Array.from({ length: 100 }, () => other.store.read()));
    for (let count = 0; count < 100; count++) await other.store.read();
    expect((await at.system.runs()).length).toBe(before + 1);
    await write(at.store, signedIn({ access_token: "access-token-2" }));
    const renewed = (await at.system.runs()).slice(before + 1).map((line) => line.split(" ")[0]);
    // Under the lock it looks, writes, looks whether that is there, and removes the old one.
    expect(renewed).toEqual(["search", "store", "search", "clear"]);
    for (let count = 0; count < 100; count++)
      expect((await other.store.read()).record?.access_token).toBe("access-token-2");
    expect((await at.system.runs()).length).toBe(before + 6);
  });

  test("the mark of a renewal -> nothing runs for it but the look under the lock", async () => {
    const at = await inSystem();
    await write(at.store, signedIn());
    const before = (await at.system.runs()).length;
    await write(at.store, signedIn({ refreshing: { at: 1, pid: 2 } }));
    expect((await at.system.runs()).slice(before).map((line) => line.split(" ")[0])).toEqual(["search"]);
  });

  test("a store that fails -> it is left alone for a moment, but not by what a person does", async () => {
    const at = await inSystem();
    await write(at.store, signedIn());
    const other = await again(at);
    await at.system.misbehave("locked");
    const before = (await at.system.runs()).length;
    for (let count = 0; count < 20; count++)
      await expect(other.store.read()).rejects.toMatchObject(unusable("it is locked"));
    expect((await at.system.runs()).length).toBe(before + 1);
    await at.system.misbehave(undefined);
    await other.store.locked(async ({ record }) => expect(record).toEqual(signedIn()), never());
    expect((await other.store.read()).record).toEqual(signedIn());
  });

  test("nobody uses it -> its code is not asked for and nothing runs", async () => {
    const at = await inSystem({ tokenStore: () => "file" });
    await write(at.store, signedIn());
    await at.store.check();
    await forget(at.store);
    expect(await at.system.runs()).toEqual([]);
  });
});

const LOCKED = "it is locked";
const FAILURES: readonly (readonly [misdeed: Misdeed, what: string | RegExp])[] = [
  ["locked", LOCKED],
  ["asks", /^it gave no answer in 0\.5 s, and perhaps waits for yours$/],
  ["floods", "its program printed more than 64 KiB"],
  ["dies", "secret-tool ended with code 3"],
  ["nobus", "this session has no D-Bus, as over SSH or in a container"],
  ["noservice", /^no program offers the Secret Service here/],
];

describe.each(FAILURES)("a store that %s", (misdeed, what) => {
  test("a sign-in, a renewal, a sign-out, a move -> the same sentence, and nothing is changed", async () => {
    const at = await inSystem({}, misdeed === "asks" ? 500 : 60_000);
    await write(at.store, signedIn());
    const [file, texts] = [await fileOf(at), await at.system.texts()];
    await at.system.misbehave(misdeed);
    const problem = unusable(what);
    const next = signedIn({ access_token: "access-token-2", refresh_token: "refresh-token-2" });
    await expect(at.store.check()).rejects.toMatchObject(problem);
    await expect(write(at.store, next)).rejects.toMatchObject(problem);
    await expect(forget(at.store)).rejects.toMatchObject(problem);
    await expect(at.store.move("file", never())).rejects.toMatchObject(problem);
    await expect((await again(at, { system: sharing(at, misdeed) })).store.read()).rejects.toMatchObject(
      problem,
    );
    await at.system.misbehave(undefined);
    expect(await fileOf(at)).toBe(file);
    expect(await at.system.texts()).toEqual(texts);
    expect(await at.store.read()).toEqual({ record: signedIn(), isInSystem: true });
    expect(at.pids.size).toBe(0);
    expect([...at.notes, ...at.warnings].join("\n")).not.toContain("a part of the secret");
  });
});

const sharing = (at: At, misdeed: Misdeed) => ({
  env: at.system.env,
  platform: "linux" as const,
  onSpawn: () => undefined,
  onExit: () => undefined,
  ...(misdeed === "asks" ? { waitMs: 500 } : {}),
});

describe("a write that the store does not take", () => {
  test.each([
    ["forgets", "it gave back something else than was written"],
    ["cuts", "it gave back something else than was written"],
    ["locked", LOCKED],
  ] as const)(
    "%s -> the old sign-in stays, the new one holds in memory, one warning, no file",
    async (misdeed, what) => {
      const at = await inSystem();
      await write(at.store, signedIn());
      await at.system.misbehave(misdeed, "store");
      const next = signedIn({ access_token: "access-token-2", refresh_token: "refresh-token-2" });
      await write(at.store, next);
      await write(at.store, next);
      expect(at.warnings).toEqual([
        `linear: the sign-in could not be written to the system's credential store: ${what}. It holds until this session ends. Until then it is tried again.`,
      ]);
      expect((await at.store.read()).record).toEqual(next);
      expect(await fileOf(at)).not.toContain("token-");
      expect(await decoded(at)).toContainEqual(expect.stringContaining("access-token-1"));
      await at.system.misbehave(undefined);
      await write(at.store, next);
      expect(await decoded(at)).toEqual([expect.stringContaining("access-token-2")]);
      expect(JSON.parse(await fileOf(at))).not.toHaveProperty("remove");
    },
  );

  test("the end of the session -> one try to write, after which the sign-in is there for the next one", async () => {
    const at = await inSystem();
    await write(at.store, signedIn());
    await at.system.misbehave("locked", "store");
    const next = signedIn({ access_token: "access-token-2", refresh_token: "refresh-token-2" });
    await write(at.store, next);
    await at.store.writeKept();
    expect((await at.store.read()).record).toEqual(next);
    await at.system.misbehave(undefined);
    await at.store.locked(async () => undefined, never());
    expect(await decoded(at)).toEqual([expect.stringContaining("access-token-1")]);
    await at.store.writeKept();
    expect(await decoded(at)).toEqual([expect.stringContaining("access-token-2")]);
    expect((await (await again(at)).store.read()).record).toEqual(next);
    expect(at.warnings).toHaveLength(1);
  });

  test("the file cannot name the new item, which is not removed either -> the next write removes it", async () => {
    const at = await inSystem();
    await write(at.store, signedIn());
    let writes = 0;
    const create: typeof nodeFiles.create = async (path, mode) => {
      if (basename(path).startsWith(`.${basename(at.place.file)}.`) && ++writes === 2)
        throw Object.assign(new Error("EIO: injected"), { code: "EIO" });
      return nodeFiles.create(path, mode);
    };
    const system = sharing(at, "dies");
    const broken = await openStore(
      { agentDir: at.agentDir, tokenStore: () => "system", system },
      { files: { ...nodeFiles, create } },
    );
    await at.system.misbehave("locked", "clear");
    await write(broken.store, signedIn({ access_token: "access-token-2" }));
    expect(broken.warnings.join()).toContain("EIO: injected");
    expect((await at.system.texts()).length).toBe(2);
    await at.system.misbehave(undefined);
    await write(at.store, signedIn({ access_token: "access-token-3" }));
    expect(await decoded(at)).toEqual([expect.stringContaining("access-token-3")]);
  });

  test("old texts that the store does not remove -> told in a note, removed with the next renewal", async () => {
    const at = await inSystem();
    await write(at.store, signedIn());
    await at.system.misbehave("locked", "clear");
    await write(at.store, signedIn({ access_token: "access-token-2" }));
    expect(at.notes).toEqual([
      "the system's credential store keeps an old token for now: it did not remove what it was told to remove",
    ]);
    expect((await at.system.texts()).length).toBe(2);
    await at.system.misbehave(undefined);
    await write(at.store, signedIn({ access_token: "access-token-3" }));
    expect(await decoded(at)).toEqual([expect.stringContaining("access-token-3")]);
  });
});

describe("what the store has is not ours", () => {
  test.each([
    ["the text of another program", "other"],
    ["control characters", "odd"],
  ] as const)("%s -> no sign-in, one note without its content", async (_name, misdeed) => {
    const at = await inSystem();
    await write(at.store, signedIn());
    await at.system.misbehave(misdeed, "search");
    const other = await again(at);
    expect(await other.store.read()).toEqual({});
    expect(await other.store.read()).toEqual({});
    expect(other.notes).toHaveLength(1);
    expect(other.notes[0]).toMatch(/^what the system's credential store has for the sign-in is not used: it/);
  });

  test("the sign-in of another server under our name -> not used", async () => {
    const at = await inSystem();
    await write(at.store, signedIn());
    const others = Buffer.from(JSON.stringify(signedIn({ server: "other" }))).toString("base64url");
    await writeFile(join(at.system.folder, "other"), others);
    await at.system.misbehave("other", "search");
    const other = await again(at);
    expect(await other.store.read()).toEqual({});
    expect(other.notes.join()).toContain("it is the sign-in of another server or url");
  });

  test("the item is gone -> nobody is signed in, and a sign-in mends it", async () => {
    const at = await inSystem();
    await write(at.store, signedIn());
    const { item } = JSON.parse(await fileOf(at)) as { item: string };
    await rm(join(at.system.folder, "items", item));
    const other = await again(at);
    expect(await other.store.read()).toEqual({});
    await write(other.store, signedIn({ access_token: "access-token-2" }));
    expect((await at.store.read()).record?.access_token).toBe("access-token-2");
  });

  test.each([
    ["a name that is a command", { item: "; rm -rf ~", parts: 1 }],
    ["more parts than any text has", { item: "0".repeat(32), parts: 65 }],
    ["half a part", { item: "0".repeat(32), parts: 0.5 }],
    ["no name", {}],
  ])("a file with %s -> nothing runs, nobody is signed in", async (_name, pointer) => {
    const at = await inSystem();
    const { server, url } = signedIn();
    await put(at.place.file, { version: 3, server, url, store: "system", ...pointer });
    await settle(at.place.file);
    expect(await at.store.read()).toEqual({});
    expect(await at.system.runs()).toEqual([]);
  });
});

describe("the program", () => {
  test("is missing -> the sentence names the package", async () => {
    const empty = await standInStore();
    await rm(join(empty.folder, "secret-tool"));
    const at = await openStore({
      tokenStore: () => "system",
      system: {
        env: { ...process.env, PATH: empty.folder },
        platform: "linux",
        onSpawn: () => undefined,
        onExit: () => undefined,
      },
    });
    await expect(at.store.check()).rejects.toMatchObject(
      unusable(
        "secret-tool is not installed: the package is libsecret-tools on Debian and Ubuntu, libsecret on others",
      ),
    );
  });

  test("is in a clone, which is first on PATH -> the one of the system runs", async () => {
    const [stand, evil] = [await standInStore(), await standInStore()];
    const bin = join(evil.folder, "node_modules", ".bin");
    await mkdir(bin, { recursive: true });
    await copyFile(join(evil.folder, "secret-tool"), join(bin, "secret-tool"));
    const before = process.cwd();
    process.chdir(evil.folder);
    try {
      for (const path of [".", "", "node_modules/.bin", bin]) {
        const env = { ...process.env, PATH: `${path}:${stand.folder}:/usr/bin:/bin` };
        const at = await openStore({
          tokenStore: () => "system",
          system: { env, platform: "linux", onSpawn: () => undefined, onExit: () => undefined },
        });
        await at.store.check();
      }
    } finally {
      process.chdir(before);
    }
    expect((await stand.runs()).length).toBe(4 * 3);
    expect(await evil.runs()).toEqual([]);
  });

  test("a system without a known store -> the sentence names the system", async () => {
    const stand = await standInStore();
    const system = { ...sharing({ system: stand } as At, "dies"), platform: "aix" as const };
    const at = await openStore({ tokenStore: () => "system", system });
    await expect(at.store.check()).rejects.toMatchObject(unusable("none is known for aix"));
  });
});

describe("Pi's own sign-in", () => {
  test("is taken over -> it goes to the store; one that fails leaves it with Pi", async () => {
    const at = await inSystem();
    const text = piText({ [PI_KEY]: inPi() });
    await put(piFileOf(at.agentDir), text);
    await at.system.misbehave("locked", "store");
    await expect(at.store.takeFromPi(never())).rejects.toMatchObject({
      kind: "store-unwritable",
      facts: { path: "the system's credential store", what: LOCKED },
    });
    expect(await readFile(piFileOf(at.agentDir), "utf8")).toBe(text);
    await at.system.misbehave(undefined);
    expect(await at.store.takeFromPi(never())).toMatchObject({ refresh_token: "pi-refresh" });
    expect(await decoded(at)).toEqual([expect.stringContaining("pi-refresh")]);
    expect(await fileOf(at)).not.toContain("pi-refresh");
    expect(await readFile(piFileOf(at.agentDir), "utf8")).toBe("{}\n");
  });

  test("tokens.json beside an empty store -> used as before; beside a locked one -> not", async () => {
    const at = await inSystem();
    await put(at.place.given, { access_token: "given" });
    expect(await at.store.read()).toMatchObject({ given: { tokens: { access_token: "given" } } });
    await write(at.store, signedIn());
    await at.system.misbehave("locked");
    await expect((await again(at)).store.read()).rejects.toMatchObject(unusable(LOCKED));
  });
});

describe("move", () => {
  test("there and back -> each place has it alone, and the second time says so", async () => {
    const at = await inSystem({ tokenStore: () => "file" });
    expect(await at.store.move("system", never())).toEqual({ how: "none" });
    await write(at.store, signedIn());
    expect(await at.store.move("file", never())).toEqual({ how: "there" });
    expect(await at.store.move("system", never())).toEqual({ how: "moved", keeps: false });
    expect(await at.store.move("system", never())).toEqual({ how: "there" });
    expect(await fileOf(at)).not.toContain("token");
    expect(await at.store.move("file", never())).toEqual({ how: "moved", keeps: false });
    expect(await at.store.read()).toEqual({ record: signedIn() });
    expect(await at.system.texts()).toEqual([]);
  });

  test.each(["locked", "forgets", "cuts", "dies"] as const)(
    "to a store that %s -> the file has it as before",
    async (misdeed) => {
      const at = await inSystem({ tokenStore: () => "file" });
      await write(at.store, signedIn());
      await at.system.misbehave(misdeed, "store");
      await expect(at.store.move("system", never())).rejects.toMatchObject({ kind: "system-store" });
      expect(await at.store.read()).toEqual({ record: signedIn() });
      await at.system.misbehave(undefined);
      expect(await at.store.move("system", never())).toEqual({ how: "moved", keeps: false });
      expect(await decoded(at)).toEqual([expect.stringContaining("access-token-1")]);
    },
  );

  test("to a file, from a store that removes nothing -> moved, and said", async () => {
    const at = await inSystem({ tokenStore: () => "file" });
    await write(at.store, signedIn());
    await at.store.move("system", never());
    await at.system.misbehave("locked", "clear");
    expect(await at.store.move("file", never())).toEqual({ how: "moved", keeps: true });
    expect(await at.store.read()).toEqual({ record: signedIn() });
    await at.system.misbehave(undefined);
    await forget(at.store);
    expect(await at.system.texts()).toEqual([]);
  });
});

describe("several processes", () => {
  test("four add to one sign-in -> no change is lost, and one text is left", {
    tags: "thorough",
  }, async () => {
    const at = await inSystem();
    await addTogether(at, at.system.env, 4);
    await write(at.store, signedIn());
    expect((await at.system.texts()).length).toBe(1);
  });

  test("one is killed again and again -> old or new, and the next writes clear up", {
    tags: "thorough",
  }, async () => {
    const at = await inSystem();
    await killedWriting(at, at.system.env, 3);
    await write(at.store, signedIn());
    await write(at.store, signedIn({ access_token: "the last" }));
    expect((await at.system.texts()).length).toBe(1);
  });

  /** No beat renames the owner's entry while the lock is removed. */
  const SELDOM = { waitMs: 60_000, beatMs: 20_000, silentMs: 45_000 };

  /** Another process renews when this one writes its file for the nth time, and has taken the lock over. */
  async function overtaken(nth: number) {
    const at = await inSystem();
    await write(at.store, signedIn({ obtainedAt: 1 }));
    let writes = 0;
    const create: typeof nodeFiles.create = async (path, mode) => {
      if (basename(path).startsWith(`.${basename(at.place.file)}.`) && ++writes === nth) {
        await rm(lockPathOf(at.place.file), { recursive: true });
        await startChanger(at.agentDir, "1", at.system.env).ended;
      }
      return nodeFiles.create(path, mode);
    };
    const system = sharing(at, "dies");
    const slow = await openStore(
      { agentDir: at.agentDir, tokenStore: () => "system", system },
      { files: { ...nodeFiles, create }, lockTimes: SELDOM },
    );
    const late = signedIn({ obtainedAt: 7, refresh_token: "too-late" });
    const record = await slow.store.locked(async (held) => {
      await held.write(late);
      return held.record;
    }, never());
    expect(writes).toBeGreaterThanOrEqual(nth);
    return { at, record, slow };
  }

  test.each([
    ["before its item is announced", 1],
    ["when its item is written and not yet named", 2],
  ])(
    "another took the lock over %s -> the other's tokens count, and one text is left",
    async (_name, nth) => {
      const { at, record, slow } = await overtaken(nth);
      expect(record?.obtainedAt).toBe(2);
      expect((await (await again(at)).store.read()).record?.obtainedAt).toBe(2);
      expect(slow.notes.join()).toContain("another process renewed the sign-in while this one stood still");
      expect((await at.system.texts()).length).toBe(1);
      expect(JSON.parse(await fileOf(at))).not.toHaveProperty("remove");
    },
  );

  test("another took the lock over, and there is only the mark of a renewal to write -> the other's tokens count", async () => {
    const at = await inSystem();
    await write(at.store, signedIn({ obtainedAt: 1 }));
    const lock = lockPathOf(at.place.file);
    let locks = 0;
    const rename: typeof nodeFiles.rename = async (from, to) => {
      if (to === lock && ++locks === 2) await startChanger(at.agentDir, "1", at.system.env).ended;
      return nodeFiles.rename(from, to);
    };
    const slow = await openStore(
      { agentDir: at.agentDir, tokenStore: () => "system", system: sharing(at, "dies") },
      { files: { ...nodeFiles, rename }, lockTimes: SELDOM },
    );
    const record = await slow.store.locked(async (held) => {
      await rm(lock, { recursive: true });
      await held.tryToWrite(signedIn({ obtainedAt: 1, refreshing: { at: 1, pid: 2 } }));
      return held.record;
    }, never());
    expect(record?.obtainedAt).toBe(2);
  });

  test("another took the lock over while the program still wrote -> the same", async () => {
    const at = await inSystem();
    await write(at.store, signedIn({ obtainedAt: 1 }));
    const system = { ...sharing(at, "dies"), env: { ...at.system.env, STAND_IN_WAITS: "1" } };
    const slow = await openStore(
      { agentDir: at.agentDir, tokenStore: () => "system", system },
      { lockTimes: SELDOM },
    );
    const stores = async () => (await at.system.runs()).filter((line) => line.startsWith("store ")).length;
    const writing = write(slow.store, signedIn({ obtainedAt: 7, refresh_token: "too-late" }));
    await expect.poll(stores).toBe(2);
    await rm(lockPathOf(at.place.file), { recursive: true });
    await startChanger(at.agentDir, "1", at.system.env).ended;
    await writeFile(join(at.system.folder, "go"), "");
    await writing;
    expect((await (await again(at)).store.read()).record?.obtainedAt).toBe(2);
    expect((await at.system.texts()).length).toBe(1);
  });
});
