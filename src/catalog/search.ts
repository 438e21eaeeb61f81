/**
 * Finds tools in a catalog. Owns: the search by words through the snapshot's index, and the way from a name as a model
 * wrote it to a tool: which names count as the same, and which are near enough to be suggested. Must not: load or describe
 * tools. Loaded after Pi's first paint, because the ranker is as large as everything that Pi needs before it. The work for
 * each near name is bounded: its length and a mask of its letters exclude most names, and shared/text/reading.ts compares
 * the others within limits, in slices, because there may be thousands of names.
 */
import { ownerOf } from "../shared/naming.ts";
import { MAX_PINS } from "../shared/search/pins.ts";
import { openEngine, type SearchEngine } from "../shared/search/search.ts";
import { COMPARED_CHARS, slipsBetween } from "../shared/text/reading.ts";
import { shownName } from "../shared/text/unprintable.ts";
import { type Catalog, type CatalogTool, createSlices, eachTool, toolsOf } from "./catalog.ts";

/** How many slips still count as the same word, by the length of the word. */
const slipsFor = (length: number): number => (length < 5 ? 1 : length < 12 ? 2 : 3);

/** A set of the letters as 32 bits: one bit per letter; digits and `_` share bits. */
function letterMask(name: string): number {
  let mask = 0;
  for (let at = 0; at < name.length; at++) mask |= 1 << (name.charCodeAt(at) & 31);
  return mask;
}

function bitsOf(mask: number): number {
  let bits = 0;
  for (let rest = mask; rest !== 0; rest &= rest - 1) bits++;
  return bits;
}

interface Near {
  at: number;
  slips: number;
}

function keepNearest(found: Near[], most: number): void {
  found.sort((a, b) => a.slips - b.slips || a.at - b.at);
  found.length = Math.min(found.length, most);
}

/** The number of found names at which only the nearest are kept. */
const FOUND_MOST = 64;

/** Positions of the names within a few slips of `written`: the closest first, equally close ones in their order. */
export async function nearestNames(
  written: string,
  names: Iterable<string>,
  most: number,
): Promise<number[]> {
  const wanted = written.slice(0, 2 * COMPARED_CHARS).toLowerCase();
  const slipsMost = slipsFor(wanted.length);
  const mask = letterMask(wanted);
  const found: Near[] = [];
  const slices = createSlices();
  let at = -1;
  for (const name of names) {
    at++;
    const pause = slices.step();
    if (pause) await pause;
    if (Math.abs(name.length - wanted.length) > slipsMost) continue;
    const lower = name.toLowerCase();
    // One slip changes at most two bits of the set of letters.
    if (bitsOf(letterMask(lower) ^ mask) > 2 * slipsMost) continue;
    const slips = slipsBetween(wanted, lower, slipsMost);
    if (slips > slipsMost) continue;
    found.push({ at, slips });
    // Thousands of names may be near. Of equally near names the first ones are kept.
    if (found.length >= FOUND_MOST) keepNearest(found, most);
  }
  keepNearest(found, most);
  return found.map((near) => near.at);
}

export interface CatalogHit {
  tool: CatalogTool;
  /** Comparable within one result only. */
  score: number;
  /** The query names this tool. */
  pinned: boolean;
}

/**
 * Hits below this share of the best score are not loaded: that costs 0.4 points in the search benchmark and saves one
 * loaded tool in four.
 */
const LIKELY = 0.5;

/** The hits that are nearly as good as the best one. `hits`: best first. */
export const likelyHits = (hits: readonly CatalogHit[]): CatalogHit[] =>
  hits.filter(({ score }) => score >= (hits[0]?.score ?? 0) * LIKELY);

/** One engine per snapshot; `catalogWithout` does not change the snapshot. */
const engines = new WeakMap<Catalog["indexed"], SearchEngine>();

function engineOf({ indexed, settings }: Catalog): SearchEngine {
  let engine = engines.get(indexed);
  if (!engine) {
    engine = openEngine(settings.search, indexed.index, () => [...eachTool(indexed)]);
    engines.set(indexed, engine);
  }
  return engine;
}

const isThere = (catalog: Catalog, tool: CatalogTool): boolean => catalog.get(tool.name) === tool;

/** Undefined if the catalog still holds every tool of the index. */
const presence = (catalog: Catalog): ((at: number) => boolean) | undefined => {
  const { count, tool } = catalog.indexed;
  return count === catalog.count ? undefined : (at) => isThere(catalog, tool(at));
};

/** Best first. `server` restricts the search to its tools. Tools that the query names come first, beyond the limit too. */
export function searchCatalog(
  catalog: Catalog,
  query: string,
  limit: number,
  server?: string,
): { hits: CatalogHit[]; unmatched: readonly string[] } {
  if (catalog.count === 0) return { hits: [], unmatched: [] };
  const options = { server, accepts: presence(catalog) };
  const { hits, unmatched } = engineOf(catalog).search(query, limit, options);
  return {
    hits: hits.map((hit) => ({ ...hit, tool: catalog.indexed.tool(hit.tool) })),
    unmatched,
  };
}

/** Whether a tool has this name in some spelling. `server` restricts the search to its tools. */
export function hasTool(catalog: Catalog, name: string, server?: string): boolean {
  const exact = catalog.get(name);
  if (exact) return server === undefined || exact.server.name === server;
  if (catalog.count === 0) return false;
  return engineOf(catalog).named(name, { server, accepts: presence(catalog) }).length > 0;
}

