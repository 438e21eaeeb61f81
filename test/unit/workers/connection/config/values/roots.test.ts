/** Owns: the folders that a server is told, from the words of its entry to file URIs. */
import { expect, test } from "vitest";
import { rootsOf } from "../../../../../../workers/connection/config/values/values.ts";
import { definition, PROJECT_FILE, USER } from "../support.ts";

const told = (roots: unknown, over: { cwd?: string; source?: typeof USER } = {}) =>
  rootsOf(
    definition("notes", { command: "x", ...(roots === undefined ? {} : { roots }) }, over.source ?? USER),
    {
      cwd: over.cwd ?? "/work/app",
      home: "/home/me",
      env: { NOTES: "/data/my notes" },
      signal: new AbortController().signal,
      onSpawn: () => undefined,
      onExit: () => undefined,
    },
  );

test.each([[undefined], [false], [[]]])(
  "roots: %j -> the server is told that it cannot ask",
  async (roots) => {
    expect(await told(roots)).toBeUndefined();
  },
);

test("roots: true -> the session's folder, also if it is the root", async () => {
  expect(await told(true)).toEqual([{ uri: "file:///work/app", name: "app" }]);
  expect(await told(true, { cwd: "/" })).toEqual([{ uri: "file:///", name: "/" }]);
});

test("folders -> file URIs, each once, with the home folder and variables filled in", async () => {
  expect(await told(["~/a", "${NOTES}", "/home/me/a/", "/x#1%"])).toEqual([
    { uri: "file:///home/me/a", name: "a" },
    { uri: "file:///data/my%20notes", name: "my notes" },
    { uri: "file:///x%231%25", name: "x#1%" },
  ]);
});

test("a relative folder -> an error for a server of the user, the session's for a server of the project", async () => {
  await expect(told(["~/a", "src"])).rejects.toMatchObject({
    code: "bad_config",
    message: expect.stringContaining("roots.1 is not an absolute path"),
  });
  expect(await told(["src", "../b"], { source: PROJECT_FILE })).toEqual([
    { uri: "file:///work/app/src", name: "src" },
    { uri: "file:///work/b", name: "b" },
  ]);
});

test("a folder with a variable that is not set -> an error with the key and the variable", async () => {
  await expect(told(["${MISSING}/x"])).rejects.toThrow(/roots\.0 needs .*MISSING/);
});
