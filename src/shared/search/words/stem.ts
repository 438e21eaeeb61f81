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
    indexes: "index",
    vertices: "vertex",
    matrices: "matrix",
    analyses: "analysis",
    bases: "base",
    data: "data",
    news: "news",
    status: "status",
    statuses: "status",
    series: "series",
    metadata: "metadata",
    media: "media",
    movies: "movie",
    cookies: "cookie",
    caches: "cache",
    houses: "house",
    aliases: "alias",
    databases: "database",
    buses: "bus",
    lenses: "lens",
    dns: "dns",
    aws: "aws",
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
    running: "run",
    got: "get",
    getting: "get",
    gotten: "get",
    setting: "setting",
    settings: "setting",
    listing: "listing",
    listings: "listing",
    training: "training",
    trainings: "training",
    embed: "embed",
    embedding: "embed",
    embeddings: "embed",
    embedded: "embed",
    putting: "put",
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
