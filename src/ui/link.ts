/** The address of a page that the user is to open: which ones are shown, and how a terminal makes a link of one. Pure. */
import { mostCells } from "../shared/text/width.ts";

/** Longer addresses are refused by servers and browsers as well. */
const URL_CHARS = 8 * 1024;

/**
 * The address, if a terminal and a browser can be given it: http or https, printable ASCII without a space, bounded. A
 * server wrote it, or a part of it.
 */
export function openableUrl(url: string): string | undefined {
  if (url.length > URL_CHARS || !/^https?:\/\/[!-~]+$/i.test(url)) return undefined;
  return URL.canParse(url) ? url : undefined;
}

/**
 * A link of a terminal (OSC 8): a click on any of its characters opens the whole address, also where Pi has broken the
 * text into several rows. A terminal that knows no links shows the text alone. `url`: of `openableUrl`.
 */
export const terminalLink = (url: string, text: string): string =>
  `\u001b]8;;${url}\u001b\\${text}\u001b]8;;\u001b\\`;

/** Rows of a terminal that the text takes. Pi keeps a cell free on both sides. */
export const rowsOf = (text: string, columns: number): number =>
  Math.ceil(mostCells(text) / Math.max(columns - 2, 1));
