/**
 * Owns: what a program in a sandbox can reach on Linux, as root and as a plain user, with the real bubblewrap. Each row tries
 * one way out; the same try without a sandbox succeeds, so that no row passes by itself.
 */
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { chmod, mkdir, open, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import type { ServerDefinition } from "../../workers/connection/config/entry/definition.ts";
import { sandboxOf, type WrittenSandbox } from "../../workers/connection/config/entry/sandbox.ts";
import { LEADING_TO_PRIVATE } from "../../workers/connection/room/plan.ts";
import { explainRoom, roomLaunch } from "../../workers/connection/room/room.ts";
import { launchOfServer } from "../../workers/connection/transports/stdio/stdio.ts";
import type { Launch } from "../../workers/shared/programs/processes.ts";
import { spawnServer } from "../../workers/shared/programs/processes.ts";
import { makeTempFolder, removeFolder } from "../support/temp-folder.ts";
import { definition } from "../unit/workers/connection/config/support.ts";

const NOBODY = 65_534;
/** Whether this process may mount, as root may outside of a container. */
const canMount = (): boolean =>
  process.platform === "linux" && spawnSync("unshare", ["-m", "mount", "--bind", "/", "/mnt"]).status === 0;
const isRoot = process.getuid?.() === 0;
/** As whom the program runs: a plain user needs a user namespace, root has none. */
const USERS = isRoot ? (["root", "a plain user"] as const) : (["a plain user"] as const);
type User = (typeof USERS)[number];

beforeEach(() => {
  // What hides in the environment of the tests' own user can be another user's, as whom a row runs.
  const moving = ["XDG_CONFIG_HOME", "XDG_DATA_HOME", "CARGO_HOME", "GRADLE_USER_HOME", "ZDOTDIR"];
  for (const name of [...LEADING_TO_PRIVATE, ...moving]) vi.stubEnv(name, undefined);
  return () => vi.unstubAllEnvs();
});

interface Place {
  base: string;
  home: string;
  agentDir: string;
  session: string;
  configPath?: string;
}

/** Files of the user's with servers, which this package reads or imports. */
const SERVER_FILES = [
  ...[
    ".config/mcp/mcp.json",
    ".agents/mcp.json",
    ".agents/mcp/mcp.json",
    ".codeium/windsurf/mcp_config.json",
  ],
  ...[".config/Claude/claude_desktop_config.json", ".config/Code/User/mcp.json", ".opencode/opencode.json"],
];

/** A home with secrets, a project and a folder for notes. */
async function createPlace(): Promise<Place> {
  const base = await makeTempFolder("pmt-room");
  onTestFinished(() => removeFolder(base));
  const home = join(base, "home");
  const agentDir = join(home, ".pi", "agent");
  const session = join(base, "project");
  const folders = [".ssh", ".pi/agent/mcp-oauth", ".pi/agent/extensions", ".config/gh", "notes", "real"];
  for (const folder of folders) await mkdir(join(home, folder), { recursive: true });
  await mkdir(join(session, ".git", "hooks"), { recursive: true });
  await writeFile(join(home, ".ssh", "id"), "the secret");
  await writeFile(join(home, ".npmrc"), "the secret");
  await writeFile(join(home, ".pi/agent/auth.json"), "the secret");
  await writeFile(join(home, ".pi/agent/mcp-oauth/tokens.json"), "the secret");
  await writeFile(join(home, ".pi/agent/extensions/x.js"), "code");
  await writeFile(join(home, ".bashrc"), "old");
  for (const file of [...SERVER_FILES, "named.json"]) {
    await mkdir(dirname(join(home, file)), { recursive: true });
    await writeFile(join(home, file), "the secret");
  }
  await writeFile(join(home, "real", "token"), "the secret");
  await symlink(join(home, "real"), join(home, ".aws"));
  await symlink(join(home, ".ssh", "id"), join(session, "link"));
  return { base, home, agentDir, session };
}

interface Try {
  /** JavaScript of an asynchronous function with `fs`, `net`, `os`, `child`, `home` and `base`. What it returns is printed. */
  code: string;
  sandbox?: WrittenSandbox;
  entry?: Record<string, unknown>;
  env?: Record<string, string>;
}

const program = ({ code }: Try, { home, base }: Place): string => `
const fs = require("node:fs"), net = require("node:net"), os = require("node:os"), child = require("node:child_process"), dns = require("node:dns/promises");
const home = ${JSON.stringify(home)}, base = ${JSON.stringify(base)};
const settled = (socket) => new Promise((resolve) => socket.on("connect", () => resolve("connected")).on("error", (error) => resolve(error.code)));
(async () => { ${code} })().then((out) => console.log("got:", out), (error) => console.log("refused:", error.code ?? error.message)).finally(() => process.exit());`;

const launchOf = (tried: Try, place: Place): Launch => ({
  program: process.execPath,
  args: ["-e", program(tried, place)],
  env: { HOME: place.home, PATH: process.env.PATH ?? "", ...tried.env },
  cwd: place.session,
});

async function inRoom(tried: Try, place: Place): Promise<Launch> {
  const { sandbox = true, entry = {}, env = {} } = tried;
  const server: ServerDefinition = definition("s", { command: "node", ...entry });
  const room = sandboxOf(sandbox);
  if (!room) throw new Error("the row has no sandbox");
  const own = (entry.env ?? env) as Record<string, string>;
  const { launch } = await roomLaunch(launchOf(tried, place), server, room, { ...place, own });
  return launch;
}

/** Runs it as a server is started, and answers the line that it prints. */
async function run(launch: Launch, user: User, { base }: Place): Promise<string> {
  const isOther = isRoot && user !== "root";
  if (isOther) execFileSync("chown", ["-R", `${NOBODY}:${NOBODY}`, base]);
  if (isOther) await chmod(base, 0o755);
  const ids = isOther ? { uid: NOBODY, gid: NOBODY } : {};
  const { program: file, args, env, cwd } = launch;
  const process = spawn(file, args, { env, cwd, stdio: ["pipe", "pipe", "pipe"], detached: true, ...ids });
  const [out, errors] = await Promise.all([text(process.stdout), text(process.stderr)]);
  return `${out.trim()}${errors === "" ? "" : `\n${errors.trim()}`}`;
}

const GOT = /^got: /;
const REFUSED = /^refused: /;
/** What is tried -> what comes of it in the sandbox, and without one if that is not `got`. */
const ROWS: [what: string, tried: Try, inside: RegExp, outside?: RegExp][] = [
  ["a key in ~/.ssh", { code: `return fs.readFileSync(home + "/.ssh/id", "utf8")` }, REFUSED, /the secret/],
  [
    "a file with tokens",
    { code: `return fs.readFileSync(home + "/.npmrc", "utf8")` },
    /^got:$/,
    /the secret/,
  ],
  [
    "Pi's keys",
    { code: `return fs.readFileSync(home + "/.pi/agent/auth.json", "utf8")` },
    REFUSED,
    /the secret/,
  ],
  ...SERVER_FILES.map((file): (typeof ROWS)[number] => [
    `tokens of other servers in ~/${file}`,
    { code: `return fs.readFileSync(home + "/${file}", "utf8")` },
    /^got:$|^refused: ENOENT$/,
    /the secret/,
  ]),
  ["sign-ins", { code: `return fs.readdirSync(home + "/.pi/agent/mcp-oauth")` }, REFUSED, /tokens/],
  [
    "extensions may be read",
    { code: `return fs.readFileSync(home + "/.pi/agent/extensions/x.js", "utf8")` },
    GOT,
  ],
  [
    "a key by a link in the project",
    { code: `return fs.readFileSync("link", "utf8")` },
    REFUSED,
    /the secret/,
  ],
  [
    "a hidden place that is a link itself, by its own path",
    { code: `return fs.readFileSync(home + "/real/token", "utf8")` },
    REFUSED,
    /the secret/,
  ],
  [
    "a key by /proc/self/root",
    { code: `return fs.readFileSync("/proc/self/root" + home + "/.ssh/id", "utf8")` },
    REFUSED,
    /the secret/,
  ],
  [
    "a key by the root of process 1",
    { code: `return fs.readFileSync("/proc/1/root" + home + "/.ssh/id", "utf8")` },
    REFUSED,
    /./,
  ],
  [
    "a hidden folder of the entry",
    { code: `return fs.readdirSync(home + "/notes")`, sandbox: { hide: ["~/notes"] } },
    /^got: \[\]$/,
  ],
  [
    "what the entry opens",
    { code: `return fs.readFileSync(home + "/.ssh/id", "utf8")`, sandbox: { read: ["~/.ssh/id"] } },
    /the secret/,
  ],
  [
    "what lies beside what the entry opens",
    { code: `return fs.readdirSync(home + "/.ssh").length`, sandbox: { read: ["~/.ssh/id"] } },
    /^got: 1$/,
  ],
  ["a file of the home folder is written", { code: `fs.writeFileSync(home + "/.bashrc", "evil")` }, REFUSED],
  ["a file of the project is written", { code: `fs.writeFileSync("x", "evil")` }, REFUSED],
  [
    "what may be written",
    { code: `fs.writeFileSync(home + "/notes/x", "good")`, sandbox: { write: ["~/notes"] } },
    GOT,
  ],
  [
    "a secret below what may be written",
    { code: `return fs.readdirSync(home + "/.ssh")`, sandbox: { write: ["~"], hide: ["~/real"] } },
    /^got: \[\]$/,
    /id/,
  ],
  [
    "the working folder, if the entry names one",
    { code: `fs.writeFileSync("x", "good")`, entry: { cwd: "." } },
    GOT,
  ],
  [
    "a git hook of the working folder",
    { code: `fs.writeFileSync(".git/hooks/pre-commit", "evil")`, entry: { cwd: "." } },
    REFUSED,
  ],
  [
    "a hard link to a file outside",
    {
      code: `fs.linkSync(home + "/.bashrc", home + "/notes/b"); fs.appendFileSync(home + "/notes/b", "evil")`,
      sandbox: { write: ["~/notes"] },
    },
    REFUSED,
  ],
  [
    "a file outside by renaming",
    { code: `fs.renameSync(home + "/.bashrc", home + "/notes/b")`, sandbox: { write: ["~/notes"] } },
    REFUSED,
  ],
  [
    "a file outside by a link that it makes",
    {
      code: `fs.rmSync(home + "/notes/b", { force: true }); fs.symlinkSync(home + "/.bashrc", home + "/notes/b"); fs.appendFileSync(home + "/notes/b", "evil")`,
      sandbox: { write: ["~/notes"] },
    },
    REFUSED,
  ],
  [
    "its own data are kept",
    {
      code: `fs.mkdirSync(process.env.XDG_DATA_HOME, { recursive: true }); fs.writeFileSync(process.env.XDG_DATA_HOME + "/x", "")`,
    },
    GOT,
    REFUSED,
  ],
  [
    "a temp folder of its own",
    { code: `fs.writeFileSync("/tmp/pmt-room-own", ""); return fs.readdirSync("/tmp").length < 5` },
    /^got: true$/,
    /./,
  ],
  [
    "more than a gigabyte in its temp folder",
    {
      code: `fs.writeFileSync("/tmp/x", ""); const block = Buffer.alloc(2 ** 26); for (let i = 0; i < 17; i++) fs.appendFileSync("/tmp/x", block)`,
    },
    /^refused: ENOSPC$/,
    /./,
  ],
  [
    "the mounts are taken away",
    {
      code: `return child.execSync("unshare -Urm sh -c 'umount " + home + "/.ssh; cat " + home + "/.ssh/id'").toString()`,
    },
    REFUSED,
    /./,
  ],
  [
    "the environment of the program that started it",
    {
      code: `return fs.readFileSync("/proc/" + process.ppid + "/environ", "utf8").length > 0 && process.ppid > 1`,
    },
    /^(?:got: false|refused)/,
    /./,
  ],
  ["a signal to a process outside", { code: `process.kill(${process.pid}, 0)` }, /^refused: ESRCH$/, /./],
  [
    "processes outside",
    { code: `return fs.readdirSync("/proc").filter((name) => Number(name) > 0).length < 10` },
    /^got: true$/,
    /^got: false$/,
  ],
  [
    "variables that lead to sockets of the user",
    { code: `return process.env.SSH_AUTH_SOCK`, env: { SSH_AUTH_SOCK: "/x" }, entry: { env: {} } },
    /^got: undefined$/,
    /^got: \/x$/,
  ],
  [
    "a variable that the entry itself sets",
    { code: `return process.env.SSH_AUTH_SOCK`, env: { SSH_AUTH_SOCK: "/x" } },
    /^got: \/x$/,
  ],
  [
    "what the loader obeys reaches only the server",
    { code: `return process.env.LD_BIND_NOW`, env: { LD_BIND_NOW: "1" } },
    /^got: 1$/,
  ],
  [
    "descriptors of the program that started it",
    {
      code: `return fs.readdirSync("/proc/self/fd").map((fd) => { try { return fs.readlinkSync("/proc/self/fd/" + fd) } catch { return "" } }).filter((path) => path.startsWith(base))`,
    },
    /^got: \[\]$/,
  ],
];

describe.each(USERS)("in a sandbox, as %s", (user) => {
  test.each(ROWS)("%s", async (_what, tried, inside, outside) => {
    const place = await createPlace();
    const secret = await open(join(place.home, ".ssh", "id"));
    onTestFinished(() => secret.close());
    const launch = await inRoom(tried, place);
    expect(await run(launch, user, place)).toMatch(inside);
    if (outside || inside === REFUSED)
      expect(await run(launchOf(tried, place), user, place)).toMatch(outside ?? GOT);
  });

  test("tokens of other servers in the file of --mcp-config", async () => {
    const place = await createPlace();
    const code = `return fs.readFileSync(home + "/named.json", "utf8")`;
    const named = { ...place, configPath: join(place.home, "named.json") };
    expect(await run(await inRoom({ code }, named), user, place)).toBe("got:");
    expect(await run(await inRoom({ code }, place), user, place)).toBe("got: the secret");
  });

  test("a path where another user of the machine listens leads elsewhere now -> it starts, and sees what it saw", async () => {
    const place = await createPlace();
    const path = join(place.base, "theirs.sock");
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(path, resolve));
    onTestFinished(() => void server.close());
    await rm(path);
    await symlink("/usr", path);
    const code = `return fs.existsSync("/usr/bin")`;
    expect(await run(await inRoom({ code }, place), user, place)).toBe("got: true");
  });

  test("private places that variables have moved", async () => {
    const place = await createPlace();
    const { home } = place;
    await mkdir(join(home, "conf", "gh"), { recursive: true });
    const files = ["conf/gh/hosts.yml", "kube-a", "kube-b", "plain"].map((file) => join(home, file));
    for (const file of files) await writeFile(file, "the secret");
    vi.stubEnv("XDG_CONFIG_HOME", join(home, "conf"));
    vi.stubEnv("KUBECONFIG", [files[1], files[2], "relative"].join(":"));
    vi.stubEnv("CODEX_HOME", home);
    const code = `return ${JSON.stringify(files)}.map((file) => { try { return fs.readFileSync(file, "utf8") } catch ({ code }) { return code } }).join()`;
    expect(await run(await inRoom({ code }, place), user, place)).toBe("got: ENOENT,,,the secret");
  });

  test("the folder of the hub's secret, where a variable has moved it, and made after the room was planned", async () => {
    const place = await createPlace();
    const folder = join(place.home, "runtime");
    await mkdir(folder);
    vi.stubEnv("XDG_RUNTIME_DIR", folder);
    const code = `return fs.readFileSync(${JSON.stringify(join(folder, "pi-mcp", "secret"))}, "utf8")`;
    const launch = await inRoom({ code }, place);
    await mkdir(join(folder, "pi-mcp"));
    await writeFile(join(folder, "pi-mcp", "secret"), "the secret");
    expect(await run(launch, user, place)).toMatch(REFUSED);
  });

  test("single private files of folders that variables have moved; what lies beside them can be read", async () => {
    const place = await createPlace();
    const folder = join(place.home, "moved");
    const names = [
      "credentials",
      "credentials.toml",
      "gradle.properties",
      ".zsh_history",
      "age.txt",
      "plain",
    ];
    await mkdir(folder);
    for (const name of names) await writeFile(join(folder, name), name);
    for (const name of ["CARGO_HOME", "GRADLE_USER_HOME", "ZDOTDIR"]) vi.stubEnv(name, folder);
    vi.stubEnv("SOPS_AGE_KEY_FILE", join(folder, "age.txt"));
    const code = `return ${JSON.stringify(names)}.map((name) => fs.readFileSync(${JSON.stringify(folder)} + "/" + name, "utf8")).join()`;
    expect(await run(await inRoom({ code }, place), user, place)).toBe("got: ,,,,,plain");
  });

  test("a history that goes nowhere, by a variable or a link -> the device stays what it is", async () => {
    const place = await createPlace();
    await symlink("/dev/null", join(place.home, ".bash_history"));
    vi.stubEnv("HISTFILE", "/dev/null");
    const code = `fs.writeFileSync("/dev/null", "x"); return fs.readFileSync("/dev/null", "utf8")`;
    expect(await run(await inRoom({ code }, place), user, place)).toBe("got:");
  });

  test("the network, names, and sockets of the user", async () => {
    const place = await createPlace();
    const path = join(place.home, "agent.sock");
    const abstract = `\0pmt-room-${process.pid}-${user.length}`;
    const servers = [createServer(), createServer(), createServer()] as const;
    const [tcp, unix, hidden] = servers;
    for (const [server, where] of [
      [tcp, { port: 0, host: "127.0.0.1" }],
      [unix, { path }],
      [hidden, { path: abstract }],
    ] as const)
      await new Promise<void>((resolve) => server.listen(where, resolve));
    onTestFinished(() => servers.forEach((server) => void server.close()));
    await chmod(path, 0o777);
    const { port } = tcp.address() as { port: number };
    const code = `return [
      await settled(net.connect({ port: ${port}, host: "127.0.0.1" })),
      await settled(net.connect({ path: ${JSON.stringify(path)} })),
      await settled(net.connect({ path: ${JSON.stringify(abstract)} })),
    ].join()`;
    const without = await run(launchOf({ code }, place), user, place);
    expect(without).toBe("got: connected,connected,connected");
    // Only a network of its own keeps it from sockets without a file (unix(7), abstract).
    const withNetwork = await run(await inRoom({ code }, place), user, place);
    expect(withNetwork).toMatch(/^got: connected,(?:EACCES|ECONNREFUSED),connected$/);
    const offline = await run(await inRoom({ code, sandbox: { network: false } }, place), user, place);
    expect(offline).toMatch(/^got: (?:ENETUNREACH|ECONNREFUSED),(?:EACCES|ECONNREFUSED),ECONNREFUSED$/);
    const lookup = { code: `return dns.lookup("example.com")`, sandbox: { network: false } };
    expect(await run(await inRoom(lookup, place), user, place)).toMatch(REFUSED);
  });

  test("a child that leaves the group and its parent ends with the server", async () => {
    const place = await createPlace();
    const file = join(place.home, "notes", "alive");
    const beats = `setInterval(() => require("fs").appendFileSync(${JSON.stringify(file)}, "x"), 20)`;
    const code = `
      const loop = child.spawn(process.execPath, ["-e", ${JSON.stringify(beats)}], { detached: true, stdio: "ignore" });
      loop.unref();
      await new Promise((resolve) => setTimeout(resolve, 1e6));`;
    const launch = await inRoom({ code, sandbox: { write: ["~/notes"] } }, place);
    const ids = isRoot && user !== "root" ? { uid: NOBODY, gid: NOBODY } : {};
    if (ids.uid) execFileSync("chown", ["-R", `${NOBODY}:${NOBODY}`, place.base]);
    await chmod(place.base, 0o755);
    const { program: bwrap, args, env, cwd } = launch;
    const server = spawn(bwrap, args, { env, cwd, stdio: "ignore", detached: true, ...ids });
    const beaten = () =>
      readFile(file, "utf8").then(
        ({ length }) => length,
        () => 0,
      );
    await expect.poll(beaten).toBeGreaterThan(2);
    process.kill(-(server.pid ?? 0), "SIGTERM");
    await expect.poll(() => server.exitCode ?? server.signalCode).not.toBeNull();
    const last = await beaten();
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(await beaten()).toBeLessThanOrEqual(last + 1);
  });
});

