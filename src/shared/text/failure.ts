/**
 * The text of a failure, the same for all: what failed and on which server, why in the server's own words,
 * what to do, what the tool expects. Also bounds the data that goes with it. Pure.
 */
import type { ErrorData, JsonValue } from "../protocol/errors.ts";
import { LIMITS } from "../protocol/limits.ts";
import { cleanText } from "./unprintable.ts";

export interface Failure {
  /** Says what failed on which server and why. */
  message: string;
  remedy?: string | undefined;
  /** `status`: HTTP status. `stderrTail`: the server's last words. */
  data?: ErrorData | undefined;
  /** The tool's parameters, where it has a schema. */
  expected?: string | undefined;
}

const STDERR_LINES = 10;
const STDERR_CHARS = 2_000;

/** The last lines of a server's stderr, without what a terminal would act on. */
function lastWords(stderr: JsonValue | undefined): string[] {
  if (typeof stderr !== "string") return [];
  const lines = cleanText(stderr.slice(-STDERR_CHARS))
    .split("\n")
    .map((line) => line.trimEnd())
    .filter((line) => line !== "")
    .slice(-STDERR_LINES);
  return lines.length === 0 ? [] : ["Its last words on stderr:", ...lines.map((line) => `  ${line}`)];
}

export function failureText({ message, remedy, data, expected }: Failure): string {
  const status = data?.status;
  const says = typeof status === "number" && !message.includes(String(status)) ? ` (HTTP ${status})` : "";
  // A message that quotes stderr already, as those of a died server do, is not repeated.
  const quoted = typeof data?.stderrTail === "string" && message.includes(data.stderrTail.trim());
  const words = quoted ? [] : lastWords(data?.stderrTail);
  const what = `${message}${says}`;
  const advice = remedy ? [remedy] : [];
  return cleanText(
    [
      ...(words.length === 0 ? [[what, ...advice].join(" ")] : [what, ...words, ...advice]),
      ...(expected ? [`Expected parameters: ${expected}`] : []),
    ].join("\n"),
  );
}

export interface BoundOptions {
  maxBytes?: number;
  /** Takes secrets out of what is cut; of what is whole, whoever shows it does. */
  redact?: (text: string) => string;
}

/** The value if its JSON has at most `maxBytes`; else the beginning of that JSON, marked as such. */
export function boundJson(value: unknown, options: BoundOptions = {}): JsonValue {
  const { maxBytes = LIMITS.errorDataBytes, redact = (text) => text } = options;
  let json: string | undefined;
  try {
    json = JSON.stringify(value);
  } catch (error) {
    // A cycle, or depth beyond what V8 writes.
    return { unreadable: (error as Error).message };
  }
  if (json === undefined) return null;
  const bytes = utf8Bytes(json);
  if (bytes <= maxBytes) return JSON.parse(json) as JsonValue;
  // Quoting can double a text, and a character has up to three bytes.
  const start = redact(json)
    .slice(0, Math.floor(maxBytes / 6))
    .toWellFormed();
  return { truncated: true, bytes, start };
}

/** Without Node and the DOM, which this folder does not know. */
function utf8Bytes(text: string): number {
  let bytes = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    // Each half of a pair stands for two of its four bytes.
    if (code < 0x80) bytes += 1;
    else if (code < 0x800 || (code >= 0xd800 && code <= 0xdfff)) bytes += 2;
    else bytes += 3;
  }
  return bytes;
}
