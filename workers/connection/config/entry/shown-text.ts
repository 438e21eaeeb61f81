/**
 * Foreign text as a question or a message shows it: no part of the text can pass for another line, for another part
 * of the question, or for other letters. Nothing is left out: a character that src/shared/text/unprintable.ts removes
 * elsewhere is written as its code here, because the user agrees to the whole text. Pure.
 */

import { counted } from "../../../../src/shared/text/amounts.ts";
import { isKeyAsVariable, variableText } from "../../../../src/shared/text/key-shape.ts";
import { isCommand, variablesIn } from "./interpolate.ts";

/**
 * Controls, marks that turn or hide letters, line ends, and blanks other than the space: more than unprintable.ts
 * removes.
 */
const UNFIT = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800\u{1d159}]|(?! )\p{Zs}/u;
/** A mark draws over the characters before it. Three marks on a letter are enough for any language. */
const STRAY_MARK = /(?<![\p{L}\p{M}])\p{M}|(?<=\p{M}{3})\p{M}/u;
/** Alphabets with letters that look like Latin ones. */
const OTHER_ALPHABET = /[\p{sc=Cyrl}\p{sc=Grek}\p{sc=Armn}\p{sc=Cher}\p{sc=Copt}\p{sc=Lisu}\p{sc=Goth}]/u;
let hidden: RegExp | undefined;
/** Made at the first use, since the tables of letters behind it take a millisecond of each start. */
const hiddenPattern = (): RegExp => {
  hidden ??= new RegExp(`${UNFIT.source}|${STRAY_MARK.source}`, "gu");
  return hidden;
};
const WORD = /[\p{L}\p{M}\p{N}_]+/gu;
/** A long run of blanks would push the text behind it out of sight. */
const BLANKS = / {3,}/g;

const code = (char: string): string => `\\u{${(char.codePointAt(0) ?? 0).toString(16)}}`;

const looksLikeAscii = (char: string): boolean =>
  /[^ -~]/.test(char) && /^[!-~]+$/.test(char.normalize("NFKC"));

/** In a word with Latin letters, letters of another alphabet are a disguise. */
const withoutDisguise = (word: string): string =>
  /[A-Za-z]/.test(word) && OTHER_ALPHABET.test(word)
    ? Array.from(word, (char) => (OTHER_ALPHABET.test(char) ? code(char) : char)).join("")
    : word;

/** Writes every character that a reader could take for another one as its code. */
export const escaped = (text: string): string =>
  text
    .replace(hiddenPattern(), code)
    .replace(/[^ -~]/gu, (char) => (looksLikeAscii(char) ? code(char) : char))
    .replace(WORD, withoutDisguise)
    .replace(BLANKS, (run) => ` \\u{20}×${run.length - 1}`);

/** The text in quotes. Its own backslashes are doubled, so that no text can fake an escape. */
const quoted = (text: string): string => escaped(JSON.stringify(text));

/** A plain word as it is, any other text in quotes. */
export const shown = (text: string): string => (/^[\w@%+=:./~${}-]+$/.test(text) ? text : quoted(text));

/**
 * A URL may also hold `?`, `&`, `,` and `#`, which a plain word may not. Letters that are not ASCII are written as
 * codes.
 */
export const shownUrl = (text: string): string =>
  /^https?:[\w@%+=:,./~${}?&#-]+$/.test(text) ? text : quoted(text).replace(/[^ -~]/gu, code);

/** At most so many texts with commas between, and how many others there are. */
export function listed(texts: readonly string[], most: number): string {
  const others = texts.length - most;
  return [...texts.slice(0, most), ...(others > 0 ? [`${others} more`] : [])].join(", ");
}

export const fromCommand = (value: string): string => `from running ${quoted(value.slice(1))}`;

/** Where a value comes from, without the value. */
function origin(value: string): string {
  const { names, hasText, hasDefault } = variablesIn(value);
  if (names.length === 0) return value === "" ? "empty" : counted(value.length, "character");
  const from = `${hasText ? "text with" : "from"} ${names.map((name) => (isKeyAsVariable(name) ? variableText(name) : `$${name}`)).join(", ")}`;
  return hasDefault ? `${from}, or a default` : from;
}

/** A value that may be a secret. */
export const withOrigin = (what: string, value: string): string =>
  isCommand(value) ? `${what} ${fromCommand(value)}` : `${what} (${origin(value)})`;

/** A value that is not a secret. */
export const withValue = (what: string, value: string, show: (text: string) => string = shown): string =>
  `${what} ${isCommand(value) ? fromCommand(value) : show(value)}`;

/** Every text in a value, however deep. */
export const textsIn = (value: unknown): string[] => {
  if (typeof value === "string") return [value];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(textsIn) : [];
};
