/** Owns: what commands ask of the worker and what they refuse before that. The worker is a fake. */
import { PassThrough } from "node:stream";
import { expect, test, vi } from "vitest";
import { createCatalogStore } from "../../../src/catalog/store.ts";
import { loadCommand } from "../../../src/cli/commands/commands.ts";
import type { Context } from "../../../src/cli/commands/known.ts";
import type { ConsoleOptions } from "../../../src/cli/console/console.ts";
import { NO_OPTIONS, type Options } from "../../../src/cli/words/parse.ts";
import type { WordName } from "../../../src/cli/words/table.ts";
import { PATIENCE_MS } from "../../support/patience.ts";
import { captureConsole } from "./captured-console.ts";

type Answers = Readonly<Record<string, unknown>>;

const AGENT_DIR = "/no/such/agent";
const KEY = { cwd: "/no/such/project", configFile: undefined };

/** Runs a command on a worker that knows one server and gives these answers. `asked`: the requests so far, by name. */
async function run(
  word: WordName,
  words: readonly string[],
  answers: Answers = {},
  options: Partial<Options> = {},
  terminal: Partial<ConsoleOptions> & { isTTY?: boolean } = {},
) {
  const asked: string[] = [];
  const params: unknown[] = [];
  const { console, stdout, stderr } = captureConsole({ json: options.json === true, ...terminal });
  const runtime = {
    ask: async (name: string, given: unknown) => {
      asked.push(name);
      params.push(given);
      if (!(name in answers)) throw new Error(`the worker is not to be asked for ${name}`);
      return answers[name];
    },
  };
  const servers = [{ name: "github", state: "idle", toolsKnown: false }];
  const report = { servers, problems: [], files: [], questions: [], refused: [] };
  const context = {
    console,
    place: { agentDir: AGENT_DIR, key: KEY, trust: { trust: "by-option" } },
    options: { ...NO_OPTIONS, ...options },
    arguments: words,
    signal: new AbortController().signal,
    session: async () => ({
      runtime,
      store: createCatalogStore(AGENT_DIR, KEY),
      planned: async () => report,
      status: async () => report,
      allow: async () => undefined,
    }),
  } as unknown as Context;
  const command = await loadCommand(word);
  return { done: command(context), asked, params, stdout, stderr };
}

test.each([["remove"], ["disable"], ["enable"], ["login"], ["logout"], ["call", "work"]] as const)(
  "%s of a name that is merely alike -> a mistake of usage, before anything is asked of the worker",
  async (word, ...more) => {
    const { done, asked } = await run(word, ["git-hub", ...more]);
    await expect(done).rejects.toMatchObject({
      exitCode: 2,
      message: "No server named git-hub is configured.",
      remedy: "One is named github. This command needs the exact name.",
    });
    expect(asked).toEqual([]);
  },
);

const SWITCHED = { file: "/home/mcp.json", but: "It waits." };
test.each<[WordName, Answers, string, string, unknown]>([
  [
    "enable",
    { setEnabled: SWITCHED },
    "github is enabled in /home/mcp.json.\n",
    "It waits.\n",
    { enabled: true },
  ],
  [
    "disable",
    { setEnabled: SWITCHED },
    "github is disabled in /home/mcp.json.\n",
    "It waits.\n",
    { but: "It waits." },
  ],
  ["logout", { signOut: { text: "github: signed out." } }, "github: signed out.\n", "", { server: "github" }],
])(
  "%s, which /mcp carries out alike -> a line on stdout, or one document",
  async (word, answers, out, err, document) => {
    const text = await run(word, ["github"], answers);
    expect([await text.done, text.stdout(), text.stderr()]).toEqual([0, out, err]);
    const json = await run(word, ["github"], answers, { json: true });
    expect(await json.done).toBe(0);
    expect(JSON.parse(json.stdout())).toMatchObject(document as object);
  },
);

