/**
 * A list that a person moves through while its rows change: the chosen row is remembered by its key, and by its position
 * if it is gone. Pure.
 */
import { cut, plainLines } from "../../shared/text/unprintable.ts";

export type Key =
  | "up"
  | "down"
  | "pageUp"
  | "pageDown"
  | "left"
  | "right"
  | "home"
  | "end"
  | "enter"
  | "escape"
  | "backspace"
  | "space"
  | "tab"
  /** With Ctrl, since a letter alone is typed. */
  | (typeof CONTROLS)[keyof typeof CONTROLS]
  | { text: string };

/** The letter that is pressed with Ctrl. */
const CONTROLS = { r: "reconnect", d: "switch", l: "log", s: "signIn", t: "try" } as const;

/** The binding of Pi for each key, in the order in which they are tried. */
const BINDINGS = [
  ["up", "tui.select.up"],
  ["down", "tui.select.down"],
  ["pageUp", "tui.select.pageUp"],
  ["pageDown", "tui.select.pageDown"],
  ["enter", "tui.select.confirm"],
  ["escape", "tui.select.cancel"],
  ["left", "tui.editor.cursorLeft"],
  ["right", "tui.editor.cursorRight"],
  ["home", "tui.editor.cursorLineStart"],
  ["end", "tui.editor.cursorLineEnd"],
  ["backspace", "tui.editor.deleteCharBackward"],
] as const;

export type Binding = (typeof BINDINGS)[number][1];

const SPACE = 32;
const MODIFIED = 2;
/** A key as terminals with the kitty protocol send it: code point, the shifted one, and the modifiers plus one. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: terminals send this character.
const KITTY = /^\u001b\[(\d{1,7})(?::(\d{0,7}))?(?::\d*)?(?:;(\d{1,3})(?::\d)?)?u$/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: terminals send these characters around a paste.
const PASTE = /^\u001b\[200~([\s\S]*?)(?:\u001b\[201~)?$/;
/** A key with its modifiers in the older form of xterm. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: terminals send this character.
const XTERM = /^\u001b\[27;(\d{1,3});(\d{1,7})~$/;
const CTRL = 4;
/** Caps Lock and Num Lock. */
const LOCKS = 64 | 128;
/** Longest text that one key press or one paste adds. */
const TYPED_CHARS = 200;

function textOf(data: string): string {
  const kitty = KITTY.exec(data);
  if (kitty) {
    const [, plain, shifted, modifiers = "1"] = kitty;
    const code = Number(shifted || plain);
    // Only Shift makes a text of a key.
    return Number(modifiers) > MODIFIED || code < SPACE || code > 0x10ffff ? "" : String.fromCodePoint(code);
  }
  const [line = ""] = plainLines((PASTE.exec(data)?.[1] ?? data).slice(0, TYPED_CHARS)).split("\n");
  return data.startsWith("\u001b") && !PASTE.test(data) ? "" : line.replaceAll("\t", " ");
}

/** The letter that is pressed with Ctrl alone; undefined: it is another key. */
function controlOf(data: string): string | undefined {
  const code = data.length === 1 ? data.charCodeAt(0) : 0;
  // As terminals have always sent it.
  if (code > 0 && code <= 26) return String.fromCharCode(code + 96);
  const [, plain, , modifiers = "1"] = KITTY.exec(data) ?? [];
  const [, ofXterm, letter] = XTERM.exec(data) ?? [];
  const held = (Number(ofXterm ?? modifiers) - 1) & ~LOCKS;
  const point = Number(plain ?? letter);
  return held === CTRL && point > SPACE && point < 127 ? String.fromCharCode(point) : undefined;
}

const isControl = (letter: string | undefined): letter is keyof typeof CONTROLS =>
  letter !== undefined && Object.hasOwn(CONTROLS, letter);

