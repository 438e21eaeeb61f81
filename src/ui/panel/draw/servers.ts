/** Draws the list of servers, one server with its menu, and a question. Pure. */

import { sharingText } from "../../../report/hub.ts";
import { needsText, signInText } from "../../../report/status.ts";
import { describeErrorOf } from "../../../shared/protocol/errors.ts";
import type { ServerDetails } from "../../../shared/protocol/person.ts";
import type { ConfigProblem, ServerStatus, Sharing } from "../../../shared/protocol/session.ts";
import { counted, durationText, formatBytes, grouped, offerText } from "../../../shared/text/amounts.ts";
import { describeProblem } from "../../../shared/text/failure.ts";
import { firstSentence } from "../../../shared/text/unprintable.ts";
import { cutOff, cutTo, visibleWidth, wrap } from "../../../shared/text/width.ts";
import { TRUST_IT, UNTRUSTED } from "../../../shared/untrusted.ts";
import {
  type Area,
  type Colour,
  cell,
  cellRight,
  clean,
  columnRows,
  filterLine,
  listLines,
  menuColumns,
  menuLines,
  type Parts,
  type Picture,
  paragraph,
  part,
  pointer,
  rowsIn,
  withTilde,
} from "../../screen/frame.ts";
import { chosenAt, isLeft } from "../../screen/list.ts";
import type { FoundTool } from "../model/find.ts";
import { menuAt, menuIn, statusOf } from "../model/menu.ts";
import { rowKeys, type ServersRow, serversRows } from "../model/servers.ts";
import type { ChoiceView, Cost, View, World } from "../model/state.ts";
import { EXPOSURE_WORDS } from "../model/tools.ts";

interface Mark {
  sign: string;
  word: string;
  colour: Colour;
}

const MARKS: Readonly<Record<ServerStatus["state"], Mark>> = {
  connected: { sign: "●", word: "connected", colour: "success" },
  connecting: { sign: "◐", word: "connecting", colour: "accent" },
  closing: { sign: "◐", word: "closing", colour: "muted" },
  idle: { sign: "○", word: "idle", colour: "muted" },
  "needs-auth": { sign: "!", word: "needs sign-in", colour: "warning" },
  failed: { sign: "✗", word: "failed", colour: "error" },
  disabled: { sign: "–", word: "disabled", colour: "dim" },
};

const WAITING: Mark = { sign: "?", word: "asks consent", colour: "warning" };
const REFUSED: Mark = { sign: "✗", word: "refused", colour: "warning" };
const UNREAD: Mark = { sign: "✗", word: "not trusted", colour: "warning" };
const MISTAKE: Mark = { sign: "!", word: "mistake", colour: "error" };

function markOf({ state, isOff, signIn, waits, error }: ServerStatus): Mark {
  if (isOff) return { ...MARKS.disabled, word: "off" };
  if (waits) return { sign: "◐", word: "npm fetches", colour: "accent" };
  if (signIn?.state === "running") return { sign: "◐", word: "signing in", colour: "accent" };
  const mark = MARKS[state];
  return state === "needs-auth" && error ? { ...mark, word: needsText({ error }) } : mark;
}

/** For example `940`, `12.3k`. */
export function tokensText(tokens: number): string {
  if (tokens < 1_000) return String(tokens);
  return tokens < 99_950 ? `${(tokens / 1_000).toFixed(1)}k` : `${Math.round(tokens / 1_000)}k`;
}

/** The tokens that the declared tools cost; `…` while they are being counted. */
const costText = (cost: Cost | undefined): string =>
  cost === undefined ? "–" : cost.isWhole ? tokensText(cost.declared) : "…";

/** What a person should know of the server first: its error with the remedy, its sign-in, or its purpose. */
function wordsOf(
  status: ServerStatus,
  { now, home }: Pick<World, "now" | "home">,
): { text: string; colour: Colour } {
  const { name, error, signIn, state, description, source, waits } = status;
  if (waits) return { text: `${clean(waits)}.`, colour: "accent" };
  if (error) return { text: withTilde(describeErrorOf(name, error), home), colour: "error" };
  if (status.isOff) return { text: "Switched off for this session.", colour: "muted" };
  if (state === "disabled") return { text: withTilde(`Disabled in ${source}.`, home), colour: "muted" };
  if (signIn && state === "connected") return { text: `${signInText(signIn, now)}.`, colour: "muted" };
  return { text: withTilde(description ?? `From ${source}.`, home), colour: "muted" };
}

