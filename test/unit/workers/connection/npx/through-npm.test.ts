/** Owns: the command line with which npm itself runs beside a project. */
import { describe, expect, test } from "vitest";
import { fromFolder, throughNpm } from "../../../../../workers/connection/npx/launch.ts";
import { RETRY_SOON } from "../../../../../workers/connection/npx/npm.ts";

describe("fromFolder: a relative path for npm starts from the folder of the server", () => {
  test.each([
    ["-y p .", "-y p ."],
    ["./tool ./arg", "/work/tool ./arg"],
    [". .", "/work ."],
    ["-y -- ../tool x", "-y -- /tool x"],
    ["-p ./tool cmd ./arg", "-p /work/tool cmd ./arg"],
    ["--package=./tool cmd ./arg", "--package=/work/tool cmd ./arg"],
    ["file:../tool x", "file:/tool x"],
    ["--prefix ./x p .", "--prefix /work/x p ."],
    ["--registry=https://r.example.com p ./x", "--registry=https://r.example.com p ./x"],
    ["/abs/tool ./x", "/abs/tool ./x"],
    [".hidden", ".hidden"],
    ["--call=./run", "--call=./run"],
  ])("%s -> %s", (line, expected) => {
    expect(fromFolder(line.split(" "), "/work").join(" ")).toBe(expected);
  });

  test("a line for npm's shell -> unchanged, because the shell starts in the server's folder", () => {
    expect(fromFolder(["-c", "./run a"], "/work")).toEqual(["-c", "./run a"]);
  });
});

describe("throughNpm", () => {
  const words = (line: string) => {
    const [command = "", ...args] = line.split(" ");
    return { command, args, isExec: command === "npm" };
  };
  const neutral = { path: "/agent/mcp-npm", shell: "/agent/mcp-npm/shell.sh" };
  const launch = (line: string, env: Record<string, string> = {}) =>
    throughNpm("/usr/bin/npx", words(line), { cwd: "/work", env, neutral });

  test.each([
    ["npx -y p .", "--workspaces=false -y p ."],
    ["npm exec -y -- p .", "exec --workspaces=false -y -- p ."],
  ])("%s -> %s in the folder of npm", (line, expected) => {
    const { command, args, cwd } = launch(line);
    expect([command, cwd, args.join(" ")]).toEqual(["/usr/bin/npx", neutral.path, expected]);
  });

  test.each([
    [{}, ""],
    [{ npm_config_script_shell: "/bin/bash" }, "/bin/bash"],
    [{ "NPM_CONFIG_script-shell": "/bin/bash" }, "/bin/bash"],
    [{ npm_config_script_shell: "./sh.sh" }, ""],
  ])("with %j npm's shell is ours, and the user's own is %j", (env, shell) => {
    expect(launch("npx p", { A: "1", ...env }).env).toEqual({
      A: "1",
      ...RETRY_SOON,
      npm_config_script_shell: neutral.shell,
      PI_MCP_NPX_FOLDER: "/work",
      PI_MCP_NPX_SHELL: shell,
    });
  });
});
