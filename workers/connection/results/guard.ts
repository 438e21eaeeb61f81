/**
 * Bounds the text of a result for the model. The model gets the start and the end, or for long lines of JSON their
 * structure, with a line that says how much is missing and which file holds all of it. The limits hold for all texts
 * of a result together. A text that is too long is never copied: it is measured, cut and written in place.
 */

import type { ResultContent } from "../../../src/shared/protocol/calls.ts";
import { grouped } from "../../../src/shared/text/amounts.ts";
import { textBlock } from "../../../src/shared/text/clean-blocks.ts";
import { isHighSurrogate, isLowSurrogate } from "../../../src/shared/text/unprintable.ts";
import type { GuardLimits } from "../config/entry/settings.ts";
import type { ResultStore, Saved } from "./files.ts";
import { amount, type Structure, structureOf } from "./outline.ts";

interface Budget {
  bytes: number;
  lines: number;
}

/** Number of lines in a text. A newline at the end does not begin another line. */
function countLines(text: string): number {
  let lines = 0;
  let at = 0;
  while (at < text.length) {
    lines++;
    const end = text.indexOf("\n", at);
    if (end === -1) break;
    at = end + 1;
  }
  return Math.max(lines, 1);
}

/** Start of the line that holds `end`, if at least half of the part is still kept; otherwise `end`. */
function backToLineEnd(text: string, end: number): number {
  if (end >= text.length || text.charCodeAt(end) === 0x0a) return end;
  const newline = text.lastIndexOf("\n", end - 1);
  return newline >= end / 2 ? newline : end;
}

/** Index at which the kept start ends. The rest may begin with the newline of the last kept line. */
function headEnd(text: string, { bytes, lines }: Budget): number {
  if (bytes <= 0 || lines <= 0) return 0;
  // `encodeInto` takes only whole characters, and only as many as fit.
  const { read } = new TextEncoder().encodeInto(text.slice(0, bytes), new Uint8Array(bytes));
  let end = read;
  let newline = -1;
  // A search in the whole of a text without line ends would read all of it.
  const kept = text.slice(0, end);
  for (let line = 0; line < lines; line++) {
    newline = kept.indexOf("\n", newline + 1);
    if (newline === -1) break;
    if (line === lines - 1) end = newline;
  }
  end = backToLineEnd(text, end);
  return end > 0 && text.charCodeAt(end) === 0x0a && text.charCodeAt(end - 1) === 0x0d ? end - 1 : end;
}

/** First index from which the rest has at most `bytes` bytes. */
function lastBytes(text: string, bytes: number): number {
  const from = Math.max(0, text.length - bytes);
  const encoded = Buffer.from(text.slice(from));
  let skip = Math.max(0, encoded.length - bytes);
  // 10xxxxxx continues a UTF-8 sequence (RFC 3629, section 3): go on to the start of one.
  while (skip < encoded.length && ((encoded[skip] ?? 0) & 0xc0) === 0x80) skip++;
  const start = text.length - encoded.toString("utf8", skip).length;
  const splitsPair =
    start > 0 && isLowSurrogate(text.charCodeAt(start)) && isHighSurrogate(text.charCodeAt(start - 1));
  return splitsPair ? start + 1 : start;
}

/** Index at which the kept end starts: at the beginning of a line if one is near. */
function tailStart(text: string, { bytes, lines }: Budget): number {
  if (bytes <= 0 || lines <= 0) return text.length;
  let start = lastBytes(text, bytes);
  const first = start;
  const kept = text.slice(first);
  let newline = kept.endsWith("\n") ? kept.length - 1 : kept.length;
  for (let line = 0; line < lines; line++) {
    newline = newline <= 0 ? -1 : kept.lastIndexOf("\n", newline - 1);
    if (newline === -1) break;
    if (line === lines - 1) start = first + newline + 1;
  }
  if (start === 0 || text.charCodeAt(start - 1) === 0x0a) return start;
  const next = text.indexOf("\n", start);
  return next !== -1 && next + 1 - start <= (text.length - start) / 2 ? next + 1 : start;
}

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

const bytesText = (bytes: number): string => `${grouped(bytes)} bytes`;

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
  const of = values === undefined ? "" : `, ${grouped(values)} values`;
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
  const saving = store.save([...wholeText(content)], label, extensionOf(parts, found));
  const stored = (saved: Saved): { storedAt?: string } => ("path" in saved ? { storedAt: saved.path } : {});
  if (found) {
    const saved = await saving;
    const where = whereWhole(saved);
    const first = Math.min(...found.keys());
    const shown = content.map((part, index) => {
      const structure = found.get(index);
      return structure ? textBlock(structureText(structure, index === first ? ` ${where}` : "")) : part;
    });
    return { content: shown, cut: true, ...stored(saved) };
  }
  // While the file is written.
  const cut = cutAt(parts, limits);
  const kept = total(keptParts(parts, cut));
  const missing = `${bytesText(whole.bytes - kept.bytes)} of ${bytesText(whole.bytes)}`;
  const missingLines = whole.lines - kept.lines;
  const ofLines = missingLines > 0 ? ` (${amount(missingLines, "line")} of ${grouped(whole.lines)})` : "";
  const saved = await saving;
  // ASCII: one character beyond Latin-1 would make each copy of the whole text in Pi twice as large and slower to read.
  const notice = `[... ${missing}${ofLines} left out here. ${whereWhole(saved)}]`;
  return { content: withoutMiddle(parts, cut, notice), cut: true, ...stored(saved) };
}
