/** Owns: what each key does in each view of the panel, and what becomes of a view whose server is gone. */
import { describe, expect, test } from "vitest";
import { sizeOf } from "../../../../src/ui/panel/draw/draw.ts";
import { type FoundTool, foundIn } from "../../../../src/ui/panel/model/find.ts";
import { onWorld, seen } from "../../../../src/ui/panel/model/model.ts";
import { type ServersRow, serversRows } from "../../../../src/ui/panel/model/servers.ts";
import { chosenKey, START, type State, shown, type World } from "../../../../src/ui/panel/model/state.ts";
import { filteredTools } from "../../../../src/ui/panel/model/tools.ts";
import { chosenAt, keyOf } from "../../../../src/ui/screen/list.ts";
import { makeStatus } from "../../server-status.ts";
import { makeDetails, makeTools, makeWorld, NOW, PLAIN, picture, press, USUAL } from "./support.ts";

const chosenRow = (state: State, world: World): string | undefined => {
  const view = shown(state);
  if (view.name !== "servers") return view.name;
  const rows: ServersRow[] = serversRows(world, view.list.filter);
  return rows[chosenAt(view.list, rows)]?.key;
};

describe("the list of servers", () => {
  test.each([
    // What needs attention comes first: a sign-in, a failure, a question, a mistake.
    ["", "server linear"],
    ["down", "server browser"],
    ["down down", "waiting site"],
    ["down down down down", "server github"],
    ["up", "edit"],
    ["up up up up up up", "search"],
    ["up down", "server linear"],
    ["pageDown", "server files"],
    ["pageDown pageUp", "server linear"],
    ["end", "edit"],
    ["end home", "server linear"],
    ["tab", "search"],
    ["tab tab", "server linear"],
    ['"li"', "server linear"],
    ['"li" backspace backspace', "server linear"],
    ['"FAILED"', "server browser"],
    // Nobody means the state with one letter.
    ['"e"', "server linear"],
    ['"disa"', "server old"],
    ['"needs" escape', "server linear"],
    ['"add"', "add"],
    ['"cursor"', "import"],
    ['"import"', "import"],
    ['"nothing-like-this"', "search-for"],
    // A space is a part of the text.
    ['"pull" space "req"', "server github"],
  ])("%s -> %s", (keys, key) => {
    const { state, effects } = press(keys, USUAL);
    expect(chosenRow(state, USUAL)).toBe(key);
    expect(effects).toEqual([]);
  });

  test("Escape closes; with a filter it first clears the filter", () => {
    expect(press("escape", USUAL).effects).toEqual([{ type: "close" }]);
    expect(press('"x" escape', USUAL).effects).toEqual([]);
    expect(press('"x" escape escape', USUAL).effects).toEqual([{ type: "close" }]);
  });

  test.each([
    ['"site" enter', { type: "trust" }],
    ['"shady" enter', { type: "trust" }],
    ['"expected" enter', { type: "edit", project: false }],
    ["end enter", { type: "edit", project: false }],
    ["end up up enter", { type: "set-up", word: "import" }],
    ["end up up up enter", { type: "set-up", word: "add" }],
    ["@github enter end enter", { type: "remove", server: "github" }],
  ])("%s -> asks for %j", (keys, effect) => {
    expect(press(keys, USUAL).effects).toEqual([effect]);
  });

  test("the chosen server stays chosen when another one appears above it or goes", () => {
    const { state } = press("down", USUAL);
    const more = makeWorld({ ...USUAL, servers: [makeStatus("aaa", { state: "failed" }), ...USUAL.servers] });
    expect(chosenRow(state, more)).toBe("server browser");
    const fewer = makeWorld({ ...USUAL, servers: USUAL.servers.slice(1) });
    expect(chosenRow(state, fewer)).toBe("server browser");
    const without = makeWorld({ ...USUAL, servers: USUAL.servers.filter(({ name }) => name !== "browser") });
    expect(chosenRow(state, without)).toBe("waiting site");
  });
});

