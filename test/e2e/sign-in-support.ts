/**
 * Owns: the stories of sign-ins in the real Pi without a terminal: an authorization server, an MCP server that trusts
 * it, a home with both, a browser that notes its starts, and the search for secrets in all that Pi wrote and said.
 */
import { chmod, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";
import {
  type AuthorizationServer,
  type Behaviour,
  startAuthorizationServer,
} from "../support/authorization-server.ts";
import { findSecrets, readBelow, type Said } from "../support/find-secrets.ts";
import type { PiHome } from "../support/pi-run.ts";
import { allPids, processesWithMarker } from "../support/processes.ts";
import { type ProtectedServer, startProtectedServer } from "../support/protected-server.ts";
import { copyExtension, home, onCleanup, root } from "./support.ts";

/** The name of the only server. */
export const SERVER = "web";
const POLL_MS = 25;

/** An MCP server, and the authorization server that it trusts. */
export interface Servers {
  trusted: AuthorizationServer;
  guarded: ProtectedServer;
}

export interface Story extends Servers {
  at: PiHome;
  /** The environment of every run. */
  env: Record<string, string>;
  /** What Pi said: the test adds what each run wrote to stdout and stderr. */
  said: Said[];
  /** The arguments of each start of the browser. */
  opened(): Promise<string[][]>;
}

export interface StoryOptions {
  behaviour?: Behaviour;
  /** Further keys of the server's entry. */
  entry?: Record<string, unknown>;
  /** Names of further servers with the same url. */
  others?: string[];
  /** Further servers by name. */
  beside?: Record<string, Servers>;
  settings?: Record<string, unknown>;
  /** Whether the browser signs in by itself. Without it, it only notes that it was started. */
  browserAgrees?: boolean;
}

export async function startServers(behaviour: Behaviour = {}): Promise<Servers> {
  const trusted = await startAuthorizationServer(behaviour);
  onCleanup(() => trusted.close());
  const guarded = await startProtectedServer({
    issuers: [trusted.issuer],
    check: (token, resource) => trusted.book.check(token, resource),
    challengeScope: "read",
  });
  onCleanup(() => guarded.close());
  return { trusted, guarded };
}

/** Starts both servers and makes a home. Nobody is signed in, and Pi does not run. */
export async function begin({
  behaviour = {},
  entry = {},
  others = [],
  beside = {},
  settings = {},
  browserAgrees = false,
}: StoryOptions = {}): Promise<Story> {
  const { trusted, guarded } = await startServers(behaviour);
  const names = [SERVER, ...others];
  const entries: [string, object][] = names.map((name) => [name, { url: guarded.url, ...entry }]);
  for (const [name, servers] of Object.entries(beside)) entries.push([name, { url: servers.guarded.url }]);
  const mcpServers = Object.fromEntries(entries);
  const at = await home({ mcp: { mcpServers, settings } });
  const openedFile = join(at.dir, "opened");
  const said: Said[] = [];
  await watchCommands(at, said);
  return {
    trusted,
    guarded,
    at,
    env: {
      BROWSER: await installBrowser(at),
      OPENED_FILE: openedFile,
      ...(browserAgrees ? { BROWSER_AGREES: "1" } : {}),
    },
    said,
    opened: async () => {
      const lines = (await isThere(openedFile))
        ? (await readFile(openedFile, "utf8")).trim().split("\n")
        : [];
      return lines.map((line) => JSON.parse(line) as string[]);
    },
  };
}

/** A program of the home. Its first line names the Node of the tests, because a browser has no other arguments. */
async function installBrowser({ dir }: PiHome): Promise<string> {
  const path = join(dir, "browser.mjs");
  const real = join(root, "test", "fixtures", "oauth", "browser.mjs");
  await writeFile(path, `#!${process.execPath}\nawait import(${JSON.stringify(real)});\n`);
  await chmod(path, 0o755);
  return path;
}

/**
 * A copy of the built extension in which one place of the connection worker is another: some limits and some events can
 * be reached in no other way through the real Pi.
 */
export async function changedExtension(at: PiHome, from: string, to: string): Promise<string> {
  return changedCopy(await copyExtension(at), from, to);
}

/** A copy of the built extension in which each file of the workers adds its name to `note` when it is evaluated. */
export async function notingExtension(at: PiHome, note: string): Promise<string> {
  const folder = await copyExtension(at);
  for (const [path, text] of await workerFiles(folder)) {
    const call = `noteFile(${JSON.stringify(note)}, ${JSON.stringify(`${basename(path)}\n`)});`;
    await writeFile(path, `import { appendFileSync as noteFile } from "node:fs";\n${call}\n${text}`);
  }
  return join(folder, "index.js");
}

/** Path -> text of each file of the workers. */
async function workerFiles(folder: string): Promise<[string, string][]> {
  const workers = join(folder, "dist", "workers");
  const paths = (await readdir(workers)).map((name) => join(workers, name));
  return Promise.all(
    paths.map(async (path): Promise<[string, string]> => [path, await readFile(path, "utf8")]),
  );
}

async function changedCopy(folder: string, from: string, to: string): Promise<string> {
  const parts = (await workerFiles(folder)).map(([path, text]) => ({ path, split: text.split(from) }));
  const found = parts.filter(({ split }) => split.length > 1);
  const [only] = found;
  if (!only || found.length > 1 || only.split.length !== 2)
    throw new Error(`the built workers do not have exactly one ${from}`);
  await writeFile(only.path, only.split.join(to));
  return join(folder, "index.js");
}

/**
 * Notes the command line of every process with this home, until the test ends. Processes that are older than the home
 * are not looked at: to read all of them at each turn would take a fifth of a core.
 */
async function watchCommands({ dir }: PiHome, said: Said[]): Promise<void> {
  const commands = new Set<string>();
  const ended = new AbortController();
  let older = await allPids();
  const watch = async (): Promise<void> => {
    while (!ended.signal.aborted) {
      // The pid of a process that has ended may come back.
      const running = await allPids();
      older = new Set([...older].filter((pid) => running.has(pid)));
      for (const { command } of await processesWithMarker(dir, older)) {
        if (!commands.has(command)) said.push({ name: COMMAND_LINE, text: command });
        commands.add(command);
      }
      await sleep(POLL_MS);
    }
  };
  const watching = watch();
  onCleanup(async () => {
    ended.abort();
    await watching;
  });
}

const COMMAND_LINE = "the arguments of a process";

const isThere = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  );

