/**
 * Owns: `/mcp add`, `/mcp import` and `/mcp remove` in the real Pi: over RPC, in print mode, and key by key in a narrow
 * terminal. What is written works at once, and what was tried leaves no process.
 */
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { hasTmux } from "../support/has-program.ts";
import { runPrint } from "../support/pi-run.ts";
import { extensionErrors, notices } from "../support/rpc-events.ts";
import { openTerminal, type Terminal } from "../support/terminal.ts";
import { type Opened, open, PATIENCE_MS, serversOf } from "./rpc-support.ts";
import { ENTRY, fixtureServer, home, model, onCleanup, root } from "./support.ts";

const script = (name: string): string => join(root, "test", "fixtures", "servers", name);

/** Answers the dialogs that come, one by one: by the start of a choice, a text, or a yes. */
async function converse(
  { rpc, dialog, answer }: Opened,
  command: string,
  answers: string[],
): Promise<string[]> {
  const titles: string[] = [];
  let since = rpc.events.length;
  const done = rpc.command(command, PATIENCE_MS);
  for (const wanted of answers) {
    let asked = await dialog(since);
    // The wait for a test closes by itself.
    while (asked.title.startsWith("Testing")) {
      since = rpc.events.findIndex((event) => event.id === asked.id) + 1;
      asked = await dialog(since);
    }
    since = rpc.events.findIndex((event) => event.id === asked.id) + 1;
    titles.push(asked.title);
    const choice = asked.method === "select" ? asked.options?.find((one) => one.startsWith(wanted)) : wanted;
    if (choice === undefined) throw new Error(`no choice ${wanted} in ${JSON.stringify(asked)}`);
    answer(asked, { value: choice });
  }
  const said = notices(await done).map(({ message }) => message);
  // What an edit changes is told when the file's watcher has seen it, before or after the command's last word.
  return [...titles, ...said.filter((message) => !message.startsWith("mcp.json: "))];
}

test("over RPC: the hint, add with words and step by step, import, remove; what is tried leaves no process", async () => {
  const at = await home({ trusted: true });
  await writeFile(
    join(at.dir, ".claude.json"),
    JSON.stringify({
      mcpServers: { theirs: fixtureServer("echoes.mjs"), gone: { command: "no-such-program" } },
    }),
  );
  const pi = await open({ at });
  expect(await pi.notice(/No MCP server is configured yet/)).toContain("2 servers of Claude Code");

  const node = process.execPath;
  const words = `/mcp add --env "KEY=very secret value" 'my tools' -- ${node} ${script("echoes.mjs")}`;
  const added = (await converse(pi, words, ["Test it", "For you"])).join("\n");
  expect(added).toContain(`It would run: ${node}`);
  expect(added).toContain("(env KEY)");
  expect(added).not.toContain("very secret value");
  expect(added).toMatch(/my tools answers over stdio after .*, with 1 tool/);
  expect(added).toContain(`my tools is added to ${at.mcpFile}.`);
  await pi.statusLine("MCP: 1 server ready · 1 tool");

  const hanging = await converse(pi, `/mcp add bad ${node} ${script("exits.mjs")}`, ["Test it", "Do not"]);
  expect(hanging.join("\n")).toContain("no licence found");
  expect(hanging.at(-1)).toBe("bad is not added; no file has changed.");

  const steps = ["A program", `${node} ${script("echoes.mjs")}`, "", "second", "Test it", "For this project"];
  const second = await converse(pi, "/mcp add", steps);
  expect(second.at(-1)).toContain(`second is added to ${join(at.cwd, ".pi", "mcp.json")}.`);
  await pi.statusLine("MCP: 2 servers ready · 2 tools");

  const json = JSON.stringify({ mcpServers: { pasted: { command: node, args: [script("echoes.mjs")] } } });
  const pasted = await converse(pi, `/mcp add ${json}`, ["Test it", "For you"]);
  expect(pasted.at(-1)).toContain(`pasted is added to ${at.mcpFile}.`);
  await pi.statusLine("MCP: 3 servers ready · 3 tools");

  const imported = await converse(pi, "/mcp import", [
    "Claude Code: 2 servers, 2 new",
    "Copy some",
    "[x] 2.",
    "Copy 1",
    "Done",
  ]);
  expect(imported.at(-1)).toBe(`Imported into ${at.mcpFile}: theirs.`);
  await pi.statusLine("MCP: 4 servers ready · 4 tools");
  expect(Object.keys(JSON.parse(await readFile(at.mcpFile, "utf8")).mcpServers)).toEqual([
    "my tools",
    "pasted",
    "theirs",
  ]);

  for (const name of ["my tools", "pasted", "second", "theirs"])
    expect((await converse(pi, `/mcp remove ${name}`, ["Remove it"])).at(-1)).toContain(
      `${name} is removed from`,
    );
  await pi.statusLine(undefined, pi.rpc.events.length - 5);
  expect(await pi.status()).toContain("No servers are configured.");
  expect(extensionErrors(pi.rpc.events)).toEqual([]);
  expect((await pi.rpc.stop()).code).toBe(0);
  expect(pi.rpc.stderr).toBe("");
  expect(await serversOf(at)).toEqual([]);
});

