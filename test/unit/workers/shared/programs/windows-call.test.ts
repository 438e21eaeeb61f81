/** Owns: how a file is started on Windows. Cannot be run elsewhere, so the command line itself is compared. */
import { expect, test } from "vitest";
import { scriptRunner, windowsCall } from "../../../../../workers/shared/programs/processes.ts";

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
