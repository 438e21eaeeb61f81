/** Reads what a model wrote into ToolSearch: `select:` with exact names, or keywords. Pure. */
import { queryTerms } from "./tokens.ts";

export type ParsedQuery =
  | { kind: "select"; names: string[] }
  | { kind: "keywords"; terms: string[] }
  | { kind: "empty" };

export function parseQuery(query: string): ParsedQuery {
  const select = /^\s*select:(.*)$/isu.exec(query);
  if (select) {
    const names = (select[1] ?? "").split(/[\s,]+/u).filter((name) => name.length > 0);
    return names.length > 0 ? { kind: "select", names: [...new Set(names)] } : { kind: "empty" };
  }
  const terms = queryTerms(query);
  return terms.length > 0 ? { kind: "keywords", terms } : { kind: "empty" };
}
