/**
 * Whether the keys of a person are meant for something else when a dialog of ours opens: a text in Pi's editor, a screen of
 * ours, or a dialog in which one types. The first choice of a dialog that covers them must let nothing happen, and the keys
 * that were on their way are not its keys.
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

/** While the dialog of the promise is open. If its signal has taken it away, the keys that were on their way to it are lost. */
export async function whileTyped<T>(
  { mode, ui }: Pick<PiContext, "mode" | "ui">,
  dialog: Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  const end = takesKeys();
  try {
    return await dialog;
  } finally {
    if (signal?.aborted && mode === "tui") takesRest(ui, end);
    else end();
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

/** A dialog that may cover a text which is being typed: it gets keys once a person has paused. */
export async function afterPause<T>(ctx: Pick<PiContext, "mode" | "ui">, open: () => Promise<T>): Promise<T> {
  if (!isTyping(ctx)) return open();
  let last = performance.now();
  const end = ctx.ui.onTerminalInput(() => {
    const pause = performance.now() - last;
    last = performance.now();
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