describe("one server", () => {
  const enabling = (enabled: boolean, project: boolean, server = "files") => ({
    type: "enable",
    server,
    enabled,
    project,
  });
  // The menu: tools, log, reconnect, sign-in of a remote server, disable, disable in this project.
  test.each([
    ["@files enter down down enter", [{ type: "reconnect", server: "files" }]],
    // The first answer of a question changes nothing.
    ["@files enter end up up up enter enter", []],
    ["@files enter end up up up enter down enter", [enabling(false, false)]],
    ["@files enter end up up enter down enter", [enabling(false, true)]],
    ["@files enter end up up enter escape", []],
    ['"old" enter enter', [enabling(true, false, "old")]],
    ['"old" enter down enter', [enabling(true, true, "old")]],
    ['"old" enter down down enter', [{ type: "switch", server: "old", on: true }]],
    ["@files enter end up up up up enter", [{ type: "switch", server: "files", on: false }]],
    ['"linear" enter down down enter', [{ type: "sign-in", server: "linear" }]],
    ["@github enter down down down enter", [{ type: "sign-in", server: "github" }]],
    ["@github enter down down down down enter down enter", [{ type: "sign-out", server: "github" }]],
    ["@github enter escape escape", [{ type: "close" }]],
  ])("%s -> %j", (keys, effects) => {
    expect(press(keys, USUAL).effects).toEqual(effects);
  });

  test("other sessions use its process -> a reconnect asks first, and says how many", () => {
    const keys = "enter down down enter";
    const world = makeWorld({ servers: [makeStatus("s", { sharing: { sessions: 3, since: 0 } })] });
    const { state, effects } = press(keys, world);
    expect(effects).toEqual([]);
    expect(shown(state)).toMatchObject({
      name: "choice",
      text: expect.stringMatching(/^2 other sessions use s, /),
    });
    expect(press("enter", world, { from: state }).effects).toEqual([]);
    expect(press("down enter", world, { from: state }).effects).toEqual([{ type: "reconnect", server: "s" }]);
    const alone = makeWorld({ servers: [makeStatus("s", { sharing: { sessions: 1, since: 0 } })] });
    expect(press(keys, alone).effects).toEqual([{ type: "reconnect", server: "s" }]);
  });

  test.each([
    ["@files reconnect", [{ type: "reconnect", server: "files" }]],
    ["@linear signIn", [{ type: "sign-in", server: "linear" }]],
    ["@files signIn", []],
    // Switching off asks first; switching on undoes it.
    ["@files switch", []],
    ["@files switch enter", []],
    ["@files switch down enter", [enabling(false, false)]],
    ["@old switch", [enabling(true, false, "old")]],
    ["@files enter reconnect", [{ type: "reconnect", server: "files" }]],
    ["tab reconnect", []],
  ])("keys on the row: %s -> %j", (keys, effects) => {
    expect(press(keys, USUAL).effects).toEqual(effects);
  });

  test("the log of the row; what was switched off -> the choice stands on what switches it on", () => {
    expect(shown(press("@files log", USUAL).state)).toMatchObject({ name: "log", server: "files" });
    const { state } = press("@files enter end up up up enter down enter", USUAL);
    const off = makeWorld({ servers: [makeStatus("files", { state: "disabled" })] });
    expect(press("enter", off, { from: state }).effects).toEqual([enabling(true, false)]);
  });

  test("left and right -> the other column of a menu in two columns, the same line where it has one", () => {
    const { state } = press("@files enter down", USUAL);
    const key = (keys: string, column: number | undefined) =>
      shown(press(keys, USUAL, { from: state, column }).state);
    // Tools, log, reconnect, switch off; disable, disable in this project, doctor, remove.
    for (const [keys, column, to] of [
      ["right", 4, "disable-project"],
      ["right right", 4, "disable-project"],
      ["right left", 4, "log"],
      ["down down right", 4, "remove"],
      ["right", undefined, "log"],
    ] as const)
      expect([keys, key(keys, column)]).toMatchObject([keys, { list: { key: to } }]);
  });

  test("page down in a menu in two columns, which is seen as a whole -> its last row", () => {
    const { state } = press("@files enter", USUAL);
    const at = (height: number) => {
      const size = sizeOf(state, USUAL, { width: 120, height, theme: PLAIN });
      const view = shown(press("pageDown", USUAL, { from: state, ...size }).state);
      return { column: size.column, view };
    };
    const last = { list: { key: "remove" } };
    expect(at(16)).toMatchObject({ column: 4, view: last });
    expect(at(40)).toMatchObject({ column: undefined, view: last });
  });

  test("an answer goes back to the server", () => {
    expect(shown(press("@files enter end up up enter down enter", USUAL).state).name).toBe("server");
  });

  test("its server is removed while a question about it is open -> back to the list, with a word", () => {
    const { state } = press("@files enter end up up enter", USUAL);
    expect(shown(state).name).toBe("choice");
    const without = makeWorld({ ...USUAL, servers: USUAL.servers.filter(({ name }) => name !== "files") });
    const after = onWorld(state, without);
    expect(shown(after).name).toBe("servers");
    expect(after.notice).toEqual({ text: "files is no longer configured.", level: "info" });
    expect(onWorld(START, without)).toBe(START);
    expect(onWorld(state, USUAL)).toBe(state);
  });
});

