/**
 * The context of a command whose dialogs end with the session. Pi takes the dialogs of a session away when it replaces the
 * session, and never settles their promises: a command would wait for ever, and its keys would count as taken in the next
 * session, where the first choice of each question then lets nothing happen.
 */
import type { PiContext } from "../../pi/api.ts";
import { orAborted } from "../dialog.ts";

/** Like `target`, with other values for some of its properties. */
const withOthers = <T extends object>(target: T, others: Partial<T>): T =>
  new Proxy(target, {
    get: (_, key) => (Object.hasOwn(others, key) ? others[key as keyof T] : Reflect.get(target, key, target)),
  });

/** Each dialog rejects once the signal has aborted: nothing that follows takes the end for an answer. */
export function withinSession(ctx: PiContext, signal: AbortSignal): PiContext {
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
