/**
 * Which names of a server's tools stand in the description of ToolSearch, where not all have room. Made by the cache worker
 * alone: it compares all names of a server with each other, and main would pay for the code and for the time. Pure.
 */
import { estimateTokens } from "../../../src/shared/text/search-tool.ts";

/** Words of a tool's name, without the mark of a plural: "get" and "Issue" of `getIssues`. */
const NAME_WORDS = /[A-Z]?[a-z]+?(?=s?(?![a-z]))|[A-Z]+(?![a-z])|[0-9]+|[^\0-\x7f]+/g;

/**
 * Positions of the names, the most telling first: short, of words that many of the names have and no name before it. Each is
 * looked for when it is asked for, since few are shown.
 */
export function* tellingNames(names: readonly string[]): Generator<number, undefined> {
  const numbers = new Map<string, number>();
  /** Uses of each word; 0 once a name has said it. */
  const uses: number[] = [];
  const open = names.map((name, at) => {
    const words = (name.match(NAME_WORDS) ?? []).map((written) => {
      const word = written.toLowerCase();
      const number = numbers.get(word) ?? uses.length;
      numbers.set(word, number);
      uses[number] = (uses[number] ?? 0) + 1;
      return number;
    });
    return { at, words, length: Math.sqrt(estimateTokens(name) + 1) };
  });
  while (open.length > 0) {
    let most = -1;
    let best = 0;
    open.forEach(({ words, length }, at) => {
      let worth = 0;
      for (const word of words) worth += uses[word] ?? 0;
      if (worth / length <= most) return;
      most = worth / length;
      best = at;
    });
    for (const { at, words } of open.splice(best, 1)) {
      yield at;
      for (const word of words) uses[word] = 0;
    }
  }
}