const TOOLS = makeTools(["read", "write", "delete"]);
const WITH_TOOLS: World = makeWorld({
  ...USUAL,
  details: new Map([["files", makeDetails()]]),
  tools: new Map([["files", TOOLS]]),
});

describe("settings of a server", () => {
  const rows = "@files enter down down down";
  test.each([
    [`${rows} enter down enter`, { key: "lifecycle", value: "eager" }],
    // The value that holds now is chosen first.
    [`${rows} down enter enter`, { key: "approve", value: undefined }],
    [`${rows} down enter home enter`, { key: "approve", value: "never" }],
    [`${rows} down down enter enter`, { key: "toolPrefix", value: undefined }],
    [`${rows} down down enter home down enter`, { key: "toolPrefix", value: "short" }],
  ])("%s -> %j", (keys, change) => {
    expect(press(keys, WITH_TOOLS).effects).toEqual([{ type: "set", server: "files", change }]);
  });

  test.each([
    ["down enter", true, false],
    ["up enter", false, true],
    ["enter", false, false],
  ])("sharing, %s on the choice while it is %j -> shared: %j", (answer, shared, value) => {
    const world = makeWorld({ ...WITH_TOOLS, details: new Map([["files", makeDetails({ shared })]]) });
    const { effects } = press(`${rows} down down down enter ${answer}`, world);
    expect(effects).toEqual([{ type: "set", server: "files", change: { key: "shared", value } }]);
  });

  test("a server that cannot be shared -> no such line", () => {
    const { effects } = press(`${rows} down down down enter`, WITH_TOOLS);
    expect(effects).toEqual([{ type: "switch", server: "files", on: false }]);
  });
});

