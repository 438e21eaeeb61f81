/**
 * The sign-ins of a session: what the user asks about them, and what main is told. Owns: which server a name means, and
 * the connect after a sign-in.
 */

import { homedir } from "node:os";
import { join } from "node:path";
import type { WorkerEvent } from "../../../src/shared/protocol/contract.ts";
import { fromWireError, ThreadsError, wantsKey } from "../../../src/shared/protocol/errors.ts";
import { advice } from "../../shared/commands.ts";
import type { Log } from "../../shared/log.ts";
import { abortable, settledWithin } from "../../shared/pace/abort.ts";
import type { AskUser } from "../asks/asks.ts";
import { type AuthServer, createSessionAuth, type SessionAuth, standsOnCompany } from "../auth/auth.ts";
import type { StoreOptions } from "../auth/store/file.ts";
import type { RunningConfiguration } from "../config/config.ts";
import { identityDefinition } from "../config/entry/definition.ts";
import type { Settings } from "../config/entry/settings.ts";
import type { ResolveOptions } from "../config/values/values.ts";
import { createKnownSecrets } from "../servers/log.ts";
import type { Supervisor } from "../servers/supervisor.ts";
import { explainAbsent } from "./explain-server.ts";
import type { SessionRequests } from "./first-request.ts";

export interface SessionSignInsOptions {
  agentDir: string;
  cwd: string;
  log: Log;
  emit: (event: WorkerEvent) => void;
  askUser: AskUser;
  supervisor: () => Supervisor;
  settings: () => Pick<Settings, "caFile" | "clientMetadataUrl" | "identityProvider" | "tokenStore">;
  /** Fires when the session ends. */
  signal: AbortSignal;
}

export type SignInRequests = Pick<
  SessionRequests,
  "signIn" | "pasteSignIn" | "cancelSignIn" | "signOut" | "signIns" | "moveSignIn"
>;

export function openSessionAuth(options: SessionSignInsOptions): SessionAuth {
  const { agentDir, log, emit, askUser, supervisor, settings, signal } = options;
  let renewing = 0;
  return createSessionAuth({
    agentDir,
    askUser,
    log,
    env: process.env,
    platform: process.platform,
    resolvePlan: async (server, during) => {
      const { resolveOAuth } = await loadValues();
      const either = AbortSignal.any([signal, during]);
      const { clientMetadataUrl } = settings();
      return resolveOAuth(server.definition, {
        ...resolveOptions(options, server, either),
        clientMetadataUrl,
      });
    },
    // Node's HTTP takes 15 ms to load.
    company: createCompany(options),
    createClient: async ({ ca }) =>
      (await import("../web/client.ts")).createHttpClient(process.env, undefined, ca),
    tokenStore: () => settings().tokenStore,
    system: (server) => systemOptions(options, server),
    warn: (text) => {
      log.warn(text);
      emit({ type: "notice", text, level: "warning" });
    },
    onRenewing: (by) => {
      renewing += by;
      emit({ type: "renewing", open: renewing });
    },
    onStatus: (name) => {
      const server = supervisor().servers.find((one) => one.name === name);
      if (server) emit({ type: "server", status: server.status() });
    },
    onEnd: (end) => emit({ type: "sign-in", ...end }),
  });
}

/** How the program of the system's credential store runs: main ends it if this thread cannot. */
export const systemOptions = (
  { emit }: Pick<SessionSignInsOptions, "emit">,
  server: string,
): StoreOptions["system"] => ({
  env: process.env,
  platform: process.platform,
  onSpawn: (pid) => emit({ type: "spawned", pid, server }),
  onExit: (pid) => emit({ type: "exited", pid, server }),
});

const loadStored = () => import("../auth/store/all.ts");
function createCompany(options: SessionSignInsOptions): () => Promise<AuthServer | undefined> {
  const { log, settings, agentDir, signal } = options;
  const { redact, add: onSecret } = createKnownSecrets();
  const onNote = (note: string): void => log.info(`the identity provider ${redact(note)}`);
  return async () => {
    const { identityProvider: written, caFile } = settings();
    if (!written) return undefined;
    const { resolveTarget } = await loadValues();
    const definition = identityDefinition(written, join(agentDir, "mcp.json"));
    const how = resolveOptions(options, { definition, onNote }, signal);
    const target = await resolveTarget(definition, { ...how, caFile });
    if (target.kind !== "http") throw new TypeError("an issuer is an address");
    const { headers, ca } = target;
    // As it is stored.
    const url = new URL(target.url).href;
    return { definition, url, headers, ca, redact, onSecret, onNote, isIdentity: true };
  };
}

/** A session that begins needs no values. */
const loadValues = () => import("../config/values/values.ts");

