import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { HomeOptions } from "../support/pi-run.ts";
import type { RpcDialog } from "../support/rpc-events.ts";
import { inTurn } from "./in-turn.ts";
import { breakableEntry, breakWorker, dialogsOf, live, type Opened, PATIENCE_MS } from "./rpc-support.ts";
import { readLog } from "./support.ts";

const APPLY = "Apply the edit of the MCP configuration?\n";
const EAGER = { lifecycle: "eager" };
const config = (hotReload: string, more: Record<string, unknown> = {}) => ({
  settings: { hotReload },
  mcpServers: { own: live(["own"], {}, EAGER), off: live(["off"], {}, { enabled: false }), ...more },
});
const added = () => ({ added: live(["added"], {}, EAGER) });

/** Another extension whose command registers a server. */
const OTHER = `export default (pi) => {
  pi.registerCommand("register", { description: "x", handler: async () => {
    pi.registerMcpServer("ext", ${JSON.stringify(live(["ext"], {}, EAGER))});
  } });
};`;

const turn = inTurn({ extensions: async (at) => [await breakableEntry(at)] });

async function openWith(hotReload: string, options: HomeOptions = {}): Promise<Opened> {
  const pi = await turn(({ cwd }) => ({
    mcp: config(hotReload),
    ...options,
    files: { "other.mjs": OTHER, ...options.files },
    settings: { extensions: ["-builtin:mcp", join(cwd, "other.mjs")] },
  }));
  await pi.statusLine("MCP: 1 server ready · 1 tool");
  return pi;
}

/** Edits the user's file and resolves when the log says that the edit waits. */
async function edit(pi: Opened, hotReload: string): Promise<void> {
  await pi.at.writeMcp(config(hotReload, added()));
  await expect
    .poll(() => readLog(pi.at), { timeout: PATIENCE_MS })
    .toContain(`an edit of the configuration waits: hotReload is "${hotReload}"`);
}

/** Resolves when the log names `count` edits that wait. */
async function edits(pi: Opened, count: number): Promise<void> {
  await expect
    .poll(async () => (await readLog(pi.at)).split("an edit of the configuration waits").length - 1, {
      timeout: PATIENCE_MS,
    })
    .toBe(count);
}

/** Resolves with the dialogs that ask whether to apply an edit, after the first one. */
async function confirmsOf(pi: Opened): Promise<RpcDialog[]> {
  const confirms = () => dialogsOf(pi.rpc).filter(({ title }) => title.startsWith(APPLY));
  await expect.poll(() => confirms().length, { timeout: PATIENCE_MS }).toBeGreaterThan(0);
  return confirms();
}

const HAPPENINGS: [string, command: string, outcome: string][] = [
  ["another extension registers a server", "/register", "ext: connected"],
  ["/mcp enable of another server", "/mcp enable off", "off: connected"],
  ["/mcp trust", "/mcp trust", "own: connected"],
];

/** Does each of these while the edit waits, and checks that the edit still waits. */
async function happen(pi: Opened): Promise<void> {
  for (const [name, command, outcome] of HAPPENINGS) {
    await pi.rpc.command(command, PATIENCE_MS);
    await expect.poll(() => pi.status(), { timeout: PATIENCE_MS, message: name }).toContain(outcome);
    expect(await pi.status(), name).not.toContain("added");
  }
}

describe("an edit waits during a registration by another extension, /mcp enable of another server and /mcp trust -> each is done, the edit still waits", () => {
  test("hotReload ask -> asked once; yes applies the edit", async () => {
    const pi = await openWith("ask");
    await edit(pi, "ask");
    await happen(pi);
    const [asked, ...others] = await confirmsOf(pi);
    expect(others).toEqual([]);
    if (!asked) throw new Error("not asked");
    const since = pi.rpc.events.length;
    pi.answer(asked, { value: "Apply it" });
    await pi.statusLine("MCP: 4 servers ready · 4 tools", since);
    expect(await pi.status()).toMatch(/^added: connected/m);
    expect(dialogsOf(pi.rpc)).toHaveLength(1);
  });
});

describe("hotReload ask, an edit waits", () => {
  test("a consent is answered -> the allowed server runs, the edit still waits", {
    tags: "thorough",
  }, async () => {
    const shared = { mcpServers: { shared: live(["shared"], {}, EAGER) } };
    const pi = await openWith("ask", { files: { ".mcp.json": shared } });
    const consent = await pi.dialog();
    await edit(pi, "ask");
    pi.answer(consent, { value: "Allow" });
    await expect.poll(() => pi.status(), { timeout: PATIENCE_MS }).toContain("shared: connected");
    expect(await pi.status()).not.toContain("added");
  });

  test("the file is edited again before the answer -> the new effect takes the question's place; a yes to the old one applies nothing", {
    tags: "thorough",
  }, async () => {
    const pi = await openWith("ask");
    await edit(pi, "ask");
    const first = await pi.dialog();
    expect(first.title).toBe(`${APPLY}mcp.json: + added`);
    const since = pi.rpc.events.length;
    await pi.at.writeMcp(config("ask", { ...added(), more: live(["more"], {}, EAGER) }));
    await edits(pi, 2);
    const second = await pi.dialog(since);
    pi.answer(first, { value: "Apply it" });
    expect(second.title).toBe(`${APPLY}mcp.json: + added, + more`);
    expect(await pi.status()).not.toMatch(/added|more/);
    pi.answer(second, { value: "Apply it" });
    await pi.statusLine("MCP: 3 servers ready · 3 tools");
  });
});

describe("the connection worker ends while an edit waits", () => {
  test("ask, while the question is open -> it stays the only question until the file changes; its yes is for that edit only", async () => {
    const pi = await turn({ mcp: config("ask") });
    await pi.statusLine("MCP: 1 server ready · 1 tool");
    await edit(pi, "ask");
    const first = await pi.dialog();
    let since = pi.rpc.events.length;
    await breakWorker(pi);
    await pi.statusLine("MCP: 1 server ready · 1 tool", since);
    // The next worker also logs the waiting edit before the file changes again.
    await edits(pi, 2);
    expect(dialogsOf(pi.rpc)).toHaveLength(1);
    since = pi.rpc.events.length;
    await pi.at.writeMcp(config("ask", { more: live(["more"], {}, EAGER) }));
    await edits(pi, 3);
    const second = await pi.dialog(since);
    pi.answer(first, { value: "Apply it" });
    expect(second.title).toBe(`${APPLY}mcp.json: + more`);
    expect(await pi.status()).not.toMatch(/added|more/);
    since = pi.rpc.events.length;
    pi.answer(second, { value: "Apply it" });
    await pi.statusLine("MCP: 2 servers ready · 2 tools", since);
    expect(await pi.status()).not.toContain("added");
  });
});
