/** Owns: which definitions start another program in another folder, so that their tools are stored by folder. */

import { describe, expect, it, test } from "vitest";
import { adapterHash, hashesOf } from "../../../../../../workers/cache/metadata/metadata.ts";
import {
  cacheIdentity,
  isChosenFolder,
} from "../../../../../../workers/connection/config/entry/cache-identity.ts";
import { type Origin, parseEntry } from "../../../../../../workers/connection/config/entry/definition.ts";
import type { ConfigSource } from "../../../../../../workers/connection/config/files/sources.ts";
import { FOLDER_KEY, hashDefinition } from "../../../../../../workers/shared/json.ts";
import { definition, PROJECT_FILE, PROJECT_PI, USER } from "../support.ts";

const identity = (raw: object, source: ConfigSource = USER, cwd = "/work/app") =>
  cacheIdentity(definition("a", raw, source), cwd);
const isByFolder = (raw: object): boolean => identity(raw)[FOLDER_KEY] === "/work/app";
const node = (...args: string[]): object => ({ command: "node", args });

describe("cacheIdentity: a definition of the user's", () => {
  it.each<[object, boolean]>([
    [node("./server.js"), true],
    [node("../server.js"), true],
    [node("server.js"), true],
    [node("dist/index.mjs", "--stdio"), true],
    [node("--import", "./hook.ts", "/opt/server.js"), true],
    [node("--config=./server.json", "/opt/server.js"), true],
    [node("."), true],
    [node("${PWD}/server.js"), true],
    [{ command: "python", args: ["src/main.py"] }, true],
    [{ command: "uv", args: ["run", "server.py"] }, true],
    [{ command: "go", args: ["run", "."] }, true],
    [{ command: "./bin/server" }, true],
    [{ command: "bin/server" }, true],
    [{ command: "..\\server.exe" }, true],
    [{ command: "node", args: ["/opt/server.js"], env: { NODE_OPTIONS: "--require=./hook.cjs" } }, true],
    [{ command: "python", args: ["-m", "server"], env: { PYTHONPATH: "./src" } }, true],
    [{ command: "server", cwd: "sub" }, true],
    [{ command: "server", cwd: "." }, true],
    [{ command: "server", cwd: "${PWD}" }, true],
    [node("/opt/server.js"), false],
    [node("~/server.js"), false],
    [node("C:\\server.js"), false],
    [node("${HOME}/server.js"), false],
    [node("/opt/server.js", "."), false],
    [{ command: "npx", args: ["-y", "@modelcontextprotocol/server-filesystem", "."] }, false],
    [{ command: "npx", args: ["-y", "@org/server.js"] }, false],
    [{ command: "uvx", args: ["mcp-server-git", "--repository", "."] }, false],
    [{ command: "docker", args: ["run", "-i", "--rm", "ghcr.io/github/github-mcp-server"] }, false],
    [{ command: "/opt/bin/server", args: ["https://example.com/x.js"] }, false],
    [{ command: "server", args: ["./x.js"], cwd: "/opt" }, false],
    [{ command: "server", args: ["x.py"], cwd: "~/server" }, false],
    [{ command: "server", args: ["x.py"], cwd: "${HOME}/server" }, false],
    [{ url: "https://example.com/mcp" }, false],
  ])("%j -> stored by folder: %s", (raw, expected) => {
    expect(isByFolder(raw)).toBe(expected);
  });

  test("one definition in two folders -> two hashes if stored by folder, otherwise the adapter's hash", () => {
    const hash = (raw: object, cwd: string): string => hashDefinition(identity(raw, USER, cwd));
    const relative = node("./server.js");
    expect(hash(relative, "/a")).not.toBe(hash(relative, "/b"));
    expect(hash(relative, "/a")).toBe(hash({ args: ["./server.js"], command: "node" }, "/a"));
    const absolute = { command: "node", args: ["/opt/server.js"] };
    expect(hash(absolute, "/a")).toBe(hashDefinition(absolute));
    expect(hash(absolute, "/b")).toBe(adapterHash(absolute, {}));
  });
});

describe("cacheIdentity: an entry of a project", () => {
  it.each([PROJECT_FILE, PROJECT_PI])("$file, whatever it is -> by folder", (source) => {
    for (const raw of [{ command: "/opt/server" }, { url: "https://example.com/mcp" }])
      expect(identity(raw, source)).toEqual({ ...raw, [FOLDER_KEY]: "/work/app" });
  });

  test("a file that sets the key itself -> has no effect", () => {
    const raw = { command: "/opt/server", [FOLDER_KEY]: "/elsewhere" };
    expect(identity(raw, PROJECT_FILE)[FOLDER_KEY]).toBe("/work/app");
    expect(identity(raw, USER)).toEqual({ command: "/opt/server" });
  });
});

describe("hashesOf", () => {
  test("a definition with OAuth settings -> our hash alone, another one for another client", () => {
    const raw = { url: "https://x.y", headers: { A: "${TOKEN}" }, oauth: { clientId: "a" } };
    expect(hashesOf(raw, { TOKEN: "x" })).toEqual([hashDefinition(raw)]);
    expect(hashesOf({ ...raw, oauth: { clientId: "b" } })).not.toEqual(hashesOf(raw));
  });

  test("by folder -> one hash: what the adapter stored may be another program's", () => {
    const byFolder = identity({ command: "node", args: ["./server.js"], env: { A: "${TOKEN}" } });
    expect(hashesOf(byFolder, { TOKEN: "x" })).toEqual([hashDefinition(byFolder)]);
  });

  test.each(["constructor", "__defineGetter__", "toString"])("a key named %s -> like any other", (key) => {
    const plain = { command: "node" };
    expect(hashesOf({ ...plain, [key]: "x" }, {})).toEqual(hashesOf(plain, {}));
  });
});

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
