/**
 * Owns: the packed command in a pipe, with real servers: its output, its errors, its exit codes. The servers from npm take
 * part where the answer is theirs; elsewhere a fixture does, which starts with a third of the processor time.
 */
import { execFile } from "node:child_process";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { beforeAll, describe, expect, inject, test } from "vitest";
import { forWholeFile, onCleanup } from "../support/cleanup.ts";
import { createHome, type HomeOptions, type PiHome } from "../support/pi-home.ts";
import {
  CLI,
  everything,
  filesystem,
  fixtureServer,
  type Run,
  type RunOptions,
  runCli,
  startCli,
} from "./support.ts";

async function makeHome(options: HomeOptions = {}): Promise<PiHome> {
  const home = await createHome({ caches: inject("piCaches"), ...options });
  onCleanup(home.dispose);
  return home;
}

let home: PiHome;
const cli = (args: readonly string[], options?: RunOptions): Promise<Run> => runCli(home, args, options);
/** Its tool `show` answers with its argument `text`. */
const shows = fixtureServer("shows.mjs");
const lines = ({ stdout }: Run): string[] => stdout.trimEnd().split("\n");

/** One home for all tests that only read: its servers are connected once, by `list --refresh`. */
let listed: Run;
beforeAll(async () => {
  home = await forWholeFile(() => makeHome());
  await writeFile(join(home.cwd, "a.txt"), "one\ntwo\n");
  const mcpServers = {
    files: filesystem(home.cwd),
    every: everything(),
    odd: shows,
    dead: { command: "no-such-program-here" },
    off: { ...everything(), enabled: false },
  };
  await home.writeMcp({ mcpServers });
  listed = await cli(["list", "--refresh"]);
});

describe("list", () => {
  test("--refresh connects each server; one that cannot be reached gives code 3", () => {
    expect(listed.code).toBe(3);
    const rows = lines(listed).map((line) => line.split("\t"));
    expect(rows.map(([name, state, transport]) => [name, state, transport])).toEqual([
      ["files", "connected", "stdio"],
      ["every", "connected", "stdio"],
      ["odd", "connected", "stdio"],
      ["dead", "failed", "stdio"],
      ["off", "disabled", "stdio"],
    ]);
    expect(rows[3]?.[4]).toContain('the command "no-such-program-here" was not found');
  });

  test("without --refresh nothing is connected, and --json has everything that is known", async () => {
    const run = await cli(["list", "--json"]);
    expect(run).toMatchObject({ code: 0, stderr: "" });
    const { servers } = JSON.parse(run.stdout) as { servers: Record<string, unknown>[] };
    expect(servers[0]).toMatchObject({ name: "files", state: "idle", toolsKnown: true, toolCount: 14 });
    expect(servers.some(({ pid }) => pid !== undefined)).toBe(false);
  });
});

describe("what is known needs no worker", () => {
  test.each([
    [["search", "read", "text", "file"], "files__read_text_file\tfiles\t"],
    [["search", "sum", "--server", "every", "--limit", "1"], "every__get-sum\tevery\t"],
    [["tools", "files"], "files__read_file\tfiles\t"],
    [["tool", "read_text_file"], "files__read_text_file\nServer: files\n"],
  ])("%j", async (args, start) => {
    const before = await readFile(join(home.agentDir, "mcp-threads.log"), "utf8");
    const run = await cli(args);
    expect(run.code).toBe(0);
    expect(run.stdout).toContain(start);
    expect(await readFile(join(home.agentDir, "mcp-threads.log"), "utf8")).toBe(before);
  });

  test("--json of a search and of a tool", async () => {
    const [found, shown] = await Promise.all([
      cli(["search", "read", "text", "file", "--json", "--limit", "1"]),
      cli(["tool", "files__read_text_file", "--json"]),
    ]);
    const { tools } = JSON.parse(found.stdout) as { tools: unknown[] };
    expect(tools).toMatchObject([{ name: "files__read_text_file", server: "files", tool: "read_text_file" }]);
    expect(JSON.parse(shown.stdout)).toMatchObject({
      name: "files__read_text_file",
      inputSchema: { required: ["path"], properties: { head: { type: "number" } } },
    });
  });

  test("no tool fits -> nothing on stdout, a sentence on stderr, which --quiet leaves out", async () => {
    const words = ["search", "qqqqzzzz"];
    expect(await cli(words)).toMatchObject({ code: 0, stdout: "", stderr: "No tool fits these words.\n" });
    expect(await cli([...words, "-q"])).toMatchObject({ code: 0, stdout: "", stderr: "" });
  });
});

