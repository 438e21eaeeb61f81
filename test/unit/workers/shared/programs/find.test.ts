/** Which program a command names, in which environment it runs, and which entries of PATH count. */

import { mkdir, realpath, rm, symlink } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { inTime } from "../../../../../workers/shared/files/file-system.ts";
import {
  childEnvironment,
  type Ends,
  type Env,
  endsOf,
  type Folders,
  findProgram,
  splitSearchPath,
  usersSearchPath,
} from "../../../../../workers/shared/programs/find-program.ts";
import { makeTempFolder, removeFolder } from "../../../../support/temp-folder.ts";

const NO_LINKS: Ends = new Map();
const FOLDERS = { cwd: "/work/clone", home: "/home/me", ends: NO_LINKS };

const made = (base: Env, own: Env, platform: NodeJS.Platform = "linux") =>
  childEnvironment({ base, own, platform, independentOf: FOLDERS });

test("the user's own server: PATH and folders of code without what the current folder decides", () => {
  const base = {
    PATH: ":/usr/bin:node_modules/.bin",
    PYTHONPATH: ":/home/me/lib",
    LD_LIBRARY_PATH: "/opt/lib:",
    NODE_PATH: ".",
    NAME: "kept",
  };
  const expected = {
    PATH: "/usr/bin",
    PYTHONPATH: "/home/me/lib",
    LD_LIBRARY_PATH: "/opt/lib",
    NAME: "kept",
    TOKEN: "t",
  };
  expect(made(base, { TOKEN: "t" })).toEqual(expected);
});

test("what the definition sets: PATH is treated alike, folders of code are as they are written", () => {
  const env = made({ PYTHONPATH: "." }, { PATH: "./bin:/opt/bin", PYTHONPATH: "./src" });
  expect(env).toEqual({ PATH: "/opt/bin", PYTHONPATH: "./src" });
});

test("entries of PATH that are left out are told, and only then", () => {
  const told: string[][] = [];
  const parts = { own: {}, platform: "linux", independentOf: FOLDERS } as const;
  const onLeftOut = (entries: string[]): void => void told.push(entries);
  childEnvironment({ ...parts, base: { PATH: "/bin" }, onLeftOut });
  childEnvironment({ ...parts, base: { PATH: ".:/bin" }, onLeftOut });
  expect(told).toEqual([["."]]);
});

test("an entry that a link leads to packages of the clone, or a clone behind a link: what is not the user's is left out", async () => {
  const root = await makeTempFolder("ends");
  onTestFinished(() => rm(root, { recursive: true }));
  const at = (...path: string[]): string => join(root, ...path);
  const bin = ["node_modules", ".bin"] as const;
  for (const folder of ["clone", "other", "home"]) await mkdir(at(folder, ...bin), { recursive: true });
  await symlink(at("clone"), at("link"), "junction");
  await symlink(at("clone", ...bin), at("tools"), "junction");
  await symlink(at("other", ...bin), at("others"), "junction");
  await symlink(at("home"), at("me"), "junction");
  const kept = [at("others"), at("home", ...bin)];
  const left = [at("link", ...bin), at("tools"), at("clone", ...bin)];
  const list = [...left, ...kept].join(delimiter);
  const base = { PATH: list, NODE_PATH: list };
  for (const cwd of [at("clone"), at("link")]) {
    const folders = { cwd, home: at("me") };
    const independentOf = { ...folders, ends: await endsOf(base, folders) };
    const env = childEnvironment({ base, own: {}, platform: process.platform, independentOf });
    expect(env).toMatchObject({ PATH: kept.join(delimiter), NODE_PATH: kept.join(delimiter) });
  }
});

test("an entry whose file system does not answer -> it is as it is written, and no connect waits for it", async () => {
  const root = await makeTempFolder("ends");
  onTestFinished(() => removeFolder(root));
  const [silent, link] = [join(root, "silent"), join(root, "link")];
  await mkdir(join(root, "real"));
  for (const one of [silent, link]) await symlink(join(root, "real"), one, "junction");
  await inTime(`link ${silent}`, () => new Promise(() => undefined), 1);
  const ends = await endsOf({ PATH: [silent, link].join(delimiter) }, { cwd: root, home: root });
  expect(ends.get(silent)).toBe(silent);
  expect(ends.get(link)).toBe(await realpath(join(root, "real")));
});

