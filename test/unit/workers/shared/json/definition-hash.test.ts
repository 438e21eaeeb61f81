/** The hash of a server definition. */
import { describe, expect, it, test } from "vitest";
import { hashDefinition, hashDefinitions } from "../../../../../workers/shared/json.ts";

const BASE = {
  command: "node",
  args: ["server.js", "--flag"],
  env: { A: "1", B: "2" },
  headers: { x: "y", z: "w" },
};

describe("hashDefinition", () => {
  test("any definition -> hex SHA-256", () => {
    expect(hashDefinition(BASE)).toMatch(/^[0-9a-f]{64}$/);
    expect(hashDefinition({})).toMatch(/^[0-9a-f]{64}$/);
  });

  test("keys in another order, at any depth -> the same", () => {
    const turned = {
      headers: { z: "w", x: "y" },
      env: { B: "2", A: "1" },
      args: ["server.js", "--flag"],
      command: "node",
    };
    expect(hashDefinition(turned)).toBe(hashDefinition(BASE));
  });

  it.each([
    ["args", ["--flag", "server.js"]],
    ["auth", "oauth"],
    ["bearerToken", "t"],
    ["bearerTokenEnv", "T"],
    ["command", "bun"],
    ["cwd", "/other"],
    ["env", { A: "1", B: "3" }],
    ["excludeTools", ["a"]],
    ["exposeResources", true],
    ["headers", { x: "y" }],
    ["includeTools", ["a"]],
    ["oauth", { clientId: "a" }],
    ["oauth", false],
    ["url", "https://example.com"],
  ])("another %s -> another hash", (key, value) => {
    expect(hashDefinition({ ...BASE, [key]: value })).not.toBe(hashDefinition(BASE));
  });

  it.each([
    ["lifecycle", "eager"],
    ["idleTimeout", 5],
    ["timeout", 5],
    ["requestTimeoutMs", 5],
    ["startupTimeoutMs", 5],
    ["debug", true],
    ["description", "d"],
    ["enabled", false],
    ["disabled", true],
    ["directTools", true],
    ["unknown", { a: 1 }],
  ])("%s -> the same hash", (key, value) => {
    expect(hashDefinition({ ...BASE, [key]: value })).toBe(hashDefinition(BASE));
  });

  it.each([
    ["a text and a number", { cwd: "1" }, { cwd: 1 }],
    ["an empty and a missing array", { args: [] }, {}],
    ["a value that moved between keys", { cwd: "a" }, { command: "a" }],
    ["one argument and two", { args: ["a b"] }, { args: ["a", "b"] }],
    ["a list and a map of the same", { args: ["a"] }, { args: { 0: "a" } }],
    ["a quoted end of a text", { env: { A: '1","B":"2' } }, { env: { A: "1", B: "2" } }],
    ["null and the text null", { cwd: null }, { cwd: "null" }],
  ])("%s -> different hashes", (_name, a, b) => {
    expect(hashDefinition(a)).not.toBe(hashDefinition(b));
  });

  test("a key that is undefined -> as if it were absent", () => {
    expect(hashDefinition({ ...BASE, cwd: undefined })).toBe(hashDefinition(BASE));
  });

  test("a variable to be interpolated -> hashed as written, whatever the environment", () => {
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is what a file holds.
    const definition = { env: { TOKEN: "${PMT_TEST_TOKEN}" } };
    const before = hashDefinition(definition);
    process.env.PMT_TEST_TOKEN = "secret";
    expect(hashDefinition(definition)).toBe(before);
    delete process.env.PMT_TEST_TOKEN;
  });
});

test("hashDefinitions: a list -> hashes by position", () => {
  expect(hashDefinitions([BASE, {}])).toEqual([hashDefinition(BASE), hashDefinition({})]);
  expect(hashDefinitions([])).toEqual([]);
});