export const storeOf = ({ at }: Story): string => join(at.agentDir, "mcp-oauth");

/** Paths of the stored sign-ins. */
export async function stored(story: Story): Promise<string[]> {
  const folder = join(storeOf(story), SERVER);
  const names = (await isThere(folder)) ? await readdir(folder) : [];
  return names.filter((name) => /^[0-9a-f]{16}\.json$/.test(name)).map((name) => join(folder, name));
}

interface Sought {
  /** Whether the store has the server's secrets. */
  isStored: boolean;
  /** Default: the story's own. */
  server?: string;
  trusted?: AuthorizationServer;
}

/**
 * Fails if a secret that the authorization server knows stands anywhere but in the store: in a file of the home, in its
 * name, in an argument of a process or in what Pi said. Fails as well if the search looks past the store's secrets or
 * past a process, because then it proves nothing.
 */
export async function expectNoSecret(
  story: Story,
  { isStored, server = SERVER, trusted = story.trusted }: Sought,
): Promise<void> {
  const { at, said } = story;
  const { secrets } = trusted.book;
  expect(secrets.size).toBeGreaterThan(0);
  const files = await readBelow(at.dir, [storeOf(story)]);
  expect(findSecrets([...files, ...said], secrets)).toEqual([]);
  const all = findSecrets(await readBelow(at.dir), secrets);
  expect(all.length > 0).toBe(isStored);
  const own = new RegExp(` in \\.pi/agent/mcp-oauth/${server}/([0-9a-f]{16}|tokens)\\.json$`);
  expect(all.filter((line) => !own.test(line))).toEqual([]);
  const names = files.map(({ name }) => name);
  expect(names).toEqual(expect.arrayContaining([".pi/agent/mcp-threads.log"]));
  expect(said.some(({ name, text }) => name === COMMAND_LINE && text.includes("--model"))).toBe(true);
}
