/**
 * From a name as a model wrote it to a tool: the one place that decides what counts as the same name and
 * what is close enough to be offered. Pure.
 */
import { ownerOf } from "../protocol/names.ts";
import { shownName } from "../protocol/unprintable.ts";
import type { Catalog, CatalogTool } from "./catalog.ts";
import { nearestNames } from "./nearest.ts";
import { searchCatalog, toolsNamed } from "./search.ts";

export type Resolution =
  | { kind: "tool"; tool: CatalogTool }
  /** One name on several servers. */
  | { kind: "several"; tools: CatalogTool[] }
  | { kind: "unknown"; nearest: CatalogTool[] };

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

function nearest(catalog: Catalog, written: string, server: string | undefined): CatalogTool[] {
  const name = withoutMcp(written);
  const tools =
    server === undefined ? catalog.tools : catalog.tools.filter((tool) => tool.server.name === server);
  const full = nearestNames(
    name,
    tools.map((tool) => tool.name),
    NEAREST,
  );
  const local = nearestNames(
    name.replace(/^.*(?:__|[/:])/, ""),
    tools.map(({ tool }) => tool),
    NEAREST,
  );
  const slips = [...full, ...local].map((at) => tools[at] as CatalogTool);
  const words = searchCatalog(catalog, name.replaceAll(/[_\-./:]+/g, " "), NEAREST, server).hits;
  return [...new Set([...slips, ...words.map(({ tool }) => tool)])].slice(0, NEAREST);
}

/** `server`: the tool must be one of this server. */
export function resolveTool(catalog: Catalog, written: string, server?: string): Resolution {
  const isOf = (tool: CatalogTool): boolean => server === undefined || tool.server.name === server;
  const tools = toolsNamed(catalog, written).filter(isOf);
  const exact = tools.filter((tool) => tool.tool === written);
  const found = exact.length > 0 ? exact : tools;
  const [tool] = found;
  if (tool && found.length === 1) return { kind: "tool", tool };
  if (tool) return { kind: "several", tools: found };
  const prefix = serverOfName(
    written,
    catalog.servers.map(({ name }) => name),
  );
  return { kind: "unknown", nearest: nearest(catalog, written, server ?? prefix) };
}
