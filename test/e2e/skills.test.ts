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
import { oneFile } from "../support/one-file.ts";
import { type PiHome, runPrint } from "../support/pi-run.ts";
import { openTerminal } from "../support/terminal.ts";
import { answering, dialogsOf, type Opened, open, PATIENCE_MS } from "./rpc-support.ts";
import { type Session, type Story, tellTogether } from "./stories.ts";
import { call, ENTRY, home, model, onCleanup, once, readLog, root, searchFor } from "./support.ts";

/** Bundled, because it loads an SDK. */
const { file: SERVER, env: COMPILED } = oneFile(
  "served-skills",
  join(root, "test/fixtures/servers/skills.mjs"),
);
const skillOf = (server: string): string => `${server}__skill_pdf_processing`;
const SKILL = skillOf("docs");
const select = (name: string): ModelTurn => searchFor(`select:${name}`);
const bash = (command: string): ModelTurn => call("bash", { command });

interface Served {
  at: PiHome;
  /** The folder of the server's skills, which a test may change. */
  skillsOf(server: string): string;
  /** The server's requests so far. */
  requestsOf(server: string): Promise<string[]>;
}

/** A home with these servers, each with a copy of the skills; `http` has the names of those over HTTP. */
async function served(entries: Record<string, object>, http: readonly string[] = []): Promise<Served> {
  const at = await home({ settings: { defaultTools: ["bash", "ToolSearch", "codemode"], ...COMPACTION } });
  const skillsOf = (server: string): string => join(at.dir, "skills", server);
  const logOf = (server: string): string => join(at.dir, `requests-${server}`);
  const serverOf = async (name: string): Promise<object> => {
    await cp(join(root, "test/fixtures/skills"), skillsOf(name), { recursive: true });
    await writeFile(logOf(name), "");
    if (http.includes(name)) return { url: await overHttp(skillsOf(name)) };
    const env = { ...COMPILED, REQUESTS: logOf(name) };
    return { command: process.execPath, args: [SERVER, skillsOf(name)], env };
  };
  const mcpServers: Record<string, object> = {};
  for (const [name, entry] of Object.entries(entries))
    mcpServers[name] = { ...(await serverOf(name)), ...entry };
  await at.writeMcp({ mcpServers });
  // Connects the servers once: their tools and skills are known then, as on any day but the first.
  const { ended } = startCli(at, ["list"]);
  expect((await ended).code).toBe(0);
  const requestsOf = async (server: string): Promise<string[]> =>
    (await readFile(logOf(server), "utf8")).split("\n").filter(Boolean);
  return { at, skillsOf, requestsOf };
}

/** Keeps nothing that was before a compaction. */
const COMPACTION = { compaction: { keepRecentTokens: 1 } };

/** Runs `pi -p` with these turns. */
async function printed({ at }: Served, turns: Story): Promise<Session> {
  const scripted = await model([...turns, { text: "ok" }]);
  const run = await runPrint({ home: at, model: scripted, extensions: ENTRY, prompt: "go" });
  expect(run).toMatchObject({ code: 0, stdout: "ok\n", timedOut: false });
  return { stderr: run.stderr, log: await readLog(at), requests: scripted.requests };
}

async function overHttp(skills: string): Promise<string> {
  const child = spawn(process.execPath, [SERVER, skills, "--http"], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, ...COMPILED },
  });
  onCleanup(() => void child.kill());
  const [line] = await event(child.stdout, "data");
  return String(line).trim();
}

const ALLOWED = { skills: "allow" };
const allowed = (server: string): Story => [
  searchFor("fill a PDF form"),
  select(skillOf(server)),
  call(skillOf(server), { file: "references/FORMS.md" }),
  bash("echo ran"),
];
const NESTED = "skill://pdf-processing/nested/forms/SKILL.md";
const NO_FILES = ["../other/SKILL.md", "no-such.md", "https://example.com/x", "skill://other/SKILL.md"];

