/**
 * Names, titles and addresses of a server's content as they stand in a line of ours: on one line, bounded, and
 * without what a terminal acts on, so that none of them passes for another line or a part of the label. Pure.
 */

const LABEL_CHARS = 1_000;

/** Line ends and other control characters, and what turns the order of letters around. */
const UNFIT =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is to be found.
  /[\s\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]+/g;

/** A string that says something, as a label; or `otherwise`. */
export function label(value: unknown, otherwise: string, redact: (text: string) => string): string {
  if (typeof value !== "string") return otherwise;
  const line = redact(value).replace(UNFIT, " ").trim();
  if (line === "") return otherwise;
  if (line.length <= LABEL_CHARS) return line.toWellFormed();
  return `${line.slice(0, LABEL_CHARS).toWellFormed()}…`;
}

/** What stands before the text of an embedded resource, in the same text. */
const RESOURCE = /^\[Resource: [^\n]*\]\n/;

/** `label` with its line end, or empty; `body` behind it. */
export function splitLabel(text: string): { label: string; body: string } {
  const [label = ""] = RESOURCE.exec(text) ?? [];
  return { label, body: text.slice(label.length) };
}
