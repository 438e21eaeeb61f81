/** Turns offsets in a text into lines and columns. Pure. */

/** Line and column, both from 1. */
export interface Position {
  line: number;
  column: number;
}

/** Characters between two marks. A text can consist of line ends only, so a mark for each line would be too many. */
const MARK_CHARS = 1_024;

interface Mark {
  line: number;
  /** Where that line starts. */
  start: number;
}

/** The line that is open at the end of `characters`, which begin at the offset `from`. */
function after(mark: Mark, characters: string, from: number): Mark {
  let { line, start } = mark;
  for (let i = characters.indexOf("\n"); i !== -1; i = characters.indexOf("\n", i + 1)) {
    line++;
    start = from + i + 1;
  }
  return { line, start };
}

/** The line that is open at each multiple of `MARK_CHARS`. */
function marksOf(text: string): Mark[] {
  const marks: Mark[] = [];
  let mark: Mark = { line: 1, start: 0 };
  for (let from = 0; from <= text.length; from += MARK_CHARS) {
    marks.push(mark);
    mark = after(mark, text.slice(from, from + MARK_CHARS), from);
  }
  return marks;
}

/** Turns offsets of one text into positions. */
export function positions(text: string): (offset: number) => Position {
  let marks: Mark[] | undefined;
  return (offset) => {
    // Nobody asks for a position in most files.
    marks ??= marksOf(text);
    const block = Math.floor(offset / MARK_CHARS);
    const from = block * MARK_CHARS;
    const { line, start } = after(marks[block] ?? { line: 1, start: 0 }, text.slice(from, offset), from);
    return { line, column: offset - start + 1 };
  };
}
