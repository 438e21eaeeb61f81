/**
 * The rows of our calls in Pi's terminal. Owns: `server · tool` with its arguments, the first lines of the result,
 * progress, time and size. Must not: know how a call is made.
 * The components are our own: an import of Pi's components would load the extension through Pi's slow transform. Pi
 * draws the images of a result itself, below the row. To show another detail of a call: `RowDetails`, then `footer`.
 */
import type { Component, DrawnResult, RenderContext, RenderTheme, ToolRenderers } from "../pi/api.ts";
import { formatBytes, formatMs } from "../shared/text/amounts.ts";
import { plainLines } from "../shared/text/unprintable.ts";
import { asDrawn, cutTo, mostCells, printable, wrap } from "../shared/text/width.ts";

const VALUE_CHARS = 200;
/** Longest argument in an expanded row. */
const TEXT_CHARS = 32 * 1024;
const VALUES_SHOWN = 20;
const DEPTH_SHOWN = 3;

/** A value in one line. Cut before it is written out, because an argument may hold megabytes. */
function shortValue(value: unknown, depth = 0): string {
  if (typeof value === "string") {
    const cut = value.length > VALUE_CHARS ? `${value.slice(0, VALUE_CHARS)}…` : value;
    return JSON.stringify(cut);
  }
  if (typeof value !== "object" || value === null) return String(value);
  if (depth >= DEPTH_SHOWN) return Array.isArray(value) ? "[…]" : "{…}";
  if (Array.isArray(value)) {
    const items = value.slice(0, VALUES_SHOWN).map((item) => shortValue(item, depth + 1));
    return `[${[...items, ...(value.length > VALUES_SHOWN ? ["…"] : [])].join(", ")}]`;
  }
  return `{${shortPairs(value, depth + 1)}}`;
}

function shortPairs(value: object, depth: number): string {
  const shown: string[] = [];
  for (const [key, member] of Object.entries(value)) {
    if (shown.length === VALUES_SHOWN) {
      shown.push("…");
      break;
    }
    shown.push(`${key}: ${shortValue(member, depth)}`);
  }
  return shown.join(", ");
}

/** For example `path: "a.txt", head: 10`. */
const argumentsLine = (args: unknown): string =>
  printable(typeof args === "object" && args !== null ? shortPairs(args, 0) : "").replaceAll("\n", " ");

function indented(value: unknown): string {
  try {
    return JSON.stringify(value, null, 2) ?? String(value);
  } catch {
    // V8 cannot write out a value that is nested too deeply.
    return shortValue(value);
  }
}

/** One block per argument; strings as they are, other values as JSON. */
function argumentsText(args: unknown): string {
  if (typeof args !== "object" || args === null) return "";
  const blocks = Object.entries(args).map(([key, value]) => {
    const whole = typeof value === "string" ? value : indented(value);
    const text = whole.length > TEXT_CHARS ? `${whole.slice(0, TEXT_CHARS)}…` : whole;
    return `${printable(key).replaceAll("\n", " ")}: ${printable(text).replaceAll("\n", "\n  ")}`;
  });
  return blocks.join("\n");
}

const BAR_CELLS = 20;
const FULL = "█";
const EMPTY = "░";

/** Share of the total from 0 to 1; undefined if the server does not tell it. */
const shareOf = (progress: unknown, total: unknown): number | undefined =>
  typeof progress === "number" && typeof total === "number" && total > 0
    ? Math.min(1, Math.max(0, progress / total))
    : undefined;

/** `████░░░░ 40% message`, or the message alone. The bar is shorter on a narrow screen. */
function progressLine(message: string, share: number | undefined, width: number): string {
  const text = printable(message).replaceAll("\n", " ");
  if (share === undefined || Number.isNaN(share)) return cutTo(text, width);
  const cells = Math.max(4, Math.min(BAR_CELLS, Math.floor(width / 4)));
  const full = Math.round(share * cells);
  const percent = `${Math.floor(share * 100)}%`.padStart(4);
  return cutTo(`${FULL.repeat(full)}${EMPTY.repeat(cells - full)}${percent} ${text}`.trimEnd(), width);
}

