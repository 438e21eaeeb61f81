/**
 * Finds where to cut a text: by UTF-8 bytes and by lines, between characters, at a line end if one is near. Only the
 * part that is kept is read, so the length of the text does not matter. Pure.
 */
import { isHighSurrogate, isLowSurrogate } from "../../../src/shared/text/unprintable.ts";

export interface Budget {
  bytes: number;
  lines: number;
}

/** Number of lines in a text. A newline at the end does not begin another line. */
export function countLines(text: string): number {
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
export function headEnd(text: string, { bytes, lines }: Budget): number {
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
export function tailStart(text: string, { bytes, lines }: Budget): number {
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
