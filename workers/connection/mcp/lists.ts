/**
 * The lists of a server: tools, prompts, resources, templates and skills, each over all pages (MCP 2025-11-25,
 * server/utilities/pagination) and within the limits. A page may have any shape: a malformed item costs the server only that
 * item. Ends at a repeated cursor and at the limits.
 */
import { messageOf } from "../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { asList, isObject } from "../../../src/shared/protocol/values.ts";
import {
  type CachedPrompt,
  type CachedTool,
  normalizePrompts,
  normalizeResources,
  normalizeTemplates,
  normalizeTool,
  unboundedTools,
} from "../../shared/listed.ts";
import { createReader, inTurn } from "../../shared/pace/turns.ts";
import { type CachedSkill, eachOnce, normalizeSkill, normalizeSkills } from "../../shared/skills.ts";
import type { ListedResources, ListedSkills, SpokenProtocol } from "./connection.ts";
import { FRESH_LEAST_MS, FRESH_MOST_MS } from "./modern/limits.ts";
import { INVALID_PARAMS, METHOD_NOT_FOUND } from "./wire/wire.ts";

type Result = Record<string, unknown>;

/** Sends one request to the server and answers the result as it came. */
export type SendRequest = (
  request: { method: string; params?: Record<string, unknown> },
  options: { signal: AbortSignal; timeout: number },
) => Promise<Result>;

interface Listing {
  signal: AbortSignal;
  /** Time for all pages together, in milliseconds: a server may send pages for ever. */
  limitMs: number;
  onNote: (note: string) => void;
  era: SpokenProtocol["era"];
  /** The server runs calls as tasks of MCP 2025-11-25, which this client does not have. */
  hasTasks?: boolean;
}

const NAMED = 20;
const NAME_CHARS = 100;
const MEBIBYTE = 1024 * 1024;

const TOO_MANY_PAGES = `more than ${LIMITS.listPages} pages; further pages were not asked for`;

/** The items of one list over all of its pages, up to a number of items and of bytes. Items beyond that are named in a note. */
export class KeptList<T extends { name: string }> {
  readonly items: T[] = [];
  readonly #what: string;
  readonly #limit: number;
  readonly #named: string[] = [];
  #chars = 0;
  #leftOut = 0;
  #reason = "";
  /** The list ends here although the server has further pages. */
  hasMorePages = false;

  /** `what`: the plural of the items, for example `tools`. */
  constructor(what: string, limit: number) {
    this.#what = what;
    this.#limit = limit;
  }

  /** An item was left out, so further pages need not be asked for. */
  get isFull(): boolean {
    return this.#leftOut > 0;
  }

