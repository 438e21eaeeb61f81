/**
 * Owns: tests of edits of the configuration while the real Pi runs: the changes, the kept servers, the user's commands.
 * config-flag.test.ts tests a file that `--mcp-config` names, and project-limits.test.ts the consent to a project's files.
 */
import { createHash } from "node:crypto";
import { readFile, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { filesBelow, unlessGone } from "../support/files-below.ts";
import { type ModelRequest, toolResultTexts } from "../support/model.ts";
import type { PiHome } from "../support/pi-run.ts";
import { waitGone } from "../support/processes.ts";
import { notices, type RpcDialog, type RpcToolEnd } from "../support/rpc-events.ts";
import { inTurn } from "./in-turn.ts";
import {
  dialogsOf,
  effectsOf,
  expectClean,
  type LiveAnswer,
  live,
  type Opened,
  PATIENCE_MS,
  serversOf,
} from "./rpc-support.ts";
import { call, fixtureServer, once, readLog, searchFor } from "./support.ts";

const answerOf = (end: RpcToolEnd | undefined): LiveAnswer => JSON.parse(end?.text ?? "") as LiveAnswer;

const SECRET = "pmt-s3cret-of-the-environment";

/** One Pi; each test of a project or an environment is a session of its own. */
const turn = inTurn({ env: { X: "filled", PMT_SECRET: SECRET } });

/** The first session of this Pi, for the tests that change only the user's file. They come before all others. */
const shared = once(async () => {
  const pi = await turn({ mcp: { mcpServers: {} }, trusted: true });
  // `/mcp` answers when the configuration has been read.
  await pi.status();
  return pi;
});

/** Gives the shared session these servers after the earlier ones have ended. `from` is the first record of the test. */
async function openShared(
  mcp: { mcpServers: Record<string, unknown> } | string,
): Promise<Opened & { from: number }> {
  const pi = await shared();
  const told = async (content: unknown, effect: RegExp): Promise<void> => {
    const since = pi.rpc.events.length;
    await pi.at.writeMcp(content);
    await pi.notice(effect, since);
  };
  if (effectsOf(pi.rpc).length > 0) await told({ mcpServers: {} }, /^mcp\.json: - /);
  expect(await waitGone(await serversOf(pi.at))).toEqual([]);
  await told(mcp, /^mcp\.json: \+ /);
  return { ...pi, from: pi.rpc.events.length };
}

/** The settings of a home whose project folder holds this extension. */
const withExtension = (at: PiHome, name: string): Record<string, unknown> => ({
  extensions: ["-builtin:mcp", join(at.cwd, name)],
});

/** Waits until calls of these tools run. */
async function running({ rpc }: Opened, tools: readonly string[], since: number): Promise<void> {
  for (const tool of tools) {
    await rpc.waitFor(
      (event) => event.type === "tool_execution_start" && event.toolName === tool,
      PATIENCE_MS,
      since,
    );
  }
}

test("searchKeywords, changed and removed in an open session -> ToolSearch goes by the new words from the next search on; the server goes on, and no declared byte changes", async () => {
  const words = (searchKeywords?: Record<string, string[]>) => ({
    mcpServers: { s: live([], { TOOLS: "work,page" }, searchKeywords ? { searchKeywords } : {}) },
  });
  const pi = await openShared(words({ work: ["zebrafish"] }));
  const found = async (query: string): Promise<string> => (await pi.prompt(searchFor(query)))[0]?.text ?? "";
  const declared = (name: string): string =>
    JSON.stringify(
      pi.scripted.requests.at(-1)?.tools?.find((tool) => tool.function.name === name) ?? "not declared",
    );
  const edit = async (config: ReturnType<typeof words>): Promise<void> => {
    const since = pi.rpc.events.length;
    await pi.at.writeMcp(config);
    await pi.notice(/^mcp\.json: /, since);
  };
  expect(await found("zebrafish")).toMatch(/^Loaded\.[\s\S]*- s__work\(/);
  const { pid } = await pi.ask("s__work");
  const before = declared("s__work");
  expect(before).toContain("s__work");

  await edit(words({ page: ["zebrafish", "lamprey"] }));
  for (const word of ["zebrafish", "lamprey"]) {
    const text = await found(word);
    expect(text).toContain("- s__page(");
    expect(text).not.toContain("s__work");
  }
  await edit(words());
  expect(await found("zebrafish")).toBe("No tools found.\nNo tool matches: zebrafish");
  expect(declared("s__work")).toBe(before);
  expect(declared("s__page")).toContain("s__page");
  expect((await pi.ask("s__work")).pid).toBe(pid);
  expect(JSON.stringify(pi.scripted.requests.map(({ tools }) => tools))).not.toMatch(/zebrafish|lamprey/);
});

interface TraceLine {
  server: string;
  direction: string;
  kind: string;
  method?: string;
  name?: string;
}

test("trace, switched on in an open session, then in a place that takes nothing -> a line for each message of that server alone, then the calls go on and the log says it once", async () => {
  const servers = (trace: boolean) => ({
    mcpServers: { s: live(["s"], { TOKEN: SECRET }, { trace }), other: live(["other"]) },
  });
  const pi = await openShared(servers(false));
  const file = join(pi.at.agentDir, "mcp-trace.jsonl");
  await pi.prompt(searchFor("select:s__work,other__work"));
  await pi.ask("s__work");
  await expect(readFile(file)).rejects.toMatchObject({ code: "ENOENT" });

  const since = pi.rpc.events.length;
  await pi.at.writeMcp(servers(true));
  await pi.notice(/^mcp\.json: /, since);
  await pi.ask("s__work");
  await pi.ask("other__work");
  const lines = async (): Promise<TraceLine[]> =>
    (await readFile(file, "utf8"))
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as TraceLine);
  const calls = async () => (await lines()).filter(({ method }) => method === "tools/call");
  await expect.poll(async () => (await calls()).length, { timeout: PATIENCE_MS }).toBe(2);
  expect(await calls()).toMatchObject([
    { server: "s", direction: "out", kind: "request", name: "work" },
    { server: "s", direction: "in", kind: "result" },
  ]);
  expect((await lines()).every(({ server }) => server === "s")).toBe(true);
  expect(await readFile(file, "utf8")).not.toContain(SECRET);

  await rm(file);
  await symlink("/dev/full", file);
  for (let at = 0; at < 3; at++) expect((await pi.ask("s__work")).argv).toEqual(["s"]);
  const told = async (): Promise<string[]> =>
    (await readLog(pi.at)).split("\n").filter((line) => line.includes("is not traced"));
  await expect.poll(async () => (await told()).length, { timeout: PATIENCE_MS }).toBe(1);
  expect((await told())[0]).toMatch(/s is not traced: .*not a regular file$/);
  await pi.ask("s__work");
  expect(await told()).toHaveLength(1);
  expectClean(pi);
});

describe("an edit while calls are in flight", () => {
  test("servers added, changed and removed at once -> each edit applies, one notice, kept servers keep their pid", async () => {
    const docs = live([], { TOOLS: Array.from({ length: 12 }, (_, i) => `page${i}`).join(",") });
    const before = { keep: live(), github: live(["one"]), old: live() };
    const pi = await openShared({ mcpServers: before });
    const tools = ["keep__work", "github__work", "old__work"];
    await pi.prompt(searchFor(`select:${tools.join(",")}`));
    const first = await pi.ask("keep__work");

    const since = pi.rpc.events.length;
    const go = join(pi.at.cwd, "go");
    const called = pi.prompt({ toolCalls: tools.map((name) => ({ name, args: { file: go } })) });
    await running(pi, tools, since);
    await pi.at.writeMcp({ mcpServers: { docs, github: live(["two"]), keep: before.keep } });
    expect(await pi.notice(/^mcp\.json: /, since)).toBe(
      "mcp.json: + docs (12 tools), ~ github (args), - old",
    );
    expect(pi.rpc.events.slice(since).filter(({ type }) => type === "tool_execution_end")).toEqual([]);
    await writeFile(go, "");
    const ends = new Map((await called).map((end) => [end.toolName, end]));
    expect([...ends.values()].map(({ isError }) => isError)).toEqual([false, false, false]);
    expect(answerOf(ends.get("keep__work"))).toEqual(first);
    expect(answerOf(ends.get("github__work")).argv).toEqual(["one"]);

    expect(await pi.ask("keep__work")).toEqual(first);
    expect((await pi.ask("github__work")).argv).toEqual(["two"]);
    const [found] = await pi.prompt(searchFor("select:docs__page7"));
    expect(found?.text).toContain("docs__page7");
    await pi.ask("docs__page7");
    expect(await waitGone([answerOf(ends.get("old__work")).pid])).toEqual([]);
    expect(effectsOf(pi.rpc, pi.from)).toHaveLength(1);
    expectClean(pi);
  });

  test("a tool of a removed server -> its call says that the server was removed, the others keep working", async () => {
    const pi = await openShared({ mcpServers: { keep: live(), old: live() } });
    await pi.prompt(searchFor("select:keep__work,old__work"));
    const since = pi.rpc.events.length;
    await pi.at.writeMcp({ mcpServers: { keep: live() } });
    await pi.notice(/^mcp\.json: - old$/, since);
    // ToolSearch answers when main has the catalog without the server.
    const [searched] = await pi.prompt(searchFor("select:old__work"));
    const removed = "The server old was removed from the configuration.";
    expect(searched?.text).toMatch(/^No such tool: old__work\./m);
    expect(searched?.text).toContain(`old__work: ${removed}`);
    const [end] = await pi.prompt(call("old__work", {}));
    expect(end?.isError).toBe(true);
    // Pi refuses the call, and the text for the model says why.
    const read = toolResultTexts(pi.scripted.requests.at(-1) as ModelRequest).at(-1);
    expect(read).toContain(`Tool old__work not found: ${removed}`);
    expect((await pi.ask("keep__work")).argv).toEqual([]);
    expectClean(pi);
  });

  test("only rules changed -> the same process runs under the new rules", async () => {
    const env = { TOOLS: "work,extra" };
    const pi = await openShared({ mcpServers: { s: live([], env) } });
    await pi.prompt(searchFor("select:s__work"));
    const first = await pi.ask("s__work");
    const since = pi.rpc.events.length;
    const rules = { lifecycle: "keep-alive", excludeTools: ["extra"] };
    await pi.at.writeMcp({ mcpServers: { s: live([], env, rules) } });
    expect(await pi.notice(/^mcp\.json: /, since)).toBe("mcp.json: ~ s (lifecycle, excludeTools)");
    expect((await pi.ask("s__work")).pid).toBe(first.pid);
    const [searched] = await pi.prompt(searchFor("select:s__extra"));
    expect(searched?.text).toContain("No such tool: s__extra");
    expect(await pi.status()).toMatch(/s: connected \(stdio, 2 tools, MCP [\d-]+, keep-alive\)/);
    expect(await serversOf(pi.at)).toEqual([first.pid]);
    expectClean(pi);
  });

  test("only the order of toolExposure changed -> the tool that is hidden now is not called, the same process runs", {
    tags: "thorough",
  }, async () => {
    const env = { TOOLS: "work,delete_all" };
    const ruled = (toolExposure: object) => ({ mcpServers: { s: live([], env, { toolExposure }) } });
    const pi = await openShared(ruled({ "*": "direct", "delete_*": "hidden" }));
    const first = await pi.ask("s__delete_all");
    const since = pi.rpc.events.length;
    await pi.at.writeMcp(ruled({ "delete_*": "hidden", "*": "direct" }));
    expect(await pi.notice(/^mcp\.json: /, since)).toBe("mcp.json: ~ s (toolExposure)");
    const [end] = await pi.prompt(call("s__delete_all", {}));
    expect(end).toMatchObject({ isError: true, text: expect.stringContaining("s__delete_all not found") });
    expect((await pi.ask("s__work")).pid).toBe(first.pid);
    expectClean(pi);
  });

  test("a broken file, then a mended file -> the last good configuration stays in use, the line is named, then the mended file applies", async () => {
    const pi = await openShared({ mcpServers: { s: live() } });
    await pi.prompt(searchFor("select:s__work"));
    const first = await pi.ask("s__work");
    let since = pi.rpc.events.length;
    const go = join(pi.at.cwd, "go");
    const called = pi.prompt(call("s__work", { file: go }));
    await running(pi, ["s__work"], since);
    await pi.at.writeMcp('{\n  "mcpServers": {\n    "s": {"command": }\n  }\n}');
    const text = await pi.notice(/not valid JSON/, since);
    expect(text).toContain(`${pi.at.mcpFile}:3:22: not valid JSON`);
    expect(await pi.status()).toContain(`${pi.at.mcpFile}:3:22: not valid JSON`);
    await writeFile(go, "");
    expect(answerOf((await called)[0])).toEqual(first);
    expect(await pi.ask("s__work")).toEqual(first);
    expect(effectsOf(pi.rpc, pi.from)).toEqual([]);

    since = pi.rpc.events.length;
    await pi.at.writeMcp({ mcpServers: { s: live(), more: live() } });
    expect(await pi.notice(/^mcp\.json: /, since)).toBe("mcp.json: + more (1 tool)");
    expect(await pi.ask("s__work")).toEqual(first);
    expect(await pi.status()).not.toContain("not valid JSON");
    expectClean(pi);
  });
});

describe("/mcp enable, disable and edit of the user's own file", () => {
  const COMMENTED = (entry: unknown): string =>
    `{\n  // mine\n  "mcpServers": {\n    "s": ${JSON.stringify(entry)}, // the one\n  },\n}\n`;

  test("disable, enable -> one word changes in the file, comments stay; the server ends and comes back", async () => {
    const text = COMMENTED(live([], {}, { enabled: true }));
    const pi = await openShared(text);
    await pi.prompt(searchFor("select:s__work"));
    const { pid } = await pi.ask("s__work");
    let since = pi.rpc.events.length;
    await pi.rpc.command("/mcp disable s", PATIENCE_MS);
    expect(await readFile(pi.at.mcpFile, "utf8")).toBe(text.replace('"enabled":true', '"enabled":false'));
    expect(await pi.notice(/^mcp\.json: /, since)).toBe("mcp.json: - s (disabled)");
    expect(await waitGone([pid])).toEqual([]);
    expect(await pi.status()).toContain("s: disabled");

    since = pi.rpc.events.length;
    await pi.rpc.command("/mcp enable s", PATIENCE_MS);
    expect(await readFile(pi.at.mcpFile, "utf8")).toBe(text);
    expect(await pi.notice(/^mcp\.json: /, since)).toBe("mcp.json: + s (1 tool)");
    await pi.prompt(searchFor("select:s__work"));
    expect((await pi.ask("s__work")).pid).not.toBe(pid);
    expect(effectsOf(pi.rpc, pi.from)).toHaveLength(2);
    expectClean(pi);
  });

  test("edit -> the editor opens the file; a saved text applies, a closed editor changes nothing", async () => {
    const text = COMMENTED(live());
    const pi = await openShared(text);
    pi.rpc.answerUi({ cancelled: true });
    await pi.rpc.command("/mcp edit", PATIENCE_MS);
    expect(dialogsOf(pi.rpc, pi.from)).toMatchObject([
      { method: "editor", title: pi.at.mcpFile, prefill: text },
    ]);
    expect(await readFile(pi.at.mcpFile, "utf8")).toBe(text);

    const edited = text.replace("  },\n}", `    "more": ${JSON.stringify(live())}\n  },\n}`);
    pi.rpc.answerUi({ value: edited });
    const since = pi.rpc.events.length;
    await pi.rpc.command("/mcp edit", PATIENCE_MS);
    expect(await pi.notice(/^mcp\.json: /, since)).toBe("mcp.json: + more (1 tool)");
    expect(await readFile(pi.at.mcpFile, "utf8")).toBe(edited);
    pi.rpc.answerUi(() => undefined);
    expectClean(pi);
  });

  test("mistakes that only a connect or a nested key shows -> /mcp names the server and the key, and the line of a nested key", async () => {
    const web = { url: "http://127.0.0.1:9/mcp" };
    const mcpServers = {
      empty: live([], { TOKEN: "!" }),
      silent: { ...web, bearerToken: "!true" },
      signin: { ...web, auth: "oauth", oauth: { client_id: "x" } },
      file: live([], {}, { envFile: "no.env" }),
    };
    const pi = await openShared({ mcpServers });
    for (const name of ["empty", "silent", "file"]) {
      const failed = new RegExp(`^${name}: failed`, "m");
      await expect.poll(() => pi.status(), { timeout: PATIENCE_MS }).toMatch(failed);
    }
    const status = await pi.status();
    expect(status).toMatch(/^empty: failed .*env\.TOKEN has no command behind its "!"/m);
    expect(status).toMatch(/^silent: failed .*bearerToken: its command printed nothing/m);
    expect(status).toMatch(/^file: failed .*envFile no\.env cannot be used: there is no such file/m);
    expect(status).toMatch(
      /mcp\.json:\d+:\d+: mcpServers\.signin\.oauth\.client_id: unknown key, did you mean "clientId"/,
    );
    expectClean(pi);
  });
});

describe("commands about a project's servers", () => {
  test("disable and enable, a project's files override other keys -> the user's file changes and stays on one line, or the file that sets `enabled`; with --project only the project's file", {
    tags: "thorough",
  }, async () => {
    const text = JSON.stringify({ mcpServers: { s: live() } });
    const project = {
      ".mcp.json": '{"mcpServers": {"s": {"lifecycle": "eager"}}}',
      ".pi/mcp.json": "// ours\n{}\n",
    };
    const pi = await turn({ mcp: text, trusted: true, files: project });
    const read = (name: string): Promise<string> => readFile(join(pi.at.cwd, name), "utf8");
    const users = (): Promise<string> => readFile(pi.at.mcpFile, "utf8");
    /** Runs a command, or edits a file, and waits for the notice about its effect. */
    const effect = async (change: string | (() => Promise<unknown>), expected: RegExp): Promise<void> => {
      const since = pi.rpc.events.length;
      await (typeof change === "string" ? pi.rpc.command(change, PATIENCE_MS) : change());
      await pi.notice(expected, since);
    };
    await pi.statusLine("MCP: 1 server ready · 1 tool");
    await effect("/mcp disable s", /^mcp\.json: - s \(disabled\)$/);
    expect(await users()).toBe(text.replace(/\}\}\}$/, ',"enabled":false}}}'));
    for (const [name, before] of Object.entries(project)) expect(await read(name)).toBe(before);
    await effect("/mcp enable s", /^mcp\.json: \+ s/);
    const before = await users();

    // A file that sets `enabled` itself is the file that counts.
    const off = '{"mcpServers": {"s": {"enabled": false}}}';
    await effect(() => pi.at.writeFile(".mcp.json", off), /^mcp\.json: - s \(disabled\)$/);
    await effect("/mcp enable s", /^mcp\.json: \+ s/);
    const on = off.replace("false", "true");
    expect(await read(".mcp.json")).toBe(on);

    await effect("/mcp disable s --project", /^mcp\.json: - s \(disabled\)$/);
    const written = await read(".pi/mcp.json");
    expect(written).toMatch(/^\/\/ ours\n/);
    expect(JSON.parse(written.replace("// ours\n", ""))).toEqual({ mcpServers: { s: { enabled: false } } });
    expect([await users(), await read(".mcp.json")]).toEqual([before, on]);
    await effect("/mcp enable s", /^mcp\.json: \+ s \(1 tool\)$/);
    expect(dialogsOf(pi.rpc)).toEqual([]);
    expectClean(pi);
  });

  test("a server that waits for consent, was removed or has a wrong entry -> each command says so; a waiting server can be switched off", async () => {
    const mcp = { mcpServers: { gone: live(), wrong: "x" } };
    const pi = await turn({ mcp, files: { ".mcp.json": { mcpServers: { s: live() } } } });
    const said = async (command: string): Promise<string> =>
      notices((await pi.rpc.command(command, PATIENCE_MS)) ?? [])
        .map(({ message }) => message)
        .join("\n");
    pi.answer(await pi.dialog(), { value: "Not now" });
    expect(await said("/mcp reconnect s")).toContain(
      "The server s waits for your consent. /mcp trust asks for it.",
    );
    expect(await said("/mcp tools s")).toBe("The server s waits for your consent. /mcp trust asks for it.");
    expect(await said("/mcp disable wrong")).toMatch(
      /The server wrong cannot be used\. .*mcp\.json:\d+:\d+: /,
    );
    expect(await said("/mcp disable s")).toContain(`s is disabled in ${join(pi.at.cwd, ".mcp.json")}.`);
    expect(await pi.status()).toContain("s: disabled");
    expect(await said("/mcp enable s")).toContain("The server s waits for your consent.");
    const since = pi.rpc.events.length;
    await pi.at.writeMcp({ mcpServers: {} });
    await pi.notice(/- gone/, since);
    expect(await said("/mcp disable gone")).toContain("gone was removed from the configuration. /mcp lists");
    await pi.at.writeMcp('{"mcpServers": }');
    await pi.notice(/not valid JSON/, since);
    expect(await said("/mcp disable other")).toMatch(
      /No server named other .*mcp\.json:1:16: not valid JSON/,
    );
    expect(await serversOf(pi.at)).toEqual([]);
    expectClean(pi);
  });
});

