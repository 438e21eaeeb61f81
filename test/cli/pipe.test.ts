/**
 * Owns: the packed command in a pipe, with real servers and one configuration: its output, its errors, its exit codes. The
 * servers from npm take part where the answer is theirs; elsewhere a fixture does, which starts with a third of the
 * processor time. test/unit/cli has the variations that need no process.
 */
import { execFile } from "node:child_process";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { beforeAll, describe, expect, test } from "vitest";
import { forWholeFile } from "../support/cleanup.ts";
import { serve } from "../support/http-server.ts";
import { makeHome } from "../support/make-home.ts";
import type { PiHome } from "../support/pi-home.ts";
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

let home: PiHome;
const cli = (args: readonly string[], options?: RunOptions): Promise<Run> => runCli(home, args, options);
/** Its tool `show` answers with its argument `text`. */
const shows = fixtureServer("shows.mjs");
const lines = ({ stdout }: Run): string[] => stdout.trimEnd().split("\n");

/** One home for all tests that only read: its servers are connected once, by `list`. */
let listed: Run;
beforeAll(async () => {
  home = await forWholeFile(() => makeHome());
  await writeFile(join(home.cwd, "a.txt"), "one\ntwo\n");
  const mcpServers = {
    files: filesystem(home.cwd),
    every: everything(),
    odd: shows,
    marks: { ...fixtureServer("signs.mjs"), excludeTools: ["env"] },
    dead: { command: "no-such-program-here" },
    off: { ...everything(), enabled: false },
  };
  await home.writeMcp({ mcpServers });
  listed = await cli(["list"]);
});

test("the token of serve --http in the environment -> no server gets it, and the one whose entry asks for it does", async () => {
  const token = "t".repeat(40);
  const own = { PI_MCP_THREADS_TOKEN: "$env:PI_MCP_THREADS_TOKEN" };
  const tries = fixtureServer("tries.mjs");
  const place = await makeHome({ mcp: { mcpServers: { plain: tries, asks: { ...tries, env: own } } } });
  const environment = (server: string) =>
    runCli(place, ["call", server, "work", "code=return process.env"], {
      env: { PI_MCP_THREADS_TOKEN: token, OTHER: "o" },
    });
  const { stdout } = await environment("plain");
  expect(stdout).toContain('"OTHER":"o"');
  expect(stdout).not.toContain("PI_MCP_THREADS_TOKEN");
  expect((await environment("asks")).stdout).toMatch(/"PI_MCP_THREADS_TOKEN":"/);
});

describe("list", () => {
  test("it connects each server; one that cannot be reached gives code 3", () => {
    expect(listed.code).toBe(3);
    const rows = lines(listed).map((line) => line.split("\t"));
    expect(rows.map(([name, state, transport]) => [name, state, transport])).toEqual([
      ["files", "ready", "stdio"],
      ["every", "ready", "stdio"],
      ["odd", "ready", "stdio"],
      ["marks", "ready", "stdio"],
      ["dead", "failed", "stdio"],
      ["off", "disabled", "stdio"],
    ]);
    expect(rows[4]?.[4]).toContain('the command "no-such-program-here" was not found');
  });

  test("--cached connects nothing, and --json has everything that is known", async () => {
    const run = await cli(["list", "--cached", "--json"]);
    expect(run).toMatchObject({ code: 0, stderr: "" });
    const { servers } = JSON.parse(run.stdout) as { servers: Record<string, unknown>[] };
    expect(servers[0]).toMatchObject({ name: "files", state: "idle", toolsKnown: true, toolCount: 14 });
    expect(servers.some(({ pid }) => pid !== undefined)).toBe(false);
  });
});

describe("prompts", () => {
  test("prompt prints its text; complete prints what the server suggests", { tags: "thorough" }, async () => {
    const text = await cli(["prompt", "every", "args-prompt", "city=Rome"]);
    expect(text).toMatchObject({ code: 0, stdout: "What's weather in Rome?\n" });
    const words = ["department=Engineering", "name=A"];
    const values = await cli(["complete", "every", "completable-prompt", ...words]);
    expect(values).toMatchObject({ code: 0, stdout: "Alice\n" });
  });

  test.each([
    [["prompt", "every", "args-promt"], "Did you mean args-prompt?"],
    [["prompt", "every", "args-prompt"], "args-prompt needs city."],
    [["prompt", "every", "args-prompt", "town=Rome"], "args-prompt has no argument town."],
    [["complete", "every", "args-prompt", "city"], '"city" is not name=value.'],
  ])("%j -> a mistake of usage", async (words, message) => {
    expect(await cli(words)).toMatchObject({ code: 2, stdout: "", stderr: expect.stringContaining(message) });
  });
});

test("a prompt and a skill that are longer than what a model is shown -> all of each, and nothing else", async () => {
  const long = "line of a text\n".repeat(6_000);
  const file = `---\nname: long\ndescription: Long.\n---\n${long}`;
  const place = await makeHome();
  const folder = join(place.dir, "skills");
  await mkdir(join(folder, "long"), { recursive: true });
  await writeFile(join(folder, "long", "SKILL.md"), file);
  const env = {
    PROMPTS: JSON.stringify([{ name: "long" }]),
    MESSAGES: JSON.stringify({ long: [{ role: "user", content: { type: "text", text: long } }] }),
  };
  await place.writeMcp({
    mcpServers: {
      prompts: { ...fixtureServer("prompts.mjs"), env },
      docs: fixtureServer("skills.mjs", folder),
    },
  });
  const prompt = await runCli(place, ["prompt", "prompts", "long"]);
  expect([prompt.code, prompt.stdout === long]).toEqual([0, true]);
  const skill = await runCli(place, ["skill", "docs", "long"]);
  expect([skill.code, skill.stdout === file]).toEqual([0, true]);
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
    const unknown = "Nothing is known yet of these servers, and --refresh asks them: dead\n";
    const stderr = `${unknown}No tool fits these words.\n`;
    expect(await cli(words)).toMatchObject({ code: 0, stdout: "", stderr });
    expect(await cli([...words, "-q"])).toMatchObject({ code: 0, stdout: "", stderr: "" });
  });
});

