/**
 * Owns: the packed command with a configuration that changes or that a project brings along: what is known is older than
 * the files, consent and trust, and the commands that write the files.
 */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { family } from "../support/long.ts";
import { makeHome } from "../support/make-home.ts";
import type { PiHome } from "../support/pi-home.ts";
import { fixtureServer, type Run, runCli } from "./support.ts";

/** Its tool `show` answers with its argument `text`. */
const shows = fixtureServer("shows.mjs");
const CALL = ["call", "ours", "show", "text=x"];
const text = (at: PiHome): Promise<string> => readFile(at.mcpFile, "utf8");

describe("servers of a project", () => {
  test("the configuration is newer than what is known -> a new server is asked; one of a project needs trust and consent", async () => {
    const at = await makeHome({ mcp: { mcpServers: { odd: shows } } });
    const cli = (args: readonly string[]): Promise<Run> => runCli(at, args);
    const log = (): Promise<string> => readFile(join(at.agentDir, "mcp-threads.log"), "utf8");
    expect((await cli(["tools"])).code).toBe(0);
    await at.writeMcp({ mcpServers: { odd: shows, late: shows } });
    const listings = family([["tools", "late__show\tlate\t"] as const, ["prompts", ""]]).map(
      async ([word, stdout]) =>
        expect(await cli([word, "late"])).toMatchObject({ code: 0, stdout: expect.stringContaining(stdout) }),
    );
    await Promise.all(listings);

    // Pi has recorded no trust: the file is left out, and every answer that misses its server says so.
    await at.writeFile(".pi/mcp.json", { mcpServers: { ours: shows } });
    const listing = await cli(["list", "--cached"]);
    expect(listing).toMatchObject({ code: 0, stdout: expect.not.stringContaining("ours") });
    expect(listing.stderr).toContain("Pi has recorded no trust for this project");
    for (const args of family([CALL, ["tools", "ours"]])) {
      const run = await cli(args);
      expect(run).toMatchObject({ code: 2, stdout: "" });
      expect(run.stderr).toMatch(/\.pi\/mcp\.json of this folder is left out: [\s\S]*No server named ours/);
    }
    expect(await cli([...CALL, "--trust-project"])).toMatchObject({ code: 5, stdout: "" });
    expect(await log()).not.toContain("ours connected");
    const trusted = await cli([...CALL, "--trust-project", "--yes"]);
    expect(trusted).toMatchObject({ code: 0, stdout: "x\n", stderr: expect.stringContaining("shows.mjs") });
    expect(await log()).toContain("ours connected");
  });

  test(".mcp.json in a folder without trust -> code 5, and nothing runs; --yes allows it once and for all", async () => {
    const at = await makeHome({ files: { ".mcp.json": { mcpServers: { ours: shows } } } });
    const log = (): Promise<string> => readFile(join(at.agentDir, "mcp-threads.log"), "utf8");
    for (const args of family([CALL, ["tools", "ours"]])) {
      const refused = await runCli(at, args);
      expect(refused).toMatchObject({ code: 5, stdout: "" });
      expect(refused.stderr).toContain("Run the command in a terminal");
    }
    expect(await log()).not.toContain("connected over stdio");
    const allowed = await runCli(at, [...CALL, "--yes"]);
    expect(allowed.code).toBe(0);
    expect(allowed.stderr).toContain("This project wants to run an MCP server.");
    expect(allowed.stderr).toContain("shows.mjs");
    expect(await log()).toContain("connected over stdio");
    // The yes is remembered, as Pi remembers it.
    expect(await runCli(at, CALL)).toMatchObject({ code: 0, stdout: "x\n", stderr: "" });
  });

  test("--cwd goes to another folder, whose .pi/mcp.json counts if Pi has recorded trust", async () => {
    const servers = { mcpServers: { ours: shows } };
    const at = await makeHome({ files: { "deep/.pi/mcp.json": servers }, trusted: true });
    const run = await runCli(at, ["--cwd", "deep", ...CALL]);
    expect(run).toMatchObject({ code: 0, stdout: "x\n", stderr: "" });
  });
});

