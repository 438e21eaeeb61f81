/** The lock of a file: one holder at a time, taken over from a dead holder only, with bounded waiting. */
import { spawn } from "node:child_process";
import { EventEmitter, once } from "node:events";
import { mkdir, readdir, symlink, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it, onTestFinished, test } from "vitest";
import { type FileSystem, nodeFiles } from "../../../../../workers/shared/files/file-system.ts";
import { type LockTimes, lockPathOf, withLock } from "../../../../../workers/shared/files/lock.ts";
import { oneFile } from "../../../../support/one-file.ts";
import { tempFolder } from "../../../temp-folder.ts";
import { failingFiles } from "../../cache/support.ts";

/**
 * Long enough for any machine: only an event that must never happen would wait so long. No wait is as long as the silence,
 * so only the end of its process can end a holder.
 */
const PATIENT: LockTimes = { waitMs: 50_000, beatMs: 1_000, silentMs: 500_000 };

const lockOf = (times: LockTimes = PATIENT, files = nodeFiles): Parameters<typeof withLock>[1] => ({
  files,
  times,
});

async function place(): Promise<{ folder: string; target: string; lock: string }> {
  const folder = await tempFolder();
  const target = join(folder, "file");
  return { folder, target, lock: lockPathOf(target) };
}

/** The lock that a killed holder leaves behind. */
async function heldBy(lock: string, entry: string): Promise<void> {
  await mkdir(lock);
  await writeFile(join(lock, entry), "");
}

/** The names of this machine and this process in a lock. */
async function ownEntry(): Promise<{ machine: string; entry: string }> {
  const { target, lock } = await place();
  const [entry = ""] = await withLock(target, lockOf(), () => readdir(lock));
  return { machine: entry.split("-")[0] ?? "", entry };
}

async function deadPid(): Promise<number> {
  const child = spawn(process.execPath, ["-e", ""]);
  await once(child, "exit");
  return child.pid ?? 0;
}

describe("withLock", () => {
  test("a task -> its result, and afterwards nothing is left", async () => {
    const { folder, target, lock } = await place();
    const inside = await withLock(target, lockOf(), async (holds) => [await holds(), await readdir(folder)]);
    expect(inside).toEqual([true, [lock.slice(folder.length + 1)]]);
    expect(await readdir(folder)).toEqual([]);
  });

  test("a task that fails -> its error, and the lock is free", async () => {
    const { folder, target } = await place();
    const failing = withLock(target, lockOf(), () => Promise.reject(new Error("mine")));
    await expect(failing).rejects.toThrow("mine");
    expect(await readdir(folder)).toEqual([]);
  });

  test("thirty at once -> one at a time, all of them", async () => {
    const { folder, target } = await place();
    let inside = 0;
    const seen: number[] = [];
    await Promise.all(
      Array.from({ length: 30 }, () =>
        withLock(target, lockOf(), async () => {
          seen.push(++inside);
          await sleep(1);
          inside--;
        }),
      ),
    );
    expect(seen).toEqual(Array.from({ length: 30 }, () => 1));
    expect(await readdir(folder)).toEqual([]);
  });

  test("a holder that beats for longer than the silence allowed -> keeps it, the next one waits", async () => {
    const { target } = await place();
    const times = { waitMs: 50_000, beatMs: 10, silentMs: 600 };
    const order: string[] = [];
    const { promise: firstHolds, resolve: firstHas } = Promise.withResolvers<void>();
    const first = withLock(target, lockOf(times), async (holds) => {
      firstHas();
      await sleep(900);
      order.push(`first, ${await holds()}`);
    });
    await firstHolds;
    await Promise.all([first, withLock(target, lockOf(times), async () => order.push("second"))]);
    expect(order).toEqual(["first, true", "second"]);
  });
});

