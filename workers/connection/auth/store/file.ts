/**
 * The files of a sign-in. Owns: where they lie, and the rule that a sign-in is read from and written to nothing but a
 * regular file of this user in real folders of this user: whoever can put a link there, or owns the file, decides which
 * tokens are used and where new tokens go. A file is read again only after a change; one that cannot be used is told once
 * and counts as absent. Nothing is told of the content.
 */
import { createHash } from "node:crypto";
import type { BigIntStats } from "node:fs";
import { chmod, lstat, mkdir, realpath } from "node:fs/promises";
import { basename, join } from "node:path";
import { SIGN_IN_FOLDER } from "../../../../src/shared/snapshot/contract.ts";
import { reasonOf } from "../../../shared/files/file-system.ts";
import {
  codeOf,
  irregularKind,
  PRIVATE_FILE,
  PRIVATE_FOLDER,
  readRegularText,
  whyUnread,
} from "../../../shared/files/read-regular.ts";
import { abortable, settledWithin } from "../../../shared/pace/abort.ts";
import { SignInProblem, type SignInRecord } from "../model/model.ts";
import type { Parsed } from "./record.ts";
import type { SystemOptions } from "./system/system.ts";

export interface ConfiguredClient {
  id: string;
  hasSecret: boolean;
}

export interface StoreOptions {
  agentDir: string;
  /** Whether `tokens.json` counts: it is for a server of this name, wherever the name leads. */
  takesGiven: boolean;
  server: string;
  /** MCP endpoint, as it is resolved. */
  url: string;
  /** The client that the configuration names, asked only for Pi's own sign-ins, which do not say it. */
  client?: (() => Promise<ConfiguredClient | undefined>) | undefined;
  /** Where new sign-ins go. A sign-in that is in the system's store stays there. */
  tokenStore: () => TokenStore;
  /** How the program of the system's store is run. */
  system: SystemOptions;
  onNote: (note: string) => void;
  warn: (text: string) => void;
}

export type TokenStore = "file" | "system";

export interface Place {
  /** `<agentDir>/mcp-oauth`. */
  root: string;
  folder: string;
  /** The sign-in for one url of the server. */
  file: string;
  /** `tokens.json`, which other programs write. */
  given: string;
}

const URL_HASH_CHARS = 16;
const NAME_HASH_CHARS = 32;

/** Windows opens a device for these names, with any extension. */
const DEVICE = /^(con|prn|aux|nul|com\d|lpt\d)(\.|$)/i;
/**
 * Other programs make folders whose names start with `sha256-`: the MCP adapter imports such a folder and removes it.
 * `h-` marks the folders below.
 */
const TAKEN = /^(sha256-|h-)/i;

const hashOf = (text: string, chars: number): string =>
  createHash("sha256").update(text).digest("hex").slice(0, chars);

/** Whether every file system keeps the name as it is. Windows drops a dot at the end. */
const isPlain = (server: string): boolean =>
  /^[\w.-]{1,64}$/.test(server) && !server.endsWith(".") && !DEVICE.test(server) && !TAKEN.test(server);

/** The server's name, or `h-<hash>` for a name that is no safe name of a folder. */
export const folderNameOf = (server: string): string =>
  isPlain(server) ? server : `h-${hashOf(server, NAME_HASH_CHARS)}`;

/**
 * The start of the url's SHA-256. Names that differ only in case share a folder on macOS and Windows, so a name with
 * capital letters is part of the hash: `Linear` and `linear` never share a file.
 */
export const fileNameOf = (server: string, url: string): string =>
  `${hashOf(server === server.toLowerCase() ? url : `${url}\n${server}`, URL_HASH_CHARS)}.json`;

export function placeOf({ agentDir, server, url }: { agentDir: string; server: string; url: string }): Place {
  const root = join(agentDir, SIGN_IN_FOLDER);
  const folder = join(root, folderNameOf(server));
  return { root, folder, file: join(folder, fileNameOf(server, url)), given: join(folder, "tokens.json") };
}

type Topic = "reading" | "writing";

interface PathState {
  /**
   * `record`: undefined if the user signed out. `stamp`: of the file then; after any change of it the file counts. `triedMs`:
   * of the last attempt to write it, by `performance.now()`.
   */
  kept?: { record: SignInRecord | undefined; stamp: string; triedMs: number };
  /** The last problem that was told of each topic. */
  told: Map<Topic, string>;
  /** Settles when the last one in the queue has left. */
  queue?: Promise<void>;
}

