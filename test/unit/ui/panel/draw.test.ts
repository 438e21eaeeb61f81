/** Owns: the panel's pictures, narrow and wide, and that no line is ever wider than the screen. */
import { describe, expect, test } from "vitest";
import { visibleWidth } from "../../../../src/shared/text/width.ts";
import { draw } from "../../../../src/ui/panel/draw/draw.ts";
import { START, type State, type ToolList, type World } from "../../../../src/ui/panel/model/state.ts";
import { amount, repeats } from "../../../support/long.ts";
import { drawInPi, randomText, TUI_MODES, WIDER, WIDTH_SEED } from "../../../support/pi-tui.ts";
import { makeStatus } from "../../server-status.ts";
import { randomNumbers } from "../../workers/connection/results/support.ts";
import { makeDetails, makeTools, makeWorld, NOW, PLAIN, picture, press, USUAL } from "./support.ts";

describe("the list of servers", () => {
  test("60 columns", () => {
    expect(picture(START, USUAL)).toMatchInlineSnapshot(`
      "
      ────────────────────────────────────────────────────────────
       MCP servers  2 of 5 connected · 48 tools · ~1.2k tokens

           server    state           tools  tokens now
       → ! linear    needs sign-in       –           –
         ✗ browser   failed              –           –
         ? site      asks consent
         ! mcp.json:12 mcpServers.x.args: expected a list, found …
         ● github    connected        42+3        1.2k
         ● files     connected           2           0
         – old       disabled            0           –
         ✗ shady     refused       you refused it in this folder
        (1/14)

       From /mcp.json.

       ctrl+r connect  ctrl+d disable  ctrl+l log  ctrl+s sign in
       ↑↓ move  enter open  type to find  tab actions  esc close
      ────────────────────────────────────────────────────────────
      "
    `);
  });
  test("120 columns, another server chosen", () => {
    expect(picture(press("down down down", USUAL).state, USUAL, 120, 30)).toMatchInlineSnapshot(`
      "
      ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
       MCP servers  2 of 5 connected · 48 tools · 4 loaded, ~1.2k tokens

           server    state                   tools  tokens now  if all
         ! linear    needs sign-in http          –           –       –
         ✗ browser   failed        stdio         –           –       –
         ? site      asks consent
       → ! mcp.json:12 mcpServers.x.args: expected a list, found a string
         ● github    connected     http       42+3        1.2k   18.3k
         ● files     connected     stdio         2           0     960
         – old       disabled      stdio         0           –       –
         ✗ shady     refused       you refused it in this folder
         » Try a search
         » Statistics of calls
         » Add a server
         » Import from other programs
         » Decisions about servers of projects and skills
         » Edit the configuration

       ~/.pi/agent/mcp.json:12:5: mcpServers.x.args: expected a list, found a string. Write ["-y", "server"]. Enter edits
       your file.


       ↑↓ move  enter open  type to find  tab actions  esc close
      ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
      "
    `);
  });
  test("a filter", () => {
    expect(picture(press('"needs"', USUAL).state, USUAL)).toMatchInlineSnapshot(`
      "
      ────────────────────────────────────────────────────────────
       MCP servers  2 of 5 connected · 48 tools · ~1.2k tokens

       Find: needs▏
           server    state           tools  tokens now
       → ! linear    needs sign-in       –           –
         » Search the tools for "needs", as the model would

       From /mcp.json.

       ctrl+r connect  ctrl+d disable  ctrl+l log  ctrl+s sign in
       ↑↓ move  enter open  type to find  tab actions  esc clear
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
       /mcp add <name> <command or url> adds one.
       /mcp import takes over those of other programs.
       Your files:
       ~/.config/mcp/mcp.json
       ~/.pi/agent/mcp.json

       → » Add a server
         » Import from other programs
         » Decisions about servers of projects and skills
         » Edit the configuration


       ↑↓ move  enter open  type to find  tab actions  esc close
      ────────────────────────────────────────────────────────────
      "
    `);
  });
});

