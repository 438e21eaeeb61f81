import { existsSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { ThreadsError } from "../../../../../../src/shared/protocol/errors.ts";
import {
  escapeVariables,
  interpolate,
  variablesIn,
} from "../../../../../../workers/connection/config/entry/interpolate.ts";
import { runCommand } from "../../../../../../workers/connection/config/values/run-command.ts";
import {
  type ResolvedTarget,
  resolveTarget,
} from "../../../../../../workers/connection/config/values/values.ts";
import { createRandom, definition, put, temporaryFolder } from "../support.ts";

const ENV = { PATH: process.env.PATH, TOKEN: "s3cret", EMPTY: "", NESTED: "${TOKEN}", HOST: "h.example.com" };

test.each([
  ["${TOKEN}", "s3cret"],
  ["a${TOKEN}b${TOKEN}", "as3cretbs3cret"],
  ["$env:TOKEN/x", "s3cret/x"],
  ["{env:TOKEN}", "s3cret"],
  ["${env:TOKEN}", "s3cret"],
  ["${NOPE:-default}", "default"],
  ["${NOPE:-}", ""],
  ["${EMPTY:-default}", "default"],
  ["${EMPTY}", ""],
  ["${TOKEN:-default}", "s3cret"],
  ["${NESTED}", "${TOKEN}"],
  ["$TOKEN", "$TOKEN"],
  ["${not-a-name}", "${not-a-name}"],
  ["${}", "${}"],
  ["plain", "plain"],
  ["${NOPE:-${TOKEN}}", "s3cret"],
  ["${NOPE:-${EMPTY:-$env:HOST}}/x", "h.example.com/x"],
  ["${TOKEN:-${NOPE}}", "s3cret"],
  ['${NOPE:-{"a":1}}', '{"a":1}'],
  ["${NOPE:-", "${NOPE:-"],
  ["${NOPE:-${TOKEN}", "${NOPE:-s3cret"],
  ["$${TOKEN}", "${TOKEN}"],
  ["$$env:TOKEN", "$env:TOKEN"],
  ["{{env:TOKEN}", "{env:TOKEN}"],
  ["$${env:TOKEN}", "${env:TOKEN}"],
  ["$${A:-${TOKEN}}", "${A:-s3cret}"],
  ["$$${TOKEN}", "$${TOKEN}"],
  ["${NOPE:-$${TOKEN}}!", "${TOKEN}!"],
  ["${TOKEN:-$${NOPE}}!", "s3cret!"],
  ["$$", "$$"],
  ["${:-$}${TOKEN}", "$s3cret"],
  ["${:-}", ""],
])("%s -> %s", (text, expected) => {
  expect(interpolate(text, ENV)).toEqual({ text: expected, missing: [] });
});

test("names the missing variables, also those with a name that every object has", () => {
  expect(interpolate("${A} $env:B {env:constructor}", ENV).missing).toEqual(["A", "B", "constructor"]);
});

test("names the variable that is missing in a used default", () => {
  expect(interpolate("${A:-${B}} ${TOKEN:-${C}}", ENV).missing).toEqual(["B"]);
});

test("20,000 texts of dollars and braces: escaped, each is given back as it was", () => {
  const random = createRandom(7);
  const changed: string[] = [];
  const parts = ["$", "{", "}", "env:", "A", ":-", "TOKEN", "${", "$env:", "{env:", "$$"];
  for (let i = 0; i < 20_000; i++) {
    const text = Array.from({ length: 8 }, () => parts[Math.floor(random() * parts.length)]).join("");
    const given = interpolate(escapeVariables(text), ENV);
    if (given.text !== text || given.missing.length > 0) changed.push(text);
  }
  expect(changed).toEqual([]);
});

test("defaults nested however deep, and any number of variables -> linear, and nothing is lost", () => {
  const nested = "${A:-${B}".repeat(15_000);
  expect(interpolate(nested, ENV).missing).toHaveLength(15_000);
  expect(interpolate(`${nested}${"}".repeat(15_000)}`, { ...ENV, A: "a" })).toEqual({
    text: "a",
    missing: [],
  });
  expect(interpolate(`\${A:-${"${B}".repeat(60_000)}`, ENV).missing).toHaveLength(60_000);
  expect(variablesIn(nested)).toEqual({ names: ["B"], hasText: true, hasDefault: false });
});

test.each<[string, string[], boolean, boolean]>([
  ["plain", [], true, false],
  ["", [], false, false],
  ["${A}", ["A"], false, false],
  ["x${A}", ["A"], true, false],
  ["${A:-x}", ["A"], false, true],
  ["${A:-}", ["A"], false, false],
  ["${A:-${B:-$env:C}}{env:D}", ["C", "B", "A", "D"], false, false],
  ["$${A} $$env:B {{env:C} ${D", [], true, false],
  ["${:-$}${A}", ["A"], true, false],
])("%s takes %o; other text: %s, a default: %s", (text, names, hasText, hasDefault) => {
  expect(variablesIn(text)).toEqual({ names, hasText, hasDefault });
});

test("on Windows the case of a name does not matter", () => {
  expect(interpolate("${token}", ENV, "win32").text).toBe("s3cret");
  expect(interpolate("${token}", ENV, "linux").missing).toEqual(["token"]);
});

interface Run {
  spawned: number[];
  exited: number[];
  target: Promise<ResolvedTarget>;
}

function resolve(raw: object, over: { signal?: AbortSignal; cwd?: string; home?: string } = {}): Run {
  const spawned: number[] = [];
  const exited: number[] = [];
  const target = resolveTarget(definition("docs", raw), {
    env: ENV,
    home: over.home ?? "/home/me",
    cwd: over.cwd ?? "/tmp",
    signal: over.signal ?? new AbortController().signal,
    onSpawn: (pid) => spawned.push(pid),
    onExit: (pid) => exited.push(pid),
  });
  return { spawned, exited, target };
}

const failureOf = (target: Promise<unknown>): Promise<ThreadsError> =>
  target.then(
    () => {
      throw new Error("resolved");
    },
    (error) => error,
  );

describe("resolveTarget", () => {
  test("fills in every part of a local server", async () => {
    const { target, spawned } = resolve({
      command: "~/bin/${TOKEN}",
      args: ["~/x", "a~/x", "${HOST}", "!echo arg", "!!", "~~/x", "!!~/x"],
      env: { A: "!echo '  out  '", B: "!!literal", C: "${TOKEN}", D: "~/sub", E: "~~/stays" },
      cwd: "!echo '~/work'",
    });
    expect(await target).toEqual({
      kind: "stdio",
      command: "/home/me/bin/s3cret",
      args: ["/home/me/x", "a~/x", "h.example.com", "arg", "!", "~/x", "!~/x"],
      env: { A: "out", B: "!literal", C: "s3cret", D: "/home/me/sub", E: "~/stays" },
      // The output of a command is not filled in again.
      cwd: "/tmp/~/work",
    });
    expect(spawned).toHaveLength(3);
  });

  test("the first character of a program's name stays as it is", async () => {
    expect(await resolve({ command: "!x" }).target).toMatchObject({ command: "!x" });
  });

  test("envFile: read at connect from the session's folder, env wins, values are literal", async () => {
    const cwd = await temporaryFolder();
    await put(
      join(cwd, ".env"),
      "\uFEFF# ours\nA_KEY=1\nexport B_KEY='two words'\nC_KEY=${TOKEN}\nD_KEY=from file\n",
    );
    const { target } = resolve({ command: "x", envFile: "./.env", env: { D_KEY: "from env" } }, { cwd });
    const env = { A_KEY: "1", B_KEY: "two words", C_KEY: "${TOKEN}", D_KEY: "from env" };
    expect(await target).toEqual({ kind: "stdio", command: "x", args: [], env, cwd });
  });

  test.each([
    [undefined, "/tmp"],
    ["sub", "/tmp/sub"],
    ["/abs", "/abs"],
  ])("cwd %s starts from the session's folder: %s", async (cwd, expected) => {
    expect(await resolve({ command: "x", ...(cwd && { cwd }) }).target).toMatchObject({ cwd: expected });
  });

  test.each([
    [{ bearerToken: "${TOKEN}" }, { Authorization: "Bearer s3cret" }],
    [{ bearerTokenEnv: "TOKEN" }, { Authorization: "Bearer s3cret" }],
    [{ auth: "bearer", bearerToken: "!echo t" }, { Authorization: "Bearer t" }],
    [{ auth: "none", bearerToken: "t" }, {}],
    [{ auth: false, bearerToken: "t" }, {}],
    [{ auth: "oauth", bearerTokenEnv: "NOPE" }, {}],
    [{ headers: { authorization: "Basic x" }, bearerToken: "t" }, { authorization: "Basic x" }],
    [{ headers: { "X-A": "${NOPE:-}", "X-B": "b" } }, { "X-B": "b" }],
  ])("%o -> headers %o", async (entry, headers) => {
    const target = await resolve({ url: "https://${HOST}/mcp", ...entry }).target;
    expect(target).toEqual({ kind: "http", url: "https://h.example.com/mcp", headers, type: "http" });
  });

  test.each([
    [{ command: "x", env: { A: "${NOPE}" } }, "docs: env.A needs NOPE, which is not set in the environment."],
    [{ command: "${NOPE}" }, "docs: command needs NOPE, which is not set in the environment."],
    [
      { command: "x", args: ["a", "${NOPE}${NO}"] },
      "docs: args.1 needs NOPE and NO, which is not set in the environment.",
    ],
    [
      { url: "https://x.y", bearerTokenEnv: "NOPE" },
      "docs: bearerTokenEnv needs NOPE, which is not set in the environment.",
    ],
    [{ url: "${TOKEN}" }, "docs: url is no http or https URL once its variables are filled in."],
    [{ url: "https://u:${TOKEN}@x.y" }, "docs: url holds a user name or password."],
    [
      { url: "https://x.y", headers: { A: "!printf 's3cret\\nmore'" } },
      "docs: headers.A holds characters that a header cannot hold.",
    ],
    [
      { url: "https://x.y", headers: { "a b": "${TOKEN}" } },
      "docs: headers holds a name that HTTP does not allow.",
    ],
    [
      { url: "https://x.y", headers: { A: "!echo s3cret; exit 3" } },
      "docs: headers.A: its command ended with code 3.",
    ],
    [
      { command: "x", env: { A: "!head -c 2000000 /dev/zero" } },
      "docs: env.A: its command printed more than 1 MiB.",
    ],
    [{ command: "x", env: { A: "!" } }, 'docs: env.A has no command behind its "!".'],
    [{ command: "x", args: ["a", "! "] }, 'docs: args.1 has no command behind its "!".'],
    [{ url: "https://x.y", bearerToken: "!" }, 'docs: bearerToken has no command behind its "!".'],
    [{ url: "https://x.y", bearerToken: "!true" }, "docs: bearerToken: its command printed nothing."],
    [{ url: "https://x.y", headers: { A: "!echo" } }, "docs: headers.A: its command printed nothing."],
    [{ command: "x", env: { A: "!echo s3cret\0" } }, "docs: env.A holds a NUL character."],
    [{ command: "x", env: { A: "!printf 's3cret\\0'" } }, "docs: env.A holds a NUL character."],
    [{ command: "x", args: ["s3cret\0"] }, "docs: args.0 holds a NUL character."],
    [{ command: "x", env: { "s3cret\0": "1" } }, "docs: env holds a name with a NUL character."],
    [
      { command: "x", env: { A: `!echo s3cret ${"x".repeat(3_000_000)}` } },
      "docs: env.A: its command could not be started.",
    ],
    [
      { command: "x", envFile: "${TOKEN}/.env" },
      "docs: envFile ${TOKEN}/.env cannot be used: there is no such file.",
    ],
    [{ command: "x", envFile: "/" }, "docs: envFile / cannot be used: it is a folder."],
    [{ command: "x", cwd: "!exit 4" }, "docs: cwd: its command ended with code 4."],
  ])("%o -> an error without any value", async (entry, message) => {
    const error = await failureOf(resolve(entry).target);
    expect(error).toBeInstanceOf(ThreadsError);
    expect(error).toMatchObject({ code: "bad_config", message });
    expect(JSON.stringify([error.message, error.remedy, error.data])).not.toContain("s3cret");
    expect(error.remedy).toBeTruthy();
  });

  test("one failure ends the other commands, and every end is reported", async () => {
    const { target, spawned, exited } = resolve({
      command: "x",
      env: { SLOW: "!sleep 60", FAILS: "!exit 1" },
    });
    expect(await failureOf(target)).toMatchObject({
      message: "docs: env.FAILS: its command ended with code 1.",
    });
    expect(spawned).toHaveLength(2);
    expect(exited.toSorted()).toEqual(spawned.toSorted());
  });

  test("an abort ends the command's whole group", async () => {
    const folder = await temporaryFolder();
    const stop = new AbortController();
    const { target, exited } = resolve(
      { command: "x", env: { A: "!(sleep 1; touch late) & touch started; sleep 60" } },
      { signal: stop.signal, home: folder },
    );
    while (!existsSync(join(folder, "started"))) await sleep(5);
    stop.abort();
    expect(await failureOf(target)).toMatchObject({ code: "cancelled" });
    expect(exited).toHaveLength(1);
    await sleep(1_200);
    expect(existsSync(join(folder, "late"))).toBe(false);
  });
});

describe("runCommand", () => {
  const run = (command: string, timeoutMs: number): Promise<string> =>
    runCommand({
      command,
      label: "docs: env.A",
      cwd: "/tmp",
      home: "/tmp",
      definedByProject: false,
      env: ENV,
      signal: new AbortController().signal,
      onSpawn: () => undefined,
      onExit: () => undefined,
      timeoutMs,
    });

  test("a command hangs, or leaves a process that holds its output -> it ends in time", async () => {
    for (const command of ["sleep 60", "sleep 60 & echo x", "setsid sleep 2 & sleep 60"])
      expect(await failureOf(run(command, 200))).toMatchObject({
        message: "docs: env.A: its command took more than 0.2 s.",
      });
  });
});
