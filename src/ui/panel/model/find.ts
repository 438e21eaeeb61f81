/**
 * The tools of all servers that the words of the panel's box name. Thousands of tools are looked at once for each change of the
 * words, and a longer text looks only at what the shorter one let through. Pure, but for what it keeps beside an index.
 */

/** One tool that a search finds. */
export interface FoundTool {
  /** Name in Pi. */
  name: string;
  server: string;
  /** The server's own name of it. */
  tool: string;
  description: string;
  /** Names and description as they are compared, in small letters. */
  names: string;
  text: string;
}

export type ToolIndex = readonly FoundTool[];

export interface Found {
  /** Tools whose names have all the words, and those whose descriptions have some of them; the best first, bounded. */
  named: readonly FoundTool[];
  described: readonly FoundTool[];
  /** All that fit, also those that are not among these. */
  count: number;
}

/** More tools than a person looks through; the next letter leaves fewer. */
const MOST = 40;
const NONE: Found = { named: [], described: [], count: 0 };

export const wordsOf = (filter: string): string[] => filter.toLowerCase().split(/\s+/).filter(Boolean);

/** The words in any order. */
export const hasWords = (text: string, words: readonly string[]): boolean =>
  words.every((word) => text.includes(word));

interface Kept {
  filter: string;
  fitting: readonly FoundTool[];
  found: Found;
}

const kept = new WeakMap<ToolIndex, Kept>();

/** `3`: the tool's own name begins with the first word. `0`: only its description has the words. */
function rank({ tool, names }: FoundTool, words: readonly string[]): number {
  const [first = ""] = words;
  if (!hasWords(names, words)) return 0;
  const own = tool.toLowerCase();
  return own.startsWith(first) ? 3 : hasWords(own, words) ? 2 : 1;
}

export function foundIn(index: ToolIndex, filter: string): Found {
  const words = wordsOf(filter);
  if (words.length === 0) return NONE;
  const before = kept.get(index);
  if (before?.filter === filter) return before.found;
  const from = before && filter.startsWith(before.filter) ? before.fitting : index;
  const fitting = from.filter(({ text }) => hasWords(text, words));
  const ranked: FoundTool[][] = [[], [], [], []];
  for (const tool of fitting) ranked[rank(tool, words)]?.push(tool);
  const [described = [], ...byName] = ranked;
  const named = byName.toReversed().flat().slice(0, MOST);
  const found = { named, described: described.slice(0, MOST - named.length), count: fitting.length };
  kept.set(index, { filter, fitting, found });
  return found;
}
