/**
 * Asks for all pages of a list (MCP 2025-11-25, server/utilities/pagination). A page may have any shape, because the
 * caller checks the items. Ends at a repeated cursor and at the limits.
 */
import { LIMITS } from "../../../src/shared/protocol/limits.ts";

/** Sends one request to the server and answers the result as it came. */
export type SendRequest = (
  request: { method: string; params?: Record<string, unknown> },
  options: { signal: AbortSignal; timeout: number },
) => Promise<Record<string, unknown>>;

export interface ListRequest {
  method: string;
  /** Time for all pages together, in milliseconds: a server may send pages for ever. */
  limitMs: number;
  signal: AbortSignal;
  /** Takes the result of one page; answers false if no further page is wanted. */
  onPage: (result: Record<string, unknown>) => boolean | Promise<boolean>;
}

export async function listPages(
  send: SendRequest,
  { method, limitMs, signal, onPage }: ListRequest,
): Promise<void> {
  const seen = new Set<string>();
  const startedAt = performance.now();
  let cursor: string | undefined;
  for (let page = 0; page < LIMITS.listPages; page++) {
    const request = { method, ...(cursor === undefined ? {} : { params: { cursor } }) };
    const timeout = Math.max(1, limitMs - (performance.now() - startedAt));
    const result = await send(request, { signal, timeout });
    if (!(await onPage(result))) return;
    const next = result.nextCursor;
    if (typeof next !== "string" || next === "" || seen.has(next)) return;
    seen.add(next);
    cursor = next;
  }
}
