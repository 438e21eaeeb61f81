/** Tries the search of the panel's search view. Hits of a query that has changed meanwhile are dropped. */
import type { PanelHost } from "./host.ts";
import type { Tried } from "./model/model.ts";

/** More hits than a person compares. */
const HITS = 50;

export interface SearchReading {
  /** Tries the query, unless it was the last one that was tried. Rejects with what went wrong. */
  follow(query: string): Promise<void>;
  /** The same query is tried again. */
  forget(): void;
}

/** `put` gets nothing for an empty query. */
export function createSearchReading(
  host: Pick<PanelHost, "search" | "catalog">,
  put: (tried: Tried | undefined) => void,
): SearchReading {
  let last: string | undefined;
  return {
    follow: async (query) => {
      if (query === last) return;
      last = query;
      if (query.trim() === "") return put(undefined);
      const { hits, likely, tookMs } = await host.search(query, HITS);
      if (last !== query) return;
      const told = hits.map(({ tool, score }) => ({
        key: tool.name,
        server: tool.server.name,
        tool: tool.tool,
        score,
        description: tool.description,
      }));
      put({ query, hits: told, likely, tookMs, count: host.catalog().count });
    },
    forget: () => {
      last = undefined;
    },
  };
}
