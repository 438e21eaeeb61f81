/** Dialogs of the set-up: a choice below a text of any length, a typed text, and a wait that can be cancelled. */
import type { PiContext } from "../../pi/api.ts";
import type { Runtime } from "../../runtime/contract.ts";
import { printable } from "../../shared/text/width.ts";
import { pagesOf, screenOf } from "../dialog.ts";

export type Ask = Runtime["ask"];

const NEXT = "Next page";
const BACK = "Previous page";
/** Over RPC a program may turn pages for ever. */
const TURNS = 1_000;

/**
 * The choice; undefined: the dialog was closed. A text that does not fit on the screen comes page by page, and only the
 * last page offers the choices.
 */
export async function choose<T extends string>(
  ctx: PiContext,
  text: string,
  choices: readonly T[],
): Promise<T | undefined> {
  const pages = pagesOf(printable(text), screenOf(ctx));
  let at = 0;
  for (let turns = 0; turns < TURNS; turns++) {
    const isLast = at === pages.length - 1;
    const offered: string[] = isLast ? [...choices] : [NEXT];
    const all = at === 0 ? offered : [...offered, BACK];
    const place = pages.length === 1 ? "" : `\nPage ${at + 1} of ${pages.length}`;
    const choice = await ctx.ui.select(`${pages[at]}${place}`, all);
    // Over RPC the other program may answer with a choice that it was not given.
    if (choice === undefined || !all.includes(choice)) return undefined;
    if (choice !== NEXT && choice !== BACK) return choices.find((one) => one === choice);
    at += choice === NEXT ? 1 : -1;
  }
  return undefined;
}

export type Read<T> = { value: T } | { problem: string };

/** Over RPC a program may answer every dialog at once, with anything. */
export const ATTEMPTS = 10;

/**
 * Asks until the answer fits. `read`: a problem in words, or the value. Undefined: the person closed the dialog.
 */
export async function until<T>(
  ctx: PiContext,
  [title, placeholder]: [title: string, placeholder: string],
  read: (text: string) => Read<T>,
): Promise<T | undefined> {
  let problem = "";
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const asked = printable(problem === "" ? title : `${problem}\n${title}`);
    const text: unknown = await ctx.ui.input(asked, placeholder);
    // Over RPC the other program may send anything.
    if (typeof text !== "string") return undefined;
    const result = read(text.trim());
    if ("value" in result) return result.value;
    problem = result.problem;
  }
  return undefined;
}

const CANCEL = "Cancel";

/**
 * Runs the task while a dialog offers to cancel it; the dialog closes when the task has ended. The task's signal fires
 * if the person cancels or closes the dialog. Rejects as the task does.
 */
export async function whileWaiting<T>(
  ctx: PiContext,
  text: string,
  task: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const cancel = new AbortController();
  const done = new AbortController();
  const running = task(cancel.signal).finally(() => done.abort());
  const dialog = offerCancel(ctx, text, done.signal).then(() => {
    if (!done.signal.aborted) cancel.abort();
  });
  // A dialog that fails ends the wait as Escape does.
  dialog.catch(() => cancel.abort());
  return running;
}

const offerCancel = (ctx: PiContext, text: string, signal: AbortSignal): Promise<unknown> => {
  const [first = ""] = pagesOf(printable(text), screenOf(ctx));
  return ctx.ui.select(first, [CANCEL], { signal });
};
