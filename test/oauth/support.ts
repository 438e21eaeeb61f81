/**
 * Owns: the stories of the OAuth tests: an authorization server, an MCP server that trusts it, and the packed connection
 * worker between them. Looks for secrets in everything that was written or said.
 */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "vitest";
import {
  type AuthorizationServer,
  type Behaviour,
  startAuthorizationServer,
} from "../support/authorization-server.ts";
import { filesBelow } from "../support/files-below.ts";
import { findSecrets, readBelow } from "../support/find-secrets.ts";
import { startOidc } from "../support/oidc.ts";
import {
  type Binding,
  type ProtectedServer,
  type Protection,
  startProtectedServer,
} from "../support/protected-server.ts";
import { type SignedIn, signInAs, type User } from "../support/signing-in.ts";
import {
  createPlace,
  forRows,
  onCleanup,
  type Place,
  type Started,
  type StartOptions,
  start,
} from "../worker/support.ts";

export { onCleanup } from "../worker/support.ts";

/** The name of the only server. */
export const SERVER = "web";

export async function authorization(behaviour: Behaviour = {}): Promise<AuthorizationServer> {
  const server = await startAuthorizationServer(behaviour);
  onCleanup(() => server.close());
  return server;
}

/** An MCP server that takes the tokens of `trusted`. */
export async function guarded(
  trusted: { issuer: string; book: Pick<Protection, "check"> },
  protection: Partial<Protection> = {},
): Promise<ProtectedServer> {
  const server = await startProtectedServer({
    issuers: [trusted.issuer],
    check: (token, resource) => trusted.book.check(token, resource),
    ...protection,
  });
  onCleanup(() => server.close());
  return server;
}

export interface Servers {
  trusted: AuthorizationServer;
  guarded: ProtectedServer;
}

/** A story that may share its worker with others. */
export interface StoryBeside extends Servers {
  /** The server's name. */
  name: string;
  at: Started;
  place: Place;
  signIn(user?: User): Promise<SignedIn>;
}

export interface Story extends StoryBeside {
  /** Ends the session and starts another one in the same place. */
  again(options?: StartOptions): Promise<Story>;
}

export interface StoryOptions {
  behaviour?: Behaviour;
  protection?: Partial<Protection>;
  /** Further keys of the server's entry. */
  entry?: Record<string, unknown>;
  start?: StartOptions;
}

export interface OptionsBeside extends Omit<StoryOptions, "start"> {
  /** Runs before the worker starts. */
  prepare?: (servers: Servers) => void;
}

/**
 * Stories that do not disturb each other share one worker, which starts when a test asks for the first story. Each has
 * servers of its own. Nobody is signed in.
 */
export function sideBySide<K extends string>(
  rows: Record<K, OptionsBeside>,
): (key: K) => Promise<StoryBeside> {
  const all = forRows(async () => {
    const stories = new Map<K, Servers>();
    const entries: [string, Record<string, unknown>][] = [];
    for (const [key, row] of Object.entries(rows) as [K, OptionsBeside][]) {
      const trusted = await authorization(row.behaviour);
      const servers = { trusted, guarded: await guarded(trusted, row.protection) };
      row.prepare?.(servers);
      stories.set(key, servers);
      entries.push([nameBeside(key), { url: servers.guarded.url, ...row.entry }]);
    }
    const place = await createPlace();
    return { stories, place, at: await start(Object.fromEntries(entries), { place }) };
  });
  return async (key) => {
    const { stories, place, at } = await all();
    const servers = stories.get(key);
    if (!servers) throw new Error(`no story ${key}`);
    const name = nameBeside(key);
    const signIn = async (user: User = {}): Promise<SignedIn> => {
      const ended = await signInAs(user, { runtime: at.runtime, ended: endedIn(at) }, name);
      return { ...ended, says: withUsualName(ended.says, name) };
    };
    return { ...servers, name, at, place, signIn };
  };
}

/** No part of any sentence, so that a test can put the usual name in its place. */
const nameBeside = (key: string): string => `qx-${key}-z`;
const withUsualName = (text: string, name: string): string => text.replaceAll(name, SERVER);

/** Starts both servers and the worker. Nobody is signed in. */
export async function begin(options: StoryOptions = {}): Promise<Story> {
  const trusted = await authorization(options.behaviour);
  return follow(trusted, await guarded(trusted, options.protection), options);
}

