/**
 * Owns: what an envFile may decide: who wrote the file, which variables are left out, and that a server is started
 * only with the content to which the user agreed. Real files and links.
 */
import { createHook } from "node:async_hooks";
import { execFile } from "node:child_process";
import { mkdir, rename, rm, stat, symlink, writeFile } from "node:fs/promises";
import { join, win32 } from "node:path";
import { promisify } from "node:util";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { LIMITS } from "../../../../../../src/shared/protocol/limits.ts";
import type { ServerDefinition } from "../../../../../../workers/connection/config/entry/definition.ts";
import { applyOverride } from "../../../../../../workers/connection/config/entry/override.ts";
import {
  decidesWhatRuns,
  isData,
} from "../../../../../../workers/connection/config/env-files/deciding-variables.ts";
import {
  agreedEntries,
  contentOf,
  lookAtEnvFiles,
} from "../../../../../../workers/connection/config/env-files/env-files.ts";
import { ScriptReader } from "../../../../../../workers/connection/config/env-files/scripts.ts";
import { isRemotePath, wayTo } from "../../../../../../workers/connection/config/files/path-stops.ts";
import { decideTrust } from "../../../../../../workers/connection/config/trust/decide.ts";
import { resolveTarget } from "../../../../../../workers/connection/config/values/values.ts";
import { isWithin } from "../../../../../../workers/shared/programs/find-program.ts";
import { definition, PROJECT_FILE, PROJECT_PI, put, temporaryFolder, USER } from "../support.ts";

/** The words of several rows. */
const words = (...rows: string[]): string[] => rows.join(" ").split(" ");

const ENV_TEXT = "NODE_OPTIONS=--require=./evil.cjs\nTOKEN=s3cret\n";

describe("decidesWhatRuns", () => {
  test.each(
    words(
      "PATH ENV BASH_ENV PROMPT_COMMAND BASH_FUNC_ls%% LD_PRELOAD LD_AUDIT DYLD_INSERT_LIBRARIES",
      "NODE_OPTIONS NODE_PATH NODE_EXTRA_CA_CERTS NODE_TLS_REJECT_UNAUTHORIZED npm_config_registry",
      "NPM_CONFIG_SCRIPT_SHELL PYTHONPATH PYTHONSTARTUP PERL5LIB PERL5OPT RUBYLIB RUBYOPT GEM_PATH",
      "UV_INDEX_URL PIP_INDEX_URL PIP_EXTRA_INDEX_URL GOPROXY GOFLAGS JAVA_TOOL_OPTIONS _JAVA_OPTIONS",
      "DOTNET_STARTUP_HOOKS KUBECONFIG AWS_CONFIG_FILE AWS_SHARED_CREDENTIALS_FILE DOCKER_HOST",
      "GIT_DIR GIT_SSH_COMMAND GIT_CONFIG_COUNT GIT_CONFIG_KEY_0 GIT_CONFIG_VALUE_0 GIT_EXTERNAL_DIFF",
      "SSL_CERT_FILE SSL_CERT_DIR HTTP_PROXY https_proxy ALL_PROXY no_proxy CARGO_HOME",
      "MAKEFILES MY_PATH DELTA_PAGER X_EDITOR CATALINA_OPTS SPARK_HOME DJANGO_SETTINGS_MODULE VIMRC",
      "node_options Path ld_preload RIPGREP_CONFIG_PATH HOME XDG_CONFIG_HOME \uff30\uff21\uff34\uff28",
    ),
  )("%s -> yes", (name) => {
    expect(decidesWhatRuns(name)).toBe(true);
  });

  test.each(
    words(
      "TOKEN API_KEY DATABASE_URL GOOGLE_API_KEY NODE_ENV GIT_AUTHOR_NAME PYTHONUNBUFFERED PATHS ENVIRONMENT AWS_REGION MY_MODULE_TOKEN",
    ),
  )("%s -> no", (name) => {
    expect(decidesWhatRuns(name)).toBe(false);
  });
});