describe("call", () => {
  test("words are read by the schema, texts come as they are", async () => {
    const run = await cli(["call", "files", "read_text_file", `path=${home.cwd}/a.txt`, "head=1"]);
    expect(run).toMatchObject({ code: 0, stdout: "one\n", stderr: "" });
  });

  test("arguments as JSON, from a file and from stdin", async () => {
    await writeFile(join(home.cwd, "args.json"), '{"text": "from a file"}');
    const runs = await Promise.all([
      cli(["call", "odd", "show", "--json", "@args.json"]),
      cli(["call", "odd", "show", "--json", "-"], { stdin: '{"text": "from stdin"}' }),
    ]);
    expect(runs).toMatchObject([
      { code: 0, stdout: "from a file\n" },
      { code: 0, stdout: "from stdin\n" },
    ]);
  });

  test("--json gives the result as the server sent it", async () => {
    const run = await cli(["call", "every", "get-structured-content", "location=New York", "--json"]);
    const result = JSON.parse(run.stdout) as { structuredContent: unknown };
    expect(result.structuredContent).toMatchObject({ conditions: expect.any(String) });
  });

  test("an image is saved, and stderr names it; if it cannot be saved, the texts are printed, and code 73", async () => {
    const env = { TMPDIR: join(home.cwd, "a.txt", "below") };
    const words = ["call", "every", "get-tiny-image"];
    const [run, unsaved] = await Promise.all([cli(words), cli(words, { env })]);
    const path = /image \(image\/png, [\d.]+ KB\): (\S+\.png)/.exec(run.stderr)?.[1] ?? "";
    const bytes = await readFile(path);
    expect(bytes.subarray(1, 4).toString()).toBe("PNG");
    expect(run.stdout).not.toContain(bytes.toString("base64").slice(0, 40));

    expect(unsaved.code).toBe(73);
    expect(unsaved.stdout).toBe(run.stdout);
    expect(unsaved.stderr).toMatch(/image \(image\/png, [\d.]+ KB\) could not be saved: ENOTDIR/);
  });

  test("text of a server is unchanged in a pipe", async () => {
    const message = "a\u001b[31mred\u0007\u202e";
    const run = await cli(["call", "odd", "show", `text=${message}`]);
    expect(run.stdout).toBe(`${message}\n`);
  });
});

describe("what a server offers to be read", () => {
  test("resources, one of them, and prompts", async () => {
    const uri = "demo://resource/static/document/features.md";
    const [listing, one, raw, prompts] = await Promise.all([
      cli(["resources", "every"]),
      cli(["read", "every", uri]),
      cli(["read", "every", uri, "--json"]),
      cli(["prompts", "every", "--json"]),
    ]);
    expect(listing.stdout).toContain(`every\t${uri}\tfeatures.md`);
    expect(one).toMatchObject({ code: 0, stderr: "" });
    expect(one.stdout.startsWith("# Everything Server - Features")).toBe(true);
    const { content } = JSON.parse(raw.stdout) as { content: { resource: { uri: string; text: string } }[] };
    expect(content[0]?.resource).toEqual({ uri, mimeType: "text/markdown", text: one.stdout });
    const { servers } = JSON.parse(prompts.stdout) as { servers: { prompts: { prompt: string }[] }[] };
    expect(servers[0]?.prompts.map(({ prompt }) => prompt)).toContain("args-prompt");
  });

  test("no such resource -> code 1", async () => {
    expect(await cli(["read", "every", "demo://nope"])).toMatchObject({ code: 1, stdout: "" });
  });
});

