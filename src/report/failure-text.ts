/** The error of a server with its remedy, for a notice or a line. Pure. */
import { describeErrorOf, type WireError } from "../shared/protocol/errors.ts";
import { LIMITS } from "../shared/protocol/limits.ts";
import { cut } from "../shared/text/unprintable.ts";

/** A server's own words can be long, and the remedy after them must stay visible. */
export const failureText = (server: string, error: WireError): string =>
  describeErrorOf(server, { ...error, message: cut(error.message, LIMITS.errorTextChars) });