/** A path stays here until the worker ends. There are no more paths than sign-ins. */
const states = new Map<string, PathState>();

export function stateOf(path: string): PathState {
  const known = states.get(path);
  if (known) return known;
  const state: PathState = { told: new Map() };
  states.set(path, state);
  return state;
}

/** Tells a problem unless it was the last one told of the topic. Undefined: the problem is over. */
export function tellOnce(
  path: string,
  topic: Topic,
  { text, tell }: { text: string | undefined; tell: (text: string) => void },
): void {
  const { told } = stateOf(path);
  if (text === undefined) {
    told.delete(topic);
    return;
  }
  if (told.get(topic) === text) return;
  told.set(topic, text);
  tell(text);
}

/** Runs `work` when all earlier callers for the path in this process have finished, or throws "lock-busy" or "cancelled". */
export async function inTurn<T>(
  path: string,
  { waitMs, signal }: { waitMs: number; signal: AbortSignal },
  work: () => Promise<T>,
): Promise<T> {
  const state = stateOf(path);
  const before = state.queue ?? Promise.resolve();
  const { promise: left, resolve: leave } = Promise.withResolvers<void>();
  state.queue = before.then(() => left);
  try {
    const isFree = await abortable(settledWithin(before, waitMs), signal, "waiting").catch(() => {
      throw new SignInProblem("cancelled");
    });
    if (!isFree) throw new SignInProblem("lock-busy", { path });
    return await work();
  } finally {
    leave();
  }
}

/** The bits that let others in. */
const OTHERS = 0o077;

/** The id of this user; undefined on Windows, where a file has no such owner. */
export const ownId = (): number | undefined => process.getuid?.();

type Owned = Pick<BigIntStats, "uid"> & Parameters<typeof irregularKind>[0];

/** Why something must not be used as a file or a folder, in words behind "it is"; undefined if it may. Pure. */
export function refusal(
  found: Owned,
  wanted: "file" | "folder",
  user: number | undefined,
): string | undefined {
  if (found.isSymbolicLink()) return "it is a link";
  if (wanted === "folder" && !found.isDirectory()) return "it is not a folder";
  if (wanted === "file" && !found.isFile()) return `it is ${irregularKind(found)}, not a regular file`;
  return user !== undefined && Number(found.uid) !== user ? "it belongs to another user" : undefined;
}

type Look =
  | { kind: "missing" }
  /** `what`: why the file is not used. */
  | { kind: "refused"; stamp: string; what: string }
  /** `stamp`: differs after each change. `mode`: the permission bits. */
  | { kind: "file"; stamp: string; modifiedMs: number; mode: number };

/** Looks at a file with one call, and follows no link at its end. Never throws. */
async function lookAtFile(path: string): Promise<Look> {
  try {
    const found = await lstat(path, { bigint: true });
    const stamp = [found.dev, found.ino, found.size, found.mtimeNs].join(":");
    const what = refusal(found, "file", ownId());
    if (what !== undefined) return { kind: "refused", stamp, what };
    return { kind: "file", stamp, modifiedMs: Number(found.mtimeMs), mode: Number(found.mode) & 0o777 };
  } catch (error) {
    const code = codeOf(error);
    return code === "ENOENT"
      ? { kind: "missing" }
      : { kind: "refused", stamp: `${code}`, what: reasonOf(error) };
  }
}

export interface Refused {
  path: string;
  what: string;
}

/** The first folder of the place that must not be used. A missing folder may be made. Never throws. */
export async function refusedFolder({ root, folder }: Place): Promise<Refused | undefined> {
  for (const path of [root, folder]) {
    try {
      const what = refusal(await lstat(path, { bigint: true }), "folder", ownId());
      if (what !== undefined) return { path, what };
    } catch (error) {
      if (codeOf(error) !== "ENOENT") return { path, what: reasonOf(error) };
    }
  }
  return undefined;
}

/** Makes the folders of the place, and shuts others out of them. Throws what the file system throws. */
export async function makePrivate({ root, folder }: Place): Promise<void> {
  await mkdir(folder, { recursive: true, mode: PRIVATE_FOLDER });
  for (const path of [root, folder]) {
    if (Number((await lstat(path)).mode) & OTHERS) await chmod(path, PRIVATE_FOLDER);
  }
}

