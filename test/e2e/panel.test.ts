/**
 * Owns: the panel of `/mcp` in the real Pi in a real terminal, key by key: what a person sees of servers that run, fail,
 * ask and change, and that the screen is as before when the panel is closed.
 */
import { appendFile, readFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, test } from "vitest";
import type { PiHome } from "../support/pi-run.ts";
import type { Terminal } from "../support/terminal.ts";
import { live } from "./rpc-support.ts";
import { startServers } from "./sign-in-support.ts";
import { call, fixtureServer, once, root, SERVERS } from "./support.ts";
import { leavePanel, type Screen, terminalInTurn } from "./terminal-in-turn.ts";

const EAGER = { lifecycle: "eager" };

/** Breaks a connection worker that reads the message of breaks-worker.mjs, and nothing else. */
const fault = pathToFileURL(join(root, "test/fixtures/break-on-message.mjs")).href;
// As over SSH, so that no browser of this machine is started.
const turn = terminalInTurn({
  SSH_CONNECTION: "10.0.0.1 1 10.0.0.2 22",
  NODE_OPTIONS: `--import=${fault}`,
});

const press = async (terminal: Terminal, ...keys: string[]): Promise<void> => {
  for (const key of keys) await terminal.press(key);
};

test("no servers -> how to begin; then servers, 60 x 24 and 120 x 45 -> they are shown; one is switched off and on; Escape closes, and the screen is the same to the letter", async () => {
  const mcpServers = {
    works: live([], { TOOLS: "echo,other" }, { ...EAGER, directTools: ["echo"] }),
    broken: { command: "no-such-program-of-a-test", ...EAGER },
    idle: SERVERS.memory,
  };
  const { at, terminal } = await turn({}, { columns: 60, rows: 24 });
  await terminal.prompt("/mcp");
  await terminal.until(
    /No servers are configured\.[\s\S]*\/mcp add[\s\S]*\/mcp import[\s\S]*~\/\.pi\/agent\/mcp\.json/,
  );
  await leavePanel(terminal);
  await at.writeMcp({ mcpServers });
  await terminal.until(/was not found/);
  await terminal.until(/mcp\.json: \+ works \(2 tools\)/);
  await terminal.until(/MCP: 2 of 3 servers ready/);

  for (const [columns, rows] of [
    [60, 24],
    [120, 45],
  ] as const) {
    await terminal.resize(columns, rows);
    await terminal.prompt("/mcp");
    // One look at all of it: a screen that is read while it is drawn ends anywhere.
    await terminal.until(
      /^ MCP servers {2}\d of 3 connected · \d+ tools[\s\S]*→ ✗ broken +failed[\s\S]*● works +connected[\s\S]*no-such-program-of-a-test[\s\S]*ctrl\+r connect[\s\S]*esc close/m,
    );
    await press(terminal, "Down");
    await terminal.until(/→ ● works[\s\S]*ctrl\+d disable/);
    await press(terminal, "Enter");
    await terminal.until(/^ works {2}● connected[\s\S]*→ Tools/m);
    await press(terminal, "End", "Up", "Up", "Up", "Enter");
    await terminal.until(/Disable works\?[\s\S]*→ No, go back/);
    await press(terminal, "Down", "Enter");
    await terminal.until(/works is disabled in ~\/\.pi\/agent\/mcp\.json\./);
    await terminal.until(/^ works {2}– disabled/m);
    expect(await readFile(at.mcpFile, "utf8")).toContain('"enabled": false');
    // The choice stands on what undoes it.
    await terminal.until(/→ Enable/);
    await press(terminal, "Enter");
    await terminal.until(/works is enabled in/);
    await terminal.until(/^ works {2}● connected/m);

    await press(terminal, "Escape");
    await terminal.until(/→ ● works/);
    await press(terminal, "Escape");
    // Pi draws from the top, so the screen is whole once the empty editor, the footer and the status are below it.
    const line = `─{${columns}}\\n`;
    const whole = new RegExp(
      `^${line}\\n${line}~/project\\n.*\\nMCP: 2 of 3 servers ready · broken failed: /mcp$`,
      "m",
    );
    const before = (await terminal.until(whole)).join("\n");
    await terminal.prompt("/mcp");
    await terminal.until(/→ ✗ broken/);
    await press(terminal, "Escape");
    expect((await terminal.until(whole)).join("\n")).toBe(before);
    await terminal.type("still here");
    await terminal.until(/still here/);
    await press(terminal, "C-u");
  }
});