test("a server of the project: everything stays", () => {
  const base = { PATH: ":/usr/bin:node_modules/.bin", PYTHONPATH: "." };
  const parts = { base, own: { A: "1" }, platform: "linux", independentOf: undefined } as const;
  expect(childEnvironment(parts)).toEqual({ ...base, A: "1" });
});

test.each([
  ["the user's own", FOLDERS],
  ["a project's", undefined],
])("Windows, %s server: no command is looked for in the current folder", (_title, independentOf) => {
  const parts = { base: { Path: "C:\\bin" }, own: {}, platform: "win32", independentOf } as const;
  expect(childEnvironment(parts)).toEqual({ Path: "C:\\bin", NoDefaultCurrentDirectoryInExePath: "1" });
});

test("Windows: one variable whatever the case of its name, the definition's", () => {
  const env = made({ Path: "C:\\a", NodeFalls: "x" }, { PATH: "C:\\b;.", nodefalls: "y" }, "win32");
  expect(env).toEqual({ PATH: "C:\\b", nodefalls: "y", NoDefaultCurrentDirectoryInExePath: "1" });
});

/** Windows ignores the case of a file's name. */
const find = (
  platform: NodeJS.Platform,
  {
    command,
    cwd,
    env,
    files,
  }: { command: string; cwd: string; env: Record<string, string>; files: string[] },
): Promise<string | undefined> => {
  const key = (file: string): string => (platform === "win32" ? file.toLowerCase() : file);
  const there = new Set(files.map(key));
  return findProgram(command, { env, cwd, platform, isProgram: async (file) => there.has(key(file)) });
};

describe("findProgram on POSIX", () => {
  const files = [
    "/clone/tool",
    "/clone/node_modules/.bin/tool",
    "/usr/bin/tool",
    "/bin/tool",
    "/bin/only-here",
  ];
  test.each([
    ["tool", "/usr/bin:/bin", "/usr/bin/tool"],
    ["tool", "/bin:/usr/bin", "/bin/tool"],
    ["only-here", "/usr/bin:/bin", "/bin/only-here"],
    ["missing", "/usr/bin:/bin", undefined],
    ["", "/usr/bin:/bin", undefined],
    ["./tool", "/usr/bin", "/clone/tool"],
    ["node_modules/.bin/tool", "/usr/bin", "/clone/node_modules/.bin/tool"],
    ["/bin/tool", "/usr/bin", "/bin/tool"],
    ["/no/tool", "/bin", undefined],
    // Only servers that the project defines still have such entries.
    ["tool", ":/bin", "/clone/tool"],
    ["tool", "node_modules/.bin:/bin", "/clone/node_modules/.bin/tool"],
  ])("%s with PATH %s -> %s", async (command, PATH, expected) => {
    expect(await find("linux", { command, cwd: "/clone", env: { PATH }, files })).toBe(expected);
  });

  test("no PATH -> the system's own folders, not the current one", async () => {
    expect(await find("linux", { command: "tool", cwd: "/clone", env: {}, files })).toBe("/usr/bin/tool");
  });
});

