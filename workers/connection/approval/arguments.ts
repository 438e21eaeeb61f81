/**
 * The arguments of a call as the question shows them: one on each line, in which nothing can pass for another line or for
 * other letters. A long argument is cut, so that it cannot push another one out of the question. Pure.
 */
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { withoutHalfAtEnd } from "../../../src/shared/text/unprintable.ts";
import { escaped, shown } from "../config/entry/shown-text.ts";

const NAME_CHARS = 200;
/** An argument gets no less than this, also beside many others. */
const FEWEST_CHARS = 200;
/** The usual name of an argument, and what says that its value is cut. */
const BESIDE_CHARS = 250;
const LAST_LINE_CHARS = 100;

const count = (chars: number): string => chars.toLocaleString("en");

/** A name of a server, a tool or an argument. */
export const shownName = (name: string): string =>
  name.length <= NAME_CHARS ? shown(name) : `${shown(start(name, NAME_CHARS))}…`;

const start = (text: string, chars: number): string => withoutHalfAtEnd(text.slice(0, chars));

/** JSON in at most so many characters, and how long it is if that is not all of it. */
function shownValue(value: unknown, chars: number): string {
  const json = JSON.stringify(value) ?? "nothing";
  const text = escaped(start(json, chars));
  if (json.length <= chars && text.length <= chars) return text;
  return `${start(text, chars)}… (cut, ${count(json.length)} characters in all)`;
}

/** At most `LIMITS.approvalChars` characters, the line that counts what is left out included. */
export function shownArguments(args: Record<string, unknown>): string {
  const entries = Object.entries(args);
  const room = LIMITS.approvalChars - LAST_LINE_CHARS;
  const each = Math.max(FEWEST_CHARS, Math.floor(room / Math.max(entries.length, 1)) - BESIDE_CHARS);
  const lines: string[] = [];
  let left = room;
  for (const [at, [name, value]] of entries.entries()) {
    const line = `${shownName(name)}: ${shownValue(value, each)}`;
    left -= line.length + 1;
    if (left < 0)
      return [...lines, `and ${count(entries.length - at)} more arguments, which are not shown`].join("\n");
    lines.push(line);
  }
  return lines.join("\n");
}
