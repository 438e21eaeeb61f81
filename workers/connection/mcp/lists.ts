/** Lists a server's resources and resource templates, each list by itself, within the limits. */

import { messageOf } from "../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { type CachedPrompt, normalizePrompts } from "../../shared/listed/prompt.ts";
import { normalizeResources, normalizeTemplates } from "../../shared/listed/resource.ts";
import { type CachedTool, normalizeTool, unboundedTools } from "../../shared/listed/tool.ts";
import { createReader, inTurn } from "../../shared/pace/turns.ts";
import type { ListedResources } from "./connection.ts";

/** Undefined if they could not be listed: then the stored prompts stay. Never rejects. */
export async function listPrompts(
  send: SendRequest,
  listing: ListingOptions,
): Promise<CachedPrompt[] | undefined> {
  const listed = await listOne(send, listing, {
    method: "prompts/list",
    field: "prompts",
    read: normalizePrompts,
  }).catch(orNote(listing, "prompts"));
  // Each name once, also across pages.
  return listed && normalizePrompts(listed).slice(0, LIMITS.resourcesPerServer);
}

const NOTED_TOOLS = 20;
/** Tools between two looks at the time: the largest takes as long as a hundred usual ones. */
const TOOLS_A_STEP = 10;

export async function listTools(
  send: SendRequest,
  { limitMs, signal, onNote }: { limitMs: number; signal: AbortSignal; onNote: (note: string) => void },
): Promise<CachedTool[]> {
  const tools = createKeptList<CachedTool>("tools", {
    limit: LIMITS.toolsPerServer,
    nameOf: ({ name }) => name,
  });
  const names = new Set<string>();
  const unbounded: string[] = [];
  const reader = createReader();
  const onPage = async (result: Record<string, unknown>): Promise<boolean> => {
    const listed: unknown[] = Array.isArray(result.tools) ? result.tools : [];
    for (const [index, raw] of listed.entries()) {
      if (index % TOOLS_A_STEP === 0) await inTurn(reader);
      const tool = normalizeTool(raw);
      if (unbounded.length < NOTED_TOOLS) unbounded.push(...unboundedTools([raw]));
      if (!tool || names.has(tool.name)) continue;
      names.add(tool.name);
      tools.add(tool);
    }
    if (tools.isFull && result.nextCursor !== undefined) tools.stopEarly();
    return !tools.isFull;
  };
  await listPages(send, { method: "tools/list", limitMs, signal, onPage });
  if (unbounded.length > 0) {
    onNote(`schemas left out, too deep or too big: ${unbounded.slice(0, NOTED_TOOLS).join(", ")}`);
  }
  const note = tools.note();
  if (note !== undefined) onNote(note);
  return [...tools.items];
}

interface KeptList<T> {
  readonly items: readonly T[];
  /** An item was left out, so further pages need not be asked for. */
  readonly isFull: boolean;
  add(item: T): void;
  /** The list ends here although the server has further pages. */
  stopEarly(): void;
  /** One line that names the items left out, worded to follow the server's name; undefined if there are none. */
  note(): string | undefined;
}

const NAMED = 20;
const NAME_CHARS = 100;
const MEBIBYTE = 1024 * 1024;

/** `what`: the plural of the items, for example `tools`. */
export function createKeptList<T>(
  what: string,
  { limit, nameOf }: { limit: number; nameOf: (item: T) => string },
): KeptList<T> {
  const items: T[] = [];
  const named: string[] = [];
  let chars = 0;
  let leftOut = 0;
  let hasMorePages = false;
  let reason = "";

  const leaveOut = (item: T, because: string): void => {
    reason ||= because;
    leftOut++;
    if (named.length < NAMED) named.push(nameOf(item).slice(0, NAME_CHARS).toWellFormed());
  };

  return {
    items,
    get isFull() {
      return leftOut > 0;
    },
    add: (item) => {
      if (items.length >= limit) return leaveOut(item, `more than ${limit.toLocaleString("en")} ${what}`);
      // The length of its JSON is close enough to what an item takes in memory and in the files of the cache.
      const itemChars = leftOut > 0 ? 0 : JSON.stringify(item).length;
      if (leftOut > 0 || chars + itemChars > LIMITS.listBytes) {
        return leaveOut(item, `more than ${LIMITS.listBytes / MEBIBYTE} MiB of ${what}`);
      }
      chars += itemChars;
      items.push(item);
    },
    stopEarly: () => {
      hasMorePages = true;
    },
    note: () => {
      if (leftOut === 0) return undefined;
      const more = leftOut > named.length ? ` and ${(leftOut - named.length).toLocaleString("en")} more` : "";
      const pages = hasMorePages ? "; further pages were not asked for" : "";
      return `lists ${reason}, and these are left out: ${named.join(", ")}${more}${pages}`;
    },
  };
}

/** Sends one request to the server and answers the result as it came. */
export type SendRequest = (
  request: { method: string; params?: Record<string, unknown> },
  options: { signal: AbortSignal; timeout: number },
) => Promise<Record<string, unknown>>;

interface ListRequest {
  method: string;
  /** Time for all pages together, in milliseconds: a server may send pages for ever. */
  limitMs: number;
  signal: AbortSignal;
  /** Takes the result of one page; answers false if no further page is wanted. */
  onPage: (result: Record<string, unknown>) => boolean | Promise<boolean>;
}

async function listPages(send: SendRequest, { method, limitMs, signal, onPage }: ListRequest): Promise<void> {
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

interface ListingOptions {
  signal: AbortSignal;
  limitMs: number;
  onNote: (note: string) => void;
}

/** Answers the items of one list: all, or one more than the limit, by which the caller sees that there are more. */
async function listOne<T extends { name: string }>(
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
const orNote =
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