describe("commands that write the files", () => {
  test("add tries the server first; disable, enable and remove keep the file's comments; a clone's server of this name comes last", async () => {
    const at = await makeHome({ mcp: '{\n  // mine\n  "mcpServers": {}\n}\n' });
    const cli = (args: readonly string[]): Promise<Run> => runCli(at, args);
    const before = await text(at);
    const failed = await cli(["add", "dead", "no-such-program-here"]);
    expect(failed).toMatchObject({ code: 3, stdout: "" });
    expect(failed.stderr).toContain("dead is not added");
    expect(await text(at)).toBe(before);

    const added = await cli(["add", "--env", "A=1", "every", shows.command, ...shows.args]);
    expect(added).toMatchObject({ code: 0, stdout: `every is added to ${at.mcpFile}.\n` });
    expect(added.stderr).toMatch(/Runs: .*shows\.mjs[\s\S]*It connects: 3 tools/);
    const whole = await text(at);
    expect(whole).toMatch(/\/\/ mine[\s\S]*"every"[\s\S]*"A": "1"/);

    // test/unit/cli/exact-names.test.ts has the other commands.
    const alike = await cli(["remove", "ev-ery"]);
    expect(alike).toMatchObject({ code: 2, stdout: "" });
    expect(alike.stderr).toContain("One is named every. This command needs the exact name.");
    expect(await text(at)).toBe(whole);

    const disabled = await cli(["disable", "every"]);
    expect(disabled).toMatchObject({ code: 0, stdout: `every is disabled in ${at.mcpFile}.\n` });
    expect(await text(at)).toMatch(/\/\/ mine[\s\S]*"enabled": false/);
    expect((await cli(["enable", "every", "--json"])).stdout).toContain('"enabled": true');
    expect(await text(at)).not.toContain('"enabled": false');

    // Nobody has allowed the clone's server.
    const entry = { mcpServers: { every: { command: "x" } } };
    const clone = await at.writeFile(".mcp.json", entry);
    expect(await cli(["remove", "every", "--trust-project"])).toMatchObject({
      code: 0,
      stdout: `every is removed from ${at.mcpFile}.\n`,
      stderr: expect.stringContaining(`every of ${clone} counts now.`),
    });
    expect(JSON.parse(await readFile(clone, "utf8"))).toEqual(entry);
    expect(await text(at)).toMatch(/^\{\s*\/\/ mine\s*"mcpServers": \{\s*\}\s*\}\s*$/);
    const last = await cli(["remove", "every", "--trust-project"]);
    expect(last).toMatchObject({ code: 0, stdout: `every is removed from ${clone}.\n` });
    expect(JSON.parse(await readFile(clone, "utf8"))).toEqual({ mcpServers: {} });
  });

  test("import shows what there is, and takes over what is named; a copy needs a yes", async () => {
    const at = await makeHome({ mcp: { mcpServers: {} } });
    const servers = { mcpServers: { other: shows } };
    await writeFile(join(at.dir, ".claude.json"), JSON.stringify(servers));
    const shown = await runCli(at, ["import"]);
    expect(shown.stdout).toMatch(/claude-code[\s\S]*other \(new\)/);
    expect(await runCli(at, ["import", "claude-code", "--copy"])).toMatchObject({ code: 5, stdout: "" });
    expect(await text(at)).not.toContain("shows.mjs");
    expect(await runCli(at, ["import", "claude-code", "--copy", "--yes"])).toMatchObject({ code: 0 });
    expect(await text(at)).toContain("shows.mjs");
    expect(await runCli(at, ["import", "claude-code"])).toMatchObject({ code: 0 });
    expect(await text(at)).toContain('"imports"');
  });
});

test("a file with a mistake -> code 7, with its line", async () => {
  const at = await makeHome({ mcp: '{"mcpServers": {"x": {"command": 3}}' });
  const run = await runCli(at, ["call", "x", "y"]);
  expect(run).toMatchObject({ code: 7, stdout: "" });
  expect(run.stderr).toMatch(/mcp\.json:1:\d+/);
});

test("a server with the token of a provider of Pi -> code 4: the token is Pi's alone; nothing to sign in to here", async () => {
  const entry = { url: "https://mcp.example.invalid/mcp", auth: { provider: "radius" } };
  const at = await makeHome({ mcp: { mcpServers: { guarded: entry } } });
  const called = await runCli(at, ["call", "guarded", "echo"]);
  expect(called).toMatchObject({ code: 4, stdout: "" });
  expect(called.stderr).toContain(
    "guarded: it wants the token of the provider radius, which only Pi can give.",
  );
  for (const word of ["login", "logout"])
    expect((await runCli(at, [word, "guarded"])).stderr).toContain(
      "Run /login radius or /logout radius in Pi.",
    );
});