const HUB = { pid: 10, since: 0, servers: [] };
test.each<[string[], Answers, string, unknown]>([
  [[], { hub: {} }, "No shared server runs. ", { hub: null }],
  [[], { hub: { report: HUB } }, "The hub of shared servers: pid 10, ", { hub: HUB }],
  [["stop"], { hub: { report: HUB, stopped: 0 } }, "The hub is ended. ", { stopped: 0, hub: HUB }],
  [["stop", "files"], { hub: { report: HUB, stopped: 1 } }, "files is ended, ", { stopped: 1, hub: HUB }],
])("hub %j, %j -> a text, or one document", async (words, answers, out, document) => {
  const text = await run("hub", words, answers);
  expect(await text.done).toBe(0);
  expect(text.stdout()).toContain(out);
  const json = await run("hub", words, answers, { json: true });
  expect(await json.done).toBe(0);
  expect(JSON.parse(json.stdout())).toEqual(document);
});

test("hub with another word -> a mistake of usage, before anything is asked of the worker", async () => {
  const { done, asked } = await run("hub", ["files"], { hub: {} });
  await expect(done).rejects.toMatchObject({ exitCode: 2, message: 'hub does not take "files".' });
  expect(asked).toEqual([]);
});

const NEW = { line: "node x.mjs", file: "/home/mcp.json", mistakes: [] };

test("add of a configured name -> a mistake of usage: neither tried nor written", async () => {
  const exists = { file: "/home/mcp.json", by: "user" };
  const { done, asked } = await run("add", ["github", "x"], { previewServer: { ...NEW, exists } }, {});
  await expect(done).rejects.toMatchObject({
    exitCode: 2,
    message: "github is configured already, in /home/mcp.json.",
    remedy: "--replace before the name replaces it.",
  });
  expect(asked).toEqual(["previewServer"]);
});

test("add --no-test -> written without a try", async () => {
  const answers = { previewServer: NEW, addServer: { file: NEW.file } };
  const { done, asked, stdout } = await run("add", ["dead", "no-such-program"], answers, { "no-test": true });
  expect(await done).toBe(0);
  expect(asked).toEqual(["previewServer", "addServer"]);
  expect(stdout()).toBe("dead is added to /home/mcp.json.\n");
});

test("add of a well-known name alone -> its entry, as /mcp add has it; of another name the usage", async () => {
  const answers = { previewServer: NEW, addServer: { file: NEW.file } };
  const { done, params } = await run("add", ["deepwiki"], answers, { "no-test": true });
  expect(await done).toBe(0);
  expect(params[0]).toEqual({
    name: "deepwiki",
    entry: { url: "https://mcp.deepwiki.com/mcp" },
    project: false,
  });
  await expect((await run("add", ["nothing"])).done).rejects.toMatchObject({
    exitCode: 2,
    message: "The command or the URL is missing behind the name nothing.",
    remedy: expect.stringContaining("add <the name of a well-known server>, for example github"),
  });
});

test("add of a server that fails its try -> code 3, and it is not written", async () => {
  const error = { code: "connect_failed", message: "It is not there." };
  const answers = { previewServer: NEW, tryServer: { outcome: "failed", error, tookMs: 1 } };
  const { done, asked } = await run("add", ["dead", "no-such-program"], answers, {});
  await expect(done).rejects.toMatchObject({ exitCode: 3, message: "dead is not added: It is not there." });
  expect(asked).toEqual(["previewServer", "tryServer"]);
});

test("add and import --copy say what a sandbox would do, and import gives one by --sandbox alone", async () => {
  const preview = { ...NEW, lacksRoom: true };
  const added = await run(
    "add",
    ["fs", "npx", "fs"],
    { previewServer: preview, addServer: { file: "/f" } },
    { "no-test": true },
  );
  await added.done;
  expect(added.stderr()).toContain("--sandbox before the name would hide your keys and sign-ins");
  const servers = [
    { name: "fs", line: "npx fs", id: "1", standing: "new", lacksRoom: true },
    { name: "own", line: "./own", id: "2", standing: "new" },
  ];
  const findImports = {
    hosts: [{ host: "cursor", title: "Cursor", files: [{ file: "/c", servers, more: 0 }] }],
    problems: [],
  };
  const answers = { findImports, takeImports: { file: "/f", taken: ["fs", "own"], left: [] } };
  for (const [sandbox, word] of [
    [true, "hides"],
    [false, "would hide"],
  ] as const) {
    const taken = await run("import", ["cursor"], answers, { copy: true, yes: true, sandbox });
    expect(await taken.done).toBe(0);
    expect(taken.stderr()).toContain(
      `--sandbox ${word} your keys and sign-ins from those of registries: fs.`,
    );
  }
  const alone = await run("import", ["cursor"], answers, { sandbox: true });
  await expect(alone.done).rejects.toMatchObject({ exitCode: 2, message: "--sandbox is for --copy." });
});

