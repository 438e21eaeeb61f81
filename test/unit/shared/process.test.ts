/** The folder of compiled code, processes that left their group, and programs of Windows. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import * as fs from "node:fs";
import { existsSync, readFileSync } from "node:fs";
import { dirname, isAbsolute, join } from "node:path";
import { describe, expect, test } from "vitest";
import { createPidRegistry } from "../../../src/runtime/pids.ts";
import { codeFolder } from "../../../src/shared/process/code-folder.ts";
import {
  commandShell,
  fromPs,
  fromStat,
  type ProcessRow,
  straysOf,
  systemProgram,
} from "../../../src/shared/process/strays.ts";
import { killStrays } from "../../../workers/shared/programs/processes.ts";
import { onCleanup } from "../../support/cleanup.ts";
import { waitGone } from "../../support/processes.ts";
import { tempFolder } from "../temp-folder.ts";

const uid = process.getuid?.() ?? 0;
const look = (agentDir: string, user = uid): string | undefined =>
  codeFolder(agentDir, { fs, path: { dirname, isAbsolute, join }, uid: user });

async function makeAgentFolder(): Promise<{ agentDir: string; code: string }> {
  const agentDir = join(await tempFolder(), "agent");
  fs.mkdirSync(agentDir);
  return { agentDir, code: join(agentDir, "mcp-code") };
}

/** The mode counts in full, without the umask. */
function makeFolder(path: string, mode: number): void {
  fs.mkdirSync(path);
  fs.chmodSync(path, mode);
}

test("no folder yet -> it is made, for the user alone", async () => {
  const { agentDir, code } = await makeAgentFolder();
  expect(look(agentDir)).toBe(code);
  expect(fs.statSync(code).mode & 0o777).toBe(0o700);
  expect(look(agentDir)).toBe(code);
});

test("no agent folder -> none is made", async () => {
  const { agentDir } = await makeAgentFolder();
  expect(look(join(agentDir, "none"))).toBeUndefined();
  expect(fs.readdirSync(agentDir)).toEqual([]);
});

test.each([
  ["the group may write the folder", 0o770],
  ["all may write the folder", 0o777],
  ["all may write the folder, which is sticky", 0o1777],
])("%s -> no cache", async (_name, mode) => {
  const { agentDir, code } = await makeAgentFolder();
  makeFolder(code, mode);
  expect(look(agentDir)).toBeUndefined();
});

test("the folder, or one above it, belongs to another user -> no cache", async () => {
  const { agentDir, code } = await makeAgentFolder();
  makeFolder(code, 0o700);
  expect(look(agentDir, uid + 1)).toBeUndefined();
  const other = { ...fs, lstatSync: (path: string) => withOwner(path, path === agentDir ? uid + 1 : uid) };
  expect(codeFolder(agentDir, { fs: other, path: { dirname, isAbsolute, join }, uid })).toBeUndefined();
});

const withOwner = (path: string, owner: number) => {
  const found = fs.lstatSync(path);
  return { uid: owner, mode: found.mode, isDirectory: () => found.isDirectory() };
};

test("all may write a folder above it -> no cache, unless that is sticky", async () => {
  const { agentDir, code } = await makeAgentFolder();
  fs.chmodSync(agentDir, 0o777);
  expect(look(agentDir)).toBeUndefined();
  fs.chmodSync(agentDir, 0o1777);
  expect(look(agentDir)).toBe(code);
});

test("a link -> the folder that it leads to counts", async () => {
  const { agentDir, code } = await makeAgentFolder();
  const open = join(agentDir, "open");
  makeFolder(open, 0o777);
  fs.symlinkSync(open, code);
  expect(look(agentDir)).toBeUndefined();
  fs.chmodSync(open, 0o700);
  expect(look(agentDir)).toBe(open);
});

