/**
 * `list`: connects the servers side by side and shows which are ready; with `--cached` it connects none. Also `doctor` and
 * `logs`.
 */

import { closeSync, fstatSync, openSync, readSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { renderDoctor, renderIssueReport } from "../../report/doctor.ts";
import { sharingText } from "../../report/hub.ts";
import { serverName } from "../../report/server-name.ts";
import { needsText, signInText } from "../../report/status.ts";
import { describeErrorOf } from "../../shared/protocol/errors.ts";
import { LIMITS } from "../../shared/protocol/limits.ts";
import type { ServerStatus, StatusReport } from "../../shared/protocol/session.ts";
import { LOG_FILE } from "../../shared/snapshot/contract.ts";
import { offerText } from "../../shared/text/amounts.ts";
import { describeProblem } from "../../shared/text/failure.ts";
import { entryAbout } from "../../shared/text/log.ts";
import { oneLine } from "../../shared/text/unprintable.ts";
import { cutTo, padded, visibleWidth } from "../../shared/text/width.ts";
import { wrapWords } from "../../shared/text/wrap-words.ts";
import type { Colour, Console } from "../console/console.ts";
import { EXIT, type ExitCode, Failure, usage } from "../console/failure.ts";
import { leftOutNote, leftOutServers } from "../place/place.ts";
import { readRegular } from "../place/read-regular.ts";
import { countOption } from "../words/parse.ts";
import { asked, type Command, type Context, codeOf } from "./known.ts";
import { COLUMNS } from "./login.ts";

const ERROR_CHARS = 600;
const NAME_CELLS = 40;

/** A server of `--cached` runs not for this command: whether its tools are known is all that can be said. */
const STATES: Readonly<Record<ServerStatus["state"], readonly [word: string, colour: Colour]>> = {
  idle: ["not asked", "dim"],
  connecting: ["connecting", "yellow"],
  connected: ["ready", "green"],
  "needs-auth": ["needs sign-in", "yellow"],
  failed: ["failed", "red"],
  closing: ["closing", "dim"],
  disabled: ["disabled", "dim"],
};

function stateText(server: ServerStatus): string {
  if (server.state === "needs-auth") return needsText(server);
  return server.state === "idle" && !server.toolsKnown ? "never connected" : STATES[server.state][0];
}

const errorText = ({ name, error, waits = "" }: ServerStatus): string =>
  error ? oneLine(describeErrorOf(name, error), ERROR_CHARS) : waits;

/** Name, state, transport, tools, sign-in, error. */
function cellsOf(server: ServerStatus, now: number): string[] {
  const signIn = server.signIn && server.state !== "needs-auth" ? signInText(server.signIn, now) : "";
  return [
    cutTo(serverName(server.name), NAME_CELLS),
    stateText(server),
    server.transport,
    [
      offerText(server),
      signIn,
      server.isSandboxed ? "sandbox" : "",
      server.sharing ? sharingText(server.sharing, now) : "",
    ]
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
    const below = error.trim() === "" ? [] : wrapWords(error.trim(), (console.columns ?? COLUMNS) - 2);
    return [line.trimEnd(), ...below.map((part) => `  ${console.paint(paint, part)}`)].join("\n");
  });
}

const outcome = (report: StatusReport, asked: boolean): ExitCode => {
  const { servers } = report;
  const code = codeOf(report);
  if (!asked || code !== EXIT.ok) return code;
  if (servers.some(({ state }) => state === "failed" || state === "connecting")) return EXIT.unreachable;
  return servers.some(({ state }) => state === "needs-auth") ? EXIT.signIn : EXIT.ok;
};

export const list: Command = async (context) => {
  const { console, options } = context;
  if (options.cached && options.refresh)
    throw usage("--cached connects no server and --refresh connects each: use one of them.");
  const session = await context.session();
  await session.planned();
  if (!options.cached) await session.connectAll();
  const report = await session.status();
  const { servers, problems, questions, refused, files } = report;
  const note = await leftOutNote(context.place);
  const document = { servers, problems, questions, refused, files, ...(note ? { note } : {}) };
  console.answer(document, () => serverLines(servers, console));
  if (!console.json) {
    if (servers.length === 0)
      console.note(
        `No servers are configured. pi-mcp-threads add adds one, or write it into ${files.join(" or ")}.`,
      );
    for (const line of leftOutServers(report)) console.note(line);
    if (note) console.note(note);
    for (const problem of problems) console.warn(describeProblem(problem));
  }
  return outcome(report, !options.cached);
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

/** Without the time, the level and the thread, which a server may be named like. */
function isAbout(server: string | undefined): (entry: string) => boolean {
  const fits = entryAbout(server);
  return (entry) => fits(entry.replace(START, ""));
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