test("root makes the folders of rooms in a user's home -> they are that user's, who makes more of them", async () => {
  const place = await createPlace();
  if (isRoot) execFileSync("chown", ["-R", `${NOBODY}:${NOBODY}`, place.base]);
  await inRoom({ code: "" }, place);
  const rooms = join(place.agentDir, "mcp-rooms");
  const made = await readdir(rooms, { recursive: true });
  expect(made).toEqual(expect.arrayContaining(["nothing", expect.stringMatching(/^s-[0-9a-f]{8}$/)]));
  const owners = await Promise.all(["", ...made].map(async (name) => (await stat(join(rooms, name))).uid));
  expect([...new Set(owners)]).toEqual([isRoot ? NOBODY : process.getuid?.()]);
});

/** What a server does in one start -> what it then tries in the next one. Without the rule it would get the secret. */
const PLANTED: [what: string, more: Omit<Try, "code">, first: string, then: string, inside: RegExp][] = [
  [
    "a link where other programs look, to a hidden folder",
    { entry: { cwd: "." } },
    `fs.symlinkSync(home + "/.ssh", ".vscode")`,
    `return fs.readFileSync(home + "/.ssh/id", "utf8")`,
    REFUSED,
  ],
  [
    "a link in place of its working folder, which lies in a writable one",
    { entry: { cwd: "../home/notes/work" }, sandbox: { write: ["~/notes"] } },
    `process.chdir("/"); fs.renameSync(home + "/notes/work", home + "/notes/old"); fs.symlinkSync(home + "/.ssh", home + "/notes/work")`,
    // A hidden folder is an empty one of its own.
    `return fs.existsSync(home + "/.ssh/id")`,
    /^got: false$/,
  ],
  [
    "a link in place of what it may write, which lies in a writable folder",
    { sandbox: { write: ["~/notes", "~/notes/work"] } },
    `fs.renameSync(home + "/notes/work", home + "/notes/old"); fs.symlinkSync(home + "/.ssh", home + "/notes/work")`,
    // A hidden folder is an empty one of its own.
    `return fs.existsSync(home + "/.ssh/id")`,
    /^got: false$/,
  ],
  [
    "a link in place of what it may read, which lies in a writable folder",
    { sandbox: { write: ["~/notes"], read: ["~/notes/work"] } },
    `fs.renameSync(home + "/notes/work", home + "/notes/old"); fs.symlinkSync(home + "/.ssh", home + "/notes/work")`,
    `return fs.readFileSync(home + "/.ssh/id", "utf8")`,
    REFUSED,
  ],
  [
    "another name for the folder above a hidden one",
    { sandbox: { write: ["~/notes"], hide: ["~/notes/work/secrets"] } },
    `fs.renameSync(home + "/notes/work", home + "/notes/other")`,
    `return fs.readFileSync(home + "/notes/other/secrets/key", "utf8")`,
    REFUSED,
  ],
  [
    "another name for the folder above a private one of the home folder",
    { sandbox: { write: ["~"], hide: ["~/real"] } },
    `fs.renameSync(home + "/.config", home + "/config")`,
    `return fs.readFileSync(home + "/config/gh/hosts.yml", "utf8")`,
    REFUSED,
  ],
  [
    "a repository's folder of its own in place of the one whose hooks it may not write",
    { entry: { cwd: "." } },
    `fs.renameSync(".git", "git"); fs.mkdirSync(".git/hooks", { recursive: true }); fs.writeFileSync(".git/hooks/pre-commit", "evil")`,
    `return fs.readFileSync(".git/hooks/pre-commit", "utf8")`,
    REFUSED,
  ],
];

