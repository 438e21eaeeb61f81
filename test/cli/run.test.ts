/**
 * Owns: `run --sandbox` with the real bubblewrap, as root and as a plain user: what the program can reach, that input, output,
 * exit code and signals go through, and that nothing runs where there can be no sandbox.
 */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { access, chmod, mkdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { forWholeFile } from "../support/cleanup.ts";
import { hasTmux } from "../support/has-program.ts";
import { family } from "../support/long.ts";
import { makeHome } from "../support/make-home.ts";
import type { PiHome } from "../support/pi-home.ts";
import { processesWithMarker, waitGone } from "../support/processes.ts";
import { CLI, type Run } from "./support.ts";
import { openShell } from "./tmux.ts";

const NOBODY = 65_534;
const isRoot = process.getuid?.() === 0;
const USERS = isRoot ? (["root", "a plain user"] as const) : (["a plain user"] as const);
type User = (typeof USERS)[number];
/** For what holds for each user. */
const PLAIN = "a plain user";

const homes = new Map<User, PiHome>();
const homeOf = (user: User): PiHome => homes.get(user) as PiHome;

beforeAll(async () => {
  for (const user of USERS) {
    const home = await forWholeFile(() => makeHome());
    homes.set(user, home);
    for (const folder of [".ssh", "hidden", "notes"])
      await mkdir(join(home.dir, folder), { recursive: true });
    await writeFile(join(home.dir, ".ssh", "id"), "the secret\n");
    await writeFile(join(home.dir, "hidden", "x"), "the secret\n");
    await symlink(join(home.dir, ".ssh", "id"), join(home.cwd, "link"));
    if (user !== "root" && isRoot) {
      // The folder of code that all tests share is root's, so this user makes one of its own.
      await rm(join(home.agentDir, "mcp-code"));
      execFileSync("chown", ["-R", `${NOBODY}:${NOBODY}`, home.dir]);
      await chmod(home.dir, 0o755);
    }
  }
});

function start(user: User, words: readonly string[], { stdin = "", mark = "" } = {}) {
  const home = homeOf(user);
  const ids = isRoot && user !== "root" ? { uid: NOBODY, gid: NOBODY } : {};
  const env = { ...home.env({ HOME: home.dir, SSH_AUTH_SOCK: "/run/agent" }), RUN_MARK: mark };
  const child = spawn(process.execPath, [CLI, "run", ...words], { cwd: home.cwd, env, ...ids });
  child.stdin.end(stdin);
  let stdout = "";
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
    stdout += chunk;
  });
  const ended = Promise.all([once(child, "close"), text(child.stderr)]).then(
    ([[code, signal], stderr]): Run => ({ code, signal, stdout, stderr }),
  );
  /** Settles when the program has written it, or has ended. */
  const writes = async (words: string): Promise<void> => {
    while (!stdout.includes(words) && child.exitCode === null && child.signalCode === null)
      await Promise.race([once(child.stdout, "data"), ended]);
  };
  return { child, ended, writes };
}

const sandboxed = (script: string, ...options: string[]): string[] => [
  "--sandbox",
  ...options,
  "--",
  "sh",
  "-c",
  script,
];

const exists = (file: string): Promise<boolean> =>
  access(file).then(
    () => true,
    () => false,
  );

/** A server of this machine. Answers a line for sh that tells whether a program reaches it. */
async function startServer(): Promise<string> {
  const server = createServer((socket) => socket.on("error", () => undefined).end("hello"));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  const { port } = server.address() as { port: number };
  const code = `require("net").connect(${port}, "127.0.0.1").on("data", String).on("connect", () => process.exit(0)).on("error", () => process.exit(9))`;
  return `"${process.execPath}" -e '${code}' && echo reached || echo out of reach`;
}

type Try = readonly [what: string, script: string, out: RegExp];

/** One program that makes all tries: what each writes stands behind its name. */
const scriptOf = (tries: readonly Try[], end: string): string =>
  [...tries.map(([what, script]) => `echo "${what}: $( ${script} )"`), end].join("\n");

function expectTries({ stdout }: Run, tries: readonly Try[]): void {
  const lines = stdout.trimEnd().split("\n");
  expect(lines).toEqual(tries.map(([what, , out]) => expect.stringMatching(`^${what}: ${out.source}$`)));
}

