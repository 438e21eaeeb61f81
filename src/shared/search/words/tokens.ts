/**
 * Owns how text becomes search terms, for tools and queries alike: NFKC, lower case, split at camelCase and `_ - . /`,
 * words folded by stem.ts. Two neighbouring parts of one written word are also kept joined, because splitting alone loses
 * brands (GitHub, MySQL, OAuth). Chinese, Japanese and Korean text has no spaces, so its runs become overlapping pairs of
 * characters.
 */
import { CJK, characterKind, DIGIT, LINK, LOWER, OTHER, plain, UPPER } from "./characters.ts";
import { stem } from "./stem.ts";

export type Token = {
  readonly term: string;
  /** `part`: a word or a part of one. `joined`: two neighbouring parts of one written word. */
  readonly kind: "part" | "joined";
  /** The written spelling in lower case, for messages. */
  readonly written: string;
};

/** Longer runs of letters are data (keys, base64), not words. */
const maxTermLength = 40;

/** Every term of `text`, in order. `maxTokens` bounds the cost of a hostile description. */
export function tokenize(text: string, maxTokens = 2_000): Token[] {
  const source = plain(text);
  const tokens: Token[] = [];
  /** The part before the current one in the same written word, with which it is joined. */
  let previous = "";
  let at = 0;
  while (at < source.length && tokens.length < maxTokens) {
    const code = source.codePointAt(at)!;
    const kind = characterKind(code);
    if (kind === OTHER) {
      previous = "";
      at += code > 0xffff ? 2 : 1;
    } else if (kind === LINK) {
      at++;
      if (at < source.length && characterKind(source.codePointAt(at)!) === LINK && source[at] !== "_")
        previous = "";
    } else if (kind === CJK) {
      const end = runEnd(source, at);
      pushPairs(tokens, source.slice(at, end));
      previous = "";
      at = end;
    } else {
      const end = partEnd(source, at);
      previous = pushPart(tokens, source.slice(at, end).toLowerCase(), previous);
      at = end;
    }
  }
  return tokens;
}

function pushPart(tokens: Token[], part: string, previous: string): string {
  if (part.length > maxTermLength) return "";
  if (previous !== "" && previous.length + part.length <= maxTermLength) {
    const joined = previous + part;
    tokens.push({ term: stem(joined), kind: "joined", written: joined });
  }
  tokens.push({ term: stem(part), kind: "part", written: part });
  return part;
}

function pushPairs(tokens: Token[], run: string): void {
  const characters = [...run];
  if (characters.length === 1) tokens.push({ term: run, kind: "part", written: run });
  for (let at = 0; at + 1 < characters.length; at++) {
    const pair = `${characters[at]}${characters[at + 1]}`;
    tokens.push({ term: pair, kind: "part", written: pair });
  }
}

function runEnd(text: string, start: number): number {
  let at = start;
  while (at < text.length) {
    const code = text.codePointAt(at)!;
    if (characterKind(code) !== CJK) break;
    at += code > 0xffff ? 2 : 1;
  }
  return at;
}

/**
 * End of the part that starts at `start`: "getHTTPResponse2" is get, HTTP, Response2. Digits belong to the letters before
 * them ("s3", "base64").
 */
function partEnd(text: string, start: number): number {
  let before: number = OTHER;
  let at = start;
  while (at < text.length) {
    const code = text.codePointAt(at)!;
    const kind = characterKind(code);
    if (kind !== LOWER && kind !== UPPER && kind !== DIGIT) break;
    if (kind === UPPER && (before === LOWER || before === DIGIT)) break;
    if (kind === LOWER && before === DIGIT) break;
    if (kind === LOWER && before === UPPER && at - 1 > start) return at - 1;
    before = kind;
    at += code > 0xffff ? 2 : 1;
  }
  return at;
}
