import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, readFile, symlink } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { ThreadsError } from "../../../../../../src/shared/protocol/errors.ts";
import {
  escapeVariables,
  interpolate,
  variablesIn,
} from "../../../../../../workers/connection/config/entry/interpolate.ts";
import type { OAuthPlan } from "../../../../../../workers/connection/config/entry/oauth-keys.ts";
import { ScriptReader } from "../../../../../../workers/connection/config/env-files/scripts.ts";
import { runCommand } from "../../../../../../workers/connection/config/values/run-command.ts";
import {
  type ResolvedTarget,
  resolveOAuth,
  resolveTarget,
  rootsOf,
} from "../../../../../../workers/connection/config/values/values.ts";
import { oauthSecrets } from "../../../../../../workers/connection/secrets/find.ts";
import { createRedactor } from "../../../../../../workers/connection/secrets/redact.ts";
import { inTime, silenceOf } from "../../../../../../workers/shared/files/file-system.ts";
import { createRandom, definition, PROJECT_FILE, put, temporaryFolder, USER } from "../support.ts";

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
    [
      { url: "https://x.y", headers: { A: "Bearer ${ghp_16C7e42F292c6912E7710c838347Ae178B4a}" } },
      "docs: headers.A needs a variable with the name of a key, which is not set in the environment.",
    ],
    [{ url: "${TOKEN}" }, "docs: url is not an http or https URL once its variables are filled in."],
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

  test("no file descriptor is left -> an error as any, and the process goes on", async () => {
    const module = pathToFileURL(
      join(import.meta.dirname, "../../../../../../workers/connection/config/values/run-command.ts"),
    ).href;
    const script = `
      const { runCommand } = await import(${JSON.stringify(module)});
      const { openSync, writeSync } = await import("node:fs");
      const nothing = () => undefined;
      const options = { command: "echo x", label: "docs: env.A", cwd: "/tmp", home: "/tmp", definedByProject: true,
        env: process.env, signal: new AbortController().signal, onSpawn: nothing, onExit: nothing };
      try { for (;;) openSync("/dev/null"); } catch {}
      const said = await runCommand(options).catch(({ code, message }) => code + " " + message);
      setTimeout(() => writeSync(1, said), 50);`;
    const { stdout } = await promisify(execFile)("/bin/sh", [
      "-c",
      'ulimit -n 64; exec "$0" --input-type=module -e "$1"',
      process.execPath,
      script,
    ]);
    expect(stdout).toBe("bad_config docs: env.A: its command could not be started.");
  });
});

const told = (roots: unknown, over: { cwd?: string; source?: typeof USER } = {}) =>
  rootsOf(
    definition("notes", { command: "x", ...(roots === undefined ? {} : { roots }) }, over.source ?? USER),
    {
      cwd: over.cwd ?? "/work/app",
      home: "/home/me",
      env: { NOTES: "/data/my notes" },
      signal: new AbortController().signal,
      onSpawn: () => undefined,
      onExit: () => undefined,
    },
  );

test.each([[undefined], [false], [[]]])(
  "roots: %j -> the server is told that it cannot ask",
  async (roots) => {
    expect(await told(roots)).toBeUndefined();
  },
);

test("a project's entry of a folder above -> its commands and relative paths mean that folder, to which the yes is bound", async () => {
  const [above, session] = [await temporaryFolder(), await temporaryFolder()];
  await Promise.all([put(join(above, "token.sh"), "echo good"), put(join(session, "token.sh"), "echo evil")]);
  const raw = { url: "https://api.example.com/mcp", headers: { "X-Token": "!sh ./token.sh" } };
  const own = { ...definition("docs", raw, PROJECT_FILE), base: { folder: above } };
  const options = {
    ...{ cwd: session, home: "/home/me", env: { PATH: process.env.PATH } },
    ...{ signal: new AbortController().signal, onSpawn: () => undefined, onExit: () => undefined },
  };
  expect(await resolveTarget(own, options)).toMatchObject({ headers: { "X-Token": "good" } });
  const { base: _base, ...here } = own;
  expect(await resolveTarget(here, options)).toMatchObject({ headers: { "X-Token": "evil" } });
});

