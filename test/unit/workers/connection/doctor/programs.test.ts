/** Owns: what the doctor says about a command that cannot be started, and that it searches as a start does. */
import { describe, expect, test } from "vitest";
import {
  checkPrograms,
  judgeProgram,
  type LookedProgram,
} from "../../../../../workers/connection/doctor/programs.ts";
import { examined, makeInput, makeMachine } from "./support.ts";

const looked = (over: Partial<LookedProgram>): LookedProgram => ({
  server: "s",
  file: "/mcp.json",
  command: "npx",
  program: undefined,
  named: undefined,
  cwd: "/work",
  isFolder: true,
  path: ["/usr/bin"],
  ...over,
});

describe("judgeProgram", () => {
  test.each([
    ["it is found", { program: "/usr/bin/npx" }, undefined, undefined],
    ["no folder", { isFolder: false }, "folder: The working directory /work does not exist.", /^Make it/],
    ["npx", {}, 'command: The command "npx" is not on PATH.', /^Install Node\.js/],
    ["uvx", { command: "uvx" }, 'command: The command "uvx" is not on PATH.', /^Install uv/],
    [
      "docker.exe",
      { command: "docker.exe" },
      'command: The command "docker.exe" is not on PATH.',
      /^Install Docker/,
    ],
    [
      "another name",
      { command: "constructor" },
      'command: The command "constructor" is not on PATH.',
      /^Install it/,
    ],
    [
      "a file without rights",
      { command: "./s", named: "file" },
      'command: The command "./s" is not executable.',
      /^chmod/,
    ],
    [
      "no file",
      { command: "./s", named: "missing" },
      'command: The command "./s" leads to no file.',
      /^Correct/,
    ],
    [
      "a folder",
      { command: "/tmp", named: "folder" },
      'command: The command "/tmp" leads to a folder.',
      /^Correct/,
    ],
  ] as const)("%s", (_title, over, expected, remedy) => {
    const found = judgeProgram(looked(over));
    expect(found && `${found.id}: ${found.title}`).toBe(expected);
    if (remedy) expect(found?.remedy).toMatch(remedy);
  });

  test("a long PATH -> twelve folders and the number of the others", () => {
    const path = Array.from({ length: 30 }, (_, i) => `/p${i}`);
    expect(judgeProgram(looked({ path }))?.detail).toMatch(/^PATH has \/p0, .*\/p11 and 18 more\.$/);
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
