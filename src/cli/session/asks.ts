/**
 * Questions of a server (MCP: elicitation) as plain prompts: the message, each field with what it takes, and a last look
 * before anything is sent. Without a terminal every question is declined. One question is asked at a time.
 */
import { serverName } from "../../report/server-name.ts";
import { problemOf, startValue } from "../../shared/asks/check.ts";
import type {
  Ask,
  AskAnswer,
  AskForm,
  AskReply,
  AskUrl,
  Field,
  FieldValue,
} from "../../shared/protocol/ask.ts";
import { messageOf } from "../../shared/protocol/errors.ts";
import type { WorkerEvent } from "../../shared/protocol/events.ts";
import { oneLine } from "../../shared/text/unprintable.ts";
import { type Console, isYes } from "../console/console.ts";

type Line = (question: string) => Promise<string | undefined>;

/** Tries for one value, and for one form: the person may go on, but no loop may be endless. */
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

const takes = (field: Field): string => {
  if (field.kind === "boolean") return "y or n";
  if (field.kind === "choice") return "the number of one";
  if (field.kind === "choices") return "numbers with commas between";
  if (field.kind === "number") return field.integer ? "a whole number" : "a number";
  return field.format ?? "a text";
};

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
    value === undefined
      ? field.required
        ? ""
        : ", Enter leaves it out"
      : `, Enter keeps ${valueText(field, value)}`;
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

async function askForm(
  form: AskForm,
  send: (answer: AskAnswer) => Promise<AskReply>,
  at: { console: Console; line: Line },
): Promise<unknown> {
  const first = await at.line("Answer it? [y/N] ");
  if (!isYes(first)) return send(first === undefined ? CANCEL : DECLINE);
  const values = form.fields.map(startValue);
  let wrong: readonly { field: number; problem: string }[] = form.fields.map((_, field) => ({
    field,
    problem: "",
  }));
  for (let tries = 0; tries < MOST_TRIES; tries++) {
    for (const { field: index, problem } of wrong) {
      const field = form.fields[index];
      if (!field) continue;
      if (problem !== "") at.console.warn(`! ${problem}`);
      const given = await askField(field, values[index], at);
      if (!given) return send(CANCEL);
      values[index] = given.value;
    }
    for (const [index, field] of form.fields.entries())
      at.console.warn(`  ${oneLine(field.title, 100)}: ${valueText(field, values[index])}`);
    const sure = form.fields.length === 0 ? "y" : await at.line("Send this? [y/N] ");
    if (!isYes(sure)) return send(sure === undefined ? CANCEL : DECLINE);
    const reply = await send({ action: "accept", values });
    if (reply.taken || "over" in reply) return reply;
    wrong = reply.refused;
  }
  return send(CANCEL);
}

async function askUrl(
  { url, host, punycode, plain }: AskUrl,
  send: (answer: AskAnswer) => Promise<AskReply>,
  { console, line }: { console: Console; line: Line },
): Promise<unknown> {
  const notes = [
    ...(punycode ? ["The name holds foreign letters, shown here in their code (xn--): check it."] : []),
    ...(plain ? ["The page is not encrypted (http)."] : []),
  ];
  for (const text of [`Host: ${host}`, ...notes, url]) console.warn(text);
  const choice = await line("Open it in the browser? [y/N, s: I open it myself] ");
  if (choice === undefined) return send(CANCEL);
  const open = isYes(choice);
  return send(open || /^s$/i.test(choice.trim()) ? { action: "accept", open } : DECLINE);
}

const headOf = (server: string, ask: Ask): string =>
  ask.kind === "form"
    ? `MCP server ${serverName(server)} asks:`
    : `MCP server ${serverName(server)} asks you to open a page:`;

export function createAsks({
  console,
  answer,
}: {
  console: Console;
  answer: (askId: string, answer: AskAnswer) => Promise<AskReply>;
}) {
  const open = new Map<string, AbortController>();
  let turn: Promise<unknown> = Promise.resolve();

  const converse = async (
    { askId, server, ask }: Extract<WorkerEvent, { type: "ask" }>,
    signal: AbortSignal,
  ) => {
    if (signal.aborted) return;
    const send = (given: AskAnswer) => answer(askId, given);
    if (!console.canAsk) {
      console.warn(`${headOf(server, ask)} nobody can be asked here, so it is declined.`);
      await send(DECLINE);
      return;
    }
    console.warn(headOf(server, ask));
    if (ask.message !== "") warnBarred(console, ask.message);
    const at = { console, line: (question: string) => console.ask(question, signal) };
    await (ask.kind === "form" ? askForm(ask, send, at) : askUrl(ask, send, at));
  };

  return {
    on: (event: Extract<WorkerEvent, { type: "ask" | "ask-over" }>): void => {
      if (event.type === "ask-over") {
        open.get(event.askId)?.abort();
        open.delete(event.askId);
        return;
      }
      const controller = new AbortController();
      open.set(event.askId, controller);
      turn = turn
        .then(() => converse(event, controller.signal))
        .catch((error: unknown) => console.warn(messageOf(error)));
    },
  };
}
