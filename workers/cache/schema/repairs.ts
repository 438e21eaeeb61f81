/** The kinds of repair that a schema may need, and how the log names each of them. Pure. */

/** What had to be done to a schema. */
export type Repair =
  | ("root" | "union" | "name" | "reference" | "loop" | "pattern" | "slow")
  | ("keyword" | "value" | "schema" | "choice" | "depth" | "size" | "effort");

/** A schema takes more than it says after one of these, which inverts the meaning of what stands below a `not`. */
export const LOOSENS: ReadonlySet<Repair> = new Set([
  ...(["reference", "loop", "pattern", "slow", "keyword", "schema", "depth", "effort"] as const),
]);

const WORDS: Record<Repair, string> = {
  root: "the root was not an object schema",
  union: "a union at the root was merged into one object",
  reference: "a $ref that leads nowhere was left out",
  loop: "a $ref that leads back to itself was left out",
  pattern: "a pattern that is not a regular expression was left out",
  keyword: "a keyword with an invalid value was left out",
  value: "a value was rewritten in the form that its keyword takes",
  schema: "a value that is not a schema was replaced by a schema that takes anything",
  name: "parameters with names that providers refuse were moved to the description",
  slow: "patterns that could take a host very long were moved to descriptions; the server checks them",
  choice: "keywords that depend on a part that was left out were loosened",
  depth: "parts that are nested too deep were left out",
  size: "parts that are too big to declare take any value",
  effort: "references and unions that could take a host very long to check were left out",
};

const SHOWN_TOOLS = 5;

/** One line for the log. `tools`: the tools whose schemas needed the repair. */
export function repairLine(repair: Repair, tools: readonly string[]): string {
  const shown = tools.slice(0, SHOWN_TOOLS).join(", ");
  const more = tools.length > SHOWN_TOOLS ? ` and ${tools.length - SHOWN_TOOLS} more` : "";
  return `schemas repaired, ${WORDS[repair]}: ${shown}${more}`;
}
