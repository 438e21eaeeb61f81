/**
 * Owns: tests of one run in print mode with the packed package, a second copy of it, another extension and servers that
 * fail or may not run: the answers, the lines on stderr, and that no process is left.
 */
import { expect, test } from "vitest";
import { toolResultTexts } from "../support/model.ts";
import { runPrint } from "../support/pi-run.ts";
import { processesWithMarker } from "../support/processes.ts";
import { homeWithServers, unready } from "./ending-servers.ts";
import { live } from "./rpc-support.ts";
import { call, ENTRY, entryOf, home, model, once, readLog, searchFor } from "./support.ts";

const ROWS: [server: string, why: string, expected: RegExp][] = [
  [
    "less",
    "excluded",
    /^Tool less__echo not found: less offers echo, but the configuration excludes it\. Only the user can allow it: excludeTools, .*mcp\.json\.$/,
  ],
  [
    "off",
    "of a server that is switched off",
    /^Tool off__echo not found: off is disabled in .*mcp\.json\. \/mcp enable off switches it on\.$/,
  ],
  [
    "theirs",
    "of a server that is not trusted",
    /^Tool theirs__echo not found: theirs is not started: no one can be asked for consent here\. Only the user can allow it\.$/,
  ],
];

const echo = (more: Record<string, unknown> = {}) => live([], { TOOLS: "echo,other" }, more);

const ran = once(async () => {
  const at = await homeWithServers(
    (bad) => ({ bad: unready(bad), less: echo({ excludeTools: ["echo"] }), off: echo({ enabled: false }) }),
    { trusted: true, files: { ".mcp.json": { mcpServers: { theirs: echo() } } } },
  );
  const packed = await entryOf("packed package");
  const other = await at.writeFile(
    "other.mjs",
    'export default (pi) => pi.registerCommand("mcp", { description: "x", handler: async () => {} });',
  );
  const scripted = await model([
    ...ROWS.flatMap(([server]) => [
      searchFor(`select:${server}__echo`),
      call(`${server}__echo`, { message: "hi" }),
    ]),
    searchFor("select:a__work"),
    call("a__work", {}),
    { text: "ok" },
  ]);
  const extensions = [packed, ENTRY, other];
  const run = await runPrint({ home: at, model: scripted, extensions, prompt: "go" });
  const left = await processesWithMarker(at.dir);
  const last = scripted.requests.at(-1);
  const answers = last ? toolResultTexts(last) : [];
  return { run, left, answers, packed, other, log: await readLog(at) };
});

test("the prompt is done -> the answer on stdout, no process is left, one line on stderr for each extension and server that the user must know of", async () => {
  const { run, left, packed, other } = await ran();
  expect(run).toMatchObject({ code: 0, stdout: "ok\n", timedOut: false });
  expect(left.map(({ command }) => command)).toEqual([]);
  const lines = run.stderr.trimEnd().split("\n");
  expect(lines).toHaveLength(4);
  expect(lines).toEqual(
    expect.arrayContaining([
      `pi-mcp-threads is loaded twice: ${packed} is in use, ${ENTRY} does nothing. Remove one.`,
      expect.stringMatching(/^MCP server bad: .*exited with code 3.*not ready/),
      "MCP server theirs is not started: no one can be asked for consent here.",
    ]),
  );
  const [told, ...others] = lines.filter((line) => line.includes(other));
  expect(told).toContain("also provides /mcp");
  expect(others).toEqual([]);
});

test("a second copy of the extension, another extension with /mcp, a server that failed -> the first copy alone works, and calls are answered", async () => {
  const { answers, log } = await ran();
  expect(answers.at(-1)).toBe("through the noise");
  expect(log.match(/\[connection#\d+\] started$/gm)).toHaveLength(1);
});

test.each(ROWS)(
  "a call of %s__echo, %s -> the answer and the search say why, and no refused server runs",
  async (server, _why, expected) => {
    const { answers, log } = await ran();
    const at = 2 * ROWS.findIndex(([name]) => name === server);
    const [search = "", answer = ""] = answers.slice(at);
    expect(answer).toMatch(expected);
    expect(search).toContain(`${server}__echo: ${answer.replace(`Tool ${server}__echo not found: `, "")}`);
    expect(log).not.toMatch(/\b(off|theirs) connected over/);
  },
);

test("a folder that Pi does not trust -> one line says that its servers are not read; --approve reads them", async () => {
  const mcp = { mcpServers: { a: echo() } };
  const at = await home({ mcp, files: { ".pi/mcp.json": { mcpServers: { theirs: echo() } } } });
  const told =
    ".pi/mcp.json: Pi does not trust this folder, so its servers are not read. /trust in Pi, or --approve, decides that.\n";
  for (const [args, stderr] of [
    [[], told],
    [["--approve"], ""],
  ] as const) {
    const steps = [searchFor("select:a__echo"), call("a__echo", { message: "hi" }), { text: "ok" }];
    const run = await runPrint({
      home: at,
      model: await model(steps),
      extensions: ENTRY,
      args,
      prompt: "go",
    });
    expect(run).toMatchObject({ code: 0, stdout: "ok\n", stderr });
  }
});
