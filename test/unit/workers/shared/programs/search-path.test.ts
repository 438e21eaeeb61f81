/** Owns: which folders of PATH the user's own servers keep, on POSIX and Windows. */
import { describe, expect, test } from "vitest";
import {
  type Folders,
  splitSearchPath,
  usersSearchPath,
} from "../../../../../workers/shared/programs/find-program.ts";

const POSIX: Folders = { platform: "linux", cwd: "/home/me/work/clone/sub", home: "/home/me" };
const WINDOWS: Folders = { platform: "win32", cwd: "D:\\work\\clone", home: "C:\\Users\\me" };

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
