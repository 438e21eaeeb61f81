/** Owns: reading Markdown pages for the tests of the documentation: code blocks, tables, links and anchors. Pure. */

export interface CodeBlock {
  language: string;
  /** The words after the language. */
  about: string;
  text: string;
}

export function codeBlocks(page: string): CodeBlock[] {
  return [...page.matchAll(/^```(\w+)[ ]*([^\n]*)\n([\s\S]*?)^```$/gm)].map(
    ([, language = "", about = "", text = ""]) => ({ language, about, text }),
  );
}

/** The page without its code blocks. */
export const proseOf = (page: string): string => page.replaceAll(/^```[\s\S]*?^```$/gm, "");

/** The code spans of the prose, without their marks. */
export const codeSpans = (page: string): string[] =>
  [...proseOf(page).matchAll(/`([^`\n]+)`/g)].map(([, text = ""]) => text);

/** The cells of each row of all tables, without rules. A bar in a code span is written `\|`. */
export function tableRows(page: string): string[][] {
  return proseOf(page)
    .split("\n")
    .filter((line) => line.startsWith("|") && !/^\|[\s|:-]+\|$/.test(line))
    .map((line) =>
      line
        .slice(1, line.lastIndexOf("|"))
        .split(/(?<!\\)\|/)
        .map((cell) => cell.trim()),
    );
}

/** The targets of links and pictures. */
export function linksOf(page: string): string[] {
  const prose = proseOf(page).replaceAll(/`[^`\n]+`/g, "");
  const links = [...prose.matchAll(/\]\(([^)\s]+)\)/g)];
  const pictures = [...prose.matchAll(/\b(?:src|srcset)="([^"]+)"/g)];
  return [...links, ...pictures].map(([, target = ""]) => target);
}

/** The anchors of the headings, as GitHub makes them: lower case, no punctuation, spaces to hyphens. */
export function anchorsOf(page: string): string[] {
  const seen = new Map<string, number>();
  return [...proseOf(page).matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) => {
    const anchor = heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
      .replaceAll(" ", "-");
    const times = seen.get(anchor) ?? 0;
    seen.set(anchor, times + 1);
    return times === 0 ? anchor : `${anchor}-${times}`;
  });
}
