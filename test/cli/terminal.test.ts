/** Owns: the packed command in a real terminal: layout, colours, cleaning, questions, progress, Ctrl-C. */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { forWholeFile } from "../support/cleanup.ts";
import { makeHome } from "../support/make-home.ts";
import type { PiHome } from "../support/pi-home.ts";
import { everything, fixtureServer, runCli } from "./support.ts";
import { type CommandTerminal, openShell } from "./tmux.ts";

const shows = fixtureServer("shows.mjs");
/** A home whose project brings a server along. */
const withProject = (): Promise<PiHome> =>
  makeHome({ files: { ".mcp.json": { mcpServers: { ours: shows } } } });

let home: PiHome;
/** The terminal of all tests with this home: each command begins with an empty screen. */
let shell: CommandTerminal;
beforeAll(async () => {
  home = await forWholeFile(() =>
    makeHome({
      mcp: {
        mcpServers: {
          every: everything(),
          show: shows,
          asks: fixtureServer("asks-user.mjs"),
          samples: { ...fixtureServer("asks-user.mjs"), sampling: true },
          careful: { ...shows, approve: "always" },
        },
      },
    }),
  );
  shell = await forWholeFile(() => openShell(home));
  expect((await runCli(home, ["list"])).code).toBe(0);
});

describe("lists", () => {
  test("columns and colours; neither with NO_COLOR nor with --no-color", async () => {
    await shell.start("list --cached");
    expect(await shell.until(/exit 0/)).toMatch(/^every +not asked +stdio +14 tools, 9 resources$/m);
    expect(await shell.colours()).toContain("\u001b[1mevery");
    await shell.start("list --cached", "NO_COLOR=1");
    await shell.until(/careful[\s\S]*exit 0/);
    expect(await shell.colours()).not.toContain("\u001b[1m");
    await shell.start("search get sum --limit 2 --no-color");
    const found = await shell.until(/exit 0/);
    expect(found).toMatch(/^every__get-sum\(a: number, b: number\)$/m);
    expect(await shell.colours()).not.toContain("\u001b[1m");
    for (const line of found.split("\n")) expect(line.length).toBeLessThanOrEqual(100);
  });
});

describe("a call", () => {
  // test/unit/cli/console.test.ts has --json.
  test("text of a server cannot act on the terminal", async () => {
    await home.writeFile("text", "one\u001b]0;forged title\u0007 \u009b31mtwo\u202e");
    await shell.start("call show show text=@text");
    expect(await shell.until(/exit 0/)).toMatch(/^one 31mtwo$/m);
  });

  test("progress stands in one line and is gone at the end; Ctrl-C ends a call with code 130", async () => {
    const file = join(home.dir, "over");
    await shell.start(`call show count file=${file}`);
    await shell.until(/^count: 66 %/m);
    await shell.press("C-c");
    const screen = await shell.until(/exit 130/);
    expect(screen).not.toMatch(/count: 66/);
  });
});