describe("without a person, in one run", () => {
  const all = once(() =>
    served({ docs: ALLOWED, web: ALLOWED, asked: {}, off: { skills: false }, ways: ALLOWED }, ["web"]),
  );
  const told = tellTogether(
    {
      // This story comes first: a skill in the conversation keeps a server's other tools from running.
      ways: [
        select("ways__get_pdf_processing_skill_md"),
        select("ways__get_any_file"),
        call("ways__get_any_file", { path: "pdf-processing/SKILL.md" }),
        select("ways__skill_by_address"),
        call("ways__skill_by_address", { uri: NESTED }),
        call("ways__skill_by_address", { uri: "skill://none/SKILL.md" }),
        select(skillOf("ways")),
        ...NO_FILES.map((file) => call(skillOf("ways"), { file })),
      ],
      docs: allowed("docs"),
      web: allowed("web"),
      asked: [select(skillOf("asked"))],
      off: [select(skillOf("off"))],
    },
    async (script) => printed(await all(), script),
  );
  const readsOf = async (server: string): Promise<string[]> =>
    (await (await all()).requestsOf(server)).filter((line) => line.startsWith("resources/read"));

  test.each([
    ["stdio", "docs"],
    ["HTTP", "web"],
  ] as const)(
    "over %s, allowed -> selecting it answers its text with its server; only what is asked for is read",
    async (way, server) => {
      const { answers } = await told(server);
      const [found, loaded, file, count] = answers;
      expect(found).toContain(
        `${skillOf(server)}(file?: string, line?: integer) - Skill pdf-processing: Extract, fill`,
      );
      expect(loaded).toContain(
        `[This is the skill pdf-processing of the MCP server ${server}, skill://pdf-processing/SKILL.md.`,
      );
      expect(loaded).toContain("references/FORMS.md (");
      expect(loaded).toContain("Read references/FORMS.md first.");
      const start = `[File references/FORMS.md of the skill pdf-processing of the MCP server ${server}.`;
      expect(file?.startsWith(start)).toBe(true);
      expect(file).toContain("Fields are filled by name.");
      expect(count).toContain("ran");
      if (way === "HTTP") return;
      expect(await readsOf(server)).toEqual([
        "resources/read skill://pdf-processing/SKILL.md",
        "resources/read skill://pdf-processing/references/FORMS.md",
      ]);
    },
  );

  test("not allowed -> it is not loaded, nothing is read, and the reason names the key", async () => {
    const [loaded] = (await told("asked")).answers;
    expect(loaded).toContain("the user has not allowed this skill, and no one can be asked");
    expect(loaded).toContain('"skills": "allow" of asked');
    expect(await readsOf("asked")).toEqual([]);
  });

  test("switched off -> the server is not asked, no tool of it is there, its files are resources", async () => {
    const [loaded] = (await told("off")).answers;
    expect(loaded).toContain(`No such tool: ${skillOf("off")}`);
    const requests = await (await all()).requestsOf("off");
    expect(requests.length).toBeGreaterThan(0);
    expect(requests.filter((line) => line.startsWith("skills/"))).toEqual([]);
  });

  test("other ways to a file, a skill by its address, one within another -> one way each; nothing else is requested", async () => {
    const [none, , template, , nested, unknown, , ...refused] = (await told("ways")).answers;
    expect(none).toContain("No such tool");
    expect(template).toContain("is a file of the skill pdf-processing of ways");
    expect(nested).toContain(`[This is the skill forms of the MCP server ways, ${NESTED}.`);
    expect(unknown).toContain("ways serves no skill skill://none/SKILL.md");
    expect(refused.map((text) => /is no file of|^There is no file/.test(text))).toEqual(
      NO_FILES.map(() => true),
    );
    expect(await readsOf("ways")).toEqual([
      `resources/read ${NESTED}`,
      "resources/read skill://pdf-processing/SKILL.md",
    ]);
  });
});

