/** Owns: what the doctor says about a command that cannot be started, and that it searches as a start does. */
import { describe, expect, test } from "vitest";
import { checkPrograms } from "../../../../../workers/connection/doctor/programs.ts";
import { examined, makeInput, makeMachine } from "./support.ts";

describe("one finding at most for a command", () => {
  test.each<[string, string, string | undefined, string | undefined, RegExp?]>([
    ["it is found", "here", "/usr/bin/here", undefined],
    ["no folder", "gone", "/usr/bin/x", "folder: The working directory /gone does not exist.", /^Make it/],
    ["npx", "npx", undefined, 'command: The command "npx" is not on PATH.', /^Install Node\.js/],
    ["uvx", "uvx", undefined, 'command: The command "uvx" is not on PATH.', /^Install uv/],
    [
      "docker.exe",
      "docker.exe",
      undefined,
      'command: The command "docker.exe" is not on PATH.',
      /^Install Docker/,
    ],
    [
      "another name",
      "constructor",
      undefined,
      'command: The command "constructor" is not on PATH.',
      /^Install it/,
    ],
    ["a file without rights", "./s", undefined, 'command: The command "./s" is not executable.', /^chmod/],
    ["no file", "./none", undefined, 'command: The command "./none" leads to no file.', /^Correct/],
    ["a folder", "/tmp", undefined, 'command: The command "/tmp" leads to a folder.', /^Correct/],
  ])("%s", async (_title, command, program, expected, remedy) => {
    const machine = makeMachine({
      findProgram: async () => program,
      kindOf: async (path) =>
        path === "/work/s" ? "file" : /^\/(work|tmp)$/.test(path) ? "folder" : "missing",
    });
    const server = examined("s", { command, cwd: command === "gone" ? "/gone" : "/work" });
    const [found] = await checkPrograms(makeInput([server], { machine }));
    if (expected === undefined) expect(found?.severity).toBe("ok");
    else expect(`${found?.id}: ${found?.title}`).toBe(expected);
    if (remedy) expect(found?.remedy).toMatch(remedy);
  });

  test("a long PATH -> twelve folders and the number of the others", async () => {
    const PATH = Array.from({ length: 30 }, (_, i) => `/p${i}`).join(":");
    const machine = makeMachine({ kindOf: async (path) => (path === "/work" ? "folder" : "missing") });
    const server = examined("s", { command: "npx", cwd: "/work", env: { PATH } });
    const [found] = await checkPrograms(makeInput([server], { machine }));
    expect(found?.detail).toMatch(/^PATH has \/p0, .*\/p11 and 18 more\.$/);
  });
});

describe("checkPrograms", () => {
  test("the search gets the server's own PATH and folder", async () => {
    const asked: unknown[] = [];
    const machine = makeMachine({
      kindOf: async (path) => (path === "/home/me/app" ? "folder" : "missing"),
      findProgram: async (command, { env, cwd }) => {
        asked.push([command, env.PATH, cwd]);
        return "/opt/run";
      },
    });
    const server = examined("s", { command: "run", cwd: "~/app", env: { PATH: "/opt:/usr/bin" } });
    const found = await checkPrograms(makeInput([server], { machine }));
    expect(asked).toEqual([["run", "/opt:/usr/bin", "/home/me/app"]]);
    expect(found).toEqual([{ id: "command", severity: "ok", title: "The commands of 1 server are found." }]);
  });

  test("a variable is missing, the folder comes from a command, the server is remote or off -> not looked at", async () => {
    const servers = [
      examined("a", { command: `\${A}` }),
      examined("b", { command: "c", cwd: "!pwd" }),
      examined("c", { url: "https://h/" }),
      examined("d", { command: "c", enabled: false }),
    ];
    const found = await checkPrograms(makeInput(servers));
    expect(found.filter(({ severity }) => severity !== "ok")).toEqual([]);
  });
});
