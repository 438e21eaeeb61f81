/** What every command gets. Types only. */
import type { Console, ExitCode } from "../console/console.ts";
import type { Place } from "../place/place.ts";
import type { CliSession } from "../session/session.ts";
import type { Options } from "../words/words.ts";

export interface Context {
  console: Console;
  place: Place;
  options: Options;
  arguments: readonly string[];
  /** Aborts when the command ends before its time. */
  signal: AbortSignal;
  /** The worker's session, which starts with the first call. Main ends it. */
  session(): Promise<CliSession>;
  /** All of stdin up to a limit; undefined if there is more. */
  stdin(): Promise<Buffer | undefined>;
}

/** Answers the exit code; a failure is thrown. */
export type Command = (context: Context) => Promise<ExitCode>;
