/** Short forms of foreign text, for lines of a list. Pure. */
import { cut, oneLine } from "./unprintable.ts";

const SENTENCE_CHARS = 160;

/** The first sentence of a description, in one line. */
export function firstSentence(description: string): string {
  // The text behind the longest sentence that is shown changes nothing.
  const start = description.slice(0, 4 * SENTENCE_CHARS).trimStart();
  const line = /^[^\r\n\u2028\u2029]*/.exec(start)?.[0] ?? "";
  const sentence = /^.*?[.!?\u3002](?=\s|$)/u.exec(line.slice(0, SENTENCE_CHARS + 2))?.[0] ?? line;
  return cut(oneLine(sentence, SENTENCE_CHARS), SENTENCE_CHARS);
}
