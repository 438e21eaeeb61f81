/**
 * Lets go of tools that the model has loaded and does not use, so that a long session stays below the number of tools that
 * providers take (OpenAI: 128), and a compaction shrinks the schemas of each request, too. Many go at a time, since for some
 * models the prompt cache ends with the first. A call of such a tool loads it again (unknown-call.ts). Loaded when it is needed.
 */
import type { Pi } from "../pi/api.ts";
import { LIMITS } from "../shared/protocol/limits.ts";
import { asList, isObject } from "../shared/protocol/values.ts";
import type { Book, DirectRule } from "./book.ts";

/** Tool -> the place in the branch where it was loaded or called last. */
function lastUses(branch: readonly unknown[]): Map<unknown, number> {
  const uses = new Map<unknown, number>();
  for (const [at, entry] of branch.entries()) {
    const message = isObject(entry) && entry.type === "message" ? entry.message : undefined;
    if (!isObject(message) || message.role !== "toolResult") continue;
    const loaded = isObject(message.details) ? asList(message.details.loaded) : [];
    for (const name of [message.toolName, ...loaded]) uses.set(name, at);
  }
  return uses;
}

export interface LetGoOptions {
  pi: Pick<Pi, "getActiveTools" | "setActiveTools">;
  book: Pick<Book, "get">;
  direct: Pick<DirectRule, "isDirect">;
  branch: () => readonly unknown[];
  most: number;
}

/** If more than `most` tools of servers are declared. Direct ones stay, and beside them what one search loads. */
export function letGo({ pi, book, direct, branch, most }: LetGoOptions): void {
  const active = pi.getActiveTools();
  const ours = active.flatMap((name) => book.get(name) ?? []);
  const loaded = ours.filter((tool) => !direct.isDirect(tool)).map(({ name }) => name);
  const others = ours.length - loaded.length;
  const kept = Math.max(LIMITS.declaredToolsKept - others, LIMITS.searchResultsMost);
  if (ours.length <= most || loaded.length <= kept) return;
  const uses = lastUses(branch());
  const newest = loaded.sort((a, b) => (uses.get(b) ?? -1) - (uses.get(a) ?? -1));
  const gone = new Set(newest.slice(kept));
  pi.setActiveTools(active.filter((name) => !gone.has(name)));
}
