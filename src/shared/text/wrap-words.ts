/** Lines for a terminal that a person reads and copies from. Pure. */
import { mostCells } from "./width.ts";

/**
 * Lines of at most `columns` cells, broken at spaces and indented as the text is; a longer word, such as a path or an
 * address, stays whole.
 */
export function wrapWords(text: string, columns: number): string[] {
  const indent = /^ */.exec(text)?.[0] ?? "";
  const lines: string[] = [];
  let line = indent;
  for (const word of text.slice(indent.length).split(" ")) {
    if (line !== indent && mostCells(line) + 1 + mostCells(word) > columns) {
      lines.push(line);
      line = indent + word;
    } else line = line === indent ? indent + word : `${line} ${word}`;
  }
  return [...lines, line];
}
