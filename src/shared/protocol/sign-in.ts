/** What the two threads say to each other about a sign-in. Main never sees a token. Types only. */
import type { WireError } from "./errors.ts";

/** What the user has agreed to in this sign-in. Absent: the user was not asked yet. */
export interface SignInAgreed {
  /** The issuer that the user accepts although it differs from the address under which it was found. */
  issuer?: string;
  /** The endpoints that the user accepted although they are of different sites, as the question named them. */
  endpoints?: string;
  /** Whether Pi's own sign-in may be moved into this extension's store. */
  fromPi?: boolean;
}

/** A question to the user before the sign-in goes on. `text`: all that the user must know, in one line. */
export type SignInQuestion =
  | { about: "issuer"; issuer: string; text: string }
  | { about: "endpoints"; endpoints: string; text: string }
  | { about: "pi"; text: string };

/** How a sign-in goes on. */
export type SignInStep =
  /** Nobody had to do anything: the old sign-in was renewed, or Pi's was taken over. A `sign-in` event follows. */
  | { step: "renewed"; id: string }
  /** The same request with the answer in `agreed` goes on. */
  | { step: "ask"; question: SignInQuestion }
  /** The user opens `url`. The end is told by a `sign-in` event with this `id`. */
  | {
      step: "open";
      id: string;
      url: string;
      redirectUri: string;
      /** Host of the token endpoint, to which the code of this sign-in is sent. */
      codeGoesTo: string;
      /** `started`: a browser was told to open the address. `none`: there is none here, for example over SSH. */
      browser: "started" | "none";
      /** False: nothing listens at the redirect URI, so the user must paste the address. */
      listens: boolean;
      /** The sign-in ends by itself after this time. */
      endsInMs: number;
    };

/** The end of a sign-in. `tools`: absent if the server did not connect afterwards, which its status explains. */
export type SignInResult = { ok: true; tools?: number } | { ok: false; error: WireError };

/** A server's sign-in as `/mcp` shows it. */
export type SignInStatus =
  | { state: "needed" }
  | { state: "running" }
  /** `expiresAt`: milliseconds since the epoch; absent: unknown. */
  | { state: "signed-in"; expiresAt?: number; renews: boolean };
