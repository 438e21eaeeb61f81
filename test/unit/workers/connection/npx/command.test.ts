import { describe, expect, test } from "vitest";
import { type ParsedCommand, parseNpxCommand } from "../../../../../workers/connection/npx/command.ts";
import { fromFolder, throughNpm } from "../../../../../workers/connection/npx/launch.ts";
import { NpmProgress, npmFailure, RETRY_SOON } from "../../../../../workers/connection/npx/npm.ts";

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
  "npx -- -y p",
  "npm exec -- -y p",
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

const AT = "http://user:secret@registry.example:4873";
const wrote = (code: string, ...lines: string[]): string =>
  [`npm error code ${code}`, ...lines.map((line) => `npm error ${line}`), ""].join("\n");
const words = (stderr: string, env: Record<string, string> = {}, packages = ["@acme/x@1"]) =>
  npmFailure(stderr, packages, env)?.words;

describe("why npm failed", () => {
  test.each([
    [
      wrote(
        "ENOTFOUND",
        `network request to https://reg.example/@acme%2fx failed, reason: getaddrinfo ENOTFOUND reg.example`,
      ),
      "npm's registry reg.example cannot be found (ENOTFOUND)",
    ],
    [
      wrote(
        "ECONNREFUSED",
        `FetchError: request to http://127.0.0.1:9/@acme%2fx failed, reason: connect ECONNREFUSED 127.0.0.1:9`,
      ),
      "npm's registry 127.0.0.1:9 cannot be reached (ECONNREFUSED)",
    ],
    [wrote("EAI_AGAIN"), "npm's registry cannot be found (EAI_AGAIN)"],
    [
      wrote(
        "E404",
        "404 Not Found - GET http://h:1/@acme%2fx",
        "404  The requested resource '@acme/x@1' could not be found or you do not have permission to access it.",
      ),
      "npm's registry h:1 has no package @acme/x",
    ],
    [
      wrote(
        "E404",
        "404 Not Found - GET http://h:1/gone",
        "404  The requested resource 'gone@^2' could not be found or you do not have permission to access it.",
      ),
      "npm's registry h:1 has no package gone, which @acme/x@1 needs",
    ],
    [
      wrote("ETARGET", "notarget No matching version found for @acme/x@1."),
      "npm's registry has no version @acme/x@1",
    ],
    [
      wrote("E401", "401 Unauthorized - GET http://h/@acme%2fx - login"),
      "npm's registry h wants a sign-in for @acme/x@1 (E401)",
    ],
    [wrote("E403", "403 403 Forbidden - GET http://h/x - no"), "npm's registry h refuses @acme/x@1 (403)"],
    [wrote("E503", "503 Service Unavailable - GET http://h/x"), "npm's registry h has a fault (503)"],
    [wrote("ENOSPC", "syscall write"), "the disk is full, so npm cannot install @acme/x@1"],
    [
      wrote("EACCES", "syscall mkdir", "path /home/ann/.npm/_cacache"),
      "npm may not write /home/ann/.npm/_cacache (EACCES)",
    ],
    [
      wrote("SELF_SIGNED_CERT_IN_CHAIN", "request to https://h/x failed"),
      "the certificate of npm's registry h is not trusted (SELF_SIGNED_CERT_IN_CHAIN)",
    ],
    [
      wrote(
        "EACCES",
        "syscall spawn /home/ann/.pi/agent/mcp-npm/shell.sh",
        "path /home/ann/.pi/agent/mcp-npm",
      ),
      "npm may not start /home/ann/.pi/agent/mcp-npm/shell.sh (EACCES)",
    ],
    [wrote("126", "path /home/ann", "command failed"), "npm may not start a program of @acme/x@1 (126)"],
    ["npm ERR! code ENOTCACHED\n", "npm is set to work offline, and @acme/x@1 is not in its cache"],
  ])("%j -> %s", (stderr, sentence) => {
    expect(words(stderr)).toBe(sentence);
  });

  test("a file that may not be executed, as in a home folder that is mounted so -> the remedy says it", () => {
    const said = npmFailure(wrote("EACCES", "syscall spawn /h/shell.sh", "path /h"), ["x"], {});
    expect(said).toMatchObject({
      code: "EACCES",
      isNetwork: false,
      remedy: expect.stringContaining("noexec"),
    });
  });

  test("a proxy is set -> it is named, and no user and password of an address", () => {
    const stderr = wrote("ECONNRESET", `request to ${AT}/x failed, reason: socket hang up`);
    expect(words(stderr, { HTTPS_PROXY: "http://p:1" })).toBe(
      "npm's registry registry.example:4873 cannot be reached through the proxy that is set (ECONNRESET)",
    );
  });

  test.each([
    ["NO_PROXY", "registry.example", false],
    ["no_proxy", "a.test, .example", false],
    ["npm_config_noproxy", "example", false],
    ["NO_PROXY", "other.example,try.example", true],
    ["NO_PROXY", "*", true],
    ["NO_PROXY", "", true],
  ])("a proxy is set, and %s=%s -> it is named only if npm asks it: %s", (name, value, isNamed) => {
    const stderr = wrote("ECONNRESET", `request to ${AT}/x failed, reason: socket hang up`);
    const said = words(stderr, { HTTPS_PROXY: "http://p:1", [name]: value });
    expect(said?.includes("through the proxy")).toBe(isNamed);
  });

  test("no error, or one that says nothing of the network and the package -> unknown", () => {
    for (const stderr of ["", "npm warn x", wrote("ELIFECYCLE"), wrote("1")])
      expect(words(stderr)).toBeUndefined();
  });
});

test("how far npm is -> the seconds, and what its registry last said", () => {
  const progress = new NpmProgress();
  const text = (): string => progress.text(["a", "b"], 12);
  expect(text()).toBe("npm fetches, 12 s, no answer of its registry yet: a b");
  progress.see("npm http fetch GET http://h/a attempt 1 failed with ENOTFOUND\n");
  expect(text()).toBe("npm fetches, 12 s, its registry does not answer (ENOTFOUND): a b");
  progress.see(
    "npm http fetch GET 200 http://h/a 13ms (cache miss)\nnpm http fetch GET 200 http://h/b 9ms\n",
  );
  expect(text()).toBe("npm fetches, 12 s, 2 files: a b");
});
