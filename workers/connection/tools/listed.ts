/**
 * What a server lists as tools: its own tools under the configuration's rules, tools that read its resources, one for each
 * resource and one for each template, with the template's variables as parameters, and those that load its skills. To the
 * rules, the catalog and the search they are tools like any other. Must not: talk to servers.
 */

import { nameTools, shortHash, type ToolPrefix } from "../../../src/shared/naming.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { keepSame } from "../../shared/json.ts";
import {
  boundResources,
  type CachedResource,
  type CachedResources,
  type CachedTemplate,
  type CachedTool,
  listMark,
  normalizeResources,
  normalizeTemplates,
  type ToolList,
} from "../../shared/listed.ts";
import { isAppOnly, isPage, wantsDeclared } from "../../shared/signs.ts";
import type { CachedSkill } from "../../shared/skills.ts";
import type { PublishedTool } from "../../shared/tasks.ts";
import type { ServerDefinition } from "../config/entry/definition.ts";
import { exposureOf, isUndecided, keywordsFor, namesInRules } from "../config/entry/exposure.ts";
import type { Settings } from "../config/entry/settings.ts";
import type { ListedResources } from "../mcp/connection.ts";
import type { Redactor } from "../secrets/redact.ts";
import { skillTools, skillWith } from "../skills/tools.ts";
import { parseUriTemplate, type UriTemplate } from "./uri-template.ts";

export interface ResourceTool {
  /** The URI, or the template. */
  key: string;
  tool: CachedTool;
  /** The URI that a call with these arguments reads. */
  uriOf: (args: Record<string, unknown>) => string;
  /** The arguments with which the tool reads this URI; undefined if the tool cannot. */
  argsOf: (uri: string) => Record<string, unknown> | undefined;
}

const NAME_CHARS = 200;

/** Letters of every script stay, so that two names in another script do not become the same. */
function slug(name: string): string {
  const words = name
    .slice(0, NAME_CHARS)
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, "_")
    .replace(/^_|_$/g, "");
  return words === "" || /^\d/.test(words) ? `resource${words === "" ? "" : `_${words}`}` : words;
}

function describe(item: CachedResource | CachedTemplate, uri: string): string {
  const { name, title, description, mimeType } = item;
  const what = description ?? title ?? name;
  return `Reads the resource ${title ?? name}${what === (title ?? name) ? "" : `: ${what}`} (${uri}${mimeType ? `, ${mimeType}` : ""})`;
}

function inputSchema({ variables }: UriTemplate): Record<string, unknown> {
  const text = { type: "string" };
  return {
    type: "object",
    properties: Object.fromEntries(
      variables.map(({ name, isList }) => [name, isList ? { type: "array", items: text } : text]),
    ),
    required: variables.filter(({ required }) => required).map(({ name }) => name),
    additionalProperties: false,
  };
}

function toCandidate(item: CachedResource | CachedTemplate): ResourceTool | undefined {
  const key = "uri" in item ? item.uri : item.uriTemplate;
  const template = "uri" in item ? undefined : parseUriTemplate(item.uriTemplate);
  if (!("uri" in item) && !template) return undefined;
  return {
    key,
    uriOf: template ? template.expand : () => key,
    argsOf: template ? template.match : (uri) => (uri === key ? {} : undefined),
    tool: {
      name: `get_${slug(item.name)}`,
      ...(item.title === undefined ? {} : { title: item.title }),
      description: describe(item, key),
      inputSchema: template
        ? inputSchema(template)
        : { type: "object", properties: {}, additionalProperties: false },
      annotations: { readOnlyHint: true },
    },
  };
}

const made = new WeakMap<
  CachedResources,
  { tools: readonly CachedTool[]; byName: Map<string, ResourceTool> }
>();

/** By tool name. Answers the same objects for the same lists, because tools are compared by identity. */
export function resourceTools(
  listed: CachedResources | undefined,
  tools: readonly CachedTool[],
): Map<string, ResourceTool> {
  if (!listed) return new Map();
  const before = made.get(listed);
  if (before?.tools === tools) return before.byName;
  const byName = makeResourceTools(listed, tools);
  made.set(listed, { tools, byName });
  return byName;
}

/**
 * A tool of the server keeps its name. Resources that want the same name get a hash of their URI appended, so that no
 * name depends on the order of the list.
 */
function makeResourceTools(listed: CachedResources, tools: readonly CachedTool[]): Map<string, ResourceTool> {
  const candidates = [...listed.templates, ...listed.resources]
    .map(toCandidate)
    .filter((candidate) => candidate !== undefined);
  const uses = new Map<string, number>(tools.map(({ name }) => [name, 1]));
  for (const { tool } of candidates) uses.set(tool.name, (uses.get(tool.name) ?? 0) + 1);
  return new Map(
    candidates.map(({ key, tool, uriOf, argsOf }) => {
      const name = uses.get(tool.name) === 1 ? tool.name : `${tool.name}_${shortHash(key)}`;
      return [name, { key, uriOf, argsOf, tool: { ...tool, name } }];
    }),
  );
}

