/** Lists a server's resources and resource templates, each list by itself, within the limits. */

import { messageOf } from "../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { normalizeResources, normalizeTemplates } from "../../shared/listed.ts";
import type { ListedResources } from "./connection.ts";
import { createKeptList } from "./kept-list.ts";
import { listPages, type SendRequest } from "./list-pages.ts";

export interface ListingOptions {
  signal: AbortSignal;
  limitMs: number;
  onNote: (note: string) => void;
}

/** Answers the items of one list: all, or one more than the limit, by which the caller sees that there are more. */
export async function listOne<T extends { name: string }>(
  send: SendRequest,
  { signal, limitMs, onNote }: ListingOptions,
  { method, field, read }: { method: string; field: string; read: (raw: unknown) => T[] },
): Promise<T[]> {
  const limit = LIMITS.resourcesPerServer + 1;
  const kept = createKeptList<T>(method.replace("/list", ""), { limit, nameOf: ({ name }) => name });
  const onPage = (result: Record<string, unknown>): boolean => {
    for (const item of read(result[field])) kept.add(item);
    if (kept.isFull && result.nextCursor !== undefined) kept.stopEarly();
    return !kept.isFull && kept.items.length < limit;
  };
  await listPages(send, { method, limitMs, signal, onPage });
  const note = kept.note();
  // Items beyond the limit are reported where resources and templates are counted together (merge-listed.ts).
  if (note !== undefined && kept.items.length < limit) onNote(note);
  return [...kept.items];
}

/** JSON-RPC 2.0: the method does not exist. */
const METHOD_NOT_FOUND = -32601;

/** A server with resources need not have templates, and then often does not know the request. */
const isUnknownMethod = (error: unknown): boolean =>
  error instanceof Error && "code" in error && error.code === METHOD_NOT_FOUND;

/** Handles a list that failed: answers no items if the server does not know the request, else writes a note. */
export const orNote =
  ({ signal, onNote }: ListingOptions, what: string) =>
  (error: unknown): [] | undefined => {
    if (isUnknownMethod(error)) return [];
    if (!signal.aborted) onNote(`does not list its ${what}: ${messageOf(error)}`);
    return undefined;
  };

/** Never rejects: a list that fails is noted. */
export async function listResources(send: SendRequest, listing: ListingOptions): Promise<ListedResources> {
  const [resources, templates] = await Promise.all([
    listOne(send, listing, {
      method: "resources/list",
      field: "resources",
      read: normalizeResources,
    }).catch(orNote(listing, "resources")),
    listOne(send, listing, {
      method: "resources/templates/list",
      field: "resourceTemplates",
      read: normalizeTemplates,
    }).catch(orNote(listing, "resource templates")),
  ]);
  return { resources, templates };
}