describe("what is known is older than the configuration", () => {
  test("a server that came since is asked; one of files that are left out is explained", async () => {
    const at = await makeHome({ mcp: { mcpServers: { odd: shows } } });
    expect((await runCli(at, ["tools"])).code).toBe(0);
    await at.writeMcp({ mcpServers: { odd: fixtureServer("shows.mjs"), late: shows } });
    const [listing, prompts] = await Promise.all([
      runCli(at, ["tools", "late"]),
      runCli(at, ["prompts", "late"]),
    ]);
    expect(listing).toMatchObject({ code: 0, stdout: expect.stringContaining("late__show\tlate\t") });
    expect(prompts).toMatchObject({ code: 0, stdout: "" });
    await at.writeFile(".pi/mcp.json", { mcpServers: { ours: shows } });
    for (const args of [
      ["tools", "ours"],
      ["call", "ours", "show"],
    ]) {
      const run = await runCli(at, args);
      expect(run).toMatchObject({ code: 2, stdout: "" });
      expect(run.stderr).toMatch(/\.pi\/mcp\.json of this folder is left out: [\s\S]*No server named ours/);
    }
  });

  test("a server of the project that waits for consent -> code 5, as for a call", async () => {
    const at = await makeHome({ mcp: { mcpServers: { odd: shows } } });
    expect((await runCli(at, ["tools"])).code).toBe(0);
    await at.writeFile(".mcp.json", { mcpServers: { ours: shows } });
    expect(await runCli(at, ["tools", "ours"])).toMatchObject({ code: 5, stdout: "" });
  });
});

describe("changes of the configuration", () => {
  test("a name that is merely alike changes nothing", async () => {
    const at = await makeHome({ mcp: { mcpServers: { github: { command: "x" } } } });
    // test/unit/cli/exact-names.test.ts has the other commands.
    const run = await runCli(at, ["remove", "git-hub"]);
    expect(run).toMatchObject({ code: 2, stdout: "" });
    expect(run.stderr).toContain("One is named github. This command needs the exact name.");
    expect(JSON.parse(await readFile(at.mcpFile, "utf8"))).toEqual({
      mcpServers: { github: { command: "x" } },
    });
  });

  const text = async (at: PiHome): Promise<string> => readFile(at.mcpFile, "utf8");

  test("remove: a clone that nobody has allowed defines the server, too -> the user's own file first", async () => {
    const entry = { mcpServers: { d: { command: "x" } } };
    const at = await makeHome({ mcp: entry });
    await at.writeFile(".mcp.json", entry);
    const clone = join(at.cwd, ".mcp.json");
    expect(await runCli(at, ["remove", "d", "--trust-project"])).toMatchObject({
      code: 0,
      stdout: `d is removed from ${at.mcpFile}.\n`,
      stderr: expect.stringContaining(`d of ${clone} counts now.`),
    });
    expect(JSON.parse(await readFile(clone, "utf8"))).toEqual(entry);
    expect(JSON.parse(await text(at))).toEqual({ mcpServers: {} });
    expect(await runCli(at, ["remove", "d", "--trust-project"])).toMatchObject({
      code: 0,
      stdout: `d is removed from ${clone}.\n`,
    });
  });

  test("enable and disable write the file and keep its comments", async () => {
    const mcp = '{\n  // mine\n  "mcpServers": { "every": { "command": "x" } }\n}\n';
    const at = await makeHome({ mcp });
    expect(await runCli(at, ["disable", "every"])).toMatchObject({
      code: 0,
      stdout: `every is disabled in ${at.mcpFile}.\n`,
    });
    expect(await text(at)).toMatch(/\/\/ mine[\s\S]*"enabled": false/);
    expect((await runCli(at, ["list"])).stdout).toContain("every\tdisabled");
    expect((await runCli(at, ["enable", "every", "--json"])).stdout).toContain('"enabled": true');
    expect((await runCli(at, ["list"])).stdout).toContain("every\tnot connected");
  });

  test("add tries the server first and writes it; remove takes it out again", async () => {
    const at = await makeHome({ mcp: '{\n  // mine\n  "mcpServers": {}\n}\n' });
    const { command, args } = shows;
    const failed = await runCli(at, ["add", "dead", "no-such-program-here"]);
    expect(failed).toMatchObject({ code: 3, stdout: "" });
    expect(failed.stderr).toContain("dead is not added");
    const added = await runCli(at, ["add", "--env", "A=1", "every", command, ...args]);
    expect(added).toMatchObject({ code: 0, stdout: `every is added to ${at.mcpFile}.\n` });
    expect(added.stderr).toMatch(/Runs: .*shows\.mjs[\s\S]*It connects: 3 tools/);
    expect(await text(at)).toMatch(/\/\/ mine[\s\S]*"every"[\s\S]*"A": "1"/);
    expect(await runCli(at, ["add", "every", "x"])).toMatchObject({ code: 2 });
    expect(await runCli(at, ["add", "--no-test", "dead", "no-such-program-here"])).toMatchObject({ code: 0 });
    expect(await runCli(at, ["remove", "every"])).toMatchObject({ code: 0 });
    expect(JSON.stringify(await text(at))).not.toContain("shows.mjs");
  });

  test("import shows what there is, and takes over what is named; a copy needs a yes", async () => {
    const at = await makeHome({ mcp: { mcpServers: {} } });
    const servers = { mcpServers: { other: shows } };
    await writeFile(join(at.dir, ".claude.json"), JSON.stringify(servers));
    const shown = await runCli(at, ["import"]);
    expect(shown.stdout).toMatch(/claude-code[\s\S]*other \(new\)/);
    expect(await runCli(at, ["import", "claude-cod"])).toMatchObject({ code: 2 });
    expect(await runCli(at, ["import", "claude-code", "--copy"])).toMatchObject({ code: 5, stdout: "" });
    expect(await text(at)).not.toContain("shows.mjs");
    expect(await runCli(at, ["import", "claude-code", "--copy", "--yes"])).toMatchObject({ code: 0 });
    expect(await text(at)).toContain("shows.mjs");
    expect(await runCli(at, ["import", "claude-code"])).toMatchObject({ code: 0 });
    expect(await text(at)).toContain('"imports"');
  });
});

