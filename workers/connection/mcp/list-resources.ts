/** What a server has of resources and resource templates, each list for itself, within the limit. */
import { messageOf } from "../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { keepSame } from "../../shared/json/same.ts";
import {
  boundResources,
  type CachedResources,
  type CachedTemplate,
  normalizeResources,
  normalizeTemplates,
} from "../../shared/listed/resource.ts";
import { parseUriTemplate } from "../offers/uri-template.ts";
import { createKeptList } from "./kept-list.ts";
import { listPages, type SendRequest } from "./list-pages.ts";

export interface ListingOptions {
  signal: AbortSignal;
  limitMs: number;
  onNote: (note: string) => void;
}

/** All items of one list, and at most one more than the limit. */
export async function listOne<T extends { name: string }>(
  send: SendRequest,
  { signal, limitMs, onNote }: ListingOptions,
  { method, field, read }: { method: string; field: string; read: (raw: unknown) => T[] },
): Promise<T[]> {
  // One more than fits, so that it can be told.
  const limit = LIMITS.resourcesPerServer + 1;
  const kept = createKeptList<T>(method.replace("/list", ""), { limit, nameOf: ({ name }) => name });
  const onPage = (result: Record<string, unknown>): boolean => {
    for (const item of read(result[field])) kept.add(item);
    if (kept.isFull && result.nextCursor !== undefined) kept.stopEarly();
    return !kept.isFull && kept.items.length < limit;
  };
  await listPages(send, { method, limitMs, signal, onPage });
  const note = kept.note();
  // What the limit of items leaves out is told where the resources and templates meet.
  if (note !== undefined && kept.items.length < limit) onNote(note);
  return [...kept.items];
}

/** Undefined: it could not be listed, so what was known of it stays. */
export interface ListedResources {
  resources: CachedResources["resources"] | undefined;
  templates: CachedResources["templates"] | undefined;
}

/** JSON-RPC 2.0: the method does not exist. */
const METHOD_NOT_FOUND = -32601;

/** Servers with resources need not have templates, and many then do not know the request. */
const isUnknownMethod = (error: unknown): boolean =>
  error instanceof Error && "code" in error && error.code === METHOD_NOT_FOUND;

/** For a list that failed: nothing where the server knows no such list, else a note. */
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

const TEMPLATES_SHOWN = 5;
const TEMPLATE_CHARS = 100;

/** Templates whose expressions are not closed, or name what no parameter can be called; undefined: none. */
function unusableNote(templates: readonly CachedTemplate[]): string | undefined {
  const unusable = templates.filter(({ uriTemplate }) => !parseUriTemplate(uriTemplate));
  if (unusable.length === 0) return undefined;
  const shown = unusable
    .slice(0, TEMPLATES_SHOWN)
    .map(({ uriTemplate }) => JSON.stringify(uriTemplate.slice(0, TEMPLATE_CHARS)));
  if (unusable.length > shown.length) shown.push(`${unusable.length - shown.length} more`);
  return `has resource templates that nobody could fill in, so they are no tools: ${shown.join(", ")}`;
}

/** Distinct notes of one server in a session: it may name its templates anew each time. */
const NOTES = 20;

/** What was noted of a list, and of those that came before it in this session. */
const noted = new WeakMap<CachedResources, ReadonlySet<string>>();

/** What is known of them now, each once and within the limit. Each note is told once a session. */
export function mergeListed(
  before: CachedResources | undefined,
  { resources, templates }: ListedResources,
  onNote: (note: string) => void,
): CachedResources {
  const { leftOut, known: listed } = boundResources({
    resources: normalizeResources(resources ?? before?.resources),
    templates: normalizeTemplates(templates ?? before?.templates),
  });
  const known = keepSame(before, listed);
  const told = new Set(before && noted.get(before));
  const note = (text: string | undefined): void => {
    if (text === undefined || told.has(text) || told.size >= NOTES) return;
    told.add(text);
    onNote(text);
  };
  const limit = LIMITS.resourcesPerServer;
  if (leftOut > 0) note(`has more than ${limit} resources: only the first ${limit} are offered as tools`);
  note(unusableNote(known.templates));
  noted.set(known, told);
  return known;
}
