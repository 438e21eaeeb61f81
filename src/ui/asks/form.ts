/**
 * A server's question (MCP: elicitation) as dialogs: the fields of a form, one dialog each, with all values shown before
 * any of them leaves, or an address to open. Escape cancels the whole question. Must not: read a server's words, which the
 * worker has bounded and cleaned; open an address, which the worker does after a yes. What the user reads: words.ts.
 */
import type { PiContext } from "../../pi/api.ts";
import { notify } from "../../pi/extension.ts";
import { openableUrl } from "../../report/server-name.ts";
import { problemOf, startValue } from "../../shared/asks/check.ts";
import type { Ask, AskAnswer, AskForm, AskUrl, Field, FieldValue } from "../../shared/protocol/calls.ts";
import { isOpenable } from "../../shared/text/reading.ts";
import { orAborted } from "../dialog.ts";
import {
  addressText,
  choicesOf,
  fieldTitle,
  fitsDialog,
  numbered,
  questionText,
  reviewRows,
  reviewTitle,
  urlText,
  valueText,
  withdrawnText,
} from "./words.ts";

const DECLINE = "Decline";
const CANCEL: AskAnswer = { action: "cancel" };

/** One line says if the question was taken back while its dialog was open: nobody waits for the answer then. */
export async function askForServer(
  ctx: PiContext,
  { server, ask }: { server: string; ask: Ask },
  { signal, over }: { signal: AbortSignal; over: () => boolean },
): Promise<AskAnswer> {
  const at: Conversation = { ctx, server, signal };
  const answer = ask.kind === "form" ? await askForm(ask, at) : await askUrl(ask, at);
  if (signal.aborted && !over()) notify(ctx, withdrawnText(server), "info");
  return answer;
}

interface Conversation {
  ctx: PiContext;
  server: string;
  /** Aborts when nobody waits for the answer any more. */
  signal: AbortSignal;
}

/** The choice, or undefined: Escape, or the dialog was closed. */
async function choose(
  { ctx, signal }: Conversation,
  title: string,
  choices: readonly string[],
): Promise<string | undefined> {
  const choice = await orAborted(ctx.ui.select(title, [...choices], { signal }), signal);
  // Over RPC the other program may answer with a choice that it was not given.
  return choice !== undefined && choices.includes(choice) ? choice : undefined;
}

/** The text that the user has typed, or undefined: Escape, or the dialog was closed. */
async function typeIn(
  { ctx, signal }: Conversation,
  title: string,
  placeholder: string,
): Promise<string | undefined> {
  const text: unknown = await orAborted(ctx.ui.input(title, placeholder, { signal }), signal);
  // Over RPC the other program may send anything.
  return typeof text === "string" ? text : undefined;
}

const ANSWER = "Answer";
const CONTINUE = "Continue";
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
  const text = await typeIn(at, title, kept);
  if (text === undefined) return CANCELLED;
  const isPlain = field.kind === "text" && field.format === undefined;
  const typed = isPlain && text.trim() !== "" ? text : text.trim();
  return typed === "" ? value : typed;
}

/** Asks for one field until the value fits. */
async function askField(field: Field, value: FieldValue, at: Conversation, place: string): Promise<Given> {
  let problem: string | undefined;
  for (let tries = 0; tries < MOST_TRIES; tries++) {
    const title = fieldTitle(at.server, field, { value, place, problem });
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
  { title, send, others }: { title: string; send: string; others: readonly string[] },
): Promise<number | "send" | "decline" | typeof CANCELLED> {
  const rows = numbered(reviewRows(form.fields, values));
  const choice = await choose(at, title, [send, ...rows, ...others]);
  if (choice === undefined) return CANCELLED;
  if (choice === send) return "send";
  return others.includes(choice) ? "decline" : rows.indexOf(choice);
}

async function fill(form: AskForm, values: FieldValue[], at: Conversation): Promise<boolean> {
  for (const [index, field] of form.fields.entries()) {
    const place = `${index + 1} of ${form.fields.length}`;
    const given = await askField(field, values[index], at, place);
    if (given === CANCELLED) return false;
    values[index] = given;
  }
  return true;
}

async function askForm(form: AskForm, at: Conversation): Promise<AskAnswer> {
  const isQuestion = form.fields.length === 0;
  const first = await choose(at, questionText(at.server, form, at.ctx), [
    isQuestion ? CONTINUE : ANSWER,
    DECLINE,
  ]);
  if (first === undefined) return CANCEL;
  if (first === DECLINE) return { action: "decline" };
  if (isQuestion) return { action: "accept", values: [] };

  const values = form.fields.map(startValue);
  if (!(await fill(form, values, at))) return CANCEL;
  for (let tries = 0; tries < MOST_TRIES; tries++) {
    const words = { title: reviewTitle(at.server), send: SEND, others: [DECLINE] };
    const next = await review(form, values, at, words);
    if (next === CANCELLED) break;
    if (next === "decline") return { action: "decline" };
    if (next === "send") return { action: "accept", values };
    const field = form.fields[next];
    if (!field) break;
    const given = await askField(field, values[next], at, "");
    if (given === CANCELLED) break;
    values[next] = given;
  }
  return CANCEL;
}

/**
 * The same form for what a person wishes to send: only what must be given is asked for, then all values are shown, and each can
 * be changed. Undefined: the person does not send it.
 */
export async function fillIn(
  form: AskForm,
  at: Conversation,
  { title, send }: { title: string; send: string },
): Promise<FieldValue[] | undefined> {
  const values = form.fields.map(startValue);
  const missing = form.fields.flatMap(({ required }, index) =>
    required && values[index] === undefined ? [index] : [],
  );
  let next: Awaited<ReturnType<typeof review>> | undefined = missing.shift();
  const count = missing.length + 1;
  for (let tries = 0; tries < MOST_TRIES; tries++) {
    next ??= await review(form, values, at, { title, send, others: [] });
    if (next === "send") return values;
    const field = typeof next === "number" ? form.fields[next] : undefined;
    if (!field || typeof next !== "number") return undefined;
    const place = values[next] === undefined && field.required ? `${count - missing.length} of ${count}` : "";
    const given = await askField(field, values[next], at, place);
    if (given === CANCELLED) return undefined;
    values[next] = given;
    next = missing.shift();
  }
  return undefined;
}

const OPEN = "Open it in the browser";
const SHOW = "I open it myself";

/** Asks whether a page of a server's choice may be opened. Nothing looks at the page before a yes, and then only the browser. */
async function askUrl(ask: AskUrl, at: Conversation): Promise<AskAnswer> {
  const { ctx, server, signal } = at;
  if (openableUrl(ask.url) === undefined) return { action: "decline" };
  // Past `notify`, which removes links. The address holds nothing that a terminal acts on.
  if (!fitsDialog(ask, ctx)) ctx.ui.notify(addressText(server, ask.url, ctx.mode), "info");
  // The worker starts no browser for any other address, so none is offered.
  const ways = isOpenable(URL.parse(ask.url)) ? [OPEN, SHOW] : [SHOW];
  const choice = await choose(at, urlText(server, ask, ctx), [...ways, DECLINE]);
  if (choice === undefined || signal.aborted) return CANCEL;
  if (choice === DECLINE) return { action: "decline" };
  if (choice === SHOW) ctx.ui.notify(addressText(server, ask.url, ctx.mode), "info");
  return { action: "accept", open: choice === OPEN };
}