describe("isData: what a clone's file gives the user's own server unasked", () => {
  test.each(
    words(
      "TOKEN GITHUB_TOKEN API_KEY openai_api_key AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN",
      "AWS_REGION DB_USER DB_PASSWORD PGPASSWORD PGUSER MYSQL_PWD GOOGLE_CLOUD_PROJECT NOTION_DATABASE_ID",
      "NODE_ENV PYTHONUNBUFFERED DB_NAME PORT LOG_LEVEL",
    ),
  )("%s -> yes", (name) => expect(isData(name, "x")).toBe(true));

  // Programs run, load or follow each of these; most are in no table, and no table would ever have all.
  test.each(
    words(
      "MAKEFILES MANPATH GREP_OPTIONS ACLOCAL_PATH AUTOMAKE BATS_LIB_PATH BAT_PAGER CATALINA_OPTS CCACHE_CONFIGPATH",
      "CLANG_CONFIG_FILE_USER_DIR DELTA_PAGER DJANGO_SETTINGS_MODULE EMACSDATA FLASK_APP GDK_PIXBUF_MODULE_FILE",
      "GIO_LAUNCHED_DESKTOP_FILE GUNICORN_CMD_ARGS HADOOP_OPTS HGUSER_HOOK JAVA_OPTS JUPYTER_CONFIG_DIR",
      "LLVM_SYMBOLIZER MANOPT MYPY_CONFIG_FILE NEOVIM_BIN NIX_PATH OMP_TOOL_LIBRARIES PSQLRC PSQL_PAGER PSQL_EDITOR",
      "PGSSLKEY PGSERVICEFILE PYTEST_PLUGINS PYTEST_ADDOPTS SCREENRC SPARK_HOME SQLITE_HISTORY SYSTEMD_EDITOR",
      "SYSTEMD_PAGER TCL_LIBRARY TK_LIBRARY TEXINPUTS TMUX VIM VIMRUNTIME WATCH_EXEC XAUTHORITY XLOCALEDIR",
      "XDG_CONFIG_HOME ZELLIJ_CONFIG_DIR NODE_OPTIONS LD_PRELOAD PATH OPENAI_BASE_URL API_URL API_HOST",
      "NODE_TOKEN LD_KEY GIT_CONFIG_KEY GIT_CONFIG_KEY_0 SSH_ASKPASS GREETING",
    ),
  )("%s -> no", (name) => expect(isData(name, "x")).toBe(false));

  test.each([
    ["DATABASE_URL", "postgres://u:p@h/d", true],
    ["MONGODB_URI", "mongodb+srv://h/d", true],
    ["DATABASE_URL", "jdbc:h2:mem:x;INIT=RUNSCRIPT FROM './evil.sql'", false],
    ["API_URL", "https://evil.example", false],
    // In `https://${NAME}.example.com` each of these sends the user's token to another machine.
    ["JIRA_SITE_NAME", "evil.example/?", false],
    ["SNOWFLAKE_ACCOUNT", "evil.example#", false],
    ["AWS_REGION", "x@evil.example\\", false],
    ["PORT", "1@evil.example", false],
    ["TEAM", "evil.example\u{ff0f}", false],
    ["DB_USER", "evil.example/", false],
    ["SERVER_NAME", "evil.example", false],
    ["HOST_NAME", "10.0.0.1", false],
    ["SERVER_NAME", "main", true],
    ["CLIENT_ID", "1-a.apps.googleusercontent.com", true],
    ["TENANT_ID", "evil.example%2f", false],
    ["SNOWFLAKE_ACCOUNT", "xy12345.eu-central-1", true],
    ["DB_NAME", "app.main", true],
    ["ATLASSIAN_EMAIL", "me+x@example.com", true],
    ["APP_NAME", "My App", true],
    ["API_KEY", "a/b+c=", true],
    ["MODEL", "vendor/model:8b", true],
    ["OPENAI_MODEL", "gpt-4.1", true],
    ["BEDROCK_MODEL", "anthropic.claude-3-v1:0", true],
    ["WHISPER_MODEL", "./evil.pt", false],
    ["WHISPER_MODEL", "models/evil.pt", false],
    ["WHISPER_MODEL", "C:/evil", false],
  ])("%s=%s -> %s", (name, value, expected) => expect(isData(name, value)).toBe(expected));
});

/** A home folder with a clone in it; Pi runs in the clone. */
async function place(): Promise<{ home: string; cwd: string }> {
  const home = await temporaryFolder();
  const cwd = join(home, "work", "clone");
  await put(join(cwd, ".env"), ENV_TEXT);
  await put(join(home, "mine.env"), ENV_TEXT);
  return { home, cwd };
}

