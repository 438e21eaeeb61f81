/**
 * Counts what the tools of each server cost the model, in slices that leave the keys alone. A tool that a newer catalog
 * holds unchanged is not counted again.
 */
import {
  type Catalog,
  type CatalogTool,
  createSlices,
  eachTool,
  inputSchemaOf,
  sameDefinition,
} from "../../catalog/catalog.ts";
import { estimateTokens } from "../../shared/text/search-tool.ts";
import type { Cost } from "./model/model.ts";

const tokensOf = (tool: CatalogTool): number =>
  estimateTokens(`${tool.name} ${tool.description} ${JSON.stringify(inputSchemaOf(tool))}`);

/** Milliseconds of one slice: less than half of what a key press may take. */
const SLICE_MS = 4;

export interface CostCounter {
  /** Estimated tokens of the tool of this name in Pi; undefined if it has not been counted yet. */
  of(name: string): number | undefined;
  /** By server. The map is another one whenever a count has changed. */
  costs(): ReadonlyMap<string, Cost>;
  /** Counts the catalog, and gives up the one before. `isDeclared`: whether the model has the tool's definition now. */
  count(catalog: Catalog, isDeclared: (tool: CatalogTool) => boolean): void;
  stop(): void;
}

/** `onCounted`: some count has changed. */
export function createCostCounter(onCounted: () => void): CostCounter {
  let known = new Map<string, { tool: CatalogTool; tokens: number }>();
  let costs: ReadonlyMap<string, Cost> = new Map();
  let run = 0;

  const counted = (tool: CatalogTool): number => {
    const before = known.get(tool.name);
    return before && sameDefinition(before.tool, tool) ? before.tokens : tokensOf(tool);
  };

  const walk = async (catalog: Catalog, isDeclared: (tool: CatalogTool) => boolean): Promise<void> => {
    const own = ++run;
    const slices = createSlices({ sliceMs: SLICE_MS, steps: 4 });
    const next: typeof known = new Map();
    const sums = new Map<string, Cost>();
    for (const { name, toolsKnown } of catalog.servers) {
      if (toolsKnown) sums.set(name, { declared: 0, all: 0, declaredTools: 0, isWhole: true });
    }
    for (const tool of eachTool(catalog)) {
      const pause = slices.step();
      if (pause) await pause;
      if (run !== own) return;
      const tokens = counted(tool);
      next.set(tool.name, { tool, tokens });
      const sum = sums.get(tool.server.name);
      if (!sum) continue;
      sum.all += tokens;
      if (!isDeclared(tool)) continue;
      sum.declared += tokens;
      sum.declaredTools++;
    }
    known = next;
    costs = sums;
    onCounted();
  };

  return {
    of: (name) => known.get(name)?.tokens,
    costs: () => costs,
    count: (catalog, isDeclared) => {
      // A server that has not been counted yet says so until the walk has ended.
      const open = { declared: 0, all: 0, declaredTools: 0, isWhole: false };
      costs = new Map(
        catalog.servers
          .filter((server) => server.toolsKnown)
          .map(({ name }) => [name, costs.get(name) ?? open]),
      );
      void walk(catalog, isDeclared);
    },
    stop: () => {
      run++;
    },
  };
}
