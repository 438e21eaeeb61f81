/** Tells keys from names by their shape, so that a key in the place of a name is neither used as one nor shown. Pure. */

/** The least characters of a key in a path: 64 bits in hex. Nobody names a thing with more than the second number. */
const KEY_CHARS = 16;
const LONGEST_NAME = 200;
/** A word, a number or a version, as people name things: `Server`, `2024`, `v1`, `v2beta1`, `OAuth2`, `listMembersOfTeam`. */
const NAME_PART =
  /^(?:v?\d{1,8}|v\d(?:alpha|beta)\d?|[A-Z]?[a-z]|(?:[a-z]{2,})?(?:[A-Z]{1,8}[a-z]{2,})*\d?(?:[A-Z]{1,8}[a-z]{2,})*[A-Z]{0,8}\d{0,4})$/;

/** How often a text changes between small letters, capital letters and digits. Names of people change with each word. */
function changes(text: string): number {
  const kinds = Array.from(text, (char) => (/\d/.test(char) ? 0 : char === char.toLowerCase() ? 1 : 2));
  return kinds.filter((kind, at) => at > 0 && kind !== kinds[at - 1]).length;
}

/**
 * Whether nobody would choose the part of a path as a name, so that it is probably a key, as several hosts write it
 * (`/s/<key>/mcp`): long, with a piece that is no word, number or version. In digits alone are the ids of things.
 */
export function isKey(part: string): boolean {
  if (part.length < KEY_CHARS || !/^[\x21-\x7e]+$/.test(part) || !/[A-Za-z]/.test(part)) return false;
  if (part.length > LONGEST_NAME) return true;
  const pieces = part.split(/[^A-Za-z0-9]+/).filter((piece) => piece !== "");
  if (pieces.some((piece) => !NAME_PART.test(piece)))
    return /\d/.test(part) || changes(part) >= part.length / 3;
  // `AbCdEf...` is made of words of two letters.
  return pieces.some((piece) => piece.length >= KEY_CHARS && changes(piece) >= piece.length / 3);
}

/** Keys whose first characters say which service made them, as far as their characters are those of a variable's name. */
const KNOWN_KEY =
  /^(?:(?:gh[a-z]|github_pat|glpat|[sr]k_(?:live|test)|hf|npm)_[A-Za-z0-9]{16}|A[KS]IA[A-Z2-7]{16}$|AIza\w{30}|ya29\w{20}|xox[a-z]_\w{16})/;
/** Of the characters of a random text in hex, almost every second one is of another kind than the one before. */
const CHANGES_IN_CAPITALS = 4;
const IN_CAPITALS = /^[A-Z_][A-Z0-9_]*$/;

/**
 * Whether what stands in the place of a variable's name is probably the key itself. A name in capitals may hold a long word and
 * a digit, as `CLOUDFLARE_R2_TOKEN` does; a piece that changes between letters and digits all the time is no word. In another
 * name a short piece may be no word, as in `k8s_cluster_token`: a key has a long one.
 */
export function isKeyAsVariable(name: string): boolean {
  if (KNOWN_KEY.test(name)) return true;
  if (!IN_CAPITALS.test(name)) return name.length > LONGEST_NAME || name.split("_").some(isKey);
  return name
    .split("_")
    .some((piece) => piece.length >= KEY_CHARS && changes(piece) >= piece.length / CHANGES_IN_CAPITALS);
}

/** A variable's name as texts may have it: a log, a report and a model read them. */
export const variableText = (name: string): string =>
  isKeyAsVariable(name) ? "a variable with the name of a key" : name;
