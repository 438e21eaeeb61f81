/** One notice when a server fails or needs a sign-in, and one when it works again. */
import { failureText } from "../report/failure-text.ts";
import { serverName } from "../report/server-name.ts";
import type { ServerStatus } from "../shared/protocol/status.ts";

export interface Notice {
  level: "info" | "warning" | "error";
  text: string;
}

export interface Surroundings {
  /** Whether the server was called in this session. */
  isCalled: boolean;
  /** Whether the user signs in now, which has its own line at the end. */
  isSigningIn: boolean;
  /** Whether the user has just signed out, and so knows that a sign-in is needed. */
  isSignedOut: boolean;
}

export interface HealthNotices {
  /** The notice about this change of a server's status; undefined if it needs none. */
  onStatus(status: ServerStatus, surroundings: Surroundings): Notice | undefined;
}

const SIGN_IN = "sign-in";

export function createHealthNotices(): HealthNotices {
  /** Name of a server -> what the user has read: the code of a failure, or that it needs a sign-in. */
  const reported = new Map<string, string>();
  return {
    onStatus(status, { isCalled, isSigningIn, isSignedOut }) {
      const { name, state, error, lifecycle, toolsKnown, signIn } = status;
      const shown = `MCP server ${serverName(name)}`;
      if (state === "connected") {
        const before = reported.get(name);
        reported.delete(name);
        if (before === undefined || isSigningIn) return undefined;
        const now = before === SIGN_IN ? "is signed in" : "works again";
        return { level: "info", text: `${shown} ${now}.` };
      }
      if (state !== "failed" && state !== "needs-auth") return undefined;
      const wantsSignIn = state === "needs-auth" && signIn !== undefined;
      // The tools of a lazy server can be found without it, so the user need not sign in before one is called.
      if (wantsSignIn && (isSigningIn || (lifecycle === "lazy" && toolsKnown && !isCalled))) return undefined;
      // A keep-alive server may fail again and again for the same reason: one notice.
      const what = wantsSignIn ? SIGN_IN : (error?.code ?? state);
      if (reported.get(name) === what) return undefined;
      reported.set(name, what);
      if (wantsSignIn && isSignedOut) return undefined;
      if (wantsSignIn) {
        return { level: "warning", text: `${shown} needs a sign-in: /mcp auth ${serverName(name)}` };
      }
      const text = error ? failureText(name, error) : state;
      return { level: "error", text: `${shown}: ${text}` };
    },
  };
}