/** The lists of a server that tools are made of. */
interface KnownLists {
  definition: Pick<ServerDefinition, "exposeResources" | "skillPolicy">;
  tools: CachedTool[] | undefined;
  resources?: CachedResources | undefined;
  skills?: CachedSkill[] | undefined;
}

/** One list for all servers of which none are known, because what is made of lists is found again by them. */
export const NO_TOOLS: CachedTool[] = [];

type MadeKind = NonNullable<PublishedTool["kind"]>;

/** The tools that are made of a server's resources and skills, each with its kind. Without any, no tool is read. */
export function madeTools(server: KnownLists): { tool: CachedTool; kind: MadeKind }[] {
  const { definition, resources, skills } = server;
  if (!skills && !resources?.resources.length && !resources?.templates.length) return [];
  const { tools = NO_TOOLS } = server;
  const readers = definition.exposeResources ? resourceTools(resources, tools) : NO_READERS;
  return [
    ...[...readers]
      .filter(([, { key }]) => !skillWith({ definition, skills }, key))
      .map(([, { tool }]) => ({ tool, kind: "resource" as const })),
    ...[...skillTools({ definition, skills }, tools).values()].map(({ tool }) => ({
      tool,
      kind: "skill" as const,
    })),
  ];
}

const NO_READERS: ReturnType<typeof resourceTools> = new Map();

/** The server's own tools, then the tools that read its resources and load its skills. */
export function allTools(server: KnownLists): CachedTool[] {
  const more = madeTools(server);
  const { tools = NO_TOOLS } = server;
  return more.length === 0 ? tools : [...tools, ...more.map(({ tool }) => tool)];
}

const TEMPLATES_SHOWN = 5;
const TEMPLATE_CHARS = 100;

/** Names the templates whose expressions are not closed, or whose variables cannot be parameters; undefined if none. */
function unusableNote(templates: readonly CachedTemplate[]): string | undefined {
  const unusable = templates.filter(({ uriTemplate }) => !parseUriTemplate(uriTemplate));
  if (unusable.length === 0) return undefined;
  const shown = unusable
    .slice(0, TEMPLATES_SHOWN)
    .map(({ uriTemplate }) => JSON.stringify(uriTemplate.slice(0, TEMPLATE_CHARS)));
  if (unusable.length > shown.length) shown.push(`${unusable.length - shown.length} more`);
  return `has resource templates that no one could fill in, so they are not tools: ${shown.join(", ")}`;
}

/** Distinct notes about one server in a session: the server may give its templates new names each time. */
const NOTES = 20;

/** The notes about a list and about the lists before it in this session. */
const noted = new WeakMap<CachedResources, ReadonlySet<string>>();

/** Answers the resources known now, each once and within the limit. Writes each note once a session. */
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
  const reported = new Set(before && noted.get(before));
  const note = (text: string | undefined): void => {
    if (text === undefined || reported.has(text) || reported.size >= NOTES) return;
    reported.add(text);
    onNote(text);
  };
  const limit = LIMITS.resourcesPerServer;
  if (leftOut > 0) note(`has more than ${limit} resources: only the first ${limit} are offered as tools`);
  note(unusableNote(known.templates));
  noted.set(known, reported);
  return known;
}

/** A server as this folder sees it. */
export interface ToolServer {
  name: string;
  definition: ServerDefinition;
  held: ToolList | undefined;
  /** Undefined until a list came from the server or the cache. */
  tools: CachedTool[] | undefined;
  resources: CachedResources | undefined;
  skills: CachedSkill[] | undefined;
  /** Whether the rules hide the tool. `tool`: the server's name of it. */
  excludes(tool: string): boolean;
  redact: Redactor;
}

export const prefixOf = (server: Pick<ToolServer, "definition">, settings: Settings): ToolPrefix =>
  server.definition.toolPrefix ?? settings.toolPrefix;

/** Names, descriptions and schemas of all tools that are declared because their servers wish so: about 5,000 tokens. */
export const WISHED_CHARS = 20_000;

/** Characters of a tool as the model reads it. */
const declaredChars = ({ name, description = "", inputSchema }: CachedTool): number =>
  name.length +
  Math.min(description.length, LIMITS.descriptionChars) +
  (inputSchema === undefined ? 0 : JSON.stringify(inputSchema).length);

/**
 * Server -> its tools that are declared because it wishes so (`anthropic/alwaysLoad`): only tools about which no rule says
 * anything, and only as many as `WISHED_CHARS` has room for, so that no server can fill the context. The servers in
 * their order, and of each the first tools of its list: the first one without room ends the server's turn.
 */
