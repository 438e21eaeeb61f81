/**
 * What Pi has been told of our tools. In the factory everything is registered, since that is free there;
 * once Pi has bound, each registration rebuilds its whole registry, so then only what the model can reach.
 */
import {
  type Catalog,
  type CatalogTool,
  createSlices,
  eachTool,
  sameDefinition,
} from "../../catalog/catalog.ts";
import type { Pi, ToolExposure } from "../../pi/api.ts";
import type { SnapshotServer } from "../../shared/snapshot/contract.ts";
import { type CallTool, createMcpTool } from "../definition/definition.ts";
import { type DeclaredTool, fromTranscript } from "./branch.ts";
import type { DirectRule } from "./direct.ts";
import { createPlacement } from "./placement.ts";

export interface Activation {
  /** Declared to the model from the next request on. */
  active: CatalogTool[];
  /** Pi did not take them, for example because of `--tools`. */
  refused: CatalogTool[];
}

export interface Registrar {
  /** For the factory. Leaves out tools whose names another extension may have too. */
  registerAll(catalog: Catalog): void;
  /**
   * Re-registers tools that are declared now and whose bytes differ, withdraws those that are gone, renames
   * those that are called otherwise now, and with `wantsDirect` registers direct tools that are new. A
   * withdrawn tool whose server is back is declared again. Tells Pi of no others.
   */
  follow(catalog: () => Catalog, wantsDirect: boolean): void;
  /** Registers direct tools that the factory left out. */
  registerDirect(catalog: Catalog): void;
  /** Whether some tool of this server may be direct. `configured`: what the configuration says. */
  concernsDirect(server: string, configured: boolean): boolean;
  /** The tool of that name, if it was taken back. */
  withdrawn(name: string): CatalogTool | undefined;
  /** Takes back every tool that fits. */
  withdrawAll(of: (tool: CatalogTool) => boolean): void;
  /** The same of those that the model has: a registration costs Pi a rebuild of its registry. */
  withdrawActive(of: (tool: CatalogTool) => boolean): void;
  /**
   * Registers what the branch has declared and Pi does not know; Pi then declares it again. A tool that the
   * catalog does not hold, because its server is down and nothing is cached, comes back as the transcript
   * has it, byte for byte; `serverOf` tells whose it is. Answers how many are left that nobody here knows.
   */
  restore(
    declared: ReadonlyMap<string, DeclaredTool>,
    catalog: Catalog,
    serverOf: (tool: DeclaredTool) => SnapshotServer | undefined,
  ): number;
  activate(tools: readonly CatalogTool[]): Activation;
  /** Other tools can call it afterwards; nothing is declared. Answers the tool as Pi knows it. */
  provide(tool: CatalogTool): CatalogTool;
  /** Tools of which Pi knows nothing, or something that no longer holds. Looks at all tools, in slices. */
  outdated(catalog: Catalog): Promise<readonly CatalogTool[]>;
  /** Tells Pi what the catalog says of an outdated tool. */
  renew(tool: CatalogTool, catalog: Catalog): void;
}

export interface RegistrarOptions {
  call: CallTool;
  direct: DirectRule;
  /** A tool has another name than it should, since another extension has that. */
  onTaken?: (tool: CatalogTool, name: string) => void;
}

const identity = ({ server, tool }: CatalogTool): string => `${server.name}\u0000${tool}`;

const isSame = (a: CatalogTool, b: CatalogTool): boolean =>
  a.tool === b.tool && a.server.name === b.server.name;

const identities = new WeakMap<Catalog, Map<string, CatalogTool>>();

/** The tool of that server, whatever it is called now. */
function currentOf(catalog: Catalog, before: CatalogTool): CatalogTool | undefined {
  const named = catalog.get(before.name);
  if (named && isSame(named, before)) return named;
  let byIdentity = identities.get(catalog);
  if (!byIdentity) {
    byIdentity = new Map(catalog.tools.map((tool) => [identity(tool), tool]));
    identities.set(catalog, byIdentity);
  }
  return byIdentity.get(identity(before));
}

/** Its server is gone, or has told its tools and this is none of them. A server that is merely down keeps them. */
function isGone(tool: CatalogTool, catalog: Catalog): boolean {
  if (currentOf(catalog, tool)) return false;
  const server = catalog.servers.find(({ name }) => name === tool.server.name);
  return server === undefined || server.toolsKnown;
}

