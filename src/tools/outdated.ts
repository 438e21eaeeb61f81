/** Finds the tools about which Pi knows nothing, or something that no longer holds, and tells Pi about them. */
import { type Catalog, type CatalogTool, createSlices, eachTool } from "../catalog/catalog.ts";
import { serverPrefix } from "../shared/naming.ts";
import { LIMITS } from "../shared/protocol/limits.ts";
import { type Book, currentOf, isGone } from "./book.ts";

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

export interface Comparison {
  /** Compares Pi's tools with a catalog, in slices. Remembers the answer until the catalog or the book changes. */
  outdated(catalog: Catalog): Promise<readonly CatalogTool[]>;
  /** Tells Pi what the catalog says about an outdated tool. */
  renew(tool: CatalogTool, catalog: Catalog): void;
}

export function createComparison(book: Book): Comparison {
  let last: { catalog: Catalog; changes: number; outdated: Promise<readonly CatalogTool[]> } | undefined;
  return {
    outdated: (catalog) => {
      // Asked before each call of any tool, and usually nothing has changed.
      if (last?.catalog !== catalog || last.changes !== book.changes) {
        last = { catalog, changes: book.changes, outdated: compare(book, catalog) };
      }
      return last.outdated;
    },
    renew: (tool, catalog) => renew(book, tool, catalog),
  };
}

function renew(book: Book, tool: CatalogTool, catalog: Catalog): void {
  const current = currentOf(catalog, tool);
  if (current) book.registerIfNew(current);
  // A tool that is gone or renamed must not be reachable under its old name.
  const before = book.get(tool.name);
  if (before === tool && (!current || book.withFreeName(current).name !== tool.name)) book.withdraw(tool);
}

export type Reach = "all" | readonly string[];

export interface RenewOptions {
  /** The registrar's methods. */
  registrar: {
    outdated(catalog: Catalog): Promise<readonly CatalogTool[]>;
    renew(tool: CatalogTool, catalog: Catalog): Promise<void>;
    count(): number;
  };
  catalog: () => Catalog;
  /** Whether the session has ended, after which nothing may be registered. */
  isOver: () => boolean;
}

/** The form in which codemode writes a tool's name in a script. */
const identifier = (name: string): string => name.replace(/\W/g, "_");

/** The tools that a call may reach: a word is the tool's name, or holds the prefix of the tool's server. */
export function reached(tools: readonly CatalogTool[], reach: Reach): CatalogTool[] {
  if (reach === "all") return [...tools];
  const words = new Set(reach.map(identifier));
  const serverNamed = new Map<string, boolean>();
  const namesServer = (server: string): boolean => {
    let named = serverNamed.get(server);
    if (named === undefined) {
      const prefix = identifier(serverPrefix(server));
      named = [...words].some((word) => word.includes(prefix));
      serverNamed.set(server, named);
    }
    return named;
  };
  return tools.filter(({ name, server }) => words.has(identifier(name)) || namesServer(server.name));
}

/** Registers, in slices, the outdated tools that a call may reach. `isVast`: the factory has left most tools out. */
export async function renewReached(
  { registrar, catalog, isOver }: RenewOptions,
  reach: Reach,
  isVast: boolean,
): Promise<void> {
  const due = reached(await registrar.outdated(catalog()), reach);
  // A call that reaches everything gets what Pi can rebuild its registry for. A script that names its tools gets them.
  const room = reach === "all" ? Math.max(0, LIMITS.lateTools - registrar.count()) : LIMITS.lateTools;
  if (isVast) due.length = Math.min(due.length, room);
  // One registration can take Pi 2 ms.
  const slices = createSlices({ sliceMs: 2, steps: 1 });
  for (const tool of due) {
    await slices.step();
    if (isOver()) return;
    await registrar.renew(tool, catalog());
  }
}
