/**
 * Owns the kind of each character, for splitting text. ASCII is a table, Chinese, Japanese and Korean are ranges, and
 * only other scripts reach a regular expression: compiling `\p{...}` costs a first query a millisecond. Called by
 * tokens.ts and ranked/pins.ts.
 */
export const OTHER = 0;
export const LOWER = 1;
export const UPPER = 2;
export const DIGIT = 3;
/** Scripts that are written without spaces: Han, kana, Hangul. */
export const CJK = 4;
/** Marks that link the parts of one written word: `_ - . / ' + #`. */
export const LINK = 5;

const ascii = new Uint8Array(128);
for (let code = 0x61; code <= 0x7a; code++) ascii[code] = LOWER;
for (let code = 0x41; code <= 0x5a; code++) ascii[code] = UPPER;
for (let code = 0x30; code <= 0x39; code++) ascii[code] = DIGIT;
for (const link of "_-./'+#") ascii[link.charCodeAt(0)] = LINK;

const cjkRanges: readonly (readonly [first: number, last: number])[] = [
  [0x1100, 0x11ff],
  [0x2e80, 0x2fdf],
  [0x3005, 0x3007],
  [0x3040, 0x30ff],
  [0x3130, 0x318f],
  [0x31f0, 0x31ff],
  [0x3400, 0x4dbf],
  [0x4e00, 0x9fff],
  [0xa960, 0xa97f],
  [0xac00, 0xd7ff],
  [0xf900, 0xfaff],
  [0x20000, 0x3ffff],
];

export function characterKind(code: number): number {
  return code < 128 ? ascii[code]! : beyondAscii(code);
}

/** A function of its own, since the engine parses the expressions when it first compiles the function around them. */
function beyondAscii(code: number): number {
  if (code >= 0x1100 && cjkRanges.some(([first, last]) => code >= first && code <= last)) return CJK;
  const character = String.fromCodePoint(code);
  if (character === "’") return LINK;
  if (/\p{Lu}/u.test(character)) return UPPER;
  if (/[\p{L}\p{M}]/u.test(character)) return LOWER;
  return /\p{N}/u.test(character) ? DIGIT : OTHER;
}

/** The text in NFKC: full-width letters, ligatures and composed forms become the plain ones. */
export function plain(text: string): string {
  for (let at = 0; at < text.length; at++) if (text.charCodeAt(at) > 127) return text.normalize("NFKC");
  return text;
}

/** Letters and digits of a name in lower case: the same for "Read-File", "read_file" and "readFile". */
export function lettersAndDigits(name: string): string {
  if (isPlainWord(name)) return name;
  let kept = "";
  for (const character of plain(name)) {
    const kind = characterKind(character.codePointAt(0)!);
    if (kind !== OTHER && kind !== LINK) kept += character;
  }
  return kept.toLowerCase();
}

/** Whether the name is nothing but small letters and digits, as most words of a query. */
function isPlainWord(name: string): boolean {
  for (let at = 0; at < name.length; at++) {
    const kind = ascii[name.charCodeAt(at)];
    if (kind !== LOWER && kind !== DIGIT) return false;
  }
  return true;
}
