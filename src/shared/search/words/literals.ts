/**
 * Finds the values in a query: quoted text, paths, addresses. A query "count the documents in 'shop.orders'" is about
 * counting documents. Called by ranked/query.ts.
 */
import { tokenize } from "./tokens.ts";

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
