/**
 * How text becomes search terms, for tools and queries alike: NFKC, lower case, split at camelCase and `_ - . /`, words
 * folded by `stem`. Two neighbouring parts of one written word are also kept joined, because splitting alone loses brands
 * (GitHub, MySQL, OAuth). Chinese, Japanese and Korean text has no spaces, so its runs become overlapping pairs of
 * characters, and the characters alone: two words for one thing often share one. And what words say: none of a meaning, a
 * value, an action. Pure.
 *
 * ASCII is a table, Chinese, Japanese and Korean are ranges, and only other scripts reach a regular expression: compiling
 * `\p{...}` costs a first query a millisecond.
 */
export type Token = {
  readonly term: string;
  /** `part`: a word or a part of one. `joined`: two neighbouring parts of one written word. `character`: one of a pair. */
  readonly kind: "part" | "joined" | "character";
  /** The written spelling in lower case, for messages. */
  readonly written: string;
};

/** Longer runs of letters are data (keys, base64), not words. */
const maxTermLength = 40;

/** Every term of `text`, in order. `maxTokens` bounds the cost of a hostile description. */
export function tokenize(text: string, maxTokens = 2_000): Token[] {
  const source = plain(text);
  const tokens: Token[] = [];
  /** The part before the current one in the same written word, with which it is joined. */
  let previous = "";
  let at = 0;
  while (at < source.length && tokens.length < maxTokens) {
    const code = source.codePointAt(at)!;
    const kind = characterKind(code);
    if (kind === OTHER) {
      previous = "";
      at += code > 0xffff ? 2 : 1;
    } else if (kind === LINK) {
      at++;
      if (at < source.length && characterKind(source.codePointAt(at)!) === LINK && source[at] !== "_")
        previous = "";
    } else if (kind === CJK) {
      const end = runEnd(source, at);
      pushPairs(tokens, source.slice(at, end));
      previous = "";
      at = end;
    } else {
      const end = partEnd(source, at);
      previous = pushPart(tokens, source.slice(at, end).toLowerCase(), previous);
      at = end;
    }
  }
  return tokens;
}

function pushPart(tokens: Token[], part: string, previous: string): string {
  if (part.length > maxTermLength) return "";
  if (previous !== "" && previous.length + part.length <= maxTermLength) {
    const joined = previous + part;
    tokens.push({ term: stem(joined), kind: "joined", written: joined });
  }
  tokens.push({ term: stem(part), kind: "part", written: part });
  return part;
}

function pushPairs(tokens: Token[], run: string): void {
  const characters = [...run];
  if (characters.length === 1) tokens.push({ term: run, kind: "part", written: run });
  else for (const one of characters) tokens.push({ term: one, kind: "character", written: one });
  for (let at = 0; at + 1 < characters.length; at++) {
    const pair = `${characters[at]}${characters[at + 1]}`;
    tokens.push({ term: pair, kind: "part", written: pair });
  }
}

function runEnd(text: string, start: number): number {
  let at = start;
  while (at < text.length) {
    const code = text.codePointAt(at)!;
    if (characterKind(code) !== CJK) break;
    at += code > 0xffff ? 2 : 1;
  }
  return at;
}

/**
 * End of the part that starts at `start`: "getHTTPResponse2" is get, HTTP, Response2. Digits belong to the letters before
 * them ("s3", "base64").
 */
function partEnd(text: string, start: number): number {
  let before: number = OTHER;
  let at = start;
  while (at < text.length) {
    const code = text.codePointAt(at)!;
    const kind = characterKind(code);
    if (kind !== LOWER && kind !== UPPER && kind !== DIGIT) break;
    if (kind === UPPER && (before === LOWER || before === DIGIT)) break;
    if (kind === LOWER && before === DIGIT) break;
    if (kind === LOWER && before === UPPER && at - 1 > start) return at - 1;
    before = kind;
    at += code > 0xffff ? 2 : 1;
  }
  return at;
}

/**
 * Folds one lower-case English word to the form that the index stores: first to the singular, then without -ing and -ed,
 * so that "creating", "created" and "creates" become "create". It must stay small and predictable: two words with the
 * same form are searched as one.
 */
