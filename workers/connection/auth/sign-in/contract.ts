/** What a sign-in takes from its neighbours and gives to them. Types and limits only. */
import type { SignInAgreed, SignInResult, SignInStep } from "../../../../src/shared/protocol/sign-in.ts";
import type { discover, promisesIssuer } from "../discovery/discovery.ts";
import type {
  beginAuthorization,
  chooseScope,
  clientFor,
  finishAuthorization,
  GrantContext,
} from "../grants/grants.ts";
import type { AuthChallenge } from "../model/model.ts";
import type { SignInStore } from "../store/store.ts";
import type { openBrowser } from "./browser.ts";

/** The server that the user signs in to. */
export interface SignInTarget extends GrantContext {
  server: string;
  url: URL;
  store: SignInStore;
  challenge: AuthChallenge | undefined;
  /** Whether `plan` is the user's own: no file of a project wrote it. */
  isOwnPlan: boolean;
  /** Renews the stored sign-in if that is possible. True: the server can be connected now. Never rejects. */
  renew(signal: AbortSignal): Promise<boolean>;
  /** Takes a token, code, verifier or secret that no text may show from now on. */
  onSecret: (secret: string) => void;
  redact: (text: string) => string;
  /** Called once a new sign-in is in the store: connects the server. Answers its number of tools, if it connected. */
  signedIn(): Promise<number | undefined>;
}

export interface SignIns {
  /**
   * The same server twice is one sign-in. `signal` ends a sign-in that has not answered its first step: without a dialog
   * no browser opens. Rejects with `ThreadsError`.
   */
  begin(target: SignInTarget, agreed: SignInAgreed, signal?: AbortSignal): Promise<SignInStep>;
  /** Answers what is wrong with the text; undefined: the sign-in goes on. */
  paste(id: string, text: string): Promise<string | undefined>;
  cancel(id: string): void;
  /** Ends the sign-ins of a server that was edited or removed, or all. */
  abandon(server?: string): void;
  isRunning(server: string): boolean;
  /** Ends all sign-ins. Settles when nothing listens and nothing is being stored any more. */
  close(): Promise<void>;
}

export interface SignInsOptions {
  onEnd: (end: { id: string; server: string; result: SignInResult }) => void;
  log: { info(message: string): void; warn(message: string): void };
  env: Readonly<Record<string, string | undefined>>;
  platform: NodeJS.Platform;
}

export interface SignInLimits {
  /** Sign-ins at a time. */
  flows: number;
  /** From the opened browser to its answer. */
  flowMs: number;
  /** Everything before the browser opens, and again the exchange of the code. */
  talkMs: number;
  /** The part before the browser in which the stored sign-in may renew itself. */
  renewMs: number;
  /** The browser waits this long for its last page, which says how the sign-in ended. */
  pageMs: number;
  /** One connection to the listener, from its start to its end. */
  connectionMs: number;
}

const FLOWS = 8;
const FLOW_MS = 5 * 60_000;
const TALK_MS = 20_000;
const RENEW_MS = 8_000;
const PAGE_MS = 8_000;
const CONNECTION_MS = 10_000;

export const SIGN_IN_LIMITS: SignInLimits = {
  flows: FLOWS,
  flowMs: FLOW_MS,
  talkMs: TALK_MS,
  renewMs: RENEW_MS,
  pageMs: PAGE_MS,
  connectionMs: CONNECTION_MS,
};

/** The work of the neighbours. Tests pass small ones. */
export interface SignInParts {
  discover: typeof discover;
  promisesIssuer: typeof promisesIssuer;
  clientFor: typeof clientFor;
  chooseScope: typeof chooseScope;
  beginAuthorization: typeof beginAuthorization;
  finishAuthorization: typeof finishAuthorization;
  openBrowser: typeof openBrowser;
  limits: SignInLimits;
}
