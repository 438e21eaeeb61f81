/**
 * Prepares each tool for the snapshot and for the index: its name in Pi, schemas that hosts take, and texts in which
 * nothing is hidden from the person. Pure.
 */

import { nameTools } from "../../../src/shared/naming.ts";
import { encode } from "../../../src/shared/protocol/calls.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import type { ToolAnnotations } from "../../../src/shared/protocol/session.ts";
import type { IndexedTool } from "../../../src/shared/search/build.ts";
import {
  rootKeysOf,
  type SnapshotArgument,
  type SnapshotPrompt,
  type SnapshotTool,
} from "../../../src/shared/snapshot/contract.ts";
import { counted } from "../../../src/shared/text/amounts.ts";
import { cleanText, oneLine } from "../../../src/shared/text/unprintable.ts";
import type { CachedArgument, CachedPrompt, CachedTool } from "../../shared/listed.ts";
import type { CatalogServer, PromptCommand, ServerLine } from "../../shared/tasks.ts";
import { kept, type Repair, repairLine } from "../schema/keywords.ts";
import { cleanSchema, moveReferences, repairInputSchema, repairOutputSchema } from "../schema/schema.ts";

/** One tool as the snapshot stores it, and as the index reads it. */
export interface Prepared {
  stored: SnapshotTool;
  indexed: IndexedTool;
}

const TITLE_CHARS = 300;
/** Text of the parameters that only the description names, since no provider takes their names. */
const UNDECLARED_CHARS = 5_000;
/** Keys at the root of a schema. Real schemas have fewer, and main makes a property for each key. */
const ROOT_KEYS = 24;
const ROOT_KEYS_KEPT = ["type", "properties", "required", "additionalProperties", "$defs", "definitions"];

/** A schema that takes any object. */
export const ANY_OBJECT: Record<string, unknown> = { type: "object", properties: {} };

/** Server -> repair -> its tools whose schemas needed it. */
type Repairs = Map<string, Map<Repair | "hidden", string[]>>;

const hiddenLine = (tools: readonly string[]): string =>
  `schemas left out because their names hold invisible characters: ${tools.length} tools, ${oneLine(tools[0] ?? "", TITLE_CHARS)} first`;

const repairLines = (repairs: Repairs): ServerLine[] =>
  [...repairs].flatMap(([server, kinds]) =>
    [...kinds].map(([repair, tools]) => ({
      server,
      text: repair === "hidden" ? hiddenLine(tools) : repairLine(repair, tools),
    })),
  );

/**
 * The positions of the direct tools that are declared, and a line for each server that has more: the first tool of each
 * server, then the second of each, so that no server takes the room of all.
 */
function chooseDirect(flat: readonly { server: CatalogServer; direct: boolean }[]) {
  const ofServer = new Map<string, number[]>();
  for (const [at, { server, direct }] of flat.entries())
    if (direct) kept(ofServer, server.name, (): number[] => []).push(at);
  const ranked = [...ofServer.values()].flatMap((all) => all.map((at, rank) => ({ at, rank })));
  ranked.sort((a, b) => a.rank - b.rank);
  const declared = new Set(ranked.slice(0, LIMITS.directTools).map(({ at }) => at));
  const lines = [...ofServer].flatMap(([server, all]): ServerLine[] => {
    const left = all.filter((at) => !declared.has(at)).length;
    const text = `${counted(left, "direct tool")} not declared, since of all servers ${LIMITS.directTools} are at most: a search finds them`;
    return left === 0 ? [] : [{ server, text }];
  });
  return { declared, lines };
}

const textOf = (value: unknown): string => (typeof value === "string" ? cleanText(value).trim() : "");

/** At most `chars` characters of the text, and the number of characters that are left out. */
export function cutDescription(text: string, chars: number): string {
  if (text.length <= chars) return text;
  const more = `… [${(text.length - chars).toLocaleString("en")} more characters]`;
  return `${text.slice(0, chars).toWellFormed().trimEnd()}${more}`;
}

function withFewKeys(schema: Record<string, unknown>): Record<string, unknown> {
  const entries = Object.entries(schema);
  if (entries.length <= ROOT_KEYS) return schema;
  return Object.fromEntries(entries.filter(([key]) => ROOT_KEYS_KEPT.includes(key)));
}

function schemasOf({ inputSchema, outputSchema }: CachedTool) {
  const input = repairInputSchema(inputSchema);
  const output = repairOutputSchema(outputSchema);
  const cleanInput = cleanSchema(withFewKeys(input.schema));
  const cleanOutput = output && cleanSchema(output.schema);
  const isHidden = !cleanInput || (output && !cleanOutput);
  return {
    input: cleanInput ?? ANY_OBJECT,
    output: cleanOutput,
    repairs: new Set([
      ...input.repairs,
      ...(output?.repairs ?? []),
      ...(isHidden ? (["hidden"] as const) : []),
    ]),
    undeclared: input.undeclared,
  };
}

function describe(server: string, { name, title, description, annotations }: CachedTool): string {
  const words = textOf(description) || oneLine(textOf(title) || textOf(annotations?.title), TITLE_CHARS);
  return cutDescription(words || oneLine(`${name} of ${server}`, TITLE_CHARS), LIMITS.descriptionChars);
}