const irregular: ReadonlyMap<string, string> = new Map(
  Object.entries({
    people: "person",
    children: "child",
    men: "man",
    women: "woman",
    indices: "index",
    vertices: "vertex",
    matrices: "matrix",
    analyses: "analysis",
    news: "news",
    series: "series",
    movies: "movie",
    cookies: "cookie",
    buses: "bus",
    https: "https",
    kubernetes: "kubernetes",
    sent: "send",
    written: "write",
    wrote: "write",
    made: "make",
    found: "find",
    built: "build",
    bought: "buy",
    ran: "run",
    got: "get",
    gotten: "get",
    setting: "setting",
    settings: "setting",
    listing: "listing",
    listings: "listing",
    training: "training",
    trainings: "training",
    embed: "embed",
  }),
);

/** "repositories" -> "repository", "branches" -> "branch", "status" stays. Words of 3 letters or fewer stay. */
export function singular(word: string): string {
  const known = irregular.get(word);
  if (known !== undefined) return known;
  const length = word.length;
  if (length < 4 || !word.endsWith("s")) return word;
  if (word.endsWith("ies")) return length > 4 ? `${word.slice(0, -3)}y` : word.slice(0, -1);
  if (endsWithAny(word, ["sses", "xes", "zzes", "ches", "shes"])) return word.slice(0, -2);
  if (endsWithAny(word, ["ss", "us", "is"])) return word;
  return word.slice(0, -1);
}

/** Folds forms with -ing and -ed. The remaining word must have a vowel and at least 3 letters. */
export function stem(word: string): string {
  if (!isPlain(word)) return word;
  const known = irregular.get(word);
  if (known !== undefined) return withoutE(known);
  const base = singular(word);
  for (const suffix of ["ing", "ed"]) {
    if (!base.endsWith(suffix)) continue;
    const cut = base.slice(0, -suffix.length);
    if (cut.length < 3 || !hasVowel(cut) || (suffix === "ed" && cut.endsWith("e"))) return base;
    if (cut.length > 3 && cut.at(-1) === cut.at(-2) && "bdfgmnprt".includes(cut.at(-1)!))
      return cut.slice(0, -1); // "tagged"
    if (
      cut.length === 3 &&
      hasVowel(cut[1]!) &&
      !hasVowel(cut[0]!) &&
      !hasVowel(cut[2]!) &&
      !"wx".includes(cut[2]!)
    )
      return `${cut}e`; // "rating"
    return withoutE(cut);
  }
  return withoutE(base);
}

/** "create" and "creat(ed)" both become "creat". Words of 4 letters or fewer keep their e ("file", "size"). */
function withoutE(word: string): string {
  return word.length > 4 && word.endsWith("e") ? word.slice(0, -1) : word;
}

function endsWithAny(word: string, endings: readonly string[]): boolean {
  return endings.some((ending) => word.endsWith(ending));
}

function hasVowel(word: string): boolean {
  for (const letter of word) if ("aeiouy".includes(letter)) return true;
  return false;
}

function isPlain(word: string): boolean {
  for (let at = 0; at < word.length; at++) {
    const code = word.charCodeAt(at);
    if (code < 0x61 || code > 0x7a) return false;
  }
  return true;
}

/**
 * Owns the words without a meaning in a search for tools: articles, pronouns, prepositions, question words, and the
 * phrases around a request ("please show me how to ..."). Verbs that name an operation (get, list, show, find) are never
 * stop words. They are never indexed (build.ts), and searched only if a query has no other words (query.ts).
 */
const words = `
a an the this that these those it its they them their he she his her we us our you your i me my mine
is are was were be been being am do does did done doing has have had having can could will would shall should may might must
and or but nor so if then than else when while where which who whom whose what why how
of in on at by for from to into onto with without within about as up out off over under between among per via through
there here all any some each every both few more most other such own same only just also too very not no yes
please want need like would let lets help tell know wish able try using use used uses
s t d ll ve re m etc eg ie vs e.g i.e
exist existing currently given based specific specified certain various several
mcp tool tools`;

const stopWords: ReadonlySet<string> = new Set(words.split(/\s+/u).filter(Boolean));

export function isStopWord(term: string): boolean {
  return stopWords.has(term);
}

/**
 * Owns the kind of each character, for splitting text. ASCII is a table, Chinese, Japanese and Korean are ranges, and
 * only other scripts reach a regular expression: compiling `\p{...}` costs a first query a millisecond.
 */
export const OTHER = 0;
const LOWER = 1;
const UPPER = 2;
const DIGIT = 3;
/** Scripts that are written without spaces: Han, kana, Hangul. */
export const CJK = 4;
/** Marks that link the parts of one written word: `_ - . / ' + #`. */
export const LINK = 5;