describe("tools of a server", () => {
  const expose = (tools: string[] | undefined, to: string) => ({
    type: "expose",
    server: "files",
    tools,
    to,
  });
  const open = "@files enter enter";
  test.each([
    // The first row stands for all of them: Tab asks, as Enter does.
    [`${open} tab down enter`, [expose(undefined, "direct")]],
    [`${open} down tab`, [expose(["read"], "direct")]],
    // A space is a part of the text, and writes nothing.
    [`${open} down space`, []],
    [`${open} "re" down space`, []],
    [`${open} enter down enter`, [expose(undefined, "direct")]],
    [`${open} "e" enter enter`, [expose(["read", "write", "delete"], "search")]],
    [`${open} "RE" enter end enter`, [expose(["read"], "hidden")]],
    [`${open} "re" down tab`, [expose(["read"], "direct")]],
    [`${open} "nothing" down tab enter`, []],
    [`${open} "x" escape escape escape escape`, [{ type: "close" }]],
    // A filter from which a tool was opened has done its work.
    [`${open} "re" down enter escape escape escape escape`, [{ type: "close" }]],
  ])("%s -> %j", (keys, effects) => {
    expect(press(keys, WITH_TOOLS).effects).toEqual(effects);
  });

  test("a filter -> names that begin so, names that hold it, then descriptions; words in any order", () => {
    const list = makeTools(["write_text", "list_files", "filesystem", "read_file"], { description: "" });
    const about = list.rows.map((row) => ({
      ...row,
      text: `${row.key}\n${row.key === "write_text" ? "to a file on the disk" : ""}`,
    }));
    const found = (filter: string) => filteredTools({ ...list, rows: about }, filter).rows.slice(1);
    expect(found("file").map(({ key }) => key)).toEqual([
      "filesystem",
      "list_files",
      "read_file",
      "write_text",
    ]);
    expect(found("disk file").map(({ key }) => key)).toEqual(["write_text"]);
    expect(found("FILE read").map(({ key }) => key)).toEqual(["read_file"]);
  });

  test("coming back from a tool -> the filter and the choice stay, and Escape leaves; a new letter filters anew", () => {
    const { state } = press(`${open} "re" down enter escape`, WITH_TOOLS);
    expect(shown(state)).toMatchObject({ name: "tools", list: { filter: "re", key: "read" } });
    expect(picture(state, WITH_TOOLS)).toContain("esc back");
    expect(shown(press("escape", WITH_TOOLS, { from: state }).state).name).toBe("server");
    const typing = press('"a" escape', WITH_TOOLS, { from: state }).state;
    expect(shown(typing)).toMatchObject({ name: "tools", list: { filter: "" } });
  });

  test("a tool for the server's own pages -> no key acts on it, and the panel says why", () => {
    const own = makeTools(["read"], { exposure: "hidden", name: undefined, serversWord: "pages" });
    const world = makeWorld({ ...WITH_TOOLS, tools: new Map([["files", own]]) });
    expect(press(`${open} down tab`, world).effects).toEqual([]);
    expect(press(`${open} down ctrl+t`, world).effects).toEqual([]);
    const { state } = press(`${open} down`, world);
    const shownText = picture(state, world, 80);
    expect(shownText).toContain("Only for the server's own pages (MCP Apps): no model may have it.");
    expect(shownText).not.toContain("tab make it");
  });

  test("a tool that is declared because its server wishes so -> the panel says so, and Tab changes it", () => {
    const wished = makeTools(["read"], { exposure: "direct", serversWord: "wish" });
    const world = makeWorld({ ...WITH_TOOLS, tools: new Map([["files", wished]]) });
    expect(press(`${open} down tab`, world).effects).toEqual([expose(["read"], "hidden")]);
    const { state } = press(`${open} down`, world);
    expect(picture(state, world, 80)).toContain("its server wishes it always declared");
  });

  test("what was just chosen counts for the next Tab, also before it is written", () => {
    const chosen = new Map([[chosenKey("files", "read"), "hidden" as const]]);
    const world = makeWorld({ ...WITH_TOOLS, chosen });
    expect(press(`${open} down tab`, world).effects).toEqual([expose(["read"], "search")]);
  });

  test("Enter shows a tool, whose text scrolls within its lines", () => {
    const { state } = press(`${open} end enter`, WITH_TOOLS);
    expect(shown(state)).toEqual({ name: "tool", server: "files", tool: "delete", top: 0 });
    const top = (keys: string) => {
      const view = shown(press(keys, WITH_TOOLS, { from: state, lines: 20, page: 5 }).state);
      return "top" in view ? view.top : undefined;
    };
    expect(["down", "down up up", "pageDown", "end", "end down", "end home"].map(top)).toEqual([
      1, 0, 4, 15, 15, 0,
    ]);
  });

  test("the list is replaced while a tool far down is chosen -> it stays chosen, or its place", () => {
    const many = makeTools(Array.from({ length: 5_000 }, (_, i) => `tool${i}`));
    const world = (list: typeof many) => makeWorld({ ...WITH_TOOLS, tools: new Map([["files", list]]) });
    const { state } = press(`${open} end`, world(many));
    const chosen = (list: typeof many): string | undefined => {
      const view = shown(state);
      if (view.name !== "tools") return undefined;
      const { rows, find } = filteredTools(list, view.list.filter);
      return rows[chosenAt(view.list, rows, find)]?.key;
    };
    expect(chosen(many)).toBe("tool4999");
    expect(chosen(makeTools(["tool4999", "other"]))).toBe("tool4999");
    expect(chosen(makeTools(["a", "b"]))).toBe("b");
    expect(chosen(makeTools([]))).toBeUndefined();
  });
});

