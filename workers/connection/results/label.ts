/**
 * Names, titles and addresses of a server's content as a part of one of our lines: bounded, without line ends, and
 * without characters that a terminal acts on or that nobody sees, so that none of them looks like another line. Pure.
 */

import { oneLine } from "../../../src/shared/text/unprintable.ts";
import type { Redactor } from "../secrets/redact.ts";

const LABEL_CHARS = 1_000;

/** A string that says something, as a label; `otherwise` for anything else. */
export function label(value: unknown, otherwise: string, redact: Redactor): string {
  return (typeof value === "string" ? oneLine(redact(value), LABEL_CHARS) : "") || otherwise;
}

/** The label before the text of an embedded resource, in the same text. */
const RESOURCE = /^\[Resource: [^\n]*\]\n/;

/** `label`: with its line end, or empty. `body`: the rest. */
export function splitLabel(text: string): { label: string; body: string } {
  const [label = ""] = RESOURCE.exec(text) ?? [];
  return { label, body: text.slice(label.length) };
}
