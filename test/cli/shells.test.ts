/**
 * Owns: the completion in real shells, as a person presses the tab key. bash is needed; zsh and fish take part where they are
 * installed. Where they are not, only the script is printed, and the title of that test says so.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { symlink, writeFile } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { forWholeFile } from "../support/cleanup.ts";
import { hasShell, hasTmux } from "../support/has-program.ts";
import { family } from "../support/long.ts";
import { makeHome } from "../support/make-home.ts";
import type { PiHome } from "../support/pi-home.ts";
import { CLI, everything, runCli } from "./support.ts";
import { openShell } from "./tmux.ts";

let home: PiHome;
let env: Record<string, string>;
beforeAll(async () => {
  home = await forWholeFile(() => makeHome({ mcp: { mcpServers: { every: everything() } } }));
  await symlink(CLI, join(home.dir, "pi-mcp-threads"));
  const base = home.env();
  env = { ...base, PATH: `${home.dir}${delimiter}${base.PATH}` };
  expect((await runCli(home, ["list"])).code).toBe(0);
});

/** What bash proposes for a line with the cursor at its end. `type`: 9 for the first tab, 63 for the one that lists. */
function completed(line: string, type = 9): string[] {
  const script = `
    eval "$(pi-mcp-threads completion bash)"
    COMP_LINE=$1; COMP_POINT=\${#COMP_LINE}; COMP_TYPE=$2; COLUMNS=60
    read -ra COMP_WORDS <<< "$COMP_LINE"
    [[ $COMP_LINE == *' ' ]] && COMP_WORDS+=("")
    COMP_CWORD=$((\${#COMP_WORDS[@]} - 1))
    _pi_mcp_threads 2>/dev/null
    printf '%s\\n' "\${COMPREPLY[@]}"`;
  const options = { cwd: home.cwd, env, encoding: "utf8" } as const;
  const stdout = execFileSync("bash", ["-c", script, "bash", line, String(type)], options);
  return stdout.split("\n").filter((word) => word !== "");
}

/** Added to a title where the shell cannot take part. */
const where = (shell: string): string =>
  hasShell(shell) ? "" : ": not run, the shell is not installed here";

describe.each(["bash", "zsh", "fish"])("%s", (shell) => {
  test(`the script is printed, and has no mistake${where(shell)}`, async () => {
    const { stdout, code } = await runCli(home, ["completion", shell]);
    expect([code, stdout.includes(" __complete ")]).toEqual([0, true]);
    if (!hasShell(shell)) return;
    // From a file: Node hands a script over in a socket, and fish takes that for a directory (status 127).
    const script = join(home.dir, `completion.${shell}`);
    await writeFile(script, stdout);
    expect(spawnSync(shell, ["-n", script], { encoding: "utf8" })).toMatchObject({ status: 0, stderr: "" });
  });
});

describe("bash", () => {
  // What a line is completed with: test/unit/cli/completion.test.ts.
  test.each(
    family([
      ["pi-mcp-threads call every get-sum ", ["a=", "b="]],
      ["pi-mcp-threads lo", ["login", "logout", "logs"]],
      ["pi-mcp-threads call every get-annotated-message messageType=e", ["error"]],
      ["pi-mcp-threads read every demo://resource/static/document/st", 2],
      ["pi-mcp-threads list --ref", ["--refresh"]],
    ]),
  )("%s", (line, expected) => {
    const found = completed(line);
    if (typeof expected === "number") {
      // Readline replaces what follows the last colon.
      expect(found).toHaveLength(expected);
      expect(found[0]).toMatch(/^\/\/resource\//);
    } else expect(found).toEqual(expected);
  });

  test("where bash lists, each line says what the word is, and none is wider than the terminal", () => {
    const lines = completed("pi-mcp-threads lo", 63);
    expect(lines.map((line) => line.trimEnd())).toEqual([
      "login   sign in to a server in the browser",
      "logout  sign out of a server",
      "logs    show the log, of all servers or of one",
    ]);
    for (const line of lines) expect(line).toHaveLength(56);
  });

  test.runIf(hasTmux())("the tab key: a value of an enumeration, and a list with descriptions", async () => {
    const shell = await openShell(home, 100, { path: env.PATH });
    await shell.type('PS1="> "; eval "$(pi-mcp-threads completion bash)"; echo read""y');
    await shell.until(/^ready/m);
    await shell.write("pi-mcp-threads call every__get-annotated-message messageType=su");
    await shell.press("Tab");
    await shell.until(/message messageType=success$/m);
    await shell.press("C-u");
    await shell.write("pi-mcp-threads call every get-sum ");
    await shell.press("Tab");
    await shell.press("Tab");
    await shell.until(/^a= +number, required: First number/m);
  });
});

describe("zsh", () => {
  test.runIf(hasShell("zsh") && hasTmux())("the tab key: values, descriptions, addresses", async () => {
    const shell = await openShell(home, 100, { program: ["zsh", "-f"], path: env.PATH });
    await shell.type(
      'PS1="> "; autoload -U compinit; compinit -u -D; eval "$(pi-mcp-threads completion zsh)"; echo read""y',
    );
    await shell.until(/^ready/m);
    await shell.write("MCP_SERVERS=every pi-mcp-threads call every get-annotated-message messageType=su");
    await shell.press("Tab");
    await shell.until(/message messageType=success$/m);
    await shell.press("C-u");
    await shell.write("true && pi-mcp-threads read every demo://resource/static/document/feat");
    await shell.press("Tab");
    await shell.until(/document\/features\.md/);
    await shell.press("C-u");
    await shell.write("pi-mcp-threads call every get-sum ");
    await shell.press("Tab");
    await shell.until(/^a= +-- number, required: First number/m);
  });
});

describe("fish", () => {
  test.runIf(hasShell("fish")).each([
    ["call every get-annotated-message messageType=", "messageType=error\n"],
    ["call every get-sum ", "a=\tnumber, required: First number\n"],
    ["lo", "logout\tsign out of a server\n"],
    ["--config /et", "/etc/\n"],
    ["read every demo://resource/static/document/feat", "/features.md\tStatic document file"],
  ])("%s", (words, expected) => {
    const script = 'pi-mcp-threads completion fish | source; complete -C "$argv[1]"';
    const options = { cwd: home.cwd, env, encoding: "utf8" } as const;
    const found = execFileSync("fish", ["-N", "-c", script, `pi-mcp-threads ${words}`], options);
    expect(found).toContain(expected);
  });
});