test("roots: true -> the session's folder, also if it is the root", async () => {
  expect(await told(true)).toEqual([{ uri: "file:///work/app", name: "app" }]);
  expect(await told(true, { cwd: "/" })).toEqual([{ uri: "file:///", name: "/" }]);
});

test("folders -> file URIs, each once, with the home folder and variables filled in", async () => {
  expect(await told(["~/a", "${NOTES}", "/home/me/a/", "/x#1%"])).toEqual([
    { uri: "file:///home/me/a", name: "a" },
    { uri: "file:///data/my%20notes", name: "my notes" },
    { uri: "file:///x%231%25", name: "x#1%" },
  ]);
});

test("a relative folder -> an error for a server of the user, the session's for a server of the project", async () => {
  await expect(told(["~/a", "src"])).rejects.toMatchObject({
    code: "bad_config",
    message: expect.stringContaining("roots.1 is not an absolute path"),
  });
  expect(await told(["src", "../b"], { source: PROJECT_FILE })).toEqual([
    { uri: "file:///work/app/src", name: "src" },
    { uri: "file:///work/b", name: "b" },
  ]);
});

test("a folder with a variable that is not set -> an error with the key and the variable", async () => {
  await expect(told(["${MISSING}/x"])).rejects.toThrow(/roots\.0 needs .*MISSING/);
});

const PEM = (
  await readFile(join(import.meta.dirname, "../../../../../fixtures/http/localhost.pem"), "utf8")
).trim();
const BROKEN = "-----BEGIN CERTIFICATE-----\nc2VjcmV0\n-----END CERTIFICATE-----";

interface Where {
  home: string;
  cwd: string;
}

async function folders(): Promise<Where> {
  const folder = await temporaryFolder();
  const [home, cwd] = [join(folder, "home"), join(folder, "app")];
  await Promise.all([mkdir(home), mkdir(cwd)]);
  return { home, cwd };
}

/** `isAgreed`: the user has said yes to the file as it is. */
async function caOf(
  caFile: string | undefined,
  where: Where,
  over: { settings?: string; source?: typeof USER; isAgreed?: boolean } = {},
) {
  const { settings, source = USER, isAgreed = false } = over;
  const server = definition("docs", { url: "https://x.test/mcp", ...(caFile && { caFile }) }, source);
  const env = { NAME: "secret-name" };
  const scripts = isAgreed ? await new ScriptReader({ ...where, env }).find(server) : undefined;
  const agreedScripts = scripts && "hash" in scripts ? scripts.hash : undefined;
  return resolveTarget(agreedScripts === undefined ? server : { ...server, agreedScripts }, {
    ...where,
    env,
    caFile: settings,
    signal: new AbortController().signal,
    onSpawn: () => undefined,
    onExit: () => undefined,
  }).then((target) => (target.kind === "http" ? target.ca : undefined));
}

