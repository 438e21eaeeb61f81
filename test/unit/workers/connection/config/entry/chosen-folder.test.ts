/** Owns: whether the author of a definition chose the folder of the server, or the person who starts Pi somewhere. */
import { expect, test } from "vitest";
import { isChosenFolder } from "../../../../../../workers/connection/config/entry/cache-identity.ts";
import { type Origin, parseEntry } from "../../../../../../workers/connection/config/entry/definition.ts";

const SESSION = "/work/clone/sub";

/** `folder`: the resolved path. */
function chosen(cwd: string | undefined, folder: string, origin: Origin): boolean {
  const entry = { command: "npx", ...(cwd === undefined ? {} : { cwd }) };
  const { definition } = parseEntry("s", entry, { file: "mcp.json", origin });
  if (!definition) throw new Error("the entry is wrong");
  return isChosenFolder(definition, { session: SESSION, folder, platform: "linux" });
}

test.each([
  [undefined, SESSION, false],
  [".", SESSION, false],
  ["tools", "/work/clone/sub/tools", false],
  ["/home/me/tools", "/home/me/tools", true],
  ["~/tools", "/home/me/tools", true],
  // It is the same folder wherever Pi runs, and Pi runs there just now.
  ["/work/clone/sub", SESSION, true],
  // These depend on where Pi runs.
  ["${PWD}", SESSION, false],
  ["/${PWD}", SESSION, false],
  ["!git rev-parse --show-toplevel", "/work/clone", false],
  ["${HOME}/tools", "/home/me/tools", true],
  ["../other", "/work/clone/other", true],
])("the user's file says %s, which is %s -> %s", (written, folder, expected) => {
  expect(chosen(written, folder, "user")).toBe(expected);
});

test.each([
  // `${workspaceFolder}` of the other program.
  [SESSION, SESSION, false],
  ["/work/clone", "/work/clone", false],
  ["/work/clone/sub/a", "/work/clone/sub/a", false],
  ["/home/me/tools", "/home/me/tools", true],
])("another program's file or an extension says %s -> %s", (written, folder, expected) => {
  for (const origin of ["import", "extension"] as const)
    expect(chosen(written, folder, origin)).toBe(expected);
});

test("a file of the project chooses nothing", () => {
  expect(chosen("/home/me/tools", "/home/me/tools", "project-file")).toBe(false);
});
