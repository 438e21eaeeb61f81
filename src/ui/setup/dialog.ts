/** Dialogs of the set-up: a choice below a text of any length, a typed text, and a wait that can be cancelled. */
import type { Keybindings, PiContext } from "../../pi/api.ts";
import type { Runtime } from "../../runtime/contract.ts";
import { cutTo, printable, wrap } from "../../shared/text/width.ts";
import { pagesOf, screenOf } from "../dialog.ts";
import { takesKeys, whileTyped } from "../typing.ts";

export type Ask = Runtime["ask"];

const NEXT = "Next page";
const BACK = "Previous page";
/** Pi shows so many choices, and a line that counts them. */
const MOST_CHOICES = 11;
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
  const pages = pagesOf(printable(text), screenOf(ctx), Math.min(choices.length, MOST_CHOICES));
  let at = 0;
  for (let turns = 0; turns < TURNS; turns++) {
    const isLast = at === pages.length - 1;
    const offered: string[] = isLast ? [...choices] : [NEXT];
    const all = at === 0 ? offered : [...offered, BACK];
    const place = pages.length === 1 ? "" : `\nPage ${at + 1} of ${pages.length}`;
    const choice = await whileTyped(ctx, ctx.ui.select(`${pages[at]}${place}`, all));
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
 * Asks until the answer fits. `read`: a problem in words, or the value. `keeps`: what was typed can be mended in Pi's
 * editor; it may be no secret then. Undefined: the person closed the dialog.
 */
export async function until<T>(
  ctx: PiContext,
  [title, placeholder]: [title: string, placeholder: string],
  read: (text: string) => Read<T>,
  keeps = false,
): Promise<T | undefined> {
  let problem = "";
  let typed = "";
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const asked = printable(problem === "" ? title : `${problem}\n${title}`);
    const mends = keeps && typed !== "";
    const text: unknown = await whileTyped<string | undefined>(
      ctx,
      mends ? ctx.ui.editor(asked, typed) : ctx.ui.input(asked, placeholder),
    );
    // Over RPC the other program may send anything.
    if (typeof text !== "string") return undefined;
    typed = text.replace(/\s*\n\s*/g, " ").trim();
    const result = read(typed);
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
  return ctx.mode === "tui" ? showWait(ctx, first, signal) : ctx.ui.select(first, [CANCEL], { signal });
};

const TICK_MS = 1_000;
const MOST_LINES = 12;

/** The text with the seconds that have passed. Escape ends it, and Enter does nothing: no impatient key cancels. */
const showWait = (ctx: PiContext, text: string, signal: AbortSignal): Promise<void> =>
  ctx.ui.custom<void>((tui, theme, keybindings, done) => {
    const keys = keybindings as Keybindings;
    const startedAt = performance.now();
    const timer = setInterval(() => tui.requestRender(), TICK_MS);
    timer.unref();
    const ended = takesKeys();
    const dispose = (): void => {
      clearInterval(timer);
      ended();
    };
    const end = (): void => {
      dispose();
      signal.removeEventListener("abort", end);
      done();
    };
    signal.addEventListener("abort", end, { once: true });
    if (signal.aborted) queueMicrotask(end);
    return {
      capturesViewportInput: true,
      render: (width) => {
        const seconds = Math.floor((performance.now() - startedAt) / 1_000);
        const rule = theme.fg("border", "\u2500".repeat(width));
        const { lines } = wrap(text, Math.max(width - 2, 10), MOST_LINES);
        const hint = theme.fg("dim", cutTo(` ${seconds} s   esc cancel`, width));
        return [rule, "", ...lines.map((line) => cutTo(` ${line}`, width)), "", hint, "", rule];
      },
      handleInput: (data) => {
        if (keys.matches(data, "tui.select.cancel")) end();
      },
      invalidate: () => undefined,
      dispose,
    };
  });