test("in print mode: written only after a test that passed; nothing is asked, and no hint is told", async () => {
  const at = await home({});
  const scripted = await model([]);
  const { stderr, ...result } = await runPrint({
    home: at,
    model: scripted,
    extensions: ENTRY,
    // Pi takes one message after the other.
    args: ["/mcp add", `/mcp add bad ${process.execPath} ${script("exits.mjs")}`],
    prompt: `/mcp add good ${process.execPath} ${script("echoes.mjs")}`,
  });
  // Two of the three have not added anything; the last of them counts.
  expect(result).toMatchObject({ code: 1, timedOut: false });
  expect(stderr).toMatch(/\/mcp add <name> <command>[\s\S]*no licence found[\s\S]*good is added to /);
  expect(stderr).toContain(`good is added to ${at.mcpFile}.`);
  expect(await readdir(at.agentDir)).not.toContain("mcp-hint.json");
  expect(Object.keys(JSON.parse(await readFile(at.mcpFile, "utf8")).mcpServers)).toEqual(["good"]);
  expect(await serversOf(at)).toEqual([]);
  expect(scripted.requests).toEqual([]);
});

/**
 * Turns the pages of a question and answers them; the last one offers `choice`. A screen that is read while it is drawn may
 * have a new page above the choices of the old one, and Enter would then choose: so the choices must be those of the page.
 */
async function pagesUntil(terminal: Terminal, choice: string): Promise<string[]> {
  const pages: string[] = [];
  for (let page = 1; page <= 20; page++) {
    const last = `${page === 1 ? `(?:^(?![\\s\\S]*Page 1 of)|Page 1 of 1$)` : `Page ${page} of ${page}$`}[\\s\\S]*→ ${choice}`;
    const other = `Page ${page} of (?!${page}$)\\d+$[\\s\\S]*→ Next page`;
    const screen = (await terminal.until(new RegExp(`(?:${last}|${other})[\\s\\S]*navigate`, "m"))).join(
      "\n",
    );
    pages.push(screen);
    if (screen.includes(`→ ${choice}`)) return pages;
    await terminal.press("Enter");
  }
  throw new Error("the pages never end");
}

test.runIf(hasTmux())(
  "60 columns: step by step, a test that hangs is cancelled, and an imported line of a clone is read whole",
  { tags: "thorough" },
  async () => {
    const long = `--option=${"x".repeat(2_000)}END`;
    const files = { ".cursor/mcp.json": { mcpServers: { clone: { command: "sh", args: ["-c", long] } } } };
    const at = await home({ trusted: true, files });
    const terminal = await openTerminal({
      home: at,
      model: await model([]),
      extension: ENTRY,
      columns: 60,
      rows: 24,
    });
    onCleanup(() => terminal.close());
    await terminal.until(/\/mcp add adds one, \/mcp\s+import takes over[\s\S]*1\s+server\s+of\s+Cursor/);
    await terminal.prompt("/mcp add");
    await terminal.until(
      /Add what\?\s+→ A well-known server\s+A program on this machine: a command\s+A remote server \(URL\)/,
    );
    await terminal.press("Down");
    await terminal.press("Enter");
    await terminal.until(/The command with its arguments/);
    await terminal.prompt(`${process.execPath} ${script("hangs.mjs")}`);
    await terminal.until(/Environment variables of the program/);
    await terminal.press("Enter");
    await terminal.until(/Its name\. Enter: hangs/);
    await terminal.press("Enter");
    await terminal.until(
      /Add hangs\?\s+It would run:\s[\s\S]*→ Test it, then add it\s+Add it without a test\s+Cancel/,
    );
    await terminal.press("Enter");
    // Enter at that moment cancels nothing, and the seconds go on.
    await terminal.until(/Testing hangs\.[\s\S]*1 s {3}esc cancel/);
    await terminal.press("Enter");
    await terminal.until(/Testing hangs\.[\s\S]*3 s {3}esc cancel/);
    await terminal.press("Escape");
    await terminal.until(/The test of hangs is cancelled\.\s+→ Do not add it\s+Add it anyway/);
    await terminal.press("Enter");
    await terminal.until(/hangs is not added; no file has changed\./);

    await terminal.prompt("/mcp import");
    await terminal.until(/→ Cursor: 1 server, 1 new/);
    await terminal.press("Enter");
    await pagesUntil(terminal, "Use its file");
    await terminal.press("Down");
    await terminal.until(/→ Copy some/);
    await terminal.press("Enter");
    await terminal.until(/→ \[ \] 1\. clone \(new\)/);
    await terminal.press("Enter");
    const pages = await pagesUntil(terminal, "Leave it");
    expect(pages.length).toBeGreaterThan(2);
    for (const page of pages.slice(0, -1)) expect(page).not.toContain("Choose it");
    expect(pages.at(-1)).toContain("xEND");
    await terminal.press("Escape");
    await terminal.until(/→ \[ \] 1\. clone/);
    await terminal.press("Escape");
    await terminal.until(/→ Cursor: 1 server/);
    await terminal.press("Escape");
    expect(await readdir(at.agentDir)).not.toContain("mcp.json");
    expect(await serversOf(at)).toEqual([]);
  },
);
