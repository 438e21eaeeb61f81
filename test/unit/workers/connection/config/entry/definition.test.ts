/** Owns: the keys of one server entry, and the mistakes in them. */
import { describe, expect, it, test } from "vitest";
import {
  type Origin,
  parseEntry,
  type ServerDefinition,
  transportOf,
} from "../../../../../../workers/connection/config/entry/definition.ts";
import type { Mistake } from "../../../../../../workers/connection/config/entry/mistakes.ts";
import { definition, USER } from "../support.ts";

const definitionOf = (raw: unknown): ServerDefinition => definition("s", raw);
/** The mistakes that make an entry unusable. */
const mistakesOf = (raw: unknown, name = "s"): Mistake[] => {
  const parsed = parseEntry(name, raw, USER);
  const errors = parsed.mistakes.filter(({ severity }) => severity === "error");
  expect(parsed.definition === undefined).toBe(errors.length > 0);
  return errors;
};

const STDIO = { kind: "stdio", command: "node", args: [], env: {}, cwd: undefined };
const HTTP = { kind: "http", url: "https://x.test/mcp", headers: {}, type: "http" };

describe("parseEntry: what runs", () => {
  it.each([
    [{ command: "node" }, STDIO, "stdio"],
    [{ type: "stdio", command: "node" }, STDIO, "stdio"],
    [
      { command: "node", args: ["a"], env: { A: "1" }, cwd: "/w" },
      { ...STDIO, args: ["a"], env: { A: "1" }, cwd: "/w" },
      "stdio",
    ],
    [{ url: HTTP.url }, HTTP, "http"],
    [{ type: "http", url: HTTP.url }, HTTP, "http"],
    [
      { type: "streamable-http", url: HTTP.url, headers: { a: "b" } },
      { ...HTTP, headers: { a: "b" } },
      "http",
    ],
    [{ type: "sse", url: HTTP.url }, { ...HTTP, type: "sse" }, "sse"],
    [{ type: "stdio", command: "node", url: HTTP.url }, STDIO, "stdio"],
    [{ type: "http", command: "node", url: HTTP.url }, HTTP, "http"],
  ])("%j -> %j over %s", (raw, target, transport) => {
    const definition = definitionOf(raw);
    expect(definition.target).toEqual(target);
    expect(transportOf(definition)).toBe(transport);
  });
});

describe("parseEntry: other keys", () => {
  it.each([
    [{}, true],
    [{ enabled: true }, true],
    [{ enabled: false }, false],
    [{ disabled: true }, false],
    [{ disabled: false }, true],
    [{ enabled: true, disabled: true }, true],
  ])("%j -> enabled: %s", (keys, enabled) => {
    expect(definitionOf({ command: "c", ...keys }).enabled).toBe(enabled);
  });

  it.each([
    [{}, undefined],
    [{ timeout: 2 }, 2_000],
    [{ timeout: 0.5 }, 500],
    [{ requestTimeoutMs: 70 }, 70],
    [{ timeout: 2, requestTimeoutMs: 70 }, 70],
    [{ timeout: 1e9 }, 2 ** 31 - 1],
    [{ requestTimeoutMs: 2 ** 31 }, 2 ** 31 - 1],
    [{ requestTimeoutMs: 0.25 }, 1],
  ])("%j -> requestTimeoutMs %s", (keys, requestTimeoutMs) => {
    expect(definitionOf({ command: "c", ...keys }).requestTimeoutMs).toBe(requestTimeoutMs);
  });

  it.each<[Origin, boolean]>([
    ["user", false],
    ["import", false],
    ["extension", false],
    ["project-file", true],
    ["project-pi", true],
  ])("an entry of %s with keys of others -> kept in raw, project: %s", (origin, project) => {
    const raw = { command: "c", lifecycle: "eager", x: { y: 1 } };
    const made = definition("s", raw, { file: "/mcp.json", origin });
    expect(made).toMatchObject({ name: "s", file: "/mcp.json", origin, project, raw });
  });

  test("startupTimeoutMs and description -> taken", () => {
    expect(definitionOf({ command: "c", startupTimeoutMs: 9, description: "d" })).toMatchObject({
      startupTimeoutMs: 9,
      description: "d",
    });
  });
});

