/**
 * What a server lists, or a cache file holds, reduced to what is kept and made safe to handle: tools, resources with their
 * templates, and prompts. Servers are untrusted: a field of the wrong type is left out, and so is a schema that is too deep
 * or too big to encode, which then counts as one that takes any object. A text that is too long is cut or left out. An item
 * without a usable name or URI is left out, and so is a page of MCP Apps (signs.ts); of several with one name the first
 * counts.
 */

import { hash } from "node:crypto";
import { LIMITS } from "../../src/shared/protocol/limits.ts";
import { asList, isObject } from "../../src/shared/protocol/values.ts";
import { cut } from "../../src/shared/text/unprintable.ts";
import { isWithin } from "./json.ts";
import { isPage, signsOf, type ToolSigns, wantsDeclared } from "./signs.ts";

/** MCP 2025-11-25, server/tools, reduced. */
export interface CachedTool {
  name: string;
  title?: string;
  description?: string;
  inputSchema?: unknown;
  outputSchema?: unknown;
  annotations?: Record<string, unknown>;
  /** Those of its signs on which this client acts. */
  _meta?: ToolSigns;
}

/** A tool as its server lists it. */
export interface ListedTool extends CachedTool {
  /** Only if the tool runs as a task alone (MCP 2025-11-25, basic/utilities/tasks, "Tool-Level Negotiation"). */
  execution?: { taskSupport: "required" };
}

/** The keys of `CachedTool`. Other keys of a tool in a cache file belong to other adapters. */
export const TOOL_FIELDS: readonly string[] = [
  "name",
  "title",
  "description",
  "inputSchema",
  "outputSchema",
  "annotations",
  "_meta",
] satisfies (keyof CachedTool)[];

const SCHEMA = { depth: 64, nodes: 20_000, chars: 512 * 1024 };
const NAME_CHARS = 1_000;
const TITLE_CHARS = 1_000;
/** Five times as long as the index reads, and far longer than helps any model. */
const DESCRIPTION_CHARS = 20_000;

/** Whether a JSON value is within the limits of depth and size of a schema, keys included. */
export const isBounded = (value: unknown): boolean => isWithin(value, SCHEMA);

const text = (value: unknown): string | undefined =>
  typeof value === "string" && value !== "" ? value : undefined;

/** Undefined for a value that is not a tool. */
export function normalizeTool(raw: unknown): ListedTool | undefined {
  if (!isObject(raw)) return undefined;
  const name = text(raw.name);
  // U+0000 separates the columns of a snapshot, and no real name holds it.
  if (name === undefined || name.length > NAME_CHARS || name.includes("\u0000")) return undefined;
  const tool: ListedTool = { name };
  const title = text(raw.title);
  const description = text(raw.description);
  if (title !== undefined) tool.title = cut(title, TITLE_CHARS);
  if (description !== undefined) tool.description = cut(description, DESCRIPTION_CHARS);
  for (const key of ["inputSchema", "outputSchema", "annotations"] as const) {
    const value = raw[key];
    if (isObject(value) && isBounded(value)) tool[key] = value;
  }
  const signs = signsOf(raw._meta, raw.uiVisibility);
  if (signs) tool._meta = signs;
  if (isObject(raw.execution) && raw.execution.taskSupport === "required")
    tool.execution = { taskSupport: "required" };
  return tool;
}

/** Names of the tools in a list whose schemas are too deep or too big to be kept. */
export const unboundedTools = (raw: unknown): string[] =>
  asList(raw)
    .filter(isObject)
    .filter((tool) => !(isBounded(tool.inputSchema) && isBounded(tool.outputSchema)))
    .map((tool) => String(tool.name));

/** The items that `read` can use, in order. Of several with one key, the first counts. */
function distinct<T>(raw: unknown, keyOf: (item: T) => string, read: (item: unknown) => T | undefined): T[] {
  const found = new Map<string, T>();
  for (const item of asList(raw)) {
    const usable = read(item);
    if (usable !== undefined && !found.has(keyOf(usable))) found.set(keyOf(usable), usable);
  }
  return [...found.values()];
}

export const normalizeTools = (raw: unknown): CachedTool[] =>
  distinct(raw, ({ name }) => name, normalizeTool);

/** What is known of a list of tools without reading it. */
export interface ListMark {
  /** Number of tools. */
  count: number;
  /** Hex SHA-256 of the list as JSON. */
  hash: string;
  /** Whether a tool of it wants to be declared (signs.ts). */
  wishes: boolean;
}

export const markOf = (tools: readonly CachedTool[], listHash: string): ListMark => ({
  count: tools.length,
  hash: listHash,
  wishes: tools.some(wantsDeclared),
});

/** Tools as JSON, until somebody needs one of them: thousands of objects of which a session may use none. */
export class StoredTools {
  readonly mark: ListMark;
  #json: Uint8Array | undefined;
  #tools: CachedTool[] = [];

  /** `json`: valid JSON of a list, which nobody changes. */
  constructor(mark: ListMark, json: Uint8Array) {
    this.mark = mark;
    this.#json = json;
  }

