/**
 * Asks for the fields of a form, one dialog each, and shows all values before any of them leaves: the user can change
 * each one, send them, or decline. Escape cancels the whole question.
 */
import { problemOf, startValue } from "../../shared/asks/check.ts";
import type { AskAnswer, AskForm, AskReply, Field, FieldValue } from "../../shared/protocol/ask.ts";
import { type Conversation, choose, type } from "./conversation.ts";
import {
  choicesOf,
  fieldTitle,
  numbered,
  questionText,
  reviewRows,
  reviewTitle,
  valueText,
} from "./words.ts";

const ANSWER = "Answer";
const CONTINUE = "Continue";
const DECLINE = "Decline";
const SEND = "Send";
const DONE = "Done";
const LEAVE_OUT = "(leave out)";

/** Over RPC a program may answer every dialog at once, with anything. */
const MOST_TRIES = 100;

const CANCELLED = Symbol("cancelled");
type Given = FieldValue | typeof CANCELLED;

async function chooseOne(field: Field, value: FieldValue, at: Conversation, title: string): Promise<Given> {
  const choices = choicesOf(field);
  const rows = choices.map(({ text, value: one }) => ({ text, value: one as FieldValue }));
  if (!field.required) rows.push({ text: LEAVE_OUT, value: undefined });
  // The value that holds comes first, so that Enter keeps it.
  rows.sort((one, other) => Number(other.value === value) - Number(one.value === value));
  const texts = numbered(rows.map(({ text }) => text));
  const choice = await choose(at, title, texts);
  return choice === undefined ? CANCELLED : rows[texts.indexOf(choice)]?.value;
}

async function chooseSeveral(
  field: Extract<Field, { kind: "choices" }>,
  value: FieldValue,
  at: Conversation,
  title: string,
): Promise<Given> {
  const chosen = new Set(Array.isArray(value) ? value : []);
  const texts = numbered(choicesOf(field).map(({ text }) => text));
  for (let tries = 0; tries < MOST_TRIES + texts.length; tries++) {
    const rows = texts.map((text, index) => `${chosen.has(index) ? "[x]" : "[ ]"} ${text}`);
    const choice = await choose(at, title, [...rows, DONE]);
    if (choice === undefined) return CANCELLED;
    if (choice === DONE) {
      return chosen.size === 0 && !field.required ? undefined : [...chosen].sort((a, b) => a - b);
    }
    const index = rows.indexOf(choice);
    if (!chosen.delete(index)) chosen.add(index);
  }
  return CANCELLED;
}

async function typeText(field: Field, value: FieldValue, at: Conversation, title: string): Promise<Given> {
  const kept = valueText(field, value);
  const text = await type(at, title, kept);
  if (text === undefined) return CANCELLED;
  const isPlain = field.kind === "text" && field.format === undefined;
  const typed = isPlain && text.trim() !== "" ? text : text.trim();
  return typed === "" ? value : typed;
}

/** Asks for one field until the value fits. `problem`: what is wrong with the value so far. */
async function askField(
  field: Field,
  value: FieldValue,
  at: Conversation,
  how: { place: string; problem?: string | undefined },
): Promise<Given> {
  let { problem } = how;
  for (let tries = 0; tries < MOST_TRIES; tries++) {
    const title = fieldTitle(at.server, field, { value, place: how.place, problem });
    const given: Given =
      field.kind === "choices"
        ? await chooseSeveral(field, value, at, title)
        : field.kind === "choice" || field.kind === "boolean"
          ? await chooseOne(field, value, at, title)
          : await typeText(field, value, at, title);
    if (given === CANCELLED) return CANCELLED;
    problem = problemOf(field, given);
    if (problem === undefined) return given;
  }
  return CANCELLED;
}

/** Shows all values. Answers what to do, or the position of the field that is to be changed. */
async function review(
  form: AskForm,
  values: readonly FieldValue[],
  at: Conversation,
): Promise<number | "send" | "decline" | typeof CANCELLED> {
  const rows = numbered(reviewRows(form.fields, values));
  const choice = await choose(at, reviewTitle(at.server), [SEND, ...rows, DECLINE]);
  if (choice === undefined) return CANCELLED;
  if (choice === SEND) return "send";
  return choice === DECLINE ? "decline" : rows.indexOf(choice);
}

async function fill(form: AskForm, values: FieldValue[], at: Conversation): Promise<boolean> {
  for (const [index, field] of form.fields.entries()) {
    const place = `${index + 1} of ${form.fields.length}`;
    const given = await askField(field, values[index], at, { place });
    if (given === CANCELLED) return false;
    values[index] = given;
  }
  return true;
}

/** Answers the worker's reply; undefined if nothing was sent, because nobody waits any more. */
export async function askForm(form: AskForm, at: Conversation): Promise<AskReply | undefined> {
  const end = (answer: AskAnswer) => (at.signal.aborted ? undefined : at.send(answer));
  const isQuestion = form.fields.length === 0;
  const first = await choose(at, questionText(at.server, form, at.ctx), [
    isQuestion ? CONTINUE : ANSWER,
    DECLINE,
  ]);
  if (first === undefined) return end({ action: "cancel" });
  if (first === DECLINE) return end({ action: "decline" });
  if (isQuestion) return end({ action: "accept", values: [] });

  const values = form.fields.map(startValue);
  if (!(await fill(form, values, at))) return end({ action: "cancel" });
  for (let tries = 0; tries < MOST_TRIES; tries++) {
    const next = await review(form, values, at);
    if (next === CANCELLED) break;
    if (next === "decline") return end({ action: "decline" });
    let problem: string | undefined;
    let position = typeof next === "number" ? next : -1;
    if (next === "send") {
      const reply = await end({ action: "accept", values });
      if (reply === undefined || reply.taken || "over" in reply) return reply;
      ({ field: position = 0, problem } = reply.refused[0] ?? {});
    }
    const field = form.fields[position];
    if (!field) break;
    const given = await askField(field, values[position], at, { place: "", problem });
    if (given === CANCELLED) break;
    values[position] = given;
  }
  return end({ action: "cancel" });
}