describe("other sources", () => {
  // The form of variables in the files of other programs.
  const variable = (name: string): string => `$\{${name}}`;
  const hash = (text: string): string => createHash("sha256").update(text).digest("hex");
  const token = `$${variable("X")} $env:X !x`;

  const sources = once(async () => {
    const { command, args } = live([`~/${variable("X")}`]) as { command: string; args: string[] };
    const codex = `[mcp_servers.codex]\ncommand = ${JSON.stringify(command)}\nargs = ${JSON.stringify(args)}\nenv = { TOKEN = ${JSON.stringify(token)} }\n`;
    const vscode = { type: "stdio", ...live(), envFile: `${variable("workspaceFolder")}/.env` };
    const pi = await turn((at) => ({
      mcp: { imports: ["codex", "vscode"], mcpServers: { own: live() } },
      trusted: true,
      files: {
        ".env": `TOKEN='from ${variable("X")}'\n`,
        ".codex/config.toml": codex,
        ".vscode/mcp.json": { servers: { vscode, asks: { command: variable("input:x") } } },
        "other.mjs": `export default (pi) => {
          const entry = (args) => ({ ...${JSON.stringify(live())}, args: [...${JSON.stringify(live().args)}, ...args] });
          pi.registerMcpServer("first", entry(["one"]));
          pi.registerMcpServer("own", entry(["not this one"]));
          pi.registerCommand("change", { description: "x", handler: async () => {
            pi.unregisterMcpServer("first");
            pi.registerMcpServer("second", entry(["two"]));
          } });
        };`,
      },
      settings: withExtension(at, "other.mjs"),
    }));
    for (let answered = 0; answered < 2; answered++) {
      await expect.poll(() => dialogsOf(pi.rpc).length, { timeout: PATIENCE_MS }).toBeGreaterThan(answered);
      pi.answer(dialogsOf(pi.rpc)[answered] as RpcDialog, { value: "Allow" });
    }
    await pi.statusLine("MCP: 4 servers ready · 4 tools");
    return pi;
  });

  test("imported servers -> they get the values that their own program would give", {
    tags: "thorough",
  }, async () => {
    const pi = await sources();
    await pi.prompt(searchFor("select:codex__work,vscode__work"));
    expect(await pi.ask("codex__work")).toMatchObject({ argv: [`~/${variable("X")}`], token: hash(token) });
    expect((await pi.ask("vscode__work")).token).toBe(hash(`from ${variable("X")}`));
    // What VS Code would ask for is a variable of that name here.
    expect(await pi.status()).toContain(`asks: ${variable("X")}, uses $X of your environment`);
    expectClean(pi);
  });

  test("servers that another extension registers -> they connect, change and end with its registrations", {
    tags: "thorough",
  }, async () => {
    const pi = await sources();
    await pi.prompt(searchFor("select:first__work,own__work"));
    expect((await pi.ask("first__work")).argv).toEqual(["one"]);
    const own = await pi.ask("own__work");
    expect(own.argv).toEqual([]);

    const since = pi.rpc.events.length;
    await pi.rpc.command("/change", PATIENCE_MS);
    await pi.statusLine("MCP: 4 servers ready · 4 tools", since);
    await pi.notice(/\+ second \(1 tool\)/, since);
    await pi.prompt(searchFor("select:second__work"));
    expect((await pi.ask("second__work")).argv).toEqual(["two"]);
    const [gone] = await pi.prompt(call("first__work", {}));
    expect(gone?.isError).toBe(true);
    expect(await pi.ask("own__work")).toEqual(own);
    expectClean(pi);
  });
});

