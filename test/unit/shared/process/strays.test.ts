import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { createPidRegistry } from "../../../../src/runtime/pids.ts";
import { fromPs, fromStat, type ProcessRow, straysOf } from "../../../../src/shared/process/strays.ts";
import { killStrays } from "../../../../workers/shared/programs/processes.ts";
import { onCleanup } from "../../../support/cleanup.ts";
import { waitGone } from "../../../support/processes.ts";

const row = (pid: number, parent: number, group: number, name = "node"): ProcessRow => ({
  pid,
  parent,
  group,
  started: "1",
  name,
});

test("/proc/<pid>/stat with any name -> its row", () => {
  const tail = "S 7 8 9 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 11 0 987654 1000 2000";
  for (const name of ["node", "a b", "x) (y", "(", "new\nline", ""]) {
    expect(fromStat(`123 (${name}) ${tail}\n`)).toEqual({
      pid: 123,
      parent: 7,
      group: 8,
      started: "987654",
      name,
    });
  }
  for (const text of ["", "123", "123 (x)", "123 (x) S 1"]) expect(fromStat(text)).toBeUndefined();
  const own = fromStat(readFileSync("/proc/self/stat", "latin1"));
  expect(own).toMatchObject({ pid: process.pid, parent: process.ppid });
});

test("the lines of ps -> rows; any other line -> none", () => {
  expect(fromPs("  1     0     1 Mon Nov  2 09:08:07 2026 /sbin/a b\nodd\n")).toEqual([
    { pid: 1, parent: 0, group: 1, started: "Mon Nov  2 09:08:07 2026", name: "a b" },
  ]);
});

test("descendants -> those in other groups, at any depth, but none behind a program that opens pages", () => {
  const rows = [
    row(1, 0, 1),
    row(10, 1, 10),
    row(11, 10, 10),
    row(12, 11, 12),
    row(13, 12, 13),
    row(14, 10, 14, "xdg-open"),
    row(15, 14, 15, "firefox"),
    row(20, 1, 20),
    // A list is no moment: pids may have been used again while it was made.
    row(10, 13, 10),
  ];
  expect(straysOf(10, rows).map(({ pid }) => pid)).toEqual([12, 13]);
  expect(straysOf(99, rows)).toEqual([]);
});

/** A process with a child in a group of its own; their pids. */
async function startPair(): Promise<[number, number]> {
  const script = `
    const { pid } = require("child_process").spawn("sleep", ["1000"], { detached: true, stdio: "ignore" });
    console.log(pid); setInterval(() => {}, 1000);`;
  const parent = spawn(process.execPath, ["-e", script], { detached: true });
  const [line] = (await once(parent.stdout, "data")) as [Buffer];
  const pids: [number, number] = [parent.pid ?? 0, Number(line)];
  onCleanup(() => {
    for (const pid of pids) {
      try {
        process.kill(pid, "SIGKILL");
      } catch {
        // As it should be.
      }
    }
  });
  return pids;
}

test("the end of Pi, where nothing can wait -> what left the groups of the servers ends with them", async () => {
  const pids = await startPair();
  const registry = createPidRegistry();
  registry.add(pids[0]);
  registry.killAll();
  registry.dispose();
  expect(await waitGone(pids, 5_000)).toEqual([]);
});

test("another process has the pid of one that was found -> it is left alone", async () => {
  const [, child] = await startPair();
  const found = fromStat(readFileSync(`/proc/${child}/stat`, "latin1"));
  if (!found) throw new Error("the child has no row");
  await killStrays([{ ...found, started: "1" }]);
  expect(existsSync(`/proc/${child}`)).toBe(true);
  await killStrays([found]);
  expect(await waitGone([child], 5_000)).toEqual([]);
});
