/**
 * Opens the listener at the redirect URI that redirect.ts decides on, and registers a client with that address. A busy
 * port and a server that refuses the address lead to the next one, where there is a next one.
 */
import { type ClientRecord, SignInProblem } from "../model/model.ts";
import { codeOf, type Listeners, type Listening } from "./listeners.ts";
import {
  chooseRedirect,
  portOf,
  type RedirectChoice,
  type RedirectTry,
  type RedirectWish,
  withLocalhost,
  withPort,
} from "./redirect.ts";

/** `listening` absent: the user pastes the address. */
export interface Place {
  redirectUri: string;
  listening?: Listening;
}

export interface ListenParts {
  listeners: Pick<Listeners, "open">;
  /** Ends the listening. */
  signal: AbortSignal;
  onNote: (note: string) => void;
}

/** A port for an address at which nothing listens: browsers open those of the dynamic range (RFC 6335, section 6). */
const UNUSED_PORT = 49_152;

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
    onNote(`no port could be opened for the browser's answer: ${codeOf(error)}`);
    return { redirectUri: withPort(uri, port || UNUSED_PORT) };
  }
}

export interface Registered extends Place {
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

const isRefusedRedirect = (error: unknown): boolean =>
  error instanceof SignInProblem && error.kind === "redirect-refused";

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
    if (!tries || !isRefusedRedirect(error)) throw error;
    parts.onNote("the authorization server refuses 127.0.0.1 as redirect URI: localhost is tried");
    const second = await openFirst(tries, parts);
    return { ...second, client: await clientFor(second.redirectUri) };
  }
}
