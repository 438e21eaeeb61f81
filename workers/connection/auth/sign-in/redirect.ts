/**
 * How the answer of the browser arrives. Owns: at which address and on which ports this process tries to listen, which is on
 * loopback (RFC 8252, section 7.3) unless the configuration names another; the registration of a client with that address;
 * and what the user may paste in place of the answer.
 */
import { createHash } from "node:crypto";
import { isLoopback, percentDecoded } from "../../../../src/shared/text/reading.ts";
import { cleanText } from "../../../../src/shared/text/unprintable.ts";
import { codeOf } from "../../../shared/files/read-regular.ts";
import type { OAuthPlan } from "../../config/entry/oauth-keys.ts";
import type { AuthorizationAnswer } from "../grants/authorize.ts";
import { type ClientRecord, isSameState, kindOf, SignInProblem } from "../model/model.ts";
import type { Listeners, Listening } from "./callback.ts";

/** One address to try. In `uri`, `{port}` stands for the port. `port` absent: any free one. */
interface RedirectTry {
  uri: string;
  port?: number;
}

type RedirectChoice =
  /** Nothing can listen there: the user pastes the address. */
  | { listens: false; uri: string }
  /** In this order. A busy port leads to the next address, and the last one's to a failure. */
  | { listens: true; tries: [RedirectTry, ...RedirectTry[]]; isConfigured: boolean };

const PORT = "{port}";
const IPV4 = "127.0.0.1";
const PATH = "/callback";
const SERVER_CHARS = 16;

export const withPort = (uri: string, port: number): string => uri.replaceAll(PORT, String(port));

/** The port at which a browser opens the address. */
const portOf = (url: URL): number => Number(url.port || (url.protocol === "https:" ? 443 : 80));

/** The same address with `localhost`, for servers that know no other loopback host. Undefined: the host is another. */
export function withLocalhost(uri: string): string | undefined {
  const prefix = `http://${IPV4}:`;
  return uri.startsWith(prefix) ? `http://localhost:${uri.slice(prefix.length)}` : undefined;
}

function configured(redirectUri: string, callbackPort: number | undefined): RedirectChoice {
  const shown = withPort(redirectUri, callbackPort ?? 1);
  // The entry is checked with one port, and another one may make no URL of it.
  if (!URL.canParse(shown)) {
    throw new SignInProblem("bad-settings", { key: "oauth.redirectUri", what: "it is not a URL" });
  }
  const url = new URL(shown);
  const needsPort = redirectUri.includes(PORT) && callbackPort === undefined;
  if (url.protocol === "http:" && isLoopback(url.hostname)) {
    const port = needsPort ? {} : { port: callbackPort ?? portOf(url) };
    return { listens: true, tries: [{ uri: redirectUri, ...port }], isConfigured: true };
  }
  if (!needsPort) return { listens: false, uri: withPort(redirectUri, callbackPort ?? 1) };
  const what = "{port} needs oauth.callbackPort, because nothing can listen at this address";
  throw new SignInProblem("bad-settings", { key: "oauth.redirectUri", what });
}

/**
 * An authorization server that does not name itself in its answer (RFC 9207) gets a path for this server and this issuer
 * alone, so that the answer of another one cannot be taken for its own (RFC 9700, section 4.4.2.2). A client that someone
 * registered, or that a document describes, has a fixed path.
 */
function pathFor({ plan, server, issuer, sendsIssuer, hasDocument }: Omit<RedirectWish, "stored">): string {
  if (sendsIssuer || hasDocument || plan.clientId !== undefined) return PATH;
  return `${PATH}/${createHash("sha256")
    .update(JSON.stringify([server, issuer]))
    .digest("hex")
    .slice(0, SERVER_CHARS)}`;
}

/** The loopback address that a dynamic registration named, if its path is still the right one. */
function registered(stored: ClientRecord | undefined, path: string): RedirectTry[] {
  if (stored?.kind !== "dynamic") return [];
  return (stored.redirectUris ?? []).flatMap((uri) => {
    const url = URL.canParse(uri) ? new URL(uri) : undefined;
    const fits = url?.protocol === "http:" && isLoopback(url.hostname) && url.pathname === path;
    return fits && url.search === "" ? [{ uri, port: portOf(url) }] : [];
  });
}

