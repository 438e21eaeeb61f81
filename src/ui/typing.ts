/**
 * Whether the keys of a person are meant for something else when a dialog of ours opens: a text in Pi's editor, a screen of
 * ours, or a dialog in which one types. The first choice of a dialog that covers them must let nothing happen, and the keys
 * that were on their way are not its keys. Nor are those of the answer before it.
 */
import type { PiContext } from "../pi/api.ts";

/**
 * What takes keys now. One for the process, because its sessions share the one terminal, and the build has this module twice: in
 * the file of the screens and in that of the dialogs.
 */
const SHARED = Symbol.for("pi-mcp-threads.keys-taken");
const shared = globalThis as { [SHARED]?: Set<object> };
shared[SHARED] ??= new Set();
const taking = shared[SHARED];

/** When a dialog of ours was last answered in the terminal: one for the process as well. */
const ANSWERED = Symbol.for("pi-mcp-threads.keys-answered");
const latest = globalThis as { [ANSWERED]?: number };

/** Until the function is called. */
export function takesKeys(): () => void {
  const one = {};
  taking.add(one);
  return () => void taking.delete(one);
}

/** Over RPC another program draws the dialog, in a place of its own. */
export const isTyping = ({ mode, ui }: Pick<PiContext, "mode" | "ui">): boolean =>
  mode === "tui" && (taking.size > 0 || ui.getEditorText().trim() !== "");

/** Milliseconds without a key, after which the next key is meant for what is on the screen. */
const PAUSE_MS = 600;
/** Milliseconds, after which keys without a pause, such as one that is held down, reach Pi again. */
const LONGEST_MS = 5_000;
/** Escape and Ctrl-C as terminals send them, also by the protocols of kitty and xterm. */
const STOPS = new Set(["\u001b", "\u0003"]);
for (const sent of ["27u", "27;1u", "27;1:1u", "99;5u", "99;5:1u", "27;5;99~"]) STOPS.add(`\u001b[${sent}`);

/** A dialog of ours has been answered. */
export function answered({ mode }: Pick<PiContext, "mode">): void {
  if (mode === "tui") latest[ANSWERED] = performance.now();
}

/** Whether the keys of an answer may still be on their way: the second half of a double press, or a key that is held down. */
const isBehindAnswer = ({ mode }: Pick<PiContext, "mode">): boolean =>
  mode === "tui" && performance.now() - (latest[ANSWERED] ?? Number.NEGATIVE_INFINITY) < PAUSE_MS;

/** While the dialog of the promise is open. If its signal has taken it away, the keys that were on their way to it are lost. */
export async function whileTyped<T>(
  ctx: Pick<PiContext, "mode" | "ui">,
  dialog: Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  const end = takesKeys();
  try {
    return await dialog;
  } finally {
    if (signal?.aborted && ctx.mode === "tui") takesRest(ctx.ui, end);
    else {
      end();
      answered(ctx);
    }
  }
}

/** Keeps keys from everyone until a pause: the rest of an answer and its Enter are no prompt for the model. */
function takesRest(ui: PiContext["ui"], end: () => void): void {
  const longest = performance.now() + LONGEST_MS;
  const timer = setTimeout(() => {
    stop();
    end();
  }, PAUSE_MS);
  timer.unref();
  const stop = ui.onTerminalInput((data) => {
    if (STOPS.has(data)) return undefined;
    // A dialog behind this one waits for a pause without a limit, and it counts only the keys that reach it.
    if (performance.now() > longest && taking.size === 1) return undefined;
    timer.refresh();
    return { consume: true };
  });
}

/**
 * A dialog that may cover a text which is being typed, or that follows an answer at once: it gets keys once a person has
 * paused. Behind an answer its first choice stays as it is: whoever pauses there has seen that this is another question, and
 * writes no text on.
 */
export async function afterPause<T>(ctx: Pick<PiContext, "mode" | "ui">, open: () => Promise<T>): Promise<T> {
  if (!isTyping(ctx) && !isBehindAnswer(ctx)) return open();
  const isBehind = !isTyping(ctx);
  let before = performance.now();
  const end = ctx.ui.onTerminalInput((data) => {
    // Who refuses several questions in a row lets nothing happen unread.
    if (isBehind && STOPS.has(data)) return undefined;
    const pause = performance.now() - before;
    before = performance.now();
    if (pause < PAUSE_MS) return { consume: true };
    end();
    return undefined;
  });
  try {
    return await open();
  } finally {
    end();
  }
}
