/** Owns: which folder is Pi's agent folder. */
import { posix, win32 } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { agentFolder } from "../../../src/shared/process/agent-folder.ts";

type Functions = Parameters<typeof agentFolder>[1];

const onPosix = (url: string): string => fileURLToPath(url, { windows: false });
const asOn = (platform: string, node: Functions) => (value: string | undefined) =>
  agentFolder({ env: { PI_CODING_AGENT_DIR: value }, platform }, node);
const onLinux = asOn("linux", { homedir: () => "/home/$&", join: posix.join, fileURLToPath: onPosix });
const onWindows = asOn("win32", {
  homedir: () => "C:\\Users\\u",
  join: win32.join,
  fileURLToPath: (url) => fileURLToPath(url, { windows: true }),
});

test.each([
  [undefined, "/home/$&/.pi/agent"],
  ["", "/home/$&/.pi/agent"],
  ["~/x", "/home/$&/x"],
  ["~/x/", "/home/$&/x/"],
  // The home of another user is not looked up, and a name is a name.
  ["~other/x", "~other/x"],
  ["~\\x", "~\\x"],
  ["/a/~/x", "/a/~/x"],
  ["x", "x"],
  ["/c/x", "/c/x"],
  ["file:///a%20b", "/a b"],
])("%s -> %s", (value, folder) => {
  expect(onLinux(value)).toBe(folder);
});

test.each([
  [undefined, "C:\\Users\\u\\.pi\\agent"],
  ["~\\x", "C:\\Users\\u\\x"],
  ["~/x", "C:\\Users\\u\\x"],
  ["/c/Users/u", "C:\\Users\\u"],
  ["/mnt/d/x", "D:\\x"],
  ["/cygdrive/d", "D:\\"],
  ["//server/share/x", "\\\\server\\share\\x"],
  ["/cc/x", "\\cc\\x"],
  ["D:\\x", "D:\\x"],
  ["file:///D:/x", "D:\\x"],
])("on Windows, %s -> %s", (value, folder) => {
  expect(win32.normalize(onWindows(value))).toBe(folder);
});