/** From this width on there is room for the transport and for what all tools would cost. */
const WIDE = 80;
const NAME_CELLS = 30;
const FEWEST_NAME_CELLS = 8;
const STATE_CELLS = 13;
const NUMBER_CELLS = 7;
/** Wide enough for the titles of the columns. */
const NOW_CELLS = 11;
const ALL_CELLS = 7;
const TRANSPORT_CELLS = 7;

interface Columns {
  isWide: boolean;
  name: number;
}

function columnsFor(rows: readonly ServersRow[], width: number): Columns {
  const isWide = width >= WIDE;
  // The pointer, the sign, the state and the numbers, each with a gap behind it.
  const others =
    3 +
    2 +
    STATE_CELLS +
    2 +
    (NUMBER_CELLS + 1) +
    (NOW_CELLS + 1) +
    (isWide ? TRANSPORT_CELLS + 1 + ALL_CELLS + 1 : 0);
  const longest = rows.reduce((most, row) => Math.max(most, cellsOf(nameOf(row)) + lockCells(row)), 0);
  const most = Math.min(NAME_CELLS + (isWide ? 10 : 0), width - others);
  return { isWide, name: Math.max(FEWEST_NAME_CELLS, Math.min(longest, most)) };
}

/** The cells of a name, estimated: to measure a thousand names at each key would take too long. */
const cellsOf = (name: string): number => (/^[ -~]*$/.test(name) ? name.length : 2 * name.length);

const nameOf = (row: ServersRow): string => {
  if (row.kind === "server") return clean(row.status.name);
  if (row.kind === "unread") return clean(row.file);
  return row.kind === "waiting" || row.kind === "refused" ? clean(row.server) : "";
};

const lockCells = (row: ServersRow): number =>
  row.kind === "server" && row.status.isSandboxed ? 1 + visibleWidth(LOCK) : 0;

/** The name with the lock behind it, which a long name does not push out. */
const withLock = (row: ServersRow, cells: number): string =>
  lockCells(row) === 0 ? nameOf(row) : `${cutTo(nameOf(row), cells - lockCells(row))} ${LOCK}`;

/** For example `mcp.json:12 mcpServers.x.args: expected a list`. */
const mistakeText = ({ file, line, key, message }: ConfigProblem): string => {
  const at = `${file.split(/[\\/]/).at(-1) ?? ""}${line === undefined ? "" : `:${line}`}`;
  return clean(`${at} ${key === undefined ? "" : `${key}: `}${message}`);
};

const named = (isChosen: boolean, mark: Mark, name: string, cells: number): Parts => [
  pointer(isChosen),
  part(`${mark.sign} `, mark.colour),
  part(cell(name, cells), isChosen ? "accent" : "text"),
  "  ",
  part(cell(mark.word, STATE_CELLS), mark.colour),
];

function serverCells(row: Extract<ServersRow, { kind: "server" }>, world: World, { isWide }: Columns): Parts {
  const { status } = row;
  const cost = world.costs.get(status.name);
  const { toolsKnown, toolCount, resourceCount } = status;
  const offered = resourceCount === 0 ? String(toolCount) : `${toolCount}+${resourceCount}`;
  const tools = toolsKnown ? offered : "–";
  const all = cost?.isWhole ? tokensText(cost.all) : costText(cost);
  return [
    ...(isWide ? [" ", part(cell(status.transport, TRANSPORT_CELLS), "muted")] : []),
    " ",
    part(cellRight(tools, NUMBER_CELLS), "text"),
    " ",
    part(cellRight(costText(cost), NOW_CELLS), cost?.declared ? "text" : "muted"),
    ...(isWide ? [" ", part(cellRight(all, ALL_CELLS), "muted")] : []),
  ];
}

/** A tool that the box has found, with its server and what it does. */
function toolCells(
  { name, server, tool, description }: FoundTool,
  isChosen: boolean,
  { loaded }: World,
): Parts {
  const isLoaded = loaded.has(name);
  return [
    pointer(isChosen),
    part(isLoaded ? "● " : "○ ", isLoaded ? "success" : "muted"),
    part(clean(tool), isChosen ? "accent" : "text"),
    part(`  ${clean(server)}`, "muted"),
    part(`  ${firstSentence(description)}`, "dim"),
  ];
}

