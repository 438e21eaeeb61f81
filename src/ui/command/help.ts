/** The texts of `/mcp help`, of words that do not fit, and of the log. Loaded with the first command. Pure but for the paths. */
import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { serverName } from "../../report/server-name.ts";
import type { ServerStatus } from "../../shared/protocol/session.ts";
import { slipsBetween } from "../../shared/text/reading.ts";
import { oneLine } from "../../shared/text/unprintable.ts";
import { cutTo } from "../../shared/text/width.ts";
import { wrapWords } from "../../shared/text/wrap-words.ts";
import { ABOUT, SWITCHES, WORDS } from "./words.ts";

type Word = keyof typeof WORDS;
const NAMES = Object.keys(WORDS) as Word[];

const formOf = (word: Word): string => `${word} ${WORDS[word]}`.trim();
const COLUMN = Math.max(...NAMES.map((word) => formOf(word).length));
/** In a narrow terminal the description goes on below. */
const LEAST_BESIDE = 70;

const BIN = join("node_modules", ".bin");

/**
 * How a shell finds the program: by the folder beside the package, if a package manager has put it there. `here`: the folder of
 * the built code.
 */
export function shellLines(here = dirname(fileURLToPath(import.meta.url))): string[] {
  const at = here.lastIndexOf("node_modules");
  const folder = at === -1 ? undefined : join(here.slice(0, at), BIN);
  if (folder === undefined || !existsSync(join(folder, "pi-mcp-threads"))) {
    return [`In a shell: node ${join(here, "cli.js")} help`];
  }
  const home = homedir();
  const shown = folder.startsWith(`${home}/`) ? `$HOME${folder.slice(home.length)}` : folder;
  return ["In a shell: pi-mcp-threads help, once its folder is on PATH:", `  export PATH="$PATH:${shown}"`];
}

/** `columns`: width of a line. */
export function helpText(columns: number): string {
  const isBeside = columns >= LEAST_BESIDE;
  const indent = " ".repeat(isBeside ? COLUMN + 4 : 6);
  const rows = NAMES.flatMap((word) => {
    const form = `  ${formOf(word)}`;
    const about = wrapWords(indent + ABOUT[word], columns);
    if (!isBeside) return [form, ...about];
    const [first = "", ...more] = about;
    return [form.padEnd(indent.length) + first.trimStart(), ...more];
  });
  return [
    "/mcp alone opens the panel. With a word:",
    ...rows.map((line) => cutTo(line, columns)),
    ...shellLines(),
  ].join("\n");
}

const SLIPS = 2;
const WRITTEN_CHARS = 80;

/** A word that `/mcp` does not have. */
export function unknownWordText(written: string): string {
  const near = NAMES.map((name) => ({ name, slips: slipsBetween(written.toLowerCase(), name, SLIPS) }))
    .filter(({ name, slips }) => slips <= Math.min(SLIPS, Math.floor(name.length / 2)))
    .sort((a, b) => a.slips - b.slips)[0];
  const meant = near === undefined ? "" : ` Did you mean /mcp ${near.name}?`;
  return `/mcp ${oneLine(written, WRITTEN_CHARS)} is not known.${meant} /mcp help lists the words.`;
}

const NAMED = 20;

/** A word whose arguments do not fit: its own form, and what could stand there. */
export function usageText(word: Word, servers: readonly ServerStatus[]): string {
  const usage = `Usage: /mcp ${formOf(word)}`;
  if (!WORDS[word].startsWith("<server>")) return `${usage} (${ABOUT[word]}).`;
  const isOn = SWITCHES[word];
  const fits = ({ state }: ServerStatus): boolean => isOn === undefined || (state !== "disabled") === isOn;
  const names = servers.filter(fits).map(({ name }) => serverName(name));
  const more = names.length > NAMED ? `, and ${names.length - NAMED} more` : "";
  const lead = isOn === undefined ? "Servers" : isOn ? "Enabled now" : "Disabled now";
  return `${usage}. ${lead}: ${names.slice(0, NAMED).join(", ") || "none"}${more}.`;
}

const LOG_LINES = 40;
const LINE_CHARS = 400;

/** The end of the log. `file`: where all of it is. */
export function logText(
  lines: readonly string[],
  { server, file }: { server?: string | undefined; file: string },
): string {
  const about = server === undefined ? "" : ` about ${serverName(server)}`;
  if (lines.length === 0) return `${file} has nothing${about}.`;
  const shown = lines.slice(-LOG_LINES).map((line) => oneLine(line, LINE_CHARS));
  return [`The last lines${about} of ${file}:`, ...shown].join("\n");
}