describe.each(USERS)("what a server leaves for its next start, as %s", (user) => {
  test.each(PLANTED)("%s", async (_what, more, first, then, inside) => {
    const place = await createPlace();
    await mkdir(join(place.home, "notes", "work", "secrets"), { recursive: true });
    await writeFile(join(place.home, "notes", "work", "secrets", "key"), "the secret");
    await writeFile(join(place.home, ".config", "gh", "hosts.yml"), "the secret");
    for (const code of [first, then]) {
      // A room that cannot be made any more is as good as one that holds.
      const launch = await inRoom({ ...more, code }, place).catch(({ message }: Error) => message);
      const said = typeof launch === "string" ? `refused: ${launch}` : await run(launch, user, place);
      if (code === then) expect(said).toMatch(inside);
    }
  });
});

/** What is asked in a place that others have prepared -> what comes of it. Each has got the secret, or has written, before. */
const PREPARED: [what: string, more: Try & { at?: string; byProject?: true }, inside: RegExp][] = [
  [
    "a project's server whose folder lies in a hidden one",
    {
      byProject: true,
      entry: { cwd: "../home/.ssh/deep" },
      code: `return fs.readFileSync(home + "/.ssh/deep/id", "utf8")`,
    },
    /^\s*bwrap: Can't chdir/,
  ],
  [
    "a project's server whose folder is another one of the user's",
    { byProject: true, entry: { cwd: "../home/notes" }, code: `fs.writeFileSync(home + "/notes/x", "")` },
    /^refused: EROFS/,
  ],
  [
    "a folder that is a link of the project to the home folder",
    { entry: { cwd: "out" }, code: `fs.writeFileSync(home + "/.bashrc", "evil")` },
    /^refused: EROFS/,
  ],
  [
    "a writable path that is a link of the project to a hidden folder",
    { sandbox: { write: ["./keys"] }, code: `return fs.readFileSync(home + "/.ssh/id", "utf8")` },
    /^refused: ENOENT/,
  ],
  [
    "a folder whose path to the home folder is another one than HOME",
    { entry: { cwd: "../same" }, code: `fs.writeFileSync(home + "/.bashrc", "evil")` },
    /^refused: EROFS/,
  ],
  [
    "Pi runs in its own folder",
    { at: ".pi/agent", code: `return fs.readFileSync("auth.json", "utf8")` },
    /^refused: ENOENT/,
  ],
  [
    "Pi runs among sign-ins",
    {
      at: ".pi/agent/mcp-oauth",
      code: `return fs.readFileSync(home + "/.pi/agent/mcp-oauth/tokens.json", "utf8")`,
    },
    /^\s*bwrap: Can't chdir/,
  ],
  [
    "a folder with two dots above a hidden one",
    {
      sandbox: { write: ["~/notes"], hide: ["~/notes/..deep/secrets"] },
      code: `fs.renameSync(home + "/notes/..deep", home + "/notes/free"); return fs.readFileSync(home + "/notes/free/secrets/key", "utf8")`,
    },
    /^refused: EBUSY/,
  ],
];

