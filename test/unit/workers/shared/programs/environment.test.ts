/** Owns: the environment of what is started, for the user's own servers and for those of a project. */
import { expect, test } from "vitest";
import { childEnvironment, type Env } from "../../../../../workers/shared/programs/find-program.ts";

const FOLDERS = { cwd: "/work/clone", home: "/home/me" };

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
