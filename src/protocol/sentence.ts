/** Short forms of foreign text, for lines of a list. */

const SENTENCE_CHARS = 160;

export const cut = (text: string, chars: number): string =>
  text.length > chars ? `${text.slice(0, chars - 1)}…` : text;

/** The first sentence of a description, in one line. */
export function firstSentence(description: string): string {
  const line = description.trim().split(/\r?\n/, 1)[0] ?? "";
  const sentence = /^.*?[.!?。](?=\s|$)/u.exec(line)?.[0] ?? line;
  return cut(sentence, SENTENCE_CHARS);
}
