/**
 * The log file of the extension: one line for each event, with the thread that wrote it. Writes are queued and never
 * block: the first line of a burst is written at once, the others together. The file is rotated to `<file>.1`. Only a regular file is written to. A server's words cannot forge a line:
 * characters that a terminal acts on, or that nobody sees, are shown by their codes.
 */

import { dirname } from "node:path";
import type { LogLevel } from "../../src/shared/protocol/contract.ts";
import { LIMITS } from "../../src/shared/protocol/limits.ts";
import { replaceHidden } from "../../src/shared/text/unprintable.ts";
import { makeFolder } from "./files/owner.ts";
import { codeOf } from "./files/read-regular.ts";
import { appendRotated } from "./files/rotate.ts";

export interface Log {
  debug(message: string): void;
  info(message: string): void;
  warn(message: string): void;
  error(message: string): void;
  write(level: LogLevel, message: string, label?: string): void;
  /** Settles when everything that was logged so far is in the file or has failed to get there. */
  flush(): Promise<void>;
}

const LINE_CHARS = 4_000;
/** Each write wakes the watcher of the configuration, which looks through the folder: half as much as a small call takes. */
const PAUSE_MS = 50;
/** These lines may be the last ones before a crash. */
const URGENT: readonly LogLevel[] = ["warn", "error"];

const escaped = (char: string): string => {
  const code = char.charCodeAt(0).toString(16);
  return code.length > 2 ? `\\u${code.padStart(4, "0")}` : `\\x${code.padStart(2, "0")}`;
};

/** Newlines are followed by an indent; other characters that act on a terminal or hide become their codes. */
const oneEntry = (message: string): string =>
  replaceHidden(message.slice(0, LINE_CHARS).replaceAll("\r\n", "\n"), escaped).replaceAll("\n", "\n    ");

export function createLog({ file, label }: { file: string; label: string }): Log {
  let queue: string[] = [];
  let writing: Promise<void> | undefined;
  /** Nobody may wait for the lines since the last write. */
  let isUrgent = false;
  /** How many wait until all lines are written: for them there is no pause, also where a write has not begun yet. */
  let flushing = 0;
  /** The pause after a write. It keeps the process alive only if lines wait. */
  let pause: NodeJS.Timeout | undefined;
  let endPause = (): void => undefined;

  const rest = (): Promise<void> =>
    new Promise((resolve) => {
      pause = setTimeout(resolve, PAUSE_MS);
      if (queue.length === 0) pause.unref();
      endPause = resolve;
    });
  const hurry = (): void => {
    isUrgent = true;
    clearTimeout(pause);
    endPause();
  };

  const writeQueue = async (): Promise<void> => {
    await makeFolder(dirname(file));
    while (queue.length > 0) {
      const text = queue.join("");
      queue = [];
      isUrgent = false;
      await appendRotated(file, text, LIMITS.logBytes);
      if (!isUrgent && flushing === 0) await rest();
    }
  };

  const startWriting = (): void => {
    writing ??= writeQueue()
      // A log that cannot be written has no place to report it; the session goes on without the log.
      .catch(() => {
        queue = [];
      })
      .finally(() => {
        writing = undefined;
        if (queue.length > 0) startWriting();
      });
  };

  const write = (level: LogLevel, message: string, from = label): void => {
    queue.push(`${new Date().toISOString()} ${level.padEnd(5)} [${from}] ${oneEntry(message)}\n`);
    startWriting();
    if (URGENT.includes(level)) hurry();
    else pause?.ref();
  };

  return {
    debug: (message) => write("debug", message),
    info: (message) => write("info", message),
    warn: (message) => write("warn", message),
    error: (message) => write("error", message),
    write,
    flush: async () => {
      flushing++;
      hurry();
      while (writing) await writing;
      flushing--;
    },
  };
}

const DEPTH = 3;

/** Of an `import()`, and of the start of a thread. */
const GONE: readonly unknown[] = ["ERR_MODULE_NOT_FOUND", "MODULE_NOT_FOUND"];

/** Whether a file of the code was not found: the error itself, or what it was caused by. */
export function isFileGone(error: unknown, depth = DEPTH): boolean {
  if (GONE.includes(codeOf(error))) return true;
  return depth > 0 && error instanceof Error && isFileGone(error.cause, depth - 1);
}

/** Ends this thread if the error says that a file of the package is gone. */
export async function endIfFileGone(error: unknown, log: Pick<Log, "error" | "flush">): Promise<void> {
  if (!isFileGone(error)) return;
  log.error("a file of pi-mcp-threads is gone, as after an update; another connection worker is started");
  await log.flush();
  process.exit(1);
}
