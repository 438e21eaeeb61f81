/**
 * Undoes what Pi's editor does to a text beside what the person does: it has `\n` at the end of each line and four spaces for
 * a tab, and its answer begins and ends without white space. Pure.
 */

const TAB = "    ";

/** A text as the editor answers it if nobody changes it. */
const fromEditor = (text: string): string => text.replace(/\r\n?/g, "\n").replaceAll("\t", TAB).trim();

/** The lines of a text, each with its end. */
const linesOf = (text: string): string[] => text.split(/(?<=\n)|(?<=\r)(?!\n)/);

/** The lines of `before` by what the editor shows of them, each without its end. */
function linesAsWritten(before: string): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const line of linesOf(before)) {
    const written = line.replace(/[\r\n]+$/, "");
    const shown = written.replaceAll("\t", TAB);
    const same = found.get(shown);
    if (same) same.push(written);
    else found.set(shown, [written]);
  }
  return found;
}

/**
 * The text that is to be written: lines that nobody has edited are those of `before`, and so are the ends of lines, the white
 * space at both ends, and the indentation by tabs. The answer of another program's editor (RPC) is what it is, as far as it cannot
 * be Pi's. `before` itself if nothing was edited.
 */
export function asWritten(typed: string, before: string): string {
  if (typed !== fromEditor(typed)) return typed;
  if (typed === fromEditor(before)) return before;
  const known = linesAsWritten(before.trim());
  const byTabs = /^\t/m.test(before);
  const end = /\r\n|\r|\n/.exec(before)?.[0] ?? "\n";
  const lines = typed.split("\n").map((line) => {
    const same = known.get(line);
    // Lines that look alike are taken in their order.
    if (same) return (same.length > 1 ? same.shift() : same[0]) ?? line;
    return byTabs ? line.replace(/^ +/, (spaces) => spaces.replaceAll(TAB, "\t")) : line;
  });
  const [lead = ""] = /^\s*/.exec(before) ?? [];
  return lead + lines.join(end) + before.slice(before.trimEnd().length);
}
