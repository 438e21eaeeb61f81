/** Owns: the panel's pictures, narrow and wide, and that no line is ever wider than the screen. */
import { describe, expect, test } from "vitest";
import { visibleWidth } from "../../../../src/shared/text/width.ts";
import { draw } from "../../../../src/ui/panel/draw/draw.ts";
import { START } from "../../../../src/ui/panel/model/model.ts";
import { makeStatus } from "../../server-status.ts";
import { makeWorld, PLAIN, picture, press, USUAL } from "./support.ts";

describe("the list of servers", () => {
  test("60 columns", () => {
    expect(picture(START, USUAL)).toMatchInlineSnapshot(`
      "
      ────────────────────────────────────────────────────────────
       MCP servers  2 of 5 connected · 48 tools · ~1.2k tokens

           server    state           tools  tokens
       → ● github    connected          42    1.2k
         ● files     connected           2       0
         ! linear    needs sign-in       –       –
         ✗ browser   failed              –       –
         – old       disabled            0       –
         ? site      asks consent
         ✗ shady     refused       you refused it in this folder
         ! mcp.json:12 mcpServers.x.args: expected a list, found …
         » Edit the configuration

       signed in, expires in 42 min, renews itself.

       ↑↓ move  enter open  type to filter  esc close
      ────────────────────────────────────────────────────────────
      "
    `);
  });
  test("120 columns, another server chosen", () => {
    expect(picture(press("down down down", USUAL).state, USUAL, 120, 30)).toMatchInlineSnapshot(`
      "
      ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
       MCP servers  2 of 5 connected · 48 tools · ~1.2k tokens

           server    state                   tools  tokens      of
         ● github    connected     http         42    1.2k   18.3k
         ● files     connected     stdio         2       0     960
         ! linear    needs sign-in http          –       –       –
       → ✗ browser   failed        stdio         –       –       –
         – old       disabled      stdio         0       –       –
         ? site      asks consent
         ✗ shady     refused       you refused it in this folder
         ! mcp.json:12 mcpServers.x.args: expected a list, found a string
         » Edit the configuration

       the command "npx" was not found. Check command, cwd and PATH in mcp.json.

       ↑↓ move  enter open  type to filter  esc close
      ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
      "
    `);
  });
  test("a filter", () => {
    expect(picture(press('"needs"', USUAL).state, USUAL)).toMatchInlineSnapshot(`
      "
      ────────────────────────────────────────────────────────────
       MCP servers  2 of 5 connected · 48 tools · ~1.2k tokens

       Filter: needs▏
           server    state           tools  tokens
       → ! linear    needs sign-in       –       –

       From /mcp.json.

       ↑↓ move  enter open  type to filter  esc clear
      ────────────────────────────────────────────────────────────
      "
    `);
  });
  test("no servers -> how to begin", () => {
    const world = makeWorld({ files: ["/home/ann/.config/mcp/mcp.json", "/home/ann/.pi/agent/mcp.json"] });
    expect(picture(START, world)).toMatchInlineSnapshot(`
      "
      ────────────────────────────────────────────────────────────
       MCP servers

       No servers are configured.
       /mcp edit opens your file: write a server into mcpServers,
       and it starts when you save.
       ~/.config/mcp/mcp.json
       ~/.pi/agent/mcp.json

       → » Edit the configuration

       ↑↓ move  enter open  type to filter  esc close
      ────────────────────────────────────────────────────────────
      "
    `);
  });
});

