/**
 * What the model is told beside the declarations, in texts that the transcript keeps: the servers' own words on their use,
 * with the first answer that brings one of their tools, and with the next message which servers and tools have come,
 * changed and gone. A declaration itself never changes, because any changed byte costs the user their prompt cache.
 * Keeps no state of its own: what the model knows stands in the description and in the earlier texts of the branch.
 */
import { type Catalog, holdsToolsOf, toolsOf } from "../catalog/catalog.ts";
import type { AddedMessage, PiContext } from "../pi/api.ts";
import { markedInstructions } from "../report/search.ts";
import { SKILL_BY_ADDRESS } from "../shared/naming.ts";
import { LIMITS } from "../shared/protocol/limits.ts";
import type { CatalogSettings } from "../shared/protocol/session.ts";
import { isObject } from "../shared/protocol/values.ts";
import type { SnapshotServer } from "../shared/snapshot/contract.ts";
import {
  type DescribedServer,
  searchToolDescription,
  serversThatFit,
  toldIn,
} from "../shared/text/search-tool.ts";
import { shownName, withBases } from "../shared/text/unprintable.ts";

/** Answers the entries of the branch that the model still reads: a text that a compaction has taken away says nothing any more. */
export type ReadBranch = () => readonly unknown[];

/** `text` goes to the model. `servers` goes to the details of the result, by which a resumed session knows the text. */
export interface ToldInstructions {
  text: string;
  servers: string[];
}

export interface Instructions {
  /** The words of those servers whose words the branch does not hold; undefined if there are none. */
  tell(servers: readonly string[], branch: ReadBranch): Promise<ToldInstructions | undefined>;
  /** The next answer reads from the transcript which words the branch holds. */
  branchChanged(): void;
}

/** The servers whose instructions a result of the branch holds. */
export function serversToldIn(branch: readonly unknown[]): Set<string> {
  const told = new Set<string>();
  for (const entry of branch) {
    const message = isObject(entry) && entry.type === "message" ? entry.message : undefined;
    if (!isObject(message) || message.role !== "toolResult" || !isObject(message.details)) continue;
    const { instructed } = message.details;
    for (const server of Array.isArray(instructed) ? instructed : []) {
      if (typeof server === "string") told.add(server);
    }
  }
  return told;
}

/**
 * Tells each server once. `told`: the servers whose words the branch holds; undefined until its transcript is read.
 * Servers beyond the limit of one answer are told with a later result of one of their tools.
 */
export function tellInstructions(
  state: { told: Set<string> | undefined },
  {
    asked,
    known,
    branch,
  }: { asked: readonly string[]; known: readonly SnapshotServer[]; branch: ReadBranch },
): ToldInstructions | undefined {
  const texts = new Map<string, string>();
  for (const name of asked) {
    if (texts.size >= LIMITS.instructionsServers || state.told?.has(name)) continue;
    const instructions = known.find((server) => server.name === name)?.instructions;
    if (instructions === undefined) continue;
    state.told ??= serversToldIn(branch());
    if (state.told.has(name)) continue;
    state.told.add(name);
    texts.set(name, markedInstructions(name, instructions));
  }
  return texts.size === 0
    ? undefined
    : { text: [...texts.values()].join("\n\n"), servers: [...texts.keys()] };
}

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

/** The names that a description can say, by server: as in that of a snapshot, the tool for skills by their address is left out. */
async function toolNames(catalog: Catalog): Promise<Map<string, string[]>> {
  const names = new Map<string, string[]>();
  for (const { server, tool } of await toolsOf(catalog, undefined)) {
    if (tool === SKILL_BY_ADDRESS) continue;
    const own = names.get(server.name);
    if (own) own.push(tool);
    else names.set(server.name, [tool]);
  }
  return names;
}

/** By shown name. `undefined`: the settings name servers alone, or the server's tools are not known yet. */
async function thereIs({
  servers,
  catalog,
  settings,
}: NewsFacts): Promise<Map<string, string[] | undefined>> {
  const namesTools = settings.catalog === "tools" && !settings.proxyTool;
  const all = namesTools ? await toolNames(catalog) : undefined;
  return new Map(
    servers.map((name) => [
      shownName(name),
      all && holdsToolsOf(catalog, name) ? (all.get(name) ?? []).map(shownName) : undefined,
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
    added.length + changed.length > 0 ? ` ${declared.name} finds tools that are not loaded.` : "",
  ].join("");
  const servers = Object.fromEntries([
    // Tools that are not known yet count as none, so that they are news once they are.
    ...[...added, ...changed].map((name) => {
      const tools = now.get(name) ?? [];
      return [name, { count: tools.length, tools: tools.slice(0, LIMITS.newsTools) }] as const;
    }),
    ...gone.map((name) => [name, null] as const),
  ]);
  // Pi draws the text as it is, and a clone chooses the names of its servers.
  return { customType: NEWS, content: withBases(content), display: true, details: { servers } };
}

/** The servers of the configuration, with the tools that the catalog has of them. */
export async function describedPlan(
  servers: readonly Pick<DescribedServer, "name" | "description">[],
  { catalog, settings }: Pick<NewsFacts, "catalog" | "settings">,
): Promise<string> {
  const tools = await toolNames(catalog);
  const described = servers.map(({ name, description }) => {
    // A catalog without tools is older than the plan.
    const own = catalog.count > 0 ? catalog.servers.find((server) => server.name === name) : undefined;
    const known = own?.description ?? description;
    return { name, tools: tools.get(name) ?? [], ...(known === undefined ? {} : { description: known }) };
  });
  return searchToolDescription(described, settings);
}
