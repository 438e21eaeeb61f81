/**
 * Owns pins: tools that a query names, which ranking must never lose. A name is written as `tool`, `server__tool`,
 * `mcp__server__tool` or `server/tool`, with hyphens, underscores or camelCase; only its letters and digits are
 * compared. build/ranked.ts stores the keys, ranked.ts asks for the pins of a query.
 */

import { fnv1a } from "../../text/hash.ts";
import { characterKind, LINK, lettersAndDigits, OTHER } from "../words/characters.ts";
import { isStopWord } from "../words/stop-words.ts";
import type { SearchTool } from "./fields.ts";
import type { ToolIndex } from "./index-format.ts";

const secondSeed = 0x9e37_79b9;
const maxQueryCharacters = 4_000;
const maxWords = 256;
const maxNameWords = 5;
const maxKeyCharacters = 512;
/** The most pins of one query. Further tools with that name are left to the ranking. */
export const MAX_PINS = 32;
// Without the flag `u`, with which the first use, in the first query of a session, would take four times as long.
const between = /[\s,;|()[\]{}<>\u00ab\u00bb\u3001\u3002\uff0c]+/;
/** Words that may stand around names in a query of nothing but names. Stop words may stand there too. */
const connectors = new Set("call load run select activate enable get then plus please".split(" "));
const listWords = new Set("and or then plus with the".split(" "));
const quotes = new Set("'\"`“”‘’");
/** Spellings that are always names: `read_file`, `read-file`, `github.search`, `readFile`. */
const identifier = /[_\-./:]|^[a-z][a-z0-9]*[A-Z]/;

/** Three numbers for each key, sorted by hash: high, low, tool * 2 + (1 if the name is written with spaces). */
export function pinEntries(tools: readonly SearchTool[]): Uint32Array<ArrayBuffer> {
  const entries: [high: number, low: number, payload: number][] = [];
  tools.forEach((tool, id) => {
    const keys = new Set(
      [tool.name, `${tool.server} ${tool.name}`, withoutMcp(tool.fullName ?? "")].map(pinKey),
    );
    const spaced = /\s/u.test(tool.name.trim()) ? 1 : 0;
    for (const key of keys)
      if (key !== "") entries.push([fnv1a(key), fnv1a(key, secondSeed), id * 2 + spaced]);
  });
  entries.sort((a, b) => a[0] - b[0] || a[1] - b[1] || a[2] - b[2]);
  return Uint32Array.from(entries.flat());
}

/** Tools that the query names, in the order of the names. Tools that share a name take turns with those of other names. */
export function findPins(index: ToolIndex, query: string): number[] {
  const words = nameWords(index, query.slice(0, maxQueryCharacters));
  if (words.every(({ tools }) => tools.length === 0) && index.nameWords === 1) return [];
  const onlyNames = words.every(
    ({ tools, plain }) => tools.length > 0 || connectors.has(plain) || isStopWord(plain),
  );
  const named = words.map(
    ({ tools, explicit }, at) => tools.length > 0 && (explicit || onlyNames || isCalledTool(words, at)),
  );
  joinLists(words, named);
  const groups = new Set<readonly number[]>();
  const spacedUnder = onceEach((key) => lookUpKey(index, key, isSpaced));
  words.forEach(({ tools, key }, at) => {
    if (named[at]) groups.add(tools);
    let longer = key;
    for (let next = at + 1; next < words.length && next - at < index.nameWords; next++) {
      longer += words[next]!.key;
      const spaced = spacedUnder(longer);
      if (spaced.length > 0) groups.add(spaced);
    }
  });
  return takeTurns([...groups]);
}

/** Remembers the answers: a query may hold one word hundreds of times. */
function onceEach(find: (text: string) => number[]): (text: string) => readonly number[] {
  const found = new Map<string, readonly number[]>();
  return (text) => {
    let known = found.get(text);
    if (!known) {
      known = find(text);
      found.set(text, known);
    }
    return known;
  };
}

type NameWord = {
  readonly plain: string;
  readonly key: string;
  readonly tools: readonly number[];
  /** True for the spelling of a name: with separators inside, in camelCase, or quoted. */
  readonly explicit: boolean;
};

function nameWords(index: ToolIndex, query: string): NameWord[] {
  const words: NameWord[] = [];
  const toolsOf = onceEach((word) => lookUp(index, word));
  for (const raw of query.split(between)) {
    const word = trimPunctuation(raw);
    if (word === "" || words.length === maxWords) continue;
    const explicit = identifier.test(word) || (quotes.has(raw[0]!) && quotes.has(raw.at(-1)!));
    words.push({
      plain: word.toLowerCase(),
      key: pinKey(withoutMcp(word)),
      tools: toolsOf(word),
      explicit,
    });
  }
  return words;
}