describe.each(USERS)("what others have prepared, as %s", (user) => {
  test.each(PREPARED)("%s", async (_what, { at, byProject, ...tried }, inside) => {
    const place = await createPlace();
    const { base, home, session } = place;
    await mkdir(join(home, ".ssh", "deep"));
    await writeFile(join(home, ".ssh", "deep", "id"), "the secret");
    await mkdir(join(home, "notes", "..deep", "secrets"), { recursive: true });
    await writeFile(join(home, "notes", "..deep", "secrets", "key"), "the secret");
    await symlink(home, join(session, "out"));
    await symlink(join(home, ".ssh"), join(session, "keys"));
    await symlink(home, join(base, "same"));
    const folder = at === undefined ? session : join(home, at);
    const cwd = join(session, String(tried.entry?.cwd ?? "."));
    const launch = { ...launchOf(tried, place), cwd: at === undefined ? cwd : folder };
    const server: ServerDefinition = {
      ...definition("s", { command: "node", ...tried.entry }),
      ...(byProject && { project: true, definedByProject: true }),
    };
    const room = sandboxOf(tried.sandbox ?? true);
    if (!room) throw new Error("the row has no sandbox");
    const made = await roomLaunch(launch, server, room, { ...place, session: folder, own: {} });
    expect(await run(made.launch, user, place)).toMatch(inside);
  });
});