/** `call` takes the two names of a tool, and its whole name in these ways. */
const WHOLE_NAMES = ["odd__show", "odd.show", "odd/show"] as const;

describe("call", () => {
  test("arguments from a file and words by the schema; an error of the tool -> code 1, its text unchanged", async () => {
    const text = "from a file\u001b[31mred\u0007\u202e";
    await writeFile(join(home.cwd, "args.json"), JSON.stringify({ text, isError: false }));
    const run = await cli(["call", WHOLE_NAMES[0], "isError=true", "--json", "@args.json"]);
    expect(run).toMatchObject({ code: 1, stdout: `${text}\n`, stderr: "" });
  });

  test("a tool without its server is not called, but proposed", async () => {
    const run = await cli(["call", "get-sum", "a=1", "b=2"]);
    expect(run).toMatchObject({ code: 2, stdout: "" });
    expect(run.stderr).toContain("Did you mean: call every get-sum?");
  });

  test("a command between two -- -> its tool runs; nothing of it is written into a file of Pi", {
    tags: "thorough",
  }, async () => {
    const kept = async () => ({
      files: await readdir(home.agentDir),
      cache: await readFile(join(home.agentDir, "mcp-cache.json"), "utf8"),
      once: (await readdir(tmpdir())).filter((name) => name.startsWith("pi-mcp-threads-once-")),
    });
    const before = await kept();
    const words = ["--", shows.command, ...shows.args];
    const run = await cli(["call", ...words, "--", "show", "--args", '{"text":"once"}']);
    expect(run).toMatchObject({ code: 0, stdout: "once\n" });
    expect(await cli(["call", ...words, "--", "shaw"])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("Did you mean: show?"),
    });
    // The name that is proposed for it is that of a program.
    await home.writeFile("docker.mjs", `import ${JSON.stringify(pathToFileURL(shows.args[0] ?? ""))};\n`);
    const docker = ["--", shows.command, join(home.cwd, "docker.mjs")];
    expect(await cli(["tools", ...docker])).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^docker__show\tdocker\t/m),
    });
    expect(await kept()).toEqual(before);
  });

  test("an address -> its tool runs, with the token of a variable", async () => {
    const seen: unknown[] = [];
    const { url } = await serve((asked, response) => {
      seen.push(asked.headers.authorization);
      response.writeHead(401, { "content-type": "application/json" }).end('{"error":"Another token."}');
    });
    const env = { ONCE_TOKEN: "t-1" };
    const run = await cli(["call", url, "t", "--bearer-token-env", "ONCE_TOKEN"], { env });
    expect(run).toMatchObject({ code: 4, stdout: "", stderr: expect.stringContaining("Another token.") });
    expect(run.stderr).toMatch(/\n {2}--bearer-token-env NAME or --header NAME=value gives it a key\./);
    expect((await cli(["call", "--", "npx", "x", "t"])).stderr).toContain(
      "\n  A second -- divides a command",
    );
    expect(seen[0]).toBe("Bearer t-1");
  });

  // test/unit/cli/result.test.ts has the image that cannot be saved.
  test("an image is saved, and stderr names it", async () => {
    const run = await cli(["call", "every", "get-tiny-image"]);
    const path = /image \(image\/png, [\d.]+ KB\): (\S+\.png)/.exec(run.stderr)?.[1] ?? "";
    const bytes = await readFile(path);
    expect(bytes.subarray(1, 4).toString()).toBe("PNG");
    expect(run.code).toBe(0);
    expect(run.stdout).not.toContain(bytes.toString("base64").slice(0, 40));
  });

  test("logs --follow shows what another command writes; that one has its arguments from stdin, and gives with --json the result as the server sent it", {
    tags: "thorough",
  }, async () => {
    const { child, ended } = startCli(home, ["logs", "odd", "--lines", "1", "--follow"]);
    const seen = (): Promise<string> =>
      new Promise((resolve) => child.stdout?.once("data", (data) => resolve(String(data))));
    await seen();
    const next = seen();
    const stdin = '{"text": "from stdin", "structured": {"deep": [1]}, "isError": true}';
    const run = await cli(["call", "odd", "show", "--args", "-", "--json"], { stdin });
    expect({ ...run, stdout: JSON.parse(run.stdout) }).toMatchObject({
      code: 1,
      stdout: {
        content: [{ type: "text", text: "from stdin" }],
        structuredContent: { deep: [1] },
        isError: true,
      },
      stderr: "",
    });
    expect(await next).toContain("odd connected");
    child.kill("SIGINT");
    expect(await ended).toMatchObject({ code: 130, stderr: "" });
  });
});

