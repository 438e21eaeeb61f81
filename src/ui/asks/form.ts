/**
 * A server's question (MCP: elicitation) as dialogs: the fields of a form, one dialog each, with all values shown before
 * any of them leaves, or an address to open. Escape goes back a question, and cancels from the first. Must not: read a server's words, which the
 * worker has bounded and cleaned; open an address, which the worker does after a yes. What the user reads: words.ts.
 */
import type { PiContext } from "../../pi/api.ts";
import { notify } from "../../pi/extension.ts";
import { openableUrl } from "../../report/server-name.ts";
import { numbered, problemOf, startValue } from "../../shared/asks/check.ts";
import type { Ask, AskAnswer, AskForm, AskUrl, Field, FieldValue } from "../../shared/protocol/calls.ts";
import { isOpenable } from "../../shared/text/reading.ts";
import { oneLine } from "../../shared/text/unprintable.ts";
import { orAborted } from "../dialog.ts";
import type { TickLines } from "../ticks.ts";
import { afterPause, isTyping, whileTyped } from "../typing.ts";
import {
  addressText,
  choicesOf,
  type FieldState,
  fieldTitle,
  fitsDialog,
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
  { signal, over, tick }: { signal: AbortSignal; over: () => boolean; tick: TickLines },
): Promise<AskAnswer> {
  const at: Conversation = { ctx, server, signal, tick };
  const answer = await (ask.kind === "form" ? askForm(ask, at) : askUrl(ask, at));
  if (signal.aborted && !over()) notify(ctx, withdrawnText(server), "info");
  return answer;
}

interface Conversation {
  ctx: PiContext;
  server: string;
  /** Aborts when nobody waits for the answer any more. */
  signal: AbortSignal;
  /** The list of lines to tick, which is a part of the screens and not of what every session loads. */
  tick: TickLines;
}

/** Over RPC a program may answer every dialog at once, with anything. A person needs fewer dialogs. */
const MOST_DIALOGS = 250;

/** How many dialogs of a conversation there were. */
const shown = new WeakMap<Conversation, number>();

/** Whether there are no more dialogs. */
const isOver = (at: Conversation): boolean => at.signal.aborted || (shown.get(at) ?? 0) >= MOST_DIALOGS;

/** Counts a dialog. False: it is one too many. */
function mayShow(at: Conversation): boolean {
  if (isOver(at)) return false;
  shown.set(at, (shown.get(at) ?? 0) + 1);
  return true;
}

/** The choice, or undefined: Escape, or the dialog was closed. */
async function choose(
  at: Conversation,
  title: string,
  choices: readonly string[],
): Promise<string | undefined> {
  if (!mayShow(at)) return undefined;
  const { ctx, signal } = at;
  const open = (): Promise<string | undefined> =>
    whileTyped(ctx, orAborted(ctx.ui.select(title, [...choices], { signal }), signal), signal);
  // Behind its first dialog a person looks at the question.
  const choice = await (shown.get(at) === 1 ? afterPause(ctx, open) : open());
  // Over RPC the other program may answer with a choice that it was not given.
  return choice !== undefined && choices.includes(choice) ? choice : undefined;
}

/** The text that the user has typed, or undefined: Escape, or the dialog was closed. */
async function typeIn(at: Conversation, title: string, placeholder: string): Promise<string | undefined> {
  if (!mayShow(at)) return undefined;
  const { ctx, signal } = at;
  const asked = orAborted(ctx.ui.input(title, placeholder, { signal }), signal);
  const text: unknown = await whileTyped(ctx, asked, signal);
  // Over RPC the other program may send anything.
  return typeof text === "string" ? text : undefined;
}

const ANSWER = "Answer";
const CONTINUE = "Continue";
const SEND = "Send";
const DONE = "Done";
const LEAVE_OUT = "(leave out)";

const CANCELLED = Symbol("cancelled");
type Given = FieldValue | typeof CANCELLED;
type FieldStep = Pick<FieldState, "place" | "leave">;

/** What can be chosen. The value that holds comes first, so that Enter keeps it. */
function rowsOf(field: Field, value: FieldValue): { text: string; value: FieldValue }[] {
  const rows = choicesOf(field).map(({ text, value: one }) => ({ text, value: one as FieldValue }));
  if (!field.required) rows.push({ text: LEAVE_OUT, value: undefined });
  return rows.sort((one, other) => Number(other.value === value) - Number(one.value === value));
}

async function chooseOne(field: Field, value: FieldValue, at: Conversation, title: string): Promise<Given> {
  const rows = rowsOf(field, value);
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
  const chosen = Array.isArray(value) ? value : [];
  const rows = numbered(choicesOf(field).map(({ text }) => text));
  const given = (ticked: readonly boolean[]): FieldValue => {
    const positions = [...ticked.keys()].filter((position) => ticked[position]);
    return positions.length === 0 && !field.required ? undefined : positions;
  };
  const ticked = await at.tick(at.ctx, {
    title,
    rows,
    ticked: rows.map((_, position) => chosen.includes(position)),
    done: () => DONE,
    problem: (now) => problemOf(field, given(now)),
    signal: at.signal,
    select: (text, choices) => choose(at, text, choices),
  });
  return ticked ? given(ticked) : CANCELLED;
}

async function typeText(field: Field, value: FieldValue, at: Conversation, title: string): Promise<Given> {
  const kept = valueText(field, value);
  const text = await typeIn(at, title, kept);
  if (text === undefined) return CANCELLED;
  const isPlain = field.kind === "text" && field.format === undefined;
  const typed = isPlain && text.trim() !== "" ? text : text.trim();
  return typed === "" ? value : typed;
}

const TYPED_CHARS = 60;

