import { expect, test } from "vitest";
import { type ParsedCommand, parseNpxCommand } from "../../../../../workers/connection/npx/command.ts";

/** `packages > binary > arguments`, or the reason against it. */
function verdictOf(parsed: ParsedCommand): string {
  if (parsed.kind !== "npx") return parsed.kind;
  const { packages, bin, args: rest, yes } = parsed.request;
  return `${yes ? "yes " : ""}${packages.map(({ raw }) => raw).join("+")} > ${bin ?? "own"} > ${rest.join(" ")}`;
}

function verdict(line: string): string {
  const [command = "", ...args] = line.split(" ");
  return verdictOf(parseNpxCommand(command, args));
}

test.each([
  ["npx -y @s/p", "yes @s/p > own > "],
  ["npx --yes p a b", "yes p > own > a b"],
  ["npx p --flag -y", "p > own > --flag -y"],
  ["npx -q -s --quiet --silent -y p", "yes p > own > "],
  ["npx -y -- p a", "yes p > own > a"],
  ["npx -y p -- a --b", "yes p > own > -- a --b"],
  ["npx -y @s/p@1.2.3 dir", "yes @s/p@1.2.3 > own > dir"],
  ["npx p@^1.2", "p@^1.2 > own > "],
  ["npx p@latest", "p@latest > own > "],
  ["npx -y true", "yes true > own > "],
  ["npx -p p cmd a", "p > cmd > a"],
  ["npx -p=p cmd", "p > cmd > "],
  ["npx --package p cmd", "p > cmd > "],
  ["npx --package=p -p q@2 -y -- cmd --x", "yes p+q@2 > cmd > --x"],
  ["/usr/local/bin/npx -y p", "yes p > own > "],
  ["C:\\Program_Files\\nodejs\\npx.cmd -y p", "yes p > own > "],
  ["npm exec p a", "p > own > a"],
  ["npm x --yes -- p --flag", "yes p > own > --flag"],
  ["npm exec p a -- --flag", "p > own > a --flag"],
  ["npm exec --package=@s/p -- cmd -- a", "@s/p > cmd > -- a"],
  ["/opt/npm.cmd exec -y p", "yes p > own > "],
])("parseNpxCommand: %s -> %s", (line, expected) => {
  expect(verdict(line)).toBe(expected);
});

test.each([
  "npx",
  "npx -y",
  "npx -y --",
  "npx -c ls",
  "npx --call=ls",
  "npx -p p",
  "npx -p -y cmd",
  "npx --package= cmd",
  "npx -p p dir/cmd",
  "npx --no-install p",
  "npx --no p",
  "npx --yes=false p",
  "npm exec -y true",
  "npx -yq p",
  "npx -w a p",
  "npx --workspaces p",
  "npx --registry=https://example.com p",
  "npx --prefix /tmp p",
  "npx .",
  "npx ./local",
  "npx user/repo",
  "npx github:user/repo",
  "npx git+ssh://host/r",
  "npx https://example.com/p.tgz",
  "npx p.tgz",
  "npx p@",
  "npx p@npm:q",
  "npx p@file:../q",
  "npx @scope",
  "npm exec p --flag",
  "npm exec -p p cmd",
  "npm exec",
])("parseNpxCommand: %s -> left to npm", (line) => {
  expect(verdict(line)).toBe("unsure");
});

test.each(["node npx", "npm install p", "npm", "uvx p", "mynpx -y p", "/usr/bin/npxx p", "npm --yes exec p"])(
  "parseNpxCommand has nothing to do with: %s",
  (line) => {
    expect(verdict(line)).toBe("other");
  },
);

test.each([
  ["cmd /c npx -y @s/p .", "yes @s/p > own > ."],
  ["cmd.exe /d /s /C npx.cmd -y p", "yes p > own > "],
  ["C:\\Windows\\System32\\cmd.exe /c npx p", "p > own > "],
  ["cmd /c npm exec --yes -- p --flag", "yes p > own > --flag"],
  ["npx.exe -y p", "yes p > own > "],
  // The rest is for the shell.
  ["cmd /c npx -y p %USERPROFILE%", "other"],
  ["cmd /c npx -y p & calc", "other"],
  ["cmd /k npx -y p", "other"],
  ["cmd npx -y p", "other"],
])("parseNpxCommand on Windows: %s -> %s", (line, expected) => {
  const [command = "", ...args] = line.split(" ");
  expect(verdictOf(parseNpxCommand(command, args, "win32"))).toBe(expected);
});

test("parseNpxCommand: a whole line after cmd /c -> a command of npm on Windows, and of nobody elsewhere", () => {
  const args = ["/c", "npx -y p ."];
  expect(verdictOf(parseNpxCommand("cmd", args, "win32"))).toBe("yes p > own > .");
  expect(verdictOf(parseNpxCommand("cmd", args, "linux"))).toBe("other");
});
