/**
 * Owns: the packed command with a server whose package npm fetches slowly or not at all: the row of each server, the time
 * that the person gives, and what a terminal shows meanwhile.
 */
import { afterEach, beforeAll, expect, test } from "vitest";
import { forWholeFile } from "../support/cleanup.ts";
import { hasTmux } from "../support/has-program.ts";
import { ALL_ROWS } from "../support/long.ts";
import { makeHome } from "../support/make-home.ts";
import type { Registry } from "../support/npm-registry.ts";
import type { PiHome } from "../support/pi-home.ts";
import { MEMORY, startNpxRegistry } from "../worker/npx-registry.ts";
import { fixtureServer, runCli } from "./support.ts";
import { openShell } from "./tmux.ts";

let registry: Registry;
beforeAll(async () => {
  registry = await forWholeFile(startNpxRegistry);
});
afterEach(() => registry.behave(undefined));

const homeWith = (): Promise<PiHome> =>
  makeHome({
    mcp: {
      mcpServers: {
        mem: { command: "npx", args: ["-y", MEMORY], env: { npm_config_registry: registry.url } },
        ours: fixtureServer("shows.mjs"),
      },
    },
  });

const WAITS = String.raw`npm fetches, \d+ s, no answer of its registry yet: @modelcontextprotocol\/server-memory`;

test("a registry that never answers: list --refresh -> a row of its own for each server, within --timeout", async () => {
  registry.behave(() => "silent");
  const at = await homeWith();
  const listed = await runCli(at, ["list", "--refresh", "--timeout", "15"]);
  expect(listed).toMatchObject({ code: 3, stderr: "" });
  expect(listed.stdout).toMatch(new RegExp(`^mem\\tconnecting\\tstdio\\t.*\\t${WAITS}$`, "m"));
  expect(listed.stdout).toMatch(/^ours\tready\tstdio\t3 tools\t$/m);
});

test("a registry that never answers: call, tools, doctor -> --timeout decides, and the error names npm", {
  tags: "thorough",
}, async () => {
  registry.behave(() => "silent");
  const at = await homeWith();
  // The doctor gives up by itself after 11 s.
  const commands = [
    ["12", "call", "mem", "read_graph"],
    ["12", "tools", "mem"],
    ["9", "doctor", "mem"],
  ] as const;
  const runs = commands.map(async ([seconds, ...words]) => ({
    seconds,
    ...(await runCli(at, [...words, "--timeout", seconds])),
  }));
  for (const { seconds, code, stdout, stderr } of await Promise.all(runs)) {
    expect({ code, stdout }).toEqual({ code: 6, stdout: "" });
    expect(stderr.replaceAll(/\s+/g, " ")).toMatch(
      new RegExp(`Timed out after ${seconds} s \\(--timeout\\), waiting for mem: ${WAITS}\\.`),
    );
  }
});

test("no registry at all: doctor <server> -> an error that names its host, once", {
  tags: "thorough",
}, async () => {
  const at = await makeHome({ mcp: { mcpServers: { mem: { command: "npx", args: ["-y", MEMORY] } } } });
  const env = { npm_config_registry: "https://registry.nosuch.invalid/" };
  const { code, stdout } = await runCli(at, ["doctor", "mem", "--json"], { env });
  const { findings } = JSON.parse(stdout) as { findings: { id: string; severity: string; title: string }[] };
  expect(findings.filter(({ id }) => id === "npx")).toEqual([
    expect.objectContaining({ severity: "error", title: expect.stringContaining("registry.nosuch.invalid") }),
  ]);
  expect(code).toBe(1);
});

test.runIf(hasTmux())(
  "a terminal -> the last line of stderr says what is waited for, Ctrl-C ends it",
  { tags: "thorough" },
  async () => {
    registry.behave(() => "silent");
    const shell = await openShell(await homeWith());
    await shell.start("call mem read_graph");
    await shell.until(
      /^mem: npm fetches, [3-9] s, no answer of its registry yet: @modelcontextprotocol\/server-memory$/m,
    );
    await shell.press("C-c");
    await shell.until(/^exit 130$/m);
  },
);

test("a slow registry: call --timeout -> the result, however long a start may take", {
  tags: "thorough",
}, async () => {
  // In the long run longer than the 35 s after which the command once gave up.
  registry.behave(() => ({ delayMs: ALL_ROWS ? 9_500 : 800 }));
  const at = await homeWith();
  const called = await runCli(at, ["call", "mem", "read_graph", "--timeout", "120"]);
  expect(called).toMatchObject({ code: 0, stdout: expect.stringContaining('"entities": []') });
});

test("no such package -> call and list say it in one sentence, code 3", async () => {
  registry.behave(() => ({ status: 404 }));
  const at = await homeWith();
  const sentence =
    /cannot be started: npm's registry \S+ has no package @modelcontextprotocol\/server-memory\. Check its name/;
  const called = await runCli(at, ["call", "mem", "read_graph"]);
  expect(called.code).toBe(3);
  expect(called.stderr.replaceAll(/\s+/g, " ")).toMatch(sentence);
  expect((await runCli(at, ["list", "--refresh"])).stdout).toMatch(sentence);
});
