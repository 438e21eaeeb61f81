/** Owns: the key `sandbox`: what it may hold, that a project gets no more room than the user gives, and its words. */
import { describe, expect, test } from "vitest";
import {
  lessRoom,
  sandboxOf,
  sandboxWords,
  type WrittenSandbox,
} from "../../../../../../workers/connection/config/entry/sandbox.ts";
import { parseConfigText } from "../../../../../../workers/connection/config/files/files.ts";
import { mergeLayers } from "../../../../../../workers/connection/config/merge/layers.ts";
import { PROJECT_FILE, USER } from "../support.ts";

test("what is written -> a room", () => {
  expect(sandboxOf(undefined)).toBeUndefined();
  expect(sandboxOf(false)).toBeUndefined();
  expect(sandboxOf(true)).toEqual({ write: [], read: [], hide: [], network: true });
  expect(sandboxOf({ write: ["~/a"], network: false })).toEqual({
    ...{ write: ["~/a"], read: [], hide: [], network: false },
  });
});

describe("no more room than the user gives", () => {
  const room = { write: ["~/a", "/b/"], read: ["~/.kube"], hide: ["~/x"], network: true };
  test.each<[own: WrittenSandbox, wanted: WrittenSandbox, value: WrittenSandbox, isLooser: boolean]>([
    [false, false, false, false],
    [false, { write: ["/"] }, { write: ["/"] }, false],
    [true, false, true, true],
    [true, true, true, false],
    [true, { write: ["/"] }, { write: [], read: [], hide: [], network: true }, true],
    [true, { network: false }, { write: [], read: [], hide: [], network: false }, false],
    [room, true, room, false],
    [
      room,
      { write: ["~/a/c", "/b", "/bc", "~/a/../d"], read: ["~/.kube/config", "~/.ssh"], hide: ["~/y"] },
      { write: ["~/a/c", "/b"], read: ["~/.kube/config"], hide: ["~/x", "~/y"], network: true },
      true,
    ],
    [
      { ...room, network: false },
      { network: true },
      { write: [], read: [], hide: ["~/x"], network: false },
      true,
    ],
  ])("%j, wanted %j", (own, wanted, value, isLooser) => {
    expect(lessRoom(own, wanted)).toEqual({ value, isLooser });
  });
});

const merged = (user: object, project: object) => {
  const file = (source: typeof USER, text: object) => parseConfigText(JSON.stringify(text), source);
  const files = [file(USER, user), file(PROJECT_FILE, project)];
  const { servers, problems } = mergeLayers({ registered: [], hosts: [], files });
  return {
    rooms: Object.fromEntries(servers.map(({ name, sandbox }) => [name, sandbox])),
    problems: [...files.flatMap((one) => one.problems), ...problems].map(
      ({ key, message }) => `${key}: ${message}`,
    ),
  };
};

describe("servers and settings", () => {
  test("the setting counts for local servers that say nothing, false takes one out", () => {
    const mcpServers = { a: { command: "a" }, b: { command: "b", sandbox: false }, c: { url: "https://c" } };
    expect(merged({ settings: { sandbox: true }, mcpServers }, {}).rooms).toEqual({
      ...{ a: true, b: undefined, c: undefined },
    });
  });

  test("a project's server cannot leave the user's room, and a project decides about no server of the user's", () => {
    const user = { settings: { sandbox: { network: false } }, mcpServers: { a: { command: "a" } } };
    const project = {
      settings: { sandbox: false },
      mcpServers: { a: { sandbox: false }, p: { command: "p", sandbox: false } },
    };
    expect(merged(user, project)).toEqual({
      rooms: { a: { network: false }, p: { network: false } },
      problems: [
        "mcpServers.a.sandbox: a project's file may set this for its own servers only",
        "settings.sandbox: a project's file may not decide this: your own servers may need their room",
        "mcpServers.p.sandbox: a project's file may only make this stricter",
      ],
    });
  });

  test("a remote server does not run here", () => {
    const { problems } = merged({ mcpServers: { a: { url: "https://a", sandbox: true } } }, {});
    expect(problems).toEqual(["mcpServers.a.sandbox: has no effect: a remote server does not run here"]);
  });

  test.each([
    [{ writes: ["~"] }, /sandbox/],
    [{ write: "~" }, /sandbox/],
    [{ write: [""] }, /sandbox/],
    [{ write: ["a\0b"] }, /sandbox/],
    [{ write: Array.from({ length: 101 }, () => "a") }, /sandbox/],
    ["yes", /sandbox/],
  ])("%j is a mistake, and the server does not start without its sandbox", (sandbox, message) => {
    const { rooms, problems } = merged({ mcpServers: { a: { command: "a", sandbox } } }, {});
    expect(rooms).toEqual({});
    expect(problems.join("\n")).toMatch(message);
  });
});

test("the words of the consent", () => {
  expect(sandboxWords(false)).toEqual([]);
  expect(sandboxWords(true)).toEqual(["in a sandbox"]);
  expect(sandboxWords({ write: ["~/a", "b c"], read: ["~/.kube"], hide: ["x\n"], network: false })).toEqual([
    'in a sandbox that may write ~/a, "b c", may read ~/.kube, hides "x\\n", has no network',
  ]);
});
