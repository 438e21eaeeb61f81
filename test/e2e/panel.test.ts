/**
 * Owns: the panel of `/mcp` in the real Pi in a real terminal, key by key: what a person sees of servers that run, fail,
 * ask and change, and that the screen is as before when the panel is closed.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, test } from "vitest";
import { startAuthorizationServer } from "../support/authorization-server.ts";
import type { PiHome } from "../support/pi-run.ts";
import { startProtectedServer } from "../support/protected-server.ts";
import { openTerminal, type Terminal } from "../support/terminal.ts";
import { call, ENTRY, fixtureServer, home, model, onCleanup, root, SERVERS } from "./support.ts";
import { type Screen, terminalInTurn } from "./terminal-in-turn.ts";

const EAGER = { lifecycle: "eager" };

// As over SSH, so that no browser of this machine is started.
const turn = terminalInTurn({ SSH_CONNECTION: "10.0.0.1 1 10.0.0.2 22" });

async function open(
  mcpServers: Record<string, unknown> | undefined,
  size: { columns: number; rows: number },
  files: Record<string, unknown> = {},
): Promise<Screen> {
  return turn({ ...(mcpServers ? { mcp: { mcpServers } } : {}), files }, size);
}

const press = async (terminal: Terminal, ...keys: string[]): Promise<void> => {
  for (const key of keys) await terminal.press(key);
};

test.each([
  { columns: 60, rows: 24 },
  { columns: 120, rows: 45 },
])("$columns x $rows -> the servers; one is switched off and on; Escape closes", async (size) => {
  const mcpServers = {
    everything: { ...SERVERS.everything, ...EAGER, directTools: ["echo"] },
    broken: { command: "no-such-program-of-a-test", ...EAGER },
    idle: SERVERS.memory,
  };
  const { at, terminal } = await open(mcpServers, size);
  await terminal.until(/was not found/);
  await terminal.until(/MCP \d\/3/);
  await terminal.prompt("/mcp");
  const screen = (await terminal.until(/● everything +connected[\s\S]*✗ broken +failed/)).join("\n");
  expect(screen).toMatch(/^ MCP servers {2}\d of 3 connected · \d+ tools/m);
  expect(screen).toContain("esc close");

  await press(terminal, "Down");
  await terminal.until(/→ ✗ broken[\s\S]*no-such-program-of-a-test/);
  await press(terminal, "Up", "Enter");
  await terminal.until(/^ everything {2}● connected[\s\S]*→ Tools/m);
  await press(terminal, "End", "Up", "Up", "Up", "Enter");
  await terminal.until(/Disable everything\?[\s\S]*→ No, go back/);
  await press(terminal, "Down", "Enter");
  await terminal.until(/everything is disabled in ~\/\.pi\/agent\/mcp\.json\./);
  await terminal.until(/^ everything {2}– disabled/m);
  expect(await readFile(at.mcpFile, "utf8")).toContain('"enabled": false');
  await press(terminal, "Home", "Enter");
  await terminal.until(/everything is enabled in/);
  await terminal.until(/^ everything {2}● connected/m);

  await press(terminal, "Escape");
  await terminal.until(/→ ● everything/);
  await press(terminal, "Escape");
  await terminal.until(/^(?![\s\S]*MCP servers {2})/);
  await terminal.type("still here");
  await terminal.until(/still here/);
});

test("nothing is pressed but Escape -> the screen is the same to the letter", async () => {
  const { terminal } = await open({ idle: SERVERS.memory }, { columns: 80, rows: 24 });
  // The line of the status changes once the server has listed its tools.
  await terminal.until(/MCP 1\/1 · 9 tools/);
  await terminal.prompt("/mcp");
  await terminal.until(/→ . idle/);
  await press(terminal, "Escape");
  const before = (await terminal.until(/^(?![\s\S]*MCP servers {2})/)).join("\n");
  await terminal.prompt("/mcp");
  await terminal.until(/→ . idle/);
  await press(terminal, "Escape");
  expect((await terminal.until(/^(?![\s\S]*MCP servers {2})/)).join("\n")).toBe(before);
});

test("tools: a filter, Space writes the file, the schema, a search, the log", async () => {
  const mcp = `{
  // Kept.
  "mcpServers": { "everything": ${JSON.stringify({ ...SERVERS.everything, ...EAGER })} }
}`;
  const { at, terminal } = await turn({ mcp }, { columns: 100, rows: 40 });
  await terminal.until(/MCP 1\/1/);
  await terminal.prompt("/mcp");
  await terminal.until(/→ ● everything/);
  await press(terminal, "Enter");
  await terminal.until(/runs +\S+[\s\S]*process +stdio · up[\s\S]*→ Tools/);
  await press(terminal, "Enter");
  await terminal.until(/» All \d+ tools[\s\S]*○ echo +deferred/);
  await terminal.type("echo");
  await terminal.until(/» This tool$/m);
  await press(terminal, "Down", "Space");
  await terminal.until(/– echo +hidden[\s\S]*echo of everything: hidden, in ~\/\.pi\/agent\/mcp\.json\./);
  await press(terminal, "Space");
  await terminal.until(/● echo +direct[\s\S]*echo of everything: direct/);
  const written = await readFile(at.mcpFile, "utf8");
  expect(written).toContain("// Kept.");
  expect(written).toMatch(/"toolExposure": ?\{ ?"echo": ?"direct" ?\}/);
  await terminal.until(/~\d+ of ~[\d.]+k tokens declared/);
  await press(terminal, "Enter");
  await terminal.until(
    /^ echo {2}everything[\s\S]*● direct · ~\d+ tokens[\s\S]*By toolExposure "echo" in ~\/\.pi\/agent\/mcp\.json:3[\s\S]*"message"/m,
  );
  // Two of these keys at once would be one other key.
  await press(terminal, "Escape");
  await terminal.until(/Filter: echo▏/);
  await press(terminal, "Escape");
  await terminal.until(/Filter: ▏/);
  await press(terminal, "Escape");
  await terminal.until(/→ Tools/);
  await press(terminal, "Down", "Enter");
  await terminal.until(/everything log {2}following[\s\S]*everything connected over stdio/);
  await press(terminal, "Escape");
  await terminal.until(/→ Log/);
  await press(terminal, "Escape");
  await terminal.until(/→ ● everything/);
  await press(terminal, "End", "Up", "Up", "Up", "Up", "Enter");
  await terminal.type("add two numbers");
  await terminal.until(/tools ranked in [\d.]+ ms[\s\S]*→ ● 1 +everything__get-sum/);
});

test("no servers -> how to begin", async () => {
  const { terminal } = await open(undefined, { columns: 60, rows: 24 });
  await terminal.prompt("/mcp");
  await terminal.until(
    /No servers are configured\.[\s\S]*\/mcp add[\s\S]*\/mcp import[\s\S]*~\/\.pi\/agent\/mcp\.json/,
  );
});

test("a server dies, another comes and goes while one looks -> the panel follows", async () => {
  const dying = fixtureServer("dies-soon.mjs");
  const { at, terminal } = await open(
    { idle: SERVERS.memory, mortal: { ...dying, ...EAGER } },
    { columns: 80, rows: 24 },
  );
  await terminal.prompt("/mcp");
  await terminal.until(/[●◐] mortal/);
  await terminal.until(/[✗○] mortal/);
  await at.writeMcp({ mcpServers: { idle: SERVERS.memory, fresh: SERVERS.memory } });
  await terminal.until(/fresh/);
  await terminal.until(/^(?![\s\S]*mortal +(failed|idle))/);
  await press(terminal, "Down");
  await terminal.until(/→ . fresh/);
  await press(terminal, "Enter");
  await terminal.until(/^ fresh {2}/m);
  await at.writeMcp({ mcpServers: { idle: SERVERS.memory } });
  await terminal.until(/fresh is no longer configured\./);
  await terminal.until(/MCP servers/);
});

test("a project's server asks for consent while the panel is open -> the question covers it, and it comes back", async () => {
  const files = { ".mcp.json": { mcpServers: { site: SERVERS.memory } } };
  const { at, terminal } = await open({ idle: SERVERS.memory }, { columns: 100, rows: 40 });
  await terminal.prompt("/mcp");
  await terminal.until(/→ . idle/);
  await at.writeFile(".mcp.json", files[".mcp.json"]);
  await terminal.until(/This project wants to run an MCP server\.[\s\S]*→ Allow/);
  await press(terminal, "Enter");
  await terminal.until(/MCP servers[\s\S]*[○◐●] site/);
});

test("a call asks while the panel is open -> the question covers the panel, is answered, and the panel comes back", async () => {
  const own = { ...fixtureServer("shows.mjs"), directTools: true, approve: { show: "ask" } };
  const ends = "steps-end";
  const script = (at: PiHome) => [
    call("own__steps", { file: join(at.cwd, ends) }),
    call("own__show", { text: "shown" }),
    { text: "done." },
  ];
  const { at, terminal } = await turn({ mcp: { mcpServers: { own } } }, { columns: 100, rows: 40 }, script);
  await terminal.prompt("go");
  await terminal.until(/step \d+ of unknown/);
  await terminal.prompt("/mcp");
  await terminal.until(/→ ● own/);
  await at.writeFile(ends, "");
  await terminal.until(/Run show of the MCP server own\?[\s\S]*→ Allow once/);
  await press(terminal, "Enter");
  await terminal.until(/done\.[\s\S]*→ ● own/);
  await press(terminal, "Escape");
  await terminal.until(/^(?![\s\S]*MCP servers {2})/);
});

test("a sign-in from the panel -> its dialog covers the panel, and the panel comes back", async () => {
  const trusted = await startAuthorizationServer({});
  onCleanup(() => trusted.close());
  const guarded = await startProtectedServer({
    issuers: [trusted.issuer],
    check: (token, resource) => trusted.book.check(token, resource),
  });
  onCleanup(() => guarded.close());
  const mcpServers = { web: { url: guarded.url, ...EAGER } };
  const { terminal } = await open(mcpServers, { columns: 100, rows: 40 });
  await terminal.prompt("/mcp");
  await terminal.until(/→ ! web +needs sign-in/);
  await press(terminal, "Enter");
  await terminal.until(/web {2}! needs sign-in[\s\S]*Sign in/);
  await press(terminal, "Down", "Down", "Enter");
  await terminal.until(/Open the sign-in page[\s\S]*escape\/ctrl\+c cancel/);
  await press(terminal, "Escape");
  await terminal.until(/web: the sign-in is cancelled\.[\s\S]*web {2}! needs sign-in/);
});

test("a server breaks the connection worker while one looks at it -> the panel says so and goes on with the next worker", async () => {
  const mcpServers = { bad: fixtureServer("breaks-worker.mjs"), good: { ...SERVERS.memory, ...EAGER } };
  const made = await home({ mcp: { mcpServers } });
  const fault = pathToFileURL(join(root, "test/fixtures/break-on-message.mjs")).href;
  const at = { ...made, env: (extra = {}) => made.env({ NODE_OPTIONS: `--import=${fault}`, ...extra }) };
  const terminal = await openTerminal({
    home: at,
    model: await model([]),
    extension: ENTRY,
    columns: 100,
    rows: 45,
  });
  onCleanup(() => terminal.close());
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
