/** Finds the resources that a text names: `@<server>:<uri>`, at the places where Pi finds the name of a file. Pure. */
import { LIMITS } from "../../shared/protocol/limits.ts";
import type { ReadResourceParams } from "../../shared/protocol/resources.ts";

const START = /(?:^|[\s([{<`"'])@/g;
const SCHEME = /^[a-z][a-z0-9+.-]*:[^\s]/i;
/** Signs that more often belong to the sentence than to the URI. */
const SIGNS = ".,;:!?)]}>'\"`";

/** A loop, because an expression for the end of a text begins anew at each sign before the end. */
function withoutSigns(typed: string): string {
  let end = typed.length;
  while (end > 0 && SIGNS.includes(typed.charAt(end - 1))) end--;
  return typed.slice(0, end);
}

/** Each resource once, in the order of the text. `servers`: the known names; of two that fit, the longer one counts. */
export function mentionsIn(text: string, servers: readonly string[]): ReadResourceParams[] {
  const found = new Map<string, ReadResourceParams>();
  const byLength = [...servers].sort((a, b) => b.length - a.length);
  for (const { index, 0: start } of text.matchAll(START)) {
    const at = index + start.length;
    const server = byLength.find((name) => text.startsWith(`${name}:`, at));
    if (server === undefined) continue;
    const from = at + server.length + 1;
    const typed = /^\S*/.exec(text.slice(from, from + LIMITS.mentionChars + 1))?.[0] ?? "";
    const uri = withoutSigns(typed);
    if (!SCHEME.test(uri) || typed.length > LIMITS.mentionChars) continue;
    found.set(JSON.stringify([server, uri]), { server, uri });
  }
  return [...found.values()];
}
