/** `list`: the servers with state, transport, tools and last error. Connects to none without `--refresh`. */
import { serverName } from "../../report/server-name.ts";
import { needsText, signInText } from "../../report/sign-in.ts";
import { describeErrorOf } from "../../shared/protocol/errors.ts";
import type { ServerStatus, StatusReport } from "../../shared/protocol/status.ts";
import { offerText } from "../../shared/text/amounts.ts";
import { describeProblem } from "../../shared/text/failure.ts";
import { oneLine } from "../../shared/text/unprintable.ts";
import { cutTo, padded, visibleWidth } from "../../shared/text/width.ts";
import { type Colour, type Console, EXIT, type ExitCode } from "../console/console.ts";
import { leftOutNote } from "../place/place.ts";
import { leftOutServers } from "../state/state.ts";
import type { Command } from "./context.ts";

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
    [offerText(server), signIn].filter(Boolean).join(", "),
    errorText(server),
  ];
}

function linesOf(servers: readonly ServerStatus[], console: Console): string[] {
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
  const leftOut = leftOutNote(context.place);
  if (console.json) {
    console.document({ servers, problems, questions, refused, files, ...(leftOut ? { note: leftOut } : {}) });
    return outcome(report, options.refresh);
  }
  console.lines(linesOf(servers, console));
  if (servers.length === 0) console.note(`No servers are configured. Add them to ${files.join(" or ")}.`);
  for (const line of leftOutServers(report)) console.note(line);
  if (leftOut) console.note(leftOut);
  for (const problem of problems) console.warn(describeProblem(problem));
  return outcome(report, options.refresh);
};