/** Names and prepares the tools of all servers, in their order. */
export function prepareTools(servers: readonly CatalogServer[]) {
  const flat = servers.flatMap((server, index) =>
    server.tools.map(({ direct, kind, keywords, ...tool }) => ({
      server,
      index,
      direct,
      kind,
      keywords,
      tool,
    })),
  );
  const { names, bare, collisions } = nameTools(
    flat.map(({ server, tool }) => ({
      server: server.name,
      prefix: server.prefix ?? "server",
      tool: tool.name,
    })),
  );
  const repairs: Repairs = new Map();
  const { declared, lines: undeclaredLines } = chooseDirect(flat);
  const tools = flat.map(({ server, index, tool, kind, keywords }, i): Prepared => {
    const { input, output, repairs: done, undeclared } = schemasOf(tool);
    for (const repair of done) {
      const ofServer = kept(repairs, server.name, () => new Map());
      kept(ofServer, repair, (): string[] => []).push(tool.name);
    }
    const description = describe(server.name, tool);
    const more = undeclared === undefined ? [] : [oneLine(undeclared, UNDECLARED_CHARS)];
    const stored: SnapshotTool = {
      name: names[i] ?? tool.name,
      server: index,
      tool: tool.name,
      description: [description, ...more].join("\n"),
      ...(declared.has(i) ? { direct: true } : {}),
      ...(bare[i] ? { bare: true } : {}),
      ...(kind ? { kind } : {}),
      ...(tool.annotations ? { annotations: tool.annotations as ToolAnnotations } : {}),
      rootKeys: rootKeysOf(input),
      schema: encode(input),
      ...(output ? { outputSchema: encode(moveReferences(output)) } : {}),
    };
    const indexed = {
      server: server.name,
      serverDescription: server.about ?? server.description ?? "",
      name: tool.name,
      fullName: stored.name,
      description,
      ...(keywords === undefined ? {} : { keywords: cleanText(keywords) }),
      inputSchema: tool.inputSchema,
    };
    return { stored, indexed };
  });
  return { tools, collisions, undeclared: undeclaredLines, repairs: repairLines(repairs) };
}

const ARGUMENT_NAME = new RegExp(`^[\\p{L}\\p{N}_.-]{1,${LIMITS.promptArgumentChars}}$`, "u");

interface Chosen {
  server: string;
  position: number;
  prompt: PromptCommand;
}

const described = (description: string | undefined): { description?: string } => {
  const line = oneLine(description ?? "", LIMITS.promptDescriptionChars);
  return line === "" ? {} : { description: line };
};

const isTypeable = ({ name }: CachedArgument): boolean => ARGUMENT_NAME.test(name);

const isUsable = ({ arguments: args = [] }: CachedPrompt): boolean =>
  args.every((argument) => isTypeable(argument) || !argument.required);

/** The first prompt of each server, then the second of each, up to the limit. */
function choose(servers: readonly CatalogServer[]): Chosen[] {
  const lists = servers.map(({ prompts = [] }) => prompts.filter(isUsable));
  const longest = lists.reduce((most, { length }) => Math.max(most, length), 0);
  const chosen: Chosen[] = [];
  for (let at = 0; at < longest && chosen.length < LIMITS.promptCommands; at++) {
    for (const [position, list] of lists.entries()) {
      const prompt = list[at];
      const server = servers[position]?.name;
      if (!prompt || server === undefined || chosen.length >= LIMITS.promptCommands) continue;
      chosen.push({ server, position, prompt });
    }
  }
  return chosen;
}

function toArgument({ name, description, required }: CachedArgument): SnapshotArgument {
  return { name, ...described(description), ...(required ? { required } : {}) };
}

function toPrompt(
  { name, title, description, arguments: args = [], skillTool }: PromptCommand,
  command: string,
) {
  const skill = skillTool === undefined ? {} : { skillTool };
  const prompt: SnapshotPrompt = { command, prompt: name, ...skill, ...described(description ?? title) };
  const typeable = args.filter(isTypeable).map(toArgument);
  return typeable.length === 0 ? prompt : { ...prompt, arguments: typeable };
}

/** The commands by position of the server. */
export function promptCommands(servers: readonly CatalogServer[]): Map<number, SnapshotPrompt[]> {
  const chosen = choose(servers);
  const uses = new Map<string, number>();
  const keyOf = ({ position, prompt }: Chosen): string => `${position} ${prompt.name}`;
  for (const one of chosen) uses.set(keyOf(one), (uses.get(keyOf(one)) ?? 0) + 1);
  // Skills of one name have tools of different names, which do not depend on their order.
  const own = (one: Chosen): string =>
    uses.get(keyOf(one)) === 1 ? one.prompt.name : (one.prompt.skillTool ?? one.prompt.name);
  const { names } = nameTools(
    chosen.map((one) => ({ server: one.server, tool: own(one), prefix: "mcp" as const })),
  );
  const commands = new Map<number, SnapshotPrompt[]>();
  for (const [i, { position, prompt }] of chosen.entries()) {
    const own = commands.get(position) ?? [];
    commands.set(position, [...own, toPrompt(prompt, names[i] ?? "")]);
  }
  return commands;
}