describe("findProgram on Windows", () => {
  const PATHEXT = ".COM;.EXE;.BAT;.CMD;.JS";
  const files = [
    ...["taskkill.exe", "npx.cmd", "npx.exe", "pass.bat", "node.exe", "db-mcp.exe"].map(
      (name) => `D:\\clone\\${name}`,
    ),
    "D:\\clone\\node_modules\\.bin\\tool.cmd",
    "C:\\Windows\\System32\\taskkill.exe",
    "C:\\nodejs\\npx",
    "C:\\nodejs\\npx.cmd",
    "C:\\nodejs\\node.exe",
    "C:\\tools\\both.cmd",
    "C:\\tools\\both.exe",
    "C:\\tools\\script.py",
    "C:\\tools\\run.v2.cmd",
    "C:\\tools\\bare",
    "C:\\more\\bare.exe",
  ];
  const Path = "C:\\Windows\\System32;C:\\nodejs;C:\\tools;C:\\more";
  const windows = (command: string, env: Record<string, string> = {}): Promise<string | undefined> =>
    find("win32", { command, cwd: "D:\\clone", env: { Path, PATHEXT, ...env }, files });

  test.each([
    ["taskkill", "C:\\Windows\\System32\\taskkill.EXE"],
    ["taskkill.exe", "C:\\Windows\\System32\\taskkill.exe"],
    ["npx", "C:\\nodejs\\npx.CMD"],
    ["npx.cmd", "C:\\nodejs\\npx.cmd"],
    ["node", "C:\\nodejs\\node.EXE"],
    ["both", "C:\\tools\\both.EXE"],
    ["run.v2", "C:\\tools\\run.v2.CMD"],
    // By its very name only where no folder has it with an ending.
    ["bare", "C:\\more\\bare.EXE"],
    ["script.py", "C:\\tools\\script.py"],
    // These lie in the current folder only.
    ["db-mcp", undefined],
    ["db-mcp.exe", undefined],
    ["pass", undefined],
    ["tool", undefined],
    [".\\db-mcp", "D:\\clone\\db-mcp.EXE"],
    ["./db-mcp.exe", "D:\\clone\\db-mcp.exe"],
    ["node_modules\\.bin\\tool", "D:\\clone\\node_modules\\.bin\\tool.CMD"],
    ["C:\\nodejs\\npx", "C:\\nodejs\\npx.CMD"],
  ])("%s -> %s", async (command, expected) => {
    expect(await windows(command)).toBe(expected);
  });

  test("empty entries of PATH are not the current folder; quotes are not part of a folder", async () => {
    expect(await windows("db-mcp", { Path: ";;C:\\tools;" })).toBeUndefined();
    expect(await windows("both", { Path: '"C:\\tools"' })).toBe("C:\\tools\\both.EXE");
  });

  test("PATHEXT decides the order, and has a default", async () => {
    expect(await windows("both", { PATHEXT: ".CMD;.EXE" })).toBe("C:\\tools\\both.CMD");
    expect(await windows("both", { PATHEXT: "" })).toBe("C:\\tools\\both.EXE");
  });
});

const POSIX: Folders = {
  platform: "linux",
  cwd: "/home/me/work/clone/sub",
  home: "/home/me",
  ends: NO_LINKS,
};
const WINDOWS: Folders = { platform: "win32", cwd: "D:\\work\\clone", home: "C:\\Users\\me", ends: NO_LINKS };