/** Starts the worker with an entry for the server. */
export async function follow(
  trusted: AuthorizationServer,
  server: ProtectedServer,
  { entry = {}, start: startOptions = {} }: Omit<StoryOptions, "behaviour" | "protection"> = {},
): Promise<Story> {
  const place = startOptions.place ?? (await createPlace());
  const at = await start({ [SERVER]: { url: server.url, ...entry } }, { ...startOptions, place });
  return {
    trusted,
    guarded: server,
    name: SERVER,
    at,
    place,
    signIn: (user = {}) => signInAs(user, { runtime: at.runtime, ended: endedIn(at) }, SERVER),
    again: async (options = {}) => {
      await at.runtime.stop();
      return follow(trusted, server, { entry, start: { ...startOptions, ...options, place } });
    },
  };
}

/** How the sign-in with this id ended. */
export const endedIn =
  (at: Started) =>
  async (id: string): Promise<SignedIn["result"]> =>
    (await at.event("sign-in", (event) => event.id === id)).result;

interface OidcStoryOptions extends NonNullable<Parameters<typeof startOidc>[0]> {
  /** The server takes only tokens that are bound to a key. */
  binding?: Pick<Binding, "nonceUses">;
  /** Further keys of the server's entry. */
  entry?: Record<string, unknown>;
  /** Of the user's file. */
  settings?: Record<string, unknown>;
}

/** A server that trusts oidc-provider, and the worker. Nobody is signed in. */
export async function oidcStory({ binding, entry, settings = {}, ...options }: OidcStoryOptions = {}) {
  const oidc = await startOidc(options);
  onCleanup(() => oidc.close());
  const server = await guarded(
    { issuer: oidc.issuer, book: oidc },
    { challengeScope: "read", ...(binding && { binding: { boundTo: oidc.boundTo, ...binding } }) },
  );
  const place = await createPlace();
  const at = await start({ [SERVER]: { url: server.url, ...entry } }, { place, settings });
  const signIn = (user: User = {}) => signInAs(user, { runtime: at.runtime, ended: endedIn(at) }, SERVER);
  return { oidc, guarded: server, at, place, signIn };
}

/** Starts both servers and the worker, and signs in. */
export async function signedIn(options: StoryOptions = {}): Promise<Story> {
  const story = await begin(options);
  expect((await story.signIn()).says).toBe("signed in");
  return story;
}

/** Folder of the stored sign-ins. */
export const storeOf = ({ agentDir }: Place): string => join(agentDir, "mcp-oauth");

export interface StoredFile {
  path: string;
  record: Record<string, unknown>;
}

/** The stored sign-ins, without what others put there. */
export async function stored(place: Place): Promise<StoredFile[]> {
  const paths = (await filesBelow(storeOf(place))).filter((path) => /[/\\][0-9a-f]{16}\.json$/.test(path));
  return Promise.all(
    paths.map(async (path) => ({
      path,
      record: JSON.parse(await readFile(path, "utf8")) as Record<string, unknown>,
    })),
  );
}

/** Writes the server's `tokens.json`, as another program would, and answers its path. */
export async function writeGiven(
  { place, name }: Pick<Story, "place" | "name">,
  text: string,
): Promise<string> {
  const folder = join(storeOf(place), name);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const path = join(folder, "tokens.json");
  await writeFile(path, text, { mode: 0o600 });
  return path;
}

/** The stored sign-ins of the story's server. */
export const storedOf = async ({ place, name }: Pick<Story, "place" | "name">): Promise<StoredFile[]> =>
  (await stored(place)).filter(({ record }) => record.server === name);

/** The one stored sign-in, of the server if it is named. */
export async function theStored(place: Place, server?: string): Promise<StoredFile> {
  const all = server === undefined ? await stored(place) : await storedOf({ place, name: server });
  const [only] = all;
  if (!only || all.length > 1) throw new Error(`${all.length} sign-ins are stored`);
  return only;
}

/**
 * Fails if a secret stands, in any form, in a file but the store's, in an event, in the status or in one of `texts`.
 */
export async function expectNoSecret(
  { at, place }: Pick<Story, "at" | "place">,
  secrets: Iterable<string>,
  ...texts: unknown[]
): Promise<void> {
  const said = { events: at.events, log: await at.log(), status: await at.runtime.ask("status", {}), texts };
  const files = await readBelow(join(place.agentDir, ".."), [storeOf(place)]);
  const told = Object.entries(said).map(([name, value]) => ({ name, text: JSON.stringify(value) }));
  expect(findSecrets([...files, ...told], secrets)).toEqual([]);
}

/** What the user reads when the call fails. */
export async function saysOfCall({ at, name }: Pick<Story, "at" | "name">, tool = "echo"): Promise<string> {
  const { message, remedy } = await at.failedCall(name, tool);
  return withUsualName(remedy ? `${message} ${remedy}` : message, name);
}
