/**
 * Finds out whether parsing a JSON text loses something: digits of a number, its spelling (`1.0`, `-0`, `1e-400`), or a
 * key that an object has twice. Pure.
 */

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;
const MINUS = 0x2d;

const isDigit = (code: number): boolean => code >= 0x30 && code <= 0x39;

/** The position behind the string whose opening quote is at `at`. Valid JSON always has its closing quote. */
function skipString(text: string, at: number): number {
  let next = at + 1;
  while (next < text.length && text.charCodeAt(next) !== QUOTE) {
    next += text.charCodeAt(next) === BACKSLASH ? 2 : 1;
  }
  return next + 1;
}

/** The number of members of all objects in the value. Without recursion, so that depth costs memory only. */
function countMembers(value: unknown): number {
  let members = 0;
  const open = [value];
  while (open.length > 0) {
    const next = open.pop();
    if (typeof next !== "object" || next === null) continue;
    const values = Object.values(next);
    if (!Array.isArray(next)) members += values.length;
    for (const each of values) open.push(each);
  }
  return members;
}

/** True if `JSON.stringify` of the value says all that the text says. `text`: valid JSON. `value`: the parsed text. */
export function parsedWithoutLoss(text: string, value: unknown): boolean {
  const number = /-?[\d.eE+-]+/y;
  let colons = 0;
  for (let at = 0; at < text.length; ) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      at = skipString(text, at);
    } else if (isDigit(code) || code === MINUS) {
      number.lastIndex = at;
      const [digits = ""] = number.exec(text) ?? [];
      if (String(Number(digits)) !== digits) return false;
      at += digits.length;
    } else {
      if (code === COLON) colons++;
      at++;
    }
  }
  // Parsing keeps only the last value of a key that comes twice, so the value then has fewer members than colons.
  return colons === countMembers(value);
}