describe("caFile", () => {
  test("none -> nothing is read", async () => {
    expect(await caOf(undefined, await folders(), { settings: "" })).toBeUndefined();
  });

  test("in the home folder, with a variable, a BOM and other text -> its certificates alone", async () => {
    const where = await folders();
    await put(join(where.home, "secret-name.pem"), `\uFEFF# ours\n${PEM}\nkey: x\n${PEM}\n`);
    expect(await caOf("~/${NAME}.pem", where)).toEqual([PEM, PEM]);
  });

  test("of the server and of the settings -> both, each renewed file at the next connect", async () => {
    const where = await folders();
    const [own, all] = [join(where.home, "own.pem"), join(where.home, "all.pem")];
    await Promise.all([put(own, PEM), put(all, `${PEM}\n${PEM}`)]);
    expect(await caOf(own, where, { settings: all })).toHaveLength(3);
    await put(own, `${PEM}\n${PEM}`);
    expect(await caOf(own, where, { settings: all })).toHaveLength(4);
  });

  test("a link to a file -> followed", async () => {
    const where = await folders();
    await put(join(where.home, "a.pem"), PEM);
    await symlink("a.pem", join(where.home, "b.pem"));
    expect(await caOf("~/b.pem", where)).toEqual([PEM]);
  });

  test("a relative path -> the project's own server reads it in the project; the user's server refuses it", async () => {
    const where = await folders();
    await put(join(where.cwd, "ca.pem"), PEM);
    expect(await caOf("./ca.pem", where, { source: PROJECT_FILE, isAgreed: true })).toEqual([PEM]);
    await expect(caOf("./ca.pem", where, { source: PROJECT_FILE })).rejects.toMatchObject({
      message: "docs is not started: its caFile is not what was agreed to.",
    });
    const message = "docs: caFile is not an absolute path.";
    await expect(caOf("./ca.pem", where)).rejects.toMatchObject({ code: "bad_config", message });
    await expect(caOf(undefined, where, { settings: "ca.pem", source: PROJECT_FILE })).rejects.toMatchObject({
      message: "docs: settings.caFile is not an absolute path.",
    });
  });

  test("in a project whose file system does not answer -> an error that says so, and no connect waits for it", async () => {
    const where = await folders();
    await put(join(where.cwd, "ca.pem"), PEM);
    const { promise, resolve } = Promise.withResolvers<void>();
    const key = `${PROJECT_FILE.file} docs`;
    await inTime(key, () => promise, 1);
    await expect(caOf("./ca.pem", where, { source: PROJECT_FILE, isAgreed: true })).rejects.toMatchObject({
      code: "bad_config",
      message: "docs: its caFile cannot be read: its file system does not answer.",
      remedy: "Try again later.",
    });
    resolve();
    await silenceOf(key);
    expect(await caOf("./ca.pem", where, { source: PROJECT_FILE, isAgreed: true })).toEqual([PEM]);
  });

  test.each<[string, string | Buffer | undefined, string]>([
    ["a missing file", undefined, "there is no such file"],
    ["an empty file", "", "it holds no certificate in PEM form"],
    [
      "a private key",
      "-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n",
      "it holds no certificate in PEM form",
    ],
    ["a broken certificate", `${PEM}\n${BROKEN}\n`, "its certificate 2 is broken"],
    [
      "a file without an end",
      "-----BEGIN CERTIFICATE-----\nAAAA\n".repeat(20_000),
      "it holds no certificate in PEM form",
    ],
    ["a file of more than 1 MiB", "A".repeat(1024 * 1024 + 1), "it is larger than 1 MiB"],
  ])("%s -> an error that names key and file, without content or values", async (_name, content, reason) => {
    const where = await folders();
    if (content !== undefined) await put(join(where.home, "secret-name.pem"), content);
    const [own, settings] = await Promise.all(
      [caOf("~/${NAME}.pem", where), caOf(undefined, where, { settings: "~/${NAME}.pem" })].map((work) =>
        work.then(
          () => {
            throw new Error("resolved");
          },
          (error) => error,
        ),
      ),
    );
    expect(own).toMatchObject({
      code: "bad_config",
      message: `docs: caFile ~/\${NAME}.pem cannot be used: ${reason}.`,
    });
    expect(settings.message).toBe(`docs: settings.caFile ~/\${NAME}.pem cannot be used: ${reason}.`);
    expect(JSON.stringify([own.message, own.remedy, own.data])).not.toMatch(/secret-name|c2VjcmV0|AAAA/);
  });

  test("a folder or a device -> refused", async () => {
    const where = await folders();
    await expect(caOf("/dev/zero", where)).rejects.toMatchObject({
      message:
        "docs: caFile /dev/zero cannot be used: it is a terminal or another device, not a regular file.",
    });
    await expect(caOf("~/", where)).rejects.toMatchObject({ code: "bad_config" });
  });
});

const DEFAULTS = { grantType: "authorization_code", clientRegistration: "auto" };
const KEY_PEM = "-----BEGIN PRIVATE KEY-----\nMIGs3cret\n-----END PRIVATE KEY-----\n";
const OAUTH_ENV = {
  PATH: process.env.PATH,
  SECRET: "s3cret-value",
  EMPTY: "",
  HOST: "as.test",
  KEY: KEY_PEM,
  ODD: "s3cretï",
};

const optionsOf = (over: object = {}) => ({
  env: OAUTH_ENV,
  home: "/home/me",
  cwd: "/work/app",
  signal: new AbortController().signal,
  onSpawn: () => undefined,
  onExit: () => undefined,
  ...over,
});

