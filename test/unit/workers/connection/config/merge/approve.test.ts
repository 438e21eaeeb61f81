/** Owns: what becomes of `approve` when files are added up: a file of a project only tightens, and mistakes are told. */
import { describe, expect, test } from "vitest";
import { LIMITS } from "../../../../../../src/shared/protocol/limits.ts";
import { verdictOn } from "../../../../../../workers/connection/config/entry/exposure.ts";
import { parseConfigText } from "../../../../../../workers/connection/config/files/files.ts";
import type { ConfigSource } from "../../../../../../workers/connection/config/files/sources.ts";
import { type Merged, mergeLayers } from "../../../../../../workers/connection/config/merge/layers.ts";
import { PROJECT_FILE, PROJECT_PI, USER } from "../support.ts";

interface Written {
  source: ConfigSource;
  entry?: object;
  settings?: object;
}

const merge = (...files: Written[]): Merged =>
  mergeLayers({
    registered: [],
    hosts: [],
    files: files.map(({ source, entry, settings = {} }) =>
      parseConfigText(JSON.stringify({ mcpServers: entry ? { s: entry } : {}, settings }), source),
    ),
  });

/** What a call of the tool `t` without hints meets. */
function found({ servers: [server], settings, problems }: Merged) {
  if (!server) throw new Error(problems.map(({ message }) => message).join());
  const judged = { server: "s", tool: "t", prefix: "server", annotations: undefined } as const;
  return verdictOn(judged, server, settings.approve);
}
const told = ({ problems }: Merged): (string | undefined)[][] =>
  problems.map(({ key, message }) => [key, message]);

const RUN = { command: "x" };

test("the user's later file replaces the word of an earlier one, also as an override", () => {
  const merged = merge(
    { source: USER, entry: { ...RUN, approve: "always" }, settings: { approve: "always" } },
    { source: { ...USER, file: "/later" }, entry: { approve: "never" }, settings: { approve: "never" } },
  );
  expect([found(merged), merged.settings.approve, merged.problems]).toEqual(["allow", "never", []]);
});

describe.each([PROJECT_FILE, PROJECT_PI])("$file", (source) => {
  test.each([
    ["never", "always", "ask"],
    ["always", "never", "ask"],
    [{ t: "deny" }, { t: "allow" }, "deny"],
    [{ t: "allow" }, { "*": "deny" }, "deny"],
    [undefined, "destructive", "ask"],
  ])("the user's server says %o, the override %o -> %s", (own, project, expected) => {
    const merged = merge(
      { source: USER, entry: { ...RUN, approve: own } },
      { source, entry: { approve: project } },
    );
    expect(found(merged)).toBe(expected);
  });

  test("an override of other keys keeps what an earlier file of the project adds", () => {
    const merged = merge(
      { source: USER, entry: RUN },
      { source, entry: { approve: "always" } },
      { source: PROJECT_PI, entry: { lifecycle: "eager" } },
    );
    expect(found(merged)).toBe("ask");
  });

  test.each([
    ["always", "never", "ask"],
    ["never", "always", "ask"],
    [{ "*": "deny" }, { "*": "allow" }, "deny"],
  ])("the user's settings say %o, a server of the project %o -> %s", (own, project, expected) => {
    const merged = merge(
      { source: USER, settings: { approve: own } },
      { source, entry: { ...RUN, approve: project } },
    );
    expect(found(merged)).toBe(expected);
  });

  test.each([
    ["always", "never", "ask"],
    ["never", "always", "ask"],
    [{ "*": "deny" }, { "*": "allow" }, "deny"],
    ["destructive", {}, "ask"],
  ])("the user's settings say %o, the project's %o -> %s", (own, project, expected) => {
    const merged = merge(
      { source: USER, entry: RUN, settings: { approve: own } },
      { source, settings: { approve: project } },
    );
    expect(found(merged)).toBe(expected);
  });

  test("a word that asks less often than the user's -> told, wherever the file says it", () => {
    const user = { source: USER, entry: { ...RUN, approve: "always" }, settings: { approve: "always" } };
    const stricter = "a project's file may only make this stricter";
    expect(
      told(merge(user, { source, entry: { approve: "never" }, settings: { approve: "destructive" } })),
    ).toEqual([
      ["mcpServers.s.approve", stricter],
      ["settings.approve", stricter],
    ]);
    expect(
      told(
        merge(
          { source: USER, settings: { approve: "always" } },
          { source, entry: { ...RUN, approve: "never" } },
        ),
      ),
    ).toEqual([["mcpServers.s.approve", stricter]]);
    expect(
      told(merge(user, { source, entry: { approve: "always" }, settings: { approve: { t: "deny" } } })),
    ).toEqual([]);
  });
});

describe("mistakes", () => {
  const WORDS = 'expected "never", "destructive", "always" or an object, found a string';
  test.each([
    ["sometimes", "mcpServers.s.approve", WORDS],
    [true, "mcpServers.s.approve", 'expected "never", "destructive", "always" or an object, found a boolean'],
    [{ "x_*": "yes" }, "mcpServers.s.approve.x_*", 'expected one of "allow", "ask", "destructive", "deny"'],
    [
      Object.fromEntries(Array.from({ length: LIMITS.toolRules + 1 }, (_, i) => [`t${i}`, "ask"])),
      "mcpServers.s.approve",
      "has 1,001 items, at most 1,000 are possible",
    ],
    [
      { ["x".repeat(LIMITS.toolRuleChars + 1)]: "ask" },
      "mcpServers.s.approve",
      "holds a name of more than 256 characters",
    ],
  ])("%o -> the server is left out, with the reason", (approve, key, message) => {
    const merged = merge({ source: USER, entry: { ...RUN, approve } });
    const problems = parseConfigText(
      JSON.stringify({ mcpServers: { s: { ...RUN, approve } } }),
      USER,
    ).problems;
    expect([merged.servers, told({ ...merged, problems })]).toEqual([[], [[key, message]]]);
  });

  test("wrong settings -> told, and nothing of them counts", () => {
    const file = parseConfigText('{"settings": {"approve": "maybe", "approveToo": ["never"]}}', USER);
    expect(file.problems.map(({ key }) => key)).toEqual(["settings.approve", "settings.approveToo"]);
    expect(file.settings).toEqual({});
  });
});
