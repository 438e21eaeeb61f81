/**
 * What the session does with our tools in Pi: registers them, follows the catalog, withdraws, restores those of a resumed
 * branch, and knows which are direct. The factory registers every tool, because that is nearly free there: tens of
 * thousands are not, so of a larger catalog it registers the direct ones. After Pi has bound, each registration rebuilds
 * Pi's whole registry, so only the tools that the model can reach are registered.
 */
import { type Catalog, type CatalogTool, eachTool } from "../catalog/catalog.ts";
import type { Pi } from "../pi/api.ts";
import type { Activation } from "../report/tool-search.ts";
import { LIMITS } from "../shared/protocol/limits.ts";
import type { SnapshotServer } from "../shared/snapshot/contract.ts";
import { Book, type BookOptions, currentOf, type DirectRule, isGone } from "./book.ts";
import { type DeclaredTool, fromTranscript } from "./branch.ts";
import type { Comparison } from "./outdated.ts";

interface Branch {
  declared: ReadonlyMap<string, DeclaredTool>;
  /** Undefined if the tool belongs to no server that is known. */
  serverOf: (tool: DeclaredTool) => SnapshotServer | undefined;
}

/**
 * Answers how many tools are left that neither Pi nor the catalog nor `serverOf` knows. A tool that was withdrawn, on
 * another branch or for another folder, counts as unknown to Pi.
 */
function restore(pi: Pi, book: Book, catalog: Catalog, { declared, serverOf }: Branch): number {
  const missing = [...declared.values()].filter(({ name }) => !book.get(name) || book.isWithdrawn(name));
  if (missing.length === 0) return 0;
  const inPi = new Set(pi.getAllTools().map(({ name }) => name));
  const back: string[] = [];
  let left = 0;
  for (const tool of missing) {
    const isWithdrawn = book.isWithdrawn(tool.name);
    if (inPi.has(tool.name) && !isWithdrawn) continue;
    const known = catalog.get(tool.name);
    const server = known ? undefined : serverOf(tool);
    // A server that is known without the tool has taken it away, or keeps it for its own pages: no model gets it back.
    const restored = known ?? (server && !server.toolsKnown ? fromTranscript(tool, server) : undefined);
    if (restored) book.register(restored);
    else if (!server) left++;
    if (restored && isWithdrawn) back.push(tool.name);
  }
  // Pi itself declares again only those that it has never seen hidden.
  declare(pi, back);
  return left;
}

/** Declares more tools to the model. */
function declare(pi: Pi, names: readonly string[]): void {
  const before = pi.getActiveTools();
  const all = [...new Set([...before, ...names])];
  if (all.length > before.length) pi.setActiveTools(all);
}

/**
 * Registers active tools whose definition has changed, withdraws those that are gone, and renames those that have another
 * name. Declares again the tools that were withdrawn while the model had them.
 */
function followKnown(pi: Pi, book: Book, catalog: Catalog, { isDirect }: DirectRule): void {
  const active = pi.getActiveTools();
  // A tool may get the name that another one had, so all are looked up before any changes.
  const given = new Set(active.flatMap((name) => book.get(name) ?? []));
  const both = [...new Set([...given, ...book.missed()])].map((before) => {
    const tool = currentOf(catalog, before);
    // Another tool may have the name of one that was withdrawn.
    const isHidden = !given.has(before) || book.isWithdrawn(before.name);
    return { before, isHidden, now: tool && book.withFreeName(tool) };
  });
  const renamed = new Map<string, string>();
  const back: string[] = [];
  for (const { before, isHidden, now } of both) {
    if (isHidden) {
      // What a rule declared, and not the model, needs that rule again.
      if (now && (isDirect(now) || !isDirect(before))) back.push(now.name);
    } else if (!now) {
      if (isGone(before, catalog)) book.withdraw(before);
    } else if (now.name !== before.name) {
      book.withdraw(before, false);
      renamed.set(before.name, now.name);
    }
  }
  for (const { now } of both) if (now && !book.isCurrent(now)) book.register(now);
  if (renamed.size + back.length === 0) return;
  pi.setActiveTools([...new Set([...active.map((name) => renamed.get(name) ?? name), ...back])]);
}

