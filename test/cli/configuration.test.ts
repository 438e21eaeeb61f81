/**
 * Owns: the packed command with a configuration that changes or that a project brings along: what is known is older than
 * the files, consent and trust, and the commands that write the files.
 */
import { mkdir, readFile, writeFile } from "node:fs/promises";
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
  test("the configuration is newer than what is known -> a new server is asked; one of a project needs trust and consent", {
    tags: "thorough",
  }, async () => {
    const at = await makeHome({ mcp: { mcpServers: { odd: shows } } });
    const cli = (args: readonly string[]): Promise<Run> => runCli(at, args);
    const log = (): Promise<string> => readFile(join(at.agentDir, "mcp-threads.log"), "utf8");
    expect((await cli(["tools"])).code).toBe(0);
    await at.writeMcp({ mcpServers: { odd: shows, late: shows, later: shows, last: shows } });
    const listings = [
      ...family([[["tools", "late"], "late__show\tlate\t"] as const, [["prompts", "later"], ""] as const]),
      [["search", "show", "--server", "last"], "last__show\tlast\t"] as const,
    ].map(async ([words, stdout]) =>
      expect(await cli(words)).toMatchObject({ code: 0, stdout: expect.stringContaining(stdout) }),
    );
    await Promise.all(listings);

    // Pi has recorded no trust: the file is left out, and every answer that misses its server says so.
    await at.writeFile(".pi/mcp.json", { mcpServers: { ours: shows } });
    const listing = await cli(["list", "--cached"]);
    expect(listing).toMatchObject({ code: 0, stdout: expect.not.stringContaining("ours") });
    expect(listing.stderr).toContain("Pi has recorded no trust for this project");
    const unread = "warning: This folder is not trusted, so the servers of .pi/mcp.json are not read.";
    expect((await cli(["doctor"])).stdout).toContain(unread);
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

describe("servers of packages and of folders above", () => {
  const packages = {
    "kit/package.json": { name: "kit", pi: { mcp: "./mcp.json" } },
    "kit/mcp.json": { mcpServers: { own: shows } },
  };

  test("a package's server: list says where it is from, --yes allows it; disable writes into the user's file, remove says what to do", {
    tags: "thorough",
  }, async () => {
    const at = await makeHome({ settings: { packages: ["../../project/kit"] }, files: packages, mcp: {} });
    const cli = (...args: string[]): Promise<Run> => runCli(at, args);
    const file = join(at.cwd, "kit", "mcp.json");
    expect((await cli("list")).stderr).toContain("kit__own waits for your consent");
    expect((await cli("call", "kit__own", "show", "text=x")).code).toBe(5);
    const allowed = await cli("call", "kit__own", "show", "text=x", "--yes");
    expect(allowed).toMatchObject({
      code: 0,
      stdout: "x\n",
      stderr: expect.stringContaining("A package wants to run an MCP server."),
    });
    expect((await cli("list", "--json")).stdout).toContain(JSON.stringify(file));
    expect(await cli("remove", "kit__own")).toMatchObject({
      code: 7,
      stderr: expect.stringMatching(/a file of a package, defines the server[\s\S]*remove the package/),
    });
    expect(await cli("disable", "kit__own")).toMatchObject({
      code: 0,
      stdout: `kit__own is disabled in ${at.mcpFile}.\n`,
    });
    expect((await cli("call", "kit__own", "show")).stderr).toContain("is disabled");
    expect((await cli("doctor")).stdout).not.toContain("no server of this name");
  });

  test("import shows the plugins of Claude Code, and takes them over by name", {
    tags: "thorough",
  }, async () => {
    const at = await makeHome({ mcp: {} });
    const plugin = join(at.dir, "plugin");
    const claude = join(at.dir, ".claude");
    await mkdir(join(claude, "plugins"), { recursive: true });
    await mkdir(plugin);
    await writeFile(join(plugin, ".mcp.json"), JSON.stringify({ docs: shows }));
    const plugins = { "p@m": [{ scope: "user", installPath: plugin }] };
    await writeFile(
      join(claude, "plugins", "installed_plugins.json"),
      JSON.stringify({ version: 2, plugins }),
    );
    await writeFile(join(claude, "settings.json"), JSON.stringify({ enabledPlugins: { "p@m": true } }));
    expect((await runCli(at, ["import"])).stdout).toMatch(
      /claude-plugins[\s\S]*plugin\/\.mcp\.json[\s\S]*p__docs \(new\)/,
    );
    expect(await runCli(at, ["import", "claude-plugins"])).toMatchObject({ code: 0 });
    expect(JSON.parse(await text(at))).toMatchObject({ imports: ["claude-plugins"] });
    expect(await runCli(at, ["call", "p__docs", "show", "text=x", "--yes"])).toMatchObject({
      code: 0,
      stdout: "x\n",
    });
  });

  test("a folder above: --yes allows its server once for the repository; disable and remove change the file of that folder", {
    tags: "thorough",
  }, async () => {
    const at = await makeHome({
      files: { ".mcp.json": { mcpServers: { ours: shows } }, ".git/HEAD": "", "deep/er/x": "" },
    });
    const deep = (...args: string[]): Promise<Run> => runCli(at, ["--cwd", "deep/er", ...args]);
    expect((await deep(...CALL, "--yes")).code).toBe(2);
    await at.writeMcp({ settings: { ancestorConfigRoots: [at.cwd] } });
    expect(await deep(...CALL, "--yes")).toMatchObject({ code: 0, stdout: "x\n" });
    expect(await runCli(at, ["--cwd", "deep", ...CALL])).toMatchObject({
      code: 0,
      stdout: "x\n",
      stderr: "",
    });
    const file = join(at.cwd, ".mcp.json");
    expect(await deep("disable", "ours")).toMatchObject({
      code: 0,
      stdout: `ours is disabled in ${file}.\n`,
    });
    expect(await deep("remove", "ours")).toMatchObject({
      code: 0,
      stdout: `ours is removed from ${file}.\n`,
    });
    expect(JSON.parse(await readFile(file, "utf8"))).toEqual({ mcpServers: {} });
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

  test("import shows what there is, and takes over what is named; a copy needs a yes", {
    tags: "thorough",
  }, async () => {
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

  test("a copy of a clone's servers -> not without a person, whatever --yes says; the user's own of that name is taken", async () => {
    const at = await makeHome({
      mcp: { mcpServers: {} },
      files: { ".cursor/mcp.json": { mcpServers: { github: { command: "theirs" } } } },
    });
    const clone = join(at.cwd, ".cursor", "mcp.json");
    expect((await runCli(at, ["import"])).stdout).toContain(`  ${clone}, a file of this project\n`);
    const alone = await runCli(at, ["import", "cursor", "--copy", "--yes"]);
    expect(alone).toMatchObject({ code: 5, stdout: "" });
    expect(alone.stderr).toContain(`github is left out: it comes from ${clone}, a file of this project`);
    expect(JSON.parse(await text(at))).toEqual({ mcpServers: {} });
    await mkdir(join(at.dir, ".cursor"));
    const own = { mcpServers: { github: { command: "mine" } } };
    await writeFile(join(at.dir, ".cursor", "mcp.json"), JSON.stringify(own));
    await at.writeFile(".cursor/mcp.json", {
      mcpServers: { github: { command: "theirs" }, other: { command: "theirs" } },
    });
    const both = await runCli(at, ["import", "cursor", "--copy", "--yes"]);
    expect(both).toMatchObject({ code: 0, stdout: expect.stringContaining(": github.\n") });
    expect(both.stderr).toContain(`other is left out: it comes from ${clone}`);
    expect(JSON.parse(await text(at))).toEqual(own);
  });
});

test("a file with a mistake -> code 7, with its line", async () => {
  const at = await makeHome({ mcp: '{"mcpServers": {"x": {"command": 3}}' });
  const words = [
    ["call", "x", "y"],
    ["tools"],
    // The snapshot of the command before knows no server.
    ["tools", "--json"],
    ["search", "x"],
    ["resources"],
    ["prompts"],
    ["skills"],
    ["list", "--cached"],
    ["list"],
  ];
  for (const args of words) {
    const run = await runCli(at, args);
    expect([args, run.code]).toEqual([args, 7]);
    expect(run.stderr).toMatch(/mcp\.json:1:\d+/);
  }
});

test("add, and a file with a mistake -> code 7 with its line, before anything runs", async () => {
  const at = await makeHome({ mcp: '{"mcpServers": {"x": {"command": 3}}' });
  const run = await runCli(at, ["add", "new", shows.command, ...shows.args]);
  expect(run).toMatchObject({ code: 7, stdout: "" });
  expect(run.stderr).toMatch(/mcp\.json:1:\d+ cannot be changed: not valid JSON/);
  expect(run.stderr).not.toMatch(/Runs: |sandbox|--no-test/);
});

test("a mistake in one entry -> its line, and code 0: the others are listed", async () => {
  const at = await makeHome({ mcp: { mcpServers: { wrong: { command: 3 }, show: shows } } });
  const run = await runCli(at, ["tools"]);
  expect(run).toMatchObject({ code: 0, stdout: expect.stringMatching(/^show__show\t/m) });
  expect(run.stderr).toMatch(/mcp\.json:\d+:\d+: mcpServers\.wrong\.command: expected a string/);
});

test("a server with the token of a provider of Pi -> code 4: the token is Pi's alone; nothing to sign in to here", {
  tags: "thorough",
}, async () => {
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
