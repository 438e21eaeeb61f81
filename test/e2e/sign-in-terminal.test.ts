/**
 * Owns: a sign-in in the real Pi in a real terminal, narrow, then wider: the whole address can be read and clicked, Escape
 * cancels, and a call waits for the sign-in that it needs.
 * @module-tag thorough
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { browse } from "../support/browser.ts";
import { openTerminal } from "../support/terminal.ts";
import { startServers } from "./sign-in-support.ts";
import { call, ENTRY, home, model, onCleanup, searchFor } from "./support.ts";

/** The address of the dialog: its rows, each with a free cell at both ends, joined. */
function addressOn(screen: readonly string[]): string {
  const from = screen.findLastIndex((line) => line.startsWith(" http://127.0.0.1"));
  const rows = screen.slice(from).map((line) => line.slice(1));
  return rows
    .slice(
      0,
      rows.findIndex((row) => row.includes(" ")),
    )
    .join("");
}

const WIDTHS = [60, 80, 120];

test("over SSH, where codes for another device are offered -> page and code at 60 and 80 columns; Esc; Enter waits on; signed in", async () => {
  const { guarded, trusted } = await startServers({ device: (usual) => usual });
  const made = await home({ mcp: { mcpServers: { web: { url: guarded.url } } } });
  const written = join(made.tmpDir, "written.log");
  const remote = { SSH_CONNECTION: "10.0.0.1 1 10.0.0.2 22", PI_TUI_WRITE_LOG: written };
  const at = { ...made, env: (extra = {}) => made.env({ ...remote, ...extra }) };
  const terminal = await openTerminal({ home: at, model: await model([]), extension: ENTRY, columns: 60 });
  onCleanup(() => terminal.close());
  await terminal.until(/MCP server web needs a sign-in: \/mcp auth web/);

  const SHOWN = /enter this code: (\S+)[\s\S]*Go on waiting[\s\S]*Sign in with a link instead/;
  const page = `${trusted.origin}/device`;
  for (const columns of [60, 80]) {
    await terminal.resize(columns);
    await terminal.prompt("/mcp auth");
    const screen = await terminal.until(SHOWN);
    expect(screen.map((line) => line.trim())).toContain(page);
    expect(await readFile(written, "utf8")).toContain(`\u001b]8;;${page}\u001b\\`);
    await terminal.press("Escape");
    await terminal.until(/^(?![\s\S]*Go on waiting)[\s\S]*web: the sign-in is cancelled\./);
  }

  await terminal.prompt("/mcp auth");
  const code = SHOWN.exec((await terminal.until(SHOWN)).join("\n"))?.[1] ?? "";
  await terminal.press("Enter");
  await terminal.until(SHOWN);
  expect(trusted.book.answerDevice(code, "agreed")).toBe(true);
  await terminal.until(/web: signed in, 1 tool\./);
});

test("60, 80 and 120 columns -> the link is whole, and Esc cancels; a sign-in; a call that waits", async () => {
  const { guarded } = await startServers();
  const mcp = { mcpServers: { web: { url: guarded.url } }, settings: { autoAuth: true } };
  const made = await home({ mcp });
  const written = join(made.tmpDir, "written.log");
  // As over SSH, so that no browser of this machine is started.
  const remote = { SSH_CONNECTION: "10.0.0.1 1 10.0.0.2 22", PI_TUI_WRITE_LOG: written };
  const at = { ...made, env: (extra = {}) => made.env({ ...remote, ...extra }) };
  const script = [searchFor("echo"), { text: "found." }, call("web__echo", { a: 1 }), { text: "answered." }];
  const terminal = await openTerminal({
    home: at,
    model: await model(script),
    extension: ENTRY,
    columns: 60,
  });
  onCleanup(() => terminal.close());
  await terminal.until(/MCP server web needs a sign-in: \/mcp auth web/);

  for (const columns of WIDTHS) {
    await terminal.resize(columns);
    await terminal.until(new RegExp(`^─{${columns}}$`, "m"));
    await terminal.prompt("/mcp auth");
    const address = addressOn(await terminal.until(/Open the sign-in page[\s\S]*escape\/ctrl\+c cancel/));
    expect(new URL(address).searchParams.get("code_challenge_method")).toBe("S256");
    // Each row of the address, and the line above it, is a link to the whole address.
    const links = (await readFile(written, "utf8")).split(`\u001b]8;;${address}\u001b\\`).length - 1;
    expect(links).toBeGreaterThanOrEqual(1 + Math.ceil(address.length / (columns - 2)));
    await terminal.press("Escape");
    await terminal.until(/^(?![\s\S]*escape\/ctrl\+c cancel)[\s\S]*web: the sign-in is cancelled\./);
  }

  await terminal.prompt("/mcp-auth web");
  expect((await browse(addressOn(await terminal.until(/escape\/ctrl\+c cancel/)))).status).toBe(200);
  await terminal.until(/web: signed in, 1 tool\./);
  // The dialog has closed by itself: keys count behind a pause.
  await sleep(1_000);
  await terminal.prompt("/mcp status");
  await terminal.until(
    /web: connected \(http,\s+1\s+tool,\s+MCP\s+[\d-]+,\s+signed\s+in,\s+expires\s+in\s+\d+\s+min,\s+renews\s+itself\)/,
  );

  await terminal.prompt("search");
  await terminal.until(/^ found\./m);
  await terminal.prompt("/mcp logout web");
  await terminal.until(/web is signed out\./);
  await terminal.prompt("call it");
  await browse(addressOn(await terminal.until(/escape\/ctrl\+c cancel/)));
  const screen = (await terminal.until(/^ answered\./m)).join("\n");
  expect(screen).toContain('{"a":1}');
  expect(screen).toContain("web: signed in, 1 tool.");
});