/**
 * The tools of this name in any spelling: without the server, with it, with `mcp__`, with hyphens. If very many tools
 * share the name, the first ones and those with exactly this name. `server` restricts the search to its tools.
 */
export function toolsNamed(catalog: Catalog, name: string, server?: string): CatalogTool[] {
  const isOf = (tool: CatalogTool): boolean => server === undefined || tool.server.name === server;
  const exact = catalog.get(name);
  if (exact) return isOf(exact) ? [exact] : [];
  if (catalog.count === 0) return [];
  const { tool } = catalog.indexed;
  const isPresent = presence(catalog);
  const named = (accepts: ((at: number) => boolean) | undefined): CatalogTool[] =>
    engineOf(catalog).named(name, { server, accepts }).map(tool);
  const found = named(isPresent);
  if (found.length < MAX_PINS) return found;
  const toTheLetter = named((at) => tool(at).tool === name && (isPresent?.(at) ?? true));
  return [...new Set([...toTheLetter, ...found])];
}

type Resolution =
  | { kind: "tool"; tool: CatalogTool }
  /** Tools of several servers share the name. */
  | { kind: "several"; tools: CatalogTool[] }
  | { kind: "unknown" };

const NEAREST = 3;

const withoutMcp = (name: string): string => name.replace(/^mcp[_\-./:]+/i, "");

/** The name in small letters without marks, so that `my-server` and `My_Server` are equal. */
const plain = (name: string): string => name.toLowerCase().replaceAll(/[\s_\-./:]/g, "");

/** The server whose name begins a tool's name as a model wrote it. */
export const serverOfName = (written: string, servers: readonly string[]): string | undefined =>
  ownerOf(withoutMcp(written), servers);

/** Both sources of server names: the plan, and the catalog, which is there before the plan. */
interface ServersKnown {
  servers(): readonly { name: string }[];
  catalog(): Pick<Catalog, "servers">;
}

/** All server names, each once. */
export const serverNames = ({ servers, catalog }: ServersKnown): string[] => [
  ...new Set([...servers(), ...catalog().servers].map(({ name }) => name)),
];

/** The server of a written name: exactly its name, its name as a list shows it, or its name without case and marks. */
export const findServer = (written: string, servers: readonly string[]): string | undefined =>
  servers.find((name) => name === written) ??
  servers.find((name) => shownName(name) === written) ??
  servers.find((name) => plain(name) === plain(written));

/** Shorter names are parts of too many others. */
const PART_CHARS = 3;

/** The only server whose name holds the written one or is held by it, or else the one that is a few slips away. */
export async function nearestServer(
  written: string,
  servers: readonly string[],
): Promise<string | undefined> {
  const wanted = plain(written.slice(0, WRITTEN_CHARS));
  const names = servers.map(plain);
  const isPart = (part: string, whole: string): boolean => part.length >= PART_CHARS && whole.includes(part);
  const [at, second] = names.flatMap((name, i) => (isPart(wanted, name) || isPart(name, wanted) ? [i] : []));
  const near = at ?? (await nearestNames(wanted, names, 1))[0];
  return near === undefined || second !== undefined ? undefined : servers[near];
}

/** The part of a written name that is looked up, so that a long one costs little. */
const WRITTEN_CHARS = 1_000;
/** The part of a name whose words are searched for. */
const WORDS_CHARS = 80;

/**
 * The tools that an unknown name may stand for: their names are a few slips away, or have the same words. Works in
 * slices. `server` restricts them to its tools.
 */
export async function nearestTools(
  catalog: Catalog,
  written: string,
  server?: string,
): Promise<CatalogTool[]> {
  const name = withoutMcp(written.slice(0, WRITTEN_CHARS));
  const owner = server ?? serverOfName(name, namesOf(catalog));
  const tools = await toolsOf(catalog, owner);
  const local = name.replace(/^.*(?:__|[/:])/, "");
  const near = [
    ...(await nearestNames(name, values(tools, "name"), NEAREST)),
    ...(await nearestNames(local, values(tools, "tool"), NEAREST)),
  ].map((at) => tools[at] as CatalogTool);
  const words = (name.length > WORDS_CHARS ? local : name).slice(0, WORDS_CHARS);
  const { hits } = searchCatalog(catalog, words.replaceAll(/[_\-./:]+/g, " "), NEAREST, owner);
  return [...new Set([...near, ...hits.map(({ tool }) => tool)])].slice(0, NEAREST);
}

function* values(tools: readonly CatalogTool[], key: "name" | "tool"): Generator<string> {
  for (const tool of tools) yield tool[key];
}

const namesOf = ({ servers }: Catalog): string[] => servers.map(({ name }) => name);

/** `server` restricts the search to its tools. */
export function resolveTool(catalog: Catalog, written: string, server?: string): Resolution {
  const tools = toolsNamed(catalog, written, server);
  const exact = tools.filter((tool) => tool.tool === written);
  const found = exact.length > 0 ? exact : tools;
  const [tool] = found;
  if (!tool) return { kind: "unknown" };
  return found.length === 1 ? { kind: "tool", tool } : { kind: "several", tools: found };
}
