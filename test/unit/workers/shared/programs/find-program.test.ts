/** Owns: which file a command names, on POSIX and Windows, and that the current folder is not searched. */
import { describe, expect, test } from "vitest";
import { findProgram } from "../../../../../workers/shared/programs/find-program.ts";

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