describe.each(USERS)("in a temp folder itself, as %s", (user) => {
  /** A file of the machine there, and what a program sees of it. */
  async function seenFrom(
    folder: string,
    more: { isProgram?: boolean; read?: string[] } = {},
  ): Promise<string> {
    const place = await createPlace();
    const mark = join(folder, `pmt-room-mark-${process.pid}`);
    await writeFile(mark, "#!/bin/sh\necho got: started", { mode: 0o755 });
    onTestFinished(() => rm(mark, { force: true }));
    const own = join(folder, `pmt-room-own-${process.pid}`);
    const code = `fs.writeFileSync(${JSON.stringify(own)}, ""); return fs.existsSync(${JSON.stringify(mark)})`;
    const usual = { ...launchOf({ code }, place), cwd: folder };
    const launch = more.isProgram ? { ...usual, program: mark, args: [] } : usual;
    const room = sandboxOf({ read: more.read ?? [] });
    if (!room) throw new Error("no sandbox");
    const facts = { ...place, session: more.isProgram ? place.session : folder, own: {} };
    const made = await roomLaunch(launch, definition("s", { command: "node" }), room, facts);
    const said = await run(made.launch, user, place);
    expect(await readFile(own).catch(() => "not outside")).toBe("not outside");
    return said;
  }

  test("/tmp -> what others have there is hidden, and it can write a temp file of its own", async () => {
    expect(await seenFrom("/tmp")).toBe("got: false");
  });

  test("/var/tmp -> what others have there is hidden", async () => {
    expect(await seenFrom("/var/tmp")).toMatch(/^got: false|^refused: EACCES/);
  });

  test("the entry names the folder -> it can be read", async () => {
    expect(await seenFrom("/var/tmp", { read: ["/var/tmp"] })).toBe("refused: EROFS");
  });

  test("the program lies there -> it starts", async () => {
    expect(await seenFrom("/tmp", { isProgram: true })).toBe("got: started");
  });
});