/**
 * Goes down to a choice of a dialog that covers the panel: its first keys may have been on their way to the panel, so they are
 * not its own.
 */
async function chooses(terminal: Terminal, choice: string): Promise<void> {
  const look = async (): Promise<string> => (await terminal.screen()).join("\n");
  const isThere = new RegExp(`→ ${choice}$`, "m");
  for (let tries = 0; tries < 20; tries++) {
    const before = await look();
    if (isThere.test(before)) return;
    await terminal.press("Down");
    const endsAt = performance.now() + 1_500;
    while ((await look()) === before && performance.now() < endsAt);
  }
  await terminal.until(isThere);
}

const STEPS_END = "steps-end";

/** One session of the following tests. Each of them opens the panel and leaves it closed. */
const shared = once(async () => {
  const { guarded } = await startServers();
  const mcpServers = {
    everything: { ...SERVERS.everything, ...EAGER },
    own: { ...fixtureServer("shows.mjs"), directTools: true, approve: { show: "ask" } },
    web: { url: guarded.url, ...EAGER },
  };
  const mcp = `{
  // Kept.
  "mcpServers": ${JSON.stringify(mcpServers)}
}`;
  const script = (at: PiHome) => [
    call("own__steps", { file: join(at.cwd, STEPS_END) }),
    call("own__show", { text: "shown" }),
    { text: "done." },
  ];
  const screen = await turn({ mcp }, { columns: 100, rows: 40 }, script);
  await screen.terminal.until(/MCP: 2 of 3 servers ready/);
  return screen;
});

/** Opens the panel of the session. */
async function opened(): Promise<Screen> {
  const screen = await shared();
  await screen.terminal.prompt("/mcp");
  await screen.terminal.until(/→ ! web[\s\S]*● everything/);
  await screen.terminal.press("Down");
  await screen.terminal.until(/→ ● everything/);
  return screen;
}

test("tools: a filter, Tab writes the file, the schema, a search, the log", async () => {
  const { at, terminal } = await opened();
  await press(terminal, "Enter");
  await terminal.until(/runs +\S+[\s\S]*process +stdio · up[\s\S]*→ Tools/);
  await press(terminal, "Enter");
  await terminal.until(/» All \d+ tools[\s\S]*○ echo +deferred/);
  await terminal.type("echo");
  await terminal.until(/» This tool$/m);
  await press(terminal, "Down");
  await terminal.until(/tab make it direct \(writes mcp\.json\)/);
  await press(terminal, "Tab");
  await terminal.until(/● echo +direct[\s\S]*echo of everything: direct, in ~\/\.pi\/agent\/mcp\.json\./);
  const written = await readFile(at.mcpFile, "utf8");
  expect(written).toContain("// Kept.");
  expect(written).toMatch(/"toolExposure": ?\{ ?"echo": ?"direct" ?\}/);
  await terminal.until(/\d loaded, ~\d+ of ~[\d.]+k tokens/);
  await press(terminal, "Enter");
  await terminal.until(
    /^ echo {2}everything[\s\S]*● direct · ~\d+ tokens[\s\S]*By toolExposure "echo" in ~\/\.pi\/agent\/mcp\.json:3[\s\S]*"message"/m,
  );
  // Two of these keys at once would be one other key.
  await press(terminal, "Escape");
  await terminal.until(/Filter: echo▏[\s\S]*esc back/);
  await press(terminal, "Escape");
  await terminal.until(/→ Tools/);
  await press(terminal, "Down", "Enter");
  await terminal.until(/everything log {2}following[\s\S]*everything connected over stdio/);
  await press(terminal, "Escape");
  await terminal.until(/→ Log/);
  await press(terminal, "Escape");
  await terminal.until(/→ ● everything/);
  await press(terminal, "Tab", "Enter");
  await terminal.type("add two numbers");
  await terminal.until(/tools ranked in [\d.]+ ms[\s\S]*→ ● 1 +everything__get-sum/);
  await leavePanel(terminal);
});

