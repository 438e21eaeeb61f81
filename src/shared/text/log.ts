/** Which entries of the log are about a server. For the panel, and for `logs` of the shell. Pure. */
import { escapePattern } from "./reading.ts";

/** Whether an entry is about the server: its name stands there as a word. */
export function entryAbout(server: string | undefined): (entry: string) => boolean {
  if (server === undefined) return () => true;
  const word = new RegExp(`(?<![\\p{L}\\p{N}_-])${escapePattern(server)}(?![\\p{L}\\p{N}_-])`, "u");
  return (entry) => entry.includes(server) && word.test(entry);
}
