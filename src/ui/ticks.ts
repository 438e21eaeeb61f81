/**
 * Lines that a person ticks. In a terminal one screen of our own, in which the choice stays where it is after a tick; over RPC
 * a dialog for each tick. Must not: know what the lines are.
 */
import type { Keybindings, PiContext } from "../pi/api.ts";
import { plainLines } from "../shared/text/unprintable.ts";
import { cutTo, printable } from "../shared/text/width.ts";
import { screenOf } from "./dialog.ts";
import {
  framed,
  listLines,
  type Parts,
  type Picture,
  paragraph,
  part,
  pointer,
  rowsIn,
} from "./screen/frame.ts";
import { chosenAt, FIRST, isMove, type Key, keyOf, type ListState, moveIn, type Row } from "./screen/list.ts";
import { whileTyped } from "./typing.ts";

interface Ticks {
  /** The first line is the heading. */
  title: string;
  rows: readonly string[];
  ticked: readonly boolean[];
  /** The label of the choice that ends it; undefined: so many ticks cannot be chosen. */
  done: (count: number) => string | undefined;
  /** Whether that choice comes before the lines. */
  doneFirst?: boolean;
  /** What is wrong with the ticks, in a sentence. The person mends them, and they stay. */
  problem?: (ticked: readonly boolean[]) => string | undefined;
  /** Asks before a line is ticked. */
  mayTick?: (at: number) => Promise<boolean>;
  /** The label of a choice that goes back, as Escape does. */
  back?: string;
  signal?: AbortSignal;
  /** Asks over RPC; undefined: nobody has answered. Absent: Pi's own dialog. */
  select?: (title: string, choices: string[]) => Promise<string | undefined>;
}

/** Over RPC a program may answer every dialog at once, for ever. */
const MOST_DIALOGS = 1_000;
/** Cells that Pi needs beside a choice. */
const AROUND_COLUMNS = 6;
const RPC_COLUMNS = 200;

const boxOf = (isTicked: boolean | undefined): string => (isTicked ? "[x]" : "[ ]");
const countOf = (ticked: readonly boolean[]): number => ticked.filter(Boolean).length;

/** The ticks; undefined: the person went back, or nobody waits any more. */
export type TickLines = (ctx: PiContext, ticks: Ticks) => Promise<boolean[] | undefined>;

export const tickLines: TickLines = (ctx, ticks) =>
  ctx.mode === "tui" ? onScreen(ctx, ticks) : byDialogs(ctx, ticks);

async function byDialogs(ctx: PiContext, ticks: Ticks): Promise<boolean[] | undefined> {
  const { title, rows, done, doneFirst, problem, mayTick, back } = ticks;
  const select = ticks.select ?? ((text: string, choices: string[]) => ctx.ui.select(text, choices));
  const ticked = [...ticks.ticked];
  const columns = (screenOf(ctx)?.columns ?? RPC_COLUMNS) - AROUND_COLUMNS;
  let wrong: string | undefined;
  for (let dialogs = 0; dialogs < MOST_DIALOGS; dialogs++) {
    const lines = rows.map((row, at) => cutTo(`${boxOf(ticked[at])} ${row}`, columns));
    const go = done(countOf(ticked));
    const ends = go === undefined ? [] : [go];
    const choices = [
      ...(doneFirst ? [...ends, ...lines] : [...lines, ...ends]),
      ...(back === undefined ? [] : [back]),
    ];
    const text = printable(wrong === undefined ? title : `${title}\n! ${wrong}`);
    const choice = await select(text, choices);
    // Over RPC the other program may answer with a choice that it was not given.
    if (choice === undefined || !choices.includes(choice) || choice === back) return undefined;
    if (choice === go) {
      wrong = problem?.(ticked);
      if (wrong === undefined) return ticked;
      continue;
    }
    const at = lines.indexOf(choice);
    if (ticked[at] || !mayTick || (await mayTick(at))) ticked[at] = !ticked[at];
  }
  return undefined;
}

interface Line extends Row {
  label: string;
  /** The line's position; absent: an action. */
  at?: number;
}

const DONE = "done";
const BACK = "back";
/** Lines of the title above the list, and Pi's own lines below the screen. */
const TITLE_LINES = 8;
const OTHER_ROWS = 5;
const FEWEST_ROWS = 12;

/** Tab chooses what ends it, which a long list has out of sight. */
function hintsOf(lines: readonly Line[]): string {
  const label = lines.find(({ key }) => key === DONE)?.label;
  const ends = label === undefined ? "" : `  tab ${label.charAt(0).toLowerCase()}${label.slice(1)}`;
  return `↑↓ move  enter tick${ends}  esc back`;
}

