/**
 * What a session needs late: a search that the person tries, as ToolSearch would rank it, cleaning what a script printed, what
 * the person has asked for, and the token of a provider of Pi, which is handed on and kept nowhere.
 */
import type { Catalog } from "../catalog/catalog.ts";
import { likelyHits, searchCatalog } from "../catalog/search.ts";
import type { PiContext } from "../pi/api.ts";
import type { ProviderAnswer, ResultContent } from "../shared/protocol/calls.ts";
import type { ErrorCode } from "../shared/protocol/errors.ts";
import { LIMITS } from "../shared/protocol/limits.ts";
import { cleanBlocks, textBlock } from "../shared/text/clean-blocks.ts";
import type { McpHost, TriedSearch } from "../ui/mcp-host.ts";
import type { Running } from "./running.ts";

/** `likely`: as many as ToolSearch would load without a `limit`; it loads every tool that the query names. */
export function trySearch(catalog: Catalog, query: string, limit: number): TriedSearch {
  const startedAt = performance.now();
  const { hits } = searchCatalog(catalog, query, limit);
  const tookMs = performance.now() - startedAt;
  const named = hits.filter(({ pinned }) => pinned).length;
  const most = Math.min(Math.max(LIMITS.searchResults, named), LIMITS.searchResultsMost);
  return { hits, likely: likelyHits(hits.slice(0, most)).length, tookMs };
}

/** The content of a script's result, with a line on what was taken out; undefined if it was clean. */
export function cleanPrinted(content: readonly ResultContent[]): ResultContent[] | undefined {
  const { blocks, taken } = cleanBlocks(content);
  return taken === "" ? undefined : [...blocks, textBlock(`[${taken} left out of what the script printed.]`)];
}

/** The token of a provider as Pi sends it to a server (`auth.provider` in Pi's docs/mcp.md). Does not reject. */
export async function providerToken(
  ctx: Pick<PiContext, "modelRegistry">,
  { provider }: { provider: string },
): Promise<ProviderAnswer> {
  try {
    if (!ctx.modelRegistry.getProvider(provider)) return { problem: "unknown" };
    const token = (await ctx.modelRegistry.getProviderAuth(provider))?.auth.apiKey;
    return token ? { token } : { problem: "signed-out" };
  } catch {
    // The renewal failed, or the session is over. Pi's own error may hold an answer of the provider.
    return { problem: "failed" };
  }
}

/**
 * What a session remembers of a request of the person and of its answer, which others handle. `keepOff`: writes the servers
 * that are switched off now into the transcript; undefined: none is.
 */
export function asked(
  [method, params]: Parameters<McpHost["ask"]>,
  answer: Promise<unknown>,
  session: Pick<Running, "known" | "statuses">,
  keepOff: (off: readonly string[] | undefined) => void,
): void {
  const { known } = session;
  const then = (done: (value: unknown) => void, failed: () => void = () => undefined): void =>
    void answer.then(done, failed);
  if (method === "signOut") {
    const { server } = params as { server: string };
    known.set(server, "signed-out");
    then(
      () => undefined,
      () => known.delete(server),
    );
  } else if (method === "tryServer") {
    const { name } = params as { name: string };
    then((tried) => {
      const { error } = tried as { error?: { code: ErrorCode } };
      if (error) known.set(name, error.code);
    });
  } else if (method === "setEnabled") {
    then(() => {
      const off = [...session.statuses.values()].flatMap(({ name, isOff }) => (isOff ? [name] : []));
      keepOff(off.length === 0 ? undefined : off.sort());
    });
  }
}