describe("one server", () => {
  test("60 columns", () => {
    expect(picture(press("@github enter", USUAL).state, USUAL)).toMatchInlineSnapshot(`
      "
      ────────────────────────────────────────────────────────────
       github  ● connected

       from      ~/.pi/agent/mcp.json
       process   http · lazy · MCP 2026-07-28
       tools     42 tools, 3 resources · 1.2k of 18.3k tokens loa…
       sign-in   signed in, expires in 42 min, renews itself

       → Tools       42 + 3 resources
         Log
         Reconnect
         Sign in again
         Sign out
         Switch off  for this session
         Disable     everywhere
        (1/10)

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

       from      /mcp.json
       process   stdio · lazy
       tools     not listed yet
       the command "npx" was not found. Check command, cwd and
       PATH in mcp.json.

       → Log
         Connect
         Switch off  for this session
         Disable     everywhere
         Disable in this project
         Doctor      what can be wrong
         Remove

       ↑↓ move  enter choose  esc back
      ────────────────────────────────────────────────────────────
      "
    `);
  });
  test("one that sessions share -> by how many, since when, its memory", () => {
    const sharing = { sessions: 3, since: NOW - 42 * 60_000 };
    const details = new Map([["files", makeDetails({ shared: true, memory: 60 * 1024 * 1024 })]]);
    const world = makeWorld({ servers: [makeStatus("files", { sharing, pid: 4711 })], details });
    const screen = picture(press("enter", world).state, world, 80, 30);
    expect(screen).toContain("\n process   stdio · up 5 min · pid 4711 · call 30 s\n");
    expect(screen).toContain("\n sharing   shared by 3 sessions, up 42 min · 60 MB\n");
    expect(screen).toMatch(/\n {3}Sharing +on\n/);
  });
  test.each([
    [80, 30],
    [120, 40],
  ])("one in a sandbox, %i x %i -> a lock, and what it keeps out", (width, height) => {
    const sandbox = { write: ["/home/ann/notes"], read: ["~/.kube"], hide: ["~/letters"], network: false };
    const details = new Map([["files", makeDetails({ sandbox, cwd: "/srv/files" })]]);
    const servers = [makeStatus("files", { isSandboxed: true }), makeStatus("git")];
    const world = makeWorld({ servers, details });
    const list = picture(START, world, width, height);
    expect(list).toMatch(/ files \u{1f512} {2}connected/u);
    expect(list).toMatch(/ git {5} {2}connected/);
    const screen = picture(press("@files enter", world).state, world, width, height);
    expect(screen).toContain(
      "\n sandbox   \u{1f512} hides keys, sign-ins, Pi's files, sockets, ~/letters; not ~/.kube\n           writes its own folder, its cwd, ~/notes; no network\n",
    );
    expect(screen).not.toMatch(/process.*sandbox/);
    for (const line of `${list}\n${screen}`.split("\n"))
      expect(visibleWidth(line)).toBeLessThanOrEqual(width);
  });
  test("a long name leaves the lock its place", () => {
    const world = makeWorld({ servers: [makeStatus("n".repeat(100), { isSandboxed: true })] });
    for (const width of [40, 60, 80]) {
      const list = picture(START, world, width, 24);
      expect(list).toMatch(/n… \u{1f512}/u);
      for (const line of list.split("\n")) expect(visibleWidth(line)).toBeLessThanOrEqual(width);
    }
  });
  test("the question before it is switched off", () => {
    expect(picture(press("@files enter end up up enter", USUAL).state, USUAL)).toMatchInlineSnapshot(`
      "
      ────────────────────────────────────────────────────────────
       Disable files?

       This project's file switches it off. It stays on in other
       folders. Its tools go at once.

       → No, go back
         Disable it

       ↑↓ move  enter choose  esc back
      ────────────────────────────────────────────────────────────
      "
    `);
  });
  test("what an action did, and one under way", () => {
    const { state } = press("@github enter", USUAL);
    const notice = { text: "github is disabled in /home/ann/.pi/agent/mcp.json.", level: "info" as const };
    expect(picture({ ...state, notice }, USUAL)).toContain(" github is disabled in ~/.pi/agent/mcp.json.\n");
    expect(picture({ ...state, busy: "Connecting github" }, USUAL)).toContain(" Connecting github…\n");
  });
});

