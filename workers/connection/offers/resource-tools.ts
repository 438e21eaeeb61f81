/**
 * Makes tools of resources: one tool for each resource, and one for each template, with the template's variables as
 * parameters. To the rules, the catalog and the search they are tools like any other. Pure.
 */
import { shortHash } from "../../../src/shared/naming.ts";
import type { CachedResource, CachedResources, CachedTemplate, CachedTool } from "../../shared/listed.ts";
import type { ServerDefinition } from "../config/entry/definition.ts";
import { parseUriTemplate, type UriTemplate } from "./uri-template.ts";

export interface ResourceTool {
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

interface Candidate extends ResourceTool {
  key: string;
}

function toCandidate(item: CachedResource | CachedTemplate): Candidate | undefined {
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
      return [name, { uriOf, argsOf, tool: { ...tool, name } }];
    }),
  );
}

/** The lists of a server that tools are made of. */
export interface KnownLists {
  definition: Pick<ServerDefinition, "exposeResources">;
  tools: CachedTool[] | undefined;
  resources?: CachedResources | undefined;
}

/** The server's own tools, then the tools that read its resources. */
export function offeredTools({ definition, tools = [], resources }: KnownLists): CachedTool[] {
  if (!resources || !definition.exposeResources) return tools;
  return [...tools, ...[...resourceTools(resources, tools).values()].map(({ tool }) => tool)];
}