test("the box finds a tool of any server; it is tried with a form, and the result is shown", async () => {
  const { terminal } = await opened();
  await terminal.type("add a se");
  await terminal.until(/Find: add a se▏[\s\S]*» Add a server/);
  await press(terminal, "Escape");
  await terminal.until(/^(?![\s\S]*Find: )[\s\S]*→ [\s\S]*esc close[\s\S]*\nMCP: /);
  await terminal.type("get sum");
  await terminal.until(/→ ○ get-sum {2}everything[\s\S]*ctrl\+t try it/);
  await press(terminal, "C-t");
  await terminal.until(/everything, 1 of 2:\s+│ a\b/);
  await terminal.type("4");
  await press(terminal, "Enter");
  await terminal.until(/everything, 2 of 2:\s+│ b\b/);
  await terminal.type("38");
  await press(terminal, "Enter");
  await terminal.until(/Call get-sum of everything\?[\s\S]*→ Call it[\s\S]*a: 4[\s\S]*b: 38/);
  await press(terminal, "Enter");
  await terminal.until(/get-sum answered[\s\S]*It answered after[\s\S]*is 42/);
  await press(terminal, "Escape");
  await terminal.until(/Find: get sum▏[\s\S]*esc close/);
  await leavePanel(terminal);
});

test("a call asks while the panel is open -> the question covers the panel, is answered, and the panel comes back", async () => {
  const { at, terminal } = await shared();
  await terminal.prompt("go");
  await terminal.until(/step \d+ of unknown/);
  await opened();
  await at.writeFile(STEPS_END, "");
  // The keys may be meant for the panel: the first choice lets nothing run.
  await terminal.until(/Run show of the MCP server own\?[\s\S]*→ No\s+Allow once/);
  await chooses(terminal, "Allow once");
  await press(terminal, "Enter");
  await terminal.until(/done\.[\s\S]*→ ● everything/);
  await leavePanel(terminal);
});

test("a sign-in from the panel -> its dialog covers the panel, and the panel comes back", async () => {
  const { terminal } = await opened();
  await press(terminal, "Up");
  await terminal.until(/→ ! web +needs sign-in/);
  await press(terminal, "Enter");
  await terminal.until(/web {2}! needs sign-in[\s\S]*Sign in/);
  await press(terminal, "Down", "Down", "Enter");
  await terminal.until(/Open the sign-in page[\s\S]*escape\/ctrl\+c cancel/);
  await press(terminal, "Escape");
  await terminal.until(/web: the sign-in is cancelled\.[\s\S]*web {2}! needs sign-in/);
  await leavePanel(terminal);
});

test("a server dies, another comes and goes while one looks -> the panel follows", {
  tags: "thorough",
}, async () => {
  const { at, terminal } = await opened();
  await terminal.resize(80, 24);
  const dying = fixtureServer("dies-soon.mjs", { RECORD: join(at.dir, "starts") });
  await at.writeMcp({ mcpServers: { idle: SERVERS.memory, mortal: { ...dying, ...EAGER } } });
  await terminal.until(/[●◐] mortal/);
  await terminal.until(/[✗○] mortal/);
  await at.writeMcp({ mcpServers: { idle: SERVERS.memory, fresh: SERVERS.memory } });
  await terminal.until(/fresh/);
  await terminal.until(/^(?![\s\S]*mortal +(failed|idle))[\s\S]*esc close[\s\S]*\nMCP: /);
  await press(terminal, "Home");
  await terminal.until(/→ . idle/);
  await press(terminal, "Down");
  await terminal.until(/→ . fresh/);
  await press(terminal, "Enter");
  await terminal.until(/^ fresh {2}/m);
  await at.writeMcp({ mcpServers: { idle: SERVERS.memory } });
  await terminal.until(/fresh is no longer configured\./);
  await terminal.until(/MCP servers/);
  await leavePanel(terminal);
});

