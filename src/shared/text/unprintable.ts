/**
 * Owns the characters of foreign text that no terminal and no model may get, and the functions that remove them.
 * Servers write names, descriptions and errors. A terminal acts on some of their characters, and a model reads others
 * that no person sees. Must be the only such set: other files import from here. Pure.
 */
import { withoutHalfAtEnd } from "./surrogates.ts";

/**
 * CSI and OSC sequences, and the other escapes of two characters. A sequence that takes a text (OSC and its like) counts
 * only if it ends on the same line: otherwise a server could hide text from the person that the model still reads.
 */
const ESCAPES =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the expression finds control characters.
  /\u001b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\u0007\u001b\n]{0,2048}(?:\u0007|\u001b\\)|[ -/]*[0-~])/g;

/** All C0 and C1 controls except tab and newline, and the marks of interlinear notes. */
const CONTROLS = "\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\ufff9-\\ufffb";

/** Line ends that only some programs know: the line separator and the paragraph separator. */
const FOREIGN_LINE_ENDS = "\\u2028\\u2029";
const LINE_ENDS = new RegExp(`\\r\\n|[${FOREIGN_LINE_ENDS}]`, "g");

/** Marks that change the order of letters, some of them beyond their own line. */
const DIRECTIONS = "\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069";

const REMOVED = new RegExp(`[${CONTROLS}${DIRECTIONS}]`, "g");
const UNPRINTABLE = new RegExp(`[${CONTROLS}${DIRECTIONS}${FOREIGN_LINE_ENDS}]`, "g");

/** Characters without a shape, such as the tags U+E0000 to U+E007F: a person sees nothing, but a model reads them. */
const INVISIBLE =
  /[\u034f\u00ad\u115f\u1160\u17b4\u17b5\u180e\u200b\u2060-\u2065\u206a-\u206f\u3164\ufeff\uffa0\ufff0-\ufff8\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e00ff}\u{e01f0}-\u{e0fff}]/gu;

/** Joiners and variation selectors have no shape either, but scripts and emoji need one or two behind a character. */
const JOINERS = "\\u180b-\\u180d\\u180f\\u200c\\u200d\\ufe00-\\ufe0f\\u{e0100}-\\u{e01ef}";
/** Joiners that only carry hidden text: three in a row, or any behind ASCII except keycaps of `0` to `9`, `#`, `*`. */
const HIDDEN_JOINERS = new RegExp(`[${JOINERS}]{3,}|(?<=^|[\\0-"$-)+-/:-\\x7f])[${JOINERS}]+`, "gmu");

/** Matches most texts: no character in them can need a change. */
const PLAIN = /^[ -~\n\t]*$/;

/** The text without escape sequences. */
export const withoutEscapes = (text: string): string => text.replace(ESCAPES, "");

/** Foreign text of one or several lines, without characters that a terminal acts on. Tabs and newlines stay. */
export const plainLines = (text: string): string =>
  PLAIN.test(text) ? text : withoutEscapes(text).replace(LINE_ENDS, "\n").replace(REMOVED, "").toWellFormed();

/**
 * Replaces each character that a terminal acts on; tabs and newlines stay. For the log, which shows such characters by
 * their codes instead of removing them.
 */
export const replaceUnprintable = (text: string, replacement: (char: string) => string): string =>
  PLAIN.test(text) ? text : text.replace(UNPRINTABLE, replacement);

/** Foreign text of one or several lines as a model may read it, with no hidden characters. */
export function cleanText(text: string): string {
  if (PLAIN.test(text)) return text;
  return plainLines(text).replace(INVISIBLE, "").replace(HIDDEN_JOINERS, "");
}

/** At most so many characters; the last one is an ellipsis if any are left out. */
export const cut = (text: string, chars: number): string =>
  text.length > chars ? `${withoutHalfAtEnd(text.slice(0, chars - 1))}…` : text;

/** Controls that some programs treat as a line end. */
const RARE_LINE_ENDS = /[\r\v\f\u0085]/g;

/** One word of ASCII, as most names are: such a line needs no change. */
const PLAIN_WORD = /^[!-~]+$/;

/** Foreign text in one line of at most `chars` characters, so that it cannot pass for another line. */
export function oneLine(text: string, chars: number): string {
  if (text.length <= chars && PLAIN_WORD.test(text)) return text;
  // A long text is cut before it is searched. Removed characters may then make the line shorter than `chars`.
  const start = text.slice(0, 4 * chars);
  const line = cleanText(start.replace(RARE_LINE_ENDS, " ")).replace(/\s+/g, " ").trim();
  return start.length < text.length && line.length <= chars ? `${line}…` : cut(line, chars);
}

const SHOWN_NAME_CHARS = 64;
const USUAL_NAME = /^[\w./-]{1,64}$/;

/** A function of its own, since the engine parses the expression when it first compiles the function around it. */
const identifier = (text: string): string => text.replace(/[^\p{L}\p{N}\p{M}_./-]+/gu, "_");

/**
 * The name of a server or a tool for a list of names. Other characters than those of identifiers become `_`, so that a
 * name can add neither an entry nor a sentence to the list.
 */
export function shownName(name: string): string {
  if (USUAL_NAME.test(name)) return name;
  return cut(identifier(cleanText(name.slice(0, 4 * SHOWN_NAME_CHARS))), SHOWN_NAME_CHARS) || "_";
}
