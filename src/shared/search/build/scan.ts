/**
 * Owns counting the terms of a catalog: which stand in which field of which tool, and how often. Tools of a catalog
 * share their words, so a written word is split and folded once, and terms are numbers in flat arrays: this runs in a
 * worker that has just started, where looking up costs the same from the first on and all else several times as much.
 * Called by build.ts.
 */
import { type SearchTool, toolFields } from "../ranked/fields.ts";
import type { FieldName } from "../ranked/weights.ts";
import { isStopWord } from "../words/stop-words.ts";
import { tokenize } from "../words/tokens.ts";

export const FIELDS = [
  "name",
  "server",
  "lead",
  "description",
  "paramName",
  "paramText",
  "serverText",
] as const satisfies readonly FieldName[];
export const NAME = FIELDS.indexOf("name");

/** A term is its place in `terms`, an entry one term of one tool. */
export interface Scanned {
  /** All terms, in the order in which they were met. Stop words are none. */
  readonly terms: readonly string[];
  /** Entries of a tool: from `start[tool]` to `start[tool + 1]`. */
  readonly start: Uint32Array;
  /** Term of each entry. */
  readonly term: Uint32Array;
  /** How often an entry's term stands in each field: `FIELDS.length` numbers an entry. */
  readonly counts: Uint16Array;
  /** Words in each field of each tool. */
  readonly lengths: readonly Float64Array[];
  /** Terms of each tool's name, in order, each once. */
  readonly nameTerms: readonly (readonly number[])[];
}

/** A written word, with what holds its parts together. The terms of one never depend on the next. */
const WRITTEN = /[\w\-./'+#]+/g;
const BEYOND_ASCII = /[^\0-\x7f]/;
/** `tokenize` cuts a text that has more tokens, and a text has at most one more than characters. */
const MEMO_CHARACTERS = 1_998;

/** A term in a text, times two; one more where it is a whole word or part of one, not two parts joined. */
type Occurrence = number;

function createReader(terms: string[]): (text: string) => readonly Occurrence[] {
  const STOP = -1;
  const numbers = new Map<string, number>();
  const words = new Map<string, readonly Occurrence[]>();

  const numberOf = (term: string): number => {
    let number = numbers.get(term);
    if (number === undefined) {
      number = isStopWord(term) ? STOP : terms.push(term) - 1;
      numbers.set(term, number);
    }
    return number;
  };
  const read = (text: string): Occurrence[] => {
    const found: Occurrence[] = [];
    for (const { term, kind } of tokenize(text)) {
      const number = numberOf(term);
      if (number !== STOP) found.push(number * 2 + (kind === "part" ? 1 : 0));
    }
    return found;
  };
  return (text) => {
    if (text.length > MEMO_CHARACTERS || BEYOND_ASCII.test(text)) return read(text);
    const found: Occurrence[] = [];
    for (const word of text.match(WRITTEN) ?? []) {
      let known = words.get(word);
      if (!known) {
        known = read(word);
        words.set(word, known);
      }
      for (const occurrence of known) found.push(occurrence);
    }
    return found;
  };
}

const ENTRIES_A_TOOL = 64;

export function scan(tools: readonly SearchTool[]): Scanned {
  const terms: string[] = [];
  const read = createReader(terms);
  const start = new Uint32Array(tools.length + 1);
  const lengths = FIELDS.map(() => new Float64Array(tools.length));
  const nameTerms: number[][] = [];
  let term = new Uint32Array(tools.length * ENTRIES_A_TOOL);
  let counts = new Uint16Array(term.length * FIELDS.length);
  let entries = 0;
  /** Of each term, in the last tool that has it. */
  const lastEntry: number[] = [];
  /** Of each field: all tools of a server share some. */
  const last = FIELDS.map(() => ({ text: "", occurrences: read("") }));

  const addEntry = (number: number): number => {
    if (entries === term.length) {
      term = grown(term, new Uint32Array(entries * 2 + ENTRIES_A_TOOL));
      counts = grown(counts, new Uint16Array(term.length * FIELDS.length));
    }
    term[entries] = number;
    return entries++;
  };

  tools.forEach((tool, id) => {
    const texts = toolFields(tool);
    const first = entries;
    const ofName = new Set<number>();
    FIELDS.forEach((field, at) => {
      const text = texts[field];
      if (text !== last[at]!.text) last[at] = { text, occurrences: read(text) };
      for (const occurrence of last[at]!.occurrences) {
        const number = occurrence >> 1;
        let entry = lastEntry[number] ?? -1;
        if (entry < first) {
          entry = addEntry(number);
          lastEntry[number] = entry;
        }
        counts[entry * FIELDS.length + at]! += 1;
        if ((occurrence & 1) === 0) continue;
        lengths[at]![id]! += 1;
        if (at === NAME) ofName.add(number);
      }
    });
    nameTerms.push([...ofName]);
    start[id + 1] = entries;
  });
  return { terms, start, term: term.subarray(0, entries), counts, lengths, nameTerms };
}

function grown<T extends Uint32Array<ArrayBuffer> | Uint16Array<ArrayBuffer>>(from: T, into: T): T {
  into.set(from);
  return into;
}
