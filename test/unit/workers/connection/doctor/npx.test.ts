/** Owns: what the doctor says about servers that npx starts: the Node.js that runs them, and the packages in npx's cache. */
import { mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { thisMachine } from "../../../../../workers/connection/doctor/machine.ts";
import { checkNpx, judgeNode, judgeOwnNode } from "../../../../../workers/connection/doctor/programs.ts";
import { parseSpec } from "../../../../../workers/connection/npx/command.ts";
import { cacheFolderName } from "../../../../../workers/connection/npx/tree.ts";
import { temporaryFolder } from "../config/support.ts";
import { examined, makeInput, makeMachine } from "./support.ts";

const never = new AbortController().signal;

test.each([
  ["v20.1.0", undefined],
  ["v18.0.0", undefined],
  ["v16.20.2", "error: Node.js v16.20.2 is too old for most MCP servers, which need 18 or newer."],
  ["hello", "warning: /n does not tell its version, so it may not run at all."],
  [undefined, "warning: /n does not tell its version, so it may not run at all."],
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

  test("absent without a network -> a warning; with one, or behind a proxy -> well", async () => {
    const cache = await temporaryFolder();
    expect((await check(cache, offline))[0]?.title).toBe(
      "demo@1.0.0 is not in npx's cache, and npm's registry cannot be found.",
    );
    expect((await check(cache))[0]?.severity).toBe("ok");
    const env = { npm_config_cache: cache, HTTPS_PROXY: "http://p.example" };
    expect((await check(cache, { ...offline, env }))[0]?.severity).toBe("ok");
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
