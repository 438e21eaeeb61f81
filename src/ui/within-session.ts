/**
 * A command whose dialogs end with the session. Pi takes the dialogs of a session away when it replaces the session, and
 * never settles their promises. Without this end a command would wait for ever, and its keys would count as taken in the
 * next session, where the first choice of each question then lets nothing happen.
 */
import type { PiContext } from "../pi/api.ts";
import { orAborted } from "./dialog.ts";
import type { McpHost } from "./mcp-host.ts";

/** Like `target`, with other values for some of its properties. */
const withOthers = <T extends object>(target: T, others: Partial<T>): T =>
  new Proxy(target, {
    get: (_, key) => (Object.hasOwn(others, key) ? others[key as keyof T] : Reflect.get(target, key, target)),
  });

/** Each dialog rejects once the signal has aborted: nothing that follows takes the end for an answer. */
function contextWithin(ctx: PiContext, signal: AbortSignal): PiContext {
  const lasting = async <T>(dialog: Promise<T>): Promise<T> => {
    const answer = await orAborted(dialog, signal);
    signal.throwIfAborted();
    return answer as T;
  };
  const both = (own: AbortSignal | undefined) => ({ signal: own ? AbortSignal.any([own, signal]) : signal });
  return withOthers(ctx, {
    // Read each time: Pi refuses it after the session's end.
    get ui() {
      const { ui } = ctx;
      return withOthers(ui, {
        select: (title, options, dialog) => lasting(ui.select(title, options, both(dialog?.signal))),
        input: (title, placeholder, dialog) => lasting(ui.input(title, placeholder, both(dialog?.signal))),
        editor: (title, prefill) => lasting(ui.editor(title, prefill)),
        custom: (factory) => lasting(ui.custom(factory)),
      });
    },
  });
}

/** Settles as `run` does; resolves to undefined if the session ends before and `run` then fails. */
export async function withinSession<T>(
  ofPi: PiContext,
  { onChange }: Pick<McpHost, "onChange">,
  run: (ctx: PiContext) => Promise<T>,
): Promise<T | undefined> {
  const over = new AbortController();
  const unsubscribe = onChange((event) => {
    if (event === undefined) over.abort();
  });
  try {
    return await run(contextWithin(ofPi, over.signal));
  } catch (error) {
    if (over.signal.aborted) return undefined;
    throw error;
  } finally {
    unsubscribe();
  }
}