describe("sign-in, doctor, statistics, log", () => {
  test("a local program takes no sign-in", async () => {
    expect(await cli(["login", "every"])).toMatchObject({ code: 2, stdout: "" });
    expect(await cli(["logout", "every"])).toMatchObject({ code: 2, stdout: "" });
  });

  test("doctor finds the server without a program, as code 1, and as a report", async () => {
    const [run, report, json] = await Promise.all([
      cli(["doctor"]),
      cli(["doctor", "--report"]),
      cli(["doctor", "--json"]),
    ]);
    expect(run.code).toBe(1);
    expect(run.stdout).toMatch(/dead: .*no-such-program-here/);
    expect(report.stdout).toMatch(/^```text\npi-mcp-threads [\d.]+, Node /);
    const { findings } = JSON.parse(json.stdout) as { findings: { id: string; server?: string }[] };
    expect(findings).toContainEqual(expect.objectContaining({ id: "command", server: "dead" }));
    for (const { stdout } of [run, report, json]) expect(stdout).not.toMatch(/\/mcp |ToolSearch/);
  });

  test("the doctor's remedies are commands of the shell, also in JSON", async () => {
    const run = await cli(["doctor", "off", "--json"]);
    const { findings } = JSON.parse(run.stdout) as { findings: { remedy?: string }[] };
    expect(findings.map(({ remedy }) => remedy)).toContain("pi-mcp-threads enable off");
  });

  test("stats without captureStats says how", async () => {
    expect((await cli(["stats"])).stdout).toContain('"captureStats": true');
  });

  test("logs of one server, as many as wanted, and as JSON", async () => {
    const [text, json] = await Promise.all([
      cli(["logs", "files", "--lines", "1"]),
      cli(["logs", "files", "--lines", "2", "--json"]),
    ]);
    expect(text.stdout).toMatch(/^\d{4}-\S+ info +\[connection#1\] .*\bfiles\b/);
    const { entries } = JSON.parse(json.stdout) as { entries: { level: string; text: string }[] };
    expect(entries).toHaveLength(2);
    for (const entry of entries) expect(entry.text).toContain("files");
    expect(await cli(["logs", "--follow", "--json"])).toMatchObject({ code: 2 });
  });

  test("logs --follow shows what is written later, and ends with the signal", async () => {
    const { child, ended } = startCli(home, ["logs", "odd", "--lines", "1", "--follow"]);
    const seen = (): Promise<string> =>
      new Promise((resolve) => child.stdout?.once("data", (data) => resolve(String(data))));
    await seen();
    const next = seen();
    await cli(["call", "odd", "show", "text=x"]);
    expect(await next).toContain("odd connected");
    child.kill("SIGINT");
    expect(await ended).toMatchObject({ code: 130, stderr: "" });
  });
});

describe("failures -> exit code, a sentence on stderr, nothing on stdout", () => {
  test.each([
    ["the tool answers with an error", ["call", "odd", "show", "isError=true"], 1, /^$/],
    ["no such command", ["calll"], 2, /There is no command "calll"\. Did you mean call\?/],
    ["no such server", ["call", "fils", "x"], 2, /No server named fils is configured\. Did you mean files\?/],
    ["no such tool", ["call", "odd", "shw"], 2, /odd has no tool shw\.\n {2}Near: show/],
    ["no such parameter", ["call", "every", "echo", "mesage=1"], 2, /Did you mean message\?/],
    ["a parameter is missing", ["call", "every", "echo"], 2, /echo needs message \(string\)/],
    ["no such tool anywhere", ["tool", "zzzqqq"], 2, /No tool named zzzqqq is known/],
    [
      "no such folder",
      ["--cwd", "/no/such", "list"],
      2,
      /--cwd \/no\/such: the folder cannot be entered \(ENOENT\)/,
    ],
    ["a server that cannot be started", ["call", "dead", "x"], 3, /"no-such-program-here" was not found/],
    ["a server that is off", ["call", "off", "echo", "message=1"], 3, /disabled/],
    ["the time is over", ["call", "odd", "count", "file=never", "--timeout", "1"], 6, /not done within 1 s/],
    ["no such configuration file", ["--config", "nope.json", "call", "x", "y"], 7, /nope\.json/],
  ])("%s", async (_name, args, code, message) => {
    const run = await cli(args);
    expect(run.code).toBe(code);
    expect(run.stderr).toMatch(message);
    expect(run.stderr).not.toMatch(/\n\s+at /);
    if (code !== 1) expect(run.stdout).toBe("");
  });

  test("with --json stdout has one document, also for an error", async () => {
    const runs = await Promise.all([
      cli(["call", "odd", "show", "isError=true", "--json"]),
      cli(["calll", "--json"]),
      cli(["call", "dead", "x", "--json"]),
    ]);
    expect(runs.map(({ code }) => code)).toEqual([1, 2, 3]);
    const [answer, ...errors] = runs.map(({ stdout }) => JSON.parse(stdout) as Record<string, unknown>);
    expect(answer).toMatchObject({ isError: true });
    for (const { error } of errors) {
      expect(error).toMatchObject({ code: expect.any(String), message: expect.any(String) });
    }
  });
});

test("a file with a mistake -> code 7, with its line", async () => {
  const at = await makeHome({ mcp: '{"mcpServers": {"x": {"command": 3}}' });
  const run = await runCli(at, ["call", "x", "y"]);
  expect(run).toMatchObject({ code: 7, stdout: "" });
  expect(run.stderr).toMatch(/mcp\.json:1:\d+/);
});

describe("the reader ends early", () => {
  test("| head -> no word on stderr", async () => {
    const run = promisify(execFile);
    const command = `"${process.execPath}" "${CLI}" tools 2>err | head -n 1; cat err`;
    const { stdout } = await run("bash", ["-c", command], { cwd: home.cwd, env: home.env() });
    expect(stdout.trimEnd().split("\n")[0]).toContain("files__read_file");
    expect(stdout).not.toMatch(/EPIPE|Error|\n\s+at /);
  });
});

describe("help and version", () => {
  test("need no home and no configuration", async () => {
    const { version } = JSON.parse(await readFile(join(CLI, "..", "..", "package.json"), "utf8")) as {
      version: string;
    };
    expect(await cli(["--version"])).toMatchObject({ code: 0, stdout: `${version}\n`, stderr: "" });
    const help = await cli(["--help"]);
    expect(help).toMatchObject({ code: 0, stderr: "" });
    expect(await cli([])).toMatchObject({ code: 0, stdout: help.stdout });
    expect((await cli(["help", "call"])).stdout).toContain(
      "Usage: pi-mcp-threads call <server> <tool> [key=value]…",
    );
  });
});

describe("a project", () => {
  const server = { ours: shows };
  const project = (file: string, options: HomeOptions = {}): Promise<PiHome> =>
    makeHome({ ...options, files: { [file]: { mcpServers: server }, "sub/x.txt": "x" } });
  const call = ["call", "ours", "show", "text=x"];

  test(".mcp.json in a folder without trust -> code 5, and nothing runs; --yes allows it once and for all", async () => {
    const at = await project(".mcp.json");
    const refused = await runCli(at, call);
    expect(refused).toMatchObject({ code: 5, stdout: "" });
    expect(refused.stderr).toContain("Run the command in a terminal");
    expect(await readFile(join(at.agentDir, "mcp-threads.log"), "utf8")).not.toContain(
      "connected over stdio",
    );
    const allowed = await runCli(at, [...call, "--yes"]);
    expect(allowed.code).toBe(0);
    expect(allowed.stderr).toContain("This project wants to run an MCP server.");
    expect(allowed.stderr).toContain("shows.mjs");
    // The yes is remembered, as Pi remembers it.
    expect(await runCli(at, call)).toMatchObject({ code: 0, stderr: "" });
  });

  test(".pi/mcp.json counts if Pi has recorded trust", async () => {
    const at = await project(".pi/mcp.json", { trusted: true });
    expect(await runCli(at, call)).toMatchObject({ code: 0, stderr: "" });
  });

  test(".pi/mcp.json without that record is left out; --trust-project asks for each server", async () => {
    const at = await project(".pi/mcp.json");
    const listing = await runCli(at, ["list"]);
    expect(listing).toMatchObject({ code: 0, stdout: "" });
    expect(listing.stderr).toContain("Pi has recorded no trust for this project");
    expect(await runCli(at, call)).toMatchObject({ code: 2 });
    expect(await runCli(at, [...call, "--trust-project"])).toMatchObject({ code: 5, stdout: "" });
    const allowed = await runCli(at, [...call, "--trust-project", "--yes"]);
    expect(allowed.code).toBe(0);
    expect(allowed.stderr).toContain("shows.mjs");
  });

  test("--cwd goes to another folder", async () => {
    const at = await project(".pi/mcp.json", { trusted: true });
    await mkdir(join(at.cwd, "deep"), { recursive: true });
    const run = await runCli(at, ["--cwd", "deep", "list", "--json"]);
    expect((JSON.parse(run.stdout) as { files: string[] }).files).toContain(
      join(at.cwd, "deep", ".mcp.json"),
    );
  });
});

test("the first examples of the page run as they are written", async () => {
  const page = await readFile(join(CLI, "..", "..", "docs", "command-line.md"), "utf8");
  const [, block = ""] = /```sh\n([\s\S]*?)```/.exec(page) ?? [];
  const examples = block.trim().split("\n");
  expect(examples.length).toBeGreaterThan(3);
  for (const example of examples) {
    const words = [...example.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? "");
    expect(words[0]).toBe("pi-mcp-threads");
    const run = await cli(words.slice(1));
    expect({ example, code: run.code, stderr: run.stderr }).toEqual({ example, code: 0, stderr: "" });
    expect(run.stdout).not.toBe("");
  }
});

test.skipIf(process.platform === "win32")(
  "the current folder was deleted -> a sentence and code 2",
  async () => {
    const script = 'mkdir gone && cd gone && rmdir ../gone && "$0" "$1" list; echo "code $?"';
    const run = promisify(execFile);
    const { stdout, stderr } = await run("sh", ["-c", script, process.execPath, CLI], {
      cwd: home.cwd,
      env: home.env(),
    });
    expect(stdout).toBe("code 2\n");
    expect(stderr).toMatch(/^pi-mcp-threads: The current folder is not there any more \(ENOENT\)\./);
  },
);

test("an older Node -> one sentence and code 7, before anything else is read", async () => {
  const old = "Object.defineProperty(process.versions, 'node', { value: '20.1.0' })";
  const run = await runCli(home, ["list"], {
    node: ["--import", `data:text/javascript,${encodeURIComponent(old)}`],
  });
  expect(run).toMatchObject({ code: 7, stdout: "" });
  expect(run.stderr).toMatch(
    /^pi-mcp-threads needs Node 22\.19 or later\. This is Node 20\.1\.0 \(.*\)\.\n$/,
  );
});

test("commands at the same time share the caches: none fails, and what is known stays whole", async () => {
  const before = await cli(["tools"]);
  const runs = await Promise.all([
    ...["files", "odd"].map((server) => cli(["tools", server, "--refresh"])),
    cli(["list", "--refresh", "--json"]),
  ]);
  expect(runs.map(({ code }) => code)).toEqual([0, 0, 3]);
  const after = await cli(["tools"]);
  expect(after.stdout).toBe(before.stdout);
  const log = await readFile(join(home.agentDir, "mcp-threads.log"), "utf8");
  expect(log).not.toMatch(/corrupt|cannot be written/);
});

test("an agent folder that cannot be made -> an error and an end, where Node's recursive mkdir would never end", async () => {
  const at = await makeHome();
  const file = await at.writeFile("file", "");
  const folders = [join(file, "agent"), ...(process.platform === "linux" ? ["/proc/nope"] : [])];
  for (const folder of folders) {
    const run = await runCli(at, ["list"], { env: { PI_CODING_AGENT_DIR: folder } });
    expect(run).toMatchObject({ code: 7, stdout: "" });
    expect(run.stderr).toMatch(/^pi-mcp-threads: Pi's agent folder .* cannot be made/);
  }
});