  add(item: T): void {
    // The length of its JSON is close enough to what an item takes in memory and in the files of the cache.
    const chars = this.isFull || this.items.length >= this.#limit ? 0 : JSON.stringify(item).length;
    if (this.items.length >= this.#limit) {
      this.#reason ||= `more than ${this.#limit.toLocaleString("en")} ${this.#what}`;
    } else if (this.isFull || this.#chars + chars > LIMITS.listBytes) {
      this.#reason ||= `more than ${LIMITS.listBytes / MEBIBYTE} MiB of ${this.#what}`;
    } else {
      this.#chars += chars;
      this.items.push(item);
      return;
    }
    this.#leftOut++;
    if (this.#named.length < NAMED) this.#named.push(item.name.slice(0, NAME_CHARS).toWellFormed());
  }

  /** One line about what is left out, worded to follow the server's name, with the names that are known; undefined if nothing is. */
  note(): string | undefined {
    if (!this.isFull) return this.hasMorePages ? `lists its ${this.#what} on ${TOO_MANY_PAGES}` : undefined;
    const unnamed = this.#leftOut - this.#named.length;
    const more = unnamed > 0 ? ` and ${unnamed.toLocaleString("en")} more` : "";
    const pages = this.hasMorePages ? "; further pages were not asked for" : "";
    return `lists ${this.#reason}, and these are left out: ${this.#named.join(", ")}${more}${pages}`;
  }
}

/** `takePage` answers false if no further page is wanted. Answers whether the server has more pages than are asked for. */
async function listPages(
  send: SendRequest,
  { signal, limitMs, era }: Listing,
  method: string,
  takePage: (result: Result) => boolean | Promise<boolean>,
): Promise<boolean> {
  const seen = new Set<string>();
  const startedAt = performance.now();
  let cursor: string | undefined;
  for (let page = 0; page < LIMITS.listPages; page++) {
    const request = { method, ...(cursor === undefined ? {} : { params: { cursor } }) };
    const timeout = Math.max(1, limitMs - (performance.now() - startedAt));
    const result = await send(request, { signal, timeout });
    if (!(await takePage(result))) return false;
    const next = result.nextCursor;
    // Servers of the old era write an empty cursor for none; in the new one it is a cursor (server/utilities/pagination).
    if (typeof next !== "string" || (next === "" && era === "legacy") || seen.has(next)) return false;
    seen.add(next);
    cursor = next;
  }
  return true;
}

const NOTED_TOOLS = 20;
/** Tools between two looks at the time: the largest takes as long as a hundred usual ones. */
const TOOLS_A_STEP = 10;

export async function listTools(send: SendRequest, listing: Listing): Promise<CachedTool[]> {
  const tools = new KeptList<CachedTool>("tools", LIMITS.toolsPerServer);
  const names = new Set<string>();
  const unbounded: string[] = [];
  const taskOnly: string[] = [];
  const reader = createReader();
  const isCut = await listPages(send, listing, "tools/list", async (result) => {
    for (const [index, raw] of asList(result.tools).entries()) {
      if (index % TOOLS_A_STEP === 0) await inTurn(reader);
      const listed = normalizeTool(raw);
      if (unbounded.length < NOTED_TOOLS) unbounded.push(...unboundedTools([raw]));
      if (!listed || names.has(listed.name)) continue;
      const { execution, ...tool } = listed;
      names.add(tool.name);
      if (execution && listing.hasTasks) taskOnly.push(tool.name.slice(0, NAME_CHARS).toWellFormed());
      else tools.add(tool);
    }
    tools.hasMorePages = tools.isFull && result.nextCursor !== undefined;
    return !tools.isFull && taskOnly.length < LIMITS.toolsPerServer;
  });
  if (unbounded.length > 0)
    listing.onNote(`schemas left out, too deep or too big: ${unbounded.slice(0, NOTED_TOOLS).join(", ")}`);
  if (taskOnly.length > 0)
    listing.onNote(
      `tools left out, which run only as tasks of MCP 2025-11-25: ${taskOnly.slice(0, NOTED_TOOLS).join(", ")}`,
    );
  tools.hasMorePages ||= isCut;
  const note = tools.note();
  if (note !== undefined) listing.onNote(note);
  return tools.items;
}

/**
 * The items of one list, within the limit. A list that fails is noted: undefined. None if the server does not know the request.
 */
async function listOne<T extends { name: string }>(
  send: SendRequest,
  listing: Listing,
  {
    of,
    words,
    read,
    limit,
    onPage,
  }: {
    of: [method: string, field: string];
    words: string;
    read: (raw: unknown) => T[];
    /** Without it the caller sees by one item more than the limit of resources that there are more, and tells of it. */
    limit?: number;
    onPage?: (result: Result) => void;
  },
): Promise<T[] | undefined> {
  const [method, field] = of;
  const most = limit ?? LIMITS.resourcesPerServer + 1;
  const kept = new KeptList<T>(method.replace("/list", ""), most);
  const tellsMore = (): boolean => limit !== undefined || kept.items.length < most;
  try {
    const isCut = await listPages(send, listing, method, (result) => {
      onPage?.(result);
      for (const item of read(result[field])) kept.add(item);
      kept.hasMorePages = kept.isFull && result.nextCursor !== undefined;
      return !kept.isFull && tellsMore();
    });
    kept.hasMorePages ||= isCut;
  } catch (error) {
    // A server with resources need not have templates, and often answers this.
    if (error instanceof Error && "code" in error && error.code === METHOD_NOT_FOUND) return [];
    if (!listing.signal.aborted) listing.onNote(`does not list its ${words}: ${messageOf(error)}`);
    return undefined;
  }
  const note = kept.note();
  // Items beyond the limit are reported where resources and templates are counted together (tools/listed.ts).
  if (note !== undefined && tellsMore()) listing.onNote(note);
  return kept.items;
}

/** Never rejects: a list that fails is noted. */
export async function listResources(send: SendRequest, listing: Listing): Promise<ListedResources> {
  const [resources, templates] = await Promise.all([
    listOne(send, listing, {
      of: ["resources/list", "resources"],
      words: "resources",
      read: normalizeResources,
    }),
    listOne(send, listing, {
      of: ["resources/templates/list", "resourceTemplates"],
      words: "resource templates",
      read: normalizeTemplates,
    }),
  ]);
  return { resources, templates };
}

/** Undefined if they could not be listed: then the stored prompts stay. Never rejects. */
export async function listPrompts(send: SendRequest, listing: Listing): Promise<CachedPrompt[] | undefined> {
  const listed = await listOne(send, listing, {
    of: ["prompts/list", "prompts"],
    words: "prompts",
    read: normalizePrompts,
  });
  // Each name once, also across pages.
  return listed && normalizePrompts(listed).slice(0, LIMITS.resourcesPerServer);
}

/** How long an answer counts, in milliseconds: `ttlMs` of MCP 2026-07-28, within bounds. */
const freshFor = (ttlMs: unknown): number =>
  typeof ttlMs === "number" && ttlMs > 0
    ? Math.min(Math.max(ttlMs, FRESH_LEAST_MS), FRESH_MOST_MS)
    : FRESH_LEAST_MS;

/** The skills of a server that declares them (SEP-2640, "Listing Skills"). Undefined if they could not be listed. Never rejects. */
export async function listSkills(send: SendRequest, listing: Listing): Promise<ListedSkills | undefined> {
  let freshMs = FRESH_MOST_MS;
  const listed = await listOne(send, listing, {
    of: ["skills/list", "skills"],
    words: "skills",
    read: normalizeSkills,
    limit: LIMITS.skillsPerServer,
    onPage: ({ ttlMs }) => {
      freshMs = Math.min(freshMs, freshFor(ttlMs));
    },
  });
  // Each address once, also across pages.
  return listed && { skills: eachOnce(listed), freshUntil: Date.now() + freshMs };
}

/**
 * The entry of one skill (SEP-2640, "Getting a Skill"); `none`: the server serves no such skill; undefined: the server gives
 * no entry of that address. Rejects with what the request rejects with.
 */
export async function getSkill(
  send: SendRequest,
  { uri, signal }: { uri: string; signal: AbortSignal },
): Promise<CachedSkill | "none" | undefined> {
  try {
    const result = await send(
      { method: "skills/get", params: { uri } },
      { signal, timeout: LIMITS.promptTimeoutMs },
    );
    const skill = normalizeSkill(result.skill);
    return skill?.uri === uri ? skill : undefined;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === INVALID_PARAMS) return "none";
    throw error;
  }
}

/**
 * The direct children of a folder of a server that declares `directoryRead` (SEP-2640, "Reading Directories"): addresses, those
 * of folders with a slash behind them. Rejects with what the request rejects with.
 */
export async function readDirectory(send: SendRequest, listing: Listing, uri: string): Promise<string[]> {
  const found: string[] = [];
  const isCut = await listPages(
    (request, options) => send({ ...request, params: { ...request.params, uri } }, options),
    listing,
    "resources/directory/read",
    (result) => {
      for (const item of asList(result.resources)) {
        if (!isObject(item) || typeof item.uri !== "string" || found.length >= LIMITS.skillFiles) continue;
        found.push(item.mimeType === "inode/directory" ? `${item.uri}/` : item.uri);
      }
      return found.length < LIMITS.skillFiles;
    },
  );
  if (isCut) listing.onNote(`lists a folder of a skill on ${TOO_MANY_PAGES}`);
  return found;
}