/** Lines of a result in a row that is not expanded; Pi's own tools show as many. */
const PREVIEW_LINES = 5;
/** Lines of an expanded result: more than any result within the default output guard has, and quick to draw. */
const EXPANDED_LINES = 5_000;
/** Lines of the arguments in an expanded row. An argument may be a whole file. */
const ARGUMENT_LINES = 200;

/** The `details` that tools/definition writes. In an older or foreign session they may hold anything. */
export interface RowDetails {
  server: string;
  tool: string;
  durationMs?: number;
  bytes?: { received: number; shown: number };
  storedAt?: string;
  forUser?: string;
  progress?: number;
  total?: number;
}

/** Keeps the lines for the last width, because Pi asks for them at every frame. */
function component(draw: (width: number) => string[]): Component {
  let drawn: { width: number; lines: string[] } | undefined;
  return {
    render(width) {
      if (drawn?.width !== width) drawn = { width, lines: width < 1 ? [] : draw(width) };
      return drawn.lines;
    },
    invalidate() {
      drawn = undefined;
    },
  };
}

function drawCall(
  label: string,
  args: unknown,
  theme: RenderTheme,
  expanded: boolean,
  width: number,
): string[] {
  const title = cutTo(printable(label).replaceAll("\n", " "), width);
  const styledTitle = theme.fg("toolTitle", theme.bold(title));
  if (expanded) {
    const text = argumentsText(args);
    const { lines, rest } = wrap(text, Math.max(1, width - 2), ARGUMENT_LINES);
    const more = rest < text.length ? ["…"] : [];
    return [styledTitle, ...[...lines, ...more].map((line) => theme.fg("muted", cutTo(`  ${line}`, width)))];
  }
  const left = width - mostCells(title) - 2;
  const line = left > 3 ? cutTo(argumentsLine(args), left) : "";
  return [line === "" ? styledTitle : `${styledTitle}  ${theme.fg("muted", line)}`];
}

const detailsOf = (result: DrawnResult): Partial<RowDetails> =>
  typeof result.details === "object" && result.details !== null ? result.details : {};

/** Characters of a result that are drawn: enough for every line. Without the output guard a result may have megabytes. */
const OUTPUT_CHARS = 512 * 1024;

interface Output {
  text: string;
  /** Whether the result has more text. */
  isCut: boolean;
}

/** The text of a result, and a line for each image, which the terminal may be unable to draw. */
function outputText(result: DrawnResult, { forUser }: Partial<RowDetails>): Output {
  const texts = (Array.isArray(result.content) ? result.content : []).map((content) => {
    if (content.type === "text") return String(content.text);
    // A foreign session may hold anything.
    const chars = typeof content.data === "string" ? content.data.length : 0;
    return `[Image: ${content.mimeType}, ${formatBytes(Math.floor((chars * 3) / 4))}]`;
  });
  const own = typeof forUser === "string" && forUser !== "" ? [forUser] : [];
  let left = OUTPUT_CHARS;
  const shown: string[] = [];
  for (const text of [...own, ...texts]) {
    if (left <= 0) break;
    shown.push(text.slice(0, left));
    left -= text.length;
  }
  return {
    // Only our own lines show it, and those are cut to any width: `printable` would take 50 ms for half a megabyte.
    text: asDrawn(plainLines(shown.join("\n"))).trimEnd(),
    isCut: left < 0 || shown.length < own.length + texts.length,
  };
}

function countNewlines(text: string, from: number): number {
  let lines = 0;
  for (let at = text.indexOf("\n", from); at !== -1; at = text.indexOf("\n", at + 1)) lines++;
  return lines;
}

