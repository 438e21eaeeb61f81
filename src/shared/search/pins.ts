/**
 * Owns pins: tools that a query names, which ranking must never lose. A name is written as `tool`, `server__tool`,
 * `mcp__server__tool` or `server/tool`, with hyphens, underscores or camelCase; only its letters and digits are
 * compared. build.ts stores the keys, ranked.ts asks for the pins of a query.
 */
import { fnv1a } from "../naming.ts";
import type { ToolIndex } from "./index-format.ts";
import type { SearchTool } from "./weights.ts";
import { characterKind, isStopWord, LINK, lettersAndDigits, OTHER } from "./words.ts";

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
  const groups = new Map<number, readonly number[]>();
  words.forEach(({ tools, pin, key, high }, at) => {
    if (named[at]) groups.set(pin, tools);
    let longer = high;
    for (let next = at + 1; next < words.length && next - at < index.nameWords; next++) {
      // The hash goes on where that of the words before ended. Nearly always it is nobody's, and no text is made.
      longer = fnv1a(words[next]!.key, longer);
      if (!isKnown(index, longer)) continue;
      const first = firstPin(
        index,
        key +
          words
            .slice(at + 1, next + 1)
            .map((word) => word.key)
            .join(""),
      );
      // Counted down from -2, since tools with names in other spellings may lie under the same key.
      if (first >= 0) groups.set(-2 - first, pinsFrom(index, first, isSpaced));
    }
  });
  return takeTurns([...groups.values()]);
}

type NameWord = {
  readonly plain: string;
  readonly key: string;
  /** The first hash of the key. */
  readonly high: number;
  readonly tools: readonly number[];
  /** Where the tools stand among the pins; -1 for none. Equal words have equal places. */
  readonly pin: number;
  /** True for the spelling of a name: with separators inside, in camelCase, or quoted. */
  readonly explicit: boolean;
};

function nameWords(index: ToolIndex, query: string): NameWord[] {
  const words: NameWord[] = [];
  for (const raw of query.split(between)) {
    const word = trimPunctuation(raw);
    if (word === "" || words.length === maxWords) continue;
    const looksNamed = identifier.test(word);
    const key = pinKey(looksNamed ? withoutMcp(word) : word);
    const high = fnv1a(key);
    const pin = looksNamed ? pinOfName(index, word) : firstPin(index, key, high);
    words.push({
      plain: word.toLowerCase(),
      key,
      high,
      tools: pin < 0 ? noTools : pinsFrom(index, pin, acceptAll),
      pin,
      explicit: looksNamed || (quotes.has(raw[0]!) && quotes.has(raw.at(-1)!)),
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
    const pin = firstPin(index, pinKey(form));
    const found = pin < 0 ? [] : pinsFrom(index, pin, (packed) => accepts(packed >>> 1));
    if (found.length > 0) return found;
  }
  return [];
}

/** The place of the pins of a word that is written as a name, or -1. */
function pinOfName(index: ToolIndex, word: string): number {
  // The last form is the tool's own name, for a server that is unknown here or has spaces in its name.
  for (const name of [word, withoutMcp(word), /(?:__|[/:])((?:(?!__|[/:]).)+)$/.exec(word)?.[1] ?? ""]) {
    const pin = firstPin(index, pinKey(name));
    if (pin >= 0) return pin;
  }
  return -1;
}

export type ToolFilter = (tool: number) => boolean;

const noTools: readonly number[] = [];
const acceptAll = (): boolean => true;
/** Whether the tool's name in a packed pin is written with spaces. */
const isSpaced = (pin: number): boolean => (pin & 1) === 1;

/** Guesses before the halving: names that somebody has chosen by their hashes must not make the search long. */
const maxGuesses = 4;

/** The place of the first pin of a key, or -1. */
function firstPin(index: ToolIndex, key: string, high = fnv1a(key)): number {
  if (key === "" || !isKnown(index, high)) return -1;
  const { pins } = index;
  const low = fnv1a(key, secondSeed);
  const first = placeOf(pins, high, low);
  return pins[first * 3] === high && pins[first * 3 + 1] === low ? first : -1;
}

/** Whether the first hash of any key is this one. */
const isKnown = ({ pins }: ToolIndex, high: number): boolean => pins[placeOf(pins, high, 0) * 3] === high;

/**
 * The place of the first pin that is not before these hashes. Hashes lie evenly between 0 and 2^32, so a few guesses come
 * near to the place, where halving would take 15 steps.
 */
function placeOf(pins: Uint32Array, high: number, low: number): number {
  let first = 0;
  let end = pins.length / 3;
  let least = 0;
  let most = 2 ** 32;
  for (let guesses = 0; first < end; guesses++) {
    const share = guesses < maxGuesses && least < most ? (high - least) / (most - least) : 0.5;
    const middle = Math.min(end - 1, first + Math.trunc((end - first) * share));
    const found = pins[middle * 3]!;
    if (found < high || (found === high && pins[middle * 3 + 1]! < low)) {
      first = middle + 1;
      least = found;
    } else {
      end = middle;
      most = found;
    }
  }
  return first;
}

/** The first `MAX_PINS` tools under the key whose first pin is `first`. `accepts` gets a packed pin. */
function pinsFrom({ pins }: ToolIndex, first: number, accepts: (pin: number) => boolean): number[] {
  const [high, low] = [pins[first * 3], pins[first * 3 + 1]];
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
