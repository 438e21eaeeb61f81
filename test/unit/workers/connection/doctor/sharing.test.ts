/** Owns: what the doctor says about sharing: what it would save, why it saves nothing, and a hub that cannot be used. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { describe, expect, onTestFinished, test } from "vitest";
import type { SharedServer } from "../../../../../src/shared/protocol/person.ts";
import type { ServerStatus } from "../../../../../src/shared/protocol/session.ts";
import {
  type CommandLine,
  commandLines,
  fromPsLines,
  othersLike,
} from "../../../../../workers/connection/doctor/command-lines.ts";
import { checkSharing } from "../../../../../workers/connection/doctor/sharing.ts";
import { HubUnusable } from "../../../../../workers/shared/hub/place.ts";
import { examined, makeInput, makeMachine } from "./support.ts";

const MB = 1024 * 1024;

const row = (pid: number, rest: Partial<CommandLine> = {}): CommandLine => ({
  pid,
  parent: 1,
  group: pid,
  bytes: 40 * MB,
  line: "node\0s.mjs\0",
  ...rest,
});

const entry = (rest: Record<string, unknown> = {}) => ({ command: "node", args: ["s.mjs"], ...rest });
const own = (status: Partial<ServerStatus> = {}) => examined("s", entry(), { pid: 10, ...status });
const SHARING = { sessions: 2, since: 0 };
const shared = (status: Partial<ServerStatus> = { pid: 20, sharing: SHARING }) =>
  examined("s", entry({ shared: true }), status);

const running = (rest: Partial<SharedServer> = {}): SharedServer => ({
  labels: ["s"],
  pid: 20,
  since: 0,
  sessions: [1],
  memory: MB,
  differs: [],
  isRetired: false,
  ...rest,
});

async function check(
  servers: ReturnType<typeof own>[],
  { rows = [], hub }: { rows?: CommandLine[]; hub?: SharedServer[] | Error } = {},
) {
  const machine = makeMachine({
    commandLines: async (pids) => rows.filter(() => pids.length > 0),
    sharedServers: async () => {
      if (hub instanceof Error) throw hub;
      return hub && { pid: 1, since: 0, servers: hub };
    },
  });
  return checkSharing(makeInput(servers, { machine }));
}

describe("a server that runs several times", () => {
  test("two others -> what they take, and what sharing would save", async () => {
    const [found, ...more] = await check([own()], { rows: [row(10), row(11), row(12)] });
    expect(more).toEqual([]);
    expect(found).toMatchObject({ id: "sharing", severity: "note", server: "s" });
    expect(found?.title).toBe("It runs 3 times on this machine; the 2 others take 80 MB.");
    expect(found?.detail).toMatch(/^"shared": true would save about 80 MB, /);
  });

  test.each<[string, ReturnType<typeof own>[], Parameters<typeof check>[1]]>([
    ["it runs once", [own()], { rows: [row(10)] }],
    ["it does not run", [examined("s", entry())], { rows: [row(11)] }],
    ["its own children", [own()], { rows: [row(10), row(11, { parent: 10, group: 10 })] }],
    ["another command line", [own()], { rows: [row(10), row(11, { line: "node\0s.mjs\0x\0" })] }],
    [
      "another server of this session",
      [own(), examined("t", entry(), { pid: 11 })],
      { rows: [row(10), row(11)] },
    ],
    ["it is shared", [shared()], { rows: [row(20), row(11)], hub: [running()] }],
    ["the other one is shared", [own()], { rows: [row(10), row(20)], hub: [running()] }],
    ["the hub cannot be used, and nothing is to be shared", [own()], { hub: new HubUnusable("x") }],
  ])("%s -> nothing", async (_title, servers, world) => {
    expect(await check(servers, world)).toEqual([]);
  });

  test("a process that an other one has started -> its bytes count, and it is no further one", () => {
    const rows = [row(10), row(11), row(12, { parent: 11, group: 11 })];
    expect(othersLike(10, rows)).toEqual({ count: 1, bytes: 80 * MB });
  });

  test("a server of the project -> the person's own file can share it", async () => {
    const server = own();
    const ofProject = { ...server, definition: { ...server.definition, definedByProject: true } };
    const [found] = await check([ofProject], { rows: [row(10), row(11)] });
    expect(found?.detail).toMatch(/^"shared": true in your own mcp\.json would save/);
  });
});

describe("a server that is to be shared", () => {
  test("two processes -> the names of what differs, at most eight", async () => {
    const differs = ["cwd", ...Array.from({ length: 20 }, (_, i) => `V${i}`)];
    const hub = [running({ differs }), running({ pid: 21, differs: ["cwd"] })];
    const [found, ...more] = await check([shared()], { hub });
    expect(more).toEqual([]);
    expect(found?.severity).toBe("note");
    expect(found?.title).toBe(
      "2 processes of it run, because sessions differ in cwd, V0, V1, V2, V3, V4, V5, V6 and 13 more.",
    );
  });

  test.each<[string, SharedServer[] | undefined]>([
    ["no hub runs", undefined],
    ["one process for all", [running()]],
    ["a process of another server", [running({ labels: ["t"], differs: ["cwd"] })]],
    ["one that goes on only for those who use it", [running(), running({ isRetired: true, differs: ["X"] })]],
  ])("%s -> nothing", async (_title, hub) => {
    expect(await check([shared()], { ...(hub ? { hub } : {}) })).toEqual([]);
  });

  test("it has a process of this session alone -> a warning, and how to try again", async () => {
    const [found, ...more] = await check([shared({ pid: 10 })]);
    expect(more).toEqual([]);
    expect(found).toMatchObject({ severity: "warning", server: "s" });
    expect(found?.title).toBe('"shared" is true, but this session runs a process of its own.');
    expect(found?.remedy).toMatch(/reconnect s tries again\.$/);
  });

  test("the hub cannot be used -> one warning with the reason and the servers", async () => {
    const hub = new HubUnusable("/run/user/1/pi-mcp is a link; remove it");
    const found = await check([shared({ pid: 10 })], { hub });
    expect(found.map(({ severity, title }) => `${severity}: ${title}`)).toEqual([
      "warning: Shared servers cannot be used: /run/user/1/pi-mcp is a link; remove it.",
    ]);
    expect(found[0]?.detail).toMatch(/ of its own of s\. mcp-hub\.log may say more\.$/);
    await expect(check([shared()], { hub: new Error("a fault") })).rejects.toThrow("a fault");
  });
});

test("lines of ps -> pid, parent, group, bytes and the command with its spaces; other lines are left out", () => {
  const text = "  11     1    11  2048 node s.mjs --a  b\n x\n\n  12    11    11 10 sh\n";
  expect(fromPsLines(text)).toEqual([
    { pid: 11, parent: 1, group: 11, bytes: 2 * MB, line: "node s.mjs --a  b" },
    { pid: 12, parent: 11, group: 11, bytes: 10 * 1024, line: "sh" },
  ]);
});

test.skipIf(process.platform === "win32")(
  "real processes: the same command line in other groups counts, another one does not",
  async () => {
    const start = async (word: string): Promise<number> => {
      const program = "process.stdout.write('.'); setInterval(() => {}, 1e6)";
      const child = spawn(process.execPath, ["-e", program, "--", word], {
        detached: true,
        stdio: ["ignore", "pipe", "ignore"],
      });
      onTestFinished(async () => {
        const ended = once(child, "close");
        child.kill("SIGKILL");
        await ended;
      });
      await once(child.stdout, "data");
      return child.pid ?? 0;
    };
    const mark = `pmt-twin-${process.pid}`;
    const [one, other] = await Promise.all([start(mark), start(mark), start(`${mark}-not`)]);
    const rows = await commandLines([one]);
    expect(rows.map(({ pid }) => pid).sort()).toEqual([one, other].sort());
    const { count, bytes } = othersLike(one, rows);
    expect(count).toBe(1);
    expect(bytes).toBeGreaterThan(10 * MB);
    expect(await commandLines([])).toEqual([]);
  },
);
