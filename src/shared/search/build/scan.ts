/**
 * Counts the terms of a catalog: how often each stands in each field of each tool. The tools of a catalog share their
 * words, so a written word is split and folded once, and terms are numbers in flat arrays. This code runs in a worker
 * that has just started: there a look-up is as fast as later, and all other code is several times slower. Called by
 * ranked.ts.
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

/** A term is its position in `terms`. An entry is one term of one tool. */
export interface Scanned {
  /** All terms in the order of their first use, without stop words. */
  readonly terms: readonly string[];
  /** The entries of a tool are those from `start[tool]` to `start[tool + 1]`. */
  readonly start: Uint32Array;
  /** Term of each entry. */
  readonly term: Uint32Array;
  /** Uses of an entry's term in each field: `FIELDS.length` numbers for each entry. */
  readonly counts: Uint16Array;
  /** Words in each field of each tool. */
  readonly lengths: readonly Float64Array[];
  /** Terms of each tool's name, in order, without repetitions. */
  readonly nameTerms: readonly (readonly number[])[];
}

/** A written word with the marks that link its parts. The terms of one written word never depend on the next. */
const WRITTEN = /[\w\-./'+#]+/g;
const BEYOND_ASCII = /[^\0-\x7f]/;
/** `tokenize` cuts a text after 2,000 tokens; a text has at most one token more than characters. */
const MEMO_CHARACTERS = 1_998;

/** Twice the number of a term, plus 1 if it is a word or a part of one and not two joined parts. */
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

/** Counts the terms of all tools, by position. */
export function scan(tools: readonly SearchTool[]): Scanned {
  const terms: string[] = [];
  const read = createReader(terms);
  const start = new Uint32Array(tools.length + 1);
  const lengths = FIELDS.map(() => new Float64Array(tools.length));
  const nameTerms: number[][] = [];
  let term = new Uint32Array(tools.length * ENTRIES_A_TOOL);
  let counts = new Uint16Array(term.length * FIELDS.length);
  let entries = 0;
  /** Term -> its entry in the last tool that has it. */
  const lastEntry: number[] = [];
  /** The last text of each field: all tools of a server share some texts. */
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
