/** How a server's name is shown, and which addresses of a server may be. Pure. */

import { describeErrorOf, type WireError } from "../shared/protocol/errors.ts";
import { LIMITS } from "../shared/protocol/limits.ts";
import type { StatusReport } from "../shared/protocol/session.ts";
import { cut, oneLine } from "../shared/text/unprintable.ts";

const NAME_CHARS = 200;

/** A server's name as a sentence or a list shows it: one line, cut. A project's file may hold any name. */
export const serverName = (name: string): string => oneLine(name, NAME_CHARS);

export const refusedLine = ({ name, reason }: StatusReport["refused"][number]): string =>
  `MCP server ${serverName(name)} is not started: ${reason}.`;

/** A server's own words can be long, and the remedy after them must stay visible. */
export const failureText = (server: string, error: WireError): string =>
  describeErrorOf(server, { ...error, message: cut(error.message, LIMITS.errorTextChars) });

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