export function grantedWishes(
  servers: readonly ToolServer[],
  settings: Settings,
): Map<string, ReadonlySet<string>> {
  const granted = new Map<string, ReadonlySet<string>>();
  let left = WISHED_CHARS;
  for (const server of servers) {
    const { definition, held } = server;
    if (!definition.enabled || !held || !listMark(held).wishes) continue;
    const prefix = prefixOf(server, settings);
    const tools = new Set<string>();
    for (const tool of server.tools ?? []) {
      if (!wantsDeclared(tool) || isAppOnly(tool)) continue;
      const names = namesInRules(server.name, tool.name, prefix);
      if (!isUndecided(tool.name, definition, settings.directTools, names) || server.excludes(tool.name))
        continue;
      const chars = declaredChars(tool);
      if (chars > left) break;
      left -= chars;
      tools.add(tool.name);
    }
    if (tools.size > 0) granted.set(server.name, tools);
  }
  return granted;
}

/**
 * The tools that the rules let through and the server does not keep for its own pages: others are left out, direct ones are
 * marked. `wished`: those of `grantedWishes`.
 */
export function exposedTools(
  server: Omit<ToolServer, "held" | "excludes" | "redact">,
  settings: Settings,
  wished?: ReadonlySet<string>,
): PublishedTool[] {
  const prefix = prefixOf(server, settings);
  const published = (tool: CachedTool, kind?: MadeKind): PublishedTool[] => {
    if (isAppOnly(tool)) return [];
    const names = namesInRules(server.name, tool.name, prefix);
    const exposure = exposureOf(tool.name, server.definition, settings.directTools, names);
    if (exposure === "hidden") return [];
    const direct = exposure === "direct" || wished?.has(tool.name) === true;
    const keywords = keywordsFor(tool.name, server.definition.searchKeywords, names);
    return [{ ...tool, direct, ...(keywords ? { keywords } : {}), ...(kind ? { kind } : {}) }];
  };
  return [
    ...(server.tools ?? NO_TOOLS).flatMap((tool) => published(tool)),
    ...madeTools(server).flatMap(({ tool, kind }) => published(tool, kind)),
  ];
}

/** Longer arguments are left out of the sentence: the model reads the URI beside it. */
const ARGUMENT_CHARS = 1_000;

interface ReaderOptions {
  /** All servers of the session: the name of a tool in Pi depends on the other names. */
  servers: readonly ToolServer[];
  settings: Settings;
}

/** Server and tool -> the name in Pi, for all tools that the rules let through. */
function namesInPi({ servers, settings }: ReaderOptions): Map<string, string> {
  const offered = servers
    .filter(({ definition }) => definition.enabled)
    .flatMap((server) => {
      const prefix = prefixOf(server, settings);
      return exposedTools(server, settings).map(({ name: tool }) => ({ server: server.name, tool, prefix }));
    });
  const { names } = nameTools(offered);
  return new Map(offered.map(({ server, tool }, i) => [keyOf(server, tool), names[i] ?? ""]));
}

const keyOf = (server: string, tool: string): string => JSON.stringify([server, tool]);

/** The tool that reads exactly this URI, else a tool whose template fits it. */
function toolFor(
  server: ToolServer,
  tools: ReturnType<typeof resourceTools>,
  uri: string,
): { tool: string; args: Record<string, unknown> } | undefined {
  let found: { tool: string; args: Record<string, unknown> } | undefined;
  for (const [tool, { argsOf }] of tools) {
    const args = argsOf(uri);
    if (!args || server.excludes(tool)) continue;
    found = { tool, args };
    if (Object.keys(args).length === 0) break;
  }
  return found;
}

/** Answers `(uri) => sentence` for a URI as the server sent it; undefined if no tool reads it. */
export function resourceReader(
  server: ToolServer,
  options: ReaderOptions,
): (uri: string) => string | undefined {
  // Computed once a result, and only for a result with such a link: it may hold a hundred thousand links.
  let names: Map<string, string> | undefined;
  let tools: ReturnType<typeof resourceTools> | undefined;
  return (uri) => {
    if (!server.definition.exposeResources || isPage(uri)) return undefined;
    tools ??= resourceTools(server.resources, server.tools ?? []);
    const reader = skillWith(server, uri) ? undefined : toolFor(server, tools, uri);
    if (!reader) return undefined;
    names ??= namesInPi(options);
    const name = names.get(keyOf(server.name, reader.tool));
    if (name === undefined) return undefined;
    if (Object.keys(reader.args).length === 0) return `Read it with the tool ${name}.`;
    const args = JSON.stringify(reader.args);
    const shown = args.length <= ARGUMENT_CHARS && server.redact(args) === args ? ` and ${args}` : "";
    return `Read it with the tool ${name}${shown}.`;
  };
}
