/**
 * The last lines of the log that name a server. The log is shared by all Pi of this person, holds no secrets and no
 * control characters, and grows while it is read.
 */

import { stat } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import type { LogLines } from "../../../src/shared/protocol/panel.ts";
import { escapePattern } from "../../../src/shared/text/reading.ts";
import { readEnd } from "../../shared/files/read-regular.ts";

/** Read from the end of the file. */
const READ_BYTES = 1024 * 1024;
const LINES = 500;
const LINE_CHARS = 1_000;
/** How often a log that somebody looks at is compared with what was seen, and for how long one request waits. */
const LOOK_MS = 400;
const WAIT_MS = 20_000;

/** A line that belongs to the entry before it. */
const CONTINUED = /^ {4}/;

/** Whether the text names the server as a whole word. */
function names(server: string): (line: string) => boolean {
  const word = escapePattern(server);
  const expression = new RegExp(`(?:^|[^\\p{L}\\p{N}_-])${word}(?:$|[^\\p{L}\\p{N}_-])`, "u");
  return (line) => line.includes(server) && expression.test(line);
}

/** `text`: the end of a log; its first line may be cut. */
export function linesOf(text: string, server: string): string[] {
  const fits = names(server);
  const found: string[] = [];
  let belongs = false;
  for (const line of text.split("\n")) {
    if (line === "") continue;
    if (!CONTINUED.test(line)) belongs = fits(line);
    if (belongs) found.push(line.slice(0, LINE_CHARS).toWellFormed());
  }
  return found.slice(-LINES);
}

const sizeOf = (file: string): Promise<number> =>
  stat(file).then(
    ({ size }) => size,
    () => 0,
  );

/** `seen`: the size that an earlier answer told. The request then waits until the file has another size. */
export async function readLogLines(
  file: string,
  { server, seen }: { server: string; seen: number | undefined },
  signal: AbortSignal,
): Promise<LogLines> {
  const endsAt = performance.now() + WAIT_MS;
  while (seen !== undefined && (await sizeOf(file)) === seen && performance.now() < endsAt) {
    await sleep(LOOK_MS, undefined, { signal, ref: false });
  }
  const read = await readEnd(file, READ_BYTES);
  if (read.kind !== "end") return { lines: [], size: await sizeOf(file) };
  return { lines: linesOf(read.bytes.toString("utf8"), server), size: read.size };
}
