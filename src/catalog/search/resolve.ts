/**
 * From a name as a model wrote it to a tool: the one place that decides what counts as the same name and
 * what is close enough to be offered. Pure.
 */
import { ownerOf } from "../../shared/naming/names.ts";
import { shownName } from "../../shared/text/unprintable.ts";
import type { Catalog, CatalogTool } from "../catalog.ts";
import { toolsOf } from "../catalog.ts";
import { nearestNames } from "./nearest.ts";
import { searchCatalog, toolsNamed } from "./query.ts";

export type Resolution =
  | { kind: "tool"; tool: CatalogTool }
  /** One name on several servers. */
  | { kind: "several"; tools: CatalogTool[] }
  | { kind: "unknown" };

const NEAREST = 3;

const withoutMcp = (name: string): string => name.replace(/^mcp[_\-./:]+/i, "");

/** The name without marks: what is left of `my-server` and `my_server` is the same. */
const plain = (name: string): string => name.toLowerCase().replaceAll(/[\s_\-./:]/g, "");

/** The server whose name begins a tool's name as a model wrote it. */
export const serverOfName = (written: string, servers: readonly string[]): string | undefined =>
  ownerOf(withoutMcp(written), servers);

/** Whatever is known of servers: the plan's, and the catalog's before there is one. */
export interface ServersKnown {
  servers(): readonly { name: string }[];
  catalog(): Pick<Catalog, "servers">;
}

/** Their names, each once. */
export const serverNames = ({ servers, catalog }: ServersKnown): string[] => [
  ...new Set([...servers(), ...catalog().servers].map(({ name }) => name)),
];

/** The server that is meant: by its exact name, as a list shows it, or but for case and marks. */
export const findServer = (written: string, servers: readonly string[]): string | undefined =>
  servers.find((name) => name === written) ??
  servers.find((name) => shownName(name) === written) ??
  servers.find((name) => plain(name) === plain(written));

/** Longer names are no names, and what is looked for in them is bounded with them. */
const WRITTEN_CHARS = 1_000;
/** Of a name that is searched for by its words. */
const WORDS_CHARS = 80;

/**
 * Tools that may have been meant by a name that is none: a few slips away, or with the same words. Takes its time in
 * slices. `server`: the tools must be of this server.
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

/** `server`: the tool must be one of this server. */
export function resolveTool(catalog: Catalog, written: string, server?: string): Resolution {
  const tools = toolsNamed(catalog, written, server);
  const exact = tools.filter((tool) => tool.tool === written);
  const found = exact.length > 0 ? exact : tools;
  const [tool] = found;
  if (!tool) return { kind: "unknown" };
  return found.length === 1 ? { kind: "tool", tool } : { kind: "several", tools: found };
}
