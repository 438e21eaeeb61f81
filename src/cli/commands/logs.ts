/** `logs`: the last entries of the log, of all servers or of one, and what follows. Starts no worker. */

import { closeSync, fstatSync, openSync, readSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { LIMITS } from "../../shared/protocol/limits.ts";
import { LOG_FILE } from "../../shared/snapshot/contract.ts";
import { escapePattern } from "../../shared/text/reading.ts";
import { EXIT, Failure, usage } from "../console/console.ts";
import { readRegular } from "../place/place.ts";
import { countOption } from "../words/words.ts";
import type { Command, Context } from "./context.ts";

const LINES = 50;
const FOLLOW_MS = 250;
/** The log is rotated at its limit; an entry that is being written may lie beyond it. */
const FILE_BYTES = 2 * LIMITS.logBytes;

/** An entry begins with its time; lines below it are indented. */
const START = /^(\d{4}-\d\d-\d\dT[\d:.]+Z) (\w+) +\[([^\]]*)\] /;

const entriesOf = (text: string): string[] =>
  text.split(/\n(?=\d{4}-\d\d-\d\dT)/).map((entry) => entry.trimEnd());

/** Whether an entry is about the server: its name stands in it as a word. */
function isAbout(server: string | undefined): (entry: string) => boolean {
  if (server === undefined) return () => true;
  const name = new RegExp(`(?<![\\w-])${escapePattern(server)}(?![\\w-])`);
  return (entry) => name.test(entry.replace(START, ""));
}

function recordOf(entry: string): Record<string, string> {
  const [head = "", time = "", level = "", thread = ""] = START.exec(entry) ?? [];
  return { time, level, thread, text: entry.slice(head.length) };
}

/** The bytes of a regular file from a position on; undefined if there is no such file. */
function readFrom(
  path: string,
  from: { ino: number; at: number },
): { text: string; ino: number; at: number } | undefined {
  if (!statSync(path, { throwIfNoEntry: false })?.isFile()) return undefined;
  const file = openSync(path, "r");
  try {
    const { ino, size } = fstatSync(file);
    // Another file has its place: the log was rotated.
    const start = ino === from.ino && size >= from.at ? from.at : 0;
    const bytes = Buffer.alloc(Math.min(size - start, FILE_BYTES));
    const length = readSync(file, bytes, 0, bytes.length, start);
    return { text: bytes.toString("utf8", 0, length), ino, at: start + length };
  } finally {
    closeSync(file);
  }
}

async function follow(
  { console, signal }: Context,
  path: string,
  about: (entry: string) => boolean,
): Promise<void> {
  const now = statSync(path, { throwIfNoEntry: false });
  let from = { ino: now?.ino ?? 0, at: now?.size ?? 0 };
  let rest = "";
  while (!signal.aborted) {
    await sleep(FOLLOW_MS);
    const read = readFrom(path, from);
    if (!read || read.text === "") continue;
    from = read;
    const text = rest + read.text;
    // A line that is still being written waits for its end.
    const end = text.lastIndexOf("\n") + 1;
    rest = text.slice(end).slice(-FILE_BYTES);
    console.lines(entriesOf(text.slice(0, end)).filter((entry) => entry !== "" && about(entry)));
  }
}

export const logs: Command = async (context) => {
  const { console, options, place } = context;
  const count = countOption(options, "lines", LINES);
  if (options.follow && console.json) throw usage("--follow gives no single JSON document.");
  const path = join(place.agentDir, LOG_FILE);
  const read = readRegular(path, FILE_BYTES);
  if (read && "problem" in read) throw new Failure(EXIT.configuration, `${path} ${read.problem}.`);
  const about = isAbout(context.arguments[0]);
  const all = read
    ? entriesOf(read.bytes.toString("utf8")).filter((entry) => entry !== "" && about(entry))
    : [];
  const last = all.slice(-count);
  if (console.json) console.document({ file: path, entries: last.map(recordOf) });
  else if (options.follow || last.length > 0) console.lines(last);
  else console.note(`${path} has nothing about that.`);
  if (options.follow) await follow(context, path, about);
  return EXIT.ok;
};
