/** How a server's name is shown. Pure. */

import { describeErrorOf, type WireError } from "../shared/protocol/errors.ts";
import { LIMITS } from "../shared/protocol/limits.ts";
import type { StatusReport } from "../shared/protocol/session.ts";
import { cut, oneLine } from "../shared/text/unprintable.ts";

const NAME_CHARS = 200;

/** A server's name as a sentence or a list shows it: one line, cut. A project's file may hold any name. */
export const serverName = (name: string): string => oneLine(name, NAME_CHARS);

export const refusedLine = ({ name, reason }: StatusReport["refused"][number]): string =>
  `MCP server ${serverName(name)} of this project is not started: ${reason}.`;

/** A server's own words can be long, and the remedy after them must stay visible. */
export const failureText = (server: string, error: WireError): string =>
  describeErrorOf(server, { ...error, message: cut(error.message, LIMITS.errorTextChars) });
