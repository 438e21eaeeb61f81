/**
 * The two rankers behind one face: opens an index that build-engine.ts made and asks it. Main thread.
 * `ranked` is described in README.md; `weighted` counts 10/5/4/3 (weighted.ts) and is there for those who
 * want scores that can be added up by hand.
 */
import { lettersAndDigits } from "./characters.ts";
import { openIndex } from "./index-format.ts";
import { toolsNamed, withoutMcp } from "./names.ts";
import { searchIndex } from "./score.ts";
import { openWeighted, searchWeighted } from "./weighted.ts";
import { queryTerms } from "./weighted-tokens.ts";

export type SearchKind = "ranked" | "weighted";

/** What must be known of a tool besides its index. */
export interface NamedTool {
  /** Name in Pi. */
  readonly name: string;
  /** Name at its server. */
  readonly tool: string;
  readonly server: { readonly name: string };
}

export interface EngineHit {
  /** Position of the tool in the catalog that was indexed. */
  readonly tool: number;
  /** Comparable within one result only. */
  readonly score: number;
  /** The query names this tool. */
  readonly pinned: boolean;
}

export interface EngineResult {
  /** Best first. Tools that the query names come first and may exceed the limit. */
  readonly hits: readonly EngineHit[];
  /** Words that no tool has. */
  readonly unmatched: readonly string[];
}

export interface SearchEngine {
  search(query: string, limit: number, server?: string): EngineResult;
  /** Positions of the tools of that name: local, with its server, with `mcp__`; `-`, `_` and case do not count. */
  named(name: string): number[];
}

function openRanked(bytes: Uint8Array): SearchEngine {
  const index = openIndex(bytes);
  return {
    search: (query, limit, server) =>
      searchIndex(index, query, limit, server === undefined ? {} : { servers: (name) => name === server }),
    named: (name) => toolsNamed(index, name),
  };
}

function openCounted(bytes: Uint8Array, tools: readonly NamedTool[]): SearchEngine {
  const index = openWeighted(
    bytes,
    tools.map((tool) => tool.name),
  );
  let byName: Map<string, number[]> | undefined;
  const names = (): Map<string, number[]> => {
    const found = new Map<string, number[]>();
    tools.forEach(({ name, tool, server }, at) => {
      for (const key of new Set([tool, `${server.name} ${tool}`, name].map(lettersAndDigits))) {
        found.set(key, [...(found.get(key) ?? []), at]);
      }
    });
    return found;
  };
  return {
    search: (query, limit, server) => {
      const accepts = (tool: number): boolean => server === undefined || tools[tool]?.server.name === server;
      const { hits, unmatched } = searchWeighted(index, queryTerms(query), limit, accepts);
      return { hits: hits.map((hit) => ({ ...hit, pinned: false })), unmatched };
    },
    named: (name) => {
      byName ??= names();
      return byName.get(lettersAndDigits(name)) ?? byName.get(lettersAndDigits(withoutMcp(name))) ?? [];
    },
  };
}

/** `tools`: those that were indexed, in the same order. Throws a RangeError for bytes of another version. */
export const openEngine = (kind: SearchKind, bytes: Uint8Array, tools: readonly NamedTool[]): SearchEngine =>
  kind === "ranked" ? openRanked(bytes) : openCounted(bytes, tools);