/** Shuts others out of a file that is about to be replaced, since its mode is kept. */
export async function shutOthersOut(path: string, mode: number): Promise<void> {
  if (mode & OTHERS) await chmod(path, PRIVATE_FILE);
}

/**
 * The name of the folder as the disk has it; undefined if the folder is gone. Where case does not count, a folder that was
 * made for the server `linear` is also found as `Linear`.
 */
export async function nameOnDisk(folder: string): Promise<string | undefined> {
  try {
    return basename(await realpath(folder));
  } catch {
    // Whoever reads the file next learns why.
    return undefined;
  }
}

/** A larger file holds no sign-in. */
export const FILE_BYTES = 64 * 1024;
/**
 * A file that was changed so recently can change again without another time of change: file systems count in steps of up
 * to two seconds.
 */
const SETTLED_MS = 2_000;
const MISSING = "missing";

interface Content<T> {
  stamp: string;
  /** Absent: there is no file, or it cannot be used. */
  value?: T;
  /** There is something that must not be read or written. */
  refused?: Refused;
  /** The text is not what it should be. */
  isUnusable?: true;
  mode?: number;
}

interface CachedFileOptions<T> {
  path: string;
  place: Place;
  parse: (text: string, modifiedMs: number) => Parsed<T>;
  /** Asked before the file is read: why it does not count. */
  refuses?: () => Promise<string | undefined>;
  /** Gets one sentence about a file that must not be used. */
  onRefused: (text: string) => void;
  /** Gets one sentence about a file whose text cannot be used. */
  onUnusable: (text: string) => void;
}

export class CachedFile<T> {
  readonly #options: CachedFileOptions<T>;
  #known: { content: Content<T>; isSettled: boolean } | undefined;

  constructor(options: CachedFileOptions<T>) {
    this.#options = options;
  }

  /** Costs one look at an unchanged file. Never rejects. */
  async read(): Promise<Content<T>> {
    const look = await lookAtFile(this.#options.path);
    if (look.kind !== "missing" && this.#known?.isSettled && this.#known.content.stamp === look.stamp)
      return this.#known.content;
    return this.#load(look);
  }

  /** Reads whatever the stamp says. Never rejects. */
  async readAnew(): Promise<Content<T>> {
    return this.#load(await lookAtFile(this.#options.path));
  }

  async #load(look: Look): Promise<Content<T>> {
    const content = await this.#content(look);
    const age = look.kind === "file" ? Date.now() - look.modifiedMs : 0;
    this.#known = { content, isSettled: age > SETTLED_MS };
    return content;
  }

  async #content(look: Look): Promise<Content<T>> {
    const { path, place, parse, refuses } = this.#options;
    if (look.kind === "missing") {
      this.#tell(undefined, this.#options.onRefused);
      return { stamp: MISSING };
    }
    const { stamp } = look;
    const folder = await refusedFolder(place);
    if (folder) return this.#refused(stamp, folder);
    if (look.kind === "refused") return this.#refused(stamp, { path, what: look.what });
    const why = await refuses?.();
    if (why !== undefined) return this.#refused(stamp, { path, what: why });
    const read = await readRegularText(path, FILE_BYTES);
    if (read.kind === "missing") return { stamp: MISSING };
    if (read.kind === "too-large") return this.#unusable({ stamp, mode: look.mode }, whyUnread(read));
    if (read.kind !== "text") return this.#refused(stamp, { path, what: whyUnread(read) });
    const parsed = parse(read.text, look.modifiedMs);
    if ("what" in parsed) return this.#unusable({ stamp, mode: look.mode }, parsed.what);
    this.#tell(undefined, this.#options.onRefused);
    return { stamp, value: parsed.value, mode: look.mode };
  }

  #refused(stamp: string, refused: Refused): Content<T> {
    const text = `${refused.path} is not used for a sign-in: ${refused.what}.`;
    tellOnce(refused.path, "reading", { text, tell: this.#options.onRefused });
    return { stamp, refused };
  }

  #unusable(content: Content<T>, what: string): Content<T> {
    this.#tell(`${this.#options.path} is not used: ${what}.`, this.#options.onUnusable);
    return { ...content, isUnusable: true };
  }

  #tell(text: string | undefined, tell: (text: string) => void): void {
    tellOnce(this.#options.path, "reading", { text, tell });
  }
}