describe("what a server offers to be read", () => {
  test("resources, one of them, and prompts", async () => {
    const uri = "demo://resource/static/document/features.md";
    const [listing, one, prompts] = await Promise.all([
      cli(["resources", "every"]),
      cli(["read", "every", uri]),
      cli(["prompts", "every", "--json"]),
    ]);
    expect(listing.stdout).toContain(`every\t${uri}\tfeatures.md`);
    expect(one).toMatchObject({ code: 0, stderr: "" });
    expect(one.stdout.startsWith("# Everything Server - Features")).toBe(true);
    const { servers } = JSON.parse(prompts.stdout) as { servers: { prompts: { prompt: string }[] }[] };
    expect(servers[0]?.prompts.map(({ prompt }) => prompt)).toContain("args-prompt");
  });

  test("no such resource -> code 1", async () => {
    expect(await cli(["read", "every", "demo://nope"])).toMatchObject({ code: 1, stdout: "" });
  });
});

describe("sign-in, doctor, statistics, log", () => {
  test("a local program takes no sign-in", async () => {
    expect(await cli(["login", "every"])).toMatchObject({ code: 2, stdout: "" });
    expect(await cli(["logout", "every"])).toMatchObject({ code: 2, stdout: "" });
  });

  // test/unit/cli/commands.test.ts has --report.
  test("doctor finds the server without a program, as code 1, and its remedies are commands of the shell", async () => {
    const at = await makeHome({
      mcp: { mcpServers: { dead: { command: "no-such-program-here" }, off: { ...shows, enabled: false } } },
    });
    const [run, json] = await Promise.all([runCli(at, ["doctor"]), runCli(at, ["doctor", "off", "--json"])]);
    expect(run.code).toBe(1);
    expect(run.stdout).toMatch(/dead: .*no-such-program-here/);
    const { findings } = JSON.parse(json.stdout) as { findings: { remedy?: string }[] };
    expect(findings.map(({ remedy }) => remedy)).toContain("pi-mcp-threads enable off");
    for (const { stdout } of [run, json]) expect(stdout).not.toMatch(/\/mcp |ToolSearch/);
  });

  test("stats counts without a setting, and says how to stop it", async () => {
    expect((await cli(["stats"])).stdout).toMatch(/^tool +calls +errors[\s\S]*"captureStats": false/);
  });

  test("logs of one server or of all, as many as wanted, and as JSON", async () => {
    const [text, json] = await Promise.all([
      cli(["logs", "files", "--lines", "1"]),
      cli(["logs", "--lines", "2", "--json"]),
    ]);
    expect(text.stdout).toMatch(/^\d{4}-\S+ info +\[connection#1\] .*\bfiles\b/);
    const { entries } = JSON.parse(json.stdout) as { entries: { level: string; text: string }[] };
    expect(entries).toHaveLength(2);
    for (const entry of entries) expect(entry).toMatchObject({ level: "info", text: expect.any(String) });
    expect(lines(text)).toHaveLength(1);
    expect(await cli(["logs", "--follow", "--json"])).toMatchObject({ code: 2 });
  });
});

describe("failures -> exit code, a sentence on stderr, nothing on stdout", () => {
  test.each([
    ["no such command", ["calll"], 2, /There is no command "calll"\. Did you mean call\?/],
    ["no such server", ["call", "fils", "x"], 2, /No server named fils is configured\. Did you mean files\?/],
    [
      "a tool for its server's own pages",
      ["call", "marks", "refresh"],
      2,
      /marks offers refresh only to its own pages \(MCP Apps\)/,
    ],
    ["an excluded tool", ["call", "marks", "env"], 2, /marks offers env, but the configuration excludes it/],
    ["no such tool", ["call", "odd", "shw"], 2, /odd has no tool shw\.\n {2}Did you mean: call odd show\?/],
    ["no such parameter", ["call", "every", "echo", "mesage=1"], 2, /Did you mean message\?/],
    ["a parameter is missing", ["call", "every", "echo"], 2, /echo needs message \(string\)/],
    ["no such tool anywhere", ["tool", "zzzqqq"], 2, /No tool named zzzqqq is known/],
    [
      "no such folder",
      ["--cwd", "/no/such", "list"],
      2,
      /--cwd \/no\/such: the folder cannot be entered \(ENOENT\)/,
    ],
    [
      "a server that is off",
      ["call", "off", "echo", "message=1"],
      3,
      /disabled[\s\S]*pi-mcp-threads enable off switches it on/,
    ],
    ["the time is over", ["call", "odd", "count", "file=never", "--timeout", "1"], 6, /Timed out after 1 s/],
    ["no such configuration file", ["--config", "nope.json", "call", "x", "y"], 7, /nope\.json/],
  ])("%s", async (_name, args, code, message) => {
    const run = await cli(args);
    expect(run.code).toBe(code);
    expect(run.stderr).toMatch(message);
    expect(run.stderr).not.toMatch(/\n\s+at /);
    expect(run.stdout).toBe("");
  });

  test("with --json stdout has one document, also of a server that cannot be started", async () => {
    const runs = await Promise.all([cli(["calll", "--json"]), cli(["call", "dead", "x", "--json"])]);
    expect(runs.map(({ code }) => code)).toEqual([2, 3]);
    const [unread, dead] = runs.map(({ stdout }) => JSON.parse(stdout) as Record<string, unknown>);
    expect(unread?.error).toMatchObject({ code: "usage", message: expect.any(String) });
    expect(dead?.error).toMatchObject({
      code: "spawn_failed",
      message: expect.stringContaining('"no-such-program-here" was not found'),
    });
    for (const { stderr } of runs) expect(stderr).toBe("");
  });
});

describe("the output cannot be written whole", () => {
  const UNWRITTEN = /^pi-mcp-threads: The output is not whole: .*\(E[A-Z]+\)\.\n {2}Write to another place/m;
  /** Runs the command line in a shell; `cli` in it stands for the command. Answers what the shell prints, and its code. */
  const shell = async (line: string): Promise<{ out: string; code: number }> => {
    const run = promisify(execFile);
    const script = `cli() { "${process.execPath}" "${CLI}" "$@"; }; ${line}; echo "code $?"`;
    const { stdout } = await run("bash", ["-c", script], { cwd: home.cwd, env: home.env() });
    const [, out = "", code] = /^([\s\S]*)code (\d+)\n$/.exec(stdout) ?? [];
    return { out, code: Number(code) };
  };

  test("a disk that is full in the middle of a result -> code 74 and a sentence, also of --json", async () => {
    await writeFile(join(home.cwd, "long.txt"), "x".repeat(200_000));
    // The system takes so many KiB of a write, and refuses the next one.
    for (const [kibibytes, words] of [
      [64, `call ${WHOLE_NAMES[1]} text=@long.txt`],
      [1, "tool read_text_file --json"],
    ] as const) {
      const { out, code } = await shell(`(ulimit -f ${kibibytes}; cli ${words} 2>&1 >part.txt)`);
      expect(code).toBe(74);
      expect(out).toMatch(UNWRITTEN);
      expect((await readFile(join(home.cwd, "part.txt"))).length).toBe(kibibytes * 1024);
    }
  });

  test.each([
    "list --cached",
    "tools files",
    "tools files --json",
    "tool read_text_file",
    "search read",
    "doctor off",
    "logs",
    "stats",
    "prompts every",
    "completion bash",
    "help",
    "--version",
    "calll --json",
    "__complete 'x call '",
  ])("%s > /dev/full -> the same", async (words) => {
    const { out, code } = await shell(`cli ${words} 2>&1 >/dev/full`);
    expect({ words, code }).toEqual({ words, code: 74 });
    expect(out).toMatch(words.startsWith("calll") ? /^pi-mcp-threads: There is no command/ : UNWRITTEN);
  });

  test.each([
    ["help", 141],
    ["tools", 141],
    ["calll", 2],
  ])("%s | a reader that has gone -> no word, code %d", async (words, code) => {
    const line = `exec 3> >(true); wait $!; (cli ${words} --quiet 2>&1 >&3); code=$?; exec 3>&-; (exit $code)`;
    const run = await shell(line);
    expect(run.code).toBe(code);
    expect(run.out).toMatch(words === "calll" ? /^pi-mcp-threads: There is no command/ : /^$/);
  });

  test("stderr that takes nothing -> the result is whole, and the code stays", async () => {
    const { out, code } = await shell(`cli call ${WHOLE_NAMES[2]} text=whole 2>/dev/full`);
    expect({ out, code }).toEqual({ out: "whole\n", code: 0 });
    expect((await shell("cli calll 2>/dev/full")).code).toBe(2);
  });

  test("a large result that the worker cannot store -> what there is, code 73; with --json only the error", {
    tags: "thorough",
  }, async () => {
    const at = await makeHome();
    await at.writeMcp({ mcpServers: { odd: shows } });
    await writeFile(join(at.agentDir, "mcp-results"), "");
    await writeFile(join(at.cwd, "large.txt"), "line\n".repeat(1_000_000));
    const words = ["call", "odd", "show", "text=@large.txt"];
    const plain = await runCli(at, words);
    expect(plain.code).toBe(73);
    expect(plain.stdout).toContain("The full text could not be stored: ");
    expect(plain.stderr).toMatch(/^pi-mcp-threads: Only a part of the result can be printed/);
    const json = await runCli(at, [...words, "--json"]);
    expect(json.code).toBe(73);
    expect(JSON.parse(json.stdout)).toMatchObject({ error: { code: "unsaved" } });
  });
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

test("the first examples of the page run as they are written", { tags: "thorough" }, async () => {
  const page = await readFile(join(CLI, "..", "..", "docs", "command-line.md"), "utf8");
  const [, block = ""] = /```sh\n([\s\S]*?)```/.exec(page) ?? [];
  const examples = block.trim().split("\n");
  const at = await makeHome({ files: { "a.txt": "one\n" } });
  await at.writeMcp({ mcpServers: { files: filesystem(at.cwd) } });
  expect(examples.length).toBeGreaterThan(3);
  for (const example of examples) {
    const words = [...example.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? "");
    expect(words[0]).toBe("pi-mcp-threads");
    const run = await runCli(at, words.slice(1));
    expect({ example, code: run.code, stderr: run.stderr }).toEqual({ example, code: 0, stderr: "" });
    expect(run.stdout).not.toBe("");
  }
});

test("commands at the same time share the caches: none fails, and what is known stays whole", {
  tags: "thorough",
}, async () => {
  const before = await cli(["tools"]);
  const runs = await Promise.all(["files", "odd"].map((server) => cli(["tools", server, "--refresh"])));
  expect(runs.map(({ code }) => code)).toEqual([0, 0]);
  const after = await cli(["tools"]);
  expect(after.stdout).toBe(before.stdout);
  const log = await readFile(join(home.agentDir, "mcp-threads.log"), "utf8");
  expect(log).not.toMatch(/corrupt|cannot be written/);
});