/** Whether the word stands beside "tool", as in "the search tool" or "tool search". */
function isCalledTool(words: readonly NameWord[], at: number): boolean {
  return /^tools?$/u.test(words[at + 1]?.plain ?? "") || words[at - 1]?.plain === "tool";
}

/** Marks plain words that stand in a list with a name, or in a list of three, as in "read_file, fetch and search". */
function joinLists(words: readonly NameWord[], named: boolean[]): void {
  let list: number[] = [];
  const close = (): void => {
    if (list.length >= 3 || list.some((at) => named[at])) for (const at of list) named[at] = true;
    list = [];
  };
  words.forEach(({ tools, plain }, at) => {
    if (tools.length > 0) list.push(at);
    else if (!listWords.has(plain)) close();
  });
  close();
}

function takeTurns(groups: readonly (readonly number[])[]): number[] {
  const pins = new Set<number>();
  const longest = Math.max(0, ...groups.map((group) => group.length));
  for (let turn = 0; turn < longest; turn++) {
    for (const group of groups) if (turn < group.length && pins.size < MAX_PINS) pins.add(group[turn]!);
  }
  return [...pins];
}

/**
 * The first `MAX_PINS` accepted tools whose name is `name` in one of its forms. None if `name` names a server that does
 * not have the tool.
 */
export function toolsNamed(index: ToolIndex, name: string, accepts: ToolFilter = acceptAll): number[] {
  for (const form of [name, withoutMcp(name)]) {
    const found = lookUpKey(index, pinKey(form), (pin) => accepts(pin >>> 1));
    if (found.length > 0) return found;
  }
  return [];
}

function lookUp(index: ToolIndex, word: string): number[] {
  // The last form is the tool's own name, for a server that is unknown here or has spaces in its name.
  const names = identifier.test(word)
    ? [word, withoutMcp(word), /(?:__|[/:])((?:(?!__|[/:]).)+)$/.exec(word)?.[1] ?? ""]
    : [word];
  for (const name of names) {
    const found = lookUpKey(index, pinKey(name), acceptAll);
    if (found.length > 0) return found;
  }
  return [];
}

export type ToolFilter = (tool: number) => boolean;

const acceptAll = (): boolean => true;
/** Whether the tool's name in a packed pin is written with spaces. */
const isSpaced = (pin: number): boolean => (pin & 1) === 1;

/** The first `MAX_PINS` tools under a key. `accepts` gets a packed pin. */
function lookUpKey({ pins }: ToolIndex, key: string, accepts: (pin: number) => boolean): number[] {
  if (key === "") return [];
  const high = fnv1a(key);
  const low = fnv1a(key, secondSeed);
  let first = 0;
  let end = pins.length / 3;
  while (first < end) {
    const middle = (first + end) >>> 1;
    const order = pins[middle * 3]! - high || pins[middle * 3 + 1]! - low;
    if (order < 0) first = middle + 1;
    else end = middle;
  }
  const found: number[] = [];
  for (let at = first * 3; pins[at] === high && pins[at + 1] === low && found.length < MAX_PINS; at += 3) {
    if (accepts(pins[at + 2]!)) found.push(pins[at + 2]! >>> 1);
  }
  return found;
}

function pinKey(name: string): string {
  return lettersAndDigits(name.slice(0, maxKeyCharacters));
}

/** The most words in a name with spaces; 1 if no name has spaces. Bounds the neighbours that findPins joins. */
export function longestName(tools: readonly SearchTool[]): number {
  return tools.reduce(
    (most, { name }) => Math.min(maxNameWords, Math.max(most, name.trim().split(/\s+/u).length)),
    1,
  );
}

export function withoutMcp(name: string): string {
  const start = /^select:/iu.test(name) ? 7 : 0;
  return name.slice(start, start + 3).toLowerCase() === "mcp" && "_-./:".includes(name[start + 3] ?? "x")
    ? name.slice(start + 4)
    : name.slice(start);
}

function trimPunctuation(word: string): string {
  let start = 0;
  let end = word.length;
  while (start < end && isPunctuation(word.charCodeAt(start))) start++;
  while (end > start && isPunctuation(word.charCodeAt(end - 1))) end--;
  return word.slice(start, end);
}

function isPunctuation(code: number): boolean {
  const kind = code < 128 ? characterKind(code) : OTHER + 1;
  return kind === OTHER || kind === LINK;
}