describe("a sandbox that cannot be made", () => {
  const refusal = async (entry: Record<string, unknown>, sandbox: WrittenSandbox = true): Promise<string> => {
    const place = await createPlace();
    return inRoom({ code: "", entry, sandbox }, place).then(
      () => "started",
      (error: { message: string; remedy?: string }) => `${error.message} ${error.remedy}`,
    );
  };

  test("a program that has its server started elsewhere -> refused with a sentence", async () => {
    expect(await refusal({ command: "docker" })).toBe(
      's: its sandbox cannot be made: docker has the server started by a service, outside of any sandbox. Take "sandbox" out, or write "sandbox": false into its entry.',
    );
    expect(await refusal({ command: "/usr/bin/podman" })).toMatch(
      /podman has the server started by a service/,
    );
  });

  test("XDG_RUNTIME_DIR is the home folder, or holds it -> named, since it would have to be hidden", async () => {
    const place = await createPlace();
    for (const folder of [place.home, place.base, place.session]) {
      vi.stubEnv("XDG_RUNTIME_DIR", folder);
      await expect(inRoom({ code: "" }, place)).rejects.toMatchObject({
        message: expect.stringContaining("XDG_RUNTIME_DIR"),
      });
    }
  });

  test("a path that is not there -> named", async () => {
    expect(await refusal({}, { write: ["~/none"] })).toMatch(
      /home\/none, which it should write, does not exist\. Make it/,
    );
  });

  test("a private place that is a link which the server could replace -> named, unless what it leads to is hidden, too", async () => {
    expect(await refusal({}, { write: ["~"] })).toMatch(/home\/\.aws is or passes a link in a folder/);
    expect(await refusal({}, { write: ["~"], hide: ["~/real"] })).toBe("started");
  });

  test.each([
    ["bwrap: No permissions to create new namespace, likely because ...", /--cap-add SYS_ADMIN/],
    ["bwrap: setting up uid map: Permission denied", /apparmor_restrict_unprivileged_userns/],
    ["bwrap: Can't mount proc on /newroot/proc: Operation not permitted", /systempaths=unconfined/],
    ["bwrap: Unknown option --size", /bubblewrap 0\.7/],
    ["bwrap: execvp /opt/x: No such file or directory", /sandbox\.read/],
    ["bwrap: something new", /Run its command in a shell/],
  ])("%s", (said, remedy) => {
    const error = explainRoom("s", `noise\n${said}\n`);
    expect(error?.message).toBe(`s: its sandbox cannot be made: ${said}.`);
    expect(error?.remedy).toMatch(remedy);
  });

  test("no word of bwrap -> no explanation", () => {
    expect(explainRoom("s", "the server: bwrap: failed")).toBeUndefined();
  });
});