function rowLine(row: ServersRow, isChosen: boolean, world: World, columns: Columns): Parts {
  switch (row.kind) {
    case "server":
      return [
        ...named(isChosen, markOf(row.status), withLock(row, columns.name), columns.name),
        ...serverCells(row, world, columns),
      ];
    case "waiting":
      return named(isChosen, WAITING, nameOf(row), columns.name);
    case "refused":
      return [...named(isChosen, REFUSED, nameOf(row), columns.name), " ", part(clean(row.reason), "muted")];
    case "unread":
      return named(isChosen, UNREAD, nameOf(row), columns.name);
    case "problem": {
      const { severity } = row.problem;
      const colour = severity === "error" ? "error" : "warning";
      return [
        pointer(isChosen),
        part(`${MISTAKE.sign} `, colour),
        part(mistakeText(row.problem), isChosen ? "accent" : colour),
      ];
    }
    case "tool":
      return toolCells(row.tool, isChosen, world);
    case "action":
      return [pointer(isChosen), part("» ", "muted"), part(clean(row.label), isChosen ? "accent" : "muted")];
  }
}

/** What the chosen row means, and what Enter does. */
function aboutRow(row: ServersRow, world: World): { text: string; colour: Colour } {
  const { home } = world;
  switch (row.kind) {
    case "server":
      return wordsOf(row.status, world);
    case "waiting": {
      const question = withTilde(row.question, home);
      return { text: `Enter asks you about it (/mcp trust). It wants to run ${question}`, colour: "warning" };
    }
    case "refused":
      return {
        text: `Not started: ${clean(row.reason)}. Enter asks again (/mcp trust).`,
        colour: "warning",
      };
    case "unread":
      return { text: `${UNTRUSTED}. ${TRUST_IT}`, colour: "warning" };
    case "problem": {
      const problem = withTilde(describeProblem(row.problem), home);
      return { text: `${problem} Enter edits your file.`, colour: "muted" };
    }
    case "tool": {
      const { name, server, description } = row.tool;
      const about = firstSentence(description) || "It has no description";
      return {
        text: `${about}${/[.!?\u2026\u3002\uff01\uff1f\u0964]$/.test(about) ? "" : "."} ${loadedText(name, world)} It is a tool of ${clean(server)}.`,
        colour: "muted",
      };
    }
    case "action":
      return { text: "", colour: "muted" };
  }
}

/** Whether the model has the tool, and what its definition costs. */
export function loadedText(name: string, { loaded, tokensOf }: Pick<World, "loaded" | "tokensOf">): string {
  const tokens = tokensOf(name);
  const cost = tokens === undefined ? "" : `, ~${tokensText(tokens)} tokens`;
  return loaded.has(name) ? `Loaded: the model has it now${cost}.` : `Not loaded${cost}.`;
}

const aboutTokens = (tokens: number): string => (tokens === 0 ? "0" : `~${tokensText(tokens)}`);

function subtitle({ servers, costs }: World, width: number): string {
  const connected = servers.filter(({ state }) => state === "connected").length;
  const tools = servers.reduce((sum, { toolCount }) => sum + toolCount, 0);
  const tokens = [...costs.values()].reduce((sum, { declared }) => sum + declared, 0);
  const isWhole = [...costs.values()].every((cost) => cost.isWhole);
  const loaded = [...costs.values()].reduce((sum, { declaredTools }) => sum + declaredTools, 0);
  const cost =
    tools === 0
      ? ""
      : ` · ${width < WIDE ? "" : `${loaded} loaded, `}${isWhole ? aboutTokens(tokens) : "…"} tokens`;
  if (servers.length === 0) return "";
  return `${connected} of ${servers.length} connected · ${counted(tools, "tool")}${cost}`;
}

/** How to begin, if no file names a server. */
const begin = ({ files, home }: World, width: number): Parts[] => [
  ...paragraph("No servers are configured.", width, 1, "text"),
  ...paragraph("/mcp add <name> <command or url> adds one.", width, 2, "muted"),
  ...paragraph("/mcp import takes over those of other programs.", width, 2, "muted"),
  ...paragraph("Your files:", width, 1, "muted"),
  ...files.slice(-3).flatMap((file) => paragraph(withTilde(file, home), width, 2, "dim")),
  [],
];

