/**
 * Builds the index of a search in the cache worker: reads the fields of the tools once, word by word, and packs which tool
 * has which term, how much the term counts there, and what is related to it. Must not be loaded by main. Pure.
 */
import { fillSlots, IMPACT_BITS, MAX_TOOLS, WEIGHT_BITS, writeIndex } from "./index-format.ts";
import { longestName, pinEntries } from "./pins.ts";
import type { SearchKind } from "./search.ts";
import { synonymRules } from "./synonyms.ts";
import { buildWeighted } from "./weighted.ts";
import { type FieldName, type SearchTool, toolFields, WEIGHTS, type Weights } from "./weights.ts";
import { actions, CJK, characterKind, isStopWord, stem, tokenize } from "./words.ts";

export const FIELDS = [
  "name",
  "keywords",
  "server",
  "lead",
  "description",
  "paramName",
  "paramText",
  "serverText",
] as const satisfies readonly FieldName[];
const NAME = FIELDS.indexOf("name");
const PARAM_TEXT = FIELDS.indexOf("paramText");

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

/** Fields whose words count for the IDF. The other fields would make words of parameters look common. */
const idfFields = [NAME, FIELDS.indexOf("description")] as const;

/** Longer names lose (`Weights.longName`). */
const longNameWords = 3;

export function buildIndex(
  tools: readonly SearchTool[],
  weights: Weights = WEIGHTS,
): Uint8Array<ArrayBuffer> {
  if (tools.length > MAX_TOOLS)
    throw new RangeError(`search index: ${tools.length} tools, at most ${MAX_TOOLS}`);
  const servers = [...new Set(tools.map((tool) => tool.server))];
  const serverIds = new Map(servers.map((server, id) => [server, id]));
  const toolServer = Uint32Array.from(tools, (tool) => serverIds.get(tool.server)!);
  const scanned = scan(tools);
  const related = relations(documentFrequencies(scanned), weights);
  const vocabulary = [...new Set([...scanned.terms, ...related.keys()])].sort();
  const ids = new Map(vocabulary.map((term, id) => [term, id]));
  const idOf = Uint32Array.from(scanned.terms, (term) => ids.get(term)!);
  const termCount = vocabulary.length;
  const idf = termIdf({ scanned, idOf, termCount, weights });
  const postings = packPostings({ scanned, idOf, termCount, idf, weights });
  const variants = packLists(
    vocabulary.map((term) =>
      (related.get(term) ?? []).map(({ term: other, weight }) => ({ id: ids.get(other)!, weight })),
    ),
  );
  const names = packLists(scanned.nameTerms.map((terms) => nameShares(terms, idOf, idf)));
  const text = packStrings(vocabulary);
  const serverText = packStrings(servers);
  return writeIndex({
    toolCount: tools.length,
    termCount,
    nameWords: longestName(tools),
    impactScale: postings.scale,
    termStart: text.start,
    termChars: text.chars,
    termSlots: fillSlots(vocabulary),
    termIdf: idf,
    postingStart: postings.start,
    postings: postings.items,
    variantStart: variants.start,
    variants: variants.items,
    nameStart: names.start,
    nameTerms: names.items,
    toolServer,
    toolAction: Uint16Array.from(tools, (tool, id) =>
      toolAction(
        tool,
        scanned.nameTerms[id]!.map((term) => scanned.terms[term]!),
      ),
    ),
    serverStart: serverText.start,
    serverChars: serverText.chars,
    pins: pinEntries(tools),
  });
}

/** Term -> number of tools that have it. */
function documentFrequencies({ terms, term }: Scanned): Map<string, number> {
  const found = new Uint32Array(terms.length);
  for (let entry = 0; entry < term.length; entry++) found[term[entry]!]! += 1;
  return new Map(terms.map((text, at) => [text, found[at]!]));
}

type IdfInput = {
  scanned: Scanned;
  /** Scanned term -> its id in the vocabulary. */
  idOf: Uint32Array;
  /** Number of terms in the vocabulary. */
  termCount: number;
  weights: Weights;
};

/** BM25 IDF. */
function termIdf({ scanned, idOf, termCount, weights }: IdfInput): Float32Array<ArrayBuffer> {
  const toolsWith = new Float64Array(termCount);
  for (let entry = 0; entry < scanned.term.length; entry++) {
    if (!idfFields.some((field) => scanned.counts[entry * FIELDS.length + field]! > 0)) continue;
    toolsWith[idOf[scanned.term[entry]!]!]! += 1;
  }
  const toolCount = scanned.start.length - 1;
  return Float32Array.from(toolsWith, (df) => {
    const bounded = Math.min(toolCount, Math.max(df, weights.minDf));
    return Math.log(1 + (toolCount - bounded + 0.5) / (bounded + 0.5));
  });
}

type PostingInput = IdfInput & { idf: Float32Array };
type Packed = { start: Uint32Array<ArrayBuffer>; items: Uint32Array<ArrayBuffer>; scale: number };

