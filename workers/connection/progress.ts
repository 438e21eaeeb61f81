/**
 * Progress of one call on its way to main: the latest, at most so often. Pi redraws for each, and a server
 * may send thousands a second.
 */
import { LIMITS } from "../../src/protocol/limits.ts";
import type { CallProgress } from "../../src/protocol/types.ts";

export interface ProgressGate {
  report(progress: CallProgress): void;
  /** The call is over: what is held back has no reader any more. */
  end(): void;
}

export function createProgressGate(
  send: (progress: CallProgress) => void,
  everyMs: number = LIMITS.progressEveryMs,
): ProgressGate {
  let held: CallProgress | undefined;
  let timer: NodeJS.Timeout | undefined;

  const onTimer = (): void => {
    timer = undefined;
    if (!held) return;
    const latest = held;
    held = undefined;
    pass(latest);
  };
  const pass = (progress: CallProgress): void => {
    send(progress);
    timer = setTimeout(onTimer, everyMs);
  };
  return {
    report: (progress) => {
      if (timer) held = progress;
      else pass(progress);
    },
    end: () => {
      clearTimeout(timer);
      timer = undefined;
      held = undefined;
    },
  };
}

const MESSAGE_CHARS = 500;

/** A progress notification (MCP 2025-11-25, basic/utilities/progress), bounded. */
export function readProgress(params: {
  message?: unknown;
  progress: unknown;
  total?: unknown;
}): CallProgress {
  const progress = typeof params.progress === "number" ? params.progress : undefined;
  const total = typeof params.total === "number" && params.total > 0 ? params.total : undefined;
  const counted = `${progress ?? "?"}${total === undefined ? "" : ` of ${total}`}`;
  const message =
    typeof params.message === "string" && params.message !== ""
      ? params.message.slice(0, MESSAGE_CHARS).toWellFormed()
      : counted;
  return {
    message,
    ...(progress === undefined ? {} : { progress }),
    ...(total === undefined ? {} : { total }),
  };
}