const ascii = new Uint8Array(128);
for (let code = 0x61; code <= 0x7a; code++) ascii[code] = LOWER;
for (let code = 0x41; code <= 0x5a; code++) ascii[code] = UPPER;
for (let code = 0x30; code <= 0x39; code++) ascii[code] = DIGIT;
for (const link of "_-./'+#") ascii[link.charCodeAt(0)] = LINK;

const cjkRanges: readonly (readonly [first: number, last: number])[] = [
  [0x1100, 0x11ff],
  [0x2e80, 0x2fdf],
  [0x3005, 0x3007],
  [0x3040, 0x30ff],
  [0x3130, 0x318f],
  [0x31f0, 0x31ff],
  [0x3400, 0x4dbf],
  [0x4e00, 0x9fff],
  [0xa960, 0xa97f],
  [0xac00, 0xd7ff],
  [0xf900, 0xfaff],
  [0x20000, 0x3ffff],
];

export function characterKind(code: number): number {
  return code < 128 ? ascii[code]! : beyondAscii(code);
}

/** A function of its own, since the engine parses the expressions when it first compiles the function around them. */
function beyondAscii(code: number): number {
  if (code >= 0x1100 && cjkRanges.some(([first, last]) => code >= first && code <= last)) return CJK;
  const character = String.fromCodePoint(code);
  if (character === "’") return LINK;
  if (/\p{Lu}/u.test(character)) return UPPER;
  if (/[\p{L}\p{M}]/u.test(character)) return LOWER;
  return /\p{N}/u.test(character) ? DIGIT : OTHER;
}

/** The text in NFKC: full-width letters, ligatures and composed forms become the plain ones. */
function plain(text: string): string {
  for (let at = 0; at < text.length; at++) if (text.charCodeAt(at) > 127) return text.normalize("NFKC");
  return text;
}

/** Letters and digits of a name in lower case: the same for "Read-File", "read_file" and "readFile". */
export function lettersAndDigits(name: string): string {
  if (isPlainWord(name)) return name;
  let kept = "";
  for (const character of plain(name)) {
    const kind = characterKind(character.codePointAt(0)!);
    if (kind !== OTHER && kind !== LINK) kept += character;
  }
  return kept.toLowerCase();
}

/** Whether the name is nothing but small letters and digits, as most words of a query. */
function isPlainWord(name: string): boolean {
  for (let at = 0; at < name.length; at++) {
    const kind = ascii[name.charCodeAt(at)];
    if (kind !== LOWER && kind !== DIGIT) return false;
  }
  return true;
}

const mayHoldValue = /['"`\u201c/@.]/u;

/** Terms of quoted values, paths and addresses: a tool works on them and is seldom named after them. */
export function literalTerms(text: string): ReadonlySet<string> {
  return mayHoldValue.test(text) ? valueTerms(text) : new Set();
}

function valueTerms(text: string): Set<string> {
  const quoted =
    /(?<=^|[\s(=:,])(?:'([^'\n]{1,80})'|"([^"\n]{1,80})"|`([^`\n]{1,80})`|\u201c([^\u201d\n]{1,80})\u201d)(?=$|[\s.,;:?!)])/gu;
  const pathOrAddress = /(?<=^|[\s('"])(?:https?:\/\/\S+|[~.]{0,2}\/\S+|\S+@\S+|\w+\.\w+)/gu;
  const spans = [...text.matchAll(quoted), ...text.matchAll(pathOrAddress)].map(([span]) => span);
  return new Set(tokenize(spans.join(" ")).map(({ term }) => term));
}

export const READ = 1;
export const CREATE = 2;
export const UPDATE = 4;
export const DELETE = 8;

const verbs: readonly (readonly [action: number, verbs: string])[] = [
  [
    READ,
    "get list show find search read fetch view describe query check count lookup retrieve browse display see",
  ],
  [READ, "what which who how many inspect explain summarize look tell is are analyze compare"],
  [
    CREATE,
    "create add make new insert generate build write upload post publish send register define draft compose remember",
  ],
  [CREATE, "put upsert import provision"],
  [UPDATE, "update edit modify set change rename replace patch adjust move assign enable disable upsert put"],
  [UPDATE, "configure write mark apply"],
  [DELETE, "delete remove drop clear purge erase destroy uninstall cancel discard revoke"],
];
const actionOf = new Map<string, number>();
for (const [action, list] of verbs)
  for (const verb of list.split(" ")) actionOf.set(stem(verb), (actionOf.get(stem(verb)) ?? 0) | action);

/** Actions that the terms name, as bits; 0 for none. */
export function actions(terms: Iterable<string>): number {
  let found = 0;
  for (const term of terms) found |= actionOf.get(term) ?? 0;
  return found;
}