/** The reason, after what was typed. */
const problemText = (problem: string, given: FieldValue): string =>
  typeof given === "string" ? `"${oneLine(given, TYPED_CHARS)}": ${problem}` : problem;

/** Asks for one field until the value fits. `step`: where the person is, and what Escape leads to. */
async function askField(field: Field, value: FieldValue, at: Conversation, step: FieldStep): Promise<Given> {
  let problem: string | undefined;
  for (;;) {
    const title = fieldTitle(at.server, field, { value, ...step, problem });
    const given: Given =
      field.kind === "choices"
        ? await chooseSeveral(field, value, at, title)
        : field.kind === "choice" || field.kind === "boolean"
          ? await chooseOne(field, value, at, title)
          : await typeText(field, value, at, title);
    if (given === CANCELLED) return CANCELLED;
    const wrong = problemOf(field, given);
    if (wrong === undefined) return given;
    problem = problemText(wrong, given);
  }
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

/**
 * Asks for the fields at these positions, one after the other, and shows all values until they are sent. Escape goes to the
 * question before; `back`: from the first one. Every value may change while it asks.
 */
async function fill(
  form: AskForm,
  values: FieldValue[],
  at: Conversation,
  { wanted, ...words }: { wanted: readonly number[]; title: string; send: string; others: readonly string[] },
): Promise<"send" | "decline" | "back" | typeof CANCELLED> {
  let step = 0;
  for (;;) {
    const asked = wanted[step];
    const next = asked ?? (await review(form, values, at, words));
    if (typeof next !== "number") return next;
    const field = form.fields[next];
    if (!field) return CANCELLED;
    const place = asked === undefined || wanted.length === 1 ? "" : `${step + 1} of ${wanted.length}`;
    const given = await askField(field, values[next], at, {
      place,
      leave: asked === undefined ? "keep" : "back",
    });
    if (isOver(at)) return CANCELLED;
    if (given !== CANCELLED) values[next] = given;
    if (asked === undefined) continue;
    if (given === CANCELLED && step === 0) return "back";
    step += given === CANCELLED ? -1 : 1;
  }
}

/** One choice is the whole question: it is sent as soon as it is made. */
async function askOne(form: AskForm, field: Field, at: Conversation): Promise<AskAnswer> {
  const title = `${questionText(at.server, form, at.ctx)}\n${fieldTitle(at.server, field, { value: undefined, place: "", problem: undefined, leave: "sends" })}`;
  const rows = rowsOf(field, startValue(field));
  // The server may have called one of its choices as ours is called.
  const [, ...texts] = numbered([DECLINE, ...rows.map(({ text }) => text)]);
  const choices = isTyping(at.ctx) ? [DECLINE, ...texts] : [...texts, DECLINE];
  const choice = await choose(at, title, choices);
  if (choice === undefined) return CANCEL;
  if (choice === DECLINE) return { action: "decline" };
  return { action: "accept", values: [rows[texts.indexOf(choice)]?.value] };
}

const isChosen = ({ kind }: Field): boolean => kind === "boolean" || kind === "choice";

async function askForm(form: AskForm, at: Conversation): Promise<AskAnswer> {
  const [only, ...more] = form.fields;
  if (only && more.length === 0 && isChosen(only)) return askOne(form, only, at);
  const yes = only ? ANSWER : CONTINUE;
  // To continue without a form answers the server: not by an Enter that is meant for another text.
  const choices = !only && isTyping(at.ctx) ? [DECLINE, yes] : [yes, DECLINE];
  const values = form.fields.map(startValue);
  const words = {
    wanted: [...form.fields.keys()],
    title: reviewTitle(at.server),
    send: SEND,
    others: [DECLINE],
  };
  for (;;) {
    const first = await choose(at, questionText(at.server, form, at.ctx), choices);
    if (first === undefined) return CANCEL;
    if (first === DECLINE) return { action: "decline" };
    if (!only) return { action: "accept", values: [] };
    const next = await fill(form, values, at, words);
    if (next === "send") return { action: "accept", values };
    if (next === "decline") return { action: "decline" };
    if (next === CANCELLED) return CANCEL;
  }
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
  const wanted = form.fields.flatMap(({ required }, index) =>
    required && values[index] === undefined ? [index] : [],
  );
  // The person has just asked for the form: every key is meant for it.
  shown.set(at, 1);
  const next = await fill(form, values, at, { wanted, title, send, others: [] });
  return next === "send" ? values : undefined;
}

const OPEN = "Open it in the browser";
const SHOW = "I open it myself";
const WENT = "I am done there";

/** Asks whether a page of a server's choice may be opened. Nothing looks at the page before a yes, and then only the browser. */
async function askUrl(ask: AskUrl, at: Conversation): Promise<AskAnswer> {
  const { ctx, server, signal } = at;
  if (openableUrl(ask.url) === undefined) return { action: "decline" };
  // Past `notify`, which removes links. The address holds nothing that a terminal acts on.
  if (!fitsDialog(ask, ctx)) ctx.ui.notify(addressText(server, ask.url, ctx.mode), "info");
  // The worker starts no browser for any other address, so none is offered.
  const ways = isOpenable(URL.parse(ask.url)) ? [OPEN, SHOW] : [SHOW];
  // The same question stands there again at once: an Enter must not open the page again.
  if (ask.again) ways.unshift(WENT);
  const choices = isTyping(ctx) ? [DECLINE, ...ways] : [...ways, DECLINE];
  const choice = await choose(at, urlText(server, ask, ctx), choices);
  if (choice === undefined || signal.aborted) return CANCEL;
  if (choice === DECLINE) return { action: "decline" };
  if (choice === SHOW) ctx.ui.notify(addressText(server, ask.url, ctx.mode), "info");
  return { action: "accept", open: choice === OPEN };
}
