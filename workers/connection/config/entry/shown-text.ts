/**
 * Foreign text as a question or a message shows it: nothing in it passes for another line, for another part of the
 * question, or for other letters than it has. Nothing is cut here. Pure.
 */

/** Controls, marks that turn or hide letters, line ends, and blanks other than the space. */
const UNFIT = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800\u{1d159}]|(?! )\p{Zs}/u;
/** A mark draws over what stands before it; three of them on a letter are enough for any language. */
const STRAY_MARK = /(?<![\p{L}\p{M}])\p{M}|(?<=\p{M}{3})\p{M}/u;
/** Letters that look like ASCII ones: full-width and mathematical letters, and alphabets beside Latin letters. */
const OTHER_ALPHABET = /[\p{sc=Cyrl}\p{sc=Grek}\p{sc=Armn}\p{sc=Cher}\p{sc=Copt}\p{sc=Lisu}\p{sc=Goth}]/u;
const HIDDEN = new RegExp(`${UNFIT.source}|${STRAY_MARK.source}`, "gu");
const WORD = /[\p{L}\p{M}\p{N}_]+/gu;
/** A long run of blanks pushes what follows out of sight. */
const BLANKS = / {3,}/g;

const code = (char: string): string => `\\u{${(char.codePointAt(0) ?? 0).toString(16)}}`;

const looksLikeAscii = (char: string): boolean =>
  /[^ -~]/.test(char) && /^[!-~]+$/.test(char.normalize("NFKC"));

/** In a word with Latin letters the letters of another alphabet are a disguise. */
const withoutDisguise = (word: string): string =>
  /[A-Za-z]/.test(word) && OTHER_ALPHABET.test(word)
    ? Array.from(word, (char) => (OTHER_ALPHABET.test(char) ? code(char) : char)).join("")
    : word;

/** What a reader could take for something else is written as its code. */
export const escaped = (text: string): string =>
  text
    .replace(HIDDEN, code)
    .replace(/[^ -~]/gu, (char) => (looksLikeAscii(char) ? code(char) : char))
    .replace(WORD, withoutDisguise)
    .replace(BLANKS, (run) => ` \\u{20}×${run.length - 1}`);

/** A backslash of the text itself is doubled: no text can write an escape. */
export const quoted = (text: string): string => escaped(JSON.stringify(text));

/** A plain word as it is, all else in quotes. */
export const shown = (text: string): string => (/^[\w@%+=:./~${}-]+$/.test(text) ? text : quoted(text));

/** A URL also holds `?`, `&`, `,` and `#`, which a shell's word does not. No letter of its host passes for another one. */
export const shownUrl = (text: string): string =>
  /^https?:[\w@%+=:,./~${}?&#-]+$/.test(text) ? text : quoted(text).replace(/[^ -~]/gu, code);

/** A list with a comma between, at most this many of it, and how many others there are. */
export function listed(texts: readonly string[], most: number): string {
  const others = texts.length - most;
  return [...texts.slice(0, most), ...(others > 0 ? [`${others} more`] : [])].join(", ");
}
