/**
 * Splits tool names and texts into terms. The cache worker builds the index with it, and main reads queries with it, so
 * both sides always split alike. Pure.
 */

/** Parts of a name in lower case, cut at `_ - . / :`, at spaces, and between the words of camelCase. */
export function nameParts(name: string): string[] {
  const spaced = name
    .normalize("NFKC")
    .replace(/([\p{Ll}\p{N}])(\p{Lu})/gu, "$1 $2")
    .replace(/(\p{Lu})(\p{Lu}\p{Ll})/gu, "$1 $2");
  return spaced
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter((part) => part.length > 0);
}

/** Words of a text in lower case: runs of letters and digits. */
export function words(text: string): string[] {
  return (
    text
      .normalize("NFKC")
      .toLowerCase()
      .match(/[\p{L}\p{N}]+/gu) ?? []
  );
}

/** Terms of a query, cut only at white space, commas and semicolons, so that `read_file` stays one term. */
export function queryTerms(query: string): string[] {
  const terms = query
    .normalize("NFKC")
    .toLowerCase()
    .split(/[\s,;]+/u)
    .map((term) => term.replace(/^[^\p{L}\p{N}]+|[^\p{L}\p{N}]+$/gu, ""))
    .filter((term) => term.length > 0);
  return [...new Set(terms)];
}