test("a project's server asks for consent while the panel is open -> the question covers it, and it comes back", async () => {
  const { at, terminal } = await shared();
  await terminal.resize(100, 40);
  await at.writeMcp({ mcpServers: { idle: SERVERS.memory } });
  await terminal.prompt("/mcp");
  await terminal.until(/→ . idle/);
  await at.writeFile(".mcp.json", { mcpServers: { site: SERVERS.memory } });
  await terminal.until(/This project wants to run an MCP server\.[\s\S]*→ Not now\s+Refuse\s+Allow/);
  await chooses(terminal, "Allow");
  await press(terminal, "Enter");
  await terminal.until(/MCP servers[\s\S]*[○◐●] site/);
});

test("30 servers at 60, 80, 120 and 200 columns -> what fails comes first, Tab leads to each action, and the keys of the row are shown", {
  tags: "thorough",
}, async () => {
  const idle = Array.from({ length: 29 }, (_, i) => [`idle-${i}`, SERVERS.memory]);
  const mcpServers = {
    ...Object.fromEntries(idle),
    broken: { command: "no-such-program-of-a-test", ...EAGER },
  };
  const { terminal } = await turn({ mcp: { mcpServers } }, { columns: 80, rows: 24 });
  await terminal.until(/broken failed: \/mcp|was not found/);
  for (const columns of [60, 80, 120, 200]) {
    await terminal.resize(columns, 24);
    await terminal.prompt("/mcp");
    await terminal.until(
      /MCP servers {2}[\s\S]*→ ✗ broken +failed[\s\S]*\(1\/\d+\)[\s\S]*ctrl\+r connect {2}ctrl\+d disable {2}ctrl\+l log\n.*tab actions {2}esc close/,
    );
    await press(terminal, "Tab");
    await terminal.until(/→ » Try a search[\s\S]*» Statistics[\s\S]*» Add a server/);
    await press(terminal, "End");
    await terminal.until(/» Import[\s\S]*» Decisions[\s\S]*→ » Edit the configuration/);
    await press(terminal, "Home");
    await terminal.until(/→ ✗ broken/);
    await leavePanel(terminal);
  }
});

/** The line that says which row is chosen, or which lines are seen: `(4/35)`, `(1–8/46)`. */
const PLACE = /^ {2}\(([\d–]+)\/(\d+)\)$/m;

/** Goes through the shown list or text by pages, and to both ends. */
async function walks(terminal: Terminal): Promise<void> {
  const seen = (screen: readonly string[]): { first: number; isEnd: boolean } => {
    const [, place = "", count = ""] = PLACE.exec(screen.join("\n")) ?? [];
    return { first: Number.parseInt(place, 10), isEnd: place.split("–").at(-1) === count };
  };
  let before = 0;
  const goes = async (key: string, arrived: (now: ReturnType<typeof seen>) => boolean): Promise<void> => {
    before = seen(await terminal.until(PLACE)).first;
    await terminal.press(key);
    const shown = async (): Promise<string> => {
      const screen = await terminal.screen();
      return arrived(seen(screen)) ? "" : `${key} left the screen as it was:\n${screen.join("\n")}`;
    };
    await expect.poll(shown).toBe("");
  };
  await goes("Home", ({ first }) => first === 1);
  await goes("NPage", ({ first }) => first > before);
  await goes("PPage", ({ first }) => first < before);
  await goes("End", ({ isEnd }) => isEnd);
  await goes("PPage", ({ first }) => first < before);
  await goes("Home", ({ first }) => first === 1);
}

