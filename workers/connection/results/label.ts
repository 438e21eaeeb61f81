/**
 * Names, titles and addresses of a server's content as they stand in a line of ours: on one line, bounded, and
 * without what a terminal acts on, so that none of them passes for another line or a part of the label. Pure.
 */

import { oneLine } from "../../../src/shared/text/unprintable.ts";
import type { Redactor } from "../secrets/secrets.ts";

const LABEL_CHARS = 1_000;

/** A string that says something, as a label; `otherwise` for anything else. */
export function label(value: unknown, otherwise: string, redact: Redactor): string {
  return (typeof value === "string" ? oneLine(redact(value), LABEL_CHARS) : "") || otherwise;
}

/** What stands before the text of an embedded resource, in the same text. */
const RESOURCE = /^\[Resource: [^\n]*\]\n/;

/** `label` with its line end, or empty; `body` behind it. */
export function splitLabel(text: string): { label: string; body: string } {
  const [label = ""] = RESOURCE.exec(text) ?? [];
  return { label, body: text.slice(label.length) };
}
