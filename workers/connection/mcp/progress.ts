/** Reads progress notifications and bounds their text. Pure. */
import type { CallProgress } from "../../../src/shared/protocol/calls.ts";
import type { Redactor } from "../secrets/redact.ts";

const MESSAGE_CHARS = 500;

interface Params {
  message?: unknown;
  progress: unknown;
  total?: unknown;
}

/** Reads the params of a progress notification (MCP 2025-11-25, basic/utilities/progress) of any shape. */
export function readProgress(params: Params, redact: Redactor): CallProgress {
  const progress = typeof params.progress === "number" ? params.progress : undefined;
  const total = typeof params.total === "number" && params.total > 0 ? params.total : undefined;
  const counted = `${progress ?? "?"}${total === undefined ? "" : ` of ${total}`}`;
  const message =
    typeof params.message === "string" && params.message !== ""
      ? redact(params.message).slice(0, MESSAGE_CHARS).toWellFormed()
      : counted;
  return {
    message,
    ...(progress === undefined ? {} : { progress }),
    ...(total === undefined ? {} : { total }),
  };
}