test("import --copy in a terminal -> each server of a file that others may have written has its own question", async () => {
  const server = (name: string) => ({ name, line: `run ${name}`, id: name, standing: "new" });
  const files = [
    { file: "/home/c", servers: [server("mine")], more: 0 },
    { file: "/clone/c", ofProject: true, servers: [server("mine"), server("a"), server("b")], more: 0 },
    { file: "/plugin", ofPackage: true, servers: [{ ...server("p"), standing: "other" }], more: 0 },
  ];
  const findImports = { hosts: [{ host: "cursor", title: "Cursor", files }], problems: [] };
  const answers = { findImports, takeImports: { file: "/f", taken: ["mine", "b"], left: [] } };
  const stdin = Object.assign(new PassThrough(), { isTTY: true });
  const options = { copy: true, yes: true, replace: true };
  const taken = await run("import", ["cursor"], answers, options, { isTTY: true, stdin });
  const shown = (text: string) =>
    vi.waitFor(() => expect(taken.stderr().replace(/\s+/g, " ")).toContain(text), PATIENCE_MS);
  await shown("a comes from /clone/c, a file of this project, which others may have written.");
  await shown("run a Write it? [y/N]");
  stdin.write("\n");
  await shown("run b Write it? [y/N]");
  stdin.write("y\n");
  await shown("p comes from /plugin, a file of a plugin, which others may have written.");
  await shown("run p Write it in the place of the one that has its name? [y/N]");
  stdin.write("n\n");
  expect(await taken.done).toBe(0);
  expect(taken.params.at(-1)).toEqual({ how: "copy", ids: ["mine", "b"], replace: true });
  expect(taken.stderr()).toContain("a is left out: you did not agree.");
});

test("import of a program that is not found -> the nearest one, and nothing is taken", async () => {
  const findImports = { hosts: [{ host: "claude-code", files: [] }], problems: [] };
  const { done, asked } = await run("import", ["claude-cod"], { findImports }, {});
  await expect(done).rejects.toMatchObject({
    exitCode: 2,
    message: "No file of a program claude-cod is found. Did you mean claude-code?",
  });
  expect(asked).toEqual(["findImports"]);
});

test.each([
  [["git-hub__work"], "No server or tool named git-hub__work is known."],
  [["work", "a=1"], "No server or tool named work is known."],
  [["work", '{"a": 1}'], "No server or tool named work is known."],
  [["github"], "call github needs the name of a tool."],
  [["github", "a=1"], "call github needs the name of a tool."],
])(
  "call %j, which names no server and tool -> a mistake of usage, and no server is asked",
  async (words, message) => {
    const { done, asked } = await run("call", words);
    await expect(done).rejects.toMatchObject({ exitCode: 2, message });
    expect(asked).toEqual([]);
  },
);

test("doctor --report -> the text of an issue; an error is code 1, a warning code 0", async () => {
  const facts = { version: "1.2.3", runtime: "Node 24.0.0", platform: "linux", proxies: [] };
  const counts = { servers: 1, connected: 0, waiting: 0, tools: 0 };
  const finding = { id: "command", severity: "error", server: "github", title: "It is not on PATH." };
  const diagnose = {
    findings: [finding],
    leftOut: 0,
    facts: { ...facts, ...counts },
    servers: [],
    stages: [],
    tookMs: 1,
  };
  const report = await run("doctor", [], { diagnose }, { report: true });
  expect(await report.done).toBe(1);
  expect(report.stdout()).toMatch(/^```text\npi-mcp-threads 1\.2\.3, Node 24\.0\.0/);
  const well = { ...diagnose, findings: [{ ...finding, severity: "warning" }] };
  expect(await (await run("doctor", [], { diagnose: well }, {})).done).toBe(0);
});