function packPostings({ scanned, idOf, termCount, idf, weights }: PostingInput): Packed {
  const averages = scanned.lengths.map(
    (lengths) => lengths.reduce((sum, length) => sum + length, 0) / Math.max(1, lengths.length) || 1,
  );
  const { term, counts } = scanned;
  const isUnspaced = scanned.terms.map((text) => characterKind(text.codePointAt(0)!) === CJK);
  const most = term.length;
  const found = { id: new Uint32Array(most), tool: new Uint32Array(most), impact: new Float64Array(most) };
  const start = new Uint32Array(termCount + 1);
  let largest = 1e-9;
  let count = 0;
  for (let tool = 0; tool + 1 < scanned.start.length; tool++) {
    const share = 1 / (1 + weights.longName * Math.max(0, scanned.nameTerms[tool]!.length - longNameWords));
    const norms = FIELDS.map((field, at) => {
      const b = weights.lengthNorm[field];
      return weights.field[field] / (1 - b + (b * scanned.lengths[at]![tool]!) / averages[at]!);
    });
    for (let entry = scanned.start[tool]!; entry < scanned.start[tool + 1]!; entry++) {
      const id = idOf[term[entry]!]!;
      let frequency = 0;
      for (let at = 0; at < FIELDS.length; at++)
        frequency += counts[entry * FIELDS.length + at]! * norms[at]!;
      if (isUnspaced[term[entry]!])
        frequency +=
          counts[entry * FIELDS.length + PARAM_TEXT]! * norms[PARAM_TEXT]! * (weights.unspacedParamText - 1);
      const impact = (share * idf[id]! * frequency * (1 + weights.k1)) / (weights.k1 + frequency);
      if (!(impact > 0)) continue;
      largest = Math.max(largest, impact);
      found.id[count] = id;
      found.tool[count] = tool;
      found.impact[count++] = impact;
      start[id + 1]! += 1;
    }
  }
  for (let id = 0; id < termCount; id++) start[id + 1]! += start[id]!;
  const levels = 2 ** IMPACT_BITS - 1;
  const items = new Uint32Array(count);
  const next = start.slice();
  for (let at = 0; at < count; at++) {
    const level = Math.max(1, Math.round((found.impact[at]! / largest) * levels));
    const slot = next[found.id[at]!]!++;
    items[slot] = ((found.tool[at]! << IMPACT_BITS) | level) >>> 0;
  }
  return { start, items, scale: largest / levels };
}

type Weighted = { readonly id: number; readonly weight: number };

function nameShares(terms: readonly number[], idOf: Uint32Array, idf: Float32Array): Weighted[] {
  const list = terms.map((term) => idOf[term]!);
  const total = list.reduce((sum, id) => sum + idf[id]!, 0) || 1;
  return list.map((id) => ({ id, weight: idf[id]! / total }));
}

function packLists(lists: readonly (readonly Weighted[])[]): {
  start: Uint32Array<ArrayBuffer>;
  items: Uint32Array<ArrayBuffer>;
} {
  const start = new Uint32Array(lists.length + 1);
  const items = new Uint32Array(lists.reduce((sum, list) => sum + list.length, 0));
  const most = 2 ** WEIGHT_BITS - 1;
  let at = 0;
  lists.forEach((list, entry) => {
    for (const { id, weight } of list)
      items[at++] = ((id << WEIGHT_BITS) | Math.round(Math.min(1, weight) * most)) >>> 0;
    start[entry + 1] = at;
  });
  return { start, items };
}

function packStrings(strings: readonly string[]): {
  start: Uint32Array<ArrayBuffer>;
  chars: Uint16Array<ArrayBuffer>;
} {
  const start = new Uint32Array(strings.length + 1);
  strings.forEach((string, entry) => {
    start[entry + 1] = start[entry]! + string.length;
  });
  const chars = new Uint16Array(start[strings.length]!);
  strings.forEach((string, entry) => {
    for (let at = 0; at < string.length; at++) chars[start[entry]! + at] = string.charCodeAt(at);
  });
  return { start, chars };
}

/** The action that the name says, or else the start of the description ("Deletes ..."). */
function toolAction({ description }: SearchTool, nameTerms: readonly string[]): number {
  const named = actions(nameTerms);
  if (named !== 0 || typeof description !== "string") return named;
  return actions(
    tokenize(description.slice(0, 100), 3)
      .slice(0, 3)
      .map(({ term }) => term),
  );
}

type Relation = { readonly term: string; readonly weight: number };

/** Term -> the terms of the catalog that may stand for it. `toolsWith`: number of tools with each term. */
function relations(toolsWith: ReadonlyMap<string, number>, weights: Weights): Map<string, Relation[]> {
  const related = new Map<string, Map<string, number>>();
  for (const { from, to, kind } of synonymRules()) {
    const weight = weights.synonym[kind];
    const present = to.map(stem).filter((term) => toolsWith.has(term));
    for (const term of from.map(stem)) {
      const others = present.filter((other) => other !== term);
      if (others.length === 0) continue;
      const row = related.get(term) ?? new Map<string, number>();
      related.set(term, row);
      for (const other of others) row.set(other, Math.max(row.get(other) ?? 0, weight));
    }
  }
  return new Map(
    [...related].map(([term, row]) => [term, [...row].map(([other, weight]) => ({ term: other, weight }))]),
  );
}

export type IndexedTool = SearchTool & { readonly fullName: string };

/** The bytes of the index over the tools, by position. */
export function buildEngine(kind: SearchKind, tools: readonly IndexedTool[]): Uint8Array<ArrayBuffer> {
  if (kind === "ranked") return buildIndex(tools);
  return buildWeighted(
    tools.map(({ fullName: name, description = "", keywords = "" }) => ({ name, description, keywords })),
  );
}
