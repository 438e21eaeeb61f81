/** How a program is started: on Windows, and Python. */
import { expect, test } from "vitest";
import { searchesWorkingDirectory, spawnFailure } from "../../../../../workers/shared/programs/launch.ts";
import { scriptRunner, windowsCall } from "../../../../../workers/shared/programs/processes.ts";

test.each([
  ["python -m mcp_server_git", true],
  ["/usr/bin/python3.12 -m mcp_server_git --flag", true],
  ["C:\\Python312\\python.exe -m server", true],
  ["py -3 -m server", true],
  ["pypy3 -u -W ignore -m server", true],
  ["python -um server", true],
  ["python -mserver", true],
  ["python -X dev -c pass", true],
  ["python -W -m server.py", false],
  ["python server.py -m x", false],
  ["python /opt/server.py", false],
  ["python -u server.py", false],
  ["python -Xm=1 server.py", false],
  ["python", false],
  ["uvx mcp-server-git", false],
  ["pythonista -m x", false],
  ["node -m x", false],
])("searchesWorkingDirectory: %s -> %s", (line, expected) => {
  const [program = "", ...args] = line.split(" ");
  expect(searchesWorkingDirectory(program, args)).toBe(expected);
});

const SHELL = "C:\\Windows\\System32\\cmd.exe";

test.each(["C:\\nodejs\\node.exe", "C:\\tools\\old.COM"])("%s is started as it is", (program) => {
  expect(windowsCall(program, ["a b", "&"], SHELL)).toEqual({
    file: program,
    args: ["a b", "&"],
    verbatim: false,
  });
});

test.each([
  ["C:\\nodejs\\npx.CMD", ["-y", "p"], '"C:\\nodejs\\npx.CMD ^"-y^" ^"p^""'],
  ["C:\\Program Files\\nodejs\\npx.cmd", ["a&b"], '"C:\\Program^ Files\\nodejs\\npx.cmd ^"a^&b^""'],
  ["C:\\tools\\run.bat", ['say "x"'], '"C:\\tools\\run.bat ^"say^ \\^"x\\^"^""'],
  // npm's shims hand their arguments on to a second shell.
  ["C:\\p\\node_modules\\.bin\\tool.cmd", ["a"], '"C:\\p\\node_modules\\.bin\\tool.cmd ^^^"a^^^""'],
])("%s %j goes through the command shell, escaped", (program, args, line) => {
  expect(windowsCall(program, args, SHELL)).toEqual({
    file: SHELL,
    args: ["/d", "/s", "/c", line],
    verbatim: true,
  });
});

test.each([
  ["C:\\t\\server.py", "#!/usr/bin/env python3", "python3"],
  ["C:\\t\\server", "#!/usr/bin/env -S node --no-warnings", "node --no-warnings"],
  ["C:\\t\\server", "#! /bin/sh -e", "sh -e"],
  ["C:\\t\\server.js", "import 'x';", undefined],
  ["C:\\t\\server", "#!", undefined],
  ["C:\\t\\server", "#!/usr/bin/env", undefined],
  ["C:\\t\\server.exe", "#!/usr/bin/env node", undefined],
  ["C:\\t\\server.CMD", "#!/usr/bin/env node", undefined],
])("scriptRunner: %s with first line %j -> %s", (file, firstLine, expected) => {
  const runner = scriptRunner(file, firstLine);
  expect(runner && [runner.command, ...runner.flags].join(" ")).toBe(expected);
});

test.each([
  ["EMFILE", "run fewer servers at once"],
  ["ENFILE", "run fewer servers at once"],
  ["EAGAIN", "run fewer servers at once"],
  ["ENOMEM", "run fewer servers at once"],
  ["EACCES", "Check command"],
  ["EACCES", "not mounted noexec"],
])("a program that the system does not start, %s -> %s", async (code, remedy) => {
  const error = Object.assign(new Error(code), { code });
  const failure = await spawnFailure({ server: "s", command: "node", cwd: "/", error });
  expect(failure.remedy).toContain(remedy);
  expect(failure.data).toEqual({ server: "s", reason: code });
});

test("no folder -> its data say so, and nothing where the command alone is missing", async () => {
  const failed = async (cwd: string) => (await spawnFailure({ server: "s", command: "gone", cwd })).data;
  expect(await failed("/no/such/folder")).toEqual({ server: "s", reason: "no-folder" });
  expect(await failed("/")).toEqual({ server: "s" });
});
