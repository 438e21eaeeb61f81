/**
 * The token of a server that is signed in to without a user (`client_credentials`). Owns: the token in memory and its
 * renewal, once at a time. Nothing is stored: the configuration's secret gives another token at any time.
 * Called by: tokens.ts.
 */
import { abortable } from "../../../shared/pace/abort.ts";
import { checkSecretTarget, discover } from "../discovery/discovery.ts";
import { chooseScope, clientCredentials, type GrantContext } from "../grants/grants.ts";
import type { AuthChallenge, Discovered, TokenAnswer } from "../model/model.ts";
import { isFresh } from "./fresh.ts";

export interface MachineContext {
  server: string;
  url: URL;
  grant: () => Promise<GrantContext>;
  onSecret: (secret: string) => void;
  nowMs: () => number;
}

export interface Machine {
  /** Undefined until the server has asked for a token. Throws `SignInProblem`. */
  token(signal: AbortSignal): Promise<string | undefined>;
  /** Another token than the refused one. Throws `SignInProblem`. */
  renewed(refused: string | undefined, signal: AbortSignal): Promise<string>;
}

type Held = TokenAnswer & { obtainedAt: number };

/** `challenge`: the last one of the server, which may name its metadata and its scope. */
export function createMachine(context: MachineContext, challenge: () => AuthChallenge | undefined): Machine {
  let held: Held | undefined;
  let discovered: Discovered | undefined;
  let flight: Promise<Held> | undefined;

  const ask = async (): Promise<Held> => {
    const grant = await context.grant();
    const { plan, requests, onNote } = grant;
    discovered ??= await discover({ url: context.url, challenge: challenge(), plan, requests, onNote });
    checkSecretTarget(discovered, { plan, url: context.url });
    const challenged = challenge()?.scope;
    const known = { plan, discovered, challenged, requested: undefined, granted: undefined };
    const answer = await clientCredentials({ discovered, scope: chooseScope(known) }, grant);
    context.onSecret(answer.access_token);
    held = { ...answer, obtainedAt: context.nowMs() };
    return held;
  };

  const renewed = async (refused: string | undefined, signal: AbortSignal): Promise<string> => {
    if (held && held.access_token !== refused && isFresh(held, context.nowMs())) return held.access_token;
    if (!flight) {
      flight = ask().finally(() => {
        flight = undefined;
      });
      // A caller that was aborted does not wait for it.
      flight.catch(() => {
        // The server may have moved.
        discovered = undefined;
      });
    }
    return (await abortable(flight, signal, `the sign-in of ${context.server}`)).access_token;
  };

  return {
    token: async (signal) => (held === undefined ? undefined : renewed(undefined, signal)),
    renewed,
  };
}
