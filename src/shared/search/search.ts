/**
 * The two rankers behind one interface: opens an index of build.ts and searches it. Owns that interface. Must not
 * import build.ts, since it runs on the main thread. Called by src/catalog. README.md describes `ranked`; `weighted` counts
 * 10/5/4/3 (weighted.ts), for users who want scores that they can add up by hand. To add a ranker: its kind in
 * `SearchKind`, its row here and in build.ts.
 */

import { openIndex } from "./index-format.ts";
import { MAX_PINS, type ToolFilter, toolsNamed, withoutMcp } from "./pins.ts";
import { bothFilters, type SearchOptions, searchIndex, serverFilter } from "./ranked.ts";
import { openWeighted, searchWeighted, weightedTerms } from "./weighted.ts";
import { lettersAndDigits } from "./words.ts";

const MAX_QUERY_CHARACTERS = 4_000;

export type SearchKind = "ranked" | "weighted";

/** A tool as the rankers need it besides its index. */
interface NamedTool {
  /** Name in Pi. */
  readonly name: string;
  /** Name at its server. */
  readonly tool: string;
  readonly server: { readonly name: string };
}

interface EngineHit {
  /** Position of the tool in the catalog that was indexed. */
  readonly tool: number;
  /** Comparable within one result only. */
  readonly score: number;
  /** True if the query names this tool. */
  readonly pinned: boolean;
}

interface EngineResult {
  /** Best first. Tools that the query names come before and may exceed the limit. */
  readonly hits: readonly EngineHit[];
  /** Words of the query that no tool has. */
  readonly unmatched: readonly string[];
}

interface EngineOptions {
  /** Restricts the search to the tools of this server. */
  server?: string | undefined;
  /** Restricts the search to the tools that it accepts, by position. */
  accepts?: ((tool: number) => boolean) | undefined;
}

export interface SearchEngine {
  search(query: string, limit: number, options?: EngineOptions): EngineResult;
  /**
   * Positions of the first `MAX_PINS` tools with that name: the tool's own name, with its server, or with `mcp__`. `-`,
   * `_` and case do not count.
   */
  named(name: string, options?: EngineOptions): number[];
}

function openRanked(bytes: Uint8Array): SearchEngine {
  const index = openIndex(bytes);
  const filtersOf = ({ server, accepts }: EngineOptions): SearchOptions => ({
    ...(server === undefined ? {} : { servers: (name) => name === server }),
    ...(accepts ? { tools: accepts } : {}),
  });
  return {
    search: (query, limit, options = {}) => searchIndex(index, query, limit, filtersOf(options)),
    named: (name, options = {}) => {
      const { servers, tools } = filtersOf(options);
      return toolsNamed(index, name, bothFilters(serverFilter(index, servers), tools));
    },
  };
}

function openCounted(bytes: Uint8Array, toolsOf: () => readonly NamedTool[]): SearchEngine {
  const tools = toolsOf();
  const index = openWeighted(
    bytes,
    tools.map((tool) => tool.name),
  );
  let byName: Map<string, number[]> | undefined;
  const names = (): Map<string, number[]> => {
    const found = new Map<string, number[]>();
    tools.forEach(({ name, tool, server }, at) => {
      for (const key of new Set([tool, `${server.name} ${tool}`, name].map(lettersAndDigits))) {
        const known = found.get(key);
        if (known) known.push(at);
        else found.set(key, [at]);
      }
    });
    return found;
  };
  const filterOf = ({ server, accepts }: EngineOptions): ToolFilter | undefined =>
    bothFilters(server === undefined ? undefined : (tool) => tools[tool]?.server.name === server, accepts);
  return {
    search: (query, limit, options = {}) => {
      const { hits, unmatched } = searchWeighted(
        index,
        weightedTerms(query.slice(0, MAX_QUERY_CHARACTERS)),
        limit,
        filterOf(options),
      );
      return { hits: hits.map((hit) => ({ ...hit, pinned: false })), unmatched };
    },
    named: (name, options = {}) => {
      byName ??= names();
      const all = byName.get(lettersAndDigits(name)) ?? byName.get(lettersAndDigits(withoutMcp(name))) ?? [];
      const accepts = filterOf(options);
      const found: number[] = [];
      for (let at = 0; at < all.length && found.length < MAX_PINS; at++) {
        if (accepts?.(all[at]!) ?? true) found.push(all[at]!);
      }
      return found;
    },
  };
}

/**
 * Opens an index. `toolsOf`: the indexed tools in the same order; only the ranker `weighted` asks for them. Throws a
 * RangeError for bytes of another version.
 */
export const openEngine = (
  kind: SearchKind,
  bytes: Uint8Array,
  toolsOf: () => readonly NamedTool[],
): SearchEngine => (kind === "ranked" ? openRanked(bytes) : openCounted(bytes, toolsOf));

export type SearchRequest =
  | { kind: "select"; names: string[] }
  | { kind: "words"; text: string }
  | { kind: "empty" };

export function parseRequest(query: string): SearchRequest {
  const select = /^\s*select:(.*)$/is.exec(query);
  if (select) {
    const names = (select[1] ?? "").split(/[\s,]+/).filter((name) => lettersAndDigits(name) !== "");
    return names.length > 0 ? { kind: "select", names: [...new Set(names)] } : { kind: "empty" };
  }
  return lettersAndDigits(query) === "" ? { kind: "empty" } : { kind: "words", text: query };
}