const server = (keys: object, source = USER) =>
  definition("docs", { url: "https://x.test/mcp", ...keys }, source);

const planOf = (oauth: object, over: object = {}, source = USER): Promise<OAuthPlan> =>
  resolveOAuth(server({ oauth }, source), optionsOf(over));

const DOCUMENT = "https://company.example/oauth-client.json";
const OWN = "https://own.example/client.json";

describe("settings.clientMetadataUrl", () => {
  test.each<[object, string | undefined]>([
    [{}, DOCUMENT],
    [{ clientRegistration: "cimd" }, DOCUMENT],
    [{ clientMetadataUrl: OWN }, OWN],
    [{ clientId: "mine" }, undefined],
    [{ grantType: "client_credentials", clientId: "m", clientSecret: "s" }, undefined],
  ])("%j -> %s", async (oauth, wanted) => {
    const { clientMetadataUrl } = await planOf(oauth, { clientMetadataUrl: DOCUMENT });
    expect(clientMetadataUrl).toBe(wanted);
  });

  test.each(["", undefined])("%j -> none", async (clientMetadataUrl) => {
    expect(await planOf({}, { clientMetadataUrl })).not.toHaveProperty("clientMetadataUrl");
  });

  test("an address that no document can have -> told", async () => {
    const failure = await failureOf(planOf({}, { clientMetadataUrl: "https://company.example/" }));
    expect(failure.message).toContain("oauth.clientMetadataUrl is not an https URL with a path");
  });
});