describe("thousands of tools", () => {
  /** A list that counts how often a tool is looked at. */
  function watched(count: number) {
    let looks = 0;
    const list = makeTools(Array.from({ length: count }, (_, i) => `tool${i}`));
    const rows = list.rows.map((row) => ({
      ...row,
      get key() {
        looks++;
        return row.key;
      },
    }));
    return { list: { rows, at: list.at }, looks: () => looks };
  }

  test("a key that moves, and the picture after it, look at the rows of one screen only", () => {
    const at = watched(5_000);
    const world = makeWorld({ ...WITH_TOOLS, tools: new Map([["files", at.list]]) });
    const opened = press("@files enter enter down", world).state;
    picture(opened, world);
    for (const key of ["down", "pageDown", "end", "up", "home", "tab"]) {
      const before = at.looks();
      const { state } = press(key, world, { from: opened });
      picture(state, world);
      expect(at.looks() - before).toBeGreaterThan(0);
      expect(at.looks() - before).toBeLessThan(40);
    }
  });

  test("a longer filter looks only at what the shorter one let through", () => {
    let compared = 0;
    const list = makeTools(Array.from({ length: 5_000 }, (_, i) => `tool${i}`));
    const rows = list.rows.map(({ text, ...row }) => ({
      ...row,
      get text() {
        compared++;
        return text;
      },
    }));
    const counted = { rows, at: list.at };
    expect(filteredTools(counted, "tool49").rows).toHaveLength(112);
    expect(compared).toBe(5_000);
    expect(filteredTools(counted, "tool499").rows).toHaveLength(12);
    expect(compared).toBe(5_111);
    filteredTools(counted, "tool499");
    expect(compared).toBe(5_111);
  });
});