describe("parseEntry: mistakes", () => {
  it.each<[unknown, string[], RegExp]>([
    [null, [], /expected an object, found null/],
    [[], [], /expected an object, found a list/],
    ["node server.js", [], /expected an object, found a string/],
    [5, [], /expected an object, found a number/],
    [true, [], /expected an object, found a boolean/],
    [{}, [], /neither command nor url/],
    [{ args: ["a"] }, [], /neither command nor url/],
    [{ type: "stdio" }, [], /command is missing/],
    [{ type: "stdio", url: "https://x.test" }, [], /command is missing/],
    [{ type: "http" }, ["type"], /url is missing/],
    [{ type: "http", command: "node" }, ["type"], /url is missing/],
    [{ command: "node", url: "https://x.test" }, ["url"], /both command and url/],
    [{ command: "" }, ["command"], /./],
    [{ command: 5 }, ["command"], /string/],
    [{ command: ["node"] }, ["command"], /string/],
    [{ command: "c", args: "a" }, ["args"], /list/],
    [{ command: "c", args: ["a", 5] }, ["args", "1"], /string/],
    [{ command: "c", env: ["A=1"] }, ["env"], /record|object/],
    [{ command: "c", env: { PORT: 80 } }, ["env", "PORT"], /string/],
    [{ command: "c", env: { A: null } }, ["env", "A"], /string/],
    [{ command: "c", cwd: 1 }, ["cwd"], /string/],
    [{ url: "x.test/mcp" }, ["url"], /http or https URL/],
    [{ url: "ftp://x.test" }, ["url"], /http or https URL/],
    [{ url: "file:///etc/passwd" }, ["url"], /http or https URL/],
    [{ url: "" }, ["url"], /http or https URL/],
    [{ url: 5 }, ["url"], /expected a string, found a number/],
    [{ url: "https://x.test", headers: { a: 1 } }, ["headers", "a"], /string/],
    [{ url: "https://x.test", headers: "a: b" }, ["headers"], /record|object/],
    [{ type: "websocket", url: "https://x.test" }, ["type"], /stdio/],
    [{ command: "c", enabled: "yes" }, ["enabled"], /true or false/],
    [{ command: "c", disabled: 1 }, ["disabled"], /true or false/],
    [{ command: "c", timeout: 0 }, ["timeout"], /./],
    [{ command: "c", timeout: "5" }, ["timeout"], /number/],
    [{ command: "c", requestTimeoutMs: -1 }, ["requestTimeoutMs"], /./],
    [{ command: "c", startupTimeoutMs: null }, ["startupTimeoutMs"], /number/],
    [{ command: "c", description: {} }, ["description"], /string/],
  ])("%j -> at %j: %s", (raw, path, message) => {
    const mistakes = mistakesOf(raw);
    expect(mistakes.map((mistake) => mistake.path)).toEqual([path]);
    expect(mistakes[0]?.message).toMatch(message);
    expect(mistakes[0]?.remedy).toMatch(/\.$/);
  });

  test("several wrong keys -> a mistake each", () => {
    const paths = mistakesOf({ command: 1, args: 2, env: 3 }).map(({ path }) => path.join("."));
    expect(paths).toEqual(["command", "args", "env"]);
  });

  it.each(["", "__proto__"])("the name %j -> not usable", (name) => {
    expect(mistakesOf({ command: "c" }, name)).toMatchObject([
      { path: [], message: "this is not a usable server name" },
    ]);
  });

  it.each(["constructor", "toString", "my server", "a/b", "名前"])("the name %j -> usable", (name) => {
    expect(mistakesOf({ command: "c" }, name)).toEqual([]);
  });
});
