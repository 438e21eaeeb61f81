/**
 * The sign-ins of a session: which one runs, who waits for it, and which server is meant. One runs at a time, because
 * each has a dialog; the same server twice is one sign-in.
 */
import type { PiContext } from "../../pi/api.ts";
import { notify } from "../../pi/extension.ts";
import { nameLine } from "../../report/search.ts";
import { serverName } from "../../report/server-name.ts";
import { absentText, canSignIn, lacksKey, unknownText } from "../../report/status.ts";
import { messageOf, ThreadsError, wantsKey } from "../../shared/protocol/errors.ts";
import type { ServerStatus } from "../../shared/protocol/session.ts";
import { orAborted } from "../dialog.ts";
import { refuse } from "../refuse.ts";
import { whileTyped } from "../typing.ts";
import { type Outcome, runFlow } from "./flow.ts";
import type { KeyWish, SignInHost, SignIns } from "./host.ts";
import { failureText } from "./words.ts";

const needsAuth = (failure: unknown): boolean =>
  failure instanceof ThreadsError && failure.code === "needs_auth";

/** Whether the server wants more rights than the sign-in has, so that even a connected server needs another one. */
const wantsRights = (failure: unknown): boolean =>
  failure instanceof ThreadsError && failure.data?.reason === "scope-wanted";

const nameOf = ({ name }: ServerStatus): string => name;
const namesOf = (servers: readonly ServerStatus[]): string[] =>
  servers.filter((one) => canSignIn(one) || lacksKey(one)).map(nameOf);

function withoutPerson(server: string, servers: readonly ServerStatus[]): string {
  const status = servers.find(({ name }) => name === server);
  if (status?.error && lacksKey(status)) return failureText(server, status.error);
  return `A sign-in needs a person: run pi and /mcp auth ${server}.`;
}

const isAboutKey = (failure: unknown): boolean =>
  failure instanceof ThreadsError && (wantsKey(failure) || failure.data?.reason === "no-sign-in");

const wishOf = (
  server: string,
  why: string | undefined,
  servers: readonly ServerStatus[],
): KeyWish | undefined => {
  const works = servers.some(({ name, state }) => name === server && state === "connected");
  return why === undefined ? undefined : { server, why, works };
};

export function createSignInFlows(ctx: PiContext, host: SignInHost): SignIns {
  const running = new Map<string, Promise<Outcome>>();
  /** Servers whose last sign-in brought nothing. A call does not begin another one; the user can. */
  const refused = new Set<string>();
  /** Servers with nothing to sign in to, and what they say. */
  const whys = new Map<string, string>();
  let onEnd: SignIns["ended"] | undefined;
  const listen = (take: SignIns["ended"]): void => {
    onEnd = take;
  };
  let cut = new AbortController();

  const run = async (server: string): Promise<Outcome> => {
    if (host.over()) return "failed";
    try {
      return await runFlow(server, { ctx, host, listen, cut: cut.signal });
    } catch (error) {
      if (isAboutKey(error)) whys.set(server, failureText(server, error));
      else host.failed(failureText(server, error));
      return "failed";
    }
  };
  const begin = (server: string): Promise<Outcome> => {
    const open = running.get(server);
    if (open) return open;
    const flow = host
      .inTurn(() => run(server))
      .then((outcome) => {
        if (outcome === "signed-in") refused.delete(server);
        else refused.add(server);
        running.delete(server);
        return outcome;
      });
    running.set(server, flow);
    return flow;
  };

  /** The server that needs a sign-in, or the user's choice of several. Undefined: none, and the user knows why. */
  const choose = async (names: readonly string[]): Promise<string | undefined> => {
    if (names.length === 0) {
      notify(ctx, "No MCP server needs a sign-in or a key. /mcp auth <server> signs in again.", "info");
      return undefined;
    }
    if (names.length === 1) return names[0];
    const shown = names.map(serverName);
    if (!ctx.hasUI) {
      const list = nameLine("MCP servers that need a sign-in", shown).join("");
      refuse(ctx, "failed", `${list}. Run pi and /mcp auth <server>.`);
      return undefined;
    }
    const { signal } = cut;
    const ask = () => orAborted(ctx.ui.select("Sign in to which MCP server?", shown, { signal }), signal);
    const choice = await host.inTurn(() => whileTyped(ctx, ask(), signal));
    // Over RPC the other program may answer with a choice that it was not given.
    return choice === undefined ? undefined : names[shown.indexOf(choice)];
  };

  return {
    byUser: async (server) => {
      const report = await host.ask("status", {});
      const { servers } = report;
      if (server !== undefined && !servers.some(({ name }) => name === server)) {
        const why = absentText(server, report);
        refuse(ctx, why ? "failed" : "unusable", why ?? unknownText(server, servers.map(nameOf)));
        return undefined;
      }
      const name = server ?? (await choose(namesOf(servers)));
      if (name === undefined || host.over()) return undefined;
      if (!ctx.hasUI) {
        refuse(ctx, "failed", withoutPerson(name, servers));
        return undefined;
      }
      whys.delete(name);
      await begin(name);
      return host.over() ? undefined : wishOf(name, whys.get(name), servers);
    },
    forCall: async (server, failure, signal) => {
      if (!needsAuth(failure) || refused.has(server)) return false;
      if (!running.has(server)) {
        const report = await host.ask("status", {}).catch((error: unknown) => {
          host.log(`no sign-in for a call to ${server}: ${messageOf(error)}`);
        });
        const status = report?.servers.find(({ name }) => name === server);
        if (!status?.signIn) return false;
        // Another call's sign-in has ended since this call failed.
        if (status.state === "connected" && !wantsRights(failure)) return true;
      }
      return (await orAborted(begin(server), signal)) === "signed-in";
    },
    isRunning: (server) => running.has(server),
    ended: (event) => onEnd?.(event),
    interrupt: () => {
      cut.abort();
      cut = new AbortController();
    },
  };
}
