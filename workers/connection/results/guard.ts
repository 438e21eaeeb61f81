/**
 * Bounds the text of a result for the model. The model gets the start and the end, or for long lines of JSON their
 * structure, with a line that says how much is missing and which file holds all of it. The limits hold for all texts
 * of a result together. A text that is too long is never copied: it is measured, cut and written in place.
 */

import type { ResultContent } from "../../../src/shared/protocol/calls.ts";
import { textBlock } from "../../../src/shared/text/text-block.ts";
import type { GuardLimits } from "../config/entry/settings.ts";
import { amount } from "./amount.ts";
import { countLines, headEnd, tailStart } from "./cut.ts";
import type { ResultStore, Saved } from "./store.ts";
import { type Structure, structureOf } from "./structure.ts";

/** Part of the limit for the line that says what is missing, with the path. */
const NOTICE_BYTES = 512;
const NOTICE_LINES = 3;
/** Enough to show a model the kinds of data; the rest is in the file. */
const OUTLINE_CHARS = 8 * 1024;
/** Limit for texts of one result that are shown by their structure, the longest first. */
const OUTLINES = 10;

interface Measured {
  content: ResultContent;
  bytes: number;
  lines: number;
}

export interface Guarded {
  content: ResultContent[];
  /** Some text is left out. */
  cut: boolean;
  /** Path of the file with all of the text. */
  storedAt?: string;
}

const textOf = (content: ResultContent | undefined): string => (content?.type === "text" ? content.text : "");

/** The size of a text of 60 MB is counted in 15 ms, and asked for several times. */
const measured = new WeakMap<ResultContent, Measured>();

export function measure(content: ResultContent): Measured {
  const known = measured.get(content);
  if (known) return known;
  const now =
    content.type === "text"
      ? { content, bytes: Buffer.byteLength(content.text), lines: countLines(content.text) }
      : { content, bytes: 0, lines: 0 };
  measured.set(content, now);
  return now;
}

const total = (parts: readonly Measured[]): { bytes: number; lines: number } => {
  const texts = parts.filter(({ content }) => content.type === "text");
  const sum = (key: "bytes" | "lines"): number => texts.reduce((all, part) => all + part[key], 0);
  // A newline stands between two texts.
  return { bytes: sum("bytes") + Math.max(texts.length - 1, 0), lines: sum("lines") };
};

/** How many parts fit as a whole, from the first part on, and the rest of the budget. */
function takeWhole(parts: Iterable<Measured>, budget: GuardLimits): { taken: number; left: GuardLimits } {
  const left = { ...budget };
  let taken = 0;
  for (const { content, bytes, lines } of parts) {
    if (content.type === "text") {
      if (bytes > left.maxBytes || lines > left.maxLines) break;
      left.maxBytes -= bytes + 1;
      left.maxLines -= lines;
    }
    taken++;
  }
  return { taken, left };
}

interface Cut {
  /** The part in which the kept start ends, and the end within its text. */
  head: { part: number; end: number };
  /** The part in which the kept end begins, and the start within its text. */
  tail: { part: number; start: number };
}

function cutAt(parts: readonly Measured[], limits: GuardLimits): Cut {
  const half = {
    maxBytes: Math.floor(Math.max(limits.maxBytes - NOTICE_BYTES, limits.maxBytes / 2) / 2),
    maxLines: Math.floor(Math.max(limits.maxLines - NOTICE_LINES, limits.maxLines / 2) / 2),
  };
  // However small the limit is, at least one byte and one line of the start are kept.
  const fromStart = takeWhole(parts, {
    maxBytes: Math.max(half.maxBytes, 1),
    maxLines: Math.max(half.maxLines, 1),
  });
  const fromEnd = takeWhole(parts.toReversed(), half);
  const head = fromStart.taken;
  const tail = parts.length - 1 - fromEnd.taken;
  const budgetOf = ({ left }: { left: GuardLimits }) => ({ bytes: left.maxBytes, lines: left.maxLines });
  return {
    head: { part: head, end: headEnd(textOf(parts[head]?.content), budgetOf(fromStart)) },
    tail: { part: tail, start: tailStart(textOf(parts[tail]?.content), budgetOf(fromEnd)) },
  };
}

const bytesText = (bytes: number): string => `${bytes.toLocaleString("en")} bytes`;

/**
 * Index of a text -> its structure, for as many of the longest texts as must be shortened for all to fit. Undefined if
 * that does not help.
 */
function structures(parts: readonly Measured[], limits: GuardLimits): Map<number, Structure> | undefined {
  const left = total(parts);
  const found = new Map<number, Structure>();
  const longest = parts
    .map((part, index) => ({ ...part, index }))
    .filter(({ content }) => content.type === "text")
    .toSorted((a, b) => b.bytes - a.bytes)
    .slice(0, OUTLINES);
  for (const { content, bytes, lines, index } of longest) {
    const maxChars = Math.min(OUTLINE_CHARS, limits.maxBytes / 2);
    const structure = structureOf(textOf(content), { bytes, lines, maxChars });
    if (!structure) return undefined;
    found.set(index, structure);
    left.bytes -= bytes - Buffer.byteLength(structure.outline) - Buffer.byteLength(structure.prefix);
    // The lines of an outline do not count.
    left.lines -= lines;
    if (left.bytes <= limits.maxBytes && left.lines <= limits.maxLines) return found;
  }
  return undefined;
}

