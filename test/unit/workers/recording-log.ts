/** Owns: a log that keeps its lines, `level message` each. */
import type { Log } from "../../../workers/shared/log.ts";

export function recordingLog(): { log: Log; lines: string[] } {
  const lines: string[] = [];
  const write: Log["write"] = (level, message) => {
    lines.push(`${level} ${message}`);
  };
  const log: Log = {
    debug: (message) => write("debug", message),
    info: (message) => write("info", message),
    warn: (message) => write("warn", message),
    error: (message) => write("error", message),
    write,
    flush: async () => undefined,
  };
  return { log, lines };
}
