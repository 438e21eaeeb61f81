/** `list`: the servers with state, transport, tools and last error. Connects to none without `--refresh`. */

import { closeSync, fstatSync, openSync, readSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { renderDoctor, renderIssueReport } from "../../report/doctor.ts";
import { sharingText } from "../../report/hub.ts";
import { serverName } from "../../report/server-name.ts";
import { needsText, signInText } from "../../report/status.ts";
import { type CallResult, decode, type ServerResources } from "../../shared/protocol/calls.ts";
import { describeErrorOf } from "../../shared/protocol/errors.ts";
import { LIMITS } from "../../shared/protocol/limits.ts";
import type { ServerStatus, StatusReport } from "../../shared/protocol/session.ts";
import { LOG_FILE, type SnapshotPrompt, type SnapshotServer } from "../../shared/snapshot/contract.ts";
import { counted, offerText } from "../../shared/text/amounts.ts";
import { describeProblem } from "../../shared/text/failure.ts";
import { escapePattern } from "../../shared/text/reading.ts";
import { oneLine } from "../../shared/text/unprintable.ts";
import { cutTo, padded, visibleWidth } from "../../shared/text/width.ts";
import type { Colour, Console } from "../console/console.ts";
import { EXIT, type ExitCode, Failure, usage } from "../console/failure.ts";
import { leftOutNote, leftOutServers } from "../place/place.ts";
import { readRegular } from "../place/read-regular.ts";
import { countOption } from "../words/parse.ts";
import { printResult } from "./call.ts";
import {
  asked,
  type Command,
  type Context,
  knownCatalog,
  knownServer,
  noteAge,
  reachedOrThrow,
} from "./known.ts";
import { COLUMNS } from "./login.ts";

const ERROR_CHARS = 600;
const NAME_CELLS = 40;

/** A server that waits to be used is neither on nor off: its state says so. */
const STATES: Readonly<Record<ServerStatus["state"], readonly [word: string, colour: Colour]>> = {
  idle: ["not connected", "dim"],
  connecting: ["connecting", "yellow"],
  connected: ["connected", "green"],
  "needs-auth": ["needs sign-in", "yellow"],
  failed: ["failed", "red"],
  closing: ["closing", "dim"],
  disabled: ["disabled", "dim"],
};

const errorText = ({ name, error, waits = "" }: ServerStatus): string =>
  error ? oneLine(describeErrorOf(name, error), ERROR_CHARS) : waits;

/** Name, state, transport, tools, sign-in, error. */
function cellsOf(server: ServerStatus, now: number): string[] {
  const signIn = server.signIn && server.state !== "needs-auth" ? signInText(server.signIn, now) : "";
  return [
    cutTo(serverName(server.name), NAME_CELLS),
    server.state === "needs-auth" ? needsText(server) : STATES[server.state][0],
    server.transport,
    [offerText(server), signIn, server.sharing ? sharingText(server.sharing, now) : ""]
      .filter(Boolean)
      .join(", "),
    errorText(server),
  ];
}

function serverLines(servers: readonly ServerStatus[], console: Console): string[] {
  const rows = servers.map((server) => cellsOf(server, Date.now()));
  if (!console.isTerminal) return rows.map((cells) => cells.join("\t"));
  const widths = [0, 1, 2].map((column) =>
    Math.max(...rows.map((cells) => visibleWidth(cells[column] ?? ""))),
  );
  return rows.map((cells, at) => {
    const [name = "", state = "", transport = "", offer = "", error = ""] = cells.map((cell, column) =>
      padded(cell, widths[column] ?? 0),
    );
    const colour = STATES[servers[at]?.state ?? "idle"][1];
    const line = `${console.paint("bold", name)}  ${console.paint(colour, state)}  ${transport}  ${offer}`;
    const paint = servers[at]?.error ? "red" : "yellow";
    return error === "" ? line.trimEnd() : `${line}\n  ${console.paint(paint, error)}`;
  });
}

const outcome = ({ servers }: StatusReport, asked: boolean): ExitCode => {
  if (!asked) return EXIT.ok;
  if (servers.some(({ state }) => state === "failed" || state === "connecting")) return EXIT.unreachable;
  return servers.some(({ state }) => state === "needs-auth") ? EXIT.signIn : EXIT.ok;
};

export const list: Command = async (context) => {
  const { console, options } = context;
  const session = await context.session();
  await session.planned();
  if (options.refresh) await session.connectAll();
  const report = await session.status();
  const { servers, problems, questions, refused, files } = report;
  const note = leftOutNote(context.place);
  const document = { servers, problems, questions, refused, files, ...(note ? { note } : {}) };
  console.answer(document, () => serverLines(servers, console));
  if (!console.json) {
    if (servers.length === 0) console.note(`No servers are configured. Add them to ${files.join(" or ")}.`);
    for (const line of leftOutServers(report)) console.note(line);
    if (note) console.note(note);
    for (const problem of problems) console.warn(describeProblem(problem));
  }
  return outcome(report, options.refresh);
};

export const doctor: Command = async (context) => {
  const { console, options, signal } = context;
  const { session, server } = await asked(context, context.arguments[0], () => false);
  const report = await session.runtime.ask("diagnose", server === undefined ? {} : { server }, signal);
  const render = options.report ? renderIssueReport : renderDoctor;
  console.answer(report, () => [render(report, console.columns ?? COLUMNS).trimEnd()]);
  return report.findings.some(({ severity }) => severity === "error") ? EXIT.toolError : EXIT.ok;
};

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

const CHARS = 300;

const argumentsOf = ({ arguments: given = [] }: SnapshotPrompt): string =>
  given.map(({ name, required }) => (required ? `<${name}>` : `[${name}]`)).join(" ");

/** What a server offers: for a program cells with tabs, for a person lines below the server's name. */
function offered(
  console: Console,
  server: string,
  count: string,
  rows: readonly { cells: readonly string[]; line: string }[],
): string[] {
  const name = serverName(server);
  if (!console.isTerminal) return rows.map(({ cells }) => [name, ...cells].join("\t"));
  const lines = rows.map(({ line }) => cutTo(`  ${line}`, console.columns ?? 80));
  return [`${console.paint("bold", name)}: ${count}`, ...lines];
}

function promptLines({ name, prompts = [] }: SnapshotServer, console: Console): string[] {
  const rows = prompts.map((prompt) => {
    const cells = [prompt.prompt, argumentsOf(prompt), prompt.description ?? ""].map((cell) =>
      oneLine(cell, CHARS),
    );
    const [shown = "", given = "", text = ""] = cells;
    return { cells, line: [shown, given].filter(Boolean).join(" ") + (text && ` - ${text}`) };
  });
  return offered(console, name, counted(rows.length, "prompt"), rows);
}

export const prompts: Command = async (context) => {
  const { console } = context;
  const [written] = context.arguments;
  const known = await knownCatalog(context, written);
  const server = written === undefined ? undefined : knownServer(known, written);
  if (server !== undefined) reachedOrThrow(known.report, server);
  const servers = known.catalog.servers.filter(({ name }) => server === undefined || name === server);
  noteAge(context, known, true);
  const document = {
    servers: servers.map(({ name, prompts: own = [] }) => ({ server: name, prompts: own })),
  };
  console.answer(document, () => servers.flatMap((one) => promptLines(one, console)));
  return EXIT.ok;
};

function resourceLines({ server, resources, templates }: ServerResources, console: Console): string[] {
  const rows = [...(resources ?? []), ...templates].map(({ uri, title }) => ({
    cells: [uri, title],
    line: `${uri} - ${title}`,
  }));
  const count = resources ? counted(rows.length, "resource") : "its resources are not known";
  return offered(console, server, count, rows);
}

export const resources: Command = async (context) => {
  const { console, options } = context;
  const { session, server, report } = await asked(context, context.arguments[0], (status) =>
    status.state === "disabled" ? false : options.refresh || !status.toolsKnown,
  );
  const known = await session.runtime.ask("listResources", { server });
  if (server !== undefined) reachedOrThrow(report, server);
  console.answer({ servers: known }, () => known.flatMap((one) => resourceLines(one, console)));
  return EXIT.ok;
};

export const read: Command = async (context) => {
  const { console, signal } = context;
  const [written, uri = ""] = context.arguments;
  const { session, server = "" } = await asked(context, written, () => false);
  const bytes = await session.runtime.ask("readResource", { server, uri, wantsStructured: true }, signal);
  await printResult(decode(bytes) as CallResult, console);
  return EXIT.ok;
};