function heading(columns: Columns, filter: string): Parts[] {
  const { isWide, name } = columns;
  const titles = [
    " ".repeat(5),
    cell("server", name),
    "  ",
    cell("state", STATE_CELLS),
    ...(isWide ? [" ", cell("", TRANSPORT_CELLS)] : []),
    " ",
    cellRight("tools", NUMBER_CELLS),
    " ",
    cellRight("tokens now", NOW_CELLS),
    ...(isWide ? [" ", cellRight("if all", ALL_CELLS)] : []),
  ].join("");
  return [...(filter === "" ? [] : [filterLine("Find: ", filter)]), [part(titles, "dim")]];
}

export function serversPicture(
  { list }: Extract<View, { name: "servers" }>,
  world: World,
  { width, height }: Area,
): Picture {
  const rows = serversRows(world, list.filter);
  const at = chosenAt(list, rows);
  const columns = columnsFor(rows, width);
  const hasNone = list.filter === "" && rows.every(({ kind }) => kind === "action");
  const about = rows[at] && aboutRow(rows[at], world);
  return {
    title: "MCP servers",
    subtitle: subtitle(world, width),
    head: hasNone ? begin(world, width) : heading(columns, list.filter),
    list: listLines(rows, at, "Nothing fits. Escape clears the words.", (row, isChosen) =>
      rowLine(row, isChosen, world, columns),
    ),
    foot: about?.text ? paragraph(about.text, width, height >= 20 ? 3 : 2, about.colour) : [],
    hints: `↑↓ move  enter open  type to find  tab actions  esc ${isLeft(list) ? "close" : "clear"}`,
    rowKeys: rowKeys(rows[at]) || " ",
  };
}

const LABEL_CELLS = 9;
const fact = (label: string, value: string): Parts => [
  " ",
  part(cell(label, LABEL_CELLS), "muted"),
  " ",
  part(value, "text"),
];

/** On so many lines at most; `isCut`: there is more. */
function longFact(
  label: string,
  value: string,
  width: number,
  most: number,
): { lines: Parts[]; isCut: boolean } {
  const cells = Math.max(1, width - LABEL_CELLS - 3);
  const { lines, rest } = wrap(value, cells, most);
  const isCut = rest < value.length;
  const shown = lines.map((text, i) =>
    fact(i === 0 ? label : "", isCut && i === lines.length - 1 ? cutOff(text, cells) : text),
  );
  return { lines: shown, isCut };
}

const exposureCounts = ({ tools: { exposures } }: ServerDetails): string =>
  Object.entries(EXPOSURE_WORDS)
    .map(([exposure, word]) => [exposures.filter((one) => one === exposure).length, word] as const)
    .flatMap(([count, word]) => (count > 0 ? [`${grouped(count)} ${word}`] : []))
    .join(" · ");

function toolsText(status: ServerStatus, { costs, details }: World): string {
  const cost = costs.get(status.name);
  const known = details.get(status.name);
  if (!status.toolsKnown) return "not listed yet";
  const offer = known && known.tools.names.length > 0 ? exposureCounts(known) : offerText(status);
  if (!cost) return offer;
  if (!cost.isWhole) return `${offer} · counting tokens`;
  return `${offer} · ${tokensText(cost.declared)} of ${tokensText(cost.all)} tokens loaded`;
}

function fromText({ source }: ServerStatus, details: ServerDetails | undefined): string {
  const file = details?.line === undefined ? source : `${source}:${details.line}`;
  const { overrides = [] } = details ?? {};
  return [file, ...overrides.map((one) => `changed by ${one}`)].join(", ");
}

/** Two cells wide in every terminal that shows emoji; `visibleWidth` measures it like any text. */
const LOCK = "\u{1f512}";

const also = (words: string, paths: readonly string[]): string =>
  paths.length === 0 ? "" : `${words}${paths.map(clean).join(", ")}`;