describe("the box of the first view", () => {
  const found = (server: string, tool: string, description = ""): FoundTool => ({
    name: `${server}__${tool}`,
    server,
    tool,
    description,
    names: `${server} ${tool}`,
    text: `${server} ${tool} ${server}__${tool} ${description}`.toLowerCase(),
  });
  const index = [
    found("github", "list_issues", "Shows what is open."),
    found("linear", "issue_list"),
    found("files", "read", "Reads a file, for example an issue."),
  ];
  const world = makeWorld({ ...USUAL, index });
  const keys = (filter: string) => serversRows(world, filter).map(({ key }) => key);

  test("tools of all servers: the names that begin so, names, descriptions; then the model's own search", () => {
    expect(keys("issue")).toEqual([
      "server github",
      "tool linear__issue_list",
      "tool github__list_issues",
      "tool files__read",
      "search-for",
    ]);
    expect(keys("list git")).toEqual(["tool github__list_issues", "search-for"]);
    expect(keys("LOG git")).toEqual(["log github", "search-for"]);
    expect(keys("disable fi")).toEqual(["disable files", "disable-project files", "search-for"]);
  });

  test("Enter opens the tool, and its key tries it", () => {
    const view = shown(press('"issue_l" enter', world).state);
    expect(view).toEqual({ name: "tool", server: "linear", tool: "issue_list", top: 0 });
    const tries = [{ type: "try", server: "linear", tool: "issue_list" }];
    expect(press('"issue_l" try', world).effects).toEqual(tries);
    expect(press('"issue_l" enter enter', world).effects).toEqual(tries);
    expect(shown(press('"zzz" enter', world).state)).toMatchObject({
      name: "search",
      list: { filter: "zzz" },
    });
  });

  test("the chosen server stays chosen once it was seen, although another one fails", () => {
    const calm = makeWorld({ servers: [makeStatus("a"), makeStatus("b")] });
    const state = seen(START, calm);
    const worse = makeWorld({ servers: [makeStatus("a"), makeStatus("b", { state: "failed" })] });
    expect(chosenRow(state, worse)).toBe("server a");
    expect(chosenRow(START, worse)).toBe("server b");
  });

  test.each([
    ["enable", "disabled", "enabled", "enable"],
    ["switch off", "connected", "off", "off"],
    ["switch on", "off", "connected", "on"],
  ] as const)(
    "%s, Enter, Enter -> one server: the row that was chosen is gone, and none has taken its place",
    (filter, from, to, row) => {
      const status = (name: string, state: "disabled" | "enabled" | "connected" | "off") =>
        state === "off"
          ? makeStatus(name, { isOff: true })
          : makeStatus(name, { state: state === "enabled" ? "connected" : state });
      const before = makeWorld({ servers: [status("alpha", from), status("beta", from)] });
      const after = makeWorld({ servers: [status("alpha", to), status("beta", from)] });
      const typing = filter
        .split(" ")
        .map((word) => `"${word}"`)
        .join(" space ");
      const first = press(`${typing} enter`, before);
      expect(first.effects).toMatchObject([{ server: "alpha" }]);
      const second = press("enter enter", after, { from: seen(first.state, after) });
      expect(second.effects).toEqual([]);
      expect(second.state.notice?.text).toMatch(/is gone/);
      // A move chooses again.
      const moved = press("down up enter", after, { from: second.state });
      expect(moved.effects).toMatchObject([{ server: "beta" }]);
      expect(chosenRow(moved.state, after)).toBe(`${row} beta`);
    },
  );

  test("a key of a row that is gone -> nothing", () => {
    const off = (name: string) => makeStatus(name, { state: "disabled" });
    const first = press('"disabled" switch', makeWorld({ servers: [off("alpha"), off("beta")] }));
    expect(first.effects).toMatchObject([{ type: "enable", server: "alpha" }]);
    const after = makeWorld({ servers: [makeStatus("alpha"), off("beta")] });
    expect(press("switch", after, { from: first.state }).effects).toEqual([]);
  });

  test("30 servers and 1,000 tools: a longer text looks only at what the shorter one let through", () => {
    let compared = 0;
    const many = Array.from({ length: 1_000 }, (_, i) => {
      const { text, ...rest } = found(`server${i % 30}`, `tool${i}`);
      return {
        ...rest,
        get text() {
          compared++;
          return text;
        },
      };
    });
    expect(foundIn(many, "tool9").count).toBe(111);
    expect(foundIn(many, "tool99").count).toBe(11);
    foundIn(many, "tool99");
    expect(compared).toBe(1_111);
  });
});

describe("the other views", () => {
  test("a log is followed at its end, and stands still above it", () => {
    const { state } = press("@files enter down enter", USUAL);
    const top = (keys: string) => {
      const view = shown(press(keys, USUAL, { from: state, lines: 20, page: 5 }).state);
      return view.name === "log" ? view.top : view.name;
    };
    expect(["", "up", "up down", "home", "home end", "escape"].map(top)).toEqual([
      undefined,
      14,
      undefined,
      0,
      undefined,
      "server",
    ]);
  });

  test("a search is typed with spaces; Enter shows the tool among those of its server", () => {
    const hit = (key: string) => ({ key, server: "files", tool: key.slice(7), score: 1, description: "" });
    const tried = {
      query: "r",
      hits: [hit("files__read"), hit("files__write")],
      likely: 1,
      tookMs: 1,
      count: 3,
    };
    const world = makeWorld({ ...WITH_TOOLS, tried });
    const { state } = press('tab enter "read" space "file"', world);
    expect(shown(state)).toMatchObject({ name: "search", list: { filter: "read file" } });
    expect(shown(press("down enter", world, { from: state }).state)).toMatchObject({
      name: "tools",
      server: "files",
      list: { key: "write" },
    });
    expect(shown(press("escape", world, { from: state }).state)).toMatchObject({ list: { filter: "" } });
    expect(press("escape escape escape", world, { from: state }).effects).toEqual([{ type: "close" }]);
  });
});