function linesOf({ rows, done, doneFirst, back }: Ticks, ticked: readonly boolean[]): Line[] {
  const label = done(countOf(ticked));
  const ends: Line[] = label === undefined ? [] : [{ key: DONE, label }];
  const all = rows.map((row, at): Line => ({ key: String(at), label: `${boxOf(ticked[at])} ${row}`, at }));
  return [
    ...(doneFirst ? [...ends, ...all] : [...all, ...ends]),
    ...(back === undefined ? [] : [{ key: BACK, label: back }]),
  ];
}

function pictureOf(title: string, lines: readonly Line[], at: number, width: number): Picture {
  const [heading = "", ...more] = plainLines(printable(title)).split("\n");
  return {
    title: heading,
    head: [
      ...more.flatMap((line): Parts[] => paragraph(line, width, TITLE_LINES)).slice(0, TITLE_LINES),
      ...(more.length > 0 ? [[]] : []),
    ],
    list: listLines(lines, at, "", ({ label }, isChosen) => [
      pointer(isChosen),
      part(printable(label).replaceAll("\n", " "), isChosen ? "accent" : "text"),
    ]),
    hints: hintsOf(lines),
  };
}

/** What is ticked and chosen, and what a key does to it. `end` gets the ticks, or undefined if the person goes back. */
function createList(
  ticks: Ticks,
  {
    end,
    failed,
    redraw,
  }: { end: (ticked: boolean[] | undefined) => void; failed: (error: unknown) => void; redraw: () => void },
) {
  const { problem, mayTick } = ticks;
  const ticked = [...ticks.ticked];
  const start = countOf(ticked) > 0 ? DONE : "0";
  let list: ListState = { ...FIRST, key: linesOf(ticks, ticked).find(({ key }) => key === start)?.key };
  let wrong: string | undefined;
  const tick = (at: number): void => {
    ticked[at] = !ticked[at];
    wrong = undefined;
    redraw();
  };
  const choose = ({ key, at }: Line): void => {
    if (key === BACK) end(undefined);
    else if (at === undefined) {
      wrong = problem?.(ticked);
      if (wrong === undefined) end(ticked);
    } else if (ticked[at] || !mayTick) tick(at);
    // The question whether it may be ticked covers this screen for its time.
    else mayTick(at).then((may) => may && tick(at), failed);
  };
  return {
    wrong: () => wrong,
    picture: (width: number): Picture => {
      const lines = linesOf(ticks, ticked);
      return pictureOf(ticks.title, lines, chosenAt(list, lines), width);
    },
    press: (key: Key, page: number): void => {
      const lines = linesOf(ticks, ticked);
      const chosen = lines[chosenAt(list, lines)];
      if (key === "escape") end(undefined);
      else if (isMove(key)) list = moveIn(list, lines, key, { page });
      else if (key === "tab") {
        const ends = lines.find((line) => line.key === DONE);
        if (ends) choose(ends);
      } else if ((key === "enter" || key === "space") && chosen) choose(chosen);
    },
  };
}

async function onScreen(ctx: PiContext, ticks: Ticks): Promise<boolean[] | undefined> {
  let failure: { error: unknown } | undefined;
  const { signal } = ticks;
  const dialog = ctx.ui.custom<boolean[] | undefined>((tui, theme, keybindings, done) => {
    const keys = keybindings as Keybindings;
    let isOpen = true;
    const dispose = (): void => {
      isOpen = false;
      signal?.removeEventListener("abort", closed);
    };
    const end = (value: boolean[] | undefined): void => {
      if (!isOpen) return;
      dispose();
      done(value);
    };
    const closed = (): void => end(undefined);
    signal?.addEventListener("abort", closed, { once: true });
    if (signal?.aborted) queueMicrotask(closed);
    const redraw = (): void => {
      if (isOpen) tui.requestRender();
    };
    const failed = (error: unknown): void => {
      failure = { error };
      end(undefined);
    };
    const list = createList(ticks, { end, failed, redraw });
    const height = (): number => Math.max(FEWEST_ROWS, tui.terminal.rows - OTHER_ROWS);
    return {
      capturesViewportInput: true,
      render: (width) => {
        const wrong = list.wrong();
        const notice = wrong === undefined ? undefined : { text: wrong, level: "error" as const };
        return framed(list.picture(width), { notice, busy: undefined }, "", {
          width,
          height: height(),
          theme,
        });
      },
      handleInput: (data) => {
        const key = keyOf(data, (typed, binding) => keys.matches(typed, binding));
        if (key === undefined || !isOpen) return;
        list.press(key, Math.max(1, rowsIn(list.picture(tui.terminal.columns), height()) - 1));
        redraw();
      },
      invalidate: () => undefined,
      dispose,
    };
  });
  const ticked = await whileTyped(ctx, dialog, signal);
  if (failure) throw failure.error;
  return ticked;
}