describe("resolveOAuth", () => {
  test.each<[object, object]>([
    [{}, {}],
    [
      { clientId: "${SECRET}", clientSecret: "!printf abc" },
      { clientId: "s3cret-value", clientSecret: "abc" },
    ],
    [{ clientId: "!!a" }, { clientId: "!a" }],
    [{ scope: " a  ${EMPTY} b " }, { scope: "a b" }],
    [{ scope: "${EMPTY}", clientId: "${EMPTY}" }, {}],
    [
      { issuer: "https://${HOST}", authServerMetadataUrl: "https://${HOST}/m" },
      { issuer: "https://as.test", authServerMetadataUrl: "https://as.test/m" },
    ],
    [
      { redirectUri: "http://localhost:{port}/cb", callbackPort: 5 },
      { redirectUri: "http://localhost:{port}/cb", callbackPort: 5 },
    ],
    [{ resource: "api://${HOST}" }, { resource: "api://as.test" }],
    [{ resource: false }, { resource: false }],
    [
      { authorizationParams: { access_type: "${SECRET}", prompt: "${EMPTY}", hd: "!echo x" } },
      { authorizationParams: { access_type: "s3cret-value", hd: "x" } },
    ],
    [{ privateKey: "${KEY}" }, { privateKey: KEY_PEM }],
    [{ privateKeyFile: "~/${HOST}.pem" }, { privateKeyFile: "/home/me/as.test.pem" }],
    [{ assertionFile: "!echo /run/token" }, { assertionFile: "/run/token" }],
    [
      { grantType: "jwt_bearer", assertion: "!echo a.b.c" },
      { grantType: "jwt_bearer", assertion: "a.b.c" },
    ],
    [
      { grantType: "client_credentials", clientId: "a", clientSecret: "${SECRET}" },
      { grantType: "client_credentials", clientId: "a", clientSecret: "s3cret-value" },
    ],
  ])("%j -> %j", async (oauth, plan) => {
    expect(await planOf(oauth)).toEqual({ ...DEFAULTS, ...plan });
  });

  test.each<[object, string]>([
    [
      { clientSecret: "${NOPE}" },
      "docs: oauth.clientSecret needs NOPE, which is not set in the environment.",
    ],
    [{ clientSecret: "!echo s3cret; exit 3" }, "docs: oauth.clientSecret: its command ended with code 3."],
    [
      { authorizationParams: { a: "${NOPE}" } },
      "docs: oauth.authorizationParams.a needs NOPE, which is not set in the environment.",
    ],
    [
      { issuer: "${SECRET}" },
      "docs: oauth.issuer is not an https URL without a query, once its variables are filled in.",
    ],
    [
      { clientSecret: "${ODD}" },
      "docs: oauth.clientSecret holds characters that OAuth does not allow, once its variables are filled in.",
    ],
    [
      { privateKey: "${SECRET}" },
      "docs: oauth.privateKey does not hold a private key in PEM form, once its variables are filled in.",
    ],
    [
      { grantType: "client_credentials", clientId: "a", clientSecret: "${EMPTY}" },
      "docs: oauth.grantType client_credentials has nothing that proves who the client is, once its variables are filled in.",
    ],
    [
      { assertion: "${SECRET}" },
      "docs: oauth.assertion does not hold a signed assertion, once its variables are filled in.",
    ],
    [{ assertion: "!echo s3cret; exit 3" }, "docs: oauth.assertion: its command ended with code 3."],
    [
      { grantType: "jwt_bearer", assertion: "${EMPTY}" },
      "docs: oauth.grantType jwt_bearer has no assertion, once its variables are filled in.",
    ],
    // A relative path would let the folder in which Pi runs decide about the user's sign-in.
    [{ privateKeyFile: "key.pem" }, "docs: oauth.privateKeyFile is not an absolute path."],
    [{ assertionFile: "./${SECRET}" }, "docs: oauth.assertionFile is not an absolute path."],
  ])("%j -> an error without any value", async (oauth, message) => {
    const error = await failureOf(planOf(oauth));
    expect(error).toMatchObject({ code: "bad_config", message });
    expect(JSON.stringify([error.message, error.remedy, error.data])).not.toContain("s3cret");
    expect(error.remedy).toMatch(/\.$/);
  });

  test.each([{ oauth: false }, { auth: "none" }])(
    "%j -> an error that says how to allow a sign-in",
    async (keys) => {
      expect(await failureOf(resolveOAuth(server(keys), optionsOf()))).toMatchObject({
        code: "bad_config",
        message: "docs: its entry allows no sign-in with OAuth.",
      });
    },
  );

  test("commands of the plan -> not run by a connect, only by a sign-in", async () => {
    const folder = await temporaryFolder();
    const own = server({ oauth: { clientSecret: "!touch ran; echo s" } });
    await resolveTarget(own, optionsOf({ home: folder }));
    expect(existsSync(join(folder, "ran"))).toBe(false);
    await resolveOAuth(own, optionsOf({ home: folder }));
    expect(existsSync(join(folder, "ran"))).toBe(true);
  });

  test("a command of a project's file -> runs in the project; the user's own does not", async () => {
    const [home, cwd] = [await temporaryFolder(), await temporaryFolder()];
    const where = { clientId: "!pwd" };
    expect((await planOf(where, { home, cwd }, PROJECT_FILE)).clientId).toBe(cwd);
    expect((await planOf(where, { home, cwd })).clientId).toBe(home);
  });

  test("an abort -> cancelled, and no command is left running", async () => {
    const stop = new AbortController();
    const exited: number[] = [];
    const running = planOf(
      { clientSecret: "!sleep 60" },
      { signal: stop.signal, onSpawn: () => stop.abort(), onExit: (pid: number) => exited.push(pid) },
    );
    expect(await failureOf(running)).toMatchObject({ code: "cancelled" });
    expect(exited).toHaveLength(1);
  });
});

describe("oauthSecrets", () => {
  test("the secrets of a plan, and all that its variables and commands gave -> redacted", async () => {
    const written = server({
      oauth: {
        clientId: "!echo from-a-command",
        clientSecret: "plain-secret",
        privateKey: "${KEY}",
        scope: "read write",
        issuer: "https://as.test",
        authorizationParams: { login_hint: "me@example.com", api_key: "k3y!" },
      },
    });
    const resolved = await resolveOAuth(written, optionsOf());
    const redact = createRedactor(oauthSecrets(written.oauth, resolved));
    const text = redact(
      `plain-secret ${KEY_PEM} from-a-command me@example.com k3y! read write https://as.test`,
    );
    expect(text).toMatch(
      /^\[redacted\] .*\[redacted\] \[redacted\] \[redacted\] read write https:\/\/as\.test$/s,
    );
    for (const secret of ["plain-secret", "MIGs3cret", "from-a-command", "k3y!"])
      expect(text).not.toContain(secret);
  });
});
