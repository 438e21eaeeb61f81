/** What a person reads who signs in with a code for another device (RFC 8628, section 3.3). Pure. */
import type { SignInStep } from "../shared/protocol/session.ts";
import { oneLine } from "../shared/text/unprintable.ts";
import { openableUrl, serverName } from "./server-name.ts";

/** The longest name of DNS, with a port. */
const HOST_CHARS = 260;

/** `show`: an address as it is shown; undefined if it does not fit, and stands elsewhere. The page can be opened. */
export function deviceLines(
  server: string,
  { url, userCode, urlWithCode, codeFrom }: Extract<SignInStep, { step: "device" }>,
  show: (address: string) => string | undefined,
): string[] {
  const complete = urlWithCode === undefined ? undefined : openableUrl(urlWithCode);
  const withCode = complete && show(complete);
  return [
    `To sign in to ${serverName(server)}, open this page on any device:`,
    show(url) ?? "(its address is above)",
    `and enter this code: ${oneLine(userCode, HOST_CHARS)}`,
    ...(withCode ? ["Or open the page that has the code already:", withCode] : []),
    `The code comes from ${oneLine(codeFrom, HOST_CHARS)}. Agree on that page only if it shows this code.`,
  ];
}