/** The words before the JSON, its size and its outline. `where`: a sentence with the path of the whole. */
function structureText({ prefix, text, outline, values }: Structure, where: string): string {
  const of = values === undefined ? "" : `, ${values.toLocaleString("en")} values`;
  const which = values === undefined ? "shown" : "the first shown";
  const size = `${bytesText(Buffer.byteLength(text))} of JSON in ${amount(countLines(text), "line")}${of}`;
  const notice = `[${size}, ${which} by its structure.${where}]`;
  return [...(prefix === "" ? [] : [prefix]), notice, outline].join("\n");
}

/** Extension of the file with all of the text. */
function extensionOf(parts: readonly Measured[], found: ReadonlyMap<number, Structure> | undefined): string {
  const texts = parts.filter(({ content }) => content.type === "text");
  const [only] = [...(found?.values() ?? [])];
  if (!only || texts.length > 1 || only.prefix !== "") return "txt";
  return only.values === undefined ? "json" : "jsonl";
}

/** All texts, with a newline between two of them, as parts to write one after the other. */
export function* wholeText(contents: readonly ResultContent[]): Generator<string> {
  let first = true;
  for (const content of contents) {
    if (content.type !== "text") continue;
    if (!first) yield "\n";
    first = false;
    yield content.text;
  }
}

function withoutMiddle(parts: readonly Measured[], { head, tail }: Cut, notice: string): ResultContent[] {
  const contents = parts.map(({ content }) => content);
  const start = textOf(contents[head.part]).slice(0, head.end);
  const end = textOf(contents[tail.part]).slice(tail.start);
  const opening = start === "" ? notice : `${start}\n${notice}`;
  const between = contents.slice(head.part, tail.part + 1).filter(({ type }) => type !== "text");
  const middle =
    head.part === tail.part
      ? [textBlock(end === "" ? opening : `${opening}\n${end}`)]
      : [textBlock(opening), ...between, ...(end === "" ? [] : [textBlock(end)])];
  return [...contents.slice(0, head.part), ...middle, ...contents.slice(tail.part + 1)];
}

/** The parts of the texts that are kept, measured. */
function keptParts(parts: readonly Measured[], { head, tail }: Cut): Measured[] {
  const ends = [
    textOf(parts[head.part]?.content).slice(0, head.end),
    textOf(parts[tail.part]?.content).slice(tail.start),
  ];
  return [
    ...parts.slice(0, head.part),
    ...ends.filter((end) => end !== "").map((end) => measure(textBlock(end))),
    ...parts.slice(tail.part + 1),
  ];
}

const isWithin = ({ bytes, lines }: { bytes: number; lines: number }, limits: GuardLimits): boolean =>
  bytes <= limits.maxBytes && lines <= limits.maxLines;

/** Whether nothing would be left out. */
export const fitsGuard = (content: readonly ResultContent[], limits: GuardLimits | false): boolean =>
  limits === false || isWithin(total(content.map(measure)), limits);

/** Where all of the text is, as a sentence. */
export const whereWhole = (saved: Saved): string =>
  "path" in saved ? `Full text: ${saved.path}` : `The full text could not be stored: ${saved.problem}`;

/** Never fails: if the full text cannot be stored, the notice says why. */
export async function guardOutput(
  content: readonly ResultContent[],
  { limits, store, label }: { limits: GuardLimits | false; store: ResultStore; label: string },
): Promise<Guarded> {
  if (limits === false) return { content: [...content], cut: false };
  const parts = content.map(measure);
  const whole = total(parts);
  if (isWithin(whole, limits)) return { content: [...content], cut: false };
  const found = structures(parts, limits);
  const saved = await store.save([...wholeText(content)], label, extensionOf(parts, found));
  const stored = "path" in saved ? { storedAt: saved.path } : {};
  const where = whereWhole(saved);
  if (found) {
    const first = Math.min(...found.keys());
    const shown = content.map((part, index) => {
      const structure = found.get(index);
      return structure ? textBlock(structureText(structure, index === first ? ` ${where}` : "")) : part;
    });
    return { content: shown, cut: true, ...stored };
  }
  const cut = cutAt(parts, limits);
  const kept = total(keptParts(parts, cut));
  const missing = `${bytesText(whole.bytes - kept.bytes)} of ${bytesText(whole.bytes)}`;
  const missingLines = whole.lines - kept.lines;
  const ofLines =
    missingLines > 0 ? ` (${amount(missingLines, "line")} of ${whole.lines.toLocaleString("en")})` : "";
  // ASCII: one character beyond Latin-1 would make each copy of the whole text in Pi twice as large and slower to read.
  const notice = `[... ${missing}${ofLines} left out here. ${where}]`;
  return { content: withoutMiddle(parts, cut, notice), cut: true, ...stored };
}