const server = (envFile: string, source = USER): ServerDefinition =>
  definition("docs", { command: "x", envFile }, source);

describe("the user's own server", () => {
  type At = { home: string; cwd: string };
  const linked = async (to: string, path: string): Promise<string> => {
    await symlink(to, path);
    return path;
  };
  const WHOLE = ["NODE_OPTIONS", "TOKEN"];

  test.each<[string, (at: At) => Promise<string>, string[]]>([
    ["a relative path", async () => ".env", ["TOKEN"]],
    ["a path in the folder", async ({ cwd }) => join(cwd, ".env"), ["TOKEN"]],
    ["a path out of the folder that starts in it", async () => "../../mine.env", ["TOKEN"]],
    [
      "a path in the clone above the folder",
      async ({ cwd, home }) => {
        await mkdir(join(cwd, "..", ".git"));
        await rename(join(home, "mine.env"), join(cwd, "..", "theirs.env"));
        return join(cwd, "..", "theirs.env");
      },
      ["TOKEN"],
    ],
    [
      "a path in the home folder, which is a worktree itself",
      async ({ home }) => {
        await mkdir(join(home, ".git"));
        return join(home, "mine.env");
      },
      WHOLE,
    ],
    ["a path of its own", async ({ home }) => join(home, "mine.env"), WHOLE],
    [
      "a folder of a name that only begins like it",
      async ({ cwd, home }) => {
        await put(`${cwd}2/.env`, ENV_TEXT);
        return join(home, "work", "clone2", ".env");
      },
      WHOLE,
    ],
    [
      "a link into the folder",
      ({ home, cwd }) => linked(join(cwd, ".env"), join(home, "into.env")),
      ["TOKEN"],
    ],
    [
      "a linked folder into the folder",
      async ({ home, cwd }) => join(await linked(cwd, join(home, "linked")), ".env"),
      ["TOKEN"],
    ],
    [
      "a link in the folder that leads out",
      ({ home, cwd }) => linked(join(home, "mine.env"), join(cwd, "out.env")),
      ["TOKEN"],
    ],
    [
      "a link to a link in the folder that leads out",
      async ({ home, cwd }) =>
        linked(await linked(join(home, "mine.env"), join(cwd, "out.env")), join(home, "twice.env")),
      ["TOKEN"],
    ],
    ["a link elsewhere", ({ home }) => linked(join(home, "mine.env"), join(home, "other.env")), WHOLE],
  ])("%s -> %#", async (_, make, names) => {
    const at = await place();
    const path = await make(at);
    const read = await agreedEntries(server(path), path, at);
    expect("entries" in read && Object.keys(read.entries)).toEqual(names);
    expect("note" in read).toBe(names.length === 1);
  });

  test("Pi runs in the home folder or above it -> that is not a clone, the whole file counts", async () => {
    const { home } = await place();
    for (const cwd of [home, join(home, "..")]) {
      const path = join(home, "mine.env");
      expect(await agreedEntries(server(path), path, { home, cwd })).toEqual({
        entries: { NODE_OPTIONS: "--require=./evil.cjs", TOKEN: "s3cret" },
      });
    }
  });

  test("Pi runs in a folder through a link -> the real folder counts", async () => {
    const { home, cwd } = await place();
    const linked = join(home, "linked");
    await symlink(cwd, linked);
    for (const path of [".env", join(cwd, ".env"), join(linked, ".env")]) {
      const read = await agreedEntries(server(path), path, { home, cwd: linked });
      expect("entries" in read && Object.keys(read.entries)).toEqual(["TOKEN"]);
    }
  });

  test("the project only enables the server -> still the user's own: variables are left out, whatever the user agreed to", async () => {
    const at = await place();
    const off = definition("docs", { command: "x", envFile: ".env", enabled: false });
    const on = applyOverride(off, { enabled: true }, PROJECT_PI);
    expect(on.project).toBe(true);
    const read = await agreedEntries(on, ".env", at);
    expect("entries" in read && Object.keys(read.entries)).toEqual(["TOKEN"]);
  });

  test("a problem reports it before the start, with names and no value; names of any kind and number", async () => {
    const at = await place();
    const many = Array.from({ length: 30 }, (_, i) => `LD_${i}=s3cret`);
    await writeFile(
      join(at.cwd, ".env"),
      [...many, `LD_Z${"z".repeat(500)}=s3cret`, "LD_\u001b[2K\u202e=s3cret"].join("\n"),
    );
    const own = server(".env");
    const { problems, seen, files } = await lookAtEnvFiles([own], { ...at, env: {} });
    expect(problems).toMatchObject([{ severity: "warning", file: USER.file, key: "docs.envFile" }]);
    expect(problems[0]?.message).toMatch(
      /\.env lies in the folder that Pi runs in and sets "LD_\\u001b\[2K\\u\{202e\}", LD_0, .*, 12 more: left out/,
    );
    for (const hidden of ["s3cret", "\u001b"]) expect(problems[0]?.message).not.toContain(hidden);
    expect(seen.size).toBe(0);
    expect(files).toEqual([join(at.cwd, ".env")]);
  });

  test("MAKEFILES and an address are left out; names that its entry lists come through, and no problem names them", async () => {
    const at = await place();
    await writeFile(join(at.cwd, ".env"), "MAKEFILES=./evil.mk\nAPI_URL=https://a.example\nTOKEN=t\n");
    const plain = server(".env");
    expect(await agreedEntries(plain, ".env", at)).toMatchObject({ entries: { TOKEN: "t" } });
    const listing = definition("docs", { command: "x", envFile: ".env", envFileNames: ["API_URL"] });
    expect(await agreedEntries(listing, ".env", at)).toEqual({
      entries: { API_URL: "https://a.example", TOKEN: "t" },
      note: expect.stringMatching(/sets MAKEFILES: left out/),
    });
    const { problems } = await lookAtEnvFiles([plain, listing], { ...at, env: {} });
    expect(problems.map(({ message }) => / sets (.*):/.exec(message)?.[1])).toEqual([
      "API_URL, MAKEFILES",
      "MAKEFILES",
    ]);
    expect(problems[0]?.remedy).toContain("envFileNames");
  });

  test("resolveTarget leaves it out and notes it", async () => {
    const { home, cwd } = await place();
    const notes: string[] = [];
    const target = await resolveTarget(server(".env"), {
      env: {},
      home,
      cwd,
      signal: new AbortController().signal,
      onSpawn: () => undefined,
      onExit: () => undefined,
      onNote: (note) => notes.push(note),
    });
    expect(target).toMatchObject({ env: { TOKEN: "s3cret" } });
    expect(target).not.toMatchObject({ env: { NODE_OPTIONS: expect.anything() } });
    expect(notes).toEqual([
      expect.stringMatching(/\.env lies in .* sets NODE_OPTIONS: left out, since it may decide/),
    ]);
  });
});

