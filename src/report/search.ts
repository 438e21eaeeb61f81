/** The phrases that ToolSearch, the proxy tool and the answers to unknown calls share. Pure. */
import { type Catalog, type CatalogTool, inputSchemaOf } from "../catalog/catalog.ts";
import { type WireError, withoutServer } from "../shared/protocol/errors.ts";
import { LIMITS } from "../shared/protocol/limits.ts";
import type { ServerStatus } from "../shared/protocol/session.ts";
import { parameterList } from "../shared/text/signature.ts";
import { cleanText, cut, firstSentence, oneLine, shownName } from "../shared/text/unprintable.ts";
import { serverName } from "./server-name.ts";

/** For example `- fs__read(path: string, head?: integer = 10) - Reads a file.` */
export const signatureLine = (tool: CatalogTool): string =>
  `- ${tool.name}${parameterList(inputSchemaOf(tool))} - ${firstSentence(tool.description)}`;

const NAMES_SHOWN = 50;
const NAME_CHARS = 200;
const ERROR_CHARS = 600;

/** `lead: a, b`, or no line without names. Bounded. */
export function nameLine(lead: string, names: readonly string[]): string[] {
  if (names.length === 0) return [];
  const shown = names.slice(0, NAMES_SHOWN).map((name) => oneLine(name, NAME_CHARS));
  const rest = names.length - shown.length;
  return [`${lead}: ${shown.join(", ")}${rest > 0 ? `, and ${rest} more` : ""}`];
}

const WRITTEN_CHARS = 80;
const ABOUT_CHARS = 80;

/** What to say about a name that no server has: each server with what it is about. Bounded. */
export function noServer(
  written: string,
  servers: readonly string[],
  { servers: known }: Pick<Catalog, "servers">,
): string {
  const about = new Map(known.map(({ name, description = "" }) => [name, firstSentence(description)]));
  const shown = servers.map((name) => {
    const text = oneLine(about.get(name) ?? "", ABOUT_CHARS);
    return text === "" ? name : `${name} (${text})`;
  });
  const [list = "Servers: none"] = nameLine("Servers", shown);
  return `No server named ${oneLine(written, WRITTEN_CHARS)}. ${list}.`;
}

/** A failure in one line. A server may have written it, and its text must not look like another line of the answer. */
export const errorLine = ({
  message,
  remedy = "",
}: {
  message: string;
  remedy?: string | undefined;
}): string => `${oneLine(message, ERROR_CHARS)} ${oneLine(remedy, ERROR_CHARS)}`.trimEnd();

/** The failure in one line, without the server's name, which stands before it already. */
export const errorLineOf = (
  server: string,
  error: { message: string; remedy?: string | undefined },
): string => errorLine({ ...error, message: withoutServer(server, error.message) });

/** Why the configuration makes a tool of this name unavailable; undefined if it does not. Does not reject. */
export type WhyMissing = (name: string) => Promise<WireError | undefined>;

export interface Report {
  /** Declared to the model from the next request on. */
  loaded: readonly CatalogTool[];
  /** Found, but not accepted by Pi. */
  refused: readonly CatalogTool[];
  /** Found, but not loaded. */
  more: readonly CatalogTool[];
  /** The search was in all servers. */
  everywhere: boolean;
  notes: readonly string[];
  /** Stands above the loaded tools. */
  loadedText?: string | undefined;
}

const LOADED = "Loaded. Call them by name from your next message on:";

export function reportText(report: Report): string {
  const { loaded, refused, more, everywhere, notes, loadedText = LOADED } = report;
  const lines: string[] = [];
  if (loaded.length > 0) lines.push(loadedText, ...loaded.map(signatureLine));
  const names = (tools: readonly CatalogTool[]): string[] => tools.map((tool) => tool.name);
  lines.push(...nameLine("Found, but Pi does not allow them in this session (--tools)", names(refused)));
  if (lines.length === 0) lines.push("No tools found.");
  const narrow = everywhere ? ", server narrows the search" : "";
  lines.push(...nameLine(`Less likely, not loaded (select:name loads one${narrow})`, names(more)));
  return [...lines, ...notes].join("\n");
}

/** Says what an answer lacks because of the servers' states. `loaded`: names of servers whose tools the answer loads. */
export function serverNotes(
  servers: readonly ServerStatus[],
  pending: readonly string[],
  loaded: ReadonlySet<string> = new Set(),
): string[] {
  const failed = servers.flatMap(({ error, toolsKnown, name }) => {
    if (!error || pending.includes(name)) return [];
    const says = `${serverName(name)}: ${errorLineOf(name, error)}`;
    if (!toolsKnown) return [`Not available: ${says}`];
    return loaded.has(name) ? [`Not available now, a call tries again: ${says}`] : [];
  });
  return [...nameLine("Still connecting, search again later", pending), ...failed];
}

/** Disabled by the user: neither time nor another search makes its tools available. */
export const isDisabled = ({ state }: ServerStatus): boolean => state === "disabled";

/** Why a server's tools may be missing; no line if the server is connected. */
export function stateNote(status: ServerStatus | undefined): string[] {
  if (!status) return [];
  const { state, source, toolsKnown, error } = status;
  const name = serverName(status.name);
  if (status.isOff)
    return [
      `Server ${name} is switched off for this session: only the user can switch it on (/mcp on ${name}).`,
    ];
  if (isDisabled(status)) return [`Server ${name} is disabled in ${source}.`];
  if (state === "connected" || (toolsKnown && !error)) return [];
  if (error) return [`Server ${name} is not available: ${errorLineOf(status.name, error)}`];
  return [`Server ${name} is ${state}: its tools are not known yet, search again later.`];
}

/**
 * The instructions with a mark before each line. A clean text has no line end but the newline, so that a server can
 * write no line without the mark, and the model sees where the server's words end.
 */
export function markedInstructions(server: string, instructions: string): string {
  const text = cut(
    cleanText(instructions)
      .trim()
      .replace(/\n{3,}/g, "\n\n"),
    LIMITS.instructionsChars,
  );
  const lines = text.split("\n").map((line) => `> ${line}`.trimEnd());
  const head = `Instructions of the MCP server ${shownName(server)}, in the server's own words and not the user's. Each of their lines begins with ">":`;
  return [head, ...lines].join("\n");
}