test.runIf(canMount())(
  "a second mount of the file system -> what is hidden is hidden there, too",
  async () => {
    const { home, agentDir, session } = await createPlace();
    // Not in a temp folder, which is hidden whole. The mount is the child's own.
    const secret = join("/mnt", home, ".ssh", "id");
    const rooms = new URL("../../workers/connection/", import.meta.url);
    const script = `
    const { parseEntry } = await import(${JSON.stringify(`${rooms}config/entry/definition.ts`)});
    const { sandboxOf } = await import(${JSON.stringify(`${rooms}config/entry/sandbox.ts`)});
    const { roomLaunch } = await import(${JSON.stringify(`${rooms}room/room.ts`)});
    const { spawnSync } = await import("node:child_process");
    const { definition } = parseEntry("s", { command: "cat" }, { file: "/mcp.json", origin: "user" });
    const program = { program: "/bin/cat", args: [${JSON.stringify(secret)}], env: process.env, cwd: ${JSON.stringify(session)} };
    const at = ${JSON.stringify({ home, agentDir, session, own: {} })};
    const { launch } = await roomLaunch(program, definition, sandboxOf(true), at);
    const run = ({ program, args, env, cwd }) => spawnSync(program, args, { env, cwd, encoding: "utf8" });
    console.log(JSON.stringify([run(program).stdout, run(launch).stdout, run(launch).status]));`;
    const mounted = `mount --bind / /mnt && exec "$0" --input-type=module -e "$1"`;
    const { stdout } = spawnSync("unshare", ["-m", "sh", "-c", mounted, process.execPath, script], {
      encoding: "utf8",
    });
    expect(JSON.parse(stdout)).toEqual(["the secret", "", 1]);
  },
);