describe("a project's server", () => {
  const agreed = (text: Record<string, string>, source = PROJECT_FILE): ServerDefinition => ({
    ...server(".env", source),
    agreedEnvFile: contentOf(text).hash,
  });
  const CONTENT = { NODE_OPTIONS: "--require=./evil.cjs", TOKEN: "s3cret" };

  test.each<[string, Record<string, string>, object]>([
    ["the content that was agreed to", CONTENT, { entries: CONTENT }],
    ["other data", { ...CONTENT, TOKEN: "other" }, { entries: CONTENT }],
    ["another program", { ...CONTENT, NODE_OPTIONS: "" }, { changed: true }],
    ["another name", { ...CONTENT, MORE: "" }, { changed: true }],
  ])("is started with %s -> %o", async (_, before, expected) => {
    const at = await place();
    expect(await agreedEntries(agreed(before), ".env", at)).toEqual(expected);
  });

  test("whose envFile was never shown to the user -> not started", async () => {
    const at = await place();
    expect(await agreedEntries(server(".env", PROJECT_PI), ".env", at)).toEqual({ changed: true });
    const options = { ...at, env: {}, signal: new AbortController().signal };
    const target = resolveTarget(server(".env", PROJECT_PI), {
      ...options,
      onSpawn: () => undefined,
      onExit: () => undefined,
    });
    await expect(target).rejects.toMatchObject({
      code: "server_not_trusted",
      message: "docs is not started: .env is not what was agreed to.",
      remedy: "Only the user can allow it: /mcp trust asks for it again.",
    });
  });

  test("a file too large to be shown, or too many files -> not read", async () => {
    const at = await place();
    const big = join(at.cwd, "big.env");
    await writeFile(big, `A=${"x".repeat(LIMITS.envFileShownBytes)}`);
    const servers = Array.from({ length: LIMITS.envFilesLookedAt + 2 }, (_, i) =>
      server(`e${i}.env`, PROJECT_FILE),
    );
    for (let i = 0; i < servers.length; i++) await put(join(at.cwd, `e${i}.env`), "A=1");
    const large = server("big.env", PROJECT_FILE);
    const { seen, files } = await lookAtEnvFiles([large, ...servers], { ...at, env: {} });
    expect(files).toHaveLength(LIMITS.envFilesLookedAt);
    const reason = `it has ${LIMITS.envFileShownBytes + 2} bytes`;
    expect(seen.get(large)).toEqual({ reason });
    expect(await agreedEntries(large, "big.env", at)).toEqual({ reason });
    const unread = servers.filter((one) => "reason" in (seen.get(one) ?? {}));
    expect(unread).toEqual(servers.slice(-2));
    expect(seen.get(unread[0] as ServerDefinition)).toEqual({
      reason: "the servers name more than 20 envFiles",
    });
  });

  test("a hundred servers that name one large file -> it is read once, and none of them is asked for", async () => {
    const at = await place();
    // The time that a project's files have stands still.
    vi.useFakeTimers({ toFake: ["performance", "setTimeout", "clearTimeout"] });
    onTestFinished(() => void vi.useRealTimers());
    const names = Array.from({ length: 20_000 }, (_, i) => `N${i}=`);
    await writeFile(join(at.cwd, "big.env"), names.join("\n"));
    const servers = Array.from({ length: 100 }, (_, i) => ({
      ...server("big.env", PROJECT_FILE),
      name: `s${i}`,
    }));
    const { seen } = await lookAtEnvFiles(servers, { ...at, env: {} });
    expect(new Set(seen.values()).size).toBe(1);
    const facts = { projectTrusted: true, canAsk: true, cwd: at.cwd, folder: at.cwd, envFiles: seen };
    const { pending, refused } = decideTrust(servers, [], facts);
    expect(pending).toEqual([]);
    expect(refused[99]?.reason).toMatch(/^all that it would do takes at least \d{6} characters to tell/);
  });

  test("a pipe in place of the file -> not opened, neither for the question nor at the start", async () => {
    const at = await place();
    await promisify(execFile)("mkfifo", [join(at.cwd, "pipe.env")]);
    const pipe = server("pipe.env", PROJECT_FILE);
    const reason = "it is not a regular file";
    expect((await lookAtEnvFiles([pipe], { ...at, env: {} })).seen.get(pipe)).toEqual({ reason });
    expect(await agreedEntries(pipe, "pipe.env", at)).toEqual({ reason });
    // For the user's own server in the folder it is not opened before its start either.
    const own = server("pipe.env");
    expect(await lookAtEnvFiles([own], { ...at, env: {} })).toMatchObject({ problems: [], files: [] });
  });

  test("that is disabled, or that replaced another one -> looked at only if it may run", async () => {
    const at = await place();
    const off = definition("off", { command: "x", envFile: ".env", enabled: false }, PROJECT_FILE);
    const below = server(".env", PROJECT_FILE);
    const above = { ...definition("docs", { command: "y" }, PROJECT_PI), replaced: below };
    const { seen } = await lookAtEnvFiles([off, above], { ...at, env: {} });
    expect([...seen.keys()]).toEqual([below]);
    expect(seen.get(below)).toMatchObject({ content: { names: ["NODE_OPTIONS", "TOKEN"] } });
  });
});