export interface Registrar {
  /** For the factory. Leaves out tools whose names another extension may have too, and most of a very large catalog. */
  registerAll(catalog: Catalog): void;
  /**
   * Follows the catalog with the tools that are declared now: registers those whose bytes differ, withdraws those that
   * are gone, renames those that have another name. Declares a withdrawn tool again when its server is back. With
   * `wantsDirect` also registers direct tools that are new, or that the factory left out. Tells Pi of no other tool.
   */
  follow(catalog: () => Catalog, wantsDirect: boolean): void;
  /** Whether some tools of this server may be direct. `configured`: what the configuration says. */
  concernsDirect(server: string, configured: boolean): boolean;
  /** The tool that is registered in Pi under that name, as the catalog has it now; undefined for a tool of others. */
  known(name: string, catalog: Catalog): CatalogTool | undefined;
  /** The tool of that name, if it was withdrawn. */
  withdrawn(name: string): CatalogTool | undefined;
  /**
   * Withdraws every tool for which `matches` holds. The model gets it back if its branch has it, if it is direct, or by a
   * search; with `isMissed` when its server is back, also if the tool was withdrawn before.
   */
  withdrawAll(matches: (tool: CatalogTool) => boolean, isMissed?: boolean): void;
  /** Withdraws only active tools, because each registration costs Pi a rebuild of its registry. */
  withdrawActive(matches: (tool: CatalogTool) => boolean): void;
  /**
   * Registers what the branch has declared and Pi does not know, or has hidden; Pi then declares it again. A tool that
   * the catalog does not hold, because its server is down and nothing is cached, is registered byte for byte as the
   * transcript has it. Answers how many tools are left that nobody knows.
   */
  restore(catalog: Catalog, branch: Branch): number;
  /** Declares tools to the model from the next request on. */
  activate(tools: readonly CatalogTool[]): Activation;
  /** Makes the tool callable for other tools, without declaring it. Answers the tool under its name in Pi. */
  provide(tool: CatalogTool): CatalogTool;
  /** The tools about which Pi knows nothing, or something that no longer holds. Compares all tools, in slices. */
  outdated(catalog: Catalog): Promise<readonly CatalogTool[]>;
  /** Tells Pi what the catalog says about an outdated tool. */
  renew(tool: CatalogTool, catalog: Catalog): Promise<void>;
  /** Number of tools about which Pi has been told. */
  count(): number;
  /** Lets go of tools that were unused the longest if more than `most` are declared, but of no direct one. */
  letGo(branch: () => readonly unknown[], most: number): Promise<void>;
}

export interface RegistrarOptions extends BookOptions {
  direct: DirectRule;
  /** Called once for each server whose new direct tools are left to searches, since too many of it are gone. */
  onTooMany?: (server: string) => void;
}

export function createRegistrar(pi: Pi, options: RegistrarOptions): Registrar {
  const { direct } = options;
  const book = new Book(pi, options);
  const left = new Set<string>();
  const mayBeDirect = (catalog: Catalog): Iterable<CatalogTool> =>
    direct.byName ? eachTool(catalog) : catalog.marked();
  const registerDirect = (catalog: Catalog): void => {
    const active = new Set(pi.getActiveTools());
    for (const tool of mayBeDirect(catalog)) {
      if (!direct.isDirect(tool)) continue;
      const { name } = tool.server;
      if (!book.get(tool.name) && book.hasTooManyGone(name)) {
        if (!left.has(name)) options.onTooMany?.(name);
        left.add(name);
        continue;
      }
      const named = book.registerIfNew(tool);
      const told = book.get(named.name);
      // It has become direct. If the model has loaded it, it is declared already.
      if (told && !direct.isDirect(told) && !active.has(named.name)) book.register(named);
    }
  };
  // Loaded when a tool runs that reaches others.
  let comparison: Promise<Comparison> | undefined;
  const compare = (): Promise<Comparison> => {
    comparison ??= import("./outdated.ts").then(({ createComparison }) => createComparison(book));
    return comparison;
  };
  return {
    registerAll: (catalog) => {
      const all = catalog.count <= LIMITS.toolsAtStart;
      for (const tool of all ? eachTool(catalog) : mayBeDirect(catalog)) {
        if (!tool.bare && (all || direct.isDirect(tool))) book.register(tool, true);
      }
    },
    follow: (catalog, wantsDirect) => {
      if (book.missed().length > 0 || pi.getActiveTools().some((name) => book.get(name)))
        followKnown(pi, book, catalog(), direct);
      if (wantsDirect) registerDirect(catalog());
    },
    concernsDirect: direct.concerns,
    known: (name, catalog) => {
      const tool = book.get(name);
      return tool && (currentOf(catalog, tool) ?? tool);
    },
    withdrawn: (name) => (book.isWithdrawn(name) ? book.get(name) : undefined),
    withdrawAll: (matches, isMissed = false) => {
      for (const tool of book.all())
        if (matches(tool) && (isMissed || !book.isWithdrawn(tool.name))) book.withdraw(tool, isMissed);
    },
    withdrawActive: (matches) => {
      for (const name of pi.getActiveTools()) {
        const tool = book.get(name);
        if (tool && matches(tool) && !book.isWithdrawn(name)) book.withdraw(tool, true);
      }
    },
    restore: (catalog, branch) => restore(pi, book, catalog, branch),
    provide: (tool) => book.registerIfNew(tool),
    activate: (tools) => {
      const named = tools.map((tool) => book.registerIfNew(tool));
      declare(
        pi,
        named.map(({ name }) => name),
      );
      const after = new Set(pi.getActiveTools());
      return {
        active: named.filter((tool) => after.has(tool.name)),
        refused: named.filter((tool) => !after.has(tool.name)),
      };
    },
    outdated: async (catalog) => (await compare()).outdated(catalog),
    renew: async (tool, catalog) => (await compare()).renew(tool, catalog),
    count: () => book.count,
    letGo: async (branch, most) => {
      if (pi.getActiveTools().length <= most) return;
      (await import("./let-go.ts")).letGo({ pi, book, direct, branch, most });
    },
  };
}
