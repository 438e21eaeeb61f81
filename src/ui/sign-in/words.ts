/** What the user reads of a sign-in. Names and texts of servers are cleaned and bounded here. Pure. */
import { deviceLines } from "../../report/device-code.ts";
import { errorLine } from "../../report/search.ts";
import { serverName } from "../../report/server-name.ts";
import { messageOf, type WireError } from "../../shared/protocol/errors.ts";
import type { SignInQuestion, SignInResult, SignInStep } from "../../shared/protocol/session.ts";
import { counted } from "../../shared/text/amounts.ts";
import { oneLine } from "../../shared/text/unprintable.ts";
import { isRuntimeEnd, rowsOf, type Screen, terminalLink } from "../dialog.ts";

/** Two screens of a small terminal. A question is longer only if a server wrote a very long address. */
const QUESTION_CHARS = 2_000;
const PROBLEM_CHARS = 500;
/** The longest name of DNS, with a port. */
const HOST_CHARS = 260;
/** Rows that the dialog needs beside the address: its frame, its sentences, and Pi's footer. */
const AROUND_ROWS = 18;
const FEWEST_ROWS = 3;

type OpenStep = Extract<SignInStep, { step: "open" }>;
type DeviceStep = Extract<SignInStep, { step: "device" }>;

export const again = (server: string): string => `/mcp auth ${serverName(server)} begins it again.`;

/** The answers where a server chose the addresses, with the safe one first. */
export const TRUST = ["No, do not sign in", "Yes, I trust that"] as const;

/** The answers about Pi's own sign-in. A failed call may ask it, so Enter takes nothing over. */
export const TAKE_OVER = ["No, sign in by itself", "Yes, take it over"] as const;

/** The answers below a code for another device. Who has entered it there may press Enter here, which changes nothing. */
export const DEVICE = ["Go on waiting", "Sign in with a link instead"] as const;

const TITLES: Readonly<Record<SignInQuestion["about"], string>> = {
  issuer: "Sign in to $ with this authorization server?",
  endpoints: "Sign in to $ at the page of another server?",
  pi: "Take over Pi's sign-in to $?",
};

export function questionText(server: string, { about, text }: SignInQuestion): [title: string, text: string] {
  return [TITLES[about].replace("$", () => serverName(server)), oneLine(text, QUESTION_CHARS)];
}

/** Whether the whole address fits into the dialog. If it does not, a notice shows it. */
export const fitsDialog = (url: string, screen: Screen | undefined): boolean =>
  screen === undefined || rowsOf(url, screen.columns) <= Math.max(screen.rows - AROUND_ROWS, FEWEST_ROWS);

export function noticeText(server: string, url: string, screen: Screen | undefined, code?: string): string {
  const address = screen === undefined ? url : terminalLink(url, url);
  const withCode = code === undefined ? "" : `, with the code ${code}`;
  return `The sign-in page of ${serverName(server)}${withCode}:\n${address}`;
}

/**
 * The dialog's text: what to do, the link, and what to paste. In a terminal a line of its own is the link as well, since
 * the address breaks into several rows.
 */
export function dialogText(
  server: string,
  { browser, listens, codeGoesTo }: OpenStep,
  url: string,
  screen: Screen | undefined,
): string {
  const name = serverName(server);
  const lines = [
    browser === "started"
      ? `Sign in to ${name} in the browser. If it has not opened, open this page:`
      : `To sign in to ${name}, open this page in a browser:`,
  ];
  const whole = fitsDialog(url, screen);
  if (screen) lines.push(terminalLink(url, `Open the sign-in page${whole ? "" : " (its address is above)"}`));
  if (whole) lines.push(screen ? terminalLink(url, url) : url);
  lines.push(
    `The code of this sign-in goes to ${oneLine(codeGoesTo, HOST_CHARS)}.`,
    listens
      ? "If the browser ends on a page that it cannot show, paste the address of that page here, or a code that it shows."
      : "Then paste here the address of the page on which the browser ends, or the code that it shows.",
  );
  return lines.join("\n");
}

export const deviceText = (server: string, step: DeviceStep, screen: Screen | undefined): string =>
  deviceLines(server, step, (address) => {
    if (!fitsDialog(address, screen)) return undefined;
    return screen ? terminalLink(address, address) : address;
  }).join("\n");

export const problemText = (server: string, problem: string): string =>
  `${serverName(server)}: ${oneLine(problem, PROBLEM_CHARS)}`;

/** The last line of a sign-in, as a notice. */
export function endText(
  server: string,
  result: SignInResult,
): [text: string, level: "info" | "warning" | "error"] {
  const name = serverName(server);
  if (!result.ok)
    return [failureText(server, result.error), result.error.code === "cancelled" ? "info" : "error"];
  return result.tools === undefined
    ? [`${name}: signed in, but the server did not connect. /mcp says why.`, "warning"]
    : [`${name}: signed in, ${counted(result.tools, "tool")}.`, "info"];
}

/** Why a sign-in failed, in one line that begins with the server's name. */
export function failureText(server: string, failure: unknown): string {
  const known = failure as Partial<WireError> | undefined;
  if (isRuntimeEnd(failure)) {
    return `${serverName(server)}: the sign-in was cut off, because the connection worker ended. ${again(server)}`;
  }
  const line = errorLine({ message: known?.message ?? messageOf(failure), remedy: known?.remedy });
  const name = serverName(server);
  return line.startsWith(`${name}: `) || line.startsWith(`${name} `) ? line : `${name}: ${line}`;
}