describe("secrets", () => {
  const PRINTED = "pmt-s3cret-of-a-command";

  /** Resolves with each match in the files of the agent folder, with the text around it. */
  async function linesWith(at: PiHome, secret: RegExp): Promise<string[]> {
    const found: string[] = [];
    for (const path of await filesBelow(at.agentDir)) {
      const text = (await unlessGone(readFile(path)))?.toString("latin1") ?? "";
      for (const { 0: hit, index } of text.matchAll(secret)) {
        found.push(`${path}: ${text.slice(Math.max(index - 100, 0), index + hit.length + 20)}`);
      }
    }
    return found;
  }

  test("variables and !commands -> resolved at connect; no log, cache, snapshot, transcript or error holds the values", async () => {
    const hash = (text: string): string => createHash("sha256").update(text).digest("hex");
    // The command holds the secret in two parts, so only the output holds the whole secret.
    const command = "!printf '%s-%s' pmt-s3cret of-a-command";
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the text is the content of a file.
    const variable = "${PMT_SECRET}";
    const leaks = fixtureServer("leaks.mjs", { TOKEN: command }) as { args: string[] };
    const mcpServers = {
      variable: live([], { TOKEN: variable }),
      command: live([], { TOKEN: command }),
      leaks: { ...leaks, args: [...leaks.args, variable] },
      web: {
        url: "http://127.0.0.1:9/mcp",
        headers: { Authorization: `Bearer ${variable}`, "X-Key": command },
      },
      unset: live([], { TOKEN: variable.replace("SECRET", "UNSET") }),
    };
    const pi = await turn({ mcp: { mcpServers } });
    // A search waits only a limited time for servers that start.
    for (const name of Object.keys(mcpServers)) {
      const settled = new RegExp(`^${name}: (connected|failed)`, "m");
      await expect.poll(() => pi.status(), { timeout: PATIENCE_MS }).toMatch(settled);
    }
    await pi.prompt(searchFor("select:variable__work,command__work"));
    expect((await pi.ask("variable__work")).token).toBe(hash(SECRET));
    expect((await pi.ask("command__work")).token).toBe(hash(PRINTED));
    // At the end of a turn servers that have failed are tried again.
    for (const failed of [/^leaks: failed/m, /^web: failed/m, /^unset: failed .*env\.TOKEN needs PMT_UNSET/m])
      await expect.poll(() => pi.status(), { timeout: PATIENCE_MS }).toMatch(failed);
    const since = pi.rpc.events.length;
    await pi.at.writeMcp({ mcpServers: { ...mcpServers, variable: live(["x"], { TOKEN: variable }) } });
    await pi.notice(/~ variable \(args\)/, since);
    expectClean(pi);
    const said = JSON.stringify([pi.rpc.events, pi.scripted.requests]);
    // What is written at the end of a session is written then. This test is the last one of this Pi.
    expect(await pi.rpc.stop()).toMatchObject({ code: 0 });
    const secret = new RegExp(`${SECRET}|${PRINTED}`, "g");
    expect(await linesWith(pi.at, secret)).toEqual([]);
    expect(said).not.toMatch(secret);
  });
});
