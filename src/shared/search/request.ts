/** Reads the query that a model wrote for ToolSearch: `select:` with exact names, or words. Pure. */
import { lettersAndDigits } from "./words/characters.ts";

export type SearchRequest =
  | { kind: "select"; names: string[] }
  | { kind: "words"; text: string }
  | { kind: "empty" };

export function parseRequest(query: string): SearchRequest {
  const select = /^\s*select:(.*)$/is.exec(query);
  if (select) {
    const names = (select[1] ?? "").split(/[\s,]+/).filter((name) => lettersAndDigits(name) !== "");
    return names.length > 0 ? { kind: "select", names: [...new Set(names)] } : { kind: "empty" };
  }
  return lettersAndDigits(query) === "" ? { kind: "empty" } : { kind: "words", text: query };
}
