/** Owns: the packed command in a real terminal: layout, colours, cleaning, questions, progress, Ctrl-C. */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, describe, expect, inject, test } from "vitest";
import { forWholeFile, onCleanup } from "../support/cleanup.ts";
import { createHome, type HomeOptions, type PiHome } from "../support/pi-home.ts";
import { everything, fixtureServer, runCli } from "./support.ts";
import { openShell } from "./tmux.ts";

async function makeHome(options: HomeOptions = {}): Promise<PiHome> {
  const home = await createHome({ caches: inject("piCaches"), ...options });
  onCleanup(home.dispose);
  return home;
}

let home: PiHome;
beforeAll(async () => {
  home = await forWholeFile(() =>
    makeHome({
      mcp: {
        mcpServers: {
          every: everything(),
          show: fixtureServer("shows.mjs"),
          asks: fixtureServer("asks-user.mjs"),
          careful: { ...everything(), approve: "always" },
        },
      },
    }),
  );
  expect((await runCli(home, ["list", "--refresh"])).code).toBe(0);
});

describe("lists", () => {
  test("columns and colours; neither with NO_COLOR nor with --no-color", async () => {
    const shell = await openShell(home);
    await shell.start("list");
    expect(await shell.until(/exit 0/)).toMatch(/^every +not connected +stdio +15 tools, 9 resources$/m);
    expect(await shell.colours()).toContain("\u001b[1mevery");
    await shell.start("list", "NO_COLOR=1");
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
  test("text of a server cannot act on the terminal; --json shows such characters by their codes", async () => {
    const shell = await openShell(home);
    await home.writeFile("text", "one\u001b]0;forged title\u0007 \u009b31mtwo\u202e");
    await shell.start("call show show text=@text");
    expect(await shell.until(/exit 0/)).toMatch(/^one 31mtwo$/m);
    await shell.start("call show show text=@text --json");
    expect(await shell.until(/exit 0/)).toMatch(/one\\u001b\]0;forged title\\u0007 \\u009b31mtwo\\u202e/);
  });

  test("progress stands in one line and is gone at the end; Ctrl-C ends a call with code 130", async () => {
    const shell = await openShell(home);
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
    const at = await makeHome({ files: { ".mcp.json": { mcpServers: { every: everything() } } } });
    const shell = await openShell(at);
    await shell.start("call every echo message=hi");
    expect(await shell.until(/Allow it\? \[y\/N\]/)).toContain("server-everything/one-file/index.mjs");
    await shell.type("");
    expect(await shell.until(/exit 5/)).toContain("You did not allow every.");
    expect(await readFile(join(at.agentDir, "mcp-threads.log"), "utf8")).not.toContain(
      "connected over stdio",
    );
    // A no is remembered, as in Pi. Only a person at a terminal takes it back.
    const piped = await runCli(at, ["--yes", "call", "every", "echo", "message=hi"]);
    expect(piped).toMatchObject({ code: 5, stdout: "" });
    expect(piped.stderr).toMatch(/refused before[\s\S]*--yes takes back no refusal/);
    await shell.start("--yes call every echo message=hi");
    await shell.until(/You refused this[\s\S]*server-everything\/one-file\/index\.mjs[\s\S]*Allow it\?/);
    await shell.type("y");
    await shell.until(/^Echo: hi$[\s\S]*exit 0/m);

    const other = await makeHome({ files: { ".mcp.json": { mcpServers: { every: everything() } } } });
    const second = await openShell(other);
    await second.start("call every echo message=hi");
    await second.until(/Allow it\?/);
    await second.type("y");
    await second.until(/^Echo: hi$[\s\S]*exit 0/m);
    await second.start("call every echo message=again");
    expect(await second.until(/^Echo: again$[\s\S]*exit 0/m)).not.toContain("Allow it?");
  });

  test("the end of the input or of the time at the question -> code 5 or 6, and nothing is remembered", async () => {
    const at = await makeHome({ files: { ".mcp.json": { mcpServers: { every: everything() } } } });
    const shell = await openShell(at);
    await shell.start("call every echo message=hi");
    await shell.until(/Allow it\? \[y\/N\]/);
    await shell.press("C-d");
    await shell.until(/every waits for your consent[\s\S]*exit 5/);
    await shell.start("--timeout 3 call every echo message=hi");
    expect(await shell.until(/exit 6/)).toContain("Allow it?");
    expect(await readdir(at.agentDir)).not.toContain("mcp-trust.json");
  });

  test("a rule asks about a tool: no -> code 5, yes -> it runs", async () => {
    const shell = await openShell(home);
    await shell.start("call careful echo message=secret-plan");
    expect(await shell.until(/Allow it\? \[y\/N, a: always\]/)).toContain("secret-plan");
    await shell.type("n");
    await shell.until(/exit 5/);
    await shell.start("call careful echo message=hi");
    await shell.until(/message: "hi"\s+Allow it\?/);
    await shell.type("y");
    await shell.until(/^Echo: hi$[\s\S]*exit 0/m);
  });

  test("a server's question: values are asked, checked, and shown before they are sent", async () => {
    const shell = await openShell(home);
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
    await shell.until(/\(a whole number\)/);
    await shell.type("zero");
    await shell.until(/^! .*$[\s\S]*\(a whole number\) *$/m);
    await shell.type("30");
    await shell.until(/\(the number of one\)/);
    await shell.type("2");
    expect(await shell.until(/Send this\? \[y\/N\]/)).toMatch(/name: Ann/);
    await shell.type("y");
    const screen = await shell.until(/exit 0/);
    expect(screen).toContain('"action":"accept"');
    expect(screen).toContain('"age":30');
  });
});

test("in a pipe nobody is asked: a rule denies with code 5, a server's question is declined", async () => {
  const [denied, allowed, asked] = await Promise.all([
    runCli(home, ["call", "careful", "echo", "message=hi"]),
    runCli(home, ["call", "careful", "echo", "message=hi", "--yes"]),
    runCli(home, [
      "call",
      "asks",
      "ask",
      `ask:={"message":"?","requestedSchema":{"type":"object","properties":{}}}`,
      "times:=1",
    ]),
  ]);
  expect(denied).toMatchObject({ code: 5, stdout: "" });
  expect(allowed).toMatchObject({ code: 0, stdout: "Echo: hi\n" });
  expect(allowed.stderr).toContain("message");
  expect(asked.code).toBe(0);
  expect(asked.stdout).not.toContain("accept");
});
