/**
 * Owns: `/mcp off` and `/mcp on` in the real Pi: a server that is off for a session is nowhere, no file changes, and no byte
 * of a declaration; a resumed session keeps it off, a new one has it.
 */
import { cp, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { messageText, toolResultTexts } from "../support/model.ts";
import { oneFile } from "../support/one-file.ts";
import { runPrint } from "../support/pi-run.ts";
import { processesWithMarker, waitGone } from "../support/processes.ts";
import { notices } from "../support/rpc-events.ts";
import { type InTurn, inTurn } from "./in-turn.ts";
import { live, PATIENCE_MS } from "./rpc-support.ts";
import { call, ENTRY, home, model, root, SERVERS as SERVER_OF_NPM, searchFor } from "./support.ts";

/**
 * Moves to another point of the session's tree, as `/tree` in a terminal does; without an id: to its first entry.
 * Deactivates a tool, as a user does with another extension.
 */
const COMMANDS = `export default (pi) => {
  pi.registerCommand("move", { handler: async (id, ctx) => {
    await ctx.navigateTree(id || ctx.sessionManager.getBranch()[0].id, {});
  } });
  pi.registerCommand("without", { handler: async (name) => {
    pi.setActiveTools(pi.getActiveTools().filter((tool) => tool !== name));
  } });
};`;

const turn = inTurn({
  extensions: async (at) => {
    const path = join(at.tmpDir, "move.mjs");
    await writeFile(path, COMMANDS);
    return [ENTRY, path];
  },
});
const SERVERS = { one: live(["one"]), two: live(["two"]), three: live(["three"], {}, { enabled: false }) };

const command = async (pi: InTurn, text: string): Promise<string> =>
  notices(await pi.rpc.command(text, PATIENCE_MS))
    .map(({ message }) => message)
    .join("\n");

const sessionFile = async ({ rpc }: InTurn): Promise<string> =>
  ((await rpc.request({ type: "get_state" }, PATIENCE_MS)).data as { sessionFile: string }).sessionFile;

/** Name -> its declaration in the newest request. */
const toolsOf = ({ scripted }: InTurn): Record<string, string> =>
  Object.fromEntries(
    (scripted.requests.at(-1)?.tools ?? []).map((one) => [one.function.name, JSON.stringify(one)]),
  );

test("off -> refused by name, found by no search, its process ends, the model is told in one line and no declared byte changes; on -> it works again", async () => {
  const pi = await turn({ mcp: { mcpServers: SERVERS } });
  await pi.prompt(searchFor("select:one__work"), searchFor("select:two__work"));
  const { pid } = await pi.ask("one__work");
  const declared = toolsOf(pi);
  const written = await readFile(join(pi.at.agentDir, "mcp.json"), "utf8");

  expect(await command(pi, "/mcp off one")).toContain("one is switched off for this session.");
  expect(await waitGone([pid])).toEqual([]);
  const [refused] = await pi.prompt(call("one__work", {}));
  expect(refused).toMatchObject({ isError: true });
  const told = (pi.scripted.requests.at(-1)?.messages ?? []).map(messageText).join("\n");
  expect(told).toMatch(
    /one is switched off for this session\. Only the user can switch it on: \/mcp on one\./,
  );
  expect(told).toMatch(/Note of the MCP extension.*Gone: one\./);
  const [found] = await pi.prompt(searchFor("work"));
  expect(found?.text).not.toContain("one__work");
  const [chosen] = await pi.prompt(searchFor("select:one__work"));
  expect(chosen?.text).toContain("switched off for this session");
  expect(await command(pi, "/mcp tools")).not.toContain("one__work");
  expect(await command(pi, "/mcp reconnect one")).toContain("/mcp on one");
  expect(await pi.status()).toMatch(/^one: off for this session/m);
  expect((await pi.ask("two__work")).argv).toEqual(["two"]);

  expect(await command(pi, "/mcp on one")).toContain("one is switched on for this session.");
  await pi.prompt(searchFor("select:one__work"));
  expect((await pi.ask("one__work")).argv).toEqual(["one"]);
  // One that its file disables, too.
  await command(pi, "/mcp on three");
  await pi.prompt(searchFor("select:three__work"));
  expect((await pi.ask("three__work")).argv).toEqual(["three"]);
  expect(toolsOf(pi)).toMatchObject(declared);
  expect(await readFile(join(pi.at.agentDir, "mcp.json"), "utf8")).toBe(written);
  expect(await command(pi, "/mcp off gone")).toContain("No server named gone is configured.");
});

test("a session that is resumed keeps it off from its first request on; a new one has it, and finds its snapshot", async () => {
  const pi = await turn({ mcp: { mcpServers: SERVERS } });
  await pi.prompt(searchFor("select:one__work"), searchFor("select:two__work"));
  await command(pi, "/mcp off one");
  await pi.prompt();
  const file = await sessionFile(pi);
  await pi.again();
  await pi.prompt(searchFor("select:one__work"));
  expect((await pi.ask("one__work")).argv).toEqual(["one"]);
  await pi.again(undefined, file);
  const [first] = await pi.prompt(searchFor("select:one__work"));
  expect(first?.text).toContain("switched off for this session");
  const [refused] = await pi.prompt(call("one__work", {}));
  expect(refused).toMatchObject({ isError: true });
  expect((await pi.ask("two__work")).argv).toEqual(["two"]);
  expect(await pi.status()).toMatch(/^one: off for this session/m);
  // What lasts ends what does not.
  await command(pi, "/mcp enable one");
  await pi.again(undefined, file);
  await expect.poll(() => pi.status(), { timeout: PATIENCE_MS }).toMatch(/^one: (?:connect|idle)/m);
});

const DOCS = "docs__skill_pdf_processing";
const ARCHITECTURE = "@everything:demo://resource/static/document/architecture.md";
/** A script that knows a tool by its name, and by a search. */
const SCRIPT = `
const found = (await searchTools("count pages")).filter(({ name }) => name === "docs__count");
text("found " + found.length);
return JSON.stringify(await tools.docs__count({}));`;

test("off -> a script, a prompt, a resource, a skill and each list say so in a sentence with the way back, and nothing starts; on -> all of it works", {
  tags: "thorough",
}, async () => {
  const { file: skills, env } = oneFile("served-skills", join(root, "test/fixtures/servers/skills.mjs"));
  const pi = await turn(({ dir }) => ({
    mcp: {
      mcpServers: {
        everything: SERVER_OF_NPM.everything,
        docs: { command: process.execPath, args: [skills, join(dir, "served")], env, skills: "allow" },
      },
    },
    settings: { defaultTools: ["ToolSearch", "codemode"] },
    fill: (folder) => cp(join(root, "test/fixtures/skills"), join(folder, "served"), { recursive: true }),
  }));
  const sent = async (message: string): Promise<string> => {
    const since = pi.rpc.events.length;
    await pi.rpc.request({ type: "prompt", message }, PATIENCE_MS);
    await pi.rpc.waitFor(({ type }) => type === "agent_settled", PATIENCE_MS, since);
    return JSON.stringify(pi.scripted.requests.at(-1)?.messages.at(-1));
  };
  const turns = [call("codemode", { code: SCRIPT }), searchFor(`select:${DOCS}`)];
  /** What the model reads, without the calls within the script. */
  const texts = async (...more: Parameters<InTurn["prompt"]>): Promise<string[]> => {
    await pi.prompt(...turns, ...more);
    const [last] = pi.scripted.requests.slice(-1);
    return last ? toolResultTexts(last).slice(-turns.length - more.length) : [];
  };
  await pi.prompt(searchFor("count pages"));
  const [script, skill] = await texts();
  expect(script).toMatch(/found 1[\s\S]*7 pages/);
  expect(skill).toContain("Read references/FORMS.md first.");

  for (const name of ["everything", "docs"]) await command(pi, `/mcp off ${name}`);
  // The second of two changes at once reaches the search a moment later.
  await expect
    .poll(() => command(pi, "/mcp tools"), { timeout: PATIENCE_MS })
    .not.toMatch(/docs__|everything__/);
  const off = (name: string): string =>
    `${name} is switched off for this session. Only the user can switch it on: /mcp on ${name}.`;
  const [noScript, noSkill, called] = await texts(call(DOCS, {}));
  expect(noScript).toContain("found 0");
  expect(noScript?.endsWith(`docs__count: ${off("docs")}`)).toBe(true);
  expect(noSkill).toContain(`${DOCS}: ${off("docs")}`);
  expect(called).toContain(off("docs"));
  for (const [typed, name] of [
    ["/mcp__everything__simple-prompt", "everything"],
    ["/mcp__docs__pdf-processing", "docs"],
  ] as const)
    expect(await command(pi, typed)).toBe(`${typed}: ${off(name)}`);
  expect(await sent(`see ${ARCHITECTURE}`)).toContain(
    `${ARCHITECTURE} could not be read: ${off("everything")}`,
  );
  for (const [word, name] of [
    ["tools", "docs"],
    ["skills", "docs"],
    ["resources", "everything"],
  ] as const)
    expect(await command(pi, `/mcp ${word} ${name}`)).toBe(
      `Server ${name} is switched off for this session: only the user can switch it on (/mcp on ${name}).`,
    );
  expect(await command(pi, "/mcp resources")).not.toContain("demo://");
  expect(await command(pi, "/mcp skills")).not.toContain("pdf-processing");
  const running = await processesWithMarker(`HOME=${pi.at.dir}`);
  expect(running.filter(({ command: line }) => /served-skills|server-everything/.test(line))).toEqual([]);

  for (const name of ["everything", "docs"]) await command(pi, `/mcp on ${name}`);
  await pi.prompt(searchFor("count pages"));
  const [again, loaded] = await texts();
  expect(again).toMatch(/found 1[\s\S]*7 pages/);
  expect(loaded).toContain("Read references/FORMS.md first.");
  expect(await sent("/mcp__everything__simple-prompt")).toContain(
    "This is a simple prompt without arguments.",
  );
  expect(await sent(`see ${ARCHITECTURE}`)).toContain("# Everything Server");
  expect(await command(pi, "/mcp resources everything")).toContain(ARCHITECTURE);
});

test("another branch, and a fork from before it was said -> off stays off there and when each is resumed; on in the fork, and a fork from before that -> on", {
  tags: "thorough",
}, async () => {
  const pi = await turn({ mcp: { mcpServers: SERVERS } });
  const { rpc } = pi;
  const isOff = async (): Promise<void> => {
    const [found] = await pi.prompt(searchFor("select:one__work"));
    expect(found?.text).toContain("switched off for this session");
    expect(await pi.status()).toMatch(/^one: off for this session/m);
  };
  const forkFromStart = async (): Promise<void> => {
    const { data } = await rpc.request({ type: "get_fork_messages" }, PATIENCE_MS);
    const [first] = (data as { messages: { entryId: string }[] }).messages.slice(1);
    expect(await rpc.request({ type: "fork", entryId: first?.entryId }, PATIENCE_MS)).toMatchObject({
      data: { cancelled: false },
    });
  };
  await pi.prompt({ text: "first" });
  await pi.prompt({ text: "second" });
  await command(pi, "/mcp off one");
  await isOff();
  const file = await sessionFile(pi);
  await forkFromStart();
  await isOff();
  const forked = await sessionFile(pi);
  expect(forked).not.toBe(file);

  await pi.again(undefined, file);
  await command(pi, "/move");
  await isOff();

  await pi.again(undefined, forked);
  await isOff();
  await command(pi, "/mcp on one");
  await pi.prompt({ text: "on" });
  await forkFromStart();
  await pi.prompt(searchFor("select:one__work"));
  expect((await pi.ask("one__work")).argv).toEqual(["one"]);

  await pi.again(undefined, file);
  await isOff();
});

test("its tools were declared, and the session is resumed while it is off: on -> the same are declared, of a search and direct ones, but none that the user has deactivated; also at the point where they left, and in a fork from there", {
  tags: "thorough",
}, async () => {
  const direct = live([], { TOOLS: "a,b,c" }, { directTools: true });
  const pi = await turn({ mcp: { mcpServers: { one: live(), direct } } });
  const { rpc } = pi;
  const declared = async (): Promise<string[]> => {
    await pi.prompt({ text: "asked" });
    return Object.keys(toolsOf(pi))
      .filter((name) => /^(?:one|direct)__/.test(name))
      .toSorted();
  };
  const all = ["direct__a", "direct__c", "one__work"];
  await pi.prompt(searchFor("select:one__work"));
  await command(pi, "/without direct__b");
  expect(await declared()).toEqual(all);
  for (const name of ["one", "direct"]) await command(pi, `/mcp off ${name}`);
  expect(await declared()).toEqual([]);
  const file = await sessionFile(pi);
  await pi.again(undefined, file);
  expect(await declared()).toEqual([]);
  for (const name of ["one", "direct"]) await command(pi, `/mcp on ${name}`);
  // A prompt waits for direct tools alone.
  await expect.poll(declared, { timeout: PATIENCE_MS }).toEqual(all);
  const { data } = await rpc.request({ type: "get_fork_messages" }, PATIENCE_MS);
  const withoutThem = (data as { messages: { entryId: string }[] }).messages[2]?.entryId;
  await command(pi, `/move ${withoutThem}`);
  expect(await declared()).toEqual(all);
  await rpc.request({ type: "fork", entryId: withoutThem }, PATIENCE_MS);
  expect(await declared()).toEqual(all);
});

test("print mode: what one run switches off, the run that goes on with its session does not have", {
  tags: "thorough",
}, async () => {
  const at = await home({ mcp: { mcpServers: SERVERS } });
  const run = async (prompt: string, args: string[]) => {
    const scripted = await model([searchFor("work"), { text: "done" }]);
    const ran = await runPrint({
      home: at,
      model: scripted,
      extensions: [ENTRY],
      prompt,
      args,
      timeoutMs: PATIENCE_MS,
    });
    expect(ran).toMatchObject({ code: 0, timedOut: false });
    const last = scripted.requests.at(-1);
    return { ran, found: last && toolResultTexts(last).at(-1) };
  };
  const off = await run("go", ["/mcp off one"]);
  expect(off.ran.stderr).toContain("one is switched off for this session.");
  const goesOn = await run("go", ["-c"]);
  expect(goesOn.found).toContain("two__work");
  expect(goesOn.found).not.toContain("one__work");
  expect((await run("go", [])).found).toContain("one__work");
});
