import { existsSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { ThreadsError } from "../../../../src/protocol/errors.ts";
import { interpolate } from "../../../../workers/connection/config/interpolate.ts";
import { type ResolvedTarget, resolveTarget } from "../../../../workers/connection/config/resolve.ts";
import { runCommand } from "../../../../workers/connection/config/run-command.ts";
import { definition, temporaryFolder } from "./support.ts";

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
])("%s -> %s", (text, expected) => {
  expect(interpolate(text, ENV)).toEqual({ text: expected, missing: [] });
});

test("names what is missing, also what every object has", () => {
  expect(interpolate("${A} $env:B {env:constructor}", ENV).missing).toEqual(["A", "B", "constructor"]);
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

function resolve(raw: object, over: { signal?: AbortSignal; cwd?: string } = {}): Run {
  const spawned: number[] = [];
  const exited: number[] = [];
  const target = resolveTarget(definition("docs", raw), {
    env: ENV,
    home: "/home/me",
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
      args: ["~/x", "a~/x", "${HOST}", "!not-a-command", "!!"],
      env: { A: "!echo '  out  '", B: "!!literal", C: "${TOKEN}", D: "~/stays" },
      cwd: "~/work",
    });
    expect(await target).toEqual({
      kind: "stdio",
      command: "/home/me/bin/s3cret",
      args: ["/home/me/x", "a~/x", "h.example.com", "!not-a-command", "!!"],
      env: { A: "out", B: "!literal", C: "s3cret", D: "~/stays" },
      cwd: "/home/me/work",
    });
    expect(spawned).toHaveLength(1);
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
    expect(target).toEqual({ kind: "http", url: "https://h.example.com/mcp", headers, sseOnly: false });
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
  ])("%o -> an error without any value", async (entry, message) => {
    const error = await failureOf(resolve(entry).target);
    expect(error).toBeInstanceOf(ThreadsError);
    expect(error).toMatchObject({ code: "bad_config", message });
    expect(JSON.stringify([error.message, error.remedy, error.data])).not.toContain("s3cret");
    expect(error.remedy).toBeTruthy();
  });

  test("one failure ends the other commands, and all are reported", async () => {
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
      { signal: stop.signal, cwd: folder },
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
      env: ENV,
      signal: new AbortController().signal,
      onSpawn: () => undefined,
      onExit: () => undefined,
      timeoutMs,
    });

  test("a command that hangs, or leaves something that holds its output, ends in time", async () => {
    for (const command of ["sleep 60", "sleep 60 & echo x", "setsid sleep 2 & sleep 60"])
      expect(await failureOf(run(command, 200))).toMatchObject({
        message: "docs: env.A: its command took more than 0.2 s.",
      });
  });
});