describe.each(family(USERS))("as %s", (user) => {
  test("without options: keys, home, agents and processes are hidden; input, output and exit code go through", async () => {
    const tries: Try[] = [
      ["a key", "cat ~/.ssh/id 2>/dev/null || echo hidden", /hidden/],
      ["a key by a link", "cat link 2>/dev/null || echo hidden", /hidden/],
      ["a file of the home", "(: > ~/new) 2>/dev/null || echo not written", /not written/],
      ["the way to agents", 'echo "[$SSH_AUTH_SOCK]"', /\[\]/],
      ["processes", "ls -d /proc/[0-9]* | wc -l", / *[1-6]/],
      ["control of the terminal", "( : < /dev/tty ) 2>/dev/null || echo none", /none/],
      ["a server of this machine", await startServer(), /reached/],
      ["input", 'read line; echo "$line"', /typed/],
    ];
    const script = scriptOf(tries, "echo to-stderr >&2\nexit 42");
    const run = await start(user, sandboxed(script), { stdin: "typed\n" }).ended;
    expectTries(run, tries);
    expect(run).toMatchObject({ code: 42, signal: null, stderr: "to-stderr\n" });
    expect(await exists(join(homeOf(user).dir, "new"))).toBe(false);
  });

  test("--read shows, --hide hides, --write opens, --no-network keeps a server of this machine out of reach", async () => {
    const tries: Try[] = [
      ["read", "cat ~/.ssh/id", /the secret/],
      ["hidden", "cat ~/hidden/x 2>/dev/null; ls -A ~/hidden", /(?:)/],
      ["written", ": > ~/notes/new && ls ~/notes", /new/],
      ["a server of this machine", await startServer(), /out of reach/],
    ];
    const options = ["--read", "~/.ssh", "--hide", "~/hidden", "--write", "~/notes", "--no-network"];
    const run = await start(user, sandboxed(scriptOf(tries, "exit 0"), ...options)).ended;
    expectTries(run, tries);
    expect(run).toMatchObject({ code: 0, signal: null });
    expect(await exists(join(homeOf(user).dir, "notes", "new"))).toBe(true);
  });

  test("signals reach the program, whose answer counts", async () => {
    const traps = ["INT", "HUP", "QUIT", "USR2"].map((name) => `trap 'echo got ${name}' ${name};`).join(" ");
    // A signal goes to the whole group, so the sleep ends with it.
    const script = `${traps} trap 'echo got TERM; exit 7' TERM; echo ready; while :; do sleep 1; done`;
    const { child, ended, writes } = start(user, sandboxed(script));
    await writes("ready");
    for (const name of ["INT", "HUP", "QUIT", "USR2", "TERM"]) {
      child.kill(`SIG${name}` as NodeJS.Signals);
      await writes(`got ${name}`);
    }
    const { code, stdout } = await ended;
    const got = ["INT", "HUP", "QUIT", "USR2", "TERM"].map((name) => `got ${name}\n`);
    expect({ code, stdout }).toEqual({ code: 7, stdout: `ready\n${got.join("")}` });
  });

  test("the signal that ends the program -> its code", async () => {
    expect(await start(user, sandboxed("kill -TERM $$")).ended).toMatchObject({ code: 143, signal: null });
  });

  test.each([
    ["the end of --timeout", ["--timeout", "6"], undefined, 6],
    ["the death of the command", [], "SIGKILL", null],
  ] as const)("%s ends the program and what left its group", async (_what, options, kill, code) => {
    const mark = `run-${user.length}-${options.length}`;
    const script = "setsid sleep 1000 & echo ready; sleep 1000";
    const { child, ended, writes } = start(user, sandboxed(script, ...options), { mark });
    await writes("ready");
    const running = (await processesWithMarker(`RUN_MARK=${mark}`)).map(({ pid }) => pid);
    expect(running.length).toBeGreaterThan(2);
    if (kill) child.kill(kill);
    expect((await ended).code).toBe(code);
    expect(await waitGone(running)).toEqual([]);
  });
});

test.each<[what: string, words: (file: string) => string[], said: RegExp, code: number]>([
  [
    "a path that is not there",
    (file) => sandboxed(`: > ${file}`, "--write", "~/gone"),
    /gone, which it should write, does not exist/,
    3,
  ],
  [
    "a program of a service",
    (file) => ["--sandbox", "--", "docker", file],
    /outside of any sandbox|was not found/,
    3,
  ],
  [
    "too many paths",
    (file) => sandboxed(`: > ${file}`, ...Array.from({ length: 101 }, () => ["--hide", "/x"]).flat()),
    /sandbox\.hide: must be at most 100/,
    2,
  ],
  [
    "a path too long",
    (file) => sandboxed(`: > ${file}`, "--read", "x".repeat(1_001)),
    /must be at most 1000/,
    2,
  ],
  ["no sandbox", (file) => ["--", "touch", file], /run needs --sandbox/, 2],
  ["no divider", (file) => ["--sandbox", "touch", file], /behind --: "touch" stands before it/, 2],
  ["no program", () => ["--sandbox", "--"], /run needs <command>/, 2],
  ["JSON", (file) => ["--json", ...sandboxed(`: > ${file}`)], /run takes no --json/, 2],
  [
    "a name that acts on a terminal",
    () => ["--sandbox", "--", "\u001b]0;forged\u0007x"],
    /^pi-mcp-threads: \S+: the command "x" was not found\.\n {2}Check the command behind --, and PATH\.\n$/,
    3,
  ],
])("nothing runs: %s", async (_what, words, said, code) => {
  const file = join(homeOf(PLAIN).cwd, "ran");
  const run = await start(PLAIN, words(file)).ended;
  expect(run.stderr + run.stdout).toMatch(said);
  expect(run.code).toBe(code);
  expect(await exists(file)).toBe(false);
});

test("mcp.json stays as it is, and what settings say of the environment counts", async () => {
  const home = homeOf(PLAIN);
  const file = join(home.agentDir, "mcp.json");
  const before = '{ "settings": { "inheritEnv": false } }';
  await writeFile(file, before);
  const run = await start(PLAIN, sandboxed('echo "[$RUN_MARK]"'), { mark: "not inherited" }).ended;
  expect(run).toMatchObject({ code: 0, stdout: "[]\n" });
  expect(await readFile(file, "utf8")).toBe(before);
  await writeFile(file, "{}");
});

test.runIf(hasTmux())("in a terminal: Ctrl-C reaches the program alone, and the shell goes on", async () => {
  const shell = await openShell(homeOf(USERS[0]));
  await shell.start(`run --sandbox -- sh -c 'trap "echo caught; exit 5" INT; echo ready; read line'`);
  await shell.until(/^ready$/m);
  await shell.press("C-c");
  await shell.until(/caught$/m);
  await shell.until(/^exit 5$/m);
  await shell.start("run --sandbox -- sh -c 'test -t 0 && echo ready; read line; echo \"<$line>\"'");
  await shell.until(/^ready$/m);
  await shell.type("typed here");
  await shell.until(/^<typed here>$[\s\S]*^exit 0$/m);
});
