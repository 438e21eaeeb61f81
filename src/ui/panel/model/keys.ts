/** The keys of the panel: bound as in Pi's own lists, so that a person's own bindings count here too. Pure. */
import { plainLines } from "../../../shared/text/unprintable.ts";

export type Key =
  | "up"
  | "down"
  | "pageUp"
  | "pageDown"
  | "home"
  | "end"
  | "enter"
  | "escape"
  | "backspace"
  | "space"
  | { text: string };

/** The binding of Pi for each key, in the order in which they are tried. */
export const BINDINGS = [
  ["up", "tui.select.up"],
  ["down", "tui.select.down"],
  ["pageUp", "tui.select.pageUp"],
  ["pageDown", "tui.select.pageDown"],
  ["enter", "tui.select.confirm"],
  ["escape", "tui.select.cancel"],
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

/** `data`: what the terminal sent. Undefined: the panel has no use for it. */
export function keyOf(data: string, matches: (data: string, binding: Binding) => boolean): Key | undefined {
  const bound = BINDINGS.find(([, binding]) => matches(data, binding));
  if (bound) return bound[0];
  const text = textOf(data);
  if (text === " ") return "space";
  return text === "" ? undefined : { text };
}
