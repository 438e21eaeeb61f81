/**
 * Signing in to servers, as the user sees it. Owns: the questions, the dialog with the link, and the line at the end.
 * Must not: see a token, or open a browser; the worker does. `/mcp auth` comes through the session.
 * What a sign-in does is in run.ts, which is loaded with the first one. To change what the user reads: words.ts.
 */
import type { PiContext } from "../../pi/api.ts";
import type { SignInHost, SignIns } from "./host.ts";

export type { SignInHost, SignIns } from "./host.ts";

export function createSignIns(ctx: PiContext, host: SignInHost): SignIns {
  let flows: SignIns | undefined;
  const load = async (): Promise<SignIns> => {
    const { createSignInFlows } = await import("./run.ts");
    flows ??= createSignInFlows(ctx, host);
    return flows;
  };
  return {
    byUser: async (server) => (await load()).byUser(server),
    forCall: async (...call) => ctx.hasUI && (await load()).forCall(...call),
    isRunning: (server) => flows?.isRunning(server) === true,
    // Without a sign-in of this session nobody waits for an end.
    ended: (event) => flows?.ended(event),
    interrupt: () => flows?.interrupt(),
  };
}