describe("one server", () => {
  test("60 columns", () => {
    expect(picture(press("enter", USUAL).state, USUAL)).toMatchInlineSnapshot(`
      "
      ────────────────────────────────────────────────────────────
       github  ● connected

       runs      http · MCP 2026-07-28 · lazy
       from      ~/.pi/agent/mcp.json
       tools     42 tools, 3 resources · 4 declared (~1.2k of ~18…
       sign-in   signed in, expires in 42 min, renews itself

       → Reconnect
         Sign in again
         Sign out
         Disable                  everywhere
         Disable in this project

       ↑↓ move  enter choose  esc back
      ────────────────────────────────────────────────────────────
      "
    `);
  });
  test("one that failed", () => {
    expect(picture(press('"browser" enter', USUAL).state, USUAL)).toMatchInlineSnapshot(`
      "
      ────────────────────────────────────────────────────────────
       browser  ✗ failed

       runs      stdio · lazy
       from      /mcp.json
       tools     tools unknown
       the command "npx" was not found. Check command, cwd and
       PATH in mcp.json.

       → Connect
         Disable                  everywhere
         Disable in this project

       ↑↓ move  enter choose  esc back
      ────────────────────────────────────────────────────────────
      "
    `);
  });
  test("the question before it is switched off", () => {
    expect(picture(press("down enter down enter", USUAL).state, USUAL)).toMatchInlineSnapshot(`
      "
      ────────────────────────────────────────────────────────────
       Disable files?

       It is switched off in the file that defines it. Its tools
       go at once.

       → No, go back
         Disable it

       ↑↓ move  enter choose  esc back
      ────────────────────────────────────────────────────────────
      "
    `);
  });
  test("what an action did, and one under way", () => {
    const { state } = press("enter", USUAL);
    const notice = { text: "github is disabled in /home/ann/.pi/agent/mcp.json.", level: "info" as const };
    expect(picture({ ...state, notice }, USUAL)).toContain(" github is disabled in ~/.pi/agent/mcp.json.\n");
    expect(picture({ ...state, busy: "Connecting github" }, USUAL)).toContain(" Connecting github…\n");
  });
});

/** Names and texts that servers, clones and files may write. */
const HOSTILE = [
  "日本語".repeat(40),
  "👩‍🚀".repeat(60),
  "a\u0301\u0302".repeat(100),
  "\u001b[2J\u001b]0;title\u0007name\u009b31m",
  "tab\tand\nnewline\u2028and\u0085more",
  "\u202eright to left\u2066",
  "กำ".repeat(50),
  "🇩🇪".repeat(40),
  "\ud800lone",
  "x".repeat(10_000),
  "",
];

describe("hostile names", () => {
  const world = makeWorld({
    servers: HOSTILE.map((name) =>
      makeStatus(name, {
        source: name,
        description: name,
        protocol: name.slice(0, 40),
        state: "failed",
        error: { code: "spawn_failed", message: name, remedy: name },
      }),
    ),
    questions: HOSTILE.map((name, i) => ({ server: name, hash: String(i), question: name })),
    refused: HOSTILE.map((name) => ({ name, reason: name })),
    problems: HOSTILE.map((name) => ({
      severity: "error",
      file: name,
      key: name,
      message: name,
      remedy: name,
    })),
    files: HOSTILE,
  });
  const count = 4 * HOSTILE.length + 1;
  const states = [
    ...Array.from({ length: count / 5 }, (_, i) => press("down ".repeat(5 * i), world).state),
    ...HOSTILE.map((_, i) => press(`${"down ".repeat(i)} enter`, world).state),
    ...HOSTILE.map((_, i) => press(`${"down ".repeat(i)} enter down enter`, world).state),
  ];

  test.each([20, 21, 33, 59, 60, 79, 80, 81, 120, 200])("%i columns -> every line fits", (width) => {
    for (const state of states) {
      const notice = { text: HOSTILE.join(" "), level: "error" as const };
      for (const shown of [state, { ...state, notice, busy: HOSTILE.join("") }]) {
        const lines = draw(shown, world, { width, height: 19, theme: PLAIN });
        expect(lines.length).toBeLessThanOrEqual(19);
        for (const line of lines) {
          expect(visibleWidth(line)).toBeLessThanOrEqual(width);
          // biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern finds control characters.
          expect(line).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u2028\u202e\u2066]/);
        }
      }
    }
  });
});