/** `data`: what the terminal sent. Undefined: the panel has no use for it. */
export function keyOf(data: string, matches: (data: string, binding: Binding) => boolean): Key | undefined {
  const bound = BINDINGS.find(([, binding]) => matches(data, binding));
  if (bound) return bound[0];
  if (data === "\t" || data === "\u001b[9u") return "tab";
  const control = controlOf(data);
  if (isControl(control)) return CONTROLS[control];
  const text = textOf(data);
  if (text === " ") return "space";
  return text === "" ? undefined : { text };
}

export interface Row {
  /** Names the row as long as it exists. */
  key: string;
}

export interface ListState {
  filter: string;
  /** The chosen row; undefined: the first one. */
  key: string | undefined;
  /** Its position when it was chosen. */
  at: number;
  /** A row was opened since the filter was typed: it has done its work, and Escape leaves the list at once. */
  opened?: boolean;
}

/** Whether Escape leaves the list; else it clears the filter. */
export const isLeft = ({ filter, opened }: ListState): boolean => filter === "" || opened === true;

export const FIRST: ListState = { filter: "", key: undefined, at: 0 };

const FILTER_CHARS = 100;

type Find = (key: string) => number;

/** Where the row with the key is now; -1: it is gone. */
const foundAt = (key: string, at: number, rows: readonly Row[], find?: Find): number => {
  if (rows[at]?.key === key) return at;
  return find ? find(key) : rows.findIndex((row) => row.key === key);
};

/** Position of the chosen row; -1 in an empty list. `find`: the position of a key, or -1. */
export function chosenAt({ key, at }: ListState, rows: readonly Row[], find?: Find): number {
  if (rows.length === 0 || key === undefined) return rows.length === 0 ? -1 : 0;
  const found = foundAt(key, at, rows, find);
  return found === -1 ? Math.min(at, rows.length - 1) : found;
}

/** Whether the chosen row is gone: another one stands in its place, which nobody has chosen. */
export const isGone = ({ key, at }: ListState, rows: readonly Row[], find?: Find): boolean =>
  key !== undefined && foundAt(key, at, rows, find) === -1;

const STEPS = { up: -1, down: 1, pageUp: -1, pageDown: 1, home: 0, end: 0 } as const;
type Move = keyof typeof STEPS;
export const isMove = (key: Key): key is Move => typeof key === "string" && Object.hasOwn(STEPS, key);

/** The position after a key. Single steps go round, as in Pi's lists; `page`: rows that are seen at once. */
function moved(at: number, count: number, key: Move, page: number): number {
  if (count === 0) return -1;
  if (key === "home") return 0;
  if (key === "end") return count - 1;
  if (key === "up" || key === "down") return (at + STEPS[key] + count) % count;
  return Math.max(0, Math.min(count - 1, at + STEPS[key] * Math.max(1, page)));
}

/** The list after a key that moves in it. `find`: as for `chosenAt`. */
export function moveIn(
  state: ListState,
  rows: readonly Row[],
  key: Move,
  { page, find }: { page: number; find?: Find },
): ListState {
  const at = moved(chosenAt(state, rows, find), rows.length, key, page);
  return at === -1 ? state : { ...state, at, key: rows[at]?.key };
}

/** The first line that is seen of `count` lines after a key, if `page` lines are seen at once. */
export function scrolled(top: number, count: number, key: Move, page: number): number {
  const last = Math.max(0, count - page);
  if (key === "home") return 0;
  if (key === "end") return last;
  const step = key === "up" || key === "down" ? 1 : Math.max(1, page - 1);
  return Math.max(0, Math.min(last, top + STEPS[key] * step));
}

/** The filter after a key that types; undefined: the key does not type. */
export function typed(filter: string, key: Key): string | undefined {
  if (key === "backspace") return filter === "" ? undefined : [...filter].slice(0, -1).join("");
  // A text does not begin with a space.
  if (key === "space") return filter === "" ? undefined : cut(`${filter} `, FILTER_CHARS);
  if (typeof key === "string") return undefined;
  return cut(filter + key.text, FILTER_CHARS);
}

/** First row that is shown, so that the chosen one is in the middle where that is possible. */
export const windowFrom = (at: number, count: number, size: number): number =>
  Math.max(0, Math.min(at - Math.floor(size / 2), count - size));
