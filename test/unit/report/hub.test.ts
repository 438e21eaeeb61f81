/** Owns: the texts about servers that sessions share: how one is shared, whom a reconnect interrupts, what the hub runs. */
import { describe, expect, test } from "vitest";
import {
  interruptText,
  othersOf,
  readHubWords,
  renderHub,
  sharingText,
  stoppedText,
} from "../../../src/report/hub.ts";
import type { SharedServer } from "../../../src/shared/protocol/person.ts";
import type { ServerStatus } from "../../../src/shared/protocol/session.ts";
import { makeStatus } from "../server-status.ts";

const NOW = 1_800_000_000_000;
const MINUTE = 60_000;
const MB = 1024 * 1024;

const shared = (name: string, sessions: number, rest: Partial<ServerStatus> = {}): ServerStatus =>
  makeStatus(name, { sharing: { sessions, since: NOW - 42 * MINUTE }, ...rest });

const running = (rest: Partial<SharedServer> = {}): SharedServer => ({
  labels: ["files"],
  pid: 11,
  since: NOW - 5 * MINUTE,
  sessions: [101, 102],
  memory: 60 * MB,
  differs: [],
  isRetired: false,
  ...rest,
});

const REPORT = { pid: 10, since: NOW - 42 * MINUTE, servers: [running()] };

test("a shared server -> by how many sessions, and since when", () => {
  expect(sharingText({ sessions: 3, since: NOW - 42 * MINUTE }, NOW)).toBe("shared by 3 sessions, up 42 min");
  expect(sharingText({ sessions: 1, since: NOW + MINUTE }, NOW)).toBe(
    "shared by 1 session, up less than a min",
  );
});

describe("whom a reconnect interrupts", () => {
  test.each<[string, ServerStatus, number]>([
    ["not shared", makeStatus("a"), 0],
    ["this session alone", shared("a", 1), 0],
    ["two others", shared("a", 3), 2],
    ["this session has left it", shared("a", 3, { state: "idle" }), 0],
  ])("%s -> %j others", (_title, status, others) => {
    expect(othersOf(status)).toBe(others);
    expect(interruptText([status]) === undefined).toBe(others === 0);
  });

  test("one server, several servers, many servers -> each with its number of sessions, in a bounded line", () => {
    const lost = "Calls that are open there fail, and what a server keeps in its memory is lost.";
    expect(interruptText([shared("a", 2), makeStatus("b")])).toBe(
      `1 other session uses a, and a reconnect ends its process. ${lost}`,
    );
    expect(interruptText([shared("a", 4)])).toBe(
      `3 other sessions use a, and a reconnect ends its process. ${lost}`,
    );
    expect(interruptText([shared("a", 2), shared("b\nc", 3)])).toBe(
      `A reconnect ends processes that others use: a (1 other session), b c (2 other sessions). ${lost}`,
    );
    const many = Array.from({ length: 1_000 }, (_, i) => shared(`s${i}`, 2));
    expect(interruptText(many)).toMatch(/s19 \(1 other session\), 980 more\. Calls/);
  });
});

test.each([
  ["", {}],
  ["stop", { stop: {} }],
  ["stop files", { stop: { server: "files" } }],
  ["stop  my server", { stop: { server: "my server" } }],
  ["files", undefined],
  ["stopfiles", undefined],
])("hub %j -> %j", (words, read) => {
  expect(readHubWords(words)).toEqual(read);
});

describe("what the hub runs", () => {
  test("none -> says so, and how sessions share", () => {
    expect(renderHub(undefined, NOW)).toBe(
      'No shared server runs. Sessions share a server over stdio that has "shared": true in your mcp.json.',
    );
  });

  test("each process with its sessions, age and memory, and what keeps two apart", () => {
    const servers = [
      running({ differs: ["cwd", "AWS_PROFILE"] }),
      running({ labels: ["files", "fs"], pid: 12, sessions: [103], differs: ["cwd"], isRetired: true }),
      running({ labels: ["memory"], pid: 13, sessions: [], memory: undefined }),
    ];
    expect(renderHub({ ...REPORT, servers }, NOW).split("\n")).toEqual([
      "The hub of shared servers: pid 10, up 42 min, 3 servers, 120 MB",
      "files: pid 11, up 5 min, 60 MB, used by 2 sessions (101, 102)",
      "  kept apart from another process of this program by cwd, AWS_PROFILE",
      "files, fs: pid 12, up 5 min, 60 MB, used by 1 session (103), ends when they have left",
      "  kept apart from another process of this program by cwd",
      "memory: pid 13, up 5 min, used by no session",
    ]);
  });

  test("names with control characters, thousands of them, of servers and of sessions -> bounded and in one line", () => {
    const names = Array.from({ length: 5_000 }, (_, i) => `A\u001b[2J\n${i}`);
    const servers = Array.from({ length: 300 }, () =>
      running({ labels: names, differs: names, sessions: names.map((_, i) => i) }),
    );
    const text = renderHub({ ...REPORT, servers }, NOW);
    expect(text).not.toContain("\u001b");
    expect(text.split("\n")).toHaveLength(1 + 2 * 100 + 1);
    expect(text).toMatch(/\nand 200 more servers$/);
    expect(text.length).toBeLessThan(200_000);
  });
});

test.each([
  [undefined, 0, {}, "No shared server runs."],
  [{ ...REPORT, servers: [] }, 0, {}, "The hub is ended. It ran no server."],
  [REPORT, 1, {}, "The hub and its 1 server are ended, used by 2 sessions. The next call starts it again."],
  [
    { ...REPORT, servers: [running({ sessions: [] }), running({ labels: ["other"], pid: 12 })] },
    1,
    { server: "files" },
    "files is ended, used by no session. The next call starts it again.",
  ],
  [
    { ...REPORT, servers: [running(), running({ pid: 12, sessions: [102, 103] })] },
    2,
    { server: "files" },
    "files is ended, all 2 processes of it, used by 3 sessions. The next call starts it again.",
  ],
])("hub stop, case %# -> what was ended and who used it", (report, stopped, stop, text) => {
  expect(stoppedText(report, stopped, stop)).toBe(text);
});
