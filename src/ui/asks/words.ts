/**
 * What the user reads of a server's question. The worker has bounded and cleaned the server's words; each of their lines
 * begins with a bar, so that none passes for a line of ours. Pure.
 */
import type { PiContext } from "../../pi/api.ts";
import { serverName } from "../../report/server-name.ts";
import type { Ask, AskForm, AskUrl, Field, FieldValue } from "../../shared/protocol/calls.ts";
import { counted } from "../../shared/text/amounts.ts";
import { oneLine } from "../../shared/text/unprintable.ts";
import { cutTo, mostCells, printable } from "../../shared/text/width.ts";
import { rowsOf, type Screen, screenOf, terminalLink } from "../dialog.ts";

type Shown = Pick<PiContext, "mode">;

/** A text of a title is shown in the rows beside the choices; the values of a review are one row each. */
const VALUE_CHARS = 200;
const ROW_CHARS = 100;
/** Rows that a dialog needs beside the server's message: frame, sentences, ten choices and Pi's footer. */
const AROUND_ROWS = 20;
const FEWEST_ROWS = 5;

const bar = (text: string): string =>
  text
    .split("\n")
    .map((line) => `│ ${line}`)
    .join("\n");

const roomOf = ({ rows }: Screen): number => Math.max(rows - AROUND_ROWS, FEWEST_ROWS);

/** The message, as far as it fits on the screen beside the choices. Pi shows no part of a dialog that does not fit. */
function shownMessage(message: string, at: Shown): string {
  const screen = screenOf(at);
  if (message === "") return "";
  if (screen === undefined) return `\n${bar(message)}`;
  let room = roomOf(screen) * (screen.columns - 4);
  const lines: string[] = [];
  for (const line of message.split("\n")) {
    // A line takes at least one row.
    const rows = rowsOf(`│ ${line}`, screen.columns);
    lines.push(room >= mostCells(line) ? line : cutTo(line, Math.max(room, 1)));
    room -= rows * (screen.columns - 4);
    if (room <= 0) break;
  }
  const isWhole = lines.join("\n") === message;
  return `\n${bar(isWhole ? message : `${lines.join("\n")}\n…`)}`;
}

export function questionText(server: string, { message, fields }: AskForm, at: Shown): string {
  const what = fields.length === 0 ? "" : ` (${counted(fields.length, "question")})`;
  return printable(`MCP server ${serverName(server)} asks${what}:${shownMessage(message, at)}`);
}

/** The choices of a field that is chosen from a list, with their values. */
export function choicesOf(field: Field): { text: string; value: boolean | number }[] {
  // No comes first: the question may be whether something is destroyed.
  if (field.kind === "boolean") {
    return [
      { text: "No", value: false },
      { text: "Yes", value: true },
    ];
  }
  const choices = "choices" in field ? field.choices : [];
  return choices.map(({ title }, index) => ({ text: title, value: index }));
}

/** A value in one line; empty for none. */
export function valueText(field: Field, value: FieldValue): string {
  if (value === undefined) return "";
  if (Array.isArray(value)) return value.map((one) => choicesOf(field)[one]?.text ?? "").join(", ");
  const choice = choicesOf(field).find((one) => one.value === value);
  return oneLine(choice?.text ?? String(value), VALUE_CHARS);
}

const range = (least: number | undefined, most: number | undefined, unit: string): string => {
  if (least === undefined && most === undefined) return "";
  if (least === undefined) return `at most ${most}${unit}`;
  return most === undefined ? `at least ${least}${unit}` : `${least} to ${most}${unit}`;
};

const FORMATS = {
  email: "an email address",
  uri: "an address, such as https://example.com",
  date: "a date, such as 2026-11-22",
  "date-time": "a date and a time, such as 2026-11-22T09:30:00Z",
  json: 'JSON, such as ["a", "b"] or {"key": 1}',
};