/** `… 12 more lines (ctrl+o to expand)`; without the key if the line is too narrow for it. */
function moreLine(
  { text, isCut }: Output,
  rest: number,
  { theme, hint, width }: { theme: RenderTheme; hint: string; width: number },
): string {
  const lines = countNewlines(text, rest) + 1;
  const count = `${isCut ? "over " : ""}${lines.toLocaleString("en")}`;
  const more = `… ${count} more line${lines === 1 ? "" : "s"}`;
  const styled = `${theme.fg("muted", `${more} (`)}${hint}${theme.fg("muted", ")")}`;
  return hint !== "" && mostCells(styled) <= width ? styled : theme.fg("muted", cutTo(more, width));
}

function footer({ durationMs, bytes, storedAt }: Partial<RowDetails>, width: number): string[] {
  const parts: string[] = [];
  if (typeof durationMs === "number") parts.push(formatMs(durationMs));
  if (typeof bytes?.shown === "number" && typeof bytes.received === "number") {
    const shown = formatBytes(bytes.shown);
    parts.push(storedAt === undefined ? shown : `${shown} of ${formatBytes(bytes.received)}`);
  }
  const lines = parts.length === 0 ? [] : [cutTo(parts.join(" · "), width)];
  if (typeof storedAt === "string")
    lines.push(...wrap(printable(`Full text: ${storedAt}`), width, EXPANDED_LINES).lines);
  return lines;
}

function drawResult(
  result: DrawnResult,
  details: Partial<RowDetails>,
  { theme, context, width }: { theme: RenderTheme; context: RenderContext; width: number },
): string[] {
  const output = outputText(result, details);
  const { text } = output;
  const color = context.isError ? "error" : "toolOutput";
  const { lines, rest } = wrap(text, width, context.expanded ? EXPANDED_LINES : PREVIEW_LINES);
  const isMore = rest < text.length || output.isCut;
  const hint = isMore && !context.expanded ? context.keyHint("app.tools.expand", "to expand") : "";
  const durationMs = details.durationMs ?? context.durationMs;
  const timed = durationMs === undefined ? details : { ...details, durationMs };
  return [
    "",
    ...lines.map((line) => (line === "" ? "" : theme.fg(color, line))),
    ...(isMore ? [moreLine(output, rest, { theme, hint, width })] : []),
    ...footer(timed, width).map((line) => theme.fg("muted", line)),
  ];
}

function drawProgress(
  result: DrawnResult,
  { progress, total }: Partial<RowDetails>,
  theme: RenderTheme,
  width: number,
): string[] {
  const message = result.content.map((content) => (content.type === "text" ? content.text : "")).join(" ");
  const line = progressLine(message, shareOf(progress, total), width);
  return line === "" ? [] : [theme.fg("muted", line)];
}

/** Renderers of one tool's calls; `label` is `server · tool`. */
export function createRenderers(label: string): Required<ToolRenderers> {
  return {
    renderCall: (args, theme, context) =>
      component((width) => drawCall(label, args, theme, context.expanded, width)),
    renderResult: (result, { isPartial }, theme, context) => {
      const details = detailsOf(result);
      return component((width) =>
        isPartial
          ? drawProgress(result, details, theme, width)
          : drawResult(result, details, { theme, context, width }),
      );
    },
  };
}

/**
 * Names that can be ours: `server__tool`, and `mcp__server__tool`, the form of Pi's built-in MCP, which this extension
 * replaces. A bare name (`toolPrefix: "none"`) is excluded: any extension's tool may have had it.
 */
const OURS = /^(?:mcp__(?=[A-Za-z0-9_-]+?__))?([A-Za-z0-9_-]+?)__([A-Za-z0-9_-]+)$/;

/**
 * For `registerToolRenderer`: draws rows of a resumed session whose tool is not registered now. A renderer of another
 * extension goes first. Undefined for a name that cannot be ours.
 */
export function renderersFor<Theirs>(
  toolName: string,
  next: () => Theirs | undefined,
): Theirs | ToolRenderers | undefined {
  const others = next();
  if (others) return others;
  const [, server, tool] = OURS.exec(toolName) ?? [];
  return server === undefined || tool === undefined ? undefined : createRenderers(`${server} · ${tool}`);
}