test("a decision is taken back only after a yes; those of this folder come first", () => {
  const row = (server: string, here: boolean) =>
    ({
      key: server,
      id: server,
      server,
      file: "/p/.mcp.json",
      decision: "allowed",
      decidedAt: NOW,
      here,
    }) as const;
  const world = makeWorld({ ...USUAL, decisions: [row("there", false), row("site", true)] });
  const { state } = press('"decis" enter', world);
  expect(picture(state, world)).toMatch(/→ ● site +allowed +2027-01-15 {2}here, [\s\S]*● there/);
  expect(press("enter enter", world, { from: state }).effects).toEqual([]);
  const effect = { type: "take-back", id: "site", server: "site" };
  expect(press("enter down enter", world, { from: state }).effects).toEqual([effect]);
  expect(press("down enter down enter", world, { from: state }).effects).toEqual([
    { type: "take-back", id: "there", server: "there" },
  ]);
});

test("a skill that is always loaded stands among the decisions, and is taken back after a yes", () => {
  const about = { server: "site", skill: "pdf", file: "skill://pdf/SKILL.md" };
  const skill = { key: "k", id: "k", ...about, decision: "allowed", decidedAt: NOW, here: true } as const;
  const world = makeWorld({ ...USUAL, decisions: [skill] });
  const { state } = press('"decis" enter "pdf"', world);
  expect(picture(state, world)).toMatch(
    /→ ● site +allowed +2027-01-15 {2}skill pd[\s\S]*Always loaded, in each folder/,
  );
  const { state: asked } = press("enter", world, { from: state });
  expect(picture(asked, world)).toContain("Take back that the skill pdf of site is always loaded?");
  expect(press("down enter", world, { from: asked }).effects).toEqual([
    { type: "take-back", id: "k", server: "site" },
  ]);
});

test("statistics: Enter switches them on while they are off", () => {
  const report = { of: "stats ", text: () => "Calls are not counted.", off: true };
  const off = makeWorld({ ...USUAL, report });
  expect(press('"stati" enter enter', off).effects).toEqual([{ type: "capture" }]);
  expect(
    press('"stati" enter enter', makeWorld({ ...USUAL, report: { ...report, off: false } })).effects,
  ).toEqual([]);
});

describe("keys", () => {
  const DEFAULTS: Record<string, string> = {
    "\u001b[A": "tui.select.up",
    "\r": "tui.select.confirm",
    "\u001b": "tui.select.cancel",
    "\u0003": "tui.select.cancel",
    "\u007f": "tui.editor.deleteCharBackward",
  };
  test.each([
    ["\u001b[A", "up"],
    ["\r", "enter"],
    ["\u001b", "escape"],
    ["\u0003", "escape"],
    ["\u007f", "backspace"],
    [" ", "space"],
    ["\t", "tab"],
    ["\u001b[9u", "tab"],
    // With Ctrl, as terminals have always sent it, as kitty does (with Num Lock too) and as xterm does.
    ["\u0012", "reconnect"],
    ["\u001b[114;5u", "reconnect"],
    ["\u001b[100;133u", "switch"],
    ["\u001b[27;5;108~", "log"],
    ["\u0013", "signIn"],
    ["\u0014", "try"],
    ["\u001b[114;7u", undefined],
    ["\u001b[27;6;114~", undefined],
    ["a", { text: "a" }],
    ["日", { text: "日" }],
    ["\u001b[97u", { text: "a" }],
    ["\u001b[97:65;2u", { text: "A" }],
    ["\u001b[97;5u", undefined],
    ["\u001b[1114112u", undefined],
    ["\u001b[5~", undefined],
    ["\u0001", undefined],
    ["\u001b[200~two\nlines\u001b[201~", { text: "two" }],
    ["\u001b[200~\u001b[31mred\u001b[201~", { text: "red" }],
    ["x".repeat(1_000), { text: "x".repeat(200) }],
  ])("%j -> %j", (data, key) => {
    expect(keyOf(data, (typed, binding) => DEFAULTS[typed] === binding)).toEqual(key);
  });
});
