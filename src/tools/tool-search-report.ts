/** The words that ToolSearch, the proxy tool and answers to unknown calls share. Pure. */
import { type CatalogTool, inputSchemaOf } from "../catalog/catalog.ts";
import { describeErrorOf, type WireError } from "../protocol/errors.ts";
import { firstSentence } from "../protocol/sentence.ts";
import type { ServerStatus } from "../protocol/types.ts";
import { parameterList } from "./signature.ts";

/** For example `- fs__read(path: string, head?: integer = 10) - Reads a file.` */
export const signatureLine = (tool: CatalogTool): string =>
  `- ${tool.name}${parameterList(inputSchemaOf(tool))} - ${firstSentence(tool.description)}`;

/** `lead: a, b`, or nothing where there is nothing to name. */
export const nameLine = (lead: string, names: readonly string[]): string[] =>
  names.length > 0 ? [`${lead}: ${names.join(", ")}`] : [];

/** Why the configuration keeps a tool of that name from being had. Never rejects. */
export type WhyMissing = (name: string) => Promise<WireError | undefined>;

export interface Report {
  /** Declared to the model from the next request on. */
  loaded: readonly CatalogTool[];
  /** Found, but kept out by Pi. */
  refused: readonly CatalogTool[];
  /** Found, but not loaded. */
  more: readonly CatalogTool[];
  notes: readonly string[];
}

export function reportText({ loaded, refused, more, notes }: Report): string {
  const lines: string[] = [];
  if (loaded.length > 0) {
    lines.push("Loaded. Call them by name from your next message on:", ...loaded.map(signatureLine));
  }
  const names = (tools: readonly CatalogTool[]): string[] => tools.map((tool) => tool.name);
  lines.push(...nameLine("Found, but Pi does not allow them in this session (--tools)", names(refused)));
  if (lines.length === 0) lines.push("No tools found.");
  lines.push(...nameLine("Less likely, not loaded (select:name loads one)", names(more)));
  return [...lines, ...notes].join("\n");
}

/** What is missing from an answer because of the servers' state. `loaded`: names of servers whose tools it loads. */
export function serverNotes(
  servers: readonly ServerStatus[],
  pending: readonly string[],
  loaded: ReadonlySet<string> = new Set(),
): string[] {
  const failed = servers.flatMap(({ error, toolsKnown, name }) => {
    if (!error || pending.includes(name)) return [];
    if (!toolsKnown) return [`Not available: ${name}: ${describeErrorOf(name, error)}`];
    return loaded.has(name)
      ? [`Not available now, a call tries again: ${name}: ${describeErrorOf(name, error)}`]
      : [];
  });
  return [...nameLine("Still connecting, search again later", pending), ...failed];
}

/** Set off by the user: neither time nor another search will bring its tools. */
export const isDisabled = ({ state }: ServerStatus): boolean => state === "disabled";

/** Why a server's tools may be missing; nothing where it is connected. */
export function stateNote(status: ServerStatus | undefined): string[] {
  if (!status) return [];
  if (isDisabled(status)) return [`Server ${status.name} is disabled in ${status.source}.`];
  if (status.state === "connected" || (status.toolsKnown && !status.error)) return [];
  if (status.error)
    return [`Server ${status.name} is not available: ${describeErrorOf(status.name, status.error)}`];
  return [`Server ${status.name} is ${status.state}: its tools are not known yet, search again later.`];
}
