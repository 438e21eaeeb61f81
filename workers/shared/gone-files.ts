/**
 * An update of the package may remove the files of a worker that runs. What the worker has not loaded by then cannot
 * load any more, so the worker ends: main starts the next one from files that main has kept
 * (src/runtime/worker-files.ts).
 */
import { codeOf } from "./files/file-system.ts";
import type { Log } from "./log.ts";

const DEPTH = 3;

/** Whether an `import()` did not find its file: the error itself, or what it was caused by. */
export function isFileGone(error: unknown, depth = DEPTH): boolean {
  if (codeOf(error) === "ERR_MODULE_NOT_FOUND") return true;
  return depth > 0 && error instanceof Error && isFileGone(error.cause, depth - 1);
}

/** Ends this thread if the error says that a file of the package is gone. */
export async function endIfFileGone(error: unknown, log: Pick<Log, "error" | "flush">): Promise<void> {
  if (!isFileGone(error)) return;
  log.error("a file of pi-mcp-threads is gone, as after an update; another connection worker is started");
  await log.flush();
  process.exit(1);
}
