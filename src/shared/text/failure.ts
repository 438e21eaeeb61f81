/**
 * The text of a failure, in one form everywhere: what failed on which server, the cause in the server's own words, the
 * remedy, and the parameters that the tool expects. Also bounds the data of an error. Pure.
 */

import type { ErrorData, JsonValue } from "../protocol/errors.ts";
import { LIMITS } from "../protocol/limits.ts";
import type { Finding, Severity } from "../protocol/person.ts";
import type { ConfigProblem } from "../protocol/session.ts";
import { cleanText } from "./unprintable.ts";

export interface Failure {
  /** Says what failed on which server and why. */
  message: string;
  remedy?: string | undefined;
  /** `status`: HTTP status. `stderrTail`: the server's last words. */
  data?: ErrorData | undefined;
  /** The tool's parameters, if it has a schema. */
  expected?: string | undefined;
}

const STDERR_LINES = 10;
const STDERR_CHARS = 2_000;

/** The last lines of a server's stderr, without characters that a terminal acts on. */
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
  // The message of a died server quotes its stderr already; it is not repeated.
  const quoted = typeof data?.stderrTail === "string" && message.includes(data.stderrTail.trim());
  const words = quoted ? [] : lastWords(data?.stderrTail);
  const what = `${message}${says}`;
  const advice = remedy ? [remedy] : [];
  return cleanText(
    [
      // Nothing of ours shares a line with a server's words.
      ...(words.length === 0 && !what.includes("\n")
        ? [[what, ...advice].join(" ")]
        : [what, ...words, ...advice]),
      ...(expected ? [`Expected parameters: ${expected}`] : []),
    ].join("\n"),
  );
}

/**
 * The value if its JSON has at most `maxBytes`, else `{truncated, bytes, start}` with the start of its JSON. `redact`:
 * removes secrets from JSON before it is cut. Data that is not cut is redacted by the code that shows it.
 */
export function boundJson(
  value: unknown,
  {
    maxBytes = LIMITS.errorDataBytes,
    redact = (text) => text,
  }: { maxBytes?: number; redact?: (text: string) => string } = {},
): JsonValue {
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

/** Bytes of the text in UTF-8, counted without Node or the DOM, which this folder does not know. */
function utf8Bytes(text: string): number {
  let bytes = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    // Each surrogate of a pair stands for two of the four bytes.
    if (code < 0x80) bytes += 1;
    else if (code < 0x800 || (code >= 0xd800 && code <= 0xdfff)) bytes += 2;
    else bytes += 3;
  }
  return bytes;
}

/** File, position, key, what is wrong, what to do. */
export function describeProblem(problem: ConfigProblem): string {
  const at = problem.line === undefined ? problem.file : `${problem.file}:${problem.line}:${problem.column}`;
  const stop = problem.message.endsWith("?") ? "" : ".";
  return `${at}: ${problem.key ? `${problem.key}: ` : ""}${problem.message}${stop} ${problem.remedy}`;
}

const RANKS: Readonly<Record<Severity, number>> = { error: 0, warning: 1, note: 2, ok: 3 };

/** Whether there is something to do. */
export const isTrouble = ({ severity }: Pick<Finding, "severity">): boolean =>
  severity === "error" || severity === "warning";

/** The worst first; findings of one severity keep their order. */
export const worstFirst = (findings: readonly Finding[]): Finding[] =>
  findings.toSorted((a, b) => RANKS[a.severity] - RANKS[b.severity]);
