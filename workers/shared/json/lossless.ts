/**
 * Whether parsing a JSON text loses something of it: digits of a number or how it is written (`1.0`, `-0`,
 * `1e-400`), a key that an object has twice. Pure.
 */

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;
const MINUS = 0x2d;

const isDigit = (code: number): boolean => code >= 0x30 && code <= 0x39;

/** Behind the string whose opening quote is at `at`. The text is valid JSON, so there is an end. */
function skipString(text: string, at: number): number {
  let next = at + 1;
  while (next < text.length && text.charCodeAt(next) !== QUOTE) {
    next += text.charCodeAt(next) === BACKSLASH ? 2 : 1;
  }
  return next + 1;
}

/** Members of all objects in it. Without recursion, so that depth costs memory only. */
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

/** `text` must be valid JSON and `value` what it parses to. */
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
  // Of a key that comes twice, parsing keeps the last value alone.
  return colons === countMembers(value);
}
