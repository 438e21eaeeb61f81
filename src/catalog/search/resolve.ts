/**
 * The way from a name as a model wrote it to a tool: the only place that decides which names count as the same, and
 * which are near enough to be suggested. Pure.
 */
import { ownerOf } from "../../shared/naming.ts";
import { shownName } from "../../shared/text/unprintable.ts";
import { type Catalog, type CatalogTool, toolsOf } from "../catalog.ts";
import { nearestNames } from "./nearest.ts";
import { searchCatalog, toolsNamed } from "./query.ts";

export type Resolution =
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
export interface ServersKnown {
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
