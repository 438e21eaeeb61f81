/** The text of a call's row, without colours: the arguments, and the progress. Pure. */
import { cutTo, printable } from "../../shared/text/width.ts";

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
export const argumentsLine = (args: unknown): string =>
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
export function argumentsText(args: unknown): string {
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
export const shareOf = (progress: unknown, total: unknown): number | undefined =>
  typeof progress === "number" && typeof total === "number" && total > 0
    ? Math.min(1, Math.max(0, progress / total))
    : undefined;

/** `████░░░░ 40% message`, or the message alone. The bar is shorter on a narrow screen. */
export function progressLine(message: string, share: number | undefined, width: number): string {
  const text = printable(message).replaceAll("\n", " ");
  if (share === undefined || Number.isNaN(share)) return cutTo(text, width);
  const cells = Math.max(4, Math.min(BAR_CELLS, Math.floor(width / 4)));
  const full = Math.round(share * cells);
  const percent = `${Math.floor(share * 100)}%`.padStart(4);
  return cutTo(`${FULL.repeat(full)}${EMPTY.repeat(cells - full)}${percent} ${text}`.trimEnd(), width);
}
