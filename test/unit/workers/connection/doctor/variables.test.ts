/** Owns: which unset variables the doctor finds in an entry, and that it runs no command for that. */
import { describe, expect, test } from "vitest";
import { checkVariables, missingVariables } from "../../../../../workers/connection/doctor/programs.ts";
import { definition } from "../config/support.ts";
import { examined, makeInput, makeMachine } from "./support.ts";

const missing = (entry: Record<string, unknown>, env: Record<string, string> = {}) =>
  [...missingVariables(definition("s", entry), makeMachine({ env }))].map(
    ([name, keys]) => `${name}: ${keys.join(" ")}`,
  );

describe("missingVariables", () => {
  test.each([
    ["none are used", { command: "c", args: ["$HOME"] }, []],
    [
      "args and env",
      { command: "c", args: [`\${A}`], env: { K: `\${A}`, L: `\${B}` } },
      ["A: args.0 env.K", "B: env.L"],
    ],
    ["a default", { command: "c", args: [`\${A:-x}`] }, []],
    ["a set one", { command: "c", args: [`\${SET}`] }, []],
    ["a folder and a file", { command: "c", cwd: `\${A}/x`, envFile: `~/\${B}` }, ["A: cwd", "B: envFile"]],
    ["a !command", { command: "c", env: { K: `!echo \${A}` } }, []],
    ["an escaped command", { command: "c", env: { K: `!!\${A}` } }, ["A: env.K"]],
    ["a url and a header", { url: `https://\${H}/`, headers: { X: `\${T}` } }, ["H: url", "T: headers.X"]],
    ["a token", { url: "https://h/", bearerTokenEnv: "T" }, ["T: bearerTokenEnv"]],
    ["a token that is not sent", { url: "https://h/", auth: "oauth", bearerTokenEnv: "T" }, []],
  ])("%s", (_title, entry, expected) => {
    expect(missing(entry, { SET: "1" })).toEqual(expected);
  });
});

test("a missing variable -> one error for it, with the file", () => {
  const found = checkVariables(makeInput([examined("s", { command: "c", args: [`\${A}`] })]));
  expect(found).toEqual([
    expect.objectContaining({
      id: "variable",
      severity: "error",
      server: "s",
      title: "The variable A is not set, and args.0 needs it.",
      file: "/home/me/.pi/agent/mcp.json",
    }),
  ]);
});

test("a server that is switched off -> nothing is said about it", () => {
  const off = examined("s", { command: "c", args: [`\${A}`], enabled: false });
  expect(checkVariables(makeInput([off]))).toEqual([]);
});

test("all are set -> one line that says so", () => {
  const [found] = checkVariables(makeInput([examined("s", { command: "c" })]));
  expect(found).toEqual({ id: "variable", severity: "ok", title: "The variables of 1 server are set." });
});
