/**
 * Reads what the user pastes in place of the browser's answer: the address of the last page, its query, or the code
 * alone, with whatever a terminal, a mail or a chat put around it. Answers a sentence if the text cannot be the answer
 * to this sign-in, so that the user can paste again. Pure.
 */

import { isLoopback, percentDecoded } from "../../../../src/shared/text/reading.ts";
import { cleanText } from "../../../../src/shared/text/unprintable.ts";
import { isSameState } from "../model/model.ts";
import { portOf } from "./redirect.ts";

export type Pasted = { parameters: URLSearchParams } | { bareCode: string };

export interface PasteExpected {
  redirectUri: string;
  state: string;
  /** The answer must have `iss` (RFC 9207), which a code alone has not. */
  needsIssuer: boolean;
}

const LONGEST_CHARS = 8 * 1_024;
/** Codes are long random texts; a shorter text is a typing mistake. */
const SHORTEST_CODE = 8;
/** Printable ASCII without the space (RFC 6749, appendix A.11). */
const CODE = /^[!-~]+$/;
/** Line ends, indents and frames with which a terminal shows a long line. */
const BETWEEN = /[\s\u2500-\u257f]+/g;
const QUOTES = /^["'`<(\u201c\u2018\u00ab]+|["'`>)\u201d\u2019\u00bb]+$/g;
const SCHEME = /^[a-z][a-z\d+.-]*:\/\//i;
const NAMED = /(?:^|[?&#])(?:code|error|state)=/;
/** Browsers may show and copy an address without its scheme. */
const WITHOUT_SCHEME = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?\//i;

const ADDRESS = "the address that the browser shows at the end";

const SAY = {
  empty: `Nothing was pasted. Paste ${ADDRESS}.`,
  long: `That is too long to be the answer to a sign-in. Paste ${ADDRESS}.`,
  noCode: `There is no code in that. Paste ${ADDRESS}.`,
  twice: `That names a parameter twice. Paste ${ADDRESS}, and only once.`,
  otherSignIn: `That is the answer to another sign-in. Paste ${ADDRESS} for this one.`,
  needsIssuer: `This server needs more than the code. Paste the whole of ${ADDRESS}.`,
} as const;

/** One text for all loopback hosts: a person may have changed one for the other to make the page load. */
function shownAs(address: string): string | undefined {
  if (!URL.canParse(address)) return undefined;
  const url = new URL(address);
  const host = isLoopback(url.hostname) ? "loopback" : url.hostname;
  return `${url.protocol}//${host}:${portOf(url)}${url.pathname}`;
}

/** The query of a pasted address; undefined if the address is not the redirect URI. */
function queryOf(text: string, redirectUri: string): string | undefined {
  const address = SCHEME.test(text) ? text : `http://${text}`;
  return shownAs(address) === shownAs(redirectUri) ? new URL(address).search : undefined;
}

type Read = Pasted | { problem: string };

function fromParameters(parameters: URLSearchParams, { state, needsIssuer }: PasteExpected): Read {
  const isTwice = ["code", "state", "iss", "error"].some((name) => parameters.getAll(name).length > 1);
  if (isTwice) return { problem: SAY.twice };
  const code = parameters.get("code");
  const received = parameters.get("state");
  if (!code && !parameters.get("error")) return { problem: SAY.noCode };
  if (received !== null && !isSameState(received, state)) return { problem: SAY.otherSignIn };
  if (needsIssuer && !parameters.has("iss")) return { problem: SAY.needsIssuer };
  if (received !== null) return { parameters };
  return code && parameters.size === 1 ? { bareCode: code } : { problem: SAY.otherSignIn };
}

function fromCode(text: string, { needsIssuer }: PasteExpected): Read {
  const code = percentDecoded(text);
  if (code.length < SHORTEST_CODE || !CODE.test(code)) return { problem: SAY.noCode };
  return needsIssuer ? { problem: SAY.needsIssuer } : { bareCode: code };
}

export function readPaste(pasted: string, expected: PasteExpected): Read {
  if (pasted.length > LONGEST_CHARS) return { problem: SAY.long };
  const text = cleanText(pasted).replace(BETWEEN, "").replace(QUOTES, "");
  if (text === "") return { problem: SAY.empty };
  if (SCHEME.test(text) || WITHOUT_SCHEME.test(text)) {
    const query = queryOf(text, expected.redirectUri);
    if (query !== undefined) return fromParameters(new URLSearchParams(query), expected);
    return { problem: `That address does not begin with ${expected.redirectUri}. Paste ${ADDRESS}.` };
  }
  if (NAMED.test(text)) {
    const query = text.replace(/^(?:\/[^?]*)?[?&#]?/, "");
    return fromParameters(new URLSearchParams(query), expected);
  }
  // Some authorization servers show `code#state` on a page of their own.
  const [, code = "", state = ""] = /^([^#]+)#([^#]+)$/.exec(text) ?? [];
  if (code === "") return fromCode(text, expected);
  const parameters = new URLSearchParams({ code: percentDecoded(code), state: percentDecoded(state) });
  return fromParameters(parameters, expected);
}
