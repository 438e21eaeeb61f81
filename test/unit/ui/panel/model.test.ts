/** Owns: what each key does in each view of the panel, and what becomes of a view whose server is gone. */
import { describe, expect, test } from "vitest";
import {
  chosenAt,
  keyOf,
  onWorld,
  type ServersRow,
  START,
  type State,
  serversRows,
  shown,
  type World,
} from "../../../../src/ui/panel/model/model.ts";
import { makeStatus } from "../../server-status.ts";
import { makeWorld, press, USUAL } from "./support.ts";

const chosenKey = (state: State, world: World): string | undefined => {
  const view = shown(state);
  if (view.name !== "servers") return view.name;
  const rows: ServersRow[] = serversRows(world, view.list.filter);
  return rows[chosenAt(view.list, rows)]?.key;
};

describe("the list of servers", () => {
  test.each([
    ["", "server github"],
    ["down", "server files"],
    ["down down up", "server files"],
    ["up", "edit"],
    ["up down", "server github"],
    ["pageDown", "server site".replace("server", "waiting")],
    ["pageDown pageUp", "server github"],
    ["end", "edit"],
    ["end home", "server github"],
    ['"li"', "server linear"],
    ['"li" backspace backspace', "server github"],
    ['"FAILED"', "server browser"],
    ['"needs" escape', "server github"],
    ['"nothing-like-this"', undefined],
    ['"nothing-like-this" down enter', undefined],
  ])("%s -> %s", (keys, key) => {
    const { state, effects } = press(keys, USUAL);
    expect(chosenKey(state, USUAL)).toBe(key);
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
  ])("%s -> asks for %j", (keys, effect) => {
    expect(press(keys, USUAL).effects).toEqual([effect]);
  });

  test("the chosen server stays chosen when another one appears above it or goes", () => {
    const { state } = press("down down", USUAL);
    const more = makeWorld({ ...USUAL, servers: [makeStatus("aaa"), ...USUAL.servers] });
    expect(chosenKey(state, more)).toBe("server linear");
    const fewer = makeWorld({ ...USUAL, servers: USUAL.servers.slice(1) });
    expect(chosenKey(state, fewer)).toBe("server linear");
    const without = makeWorld({ ...USUAL, servers: USUAL.servers.filter(({ name }) => name !== "linear") });
    expect(chosenKey(state, without)).toBe("server browser");
  });
});

describe("one server", () => {
  const enabling = (enabled: boolean, project: boolean, server = "files") => ({
    type: "enable",
    server,
    enabled,
    project,
  });
  test.each([
    ["down enter enter", [{ type: "reconnect", server: "files" }]],
    // The first answer of a question changes nothing.
    ["down enter down enter enter", []],
    ["down enter down enter down enter", [enabling(false, false)]],
    ["down enter down down enter down enter", [enabling(false, true)]],
    ["down enter down enter escape", []],
    ['"old" enter enter', [enabling(true, false, "old")]],
    ['"old" enter down enter', [enabling(true, true, "old")]],
    ['"linear" enter down enter', [{ type: "sign-in", server: "linear" }]],
    ["enter down enter", [{ type: "sign-in", server: "github" }]],
    ["enter down down enter down enter", [{ type: "sign-out", server: "github" }]],
    ["enter escape escape", [{ type: "close" }]],
  ])("%s -> %j", (keys, effects) => {
    expect(press(keys, USUAL).effects).toEqual(effects);
  });

  test("an answer goes back to the server", () => {
    expect(shown(press("down enter down enter down enter", USUAL).state).name).toBe("server");
  });

  test("its server is removed while a question about it is open -> back to the list, with a word", () => {
    const { state } = press("down enter down enter", USUAL);
    expect(shown(state).name).toBe("choice");
    const without = makeWorld({ ...USUAL, servers: USUAL.servers.filter(({ name }) => name !== "files") });
    const after = onWorld(state, without);
    expect(shown(after).name).toBe("servers");
    expect(after.notice).toEqual({ text: "files is no longer configured.", level: "info" });
    expect(onWorld(START, without)).toBe(START);
    expect(onWorld(state, USUAL)).toBe(state);
  });
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