describe("questions", () => {
  test("a project's server: everything is shown; no -> code 5 and nothing runs, yes -> it runs, once for all", async () => {
    const at = await withProject();
    const shell = await openShell(at);
    await shell.start("call ours show text=hi");
    expect(await shell.until(/Allow it\? \[y\/N\]/)).toContain("shows.mjs");
    await shell.type("");
    expect(await shell.until(/exit 5/)).toContain("You did not allow ours.");
    expect(await readFile(join(at.agentDir, "mcp-threads.log"), "utf8")).not.toContain(
      "connected over stdio",
    );
    // A no is remembered, as in Pi. Only a person at a terminal takes it back.
    const piped = await runCli(at, ["--yes", "call", "ours", "show", "text=hi"]);
    expect(piped).toMatchObject({ code: 5, stdout: "" });
    expect(piped.stderr).toMatch(/it was refused;[\s\S]*--yes does not undo a refusal/);
    await shell.start("--yes call ours show text=hi");
    await shell.until(/You refused this[\s\S]*shows\.mjs[\s\S]*Allow it\?/);
    await shell.type("y");
    await shell.until(/^hi$[\s\S]*exit 0/m);
    await shell.start("call ours show text=again");
    expect(await shell.until(/^again$[\s\S]*exit 0/m)).not.toContain("Allow it?");
  });

  test("the end of the input or of the time at the question -> code 5 or 6, and nothing is remembered; a first yes -> it runs", {
    tags: "thorough",
  }, async () => {
    const at = await withProject();
    const shell = await openShell(at);
    await shell.start("call ours show text=hi");
    await shell.until(/Allow it\? \[y\/N\]/);
    await shell.press("C-d");
    await shell.until(/ours waits for your consent[\s\S]*exit 5/);
    await shell.start("--timeout 3 call ours show text=hi");
    expect(await shell.until(/exit 6/)).toContain("Allow it?");
    expect(await readdir(at.agentDir)).not.toContain("mcp-trust.json");
    await shell.start("call ours show text=hi");
    await shell.until(/Allow it\? \[y\/N\]/);
    await shell.type("y");
    await shell.until(/^hi$[\s\S]*exit 0/m);
  });

  test("a rule asks about a tool: no -> code 5, yes -> it runs", async () => {
    await shell.start("call careful show text=secret-plan");
    expect(await shell.until(/Allow it\? \[y\/N, a: always\]/)).toContain("secret-plan");
    await shell.type("n");
    await shell.until(/exit 5/);
    await shell.start("call careful show text=hi");
    await shell.until(/text: "hi"\s+Allow it\?/);
    await shell.type("y");
    await shell.until(/^hi$[\s\S]*exit 0/m);
  });

  test("the arguments are typed -> nobody can be asked any more: code 5 at once", async () => {
    // Before the shell has begun, the keys are those of its own line.
    await shell.start("call careful show --args -", "echo begun;");
    await shell.until(/^begun$/m);
    await shell.type('{"text": "hi"}');
    await shell.press("C-d");
    await shell.until(/exit 5/);
  });

  test("a server's question: values are asked, checked, and shown before they are sent", async () => {
    const schema = {
      type: "object",
      properties: {
        name: { type: "string" },
        age: { type: "integer", minimum: 1 },
        kind: { type: "string", enum: ["a", "b"] },
      },
      required: ["name", "age", "kind"],
    };
    const ask = JSON.stringify({ message: "Who are you?", requestedSchema: schema });
    await shell.start(`call asks ask 'ask:=${ask}' times:=1`);
    expect(await shell.until(/Answer it\? \[y\/N\]/)).toContain("| Who are you?");
    await shell.type("y");
    await shell.until(/\(a text\)/);
    await shell.type("Ann");
    await shell.until(/\(a whole number of at least 1\)/);
    await shell.type("zero");
    await shell.until(/^! .*$[\s\S]*\(a whole number of at least 1\) *$/m);
    await shell.type("30");
    await shell.until(/\(a number from 1 to \d\)/);
    await shell.type("2");
    expect(await shell.until(/Send this\? \[y\/N\]/)).toMatch(/name: Ann/);
    await shell.type("y");
    const screen = await shell.until(/exit 0/);
    expect(screen).toContain('"action":"accept"');
    expect(screen).toContain('"age":30');
  });

  test("a server wants a model, four times -> one line says that only Pi has one, and its question is asked", {
    tags: "thorough",
  }, async () => {
    const messages = [{ role: "user", content: { type: "text", text: "Hi?" } }];
    await home.writeFile(
      "prompt",
      JSON.stringify({ ask: { messages, maxTokens: 9 }, method: "sampling/createMessage", times: 4 }),
    );
    const ask = JSON.stringify({
      message: "Who are you?",
      requestedSchema: { type: "object", properties: {} },
    });
    await shell.start(`call samples ask before:=@prompt 'ask:=${ask}'`);
    const shown = await shell.until(/\| Who are you\?[\s\S]*\[y\/N\]/);
    expect(shown.match(/samples asks a model: only Pi has one\./g)).toHaveLength(1);
    await shell.type("n");
    expect(await shell.until(/exit 0/)).toMatch(/"code":-32603[\s\S]*"action":"decline"/);
  });
});

test("in a pipe nobody is asked: a rule denies with code 5, a server's question is declined", async () => {
  const [denied, allowed, asked] = await Promise.all([
    runCli(home, ["call", "careful", "show", "text=hi"]),
    runCli(home, ["call", "careful", "show", "text=hi", "--yes"]),
    runCli(home, [
      "call",
      "asks",
      "ask",
      `ask:={"message":"?","requestedSchema":{"type":"object","properties":{}}}`,
      "times:=1",
    ]),
  ]);
  expect(denied).toMatchObject({ code: 5, stdout: "" });
  expect(denied.stderr).toContain('"approve" needs the user\'s yes, and no one can be asked here.');
  expect(denied.stderr).not.toContain("said no");
  expect(allowed).toMatchObject({ code: 0, stdout: "hi\n" });
  expect(allowed.stderr).toContain("text");
  expect(asked.code).toBe(0);
  expect(asked.stdout).not.toContain("accept");
});
