/**
 * The forms in which a secret may appear in a text: as it is, percent-encoded, escaped in JSON or HTML, in hex, and in
 * base64 with anything before and behind it, as in `Basic base64(user:secret)`. Returns sources of regular expressions.
 * Pure.
 */
import { escapePattern } from "../../../src/shared/text/reading.ts";

/** A longer secret is looked for in pieces, so that no match is longer than `LONGEST_MATCH`. */
const PIECE_CHARS = 1_000;
/** No character takes more in any of its forms; `%E6%BC%A2` takes as many. */
const FORM_CHARS = 9;
/** No form has more characters than this. A text is redacted with this much beyond the later cut. */
export const LONGEST_MATCH = PIECE_CHARS * FORM_CHARS;
/**
 * Pieces of one secret that are looked for in all forms. Further pieces are looked for only as they are written: a
 * piece takes some milliseconds to prepare, and a longer secret is a file of which texts show the beginning.
 */
const ENCODED_PIECES = 16;
/** A shorter form would be found by chance, so it is looked for as a whole word. */
export const SURE_CHARS = 8;

const anyCase = (hex: string): string =>
  hex.replace(/[a-f]/gi, (digit) => `[${digit.toLowerCase()}${digit.toUpperCase()}]`);

const HTML: Readonly<Record<string, string>> = {
  "&": "amp",
  "<": "lt",
  ">": "gt",
  '"': "quot",
  "'": "apos",
  "/": "sol",
};
/** Letters that JSON writes for control characters. */
const SHORT_ESCAPES: Readonly<Record<string, string>> = {
  "\b": "b",
  "\f": "f",
  "\n": "n",
  "\r": "r",
  "\t": "t",
};
/** JSON within JSON doubles the backslash. */
const BACKSLASHES = "\\\\{1,3}";

/** One character in each form that a URL, JSON or HTML gives it. Letters and digits have one form. */
function spellings(char: string): string {
  if (/^[A-Za-z0-9_.~-]$/.test(char)) return escapePattern(char);
  const ways = [char === '"' || char === "/" ? `\\\\{0,3}${char}` : escapePattern(char)];
  if (char === "\\") ways.unshift("\\\\{2,4}");
  if (char === " ") ways.push("\\+");
  const bytes = Buffer.from(char).toString("hex");
  ways.push(bytes.replace(/../g, (byte) => `%${anyCase(byte)}`));
  const units = Array.from({ length: char.length }, (_, i) =>
    char.charCodeAt(i).toString(16).padStart(4, "0"),
  );
  ways.push(units.map((unit) => `${BACKSLASHES}u${anyCase(unit)}`).join(""));
  const short = SHORT_ESCAPES[char];
  if (short !== undefined) ways.push(`${BACKSLASHES}${short}`);
  const entity = HTML[char];
  if (entity !== undefined) ways.push(`&(?:${entity}|#0?${char.charCodeAt(0)}|#[xX]${anyCase(bytes)});`);
  return `(?:${ways.join("|")})`;
}

/** Pieces of nearly equal size: a short rest would be too short to be found. */
function pieces(secret: string): string[] {
  const count = Math.ceil(secret.length / PIECE_CHARS);
  const size = Math.ceil(secret.length / count);
  return Array.from({ length: count }, (_, i) => secret.slice(i * size, (i + 1) * size));
}

/**
 * Base64 of the bytes for each position in a longer text: three bytes make four characters, so there are three forms.
 * Characters that also depend on neighbouring bytes are left out: they hold less than a byte of the secret.
 */
function base64Forms(bytes: Buffer): string[] {
  const whole = bytes.toString("base64");
  const inner = [0, 2, 3].map((skipped, offset) => {
    const shifted = Buffer.concat([Buffer.alloc(offset), bytes]);
    return shifted.toString("base64").slice(skipped, Math.floor((shifted.length * 8) / 6));
  });
  const sure = inner.filter((form) => form.length >= SURE_CHARS);
  return [whole, whole.replace(/=+$/, ""), ...sure].flatMap((form) => [
    form,
    form.replaceAll("+", "-").replaceAll("/", "_"),
  ]);
}

/** `source` as a part of any text, or as a whole word if `form` is too short for that. */
const within = (form: string, source: string): string =>
  form.length >= SURE_CHARS ? source : `(?<![A-Za-z0-9])${source}(?![A-Za-z0-9])`;

/**
 * Sources of regular expressions, the longest form first, because one secret may begin with another. `parts` of secrets
 * are looked for as they are written, not encoded, because there may be thousands.
 */
export function formsOf(secrets: readonly string[], parts: readonly string[]): string[] {
  const forms = new Map<string, string>();
  for (const piece of secrets.flatMap((secret) => pieces(secret).slice(0, ENCODED_PIECES))) {
    const bytes = Buffer.from(piece);
    const hex = bytes.toString("hex");
    for (const form of [hex, hex.toUpperCase(), ...base64Forms(bytes)])
      forms.set(form, within(form, escapePattern(form)));
  }
  for (const secret of [...secrets, ...parts]) {
    for (const [i, piece] of pieces(secret).entries()) {
      const source = i < ENCODED_PIECES ? Array.from(piece, spellings).join("") : escapePattern(piece);
      forms.set(piece, within(piece, source));
    }
  }
  return [...forms].toSorted(([a], [b]) => b.length - a.length).map(([, source]) => source);
}