/** What the field takes, for example `a whole number, 1 to 100`. */
function limitsText(field: Field): string {
  const parts: string[] = [];
  if (field.kind === "text") {
    parts.push(
      field.format ? FORMATS[field.format] : "",
      range(field.minLength, field.maxLength, " characters"),
    );
  }
  if (field.kind === "number") {
    parts.push(field.integer ? "a whole number" : "a number", range(field.minimum, field.maximum, ""));
  }
  if (field.kind === "choices") parts.push(`choose ${range(field.minItems, field.maxItems, "") || "any"}`);
  parts.push(field.required ? "" : "optional");
  return parts.filter(Boolean).join(", ");
}

export interface FieldState {
  value: FieldValue;
  /** For example `2 of 5`; empty: there is nothing to count. */
  place: string;
  problem: string | undefined;
  /** What the person is told of Escape: it goes back, or keeps the value; or, of a choice, that it is sent at once. */
  leave: keyof typeof ESCAPES;
}

const ESCAPES = {
  back: "Escape: back",
  keep: "Escape: leave it as it is",
  sends: "Your choice is sent at once",
};

export function fieldTitle(
  server: string,
  field: Field,
  { value, place, problem, leave }: FieldState,
): string {
  const limits = limitsText(field);
  const kept = valueText(field, value);
  const isTyped = field.kind === "text" || field.kind === "number";
  const enter = isTyped ? (kept !== "" ? [`Enter: ${kept}`] : field.required ? [] : ["Enter to skip"]) : [];
  const lines = [
    ...(leave === "sends" ? [] : [`${serverName(server)}${place === "" ? "" : `, ${place}`}:`]),
    bar(`${field.title}${field.description === undefined ? "" : `\n${field.description}`}`),
    ...(limits === "" ? [] : [`(${limits})`]),
    [...enter, ESCAPES[leave]].join(" · "),
    ...(problem === undefined ? [] : [`! ${problem}`]),
  ];
  return printable(lines.join("\n"));
}

export const reviewTitle = (server: string): string =>
  printable(`Send this to MCP server ${serverName(server)}? Choose a line to change it.`);

export const reviewRows = (fields: readonly Field[], values: readonly FieldValue[]): string[] =>
  fields.map((field, index) => {
    const value = values[index];
    const text = value === undefined ? "(left out)" : valueText(field, value) || '""';
    return printable(oneLine(`${oneLine(field.title, ROW_CHARS / 2)}: ${text}`, ROW_CHARS));
  });

/** Whether the whole address fits into the dialog. If it does not, a notice shows it. */
export function fitsDialog({ url }: AskUrl, at: Shown): boolean {
  const screen = screenOf(at);
  return screen === undefined || rowsOf(url, screen.columns) <= roomOf(screen);
}

const asLink = (url: string, { mode }: Shown): string => (mode === "tui" ? terminalLink(url, url) : url);

const FOREIGN =
  "The name holds foreign letters, shown here in their code (xn--). It may look like another name: check it.";

/** The host has a line of its own, because the rest of an address can be made to look like a host. */
export function urlText(server: string, ask: AskUrl, at: Shown): string {
  const { host, url, punycode, plain, message, again } = ask satisfies Ask;
  const wants = again ? "still waits for this page" : "asks you to open a page";
  const lines = [
    printable(`MCP server ${serverName(server)} ${wants}:${shownMessage(message, at)}`),
    `Host: ${printable(host)}`,
    ...(punycode ? [FOREIGN] : []),
    ...(plain ? ["The page is not encrypted (http)."] : []),
    fitsDialog(ask, at) ? asLink(url, at) : "The whole address is above.",
  ];
  return lines.join("\n");
}

export const addressText = (server: string, url: string, mode: PiContext["mode"]): string =>
  `The page of MCP server ${printable(serverName(server))}:\n${asLink(url, { mode })}`;

export const openedText = (server: string, url: string, mode: PiContext["mode"]): string =>
  `No browser could be started. ${addressText(server, url, mode)}`;

export const withdrawnText = (server: string): string =>
  `${serverName(server)} no longer waits for an answer.`;