describe("a server in full", () => {
  const place = { rule: 'toolExposure "write"', file: "/home/ann/.pi/agent/mcp.json", line: 12 };
  const rows = makeTools(["read", "write", "delete"]).rows.map((row, i) => ({
    ...row,
    exposure: (["direct", "search", "hidden"] as const)[i] ?? "search",
    ...(i === 1 ? { place } : {}),
    ...(i === 2 ? { name: undefined, description: "" } : {}),
  }));
  const world = makeWorld({
    ...USUAL,
    details: new Map([["files", makeDetails()]]),
    tools: new Map([["files", { rows, at: new Map(rows.map(({ key }, i) => [key, i])) }]]),
    tokensOf: (name) => (name === "files__read" ? 120 : 1_234),
    schema: { server: "files", tool: "write", text: '{\n  "type": "object"\n}' },
    log: {
      server: "files",
      lines: ["2026-01-02T03:04:05.678Z error [worker] files: it broke", "    at once"],
    },
    tried: {
      query: "read",
      hits: [
        { key: "files__read", server: "files", tool: "read", score: 1.5, description: "It reads. And ends." },
        {
          key: "github__read_issue",
          server: "github",
          tool: "read_issue",
          score: 0.4,
          description: "An issue.",
        },
      ],
      likely: 1,
      tookMs: 0.42,
      count: 45,
    },
  });
  const FILES = "@files enter";

  test("60 columns", () => {
    expect(picture(press(FILES, world).state, world)).toMatchInlineSnapshot(`
      "
      ────────────────────────────────────────────────────────────
       files  ● connected

       runs      npx -y server-filesystem .
       from      ~/.pi/agent/mcp.json:7
       process   stdio · up 5 min · pid 4711 · MCP 2025-11-25 · c…
       tools     1 direct · 1 deferred · 1 hidden · 0 of 960 toke…

       → Tools       3
         Log
         Reconnect
         Lifecycle   lazy
         Approval    never (settings)
         Tool names  server (settings)
         Switch off  for this session
        (1/11)

       ↑↓ move  enter choose  esc back
      ────────────────────────────────────────────────────────────
      "
    `);
  });
  test("120 columns", () => {
    expect(picture(press(FILES, world).state, world, 120, 30)).toMatchInlineSnapshot(`
      "
      ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
       files  ● connected

       runs      npx -y server-filesystem .
       from      ~/.pi/agent/mcp.json:7
       process   stdio · up 5 min · pid 4711 · MCP 2025-11-25 · call 30 s
       tools     1 direct · 1 deferred · 1 hidden · 0 of 960 tokens loaded

       → Tools       3
         Log
         Reconnect
         Lifecycle   lazy
         Approval    never (settings)
         Tool names  server (settings)
         Switch off  for this session
         Disable     everywhere
         Disable in this project
         Doctor      what can be wrong
         Remove

       ↑↓ move  enter choose  esc back
      ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
      "
    `);
  });
  test("80 columns x 24 rows -> every action is seen, in two columns", () => {
    const shown = picture(press(FILES, world).state, world, 80, 19);
    expect(shown).toMatchInlineSnapshot(`
      "
      ────────────────────────────────────────────────────────────────────────────────
       files  ● connected

       runs      npx -y server-filesystem .
       from      ~/.pi/agent/mcp.json:7
       process   stdio · up 5 min · pid 4711 · MCP 2025-11-25 · call 30 s
       tools     1 direct · 1 deferred · 1 hidden · 0 of 960 tokens loaded

       → Tools       3                           Switch off  for this session
         Log                                     Disable     everywhere
         Reconnect                               Disable in this project
         Lifecycle   lazy                        Doctor      what can be wrong
         Approval    never (settings)            Remove
         Tool names  server (settings)

       ↑↓ move  enter choose  esc back
      ────────────────────────────────────────────────────────────────────────────────
      "
    `);
    const error = { code: "spawn_failed" as const, message: "files: it broke. ".repeat(30) };
    const failed = makeWorld({
      ...world,
      servers: [makeStatus("files", { state: "failed", toolsKnown: true, error })],
      details: new Map([["files", makeDetails({ runs: "npx -y a-long-name ".repeat(20), shared: true })]]),
    });
    const broken = picture(press("enter", failed).state, failed, 80, 19);
    for (const label of ["Tools", "Log", "Connect", "Lifecycle", "Approval", "Tool names", "Sharing"])
      expect(broken).toContain(` ${label} `);
    expect(broken).toMatch(/Disable +everywhere[\s\S]*Disable in this project[\s\S]*Doctor[\s\S]*Remove/);
    expect(broken).not.toMatch(/\(\d+\/\d+\)/);
  });
  test("a file of a project that Pi does not trust is a row, with what to do", () => {
    const untrusted = makeWorld({ ...USUAL, unread: [".mcp.json"] });
    const { state } = press('".mcp"', untrusted);
    const shown = picture(state, untrusted, 80);
    expect(shown).toContain("✗ .mcp.json  not trusted");
    expect(shown).toMatch(
      /so its servers are not read\. \/trust decides\s+that, from the next start of Pi on\./,
    );
    expect(press("enter", untrusted, { from: state }).effects).toEqual([]);
  });
  test("a choice", () => {
    expect(picture(press(`${FILES} down down down enter`, world).state, world)).toMatchInlineSnapshot(`
      "
      ────────────────────────────────────────────────────────────
       Lifecycle of files

       When does it run?

       → lazy        started by the first call
         eager       started with the session
         keep-alive  always up

       ↑↓ move  enter choose  esc back
      ────────────────────────────────────────────────────────────
      "
    `);
  });
  test("its tools at 60 columns", () => {
    expect(picture(press(`${FILES} enter down down`, world).state, world)).toMatchInlineSnapshot(`
      "
      ────────────────────────────────────────────────────────────
       files tools  3 · 0 loaded, ~0 of ~960 tokens

       Filter: ▏
         » All 3 tools
         ● read                                   direct      120
       → ○ write                                  deferred   1.2k
         – delete                                 hidden        –

       It does write.
       By toolExposure "write" in ~/.pi/agent/mcp.json:12.

       tab make it direct (writes mcp.json)  ctrl+t try it
       ↑↓ move  enter open  type to filter  esc back
      ────────────────────────────────────────────────────────────
      "
    `);
  });
  test("its tools at 120 columns, filtered", () => {
    expect(picture(press(`${FILES} enter "e"`, world).state, world, 120, 30)).toMatchInlineSnapshot(`
      "
      ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
       files tools  3 of 3 · 0 loaded, ~0 of ~960 tokens

       Filter: e▏
       → » These 3 tools
         ● read                                     direct      120  It does read.
         ○ write                                    deferred   1.2k  It does write.
         – delete                                   hidden        –

       Enter and tab ask what becomes of all that are listed.

       tab change all that are listed
       ↑↓ move  enter open  type to filter  esc clear
      ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
      "
    `);
  });
  test("one tool", () => {
    expect(picture(press(`${FILES} enter down down enter`, world).state, world)).toMatchInlineSnapshot(`
      "
      ────────────────────────────────────────────────────────────
       write  files

       ○ deferred · ~1.2k tokens
       In Pi: files__write
       By toolExposure "write" in ~/.pi/agent/mcp.json:12.

       It does write. Then it ends.

       {
         "type": "object"
       }

       ↑↓ scroll  enter try it  esc back
      ────────────────────────────────────────────────────────────
      "
    `);
  });
  test("its log", () => {
    const shown = picture(press(`${FILES} down enter`, world).state, world);
    const at = new Date("2026-01-02T03:04:05.678Z").toTimeString().slice(0, 8);
    expect(shown).toContain(` files log  following\n\n ${at} error: files: it broke\n     at once\n`);
  });
  test("a tried search", () => {
    expect(picture(press('up up up up up enter "read"', world).state, world)).toMatchInlineSnapshot(`
      "
      ────────────────────────────────────────────────────────────
       Statistics of calls

       Looking…

       ↑↓ scroll  esc back
      ────────────────────────────────────────────────────────────
      "
    `);
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

const COLOURED = {
  fg: (_colour: string, text: string) => `\u001b[38;5;3m${text}\u001b[39m`,
  bold: (text: string) => `\u001b[1m${text}\u001b[22m`,
};

/** One of so many screens is drawn with a notice as well, whose lines are the same on all of them. */
const NOTICED = amount(5, 1);

/** Every screen of the panel, with these texts for whatever a server or a file says. */
function screensOf(names: readonly string[]): { world: World; states: State[] } {
  const hostileTools: ToolList = {
    rows: names.map((name) => ({
      key: name,
      name,
      description: name,
      exposure: "direct",
      place: { rule: name, file: name, line: 1 },
      text: name,
    })),
    at: new Map(names.map((name, i) => [name, i])),
  };

  const world = makeWorld({
    servers: names.map((name) =>
      makeStatus(name, {
        source: name,
        description: name,
        protocol: name.slice(0, 40),
        state: "failed",
        error: { code: "spawn_failed", message: name, remedy: name },
      }),
    ),
    questions: names.map((name, i) => ({ server: name, hash: String(i), question: name })),
    refused: names.map((name) => ({ name, reason: name })),
    problems: names.map((name) => ({
      severity: "error",
      file: name,
      key: name,
      message: name,
      remedy: name,
    })),
    files: [...names],
    details: new Map(
      names.map((name) => [
        name,
        makeDetails({ runs: name, file: name, overrides: [name], env: [name], cwd: name, timeouts: [] }),
      ]),
    ),
    tools: new Map(names.map((name) => [name, hostileTools])),
    schema: { server: names[0] ?? "", tool: names[0] ?? "", text: names.join("\n") },
    log: { server: names[3] ?? "", lines: names },
    tried: {
      query: "x",
      hits: names.map((name) => ({ key: name, server: name, tool: name, score: 1e9, description: name })),
      likely: 3,
      tookMs: 1e9,
      count: 1e9,
    },
  });
  const count = 4 * names.length + 5;
  const states = [
    ...Array.from({ length: count / 5 }, (_, i) => press("down ".repeat(5 * i), world).state),
    ...names.map((_, i) => press(`${"down ".repeat(i)} enter`, world).state),
    ...names.map((_, i) => press(`${"down ".repeat(i)} enter end up up enter`, world).state),
    ...names.map((_, i) => press(`enter enter ${"down ".repeat(i + 1)}`, world).state),
    press("@github enter enter", world).state,
    press("@github enter enter down enter", world).state,
    press("down down down enter down enter", world).state,
    press("@github enter down down down enter", world).state,
    press(`enter enter "${"x".repeat(300)}"`, world).state,
    ...names.map((_, i) => press(`tab enter "x" ${"down ".repeat(i)}`, world).state),
  ];
  return { world, states };
}

describe("hostile names", () => {
  const { world, states } = screensOf(HOSTILE);

  test.each([20, 21, 33, 59, 60, 79, 80, 120, 200])("%i columns -> every line fits", (width) => {
    const faults: string[] = [];
    for (const [at, state] of states.entries()) {
      const notice = { text: HOSTILE.join(" "), level: "error" as const };
      const both = { ...state, notice, busy: HOSTILE.join("") };
      for (const shown of at % NOTICED === 0 ? [state, both] : [state]) {
        const lines = draw(shown, world, { width, height: 19, theme: PLAIN });
        if (lines.length > 19) faults.push(`${lines.length} lines`);
        for (const line of lines) {
          if (visibleWidth(line) > width) faults.push(line);
          // biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern finds control characters.
          if (/[\u0000-\u001f\u007f-\u009f\u2028\u202e\u2066]/.test(line)) faults.push(line);
        }
      }
    }
    // One look at all lines: a look at each of the 30,000 took longer than the drawing.
    expect(faults).toEqual([]);
  });

  test.each(TUI_MODES)(
    "odd and random texts, tuiMode %s -> Pi itself draws every line of every screen",
    async (mode) => {
      const random = randomNumbers(WIDTH_SEED);
      const text = randomText(random);
      const pictures = function* (columns: number): Iterable<string[]> {
        for (let round = 0; round < repeats("WIDTH_SCREENS", 1); round++) {
          const odd = Array.from({ length: 8 }, (_, i) =>
            i % 2 === 0 ? text(1 + Math.floor(random() * 60)) : text(1 + Math.floor(random() * 4)).repeat(40),
          );
          const texts = round === 0 ? WIDER : odd;
          const { world: foreign, states: shown } = screensOf(texts);
          const notice = { text: texts.join(" "), level: "error" as const };
          for (const state of [...shown, ...shown.map((one) => ({ ...one, notice, busy: texts.join("") }))])
            yield draw(state, foreign, { width: columns, height: 40, theme: COLOURED });
        }
      };
      for (const columns of [60, 120])
        await expect(
          drawInPi(mode, pictures(columns), { columns }),
          `WIDTH_SEED=${WIDTH_SEED}`,
        ).resolves.toBe(undefined);
    },
  );
});