const resolveOptions = (
  { cwd, emit }: Pick<SessionSignInsOptions, "cwd" | "emit">,
  { definition, onNote }: Pick<AuthServer, "definition" | "onNote">,
  signal: AbortSignal,
): ResolveOptions => ({
  env: process.env,
  home: homedir(),
  cwd,
  signal,
  onNote,
  onSpawn: (pid) => emit({ type: "spawned", pid, server: definition.name }),
  onExit: (pid) => emit({ type: "exited", pid, server: definition.name }),
});

/** A server that does not answer at all is signed in to as its metadata say. */
const CHALLENGE_MS = 10_000;

const cancelledByEdit = (server: string): ThreadsError =>
  new ThreadsError(
    "cancelled",
    `The sign-in to ${server} is cancelled, since the server was edited or switched off.`,
  );

/** All reject with `ThreadsError`. */
export function createSignInRequests(
  auth: SessionAuth,
  started: Promise<RunningConfiguration>,
  options: SessionSignInsOptions,
): SignInRequests {
  const { supervisor } = options;

  /** The server as its requests see it. Throws what explains that there is none. */
  const find = async (name: string, signal: AbortSignal) => {
    const { state, now } = await started;
    const isThere = supervisor().servers.some((one) => one.name === name);
    const absent = isThere ? undefined : explainAbsent(name, state);
    if (absent) throw absent;
    const server = supervisor().get(name);
    const { definition, log } = server;
    const how = resolveOptions(options, { definition, onNote: log.note }, signal);
    const { resolveTarget } = await loadValues();
    const target = await resolveTarget(definition, { ...how, caFile: now.settings.caFile });
    if (target.kind === "http") return { server, found: server.authServer(target) };
    throw new ThreadsError("bad_config", `${name} is a local program and needs no sign-in.`, {
      remedy: advice("lists"),
      data: { server: name },
    });
  };

  /** The answer of a server that was never asked says where and for which scope it wants the sign-in. */
  const challenge = async (name: string, signal: AbortSignal): Promise<void> => {
    const server = supervisor().get(name);
    if (auth.isChallenged(name)) return;
    const attempt = settledWithin(server.connect("user"), CHALLENGE_MS);
    await abortable(attempt, signal, `the sign-in to ${name}`);
    // A server that wants a key has nothing to sign in to: it has said so in its own words.
    const { error } = server.status();
    if (error && wantsKey(error)) throw fromWireError(error);
  };

  /** Answers the number of its tools if it has connected. A failure is in the server's status. */
  const connect = async (name: string): Promise<number | undefined> => {
    // The server may be connected, and have wanted more rights for one call: others need not end for that.
    await supervisor().reconnect(name, true);
    const server = supervisor().servers.find((one) => one.name === name);
    return server?.phase === "connected" ? server.toolCount : undefined;
  };

  /** The other servers in this phase that stand on the same sign-in at the company, which has begun or ended for all. */
  const others = (server: string, phase: "connected" | "needs-auth"): string[] => {
    const { servers } = supervisor();
    const ofCompany = servers.filter(({ definition }) => standsOnCompany(definition.oauth));
    if (!ofCompany.some(({ name }) => name === server)) return [];
    return ofCompany.filter((one) => one.name !== server && one.phase === phase).map(({ name }) => name);
  };

  return {
    signIn: async ({ server, agreed = {} }, signal) => {
      const { server: before, found } = await find(server, signal);
      await challenge(server, signal);
      if (supervisor().get(server) !== before) throw cancelledByEdit(server);
      const ends = AbortSignal.any([signal, options.signal]);
      const signedIn = async (): Promise<number | undefined> => {
        const tools = await connect(server);
        for (const other of others(server, "needs-auth")) void supervisor().reconnect(other);
        return tools;
      };
      return auth.signIn(found, { agreed, signedIn, signal: ends });
    },
    pasteSignIn: async ({ id, text }) => {
      const problem = await auth.paste(id, text);
      return problem === undefined ? {} : { problem };
    },
    cancelSignIn: async ({ id }) => {
      auth.cancel(id);
      return undefined;
    },
    signOut: async ({ server }, signal) => {
      const { found } = await find(server, signal);
      const text = await auth.signOut(found, signal);
      const ended = [server, ...others(server, "connected")];
      await Promise.all(ended.map((one) => supervisor().reconnect(one)));
      return { text };
    },
    signIns: async () => {
      const { tokenStore } = (await started).now.settings;
      return { signIns: await (await loadStored()).listSignIns(options.agentDir), tokenStore };
    },
    moveSignIn: async (move, signal) => {
      const { tokenStore } = (await started).now.settings;
      const { agentDir, log } = options;
      const [onNote, warn] = [(note: string) => log.info(note), (text: string) => log.warn(text)];
      const system = systemOptions(options, move.id);
      const ends = AbortSignal.any([signal, options.signal]);
      const store = { agentDir, system, onNote, warn, tokenStore: () => tokenStore };
      return (await loadStored()).moveSignIn(move, store, ends);
    },
  };
}
