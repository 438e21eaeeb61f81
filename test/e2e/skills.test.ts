/**
 * Owns: skills of servers in the real Pi: found, asked, loaded with their server's name, read file by file, and what runs code
 * asked once while one is in the conversation; without a person, over RPC and in a terminal, over stdio and HTTP.
 */
import { spawn } from "node:child_process";
import { once as event } from "node:events";
import { cp, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { startCli } from "../cli/support.ts";
import { hasTmux } from "../support/has-program.ts";
import { type ModelTurn, toolResultTexts } from "../support/model.ts";
import { type PiHome, runPrint } from "../support/pi-run.ts";
import { openTerminal } from "../support/terminal.ts";
import { answering, dialogsOf, type Opened, open, PATIENCE_MS } from "./rpc-support.ts";
import { call, ENTRY, home, model, onCleanup, once, root, searchFor } from "./support.ts";

const SERVER = join(root, "test/fixtures/servers/skills.mjs");
const SKILL = "docs__skill_pdf_processing";
const select = (name: string): ModelTurn => searchFor(`select:${name}`);
const bash = (command: string): ModelTurn => call("bash", { command });

interface Served {
  at: PiHome;
  /** The folder of the skills, which a test may change. */
  skills: string;
  /** The server's requests so far. */
  requests(): Promise<string[]>;
}

/** A home with the server `docs` and a copy of the skills. */
async function served(
  entry: object = {},
  { url }: { url?: (skills: string) => Promise<string> } = {},
): Promise<Served> {
  const at = await home({});
  const skills = join(at.dir, "served-skills");
  const log = join(at.dir, "requests");
  await cp(join(root, "test/fixtures/skills"), skills, { recursive: true });
  await writeFile(log, "");
  const local = { command: process.execPath, args: [SERVER, skills], env: { REQUESTS: log } };
  const docs = { ...(url ? { url: await url(skills) } : local), lifecycle: "eager", ...entry };
  await writeFile(join(at.agentDir, "mcp.json"), JSON.stringify({ mcpServers: { docs } }));
  // Connects the server once: its tools and skills are known then, as on any day but the first.
  const { ended } = startCli(at, ["list"]);
  expect((await ended).code).toBe(0);
  const requests = async (): Promise<string[]> => (await readFile(log, "utf8")).split("\n").filter(Boolean);
  return { at, skills, requests };
}

/** Runs `pi -p` with these turns. Resolves with the texts of all tool results. */
async function printed({ at }: Served, ...turns: ModelTurn[]): Promise<string[]> {
  const scripted = await model([...turns, { text: "ok" }]);
  const run = await runPrint({ home: at, model: scripted, extensions: ENTRY, prompt: "go" });
  expect(run).toMatchObject({ code: 0, stdout: "ok\n", timedOut: false });
  const last = scripted.requests.at(-1);
  return last ? toolResultTexts(last) : [];
}

async function overHttp(skills: string): Promise<string> {
  const child = spawn(process.execPath, [SERVER, skills, "--http"], { stdio: ["ignore", "pipe", "inherit"] });
  onCleanup(() => void child.kill());
  const [line] = await event(child.stdout, "data");
  return String(line).trim();
}

const ALLOWED = { skills: "allow" };

describe("without a person", () => {
  test.each([
    ["stdio", undefined],
    ["HTTP", overHttp],
  ])(
    "over %s, allowed -> selecting it answers its text with its server; only what is asked for is read",
    async (_way, url) => {
      const at = await served(ALLOWED, url ? { url } : {});
      const [found, loaded, file, count] = await printed(
        at,
        searchFor("fill a PDF form"),
        select(SKILL),
        call(SKILL, { file: "references/FORMS.md" }),
        bash("echo ran"),
      );
      expect(found).toContain(
        `${SKILL}(file?: string, line?: integer) - Skill pdf-processing: Extract, fill`,
      );
      expect(loaded).toContain(
        "[This is the skill pdf-processing of the MCP server docs, skill://pdf-processing/SKILL.md.",
      );
      expect(loaded).toContain("references/FORMS.md (");
      expect(loaded).toContain("Read references/FORMS.md first.");
      expect(file).toMatch(
        /^\[File references\/FORMS\.md of the skill pdf-processing of the MCP server docs\./,
      );
      expect(file).toContain("Fields are filled by name.");
      expect(count).toContain("ran");
      if (url) return;
      const read = (await at.requests()).filter((line) => line.startsWith("resources/read"));
      expect(read).toEqual([
        "resources/read skill://pdf-processing/SKILL.md",
        "resources/read skill://pdf-processing/references/FORMS.md",
      ]);
    },
  );

  test("not allowed -> it is not loaded, nothing is read, and the reason names the key", async () => {
    const at = await served();
    const [loaded] = await printed(at, select(SKILL));
    expect(loaded).toContain("the user has not allowed this skill, and no one can be asked");
    expect(loaded).toContain('"skills": "allow" of docs');
    expect((await at.requests()).filter((line) => line.startsWith("resources/read"))).toEqual([]);
  });

  test("switched off -> the server is not asked, no tool of it is there, its files are resources", async () => {
    const at = await served({ skills: false });
    const [loaded] = await printed(at, select(SKILL));
    expect(loaded).toContain(`No such tool: ${SKILL}`);
    expect((await at.requests()).filter((line) => line.startsWith("skills/"))).toEqual([]);
  });

  test("other ways to a file, a skill by its address, one within another -> one way each; nothing else is requested", async () => {
    const at = await served(ALLOWED);
    const address = "skill://pdf-processing/nested/forms/SKILL.md";
    const files = ["../other/SKILL.md", "no-such.md", "https://example.com/x", "skill://other/SKILL.md"];
    const [none, , template, , nested, unknown, , ...refused] = await printed(
      at,
      select("docs__get_pdf_processing_skill_md"),
      select("docs__get_any_file"),
      call("docs__get_any_file", { path: "pdf-processing/SKILL.md" }),
      select("docs__skill_by_address"),
      call("docs__skill_by_address", { uri: address }),
      call("docs__skill_by_address", { uri: "skill://none/SKILL.md" }),
      select(SKILL),
      ...files.map((file) => call(SKILL, { file })),
    );
    expect(none).toContain("No such tool");
    expect(template).toContain("is a file of the skill pdf-processing of docs");
    expect(nested).toContain(`[This is the skill forms of the MCP server docs, ${address}.`);
    expect(unknown).toContain("docs serves no skill skill://none/SKILL.md");
    expect(refused.map((text) => /is no file of|^There is no file/.test(text))).toEqual(
      files.map(() => true),
    );
    expect((await at.requests()).filter((line) => line.startsWith("resources/read"))).toEqual([
      `resources/read ${address}`,
      "resources/read skill://pdf-processing/SKILL.md",
    ]);
  });

  test("a kept yes -> loaded without a question, and what it leads to is refused, in a codemode script too; a changed file asks again", async () => {
    const settings = { defaultTools: ["bash", "ToolSearch", "codemode"] };
    const at = await served();
    await writeFile(join(at.at.agentDir, "settings.json"), JSON.stringify(settings));
    await allowAlways(at);
    const code = `try { return await tools.bash({ command: "echo ran" }); } catch (error) { return String(error.message); }`;
    const [loaded, ran, script] = await printed(
      at,
      select(SKILL),
      bash("echo ran"),
      call("codemode", { code }),
    );
    expect(loaded).toContain("Read references/FORMS.md first.");
    expect(ran).toMatch(
      /^bash was not run: the skill pdf-processing of the MCP server docs is in the conversation/,
    );
    expect(script).toContain("bash was not run: the skill pdf-processing");
    const inScript = `await tools.${SKILL}({}); ${code}`;
    expect((await printed(at, call("codemode", { code: inScript })))[0]).toContain("bash was not run");
    await writeFile(join(at.skills, "pdf-processing/references/FORMS.md"), "changed");
    expect((await printed(at, select(SKILL)))[0]).toContain("the user has not allowed this skill");
  });
});

/** Loads the skill once over RPC, and answers the question with "always". */
async function allowAlways({ at }: Served): Promise<void> {
  const pi = await opened(at);
  await answering(pi, [select(SKILL)], "Load it always, until it changes");
  await pi.rpc.stop();
}

async function opened(at: PiHome): Promise<Opened> {
  const pi = await open({ at });
  await pi.statusLine("MCP: 1 server ready · 1 tool");
  return pi;
}

const LOAD = "Load it for this session";
const RUN = "Yes, here and for the rest of this session";

/** One Pi for the tests over RPC, each in a session of its own. */
const kept = once(async () => opened((await served()).at));

async function anotherSession(): Promise<Opened> {
  const pi = await kept();
  await pi.rpc.request({ type: "new_session" }, PATIENCE_MS);
  return pi;
}

describe("over RPC", () => {
  test("load, bash twice, load again -> asked once for the skill and once for what runs, each with what it is about", async () => {
    const pi = await anotherSession();
    const { titles, texts } = await answering(pi, [select(SKILL), bash("echo one")], LOAD, RUN);
    expect(titles[0]).toMatch(/^Load the skill pdf-processing of the MCP server docs\?/);
    expect(titles[0]).toContain("references/FORMS.md");
    expect(titles[1]).toContain(
      "Run bash? The skill pdf-processing of the MCP server docs is in the conversation",
    );
    expect(titles[1]).toContain("$ echo one");
    expect(texts.join("\n")).toContain("one");
    const again = await answering(pi, [select(SKILL), bash("echo two")]);
    expect([again.asked, again.texts.join("\n").includes("two")]).toEqual([0, true]);
  });

  test("no -> it is not loaded and bash asks nothing; loaded and no -> bash does not run", async () => {
    const pi = await anotherSession();
    const first = await answering(pi, [select(SKILL), bash("echo one")], "No");
    expect(first.texts.join("\n")).toContain("the user said no");
    expect(first.texts.join("\n")).toContain("one");
    const second = await answering(pi, [select(SKILL), bash("echo two")], LOAD, "No");
    expect(second.texts.join("\n")).toContain("bash was not run");
  });

  test("its command -> the person's word is the yes; what it leads to asks", async () => {
    const pi = await anotherSession();
    // The second turn is left for what the command begins.
    await pi.prompt({ text: "hi" }, { text: "ok" });
    const from = pi.rpc.events.length;
    const sent = pi.scripted.requests.length;
    await pi.rpc.command("/mcp__docs__pdf-processing fill the form", PATIENCE_MS);
    await pi.rpc.waitFor(({ type }) => type === "agent_settled", PATIENCE_MS, from);
    expect(JSON.stringify(pi.scripted.requests.slice(sent))).toContain("Read references/FORMS.md first.");
    expect(JSON.stringify(pi.scripted.requests.slice(sent))).toContain("fill the form");
    expect(dialogsOf(pi.rpc, from)).toEqual([]);
    const { asked, texts } = await answering(pi, [bash("echo one")], "No");
    expect([asked, texts[0]]).toEqual([1, expect.stringContaining("bash was not run")]);
  });
});

describe("the conversation, not the process, decides", () => {
  test("new, resumed, forked -> nothing asks where no skill is; the session of the yes goes on; a fork asks anew", async () => {
    const { at } = await served();
    const pi = await opened(at);
    await answering(pi, [select(SKILL), bash("echo one")], LOAD, RUN);
    const { data } = await pi.rpc.request({ type: "get_state" }, PATIENCE_MS);
    const { sessionFile } = data as { sessionFile: string };

    await pi.rpc.request({ type: "new_session" }, PATIENCE_MS);
    const fresh = await answering(pi, [bash("echo two")]);
    expect([fresh.asked, fresh.texts.join("\n").trim()]).toEqual([0, "two"]);

    await pi.rpc.request({ type: "switch_session", sessionPath: sessionFile }, PATIENCE_MS);
    const resumed = await answering(pi, [bash("echo three")]);
    expect([resumed.asked, resumed.texts.join("\n").trim()]).toEqual([0, "three"]);

    await pi.rpc.request({ type: "clone" }, PATIENCE_MS);
    const forked = await answering(pi, [bash("echo four")], "No");
    expect(forked.titles[0]).toContain(
      "The skill pdf-processing of the MCP server docs is in the conversation",
    );
    expect(forked.texts.join("\n")).toContain("bash was not run");
  });

  test("another Pi goes on with a session whose skill waits for a yes -> it asks; after a compaction nothing does", async () => {
    const { at } = await served();
    await writeFile(
      join(at.agentDir, "settings.json"),
      JSON.stringify({ compaction: { keepRecentTokens: 1 } }),
    );
    const first = await opened(at);
    await answering(first, [select(SKILL), bash("echo one")], LOAD, "No");
    const { data } = await first.rpc.request({ type: "get_state" }, PATIENCE_MS);
    const { sessionFile } = data as { sessionFile: string };
    await first.rpc.stop();

    const pi = await open({ at, args: ["--session", sessionFile] });
    await pi.statusLine("MCP: 1 server ready · 1 tool");
    const resumed = await answering(pi, [bash("echo two")], "No");
    expect(resumed.texts.join("\n")).toContain("bash was not run");

    const ends = pi.rpc.request({ type: "compact" }, PATIENCE_MS);
    await pi.prompt({ text: "a summary" }).catch(() => undefined);
    expect(await ends).toMatchObject({ success: true });
    const compacted = await answering(pi, [bash("echo three")]);
    expect([compacted.asked, compacted.texts.join("\n").trim()]).toEqual([0, "three"]);
  });
});

test("its command while the model works, then a compaction that keeps its text -> bash asks", async () => {
  const { at } = await served();
  // Keeps the message with the skill's text, and nothing of what was before it.
  const compaction = { keepRecentTokens: 100 };
  await writeFile(join(at.agentDir, "settings.json"), JSON.stringify({ compaction }));
  const pi = await opened(at);
  const go = join(at.dir, "go");
  const busy = bash(`until [ -e '${go}' ]; do sleep 0.05; done`);
  const isRunning = pi.rpc.waitFor(({ type }) => type === "tool_execution_start", PATIENCE_MS);
  const ends = pi.prompt(busy, { text: "done" }, { text: "read" }, { text: "a summary" });
  await isRunning;
  await pi.rpc.command("/mcp__docs__pdf-processing", PATIENCE_MS);
  await writeFile(go, "");
  await ends;
  const asked = (): string => JSON.stringify(pi.scripted.requests.at(-1));
  await expect.poll(asked, { timeout: PATIENCE_MS }).toContain("Read references/FORMS.md first.");

  expect(await pi.rpc.request({ type: "compact" }, PATIENCE_MS)).toMatchObject({ success: true });
  const { texts } = await answering(pi, [bash("echo one")], "No");
  expect(asked()).toContain("Read references/FORMS.md first.");
  expect(texts.join("\n")).toContain("bash was not run");
});

test.skipIf(!hasTmux())("in a terminal -> found, asked, loaded, a file read, bash asked once", async () => {
  const { at } = await served();
  const turns = [
    searchFor("fill a PDF form"),
    select(SKILL),
    call(SKILL, { file: "references/FORMS.md" }),
    bash("echo one"),
    bash("echo two"),
  ];
  const terminal = await openTerminal({
    home: at,
    model: await model([...turns, { text: "all done." }]),
    extension: ENTRY,
    columns: 100,
    rows: 40,
  });
  onCleanup(() => terminal.close());
  await terminal.until(/MCP: .*1 server ready · 1 tool/);
  await terminal.prompt("go");
  await terminal.until(
    /Load the skill pdf-processing of the MCP server docs\?[\s\S]*Load it for this session/,
  );
  await terminal.press("Down");
  await terminal.press("Enter");
  await terminal.until(
    /Run bash\? The skill pdf-processing[\s\S]*\$ echo one[\s\S]*for the rest of this session/,
  );
  await terminal.press("Down");
  await terminal.press("Enter");
  const end = await terminal.until(/all done\./);
  expect(end.join("\n")).toContain("two");
});
