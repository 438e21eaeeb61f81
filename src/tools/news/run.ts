/** The text about servers and tools that have changed, and what the model has been told before. */
import { type Catalog, holdsToolsOf, toolsOf } from "../../catalog/catalog.ts";
import type { AddedMessage, PiContext } from "../../pi/context.ts";
import type { CatalogSettings } from "../../shared/protocol/catalog.ts";
import { isObject } from "../../shared/protocol/is-object.ts";
import { LIMITS } from "../../shared/protocol/limits.ts";
import {
  type DescribedServer,
  searchToolDescription,
  serversThatFit,
  toldIn,
} from "../../shared/text/search-tool.ts";
import { shownName } from "../../shared/text/unprintable.ts";

/** The branch, and the part of it that the model still reads after a compaction. */
export type NewsBranch = Pick<PiContext["sessionManager"], "getBranch" | "buildContextEntries">;

export interface NewsFacts {
  /** The tool that finds the others, as the model has it. `servers`: all that were known when it was described. */
  declared: { name: string; description: string; servers: readonly string[] };
  catalog: Catalog;
  settings: CatalogSettings;
  /** Names of all servers that there are. */
  servers: readonly string[];
  branch: NewsBranch;
}

/** Names our messages in the transcript. */
const NEWS = "pi-mcp-threads";

/** What the model knows of a server's tools: how many, and some of their names. Undefined: that there is a server. */
type Known = { count: number; tools: readonly string[] } | undefined;

/** By shown name. */
interface Told {
  servers: Map<string, Known>;
  /** In how many texts of the branch the server stands. */
  texts: Map<string, number>;
}

const detailsOf = (entry: unknown): [name: string, known: unknown][] => {
  if (!isObject(entry) || entry.type !== "custom_message" || entry.customType !== NEWS) return [];
  const { details } = entry;
  return isObject(details) && isObject(details.servers) ? Object.entries(details.servers) : [];
};

const strings = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((item) => typeof item === "string") : [];

/** What the description and the later texts say. A text that a compaction has taken away says nothing any more. */
function toldTo({ declared, branch }: Pick<NewsFacts, "declared" | "branch">): Told {
  const { servers: described, isWhole } = toldIn(declared.description);
  // Servers without room in the description count as told: their number stands there.
  const unnamed = isWhole ? [] : declared.servers.map((name) => [shownName(name), undefined] as const);
  const servers = new Map<string, Known>([...unnamed, ...described]);
  for (const entry of branch.buildContextEntries()) {
    for (const [name, known] of detailsOf(entry)) {
      if (known === null) servers.delete(name);
      else if (isObject(known) && typeof known.count === "number") {
        servers.set(name, { count: known.count, tools: strings(known.tools) });
      } else servers.set(name, undefined);
    }
  }
  const texts = new Map<string, number>();
  for (const entry of branch.getBranch()) {
    for (const [name] of detailsOf(entry)) texts.set(name, (texts.get(name) ?? 0) + 1);
  }
  return { servers, texts };
}

/** By shown name. `undefined`: the settings name servers alone, or the server's tools are not known yet. */
async function thereIs({
  servers,
  catalog,
  settings,
}: NewsFacts): Promise<Map<string, string[] | undefined>> {
  const namesTools = settings.catalog === "tools" && !settings.proxyTool;
  const all = namesTools
    ? Map.groupBy(await toolsOf(catalog, undefined), (tool) => tool.server.name)
    : undefined;
  return new Map(
    servers.map((name) => [
      shownName(name),
      all && holdsToolsOf(catalog, name)
        ? (all.get(name) ?? []).map((tool) => shownName(tool.tool))
        : undefined,
    ]),
  );
}

const isSame = (known: Known, now: readonly string[] | undefined): boolean =>
  !known || !now || (known.count === now.length && known.tools.every((name) => now.includes(name)));

/** Servers of one kind of change, with as many names as fit; the rest is counted. */
const part = (
  lead: string,
  names: readonly string[],
  tools: (name: string) => string[] | undefined,
): string =>
  names.length === 0
    ? ""
    : ` ${lead}: ${serversThatFit(
        names.map((name) => ({ name, tools: tools(name) ?? [] })),
        LIMITS.newsTokens / 4,
      ).join(", ")}.`;

/** Tells nothing twice, and of one server at most `LIMITS.newsAServer` times on a branch. */
export async function tellNews(facts: NewsFacts): Promise<AddedMessage | undefined> {
  const { declared } = facts;
  if (facts.settings.catalog === "off") return undefined;
  const told = toldTo(facts);
  const now = await thereIs(facts);
  const mayTell = (name: string): boolean => (told.texts.get(name) ?? 0) < LIMITS.newsAServer;
  const added = [...now.keys()].filter((name) => mayTell(name) && !told.servers.has(name));
  const gone = [...told.servers.keys()].filter((name) => mayTell(name) && !now.has(name));
  const changed = [...now].flatMap(([name, tools]) =>
    mayTell(name) && told.servers.has(name) && !isSame(told.servers.get(name), tools) ? [name] : [],
  );
  const all = [...added, ...changed, ...gone];
  if (all.length === 0) return undefined;
  const last = all.filter((name) => told.texts.get(name) === LIMITS.newsAServer - 1);
  const content = [
    "Note of the MCP extension, not of the user: MCP servers have changed.",
    part("New", added, (name) => now.get(name)),
    part("Tools now", changed, (name) => now.get(name)),
    part("Gone", gone, () => undefined),
    part("No further changes are told of", last, () => undefined),
    added.length + changed.length > 0 ? ` ${declared.name} finds them.` : "",
  ].join("");
  const servers = Object.fromEntries([
    ...[...added, ...changed].map((name) => {
      const tools = now.get(name);
      return [name, tools ? { count: tools.length, tools: tools.slice(0, LIMITS.newsTools) } : {}] as const;
    }),
    ...gone.map((name) => [name, null] as const),
  ]);
  return { customType: NEWS, content, display: true, details: { servers } };
}

/** The servers of the configuration, with the tools that the catalog has of them. */
export async function describedPlan(
  servers: readonly Pick<DescribedServer, "name" | "description">[],
  { catalog, settings }: Pick<NewsFacts, "catalog" | "settings">,
): Promise<string> {
  const tools = Map.groupBy(await toolsOf(catalog, undefined), (tool) => tool.server.name);
  const described = servers.map(({ name, description }) => {
    // A catalog without tools is older than the plan.
    const own = catalog.count > 0 ? catalog.servers.find((server) => server.name === name) : undefined;
    const known = own?.description ?? description;
    const names = (tools.get(name) ?? []).map(({ tool }) => tool);
    return { name, tools: names, ...(known === undefined ? {} : { description: known }) };
  });
  return searchToolDescription(described, settings);
}
