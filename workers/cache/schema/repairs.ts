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
  root: "the root was no object schema",
  union: "a union at the root was merged into one object",
  reference: "a $ref that leads nowhere was left out",
  loop: "a $ref that leads back to itself was left out",
  pattern: "a pattern that is no regular expression was left out",
  keyword: "a keyword with a value that it cannot have was left out",
  value: "a value was rewritten as its keyword takes it",
  schema: "what stands for a schema and is none was replaced by one that takes anything",
  name: "parameters with names that providers refuse were moved to the description",
  slow: "patterns that could take a host very long were moved to descriptions, the server checks them",
  choice: "what depends on a part that was left out was loosened",
  depth: "what lies too deep was left out",
  size: "what is too big to declare takes any value",
  effort: "references and unions that could take a host very long to check were left out",
};

const SHOWN_TOOLS = 5;

/** One line for the log. `tools`: the tools whose schemas needed the repair. */
export function repairLine(server: string, repair: Repair, tools: readonly string[]): string {
  const shown = tools.slice(0, SHOWN_TOOLS).join(", ");
  const more = tools.length > SHOWN_TOOLS ? ` and ${tools.length - SHOWN_TOOLS} more` : "";
  return `${server}: schemas repaired, ${WORDS[repair]}: ${shown}${more}`;
}