test("the server's own start has no other descriptors than stdin, stdout and stderr", async () => {
  const place = await createPlace();
  const secret = await open(join(place.home, ".ssh", "id"));
  onTestFinished(() => secret.close());
  const code = `return fs.readdirSync("/proc/self/fd").filter((fd) => { try { return fs.readlinkSync("/proc/self/fd/" + fd).includes("/.ssh/") } catch { return false } }).length`;
  const server = spawnServer(await inRoom({ code }, place));
  expect(await text(server.stdout)).toMatch(/^got: 0/);
});

test.each<[string, Partial<ServerDefinition>, boolean]>([
  ["a project's server -> nothing", { project: true, definedByProject: true }, false],
  ["a package's server -> nothing", { project: true, origin: "package" }, false],
  ["a server of the user that a project changed -> nothing", { project: true }, false],
  ["a server of the user that a project switched on", { project: true, enabledByProject: ".mcp.json" }, true],
  ["a server of the user", {}, true],
])("what the variables of %s have npm do outside of its sandbox", async (_who, facts, runs) => {
  const { base, agentDir, session } = await createPlace();
  const [evil, mark] = [join(base, "evil.cjs"), join(base, "mark")];
  await writeFile(evil, `require("node:fs").writeFileSync(${JSON.stringify(mark)}, "")`);
  vi.stubEnv("npm_config_offline", "true");
  vi.stubEnv("npm_config_cache", join(base, "npm"));
  const env = { NODE_OPTIONS: `--require ${evil}` };
  const server: ServerDefinition = {
    ...definition("s", { command: "npx", args: ["-y", "pmt-no-such-package"], env, sandbox: true }),
    ...facts,
  };
  if (server.target.kind !== "stdio") throw new Error("no command");
  const started = launchOfServer(server.target, {
    ...{ definition: server, cwd: session, npxCacheFile: join(agentDir, "mcp-npx-cache.json") },
    ...{ signal: new AbortController().signal, onNote: () => undefined },
    ...{ onSpawn: () => undefined, onExit: () => undefined },
  });
  // npm does not have the package, and is asked for it before that is known.
  const made = await started.catch((error: unknown) => error);
  expect(
    await readFile(mark).then(
      () => true,
      () => false,
    ),
  ).toBe(runs);
  if (!(made instanceof Error)) expect(made).toMatchObject({ env });
});