/** What a sandbox keeps out (docs/sandbox.md), on two lines if it is tight, else on at most three. */
function roomFacts(
  { sandbox, cwd }: Partial<ServerDetails>,
  { home }: Pick<World, "home">,
  width: number,
  isTight: boolean,
): Parts[] {
  if (sandbox === undefined) return [];
  const { write, read, hide, network } = sandbox;
  const hides = `${LOCK} hides keys, sign-ins, Pi's files, sockets${also(", ", hide)}${also("; not ", read)}`;
  const writes = `writes its own folder${cwd === undefined || ["~", home].includes(cwd) ? "" : ", its cwd"}${also(", ", write)}; ${network ? "has the network" : "no network"}`;
  const text = (value: string): string => withTilde(value, home);
  return [
    ...longFact("sandbox", text(hides), width, 1).lines,
    ...longFact("", text(writes), width, isTight ? 1 : 2).lines,
  ];
}

const sharedText = (sharing: Sharing, memory: number | undefined, now: number): string =>
  [sharingText(sharing, now), ...(memory === undefined ? [] : [formatBytes(memory)])].join(" · ");

/** Folder, variables or headers, which the command's line names too where it has room. */
function surroundings(
  { transport }: ServerStatus,
  { cwd, env = [] }: Partial<ServerDetails>,
  home: string,
): Parts[] {
  return [
    ...(cwd === undefined ? [] : [fact("in", withTilde(cwd, home))]),
    ...(env.length === 0 ? [] : [fact(transport === "stdio" ? "env" : "headers", clean(env.join(", ")))]),
  ];
}

function facts(status: ServerStatus, world: World, width: number, isTight: boolean): Parts[] {
  const { pid, protocol, transport, lifecycle, signIn, name, sharing } = status;
  const { home, now } = world;
  const details = world.details.get(name);
  const { runs, connectedAt, timeouts = [], memory } = details ?? {};
  const line =
    runs === undefined ? undefined : longFact("runs", withTilde(runs, home), width, isTight ? 1 : 2);
  const isUp = connectedAt !== undefined && status.state === "connected";
  const process = [
    transport,
    isUp ? `up ${durationText(Math.max(0, now - connectedAt))}` : lifecycle,
    ...(pid === undefined ? [] : [`pid ${pid}`]),
    ...(status.isSandboxed && !details?.sandbox ? ["sandbox"] : []),
    ...(protocol === undefined ? [] : [`MCP ${clean(protocol)}`]),
    ...timeouts,
  ];
  return [
    ...(line?.lines ?? []),
    ...(details && line?.isCut && !isTight ? surroundings(status, details, home) : []),
    fact("from", withTilde(fromText(status, details), home)),
    fact("process", process.join(" · ")),
    ...roomFacts(details ?? {}, world, width, isTight),
    ...(sharing ? [fact("sharing", sharedText(sharing, memory, now))] : []),
    fact("tools", toolsText(status, world)),
    ...(signIn ? [fact("sign-in", signInText(signIn, now))] : []),
  ];
}

const MENU_HINTS = "↑↓ move  enter choose  esc back";

export function serverPicture(
  { server, list }: Extract<View, { name: "server" }>,
  world: World,
  { width, height }: Area,
): Picture {
  const status = statusOf(world, server);
  const rows = menuIn(world, server);
  const at = chosenAt(list, rows, (key) => menuAt(rows, key));
  const mark = status && markOf(status);
  const words = status?.error || status?.waits ? wordsOf(status, world) : undefined;
  const head = (isTight: boolean): Parts[] => [
    ...(status ? facts(status, world, width, isTight) : []),
    ...(words ? paragraph(words.text, width, isTight ? 2 : 3, words.colour) : []),
    [],
  ];
  const whole = head(false);
  const lines = rowsIn({ head: whole }, height);
  const isSeen = rows.length <= lines || columnRows(rows.length, lines, width) !== undefined;
  return {
    title: clean(server),
    subtitle: mark ? `${mark.sign} ${mark.word}` : "",
    // Every action is seen, if some lines above them can do without.
    head: isSeen ? whole : head(true),
    list: menuColumns(rows, at, "This server is gone.", { meaning: ({ value }) => value, width }),
    hints: MENU_HINTS,
  };
}

export const choicePicture = ({ title, text, options, list }: ChoiceView, { width }: Area): Picture => ({
  title: clean(title),
  head: [...paragraph(clean(text), width, 4, "text"), []],
  list: menuLines(options, chosenAt(list, options), "", ({ hint }) => hint),
  hints: MENU_HINTS,
});