describe("usersSearchPath on POSIX", () => {
  test.each([
    ["/usr/bin:/bin", "/usr/bin:/bin"],
    // Each of these means the current folder.
    [":/usr/bin", "/usr/bin"],
    ["/usr/bin:", "/usr/bin"],
    ["/usr/bin::/bin", "/usr/bin:/bin"],
    [".:/usr/bin", "/usr/bin"],
    ["./bin:/usr/bin", "/usr/bin"],
    ["node_modules/.bin:/usr/bin", "/usr/bin"],
    ["../tools:/usr/bin", "/usr/bin"],
    ["~/bin:/usr/bin", "/usr/bin"],
    // npm puts these there for whatever it starts.
    ["/home/me/work/clone/sub/node_modules/.bin:/usr/bin", "/usr/bin"],
    ["/home/me/work/clone/node_modules/.bin:/home/me/work/node_modules/.bin:/usr/bin", "/usr/bin"],
    ["/home/me/work/clone/sub/packages/a/node_modules/.bin:/usr/bin", "/usr/bin"],
    ["/home/me/work/clone/node_modules/node/bin:/usr/bin", "/usr/bin"],
    // What is the user's own stays, also where it lies in the folder in which Pi runs.
    ["/home/me/node_modules/.bin:/usr/bin", "/home/me/node_modules/.bin:/usr/bin"],
    ["/node_modules/.bin:/usr/bin", "/node_modules/.bin:/usr/bin"],
    ["/opt/tool/node_modules/.bin:/usr/bin", "/opt/tool/node_modules/.bin:/usr/bin"],
    ["/home/me/work/other/node_modules/.bin:/usr/bin", "/home/me/work/other/node_modules/.bin:/usr/bin"],
    ["/home/me/work/clone/sub/.venv/bin:/usr/bin", "/home/me/work/clone/sub/.venv/bin:/usr/bin"],
    // An empty search path means the current folder.
    ["", "/usr/bin:/bin"],
    [".", "/usr/bin:/bin"],
    [undefined, "/usr/bin:/bin"],
  ])("%s -> %s", (value, expected) => {
    expect(usersSearchPath(value, POSIX).path).toBe(expected);
  });

  // On macOS a path names the same folder however its letters are written.
  test.each([
    ["/Users/me/clone", "/Users/ME/Clone/node_modules/.bin:/usr/bin", "/usr/bin"],
    ["/Users/me/Caf\u00e9", "/Users/me/Cafe\u0301/node_modules/.bin:/usr/bin", "/usr/bin"],
    [
      "/Users/me/clone",
      "/Users/ME/Other/node_modules/.bin:/usr/bin",
      "/Users/ME/Other/node_modules/.bin:/usr/bin",
    ],
  ])("Pi runs in %s on macOS: %s -> %s", (cwd, value, expected) => {
    expect(usersSearchPath(value, { platform: "darwin", cwd, home: "/Users/me", ends: NO_LINKS }).path).toBe(
      expected,
    );
  });

  test("what is left out is told", () => {
    expect(usersSearchPath(":/usr/bin:.:/bin", POSIX).left).toEqual(["", "."]);
    expect(usersSearchPath(undefined, POSIX).left).toEqual([]);
  });

  test.each(["/home/me", "/home", "/"])("Pi runs in %s: packages below are the user's", (cwd) => {
    const path = "/home/me/.npm/_npx/0a/node_modules/.bin:/usr/bin";
    expect(usersSearchPath(`.:${path}`, { ...POSIX, cwd }).path).toBe(path);
  });
});

describe("usersSearchPath on Windows", () => {
  test.each([
    ["C:\\Windows\\System32;C:\\bin", "C:\\Windows\\System32;C:\\bin"],
    [";C:\\bin;;", "C:\\bin"],
    [".;C:\\bin", "C:\\bin"],
    ["node_modules\\.bin;C:\\bin", "C:\\bin"],
    ["\\tools;C:\\bin", "C:\\bin"],
    ["C:tools;C:\\bin", "C:\\bin"],
    ["%SystemRoot%\\System32;C:\\bin", "C:\\bin"],
    ["C:/bin;\\\\server\\share\\bin", "C:/bin;\\\\server\\share\\bin"],
    ['"C:\\a;b";C:\\bin', '"C:\\a;b";C:\\bin'],
    ['".;x";C:\\bin', "C:\\bin"],
    ["D:\\work\\clone\\node_modules\\.bin;C:\\bin", "C:\\bin"],
    ["d:\\Work\\Clone\\Node_Modules\\.bin;C:\\bin", "C:\\bin"],
    ["D:\\node_modules\\.bin;C:\\bin", "C:\\bin"],
    ["C:\\Users\\me\\node_modules\\.bin", "C:\\Users\\me\\node_modules\\.bin"],
    ["C:\\other\\node_modules\\.bin", "C:\\other\\node_modules\\.bin"],
    ["", ""],
    [undefined, ""],
  ])("%s -> %s", (value, expected) => {
    expect(usersSearchPath(value, WINDOWS).path).toBe(expected);
  });
});

test.each([
  ["linux", "a::b:", ["a", "", "b", ""]],
  ["win32", "a;;b;", ["a", "b"]],
  ["win32", 'a;"b;c";d', ["a", '"b;c"', "d"]],
] as const)("splitSearchPath on %s: %s -> %j", (platform, value, expected) => {
  expect(splitSearchPath(value, platform)).toEqual(expected);
});