export interface RedirectWish {
  plan: OAuthPlan;
  server: string;
  issuer: string;
  /** The stored client, if it will be used again. */
  stored: ClientRecord | undefined;
  /** The authorization server puts `iss` into its answer. */
  sendsIssuer: boolean;
  /** A client metadata document describes the client, so that none is registered. */
  hasDocument: boolean;
}

export function chooseRedirect({ stored, ...wish }: RedirectWish): RedirectChoice {
  const { redirectUri, callbackPort } = wish.plan;
  if (redirectUri !== undefined) return configured(redirectUri, callbackPort);
  const path = pathFor(wish);
  const uri = `http://${IPV4}:${PORT}${path}`;
  if (callbackPort !== undefined) {
    return { listens: true, tries: [{ uri, port: callbackPort }], isConfigured: false };
  }
  const [first] = registered(stored, path);
  return { listens: true, tries: first ? [first, { uri }] : [{ uri }], isConfigured: false };
}

interface PasteExpected {
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

type Read = AuthorizationAnswer | { problem: string };

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

/** `listening` absent: the user pastes the address. */
interface Place {
  redirectUri: string;
  listening?: Listening;
}

interface ListenParts {
  listeners: Pick<Listeners, "open">;
  signal: AbortSignal;
  onNote: (note: string) => void;
}

/** A port for an address at which nothing listens: browsers open those of the dynamic range (RFC 6335, section 6). */
const UNUSED_PORT = 49_152;

/**
 * The redirect URI with which a client is registered that signs in by another device, since many servers want one
 * (RFC 7591, section 2). No browser comes to the default one, whose path keeps such a client apart from those of a browser.
 */
export const unusedRedirect = ({ redirectUri, callbackPort }: OAuthPlan): string =>
  withPort(redirectUri ?? `http://${IPV4}:${UNUSED_PORT}/device`, callbackPort ?? UNUSED_PORT);

/** The host, with brackets around an IPv6 address. The `URL` of an address with `{port}` would be invalid. */
const hostOf = (uri: string): string => new URL(withPort(uri, UNUSED_PORT)).hostname;

type Tries = readonly [RedirectTry, ...RedirectTry[]];

async function openFirst([{ uri, port = 0 }, ...others]: Tries, parts: ListenParts): Promise<Place> {
  const { listeners, signal, onNote } = parts;
  try {
    const listening = await listeners.open(hostOf(uri), port, signal);
    return { redirectUri: withPort(uri, listening.port), listening };
  } catch (error) {
    if (signal.aborted) throw error;
    const isBusy = codeOf(error) === "EADDRINUSE";
    const [next, ...rest] = others;
    if (isBusy && next) return openFirst([next, ...rest], parts);
    if (isBusy && port !== 0) throw new SignInProblem("port-in-use", { port }, error);
    // For example a port below 1024, or a sandbox: the user can still paste the address.
    onNote(`no port could be opened for the browser's answer: ${codeOf(error) ?? ""}`);
    return { redirectUri: withPort(uri, port || UNUSED_PORT) };
  }
}

interface Registered extends Place {
  client: ClientRecord;
}

/**
 * The refused address with `localhost`, then the last one that was to be tried, which may have any free port. Undefined:
 * the configuration names the address, or its host is not 127.0.0.1.
 */
function localhostTries(refused: string, choice: RedirectChoice): Tries | undefined {
  const other = choice.listens && !choice.isConfigured ? withLocalhost(refused) : undefined;
  if (other === undefined || !choice.listens) return undefined;
  const last = choice.tries.slice(-1).map((one) => ({ ...one, uri: withLocalhost(one.uri) ?? other }));
  return [{ uri: other, port: portOf(new URL(other)) }, ...last];
}

/** Throws `SignInProblem`. `clientFor`: the client that the authorization server knows with this redirect URI. */
export async function listenAndRegister(
  wish: RedirectWish,
  parts: ListenParts,
  clientFor: (redirectUri: string) => Promise<ClientRecord>,
): Promise<Registered> {
  const choice = chooseRedirect(wish);
  const place = choice.listens ? await openFirst(choice.tries, parts) : { redirectUri: choice.uri };
  try {
    return { ...place, client: await clientFor(place.redirectUri) };
  } catch (error) {
    const tries = localhostTries(place.redirectUri, choice);
    if (!tries || kindOf(error) !== "redirect-refused") throw error;
    parts.onNote("the authorization server refuses 127.0.0.1 as redirect URI: localhost is tried");
    const second = await openFirst(tries, parts);
    return { ...second, client: await clientFor(second.redirectUri) };
  }
}