test("Page Up, Page Down, Home and End move in the lists of servers, tools and hits, and in schema, log and doctor", {
  tags: "thorough",
}, async () => {
  const idle = Array.from({ length: 30 }, (_, i) => [`idle-${i}`, SERVERS.memory]);
  const reasons = Array.from({ length: 20 }, (_, i) => `reason ${i} of a long list`).join("\\n");
  const fails = { command: process.execPath, args: ["-e", `console.error("${reasons}"); process.exit(1)`] };
  const everything = { ...SERVERS.everything, ...EAGER };
  const mcpServers = { everything, fails, ...Object.fromEntries(idle) };
  const { at, terminal } = await turn({ mcp: { mcpServers } }, { columns: 80, rows: 24 });
  await terminal.until(/MCP: \d+ of 32 servers ready/);
  const lines = Array.from(
    { length: 40 },
    (_, i) => `2026-11-23T10:00:00.000Z info  [connection] everything: line ${i}\n`,
  );
  await appendFile(join(at.agentDir, "mcp-threads.log"), lines.join(""));
  await terminal.prompt("/mcp");
  await terminal.until(/✗ fails/);
  await press(terminal, "Home");
  await terminal.until(/→ ✗ fails/);
  await walks(terminal);
  await press(terminal, "Down");
  await terminal.until(/→ ● everything/);
  await press(terminal, "Enter");
  // Two columns have room for every action.
  await terminal.until(/^ everything {2}● connected[\s\S]*→ Tools .* Sharing [\s\S]* Disable[\s\S]* Remove/m);
  await press(terminal, "Right");
  await terminal.until(/ {3}Tools .*→ Sharing/);
  await press(terminal, "Left");
  await terminal.until(/→ Tools/);
  await press(terminal, "Enter");
  await terminal.until(/→ » All \d+ tools/);
  await walks(terminal);
  await terminal.type("annotated");
  await terminal.until(/→ » This tool/);
  await press(terminal, "Down", "Enter");
  await terminal.until(/^ get-annotated-message {2}everything[\s\S]*In Pi:/m);
  await walks(terminal);
  for (const shown of [/Filter: annotated/, /→ Tools/]) {
    await press(terminal, "Escape");
    await terminal.until(shown);
  }
  await press(terminal, "Down", "Enter");
  await terminal.until(/everything log {2}following[\s\S]*line 39/);
  await walks(terminal);
  await press(terminal, "Escape");
  await terminal.until(/→ Log/);
  await press(terminal, "End", "Up", "Up", "Up", "Enter");
  await terminal.until(/Disable everything[\s\S]*→ No, go back/);
  await press(terminal, "NPage");
  await terminal.until(/→ (?!No)/);
  await press(terminal, "PPage");
  await terminal.until(/→ No, go back/);
  await press(terminal, "Escape");
  await terminal.until(/→ Disable/);
  await press(terminal, "Escape");
  await terminal.until(/→ ● everything/);
  await press(terminal, "Up", "Enter");
  await terminal.until(/^ fails {2}[\s\S]*→ /m);
  await press(terminal, "End", "Up", "Enter");
  await terminal.until(/^ fails doctor[\s\S]*MCP doctor: \d/m);
  await terminal.resize(60, 17);
  await walks(terminal);
  await terminal.resize(80, 24);
  await press(terminal, "Escape");
  await terminal.until(/→ Doctor/);
  await press(terminal, "Escape");
  await terminal.until(/→ . fails/);
  await press(terminal, "Tab", "Enter");
  await terminal.type("get a message");
  await terminal.until(/tools ranked in/);
  await walks(terminal);
});

test("a server breaks the connection worker while one looks at it -> the panel says so and goes on with the next worker", {
  tags: "thorough",
}, async () => {
  const mcpServers = { bad: fixtureServer("breaks-worker.mjs"), good: { ...SERVERS.memory, ...EAGER } };
  const { terminal } = await turn({ mcp: { mcpServers } }, { columns: 100, rows: 45 });
  await terminal.prompt("/mcp");
  await terminal.until(/→ ✗ bad +failed[\s\S]*● good +connected/);
  await press(terminal, "Enter");
  await terminal.until(/^ bad {2}✗ failed[\s\S]*while it handled a message of this server[\s\S]*→ Log/m);
  await press(terminal, "Down", "Enter");
  await terminal.until(/The connection worker ended with code 9/);
  await terminal.until(/^ bad {2}✗ failed/m);
  await press(terminal, "Escape");
  await terminal.until(/→ ✗ bad +failed[\s\S]*● good +connected/);
});
