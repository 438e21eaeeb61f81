/**
 * The end of a session of Pi under code that still runs. Pi makes its objects stale when it replaces a session, and every
 * use of a stale object throws. Owns: that nobody reads Pi's own words about it, and that Pi does not end by them.
 */
import type { InputResult, Pi } from "./api.ts";
import type { PiContext } from "./context.ts";

/** Runs a task that touches Pi outside a call of Pi's own, for example when the worker sends an event: there, Pi would end. */
export function guardStale(task: () => void, onStale: (error: unknown) => void): void {
  try {
    task();
  } catch (error) {
    onStale(error);
  }
}

type Handler = (event: never, ctx: PiContext | undefined) => unknown;

function isOver(ctx: PiContext | undefined): boolean {
  try {
    void ctx?.hasUI;
    return false;
  } catch {
    return true;
  }
}

/** Whatever a handler throws after the end of its session is dropped with the session: there is nobody to be told. */
function untilOver(handler: Handler, answer?: unknown): Handler {
  return (event, ctx) => {
    const failed = (error: unknown): unknown => {
      if (!isOver(ctx)) throw error;
      return answer;
    };
    try {
      const result = handler(event, ctx);
      return result instanceof Promise ? result.catch(failed) : result;
    } catch (error) {
      return failed(error);
    }
  };
}

/** The same Pi, whose events and commands end quietly with their session. Every handler is registered on this one. */
export function guardHandlers(pi: Pi): Pi {
  // An input of a session that is over starts no turn there.
  const answers: Readonly<Record<string, unknown>> = { input: { action: "handled" } satisfies InputResult };
  const on = (event: string, handler: Handler) =>
    pi.on(event as never, untilOver(handler, answers[event]) as never);
  const registerCommand: Pi["registerCommand"] = (name, { handler, ...command }) =>
    pi.registerCommand(name, { ...command, handler: untilOver(handler as never) as never });
  return Object.assign(Object.create(pi) as Pi, { on: on as Pi["on"], registerCommand });
}
