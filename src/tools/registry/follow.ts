/** Follows the catalog with the tools that the model has: changed, renamed, gone, or back. */
import type { Catalog } from "../../catalog/catalog.ts";
import type { Pi } from "../../pi/api.ts";
import type { Book } from "./book.ts";
import { currentOf, isGone } from "./current-tool.ts";

/** Declares again the tools that were withdrawn while the model had them. */
export function bringBack(pi: Pi, book: Book, catalog: Catalog): void {
  const names: string[] = [];
  for (const before of book.missed()) {
    const tool = currentOf(catalog, before);
    if (!tool) continue;
    const named = book.withFreeName(tool);
    book.forget(before.name);
    book.register(named);
    names.push(named.name);
  }
  if (names.length > 0) pi.setActiveTools([...new Set([...pi.getActiveTools(), ...names])]);
}

/** Registers active tools whose definition has changed, withdraws those that are gone, and renames the others. */
export function followActive(pi: Pi, book: Book, catalog: Catalog): void {
  const active = pi.getActiveTools();
  const renamed = new Map<string, string>();
  for (const name of active) {
    const before = book.get(name);
    if (!before) continue;
    const tool = currentOf(catalog, before);
    if (!tool) {
      if (isGone(before, catalog)) book.withdraw(before);
      continue;
    }
    const named = book.withFreeName(tool);
    if (named.name !== name) {
      book.withdraw(before, false);
      renamed.set(name, named.name);
    }
    if (!book.isCurrent(named)) book.register(named);
  }
  if (renamed.size === 0) return;
  // Two tools may have swapped their names, so every name is replaced at once.
  pi.setActiveTools([...new Set(active.map((name) => renamed.get(name) ?? name))]);
}
