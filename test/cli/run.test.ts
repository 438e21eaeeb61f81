/**
 * Owns: `run --sandbox` with the real bubblewrap, as root and as a plain user: what the program can reach, that input, output,
 * exit code and signals go through, and that nothing runs where there can be no sandbox.
 */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { access, chmod, mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { forWholeFile } from "../support/cleanup.ts";
import { hasTmux } from "../support/has-program.ts";
import { makeHome } from "../support/make-home.ts";
import type { PiHome } from "../support/pi-home.ts";
import { processesWithMarker, waitGone } from "../support/processes.ts";
import { CLI, type Run } from "./support.ts";
import { openShell } from "./tmux.ts";

const NOBODY = 65_534;
const isRoot = process.getuid?.() === 0;
const USERS = isRoot ? (["root", "a plain user"] as const) : (["a plain user"] as const);
type User = (typeof USERS)[number];

const homes = new Map<User, PiHome>();
const homeOf = (user: User): PiHome => homes.get(user) as PiHome;

beforeAll(async () => {
  for (const user of USERS) {
    const home = await forWholeFile(() => makeHome());
    homes.set(user, home);
    for (const folder of [".ssh", "notes"]) await mkdir(join(home.dir, folder), { recursive: true });
    await writeFile(join(home.dir, ".ssh", "id"), "the secret");
    await symlink(join(home.dir, ".ssh", "id"), join(home.cwd, "link"));
    if (user !== "root" && isRoot) {
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
  const ended = Promise.all([once(child, "close"), text(child.stdout), text(child.stderr)]).then(
    ([[code, signal], stdout, stderr]): Run => ({ code, signal, stdout, stderr }),
  );
  return { child, ended };
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

describe.each(USERS)("as %s", (user) => {
  test.each<[what: string, script: string, options: string[], out: RegExp, code: number]>([
    ["a key is hidden", "cat ~/.ssh/id || exit 9", [], /^$/, 9],
    ["a key by a link", "cat link || exit 9", [], /^$/, 9],
    ["what --read shows", "cat ~/.ssh/id", ["--read", "~/.ssh"], /^the secret$/, 0],
    ["what --hide hides", "cat notes/x 2>/dev/null; ls -A ~/notes", ["--hide", "~/notes"], /^$/, 0],
    ["the home is not written", ": > ~/new || exit 9", [], /^$/, 2],
    ["what --write opens", ": > ~/notes/new && ls ~/notes", ["--write", "~/notes"], /^new\n$/, 0],
    ["no way to agents", 'echo "[$SSH_AUTH_SOCK]"', [], /^\[\]\n$/, 0],
    ["no process of others", "ls -d /proc/[0-9]* | wc -l", [], /^ *[1-6]\n$/, 0],
    ["no control of the terminal", "( : < /dev/tty ) 2>/dev/null || echo none", [], /^none\n$/, 0],
    ["input and output go through", "read line; echo $line; echo to-stderr >&2", [], /^typed\n$/, 0],
    ["its exit code", "exit 42", [], /^$/, 42],
    ["the signal that ends it", "kill -TERM $$", [], /^$/, 143],
  ])("%s", async (_what, script, options, out, code) => {
    const run = await start(user, sandboxed(script, ...options), { stdin: "typed\n" }).ended;
    expect(run).toMatchObject({ code, signal: null });
    expect(run.stdout).toMatch(out);
    if (script.includes("to-stderr")) expect(run.stderr).toBe("to-stderr\n");
  });

  test("--no-network: a server of this machine is out of reach, and without it is not", async () => {
    const server = createServer((socket) => socket.on("error", () => undefined).end("hello")).listen(
      0,
      "127.0.0.1",
    );
    await once(server, "listening");
    onTestFinished(() => void server.close());
    const { port } = server.address() as { port: number };
    const code = `require("net").connect(${port}, "127.0.0.1").on("data", String).on("connect", () => process.exit(0)).on("error", () => process.exit(9))`;
    const words = (...options: string[]) => ["--sandbox", ...options, "--", process.execPath, "-e", code];
    expect((await start(user, words()).ended).code).toBe(0);
    expect((await start(user, words("--no-network")).ended).code).toBe(9);
  });

  test.each(["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR2"] as const)(
    "%s reaches the program, whose answer counts",
    async (name) => {
      const script = `trap 'echo got; exit 7' ${name.slice(3)}; echo ready; while :; do sleep 0.05; done`;
      const { child, ended } = start(user, sandboxed(script));
      await once(child.stdout, "data");
      child.kill(name);
      const { code, stdout } = await ended;
      expect({ code, stdout }).toEqual({ code: 7, stdout: "ready\ngot\n" });
    },
  );

  test.each([
    ["the end of --timeout", ["--timeout", "6"], undefined, 6],
    ["the death of the command", [], "SIGKILL", null],
  ] as const)("%s ends the program and what left its group", async (_what, options, kill, code) => {
    const mark = `run-${user.length}-${options.length}`;
    const script = "setsid sh -c 'while :; do sleep 0.2; done' & echo ready; sleep 1000";
    const { child, ended } = start(user, sandboxed(script, ...options), { mark });
    await once(child.stdout, "data");
    const running = (await processesWithMarker(`RUN_MARK=${mark}`)).map(({ pid }) => pid);
    expect(running.length).toBeGreaterThan(2);
    if (kill) child.kill(kill);
    expect((await ended).code).toBe(code);
    expect(await waitGone(running)).toEqual([]);
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
    const file = join(homeOf(user).cwd, "ran");
    const run = await start(user, words(file)).ended;
    expect(run.stderr + run.stdout).toMatch(said);
    expect(run.code).toBe(code);
    expect(await exists(file)).toBe(false);
  });

  test("mcp.json stays as it is, and what settings say of the environment counts", async () => {
    const home = homeOf(user);
    const file = join(home.agentDir, "mcp.json");
    const before = '{ "settings": { "inheritEnv": false } }';
    await writeFile(file, before);
    const run = await start(user, sandboxed('echo "[$RUN_MARK]"'), { mark: "not inherited" }).ended;
    expect(run).toMatchObject({ code: 0, stdout: "[]\n" });
    expect(await readFile(file, "utf8")).toBe(before);
    await writeFile(file, "{}");
  });
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