  /** The same list each time. */
  get tools(): CachedTool[] {
    if (this.#json) {
      this.#tools = normalizeTools(JSON.parse(new TextDecoder().decode(this.#json)));
      this.#json = undefined;
    }
    return this.#tools;
  }
}

/** A list of tools, read or not. */
export type ToolList = CachedTool[] | StoredTools;

/** The server of a catalog without its tools, unless nothing else stands for them. Reads no tool. */
export function withoutTools<S extends { listed?: string; tools?: unknown }>(server: S): Omit<S, "tools"> {
  if (server.listed === undefined) return server;
  const kept = Object.keys(server).filter((key) => key !== "tools");
  return Object.fromEntries(kept.map((key) => [key, server[key as keyof S]])) as Omit<S, "tools">;
}

export const readList = (list: ToolList): CachedTool[] => (list instanceof StoredTools ? list.tools : list);

const marks = new WeakMap<readonly CachedTool[], ListMark>();

export function listMark(list: ToolList): ListMark {
  if (list instanceof StoredTools) return list.mark;
  const mark = marks.get(list) ?? markOf(list, hash("sha256", JSON.stringify(list)));
  marks.set(list, mark);
  return mark;
}

/**
 * Names of parameters that providers take. Anthropic's API, also behind Bedrock, refuses a whole request over one other
 * name (400, "Property keys should match pattern").
 */
export const PARAMETER_NAME = /^[A-Za-z0-9_.-]{1,64}$/;

interface Described {
  name: string;
  title?: string;
  description?: string;
  mimeType?: string;
}

/** MCP 2025-11-25, server/resources, reduced. */
export type CachedResource = Described & { uri: string };
export type CachedTemplate = Described & { uriTemplate: string };

export interface CachedResources {
  resources: CachedResource[];
  templates: CachedTemplate[];
}

const TEXT_CHARS = 10_000;

/** The value if it is a text that is neither empty nor too long to read, else undefined. */
const shortText = (value: unknown): string | undefined =>
  typeof value === "string" && value !== "" && value.length <= TEXT_CHARS ? value : undefined;

type TextKey = "title" | "description" | "mimeType";

/** Those of the texts that can be read. */
function textsOf<K extends TextKey>(
  raw: Record<string, unknown>,
  keys: readonly K[],
): { [key in K]?: string } {
  const texts: { [key in TextKey]?: string } = {};
  for (const key of keys) {
    const value = shortText(raw[key]);
    if (value !== undefined) texts[key] = value;
  }
  return texts;
}

const describedBy =
  <K extends "uri" | "uriTemplate">(key: K) =>
  (raw: unknown): (Described & Record<K, string>) | undefined => {
    const uri = isObject(raw) ? shortText(raw[key]) : undefined;
    if (!isObject(raw) || uri === undefined || isPage(uri)) return undefined;
    const name = shortText(raw.name) ?? uri;
    const texts = textsOf(raw, ["title", "description", "mimeType"]);
    return { [key]: uri, name, ...texts } as Described & Record<K, string>;
  };

export const normalizeResources = (raw: unknown): CachedResource[] =>
  distinct(raw, ({ uri }) => uri, describedBy("uri"));
export const normalizeTemplates = (raw: unknown): CachedTemplate[] =>
  distinct(raw, ({ uriTemplate }) => uriTemplate, describedBy("uriTemplate"));

/** Cuts the resources to the limit for one server. Templates come first, since each stands for many resources. */
export function boundResources({ resources, templates }: CachedResources): {
  known: CachedResources;
  /** Number of resources and templates that are left out. */
  leftOut: number;
} {
  const keptTemplates = templates.slice(0, LIMITS.resourcesPerServer);
  const kept = resources.slice(0, LIMITS.resourcesPerServer - keptTemplates.length);
  const leftOut = resources.length + templates.length - kept.length - keptTemplates.length;
  return { known: { resources: kept, templates: keptTemplates }, leftOut };
}

export interface CachedArgument {
  name: string;
  description?: string;
  required?: boolean;
}

/** MCP 2025-11-25, server/prompts, reduced. */
export interface CachedPrompt {
  name: string;
  title?: string;
  description?: string;
  arguments?: CachedArgument[];
}

const ARGUMENTS = 50;

function normalizeArgument(raw: unknown): CachedArgument[] {
  const name = isObject(raw) ? shortText(raw.name) : undefined;
  if (!isObject(raw) || name === undefined) return [];
  const required = typeof raw.required === "boolean" ? { required: raw.required } : {};
  return [{ name, ...textsOf(raw, ["description"]), ...required }];
}

function normalizePrompt(raw: unknown): CachedPrompt | undefined {
  const name = isObject(raw) ? shortText(raw.name) : undefined;
  if (!isObject(raw) || name === undefined) return undefined;
  const prompt: CachedPrompt = { name, ...textsOf(raw, ["title", "description"]) };
  if (!Array.isArray(raw.arguments)) return prompt;
  return { ...prompt, arguments: raw.arguments.slice(0, ARGUMENTS).flatMap(normalizeArgument) };
}

export const normalizePrompts = (raw: unknown): CachedPrompt[] =>
  distinct(raw, ({ name }) => name, normalizePrompt);
