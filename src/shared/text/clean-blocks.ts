/**
 * Cleans what a model reads of a result, and counts what is taken out: a result may be a file or a log. The characters are
 * those of unprintable.ts. Apart from that file, since main needs this for what a script prints only. Pure.
 */
import type { ResultContent } from "../protocol/calls.ts";
import { counted } from "./amounts.ts";
import {
  CONTROLS,
  DIRECTIONS,
  ESCAPES,
  FOREIGN_LINE_ENDS,
  hiddenIn,
  isHighSurrogate,
  PLAIN,
  withoutEscapes,
} from "./unprintable.ts";

/** Colours and other looks of letters (ECMA-48, SGR): most of the sequences in the log of a program. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: the expression finds control characters.
const COLOURS = /\u001b\[[\d;:]{0,256}m/g;
/** A carriage return before a line feed belongs to the line end of the text. */
const CONTROL = new RegExp(`(?!\\r\\n)[${CONTROLS}]`, "g");
const DIRECTION = new RegExp(`[${DIRECTIONS}]`, "g");
const FOREIGN_LINE_END = new RegExp(`[${FOREIGN_LINE_ENDS}]`, "g");

/** Characters of the text: each pair of surrogates is one. */
function charsIn(text: string): number {
  let chars = text.length;
  for (let at = 0; at < text.length; at++) if (isHighSurrogate(text.charCodeAt(at))) chars--;
  return chars;
}

interface Cleaned {
  text: string;
  /** What was taken out, in the singular -> how many of it. */
  taken: ReadonlyMap<string, number>;
}

const NOTHING: ReadonlyMap<string, number> = new Map();

/** Matches of a global expression. */
function countMatches(expression: RegExp, text: string): number {
  let matches = 0;
  while (expression.test(text)) matches++;
  return matches;
}

/**
 * Does what `cleanText` does, and tells how much of what it took out: the text may be a file or a log, whose reader has
 * to know that something is missing. Line ends of Windows stay, because an edit of that file needs them.
 */
export function cleanContent(text: string): Cleaned {
  if (PLAIN.test(text)) return { text, taken: NOTHING };
  const taken = new Map<string, number>();
  const note = (what: string, count: number): void => {
    if (count > 0) taken.set(what, count);
  };
  const without = (before: string, what: string, ...expressions: RegExp[]): string => {
    const after = expressions.reduce((left, expression) => left.replace(expression, ""), before);
    if (after.length < before.length) note(what, charsIn(before) - charsIn(after));
    return after;
  };
  const colours = countMatches(COLOURS, text);
  note("terminal colour", colours);
  note("terminal command", countMatches(ESCAPES, text) - colours);
  let left = without(withoutEscapes(text), "control character", CONTROL);
  left = without(left, "direction mark", DIRECTION);
  note("foreign line end", countMatches(FOREIGN_LINE_END, left));
  left = left.replace(FOREIGN_LINE_END, "\n").toWellFormed();
  left = without(left, "invisible character", ...hiddenIn(left));
  return { text: left, taken };
}

/**
 * The blocks without what acts on a terminal and what no person sees. `taken`: what that was, for example
 * `3 invisible characters, 1 terminal colour`; empty if nothing was taken out. A block of which nothing is left is left out.
 */
export function cleanBlocks(blocks: readonly ResultContent[]): { blocks: ResultContent[]; taken: string } {
  const taken = new Map<string, number>();
  const clean = blocks.map((block) => {
    if (!isTextBlock(block)) return block;
    const { text, taken: here } = cleanContent(block.text);
    for (const [what, count] of here) taken.set(what, (taken.get(what) ?? 0) + count);
    return here.size === 0 && text === block.text ? block : textBlock(text);
  });
  return {
    blocks: clean.filter((block, at) => !isTextBlock(block) || block.text !== "" || blocks[at] === block),
    taken: [...taken].map(([what, count]) => counted(count, what)).join(", "),
  };
}

type TextBlock = Extract<ResultContent, { type: "text" }>;

export const textBlock = (text: string): TextBlock => ({ type: "text", text });

export const isTextBlock = (block: ResultContent): block is TextBlock => block.type === "text";
