import { ThreadsError } from "../shared/protocol/errors.ts";

const RUNTIME_ENDED = new Set(["runtime_restarted", "runtime_stopped"]);

/** Whether a request failed because the worker ended, which is reported once, for the whole session. */
export const isRuntimeEnd = (error: unknown): boolean =>
  error instanceof ThreadsError && RUNTIME_ENDED.has(error.code);
