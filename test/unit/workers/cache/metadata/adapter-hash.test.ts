/** The hash that pi-mcp-adapter 2.36.0 stores; test/worker/cache-adapter.test.ts compares with the real adapter. */
import { homedir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, test } from "vitest";
import { adapterHash, hashesOf } from "../../../../../workers/cache/metadata/metadata.ts";
import { hashDefinition } from "../../../../../workers/shared/json.ts";

const ENVIRONMENT = { TOKEN: "secret", NEST: "$env:TOKEN" };

// biome-ignore-start lint/suspicious/noTemplateCurlyInString: it is what a file holds.
describe("adapterHash", () => {
  it.each<[string, Record<string, unknown>, Record<string, unknown>]>([
    ["the shell's spelling", { env: { A: "x${TOKEN}y" } }, { env: { A: "xsecrety" } }],
    ["PowerShell's spelling", { headers: { A: "$env:TOKEN" } }, { headers: { A: "secret" } }],
    ["the braces' spelling", { url: "https://h/{env:TOKEN}" }, { url: "https://h/secret" }],
    ["a variable that is not set", { env: { A: "${NONE}" } }, { env: { A: "" } }],
    ["a value that holds a variable", { env: { A: "${NEST}" } }, { env: { A: "secret" } }],
    ["the home folder", { cwd: "~" }, { cwd: homedir() }],
    ["a folder below it", { cwd: "~/a" }, { cwd: join(homedir(), "a") }],
    ["a folder that only begins like it", { cwd: "~a" }, { cwd: "~a" }],
    ["a command for a secret", { env: { A: "!echo ${TOKEN}" } }, { env: { A: "!echo ${TOKEN}" } }],
    ["an escaped command", { env: { A: "!!${TOKEN}" } }, { env: { A: "!secret" } }],
    [
      "a token from the environment",
      { bearerTokenEnv: "TOKEN" },
      { bearerTokenEnv: "TOKEN", bearerToken: "secret" },
    ],
    ["a token of its own", { bearerToken: "$env:TOKEN" }, { bearerToken: "secret" }],
    [
      "variables where it reads none",
      { command: "${TOKEN}", args: ["${TOKEN}"] },
      { command: "${TOKEN}", args: ["${TOKEN}"] },
    ],
    [
      "values of the wrong type",
      { env: 5, cwd: null, headers: ["$env:TOKEN"] },
      { env: 5, cwd: null, headers: ["$env:TOKEN"] },
    ],
  ])("%s -> as if written out", (_name, definition, resolved) => {
    expect(adapterHash(definition, ENVIRONMENT)).toBe(hashDefinition(resolved));
  });
});

test("hashesOf: no variables -> one hash; variables -> our hash, then the adapter's", () => {
  const plain = { command: "node", env: { A: "1" } };
  expect(hashesOf(plain, ENVIRONMENT)).toEqual([hashDefinition(plain)]);
  const secret = { command: "node", env: { A: "${TOKEN}" } };
  expect(hashesOf(secret, ENVIRONMENT)).toEqual([hashDefinition(secret), adapterHash(secret, ENVIRONMENT)]);
});
// biome-ignore-end lint/suspicious/noTemplateCurlyInString: it is what a file holds.