test("a file in its place, a link to nothing -> no cache", async () => {
  const { agentDir, code } = await makeAgentFolder();
  fs.writeFileSync(code, "");
  expect(look(agentDir)).toBeUndefined();
  fs.rmSync(code);
  fs.symlinkSync(join(agentDir, "nothing"), code);
  expect(look(agentDir)).toBeUndefined();
});

test("a relative agent folder -> no cache, and nothing is made in the folder of the process", () => {
  const made = fs.existsSync("mcp-code");
  expect(look(".")).toBeUndefined();
  expect(look("")).toBeUndefined();
  expect(fs.existsSync("mcp-code")).toBe(made);
});

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
  expect(await waitGone(pids)).toEqual([]);
});

/** A program with two sessions, each with a server; the servers' pids. */
const TWO = `
  const { createPidRegistry } = await import(${JSON.stringify(new URL("../../../src/runtime/pids.ts", import.meta.url).href)});
  const { spawn } = await import("node:child_process");
  const pids = [1, 2].map(() => {
    const { pid } = spawn("sleep", ["1000"], { detached: true, stdio: "ignore" });
    createPidRegistry().add(pid);
    return pid;
  });
  createPidRegistry().dispose();
  console.log(JSON.stringify(pids));
  setInterval(() => {}, 1000);`;

test.each(["SIGINT", "SIGHUP", "SIGTERM"] as const)(
  "%s ends a program that does not handle it -> the servers of all its sessions end with it",
  async (signal) => {
    const program = spawn(process.execPath, ["--input-type=module", "-e", TWO], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    onCleanup(() => void program.kill("SIGKILL"));
    const [line] = (await once(program.stdout, "data")) as [Buffer];
    const pids: number[] = JSON.parse(String(line));
    program.kill(signal);
    expect(await once(program, "exit")).toEqual([null, signal]);
    expect(await waitGone(pids)).toEqual([]);
  },
  30_000,
);

test("another process has the pid of one that was found -> it is left alone", async () => {
  const [, child] = await startPair();
  const found = fromStat(readFileSync(`/proc/${child}/stat`, "latin1"));
  if (!found) throw new Error("the child has no row");
  await killStrays([{ ...found, started: "1" }]);
  expect(existsSync(`/proc/${child}`)).toBe(true);
  await killStrays([found]);
  expect(await waitGone([child])).toEqual([]);
});

describe("systemProgram", () => {
  test.each([
    [{ SystemRoot: "C:\\Windows" }, "C:\\Windows\\System32\\taskkill.exe"],
    [{ SYSTEMROOT: "D:\\WINNT\\" }, "D:\\WINNT\\System32\\taskkill.exe"],
    [{ windir: "E:/Windows" }, "E:/Windows\\System32\\taskkill.exe"],
    [{}, "C:\\Windows\\System32\\taskkill.exe"],
    [{ SystemRoot: "" }, "C:\\Windows\\System32\\taskkill.exe"],
    [{ SystemRoot: "windows" }, "C:\\Windows\\System32\\taskkill.exe"],
    [{ SystemRoot: ".", windir: "C:\\W" }, "C:\\W\\System32\\taskkill.exe"],
  ])("%j -> %s", (env, expected) => {
    expect(systemProgram("taskkill.exe", env)).toBe(expected);
  });
});

describe("commandShell", () => {
  test.each([
    [{ ComSpec: "C:\\Windows\\system32\\cmd.exe" }, "C:\\Windows\\system32\\cmd.exe"],
    [{ COMSPEC: "D:\\tcc\\tcc.exe" }, "D:\\tcc\\tcc.exe"],
    [{ ComSpec: "cmd.exe", SystemRoot: "C:\\Windows" }, "C:\\Windows\\System32\\cmd.exe"],
    [{ ComSpec: ".\\cmd.exe" }, "C:\\Windows\\System32\\cmd.exe"],
    [{}, "C:\\Windows\\System32\\cmd.exe"],
  ])("%j -> %s", (env, expected) => {
    expect(commandShell(env)).toBe(expected);
  });
});