describe("the way to a file", () => {
  test("each link on it is a stop, the file is the last one", async () => {
    const home = await temporaryFolder();
    await mkdir(join(home, "real"));
    await writeFile(join(home, "real", "file"), "1234");
    await symlink("real", join(home, "folder"));
    await symlink(join("folder", "file"), join(home, "one"));
    await symlink(join(home, "one"), join(home, "two"));
    const way = await wayTo(join(home, "two"));
    const inHome = (name: string): string => join(home, name);
    expect(way).toMatchObject({
      stops: [inHome("two"), inHome("one"), inHome("folder"), join(home, "real", "file")],
      isRemote: false,
      found: { bytes: 4 },
    });
  });

  test("a loop of links, and a link to nothing -> the way ends", async () => {
    const home = await temporaryFolder();
    await symlink(join(home, "b"), join(home, "a"));
    await symlink(join(home, "a"), join(home, "b"));
    expect((await wayTo(join(home, "a"))).found).toBeUndefined();
    expect(await wayTo(join(home, "no", "file"))).toEqual({
      stops: [join(home, "no", "file")],
      isRemote: false,
    });
  });

  test.each([
    ["\\\\evil.com\\share\\.env", "win32", true],
    ["//evil.com/share/.env", "win32", true],
    ["C:\\p\\.env", "win32", false],
    ["//evil.com/share/.env", "linux", false],
  ] as const)("%s on %s is on another machine: %s", async (path, platform, expected) => {
    expect(isRemotePath(path, platform)).toBe(expected);
    if (expected) expect(await wayTo(path, platform)).toEqual({ stops: [path], isRemote: true });
  });

  test("an envFile on another machine is neither looked at nor used for a project's server", async () => {
    const at = await place();
    const remote = server("//evil.com/share/.env", PROJECT_FILE);
    const { seen } = await lookAtEnvFiles([remote], { ...at, env: {}, platform: "win32" });
    expect(seen.get(remote)).toEqual({ reason: "it lies on another machine" });
    expect(await agreedEntries(remote, "//evil.com/share/.env", { ...at, platform: "win32" })).toEqual({
      reason: "it lies on another machine",
    });
  });

  test("a script behind a link to another machine is bound by its path there, and not looked at", async () => {
    const cwd = await temporaryFolder();
    // On Linux, paths of Windows are names in the folder of this process.
    const before = process.cwd();
    process.chdir(cwd);
    onTestFinished(() => process.chdir(before));
    const there = "\\\\evil.com\\share\\x.js";
    const link = win32.resolve(cwd, "tools/x.js");
    const script = definition("a", { command: "node", args: ["tools/x.js"] }, PROJECT_FILE);
    const look = () => new ScriptReader({ cwd, home: "/home/me", env: {}, platform: "win32" }).find(script);
    await symlink(there, link);
    const first = await look();
    expect(first).toMatchObject({ names: ["tools/x.js"] });
    await put(join(cwd, there), "1");
    expect(await look()).toEqual(first);
    await rm(link);
    await symlink("\\\\evil.com\\other\\x.js", link);
    expect(await look()).not.toEqual(first);
  });

  /** The requests to the file system while this is done. `FSREQCALLBACK`: those for the next names of an open folder. */
  async function requests(work: () => Promise<unknown>, kind = "FSREQPROMISE"): Promise<number> {
    let count = 0;
    const hook = createHook({ init: (_id, type) => void (type === kind && count++) }).enable();
    await work().finally(() => hook.disable());
    return count;
  }

  const script = (cwd: string, args: string[]) =>
    new ScriptReader({ cwd, home: "/home/me", env: {} }).find(
      definition("a", { command: "node", args }, PROJECT_FILE),
    );

  test("a cwd that only a command knows -> no yes could be bound to the files in it", async () => {
    const cwd = await temporaryFolder();
    await put(join(cwd, "server.js"), "1");
    const entry = { command: "node", args: ["server.js"], cwd: "!echo sub" };
    const reader = new ScriptReader({ cwd, home: "/home/me", env: {} });
    expect(await reader.find(definition("a", entry, PROJECT_FILE))).toEqual({
      reason: "its cwd is the output of a command, so a yes could not be bound to its files",
    });
    expect(await reader.find(definition("a", entry, USER))).toBeUndefined();
  });

  test("one text of thousands of words -> each is looked for once, and found with an ending all the same", async () => {
    const cwd = await temporaryFolder();
    await put(join(cwd, "w7.js"), "1");
    await put(join(cwd, "sub", "W8.PY"), "1");
    const words = Array.from({ length: 2_000 }, (_, at) => `w${at} sub/W${at}`);
    const text = words.join(" ");
    let found: unknown;
    const count = await requests(async () => {
      found = await script(cwd, [text]);
    });
    expect(found).toMatchObject({ names: ["w7.js"] });
    expect(count).toBeLessThan(2 * 4_000);
  });

  test("a hundred links to one folder of 1,000 names -> ten are listed, and what is behind the last one is found", async () => {
    const cwd = await temporaryFolder();
    await put(join(cwd, "d", "w99.js"), "1");
    for (let at = 1; at < 1_000; at++) await writeFile(join(cwd, "d", `f${at}`), "");
    const links = Array.from({ length: 100 }, (_, at) => `l${at}`);
    for (const link of links) await symlink("d", join(cwd, link));
    const words = links.map((link, at) => `${link}/w${at}`);
    const one = await requests(() => script(cwd, words.slice(0, 1)), "FSREQCALLBACK");
    let found: unknown;
    const all = await requests(async () => {
      found = await script(cwd, words);
    }, "FSREQCALLBACK");
    expect(found).toMatchObject({ names: ["l99/w99.js"] });
    expect(one).toBeGreaterThan(0);
    expect(all).toBeGreaterThan(one);
    // The eleventh is begun.
    expect(all).toBeLessThanOrEqual(11 * one);
  });

  test("more words in a folder that is not listed than may be looked for with each ending -> not asked about", async () => {
    const cwd = await temporaryFolder();
    await mkdir(join(cwd, "d"));
    for (let at = 0; at < 1_000; at++) await writeFile(join(cwd, "d", `f${at}`), "");
    const links = Array.from({ length: 11 }, (_, at) => `l${at}`);
    for (const link of links) await symlink("d", join(cwd, link));
    const unlisted = (count: number): string[] => [
      ...links.map((link) => `${link}/x`),
      ...Array.from({ length: count }, (_, at) => `l10/w${at}`),
    ];
    let found: unknown;
    const few = await requests(() => script(cwd, unlisted(50)));
    const many = await requests(async () => {
      found = await script(cwd, unlisted(4_000));
    });
    expect(few).toBeGreaterThan(50 * 10);
    expect(found).toEqual({ reason: "the servers have more than 5000 words that may be files" });
    expect(many).toBeLessThan(2 * LIMITS.scriptWords);
  });

  test.each([
    [
      "in another spelling of its letters, where the file system takes it for the same",
      "CAFE\u0301",
      "caf\u00e9.js",
    ],
    ["in a folder that is a link", "link/server", "tools/server.mjs"],
    ["from a folder above", "./tools/../tools/server", "tools/server.ts"],
  ])(
    "a word without an ending, %s -> the file is found as the system finds it",
    async (_what, word, file) => {
      const cwd = await temporaryFolder();
      await put(join(cwd, file), "1");
      await symlink("tools", join(cwd, "link"));
      const isThere = (path: string): Promise<boolean> =>
        stat(join(cwd, path)).then(
          () => true,
          () => false,
        );
      const ending = file.slice(file.lastIndexOf("."));
      const names = (await isThere(word + ending)) ? [word + ending] : undefined;
      expect(await script(cwd, [word])).toEqual(
        names === undefined ? undefined : expect.objectContaining({ names }),
      );
    },
  );

  test("short names of Windows are looked for by themselves, and count as so many words", async () => {
    const cwd = await temporaryFolder();
    await put(join(cwd, "SERVER~1.js"), "1");
    expect(await script(cwd, ["SERVER~1"])).toMatchObject({ names: ["SERVER~1.js"] });
    const many = Array.from({ length: 1_000 }, (_, at) => `a~${at}`);
    expect(await script(cwd, many)).toEqual({ reason: expect.stringContaining("words that may be files") });
  });

  test("a way of more parts than a call has arguments ends where nothing is", async () => {
    const file = `/no/${"a/".repeat(200_000)}x`;
    expect(await wayTo(file)).toEqual({ stops: [file], isRemote: false });
  });

  test.each([
    ["/w/app", "/w/app", "linux", true],
    ["/w/app/.env", "/w/app", "linux", true],
    ["/w/app2/.env", "/w/app", "linux", false],
    ["/w/App/.env", "/w/app", "linux", false],
    ["/w/App/.env", "/w/app", "darwin", true],
    ["/w/Caf\u00e9/.env", "/w/Cafe\u0301", "darwin", true],
    ["/w/app/..env", "/w/app", "linux", true],
    ["/w", "/w/app", "linux", false],
    ["C:\\W\\app\\.env", "c:\\w\\APP", "win32", true],
    ["D:\\w\\app\\.env", "c:\\w\\app", "win32", false],
  ] as const)("%s in %s on %s -> %s", (path, folder, platform, expected) => {
    expect(isWithin(path, folder, platform)).toBe(expected);
  });
});
