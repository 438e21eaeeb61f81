/**
 * Owns: a test of the real Pi in a clone without trust. The clone holds a trap for each way in which a folder could
 * decide what the user's own servers run. No file of the clone runs, and the servers work.
 */
import { join } from "node:path";
import { expect, test } from "vitest";
import { filesystemSpec, fillHostileClone, fillNpmCache, whatRan } from "../support/hostile-clone.ts";
import { open } from "./rpc-support.ts";
import { call, entryOf, fixtureServer, home, readLog, searchFor } from "./support.ts";

test("the user's own servers in a hostile clone -> no file of the clone runs, and the servers work", async () => {
  const at = await home({});
  const ran = join(at.dir, "ran");
  const npmCache = join(at.dir, "npm-cache");
  await fillHostileClone(at.cwd, ran);
  await fillNpmCache(npmCache);
  const { args } = fixtureServer("noisy.mjs");
  const own = `:.:node_modules/.bin:${at.env().PATH}`;
  await at.writeMcp({
    mcpServers: {
      // README's entry, with a version, so that npm needs no registry.
      files: { command: "npx", args: ["-y", await filesystemSpec(), "."] },
      named: { command: "node", args, env: { PATH: own } },
      told: {
        command: "npx",
        args: ["--no-audit", "-c", `node "${(args as string[])[0]}"`],
        env: { PATH: own, TOKEN: "!sh -c 'git --version'" },
      },
    },
  });
  const env = { npm_config_cache: npmCache };
  const pi = await open({ at, env, extensions: [await entryOf("packed package")] });
  await pi.statusLine("MCP: 3 servers ready · 16 tools");
  await pi.prompt(searchFor("select:files__list_directory,named__work,told__work"));
  const ends = await pi.prompt(
    call("files__list_directory", { path: "." }),
    call("named__work", {}),
    call("told__work", {}),
  );
  expect(ends.map(({ text }) => text)).toEqual([
    expect.stringContaining("clone-tool"),
    "through the noise",
    "through the noise",
  ]);
  expect(await whatRan(ran)).toBe("");
  // npm starts only the server whose command only npm can resolve.
  const log = await readLog(at);
  expect(log).not.toMatch(/files is started through npm itself/);
  expect(log).toMatch(/told is started through npm itself/);
});
