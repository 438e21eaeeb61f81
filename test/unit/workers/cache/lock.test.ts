/** Owns: the lock of a file: one holder at a time, taken from a dead one, never from a live one, bounded waiting. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it, test } from "vitest";
import { nodeFiles } from "../../../../workers/cache/file-system.ts";
import { type LockTimes, lockPathOf, withLock } from "../../../../workers/cache/lock.ts";
import { tempFolder } from "../../temp-folder.ts";
import { failingFiles } from "./support.ts";

/** Long enough for any machine: nothing here waits for it but what must never happen. */
const PATIENT: LockTimes = { waitMs: 50_000, beatMs: 1_000, silentMs: 45_000 };

const lockOf = (times: LockTimes = PATIENT, files = nodeFiles): Parameters<typeof withLock>[1] => ({
  files,
  times,
});

async function place(): Promise<{ folder: string; target: string; lock: string }> {
  const folder = await tempFolder();
  const target = join(folder, "file");
  return { folder, target, lock: lockPathOf(target) };
}

/** The lock as a holder leaves it that cannot clean up. */
async function heldBy(lock: string, entry: string): Promise<void> {
  await mkdir(lock);
  await writeFile(join(lock, entry), "");
}

/** How this machine and this process name themselves in a lock. */
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
    const inside = await withLock(target, lockOf(), async (holds) => [holds(), await readdir(folder)]);
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
    const times = { waitMs: 50_000, beatMs: 10, silentMs: 2_000 };
    const order: string[] = [];
    const { promise: firstHolds, resolve: firstHas } = Promise.withResolvers<void>();
    const first = withLock(target, lockOf(times), async (holds) => {
      firstHas();
      await sleep(2_500);
      order.push(`first, ${holds()}`);
    });
    await firstHolds;
    await Promise.all([first, withLock(target, lockOf(times), async () => order.push("second"))]);
    expect(order).toEqual(["first, true", "second"]);
  });
});

describe("withLock: the holder is gone", () => {
  test("its process has ended -> taken at once, however long silence is allowed", async () => {
    const { folder, target, lock } = await place();
    const { machine } = await ownEntry();
    await heldBy(lock, `${machine}-${await deadPid()}-0123456789ab.7`);
    expect(await withLock(target, lockOf(), async () => "taken")).toBe("taken");
    expect(await readdir(folder)).toEqual([]);
  });

  it.each<[string, (own: { machine: string }) => string]>([
    ["a thread of a live process", ({ machine }) => `${machine}-${process.pid}-0123456789ab.0`],
    ["a process of another machine", () => "00000000-1-0123456789ab.0"],
    ["something unknown", () => "what?"],
  ])("%s that shows no life -> taken after a while", async (_name, entryOf) => {
    const { folder, target, lock } = await place();
    await heldBy(lock, entryOf(await ownEntry()));
    const times = { waitMs: 50_000, beatMs: 20, silentMs: 100 };
    expect(await withLock(target, lockOf(times), async () => "taken")).toBe("taken");
    expect(await readdir(folder)).toEqual([]);
  });

  test("an empty lock folder, as a holder leaves that is killed at its end -> taken at once", async () => {
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

  test("a holder that was taken for gone comes back -> it is told, and leaves the next one's lock alone", async () => {
    const { target, lock } = await place();
    const stopped = { waitMs: 50_000, beatMs: 300, silentMs: 45_000 };
    const impatient = { waitMs: 50_000, beatMs: 20, silentMs: 50 };
    const { promise: firstHolds, resolve: firstHas } = Promise.withResolvers<void>();
    const { promise: nextHolds, resolve: nextHas } = Promise.withResolvers<void>();
    const { promise: firstLeft, resolve: leave } = Promise.withResolvers<void>();
    const first = withLock(target, lockOf(stopped), async (holds) => {
      firstHas();
      await nextHolds;
      while (holds()) await sleep(10);
    }).then(leave);
    await firstHolds;
    await withLock(target, lockOf(impatient), async (holds) => {
      nextHas();
      await firstLeft;
      expect([holds(), (await readdir(lock)).length]).toEqual([true, 1]);
    });
    await first;
  });
});

describe("withLock: the lock cannot be had", () => {
  test("held for longer than the limit -> an error that names it, nothing of ours is left", async () => {
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
