/** Finds the tools about which Pi knows nothing, or something that no longer holds, and tells Pi about one of them. */
import { type Catalog, type CatalogTool, createSlices, eachTool } from "../../catalog/catalog.ts";
import type { Book } from "./book.ts";
import { currentOf, isGone } from "./current-tool.ts";

/** Whether Pi knows a tool by a name that the tool no longer has, or a tool that is gone. */
function isStale(book: Book, tool: CatalogTool, catalog: Catalog): boolean {
  if (book.isWithdrawn(tool.name)) return false;
  const current = currentOf(catalog, tool);
  return current ? book.withFreeName(current).name !== tool.name : isGone(tool, catalog);
}

async function compare(book: Book, catalog: Catalog): Promise<CatalogTool[]> {
  const slices = createSlices();
  const found: CatalogTool[] = [];
  for (const tool of eachTool(catalog)) {
    const pause = slices.step();
    if (pause) await pause;
    if (!book.isCurrent(book.withFreeName(tool))) found.push(tool);
  }
  for (const tool of book.all()) {
    const pause = slices.step();
    if (pause) await pause;
    if (isStale(book, tool, catalog)) found.push(tool);
  }
  return found;
}

/** Compares Pi's tools with a catalog, in slices. Remembers the answer until the catalog or the book changes. */
export function createComparison(book: Book): (catalog: Catalog) => Promise<readonly CatalogTool[]> {
  let last: { catalog: Catalog; changes: number; outdated: Promise<readonly CatalogTool[]> } | undefined;
  return (catalog) => {
    // Asked before each call of any tool, and usually nothing has changed.
    if (last?.catalog !== catalog || last.changes !== book.changes) {
      last = { catalog, changes: book.changes, outdated: compare(book, catalog) };
    }
    return last.outdated;
  };
}

/** Tells Pi what the catalog says about an outdated tool. */
export function renew(book: Book, tool: CatalogTool, catalog: Catalog): void {
  const current = currentOf(catalog, tool);
  if (current) book.registerIfNew(current);
  // A tool that is gone or renamed must not be reachable under its old name.
  const before = book.get(tool.name);
  if (before === tool && (!current || book.withFreeName(current).name !== tool.name)) book.withdraw(tool);
}