const LOAD = "Load it for this session";
const RUN = "Yes, here and for the rest of this session";
const READY = "MCP: 1 server ready · 1 tool";

/** One home and one Pi for the tests over RPC, each in a session of its own. */
const kept = once(async () => {
  const docs = await served({ docs: {} });
  const pi = await open({ at: docs.at });
  await pi.statusLine(READY);
  return { ...pi, ...docs };
});

async function anotherSession(): Promise<Opened & Served> {
  const pi = await kept();
  // Each run in this home has a model of its own.
  await pi.at.useModel(pi.scripted.url);
  await pi.rpc.request({ type: "new_session" }, PATIENCE_MS);
  return pi;
}

const fileOf = async ({ rpc }: Opened): Promise<string> =>
  ((await rpc.request({ type: "get_state" }, PATIENCE_MS)).data as { sessionFile: string }).sessionFile;

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
    const pi = await anotherSession();
    await answering(pi, [select(SKILL), bash("echo one")], LOAD, RUN);
    const sessionFile = await fileOf(pi);

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

  test("another Pi goes on with a session whose skill waits for a yes -> it asks; after a compaction nothing does", {
    tags: "thorough",
  }, async () => {
    const first = await anotherSession();
    await answering(first, [select(SKILL), bash("echo one")], LOAD, "No");
    const sessionFile = await fileOf(first);
    await first.rpc.request({ type: "new_session" }, PATIENCE_MS);

    const pi = await open({ at: first.at, args: ["--session", sessionFile] });
    await pi.statusLine(READY);
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
  const { at } = await kept();
  // Keeps the message with the skill's text, and nothing of what was before it.
  const settings = join(at.agentDir, "settings.json");
  const written = await readFile(settings, "utf8");
  await writeFile(settings, written.replace('"keepRecentTokens": 1', '"keepRecentTokens": 100'));
  const pi = await anotherSession();
  await writeFile(settings, written);
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

test("a kept yes -> loaded without a question, and what it leads to is refused, in a codemode script too; a changed file asks again", {
  tags: "thorough",
}, async () => {
  const pi = await anotherSession();
  await answering(pi, [select(SKILL)], "Load it always, until it changes");
  const code = `try { return await tools.bash({ command: "echo ran" }); } catch (error) { return String(error.message); }`;
  const answers = async (...turns: Story): Promise<string[]> => {
    const last = (await printed(pi, turns)).requests.at(-1);
    return last ? toolResultTexts(last) : [];
  };
  const [loaded, ran, script] = await answers(select(SKILL), bash("echo ran"), call("codemode", { code }));
  expect(loaded).toContain("Read references/FORMS.md first.");
  expect(ran).toMatch(
    /^bash was not run: the skill pdf-processing of the MCP server docs is in the conversation/,
  );
  expect(script).toContain("bash was not run: the skill pdf-processing");

  const inScript = call("codemode", { code: `await tools.${SKILL}({}); ${code}` });
  expect((await answers(inScript))[0]).toContain("bash was not run");

  await writeFile(join(pi.skillsOf("docs"), "pdf-processing/references/FORMS.md"), "changed");
  const changed = await answering(await anotherSession(), [select(SKILL)], "No");
  expect(changed.titles[0]).toMatch(/^Load the skill pdf-processing of the MCP server docs\?/);
  expect(changed.texts[0]).toContain("the user said no");
});

test.skipIf(!hasTmux())(
  "in a terminal -> found, asked, loaded, a file read, bash asked once",
  { tags: "thorough" },
  async () => {
    const { at } = await served({ docs: {} });
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
    await terminal.untilRead(
      /Run bash\? The skill pdf-processing[\s\S]*\$ echo one[\s\S]*for the rest of this session/,
    );
    await terminal.press("Down");
    await terminal.press("Enter");
    const end = await terminal.until(/all done\./);
    expect(end.join("\n")).toContain("two");
  },
);