describe("withLock: the holder is gone", () => {
  test("the holder's process has ended -> the lock is taken at once, however long silence is allowed", async () => {
    const { folder, target, lock } = await place();
    const { machine } = await ownEntry();
    await heldBy(lock, `${machine}-${await deadPid()}-0123456789ab.7`);
    expect(await withLock(target, lockOf(), async () => "taken")).toBe("taken");
    expect(await readdir(folder)).toEqual([]);
  });

  it.each<[string, (own: { machine: string }) => string]>([
    ["a thread of a live process", ({ machine }) => `${machine}-${process.pid}-0123456789ab.0`],
    ["a process of another machine", () => "00000000-1-0123456789ab.0"],
  ])("%s that does not beat -> its lock is taken after the silence", async (_name, entryOf) => {
    const { folder, target, lock } = await place();
    await heldBy(lock, entryOf(await ownEntry()));
    const times = { waitMs: 50_000, beatMs: 20, silentMs: 100 };
    expect(await withLock(target, lockOf(times), async () => "taken")).toBe("taken");
    expect(await readdir(folder)).toEqual([]);
  });

  const NOT_OURS = ["notes.txt", "00000000-1-0123456789ab.0.txt", "x-00000000-1-0123456789ab.0"];
  const QUICK = { waitMs: 300, beatMs: 20, silentMs: 50 };

  test("entries that no holder made -> they stay, whatever the silence, and the lock is not taken", async () => {
    const { target, lock } = await place();
    await mkdir(lock);
    for (const name of NOT_OURS) await writeFile(join(lock, name), "");
    await expect(withLock(target, lockOf(QUICK), async () => "taken")).rejects.toThrow(/has held/);
    expect((await readdir(lock)).sort()).toEqual([...NOT_OURS].sort());
  });

  test.each([
    ["a folder", "00000000-1-0123456789ab.0"],
    ["an empty folder", undefined],
  ])(
    "a link to %s, of which the system says that it is held, as Windows does -> an error, and nothing is removed",
    async (_what, name) => {
      const { folder, target, lock } = await place();
      const other = join(folder, "other");
      await mkdir(other);
      if (name !== undefined) await writeFile(join(other, name), "");
      await symlink(other, lock, "junction");
      const rename: FileSystem["rename"] = async (from, to) => {
        if (to === lock) throw Object.assign(new Error("held"), { code: "EEXIST" });
        await nodeFiles.rename(from, to);
      };
      const taken = withLock(target, lockOf(QUICK, { ...nodeFiles, rename }), async () => "taken");
      await expect(taken).rejects.toThrow(/is not the folder of a lock/);
      expect(await readdir(other)).toEqual(name === undefined ? [] : [name]);
      expect((await readdir(folder)).sort()).toEqual([basename(lock), "other"].sort());
    },
  );

  test("an empty lock folder, left by a holder that was killed at its end -> taken at once", async () => {
    const { folder, target, lock } = await place();
    await mkdir(lock);
    expect(await withLock(target, lockOf(), async () => "taken")).toBe("taken");
    expect(await readdir(folder)).toEqual([]);
  });

  test("twenty contenders for the lock of a dead holder -> one at a time", async () => {
    const { target, lock } = await place();
    const { machine } = await ownEntry();
    await heldBy(lock, `${machine}-${await deadPid()}-0123456789ab.0`);
    let inside = 0;
    let most = 0;
    await Promise.all(
      Array.from({ length: 20 }, () =>
        withLock(target, lockOf(), async () => {
          most = Math.max(most, ++inside);
          await sleep(1);
          inside--;
        }),
      ),
    );
    expect(most).toBe(1);
  });

  test("a holder that counted as dead comes back -> it learns that, and leaves the next holder's lock alone", async () => {
    const { target, lock } = await place();
    const stopped = { waitMs: 50_000, beatMs: 300, silentMs: 45_000 };
    const impatient = { waitMs: 50_000, beatMs: 20, silentMs: 50 };
    const { promise: firstHolds, resolve: firstHas } = Promise.withResolvers<void>();
    const { promise: nextHolds, resolve: nextHas } = Promise.withResolvers<void>();
    const { promise: firstLeft, resolve: leave } = Promise.withResolvers<void>();
    const first = withLock(target, lockOf(stopped), async (holds) => {
      firstHas();
      await nextHolds;
      while (await holds()) await sleep(10);
    }).then(leave);
    await firstHolds;
    await withLock(target, lockOf(impatient), async (holds) => {
      nextHas();
      await firstLeft;
      expect([await holds(), (await readdir(lock)).length]).toEqual([true, 1]);
    });
    await first;
  });
});

