/**
 * Questions of a server (MCP: elicitation) as plain prompts: the message, each field with what it takes, and a last look
 * before anything is sent. Without a terminal every question is declined. One conversation is held at a time.
 */
import { serverName } from "../../report/server-name.ts";
import { problemOf, startValue } from "../../shared/asks/check.ts";
import type { Ask, AskAnswer, AskForm, AskUrl, Field, FieldValue } from "../../shared/protocol/calls.ts";
import { oneLine } from "../../shared/text/unprintable.ts";
import { type Console, isYes } from "../console/console.ts";

type Line = (question: string) => Promise<string | undefined>;

/** Tries for one value: the person may go on, but no loop may be endless. */
const MOST_TRIES = 20;
const VALUE_CHARS = 200;

const CANCEL: AskAnswer = { action: "cancel" };
const DECLINE: AskAnswer = { action: "decline" };

/** Each line of a server's words begins with a bar, so that none passes for a line of ours. */
const warnBarred = (console: Console, text: string): void => {
  for (const line of text.split("\n")) console.warn(`| ${line}`);
};

const choicesOf = (field: Field): string[] =>
  "choices" in field ? field.choices.map(({ title }) => title) : [];

const valueText = (field: Field, value: FieldValue): string => {
  const choices = choicesOf(field);
  if (value === undefined) return "(left out)";
  if (Array.isArray(value)) return value.map((at) => choices[at] ?? "").join(", ");
  if (field.kind === "choice" && typeof value === "number") return choices[value] ?? "";
  return oneLine(String(value), VALUE_CHARS);
};

/** For example ` from 1 to 10`; empty without limits. */
function limits(least: number | undefined, most: number | undefined, unit = ""): string {
  if (least !== undefined && most !== undefined) return ` from ${least} to ${most}${unit}`;
  if (least !== undefined) return ` of at least ${least}${unit}`;
  return most === undefined ? "" : ` of at most ${most}${unit}`;
}

function takes(field: Field): string {
  switch (field.kind) {
    case "boolean":
      return "y or n";
    case "choice":
      return `a number${limits(1, field.choices.length)}`;
    case "choices": {
      const { choices, minItems, maxItems } = field;
      const count =
        minItems === undefined && maxItems === undefined ? "" : `,${limits(minItems, maxItems)} of them`;
      return `numbers${limits(1, choices.length)} with commas between${count}`;
    }
    case "number":
      return `${field.integer ? "a whole number" : "a number"}${limits(field.minimum, field.maximum)}`;
    default:
      return `${field.format ?? "a text"}${limits(field.minLength, field.maxLength, field.maxLength === 1 ? " character" : " characters")}`;
  }
}

/** The typed line as a value; `null` for a line that names no choice. */
function readValue(field: Field, line: string): FieldValue | null {
  const text = line.trim();
  if (field.kind === "boolean")
    return /^y(es)?$|^true$/i.test(text) || (/^no?$|^false$/i.test(text) ? false : null);
  if (field.kind !== "choice" && field.kind !== "choices")
    return field.kind === "text" && !field.format ? line : text;
  const positions = text.split(",").map((part) => Number(part.trim()) - 1);
  const known = positions.every((at) => Number.isInteger(at) && at >= 0 && at < field.choices.length);
  if (!known) return null;
  return field.kind === "choice" ? (positions.length === 1 ? positions[0] : null) : positions;
}

/** Undefined: the input has ended. */
async function askField(
  field: Field,
  value: FieldValue,
  { console, line }: { console: Console; line: Line },
) {
  const description = field.description === undefined ? [] : [field.description];
  const numbered = choicesOf(field).map((title, at) => `${at + 1}. ${title}`);
  warnBarred(console, [field.title, ...description, ...numbered].join("\n"));
  const kept =
    value === undefined ? (field.required ? "" : ", Enter to skip") : `, Enter: ${valueText(field, value)}`;
  for (let tries = 0; tries < MOST_TRIES; tries++) {
    const typed = await line(`(${takes(field)}${kept}) `);
    if (typed === undefined) return undefined;
    const given = typed.trim() === "" ? value : readValue(field, typed);
    const problem = given === null ? `It takes ${takes(field)}` : problemOf(field, given);
    if (problem === undefined && given !== null) return { value: given };
    console.warn(`! ${problem}`);
  }
  return undefined;
}

async function askForm(form: AskForm, at: { console: Console; line: Line }): Promise<AskAnswer> {
  const first = await at.line("Answer it? [y/N] ");
  if (!isYes(first)) return first === undefined ? CANCEL : DECLINE;
  const values = form.fields.map(startValue);
  for (const [index, field] of form.fields.entries()) {
    const given = await askField(field, values[index], at);
    if (!given) return CANCEL;
    values[index] = given.value;
  }
  for (const [index, field] of form.fields.entries())
    at.console.warn(`  ${oneLine(field.title, 100)}: ${valueText(field, values[index])}`);
  const sure = form.fields.length === 0 ? "y" : await at.line("Send this? [y/N] ");
  if (!isYes(sure)) return sure === undefined ? CANCEL : DECLINE;
  return { action: "accept", values };
}

async function askUrl(
  { url, host, punycode, plain, again }: AskUrl,
  { console, line }: { console: Console; line: Line },
): Promise<AskAnswer> {
  const notes = [
    ...(punycode ? ["The name holds foreign letters, shown here in their code (xn--): check it."] : []),
    ...(plain ? ["The page is not encrypted (http)."] : []),
  ];
  for (const text of [`Host: ${host}`, ...notes, url]) console.warn(text);
  const myself = again ? "I am done there" : "I open it myself";
  const choice = await line(`Open it in the browser? [y/N, s: ${myself}] `);
  if (choice === undefined) return CANCEL;
  const open = isYes(choice);
  return open || /^s$/i.test(choice.trim()) ? { action: "accept", open } : DECLINE;
}

const headOf = (server: string, ask: Ask): string =>
  ask.kind === "form"
    ? `MCP server ${serverName(server)} asks:`
    : `MCP server ${serverName(server)} ${ask.again ? "still waits for this page" : "asks you to open a page"}:`;

/** Undefined: the question was taken back before its turn. */
export function createAsks(console: Console) {
  const converse = async (server: string, ask: Ask, signal: AbortSignal): Promise<AskAnswer | undefined> => {
    if (signal.aborted) return undefined;
    if (!console.canAsk) {
      console.warn(`${headOf(server, ask)} no one can be asked here, so it is declined.`);
      return DECLINE;
    }
    console.warn(headOf(server, ask));
    if (ask.message !== "") warnBarred(console, ask.message);
    const at = { console, line: (question: string) => console.ask(question, signal) };
    return ask.kind === "form" ? askForm(ask, at) : askUrl(ask, at);
  };
  return (server: string, ask: Ask, signal: AbortSignal): Promise<AskAnswer | undefined> =>
    console.inTurn(() => converse(server, ask, signal));
}
