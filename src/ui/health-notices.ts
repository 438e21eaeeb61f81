/**
 * The notices about servers: one when a server fails, needs a sign-in or waits for npm, and one when it works then; several at
 * about the same time are one. Loaded with the first status of a server. Must not: say twice what the person knows.
 */
import { failureText, serverName } from "../report/server-name.ts";
import type { ErrorCode } from "../shared/protocol/errors.ts";
import type { ServerStatus } from "../shared/protocol/session.ts";
import { joinNotices, type Notice, type ServerNotice } from "./join-notices.ts";

interface Surroundings {
  /** Whether the server was called in this session. */
  isCalled: boolean;
  /** Whether the user signs in now, which has its own line at the end. */
  isSigningIn: boolean;
  /** What the user knows already: that a sign-in is needed, since he has just signed out, or the code of a failure. */
  known?: "signed-out" | ErrorCode | undefined;
}

interface HealthNotices {
  /** The notice about this change of a server's status; undefined if it needs none. */
  onStatus(status: ServerStatus, surroundings: Surroundings): Notice | undefined;
}

const SIGN_IN = "sign-in";

/** A notice that comes again and again is shown for the 1st, 2nd, 4th, 8th time: then it costs a session no screen. */
const isShown = (times: number): boolean => (times & (times - 1)) === 0;

const counted = (text: string, times: number): string => (times === 1 ? text : `${text} (${times} times)`);

export function createHealthNotices(): HealthNotices {
  /** Name of a server -> what holds: the code of a failure, or that it needs a sign-in, and whether the user read it. */
  const reported = new Map<string, { what: string; isRead: boolean }>();
  /** Servers of which the user has read that they wait. */
  const waiting = new Set<string>();
  /** Name of a server and what held -> how often it began to hold. */
  const times = new Map<string, number>();
  const forget = (name: string): void => {
    reported.delete(name);
    for (const key of [...times.keys()]) if (key.startsWith(`${name}\n`)) times.delete(key);
  };

  const onConnected = ({ name, signIn }: ServerStatus, isSigningIn: boolean): Notice | undefined => {
    const before = reported.get(name);
    // The user has done something about it, and reads that in a line of its own.
    if (isSigningIn) forget(name);
    if (before === undefined || isSigningIn) return undefined;
    const isSignIn = before.what === SIGN_IN;
    // It connects without a sign-in and asks for one when it is called: nothing has changed.
    if (isSignIn && signIn?.state !== "signed-in") return undefined;
    reported.delete(name);
    if (!before.isRead) return undefined;
    return {
      level: "info",
      text: `MCP server ${serverName(name)} ${isSignIn ? "is signed in" : "works now"}.`,
    };
  };

  return {
    onStatus(status, { isCalled, isSigningIn, known }) {
      const { name, state, error, lifecycle, toolsKnown, signIn, waits } = status;
      const shown = `MCP server ${serverName(name)}`;
      // Its seconds go on in the line below the editor and in the panel.
      if (waits === undefined) waiting.delete(name);
      else if (!waiting.has(name)) {
        waiting.add(name);
        return { level: "info", text: `${shown}: ${waits}. A first start may take minutes; /mcp shows it.` };
      }
      if (state === "connected") return onConnected(status, isSigningIn);
      if (state !== "failed" && state !== "needs-auth") return undefined;
      const wantsSignIn = state === "needs-auth" && signIn !== undefined;
      // The tools of a lazy server can be found without it, so the user need not sign in before one is called.
      if (wantsSignIn && (isSigningIn || (lifecycle === "lazy" && toolsKnown && !isCalled))) return undefined;
      // A keep-alive server may fail again and again for the same reason: one notice.
      const what = wantsSignIn ? SIGN_IN : (error?.code ?? state);
      if (reported.get(name)?.what === what) return undefined;
      if (known !== undefined && known === (wantsSignIn ? "signed-out" : error?.code)) {
        reported.set(name, { what, isRead: true });
        return undefined;
      }
      const nth = (times.get(`${name}\n${what}`) ?? 0) + 1;
      times.set(`${name}\n${what}`, nth);
      const isRead = isShown(nth);
      reported.set(name, { what, isRead });
      if (!isRead) return undefined;
      if (wantsSignIn) {
        const text = `${shown} needs a sign-in: /mcp auth ${serverName(name)}`;
        return { level: "warning", text: counted(text, nth) };
      }
      const text = error ? failureText(name, error) : state;
      return { level: "error", text: counted(`${shown}: ${text}`, nth) };
    },
  };
}

/** A notice waits at most so long for those of other servers. */
export const GATHER_MS = 3_000;

interface Gathering {
  /** `notice`: about this change of the server's status, if it needs one. `isBusy`: other servers may fail in a moment. */
  add(server: string, notice: Notice | undefined, isBusy: boolean): void;
}

/** `gathers`: false shows each notice at once. */
export function createGathering(show: (notice: Notice) => void, gathers: boolean): Gathering {
  const pending = new Map<string, ServerNotice>();
  let timer: NodeJS.Timeout | undefined;
  const flush = (): void => {
    clearTimeout(timer);
    timer = undefined;
    const all = [...pending.values()];
    pending.clear();
    if (all.length === 1) for (const notice of all) show(notice);
    else joinNotices(all).forEach(show);
  };
  return {
    add: (server, notice, isBusy) => {
      if (notice?.level === "info") {
        if (!pending.delete(server)) show(notice);
      } else if (notice) pending.set(server, { ...notice, server });
      if (pending.size === 0) return;
      if (!gathers || !isBusy) flush();
      else timer ??= setTimeout(flush, GATHER_MS).unref();
    },
  };
}