/** Another process that takes the lock, with the lines that it has printed. */
function startHolder(target: string, silentMs: number) {
  const script = join(import.meta.dirname, "../../../../fixtures/cache/holds-lock.ts");
  const { file } = oneFile("holds-lock", script);
  const child = spawn(process.execPath, [file, target, String(silentMs)], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  const lines: string[] = [];
  const news = new EventEmitter();
  createInterface(child.stdout).on("line", (line) => {
    lines.push(line);
    news.emit("line");
  });
  return {
    child,
    lines,
    /** Settles when the process has printed the line that often. */
    printed: async (line: string, times = 1): Promise<void> => {
      while (lines.filter((one) => one === line).length < times) await once(news, "line");
    },
  };
}

describe.skipIf(process.platform === "win32")(
  "withLock: processes that stand still, as in a laptop that sleeps",
  () => {
    /** Shorter than the stop. The contender looks about 40 times a second, so counting up to this takes some time. */
    const SILENT_MS = 2_000;
    const STOP_MS = 2_600;

    test("owner and contender are suspended, the contender continues first -> it waits until the owner has left", async () => {
      const { target } = await place();
      const owner = startHolder(target, SILENT_MS);
      await owner.printed("inside");
      const contender = startHolder(target, SILENT_MS);
      await contender.printed("looks", 2);
      owner.child.kill("SIGSTOP");
      contender.child.kill("SIGSTOP");
      await sleep(STOP_MS);
      const looked = contender.lines.length;
      contender.child.kill("SIGCONT");
      await Promise.race([contender.printed("looks", looked + 3), contender.printed("inside")]);
      expect(contender.lines).not.toContain("inside");
      owner.child.kill("SIGCONT");
      owner.child.stdin.write("leave\n");
      await owner.printed("left");
      expect(owner.lines).toEqual(["inside", "holds true", "left"]);
      await contender.printed("inside");
      contender.child.stdin.write("leave\n");
      await contender.printed("left");
      expect(contender.lines.slice(-3)).toEqual(["inside", "holds true", "left"]);
    });

    test("only the owner is suspended -> its lock is taken, and the owner learns that before it replaces anything", async () => {
      const { target } = await place();
      const owner = startHolder(target, 300);
      await owner.printed("inside");
      owner.child.kill("SIGSTOP");
      const contender = startHolder(target, 300);
      await contender.printed("inside");
      owner.child.stdin.write("leave\n");
      owner.child.kill("SIGCONT");
      await owner.printed("left");
      expect(owner.lines).toEqual(["inside", "holds false", "left"]);
      contender.child.stdin.write("leave\n");
      await contender.printed("left");
      expect(contender.lines.slice(-3)).toEqual(["inside", "holds true", "left"]);
    });
  },
);

describe("withLock: holds", () => {
  test("the lock was taken since the last beat -> false at once, long before the next beat", async () => {
    const { target } = await place();
    const seldom = { waitMs: 50_000, beatMs: 45_000, silentMs: 46_000 };
    const impatient = { waitMs: 50_000, beatMs: 20, silentMs: 50 };
    const answers = await withLock(target, lockOf(seldom), async (holds) => {
      const before = await holds();
      return withLock(target, lockOf(impatient), async () => [before, await holds()]);
    });
    expect(answers).toEqual([true, false]);
  });

  test("a beat that fails for a moment -> true; one that goes on failing -> false", async () => {
    const { target } = await place();
    const failures = (count: number): FileSystem => {
      let left = count;
      const rename = async (from: string, to: string): Promise<void> => {
        if (dirname(from) === dirname(to) && left-- > 0)
          throw Object.assign(new Error("EBUSY"), { code: "EBUSY" });
        await nodeFiles.rename(from, to);
      };
      // A beat renames within the lock; a prepared lock stands beside it.
      return {
        ...nodeFiles,
        rename: (from, to) => (from.includes(".lock/") ? rename(from, to) : nodeFiles.rename(from, to)),
      };
    };
    const asked = (count: number) => withLock(target, lockOf(PATIENT, failures(count)), (holds) => holds());
    expect([await asked(1), await asked(100)]).toEqual([true, false]);
  });
});

test("a name of 255 bytes -> the lock has a shorter one", async () => {
  const { folder } = await place();
  const target = join(folder, "n".repeat(255));
  expect(await withLock(target, lockOf(), async () => (await readdir(folder)).length)).toBe(1);
});

describe("withLock: the lock cannot be taken", () => {
  test("held for longer than the limit -> an error that names the lock, and no file of the contender is left", async () => {
    const { folder, target, lock } = await place();
    await heldBy(lock, "00000000-1-0123456789ab.0");
    const times = { waitMs: 60, beatMs: 1_000, silentMs: 45_000 };
    await expect(withLock(target, lockOf(times), async () => 1)).rejects.toThrow(lock);
    expect(await readdir(folder)).toEqual([".file.lock"]);
  });

  test("a file in the place of the lock -> an error at once", async () => {
    const { folder, target, lock } = await place();
    await writeFile(lock, "");
    await expect(withLock(target, lockOf(), async () => 1)).rejects.toThrow("ENOTDIR");
    expect(await readdir(folder)).toEqual([".file.lock"]);
  });

  it.each(["EACCES", "EROFS", "ENOSPC"])("a folder that gives %s -> an error at once", async (code) => {
    const { folder, target } = await place();
    const files = failingFiles("create", code, /./);
    await expect(withLock(target, lockOf(PATIENT, files), async () => 1)).rejects.toThrow(code);
    expect(await readdir(folder)).toEqual([]);
  });
});
