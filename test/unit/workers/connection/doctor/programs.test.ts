/** Owns: what the doctor says about a command that cannot be started, and that it searches as a start does. */

import { mkdir, symlink, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { ServerState } from "../../../../../src/shared/protocol/session.ts";
import { missingVariables } from "../../../../../workers/connection/config/values/missing.ts";
import { thisMachine } from "../../../../../workers/connection/doctor/machine.ts";
import {
  checkInherited,
  checkNpx,
  checkPrograms,
  checkVariables,
  judgeNode,
  judgeOwnNode,
} from "../../../../../workers/connection/doctor/programs.ts";
import { parseSpec } from "../../../../../workers/connection/npx/command.ts";
import { cacheFolderName } from "../../../../../workers/connection/npx/tree.ts";
import { definition, temporaryFolder } from "../config/support.ts";
import { examined, makeInput, makeMachine } from "./support.ts";

describe("one finding at most for a command", () => {
  test.each<[string, string, string | undefined, string | undefined, RegExp?]>([
    ["it is found", "here", "/usr/bin/here", undefined],
    ["no folder", "gone", "/usr/bin/x", "folder: The working directory /gone does not exist.", /^Make it/],
    ["npx", "npx", undefined, 'command: The command "npx" is not on PATH.', /^Install Node\.js/],
    ["uvx", "uvx", undefined, 'command: The command "uvx" is not on PATH.', /^Install uv/],
    [
      "docker.exe",
      "docker.exe",
      undefined,
      'command: The command "docker.exe" is not on PATH.',
      /^Install Docker/,
    ],
    [
      "another name",
      "constructor",
      undefined,
      'command: The command "constructor" is not on PATH.',
      /^Install it/,
    ],
    ["a file without rights", "./s", undefined, 'command: The command "./s" is not executable.', /^chmod/],
    ["no file", "./none", undefined, 'command: The command "./none" leads to no file.', /^Correct/],
    ["a folder", "/tmp", undefined, 'command: The command "/tmp" leads to a folder.', /^Correct/],
  ])("%s", async (_title, command, program, expected, remedy) => {
    const machine = makeMachine({
      findProgram: async () => program,
      kindOf: async (path) =>
        path === "/work/s" ? "file" : /^\/(work|tmp)$/.test(path) ? "folder" : "missing",
    });
    const server = examined("s", { command, cwd: command === "gone" ? "/gone" : "/work" });
    const [found] = await checkPrograms(makeInput([server], { machine }));
    if (expected === undefined) expect(found?.severity).toBe("ok");
    else expect(`${found?.id}: ${found?.title}`).toBe(expected);
    if (remedy) expect(found?.remedy).toMatch(remedy);
  });

  test("a long PATH -> twelve folders and the number of the others", async () => {
    const PATH = Array.from({ length: 30 }, (_, i) => `/p${i}`).join(":");
    const machine = makeMachine({ kindOf: async (path) => (path === "/work" ? "folder" : "missing") });
    const server = examined("s", { command: "npx", cwd: "/work", env: { PATH } });
    const [found] = await checkPrograms(makeInput([server], { machine }));
    expect(found?.detail).toMatch(/^PATH has \/p0, .*\/p11 and 18 more\.$/);
  });
});

describe("checkPrograms", () => {
  test("the search gets the server's own PATH and folder", async () => {
    const asked: unknown[] = [];
    const machine = makeMachine({
      kindOf: async (path) => (path === "/home/me/app" ? "folder" : "missing"),
      findProgram: async (command, { env, cwd }) => {
        asked.push([command, env.PATH, cwd]);
        return "/opt/run";
      },
    });
    const server = examined("s", { command: "run", cwd: "~/app", env: { PATH: "/opt:/usr/bin" } });
    const found = await checkPrograms(makeInput([server], { machine }));
    expect(asked).toEqual([["run", "/opt:/usr/bin", "/home/me/app"]]);
    expect(found).toEqual([{ id: "command", severity: "ok", title: "The commands of 1 server are found." }]);
  });

  test("a variable is missing, the folder comes from a command, the server is remote or off -> not looked at", async () => {
    const servers = [
      examined("a", { command: `\${A}` }),
      examined("b", { command: "c", cwd: "!pwd" }),
      examined("c", { url: "https://h/" }),
      examined("d", { command: "c", enabled: false }),
    ];
    const found = await checkPrograms(makeInput(servers));
    expect(found.filter(({ severity }) => severity !== "ok")).toEqual([]);
  });
});

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

test("the key itself stands in the place of a variable's name -> the report does not hold it", () => {
  const key = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";
  const entry = { url: "https://h/", headers: { A: `Bearer \${${key}}` } };
  const found = checkVariables(makeInput([examined("s", entry)]));
  expect(found).toMatchObject([
    { title: "A variable with the name of a key is not set, and headers.A needs it." },
  ]);
  expect(JSON.stringify(found)).not.toContain(key);
});

test("a server that is switched off -> nothing is said about it", () => {
  const off = examined("s", { command: "c", args: [`\${A}`], enabled: false });
  expect(checkVariables(makeInput([off]))).toEqual([]);
});

test("all are set -> one line that says so", () => {
  const [found] = checkVariables(makeInput([examined("s", { command: "c" })]));
  expect(found).toEqual({ id: "variable", severity: "ok", title: "The variables of 1 server are set." });
});

test("keys of model providers that servers inherit -> their names in one note, never a value", () => {
  const env = { OPENAI_API_KEY: "sk-secret", HF_TOKEN: "hf-secret", X_API_KEY: "x" };
  const over = { machine: makeMachine({ env }) };
  const local = (name: string, inheritEnv?: boolean | string[]) =>
    examined(name, { command: "c", ...(inheritEnv === undefined ? {} : { inheritEnv }) });
  const servers = [local("a"), local("b", ["HF_*"]), local("c", false), examined("d", { url: "https://d" })];
  const found = checkInherited(makeInput(servers, over));
  expect(found).toEqual([
    {
      id: "environment",
      severity: "note",
      title: "2 servers get keys of model providers from your environment: a, b.",
      detail: "OPENAI_API_KEY, HF_TOKEN",
      remedy: expect.stringContaining('"inheritEnv": false'),
    },
  ]);
  expect(JSON.stringify(found)).not.toContain("secret");
  expect(checkInherited(makeInput([local("c", false)], over))).toEqual([]);
});

const never = new AbortController().signal;

test.each([
  ["v20.1.0", undefined],
  ["v18.0.0", undefined],
  ["v16.20.2", "error: Node.js v16.20.2 is too old for most MCP servers, which need 18 or newer."],
  ["hello", "warning: /n does not say its version, so it may not run at all."],
  [undefined, "warning: /n does not say its version, so it may not run at all."],
])("judgeNode: %s", (version, expected) => {
  const found = judgeNode("/n", version, ["a", "b"]);
  expect(found && `${found.severity}: ${found.title}`).toBe(expected);
});

test.each([
  [undefined, false],
  ["22.19.0", false],
  ["24.0.0", false],
  ["22.18.9", true],
  ["20.19.0", true],
])("judgeOwnNode: %s -> too old: %s", (own, expected) => {
  expect(judgeOwnNode(own) !== undefined).toBe(expected);
});

/** Makes npx's folder of the package `demo`: the manifest, and what `parts` adds. */
async function cacheOf(parts: {
  complete: boolean;
  binary: boolean;
}): Promise<{ cache: string; folder: string }> {
  const cache = await temporaryFolder();
  const spec = parseSpec("demo@1.0.0");
  if (!spec) throw new Error("no spec");
  const folder = join(cache, "_npx", cacheFolderName([spec]));
  const modules = join(folder, "node_modules");
  await mkdir(join(modules, "demo"), { recursive: true });
  await mkdir(join(modules, ".bin"));
  const manifest = { name: "demo", version: "1.0.0", bin: { demo: "cli.js" } };
  await writeFile(join(modules, "demo", "package.json"), JSON.stringify(manifest));
  if (parts.complete) await writeFile(join(modules, ".package-lock.json"), "{}");
  if (parts.binary) {
    await writeFile(join(modules, "demo", "cli.js"), "");
    await symlink("../demo/cli.js", join(modules, ".bin", "demo"));
  }
  return { cache, folder };
}

describe("checkNpx", () => {
  const server = (more: Record<string, unknown> = {}) =>
    examined("s", { command: "npx", args: ["-y", "demo@1.0.0"], ...more });
  const check = (cache: string, over: Parameters<typeof makeMachine>[0] = {}, one = server()) => {
    const machine = makeMachine({
      env: { npm_config_cache: cache },
      findProgram: async () => "/usr/bin/node",
      versionOf: async () => "v22.0.0",
      ...over,
    });
    return checkNpx(makeInput([one], { machine }), never);
  };
  const offline = {
    lookUp: async () => {
      throw Object.assign(new Error("no"), { code: "EAI_AGAIN" });
    },
  };

  test.each([
    ["installed", { complete: true, binary: true }, undefined],
    [
      "interrupted",
      { complete: false, binary: true },
      "npx's copy of demo@1.0.0 is broken: its install was interrupted.",
    ],
    [
      "files are gone",
      { complete: true, binary: false },
      /^npx's copy of demo@1\.0\.0 is broken: .* is missing\.$/,
    ],
  ])("%s", async (_title, parts, expected) => {
    const { cache, folder } = await cacheOf(parts);
    const [found] = await check(cache, offline);
    if (expected === undefined) expect(found?.severity).toBe("ok");
    else {
      expect(found).toMatchObject({ id: "npx", severity: "warning", server: "s", file: folder });
      expect(found?.title).toMatch(expected);
    }
  });

  test("npm is installing it: its lock is fresh, or the server is connecting -> it is called neither broken nor in order", async () => {
    const { cache, folder } = await cacheOf({ complete: false, binary: false });
    const server = { command: "npx", args: ["-y", "demo@1.0.0"] };
    const severity = async (state: ServerState) =>
      (await check(cache, offline, examined("s", server, { state })))[0]?.severity;
    expect([await severity("connecting"), await severity("idle")]).toEqual([undefined, "warning"]);
    const lock = join(folder, "concurrency.lock");
    await mkdir(lock);
    expect(await severity("idle")).toBeUndefined();
    // Left by an npm that was killed.
    await utimes(lock, 0, 0);
    expect(await severity("idle")).toBe("warning");
  });

  test("a server with a PATH or a cache of npm of its own -> its own Node.js and packages are judged", async () => {
    const { cache } = await cacheOf({ complete: true, binary: true });
    const npx = { command: "npx", args: ["-y", "demo@1.0.0"] };
    const machine = makeMachine({
      ...offline,
      env: { PATH: "/old", npm_config_cache: await temporaryFolder() },
      findProgram: async (_, { env }) => `${env.PATH}/node`,
      versionOf: async (program) => (program === "/new/node" ? "v22.0.0" : "v16.0.0"),
    });
    const servers = [
      examined("own", { ...npx, env: { PATH: "/new", npm_config_cache: cache } }),
      examined("a", npx),
      examined("b", npx),
    ];
    expect(await checkNpx(makeInput(servers, { machine }), never)).toMatchObject([
      { id: "node", severity: "error", detail: "/old/node comes first on PATH and runs a, b." },
      { id: "npx", server: "a" },
      { id: "npx", server: "b" },
    ]);
    expect(await checkNpx(makeInput(servers.slice(0, 1), { machine }), never)).toMatchObject([
      { id: "npx", severity: "ok" },
    ]);
  });

  test("absent without a network -> a warning; with one, or behind a proxy -> well", async () => {
    const cache = await temporaryFolder();
    expect((await check(cache, offline))[0]?.title).toBe(
      "demo@1.0.0 is not in npx's cache, and npm's registry cannot be found.",
    );
    expect((await check(cache))[0]?.severity).toBe("ok");
    const env = { npm_config_cache: cache, HTTPS_PROXY: "http://p.example" };
    expect((await check(cache, { ...offline, env }))[0]?.severity).toBe("ok");
  });

  test("a server with a registry of its own -> that one is looked up", async () => {
    const asked: string[] = [];
    const lookUp = async (host: string) => {
      asked.push(host);
      return host === "npm.company.example"
        ? [{ address: "192.0.2.1", family: 4 }]
        : Promise.reject(new Error(host));
    };
    const npx = { command: "npx", args: ["-y", "demo@1.0.0"] };
    const own = { npm_config_registry: "https://npm.company.example/" };
    const servers = [examined("own", { ...npx, env: own }), examined("a", npx), examined("b", npx)];
    const machine = makeMachine({ ...offline, lookUp, env: { npm_config_cache: await temporaryFolder() } });
    const found = await checkNpx(makeInput(servers, { machine }), never);
    expect(found).toMatchObject([
      { id: "npx", server: "a" },
      { id: "npx", server: "b" },
    ]);
    expect(asked.toSorted()).toEqual(["npm.company.example", "registry.npmjs.org"]);
  });

  test("a server with a proxy of its own beside one without -> the other one's registry is looked up all the same", async () => {
    const npx = { command: "npx", args: ["-y", "demo@1.0.0"] };
    const behind = examined("behind", { ...npx, env: { HTTPS_PROXY: "http://p.example" } });
    const machine = makeMachine({ ...offline, env: { npm_config_cache: await temporaryFolder() } });
    for (const servers of [
      [behind, examined("a", npx)],
      [examined("a", npx), behind],
    ])
      expect(await checkNpx(makeInput(servers, { machine }), never)).toMatchObject([
        { id: "npx", server: "a" },
      ]);
  });

  test("another command, a project's server, a server that is off -> no program is run", async () => {
    let runs = 0;
    const versionOf = async () => `v${++runs}.0.0`;
    const cache = await temporaryFolder();
    for (const entry of [{ command: "node", args: ["x"] }, { enabled: false }]) {
      await check(cache, { versionOf }, server(entry));
    }
    const theirs = server();
    const project = { ...theirs, definition: { ...theirs.definition, project: true } };
    await check(cache, { versionOf }, project);
    expect(runs).toBe(0);
  });

  test("an argument from a variable -> the package is not shown", async () => {
    const { cache } = await cacheOf({ complete: false, binary: true });
    const env = { npm_config_cache: cache, WHAT: "demo@1.0.0" };
    const found = await check(cache, { env }, server({ args: ["-y", `\${WHAT}`] }));
    expect(JSON.stringify(found)).not.toContain("demo");
  });
});

test("versionOf on this machine -> the version; a program that prints without end -> ended", async () => {
  const { versionOf } = thisMachine({ env: {}, home: "/", platform: "linux", cwd: "/" });
  expect(await versionOf(process.execPath, {}, never)).toBe(process.version);
  const stop = new AbortController();
  const folder = await temporaryFolder();
  const script = join(folder, "floods");
  await writeFile(
    script,
    "#!/bin/sh\nwhile true; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done\n",
    { mode: 0o755 },
  );
  const asked = versionOf(script, { PATH: "/bin:/usr/bin" }, stop.signal);
  setImmediate(() => stop.abort());
  expect((await asked)?.length ?? 0).toBeLessThanOrEqual(40);
  expect(await versionOf("/pmt/none", {}, never)).toBeUndefined();
});