export function createRegistrar(pi: Pi, { call, direct, onTaken }: RegistrarOptions): Registrar {
  const registered = new Map<string, CatalogTool>();
  /** Withdrawn tools, and whether the model should have them again when they are back. */
  const hidden = new Map<string, { isMissed: boolean }>();
  /** Counts what Pi has been told. */
  let told = 0;
  let compared: { catalog: Catalog; told: number; outdated: Promise<readonly CatalogTool[]> } | undefined;
  const { place } = createPlacement(pi, {
    isOurs: (name) => registered.has(name),
    onTaken: (tool, name) => onTaken?.(tool, name),
  });
  const exposureOf = (tool: CatalogTool): ToolExposure => (direct.isDirect(tool) ? "direct" : "deferred");
  const register = (tool: CatalogTool): void => {
    registered.set(tool.name, tool);
    hidden.delete(tool.name);
    told++;
    pi.registerTool(createMcpTool(tool, call, exposureOf(tool)));
  };
  const isCurrent = (tool: CatalogTool): boolean => {
    const before = registered.get(tool.name);
    // The other exposure of a tool that the model has is not worth its prompt cache.
    return before !== undefined && !hidden.has(tool.name) && sameDefinition(before, tool);
  };
  /** Answers the tool as Pi knows it. */
  const registerIfNew = (tool: CatalogTool): CatalogTool => {
    const placed = place(tool);
    if (!isCurrent(placed)) register(placed);
    return placed;
  };
  /** Pi has no way to take a tool back: a hidden one is registered but unreachable. */
  const withdraw = (tool: CatalogTool, isMissed = pi.getActiveTools().includes(tool.name)): void => {
    hidden.set(tool.name, { isMissed });
    told++;
    pi.registerTool(createMcpTool(tool, call, "hidden"));
  };

  /** Declares again what was withdrawn while the model had it. */
  const bringBack = (catalog: Catalog): void => {
    const names: string[] = [];
    for (const [name, { isMissed }] of hidden) {
      const before = registered.get(name);
      const tool = isMissed && before ? currentOf(catalog, before) : undefined;
      if (!tool) continue;
      const placed = place(tool);
      hidden.set(name, { isMissed: false });
      register(placed);
      names.push(placed.name);
    }
    if (names.length > 0) pi.setActiveTools([...new Set([...pi.getActiveTools(), ...names])]);
  };

  const followActive = (catalog: Catalog): void => {
    const active = pi.getActiveTools();
    const renamed = new Map<string, string>();
    for (const name of active) {
      const before = registered.get(name);
      if (!before) continue;
      const tool = currentOf(catalog, before);
      if (!tool) {
        if (isGone(before, catalog)) withdraw(before);
        continue;
      }
      const placed = place(tool);
      if (placed.name !== name) {
        withdraw(before, false);
        renamed.set(name, placed.name);
      }
      if (!isCurrent(placed)) register(placed);
    }
    if (renamed.size === 0) return;
    // A name that one tool left may be another's now.
    pi.setActiveTools([...new Set(active.map((name) => renamed.get(name) ?? name))]);
  };

  /** Pi knows it by a name that is no longer its own, or the tool is gone. */
  const isStale = (tool: CatalogTool, catalog: Catalog): boolean => {
    if (hidden.has(tool.name)) return false;
    const current = currentOf(catalog, tool);
    return current ? place(current).name !== tool.name : isGone(tool, catalog);
  };
  const compare = async (catalog: Catalog): Promise<CatalogTool[]> => {
    const slices = createSlices();
    const found: CatalogTool[] = [];
    for (const tool of eachTool(catalog)) {
      const pause = slices.step();
      if (pause) await pause;
      if (!isCurrent(place(tool))) found.push(tool);
    }
    for (const tool of [...registered.values()]) {
      const pause = slices.step();
      if (pause) await pause;
      if (isStale(tool, catalog)) found.push(tool);
    }
    return found;
  };

  return {
    registerAll: (catalog) => {
      for (const tool of catalog.tools) if (!tool.bare) register(tool);
    },
    follow: (catalog, wantsDirect) => {
      if ([...hidden.values()].some(({ isMissed }) => isMissed)) bringBack(catalog());
      if (pi.getActiveTools().some((name) => registered.has(name))) followActive(catalog());
      if (!wantsDirect) return;
      for (const tool of catalog().tools) if (direct.isDirect(tool)) registerIfNew(tool);
    },
    registerDirect: (catalog) => {
      for (const tool of catalog.tools) if (tool.bare && direct.isDirect(tool)) registerIfNew(tool);
    },
    concernsDirect: direct.concerns,
    withdrawn: (name) => (hidden.has(name) ? registered.get(name) : undefined),
    withdrawAll: (of) => {
      for (const tool of registered.values()) if (of(tool) && !hidden.has(tool.name)) withdraw(tool);
    },
    withdrawActive: (of) => {
      for (const name of pi.getActiveTools()) {
        const tool = registered.get(name);
        if (tool && of(tool) && !hidden.has(name)) withdraw(tool, true);
      }
    },
    restore: (declared, catalog, serverOf) => {
      const missing = [...declared.values()].filter(({ name }) => !registered.has(name));
      if (missing.length === 0) return 0;
      const inPi = new Set(pi.getAllTools().map(({ name }) => name));
      let left = 0;
      for (const tool of missing) {
        if (inPi.has(tool.name)) continue;
        const known = catalog.get(tool.name);
        const server = known ? undefined : serverOf(tool);
        if (known) register(known);
        else if (server) register(fromTranscript(tool, server));
        else left++;
      }
      return left;
    },
    provide: registerIfNew,
    activate: (tools) => {
      const placed = tools.map(registerIfNew);
      const before = pi.getActiveTools();
      const added = placed.map((tool) => tool.name).filter((name) => !before.includes(name));
      if (added.length > 0) pi.setActiveTools([...before, ...added]);
      const after = new Set(pi.getActiveTools());
      return {
        active: placed.filter((tool) => after.has(tool.name)),
        refused: placed.filter((tool) => !after.has(tool.name)),
      };
    },
    outdated: (catalog) => {
      // Asked before each call of any tool, and most often nothing has changed.
      if (compared?.catalog !== catalog || compared.told !== told) {
        compared = { catalog, told, outdated: compare(catalog) };
      }
      return compared.outdated;
    },
    renew: (tool, catalog) => {
      const current = currentOf(catalog, tool);
      if (current) registerIfNew(current);
      // What stood under a name that the tool no longer has.
      const before = registered.get(tool.name);
      if (before === tool && (!current || place(current).name !== tool.name)) withdraw(tool);
    },
  };
}
