/** Owns: the completion scripts in real shells. zsh and fish take part where they are installed. */
import { execFileSync, spawnSync } from "node:child_process";
import { symlink, writeFile } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { forWholeFile } from "../support/cleanup.ts";
import { family } from "../support/long.ts";
import { makeHome } from "../support/make-home.ts";
import type { PiHome } from "../support/pi-home.ts";
import { CLI, fixtureServer, runCli } from "./support.ts";

let home: PiHome;
let env: Record<string, string>;
beforeAll(async () => {
  home = await forWholeFile(() => makeHome({ mcp: { mcpServers: { every: fixtureServer("shapes.mjs") } } }));
  await symlink(CLI, join(home.dir, "pi-mcp-threads"));
  const base = home.env();
  env = { ...base, PATH: `${home.dir}${delimiter}${base.PATH}` };
  expect((await runCli(home, ["tools", "every", "--refresh"])).code).toBe(0);
});

/** What bash proposes for a line with the cursor at its end. */
function completed(line: string): string[] {
  const script = `
    eval "$(pi-mcp-threads completion bash)"
    COMP_LINE=$1; COMP_POINT=\${#COMP_LINE}
    read -ra COMP_WORDS <<< "$COMP_LINE"
    [[ $COMP_LINE == *' ' ]] && COMP_WORDS+=("")
    COMP_CWORD=$((\${#COMP_WORDS[@]} - 1))
    _pi_mcp_threads 2>/dev/null
    printf '%s\\n' "\${COMPREPLY[@]}"`;
  const stdout = execFileSync("bash", ["-c", script, "bash", line], { cwd: home.cwd, env, encoding: "utf8" });
  return stdout.split("\n").filter((word) => word !== "");
}

describe("bash", () => {
  test("the script has no mistake", async () => {
    const { stdout } = await runCli(home, ["completion", "bash"]);
    expect(spawnSync("bash", ["-n"], { input: stdout, encoding: "utf8" })).toMatchObject({
      status: 0,
      stderr: "",
    });
  });

  // What a line is completed with: test/unit/cli/completion.test.ts.
  test.each(
    family([
      ["pi-mcp-threads call every tree ", ["root=", "gone="]],
      ["pi-mcp-threads lo", ["login", "logout", "logs"]],
      ["pi-mcp-threads call ", ["every"]],
      ["pi-mcp-threads call every measu", ["measure"]],
      ["pi-mcp-threads list --ref", ["--refresh"]],
    ]),
  )("%s", (line, expected) => {
    expect(completed(line)).toEqual(expected);
  });
});

const has = (shell: string): boolean => spawnSync(shell, ["--version"]).status === 0;

describe.each(["zsh", "fish"])("%s", (shell) => {
  test(
    has(shell) ? "the script has no mistake" : "the script is there; the shell is not installed here",
    async () => {
      const { stdout, code } = await runCli(home, ["completion", shell]);
      expect({
        code,
        hasName: stdout.includes("pi-mcp-threads __complete") || stdout.includes(" __complete "),
      }).toEqual({
        code: 0,
        hasName: true,
      });
      if (!has(shell)) return;
      // From a file: Node hands a script over in a socket, and fish takes that for a directory (status 127).
      const script = join(home.dir, `completion.${shell}`);
      await writeFile(script, stdout);
      expect(spawnSync(shell, ["-n", script], { encoding: "utf8" })).toMatchObject({ status: 0, stderr: "" });
    },
  );
});
