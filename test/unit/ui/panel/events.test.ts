/** Owns: which events of the worker the panel reads again for, in each of its views. */
import { describe, expect, test } from "vitest";
import type { WorkerEvent } from "../../../../src/shared/protocol/events.ts";
import { changesTools, concerns, isSeen } from "../../../../src/ui/panel/events.ts";
import type { View } from "../../../../src/ui/panel/model/model.ts";
import { makeStatus } from "../../server-status.ts";

const list = { at: 0, filter: undefined } as unknown as Extract<View, { name: "servers" }>["list"];
const event = (type: WorkerEvent["type"]): WorkerEvent =>
  ({ type, ...(type === "server" ? { status: makeStatus("git") } : {}) }) as WorkerEvent;

const SERVERS: View = { name: "servers", list };
const GIT: View = { name: "server", server: "git", list };
const OTHER: View = { name: "tools", server: "fs", list };
const STATS: View = { name: "stats", top: 0 };
const DOCTOR: View = { name: "doctor", server: "git", top: 0 };

describe("concerns", () => {
  test.each<[WorkerEvent["type"], View, boolean]>([
    ["catalog", SERVERS, true],
    ["catalog", OTHER, true],
    ["removed", GIT, true],
    ["planned", GIT, true],
    ["server", GIT, true],
    ["server", OTHER, false],
    ["server", SERVERS, false],
    ["sign-in", GIT, false],
    ["notice", GIT, false],
    ["planned", STATS, false],
    ["catalog", DOCTOR, false],
    ["server", DOCTOR, false],
  ])("%s at the view %o -> %s", (type, view, expected) => {
    expect(concerns(event(type), view)).toBe(expected);
  });
});

test.each<[WorkerEvent["type"], seen: boolean, tools: boolean]>([
  ["spawned", false, false],
  ["exited", false, false],
  ["talker", false, false],
  ["progress", false, false],
  ["renewing", false, false],
  ["server", true, false],
  ["sign-in", true, false],
  ["catalog", true, true],
  ["removed", true, true],
  ["planned", true, true],
])("%s -> seen %s, tools may be others %s", (type, seen, tools) => {
  expect([isSeen(event(type)), changesTools(event(type))]).toEqual([seen, tools]);
});
