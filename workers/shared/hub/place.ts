/**
 * Where the hub of a user is found, and the secret that a session and the hub share: a private folder with the socket, the
 * secret and the list of processes. Owns the checks of that folder, since anybody may write into a temp folder.
 *
 * The folder's name holds the version of the package, so that versions live side by side, the agent folder, so that separate
 * set-ups stay separate, and what a server inherits of the hub that starts it and a session might not share: what it sees as its
 * files, processes, network and users, so that a container that shares the temp folder and the home has a hub of its own, and
 * its groups and its umask, so that no session has a server with rights that are not its own.
 */
import { createHash, randomBytes } from "node:crypto";
import type { Stats } from "node:fs";
import { readFileSync, readlinkSync, statSync } from "node:fs";
import { lstat, mkdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { isAbsolute, join } from "node:path";
import { messageOf } from "../../../src/shared/protocol/errors.ts";
import { writeFileAtomic } from "../files/file-system.ts";
import { kernelText } from "../files/lock.ts";
import { codeOf, PRIVATE_FOLDER, readRegularText, whyUnread } from "../files/read-regular.ts";

/** Changes with each change of what the hub and a session say to each other. */
export const HUB_PROTOCOL = 1;

export interface HubPlace {
  folder: string;
  /** Guards the start of the hub. */
  lock: string;
  secret: string;
  /** What the hub has started, for the next hub. */
  servers: string;
  /** The path of the socket; on Windows the secret's file names the pipe. */
  socket: string;
}

/** Why there is no hub, in a clause that follows `shared servers cannot be used: `. */
export class HubUnusable extends Error {}

interface PlaceFacts {
  agentFolder: string;
  version: string;
  platform: NodeJS.Platform;
  /** Undefined on Windows. */
  uid: number | undefined;
  runtimeFolder: string | undefined;
  tempFolder: string;
  /** The kernel's names of the mounts, processes, network and users that this process sees; empty where there are none. */
  namespaces: readonly string[];
  /** The effective one, then the others in order. None on Windows. */
  groups: readonly (number | undefined)[];
  /** Empty but on Linux. */
  umask: string;
}

/** Node counts the effective group among the others, and Bun does not. */
function ownGroups(): (number | undefined)[] {
  const effective = process.getegid?.();
  const others = (process.getgroups?.() ?? []).filter((group) => group !== effective);
  return [effective, ...others.toSorted((a, b) => a - b)];
}

/** `process.umask()` sets it to 0 for a moment, and what another thread makes or starts meanwhile keeps that (DEP0139 of Node). */
const ownUmask = (): string =>
  kernelText(() => /^Umask:.*$/m.exec(readFileSync("/proc/self/status", "latin1"))?.[0] ?? "");

/** Bytes of a socket's path: `sun_path` has 104 on macOS, 108 on Linux, with the final zero. */
const SOCKET_BYTES = 103;

/**
 * The folder, if it is one of this user: in a shell of another user (`su`), or without a login, the variable may name a folder
 * that is not there or not his. Then another one is to be used (XDG Base Directory Specification 0.8).
 */
function ownRuntimeFolder(path: string | undefined): string | undefined {
  if (path === undefined || !isAbsolute(path)) return undefined;
  try {
    const found = statSync(path);
    return found.isDirectory() && found.uid === process.getuid?.() ? path : undefined;
  } catch {
    return undefined;
  }
}

export const placeFacts = (agentFolder: string, version: string): PlaceFacts => ({
  agentFolder,
  version,
  platform: process.platform,
  uid: process.getuid?.(),
  runtimeFolder: ownRuntimeFolder(process.env.XDG_RUNTIME_DIR),
  tempFolder: tmpdir(),
  namespaces: ["mnt", "pid", "net", "user"].map((kind) =>
    kernelText(() => readlinkSync(`/proc/self/ns/${kind}`)),
  ),
  groups: ownGroups(),
  umask: ownUmask(),
});

/** Throws `HubUnusable` if no folder has a path that is short enough for a socket. */
export function hubPlace(facts: PlaceFacts): HubPlace {
  const { agentFolder, version, platform, uid, runtimeFolder, tempFolder } = facts;
  const { namespaces, groups, umask } = facts;
  const isWindows = platform === "win32";
  const id = createHash("sha256")
    .update(JSON.stringify([HUB_PROTOCOL, version, agentFolder, namespaces, groups, umask]))
    .digest("hex")
    .slice(0, 16);
  const bases = [runtimeFolder, tempFolder, isWindows ? undefined : "/tmp"];
  const folders = bases.flatMap((base) =>
    base !== undefined && isAbsolute(base) ? [join(base, `pi-mcp-${uid ?? "hub"}-${id}`)] : [],
  );
  const fits = (folder: string): boolean => isWindows || Buffer.byteLength(join(folder, "s")) <= SOCKET_BYTES;
  const folder = folders.find(fits);
  if (folder === undefined)
    throw new HubUnusable(
      `the path of its socket would have more than ${SOCKET_BYTES} bytes in ${tempFolder}; set XDG_RUNTIME_DIR to a private folder with a shorter path`,
    );
  return {
    folder,
    lock: join(folder, "start"),
    secret: join(folder, "secret"),
    servers: join(folder, "servers.json"),
    socket: join(folder, "s"),
  };
}

/** A hub that ends removes its folder, which may happen between two looks at it. */
const LOOKS = 10;

/** Makes the folder if there is none, and answers what lies there. */
async function foundFolder(folder: string): Promise<Stats> {
  for (let look = 1; ; look++) {
    try {
      await mkdir(folder, { mode: PRIVATE_FOLDER });
    } catch (error) {
      if (codeOf(error) !== "EEXIST") throw new HubUnusable(`its folder cannot be made: ${messageOf(error)}`);
    }
    try {
      return await lstat(folder);
    } catch (error) {
      if (codeOf(error) !== "ENOENT" || look === LOOKS)
        throw new HubUnusable(`its folder cannot be read: ${messageOf(error)}`);
    }
  }
}

/** Makes the folder if there is none. Throws `HubUnusable` unless it is a folder of this user alone. */
export async function ensureFolder({ folder }: HubPlace): Promise<void> {
  checkFolder(folder, await foundFolder(folder));
}

/** False if there is none. Throws `HubUnusable` unless it is a folder of this user alone. */
export async function hasFolder({ folder }: HubPlace): Promise<boolean> {
  const found = await lstat(folder).catch((error: unknown) => {
    if (codeOf(error) !== "ENOENT") throw new HubUnusable(`its folder cannot be read: ${messageOf(error)}`);
  });
  if (found) checkFolder(folder, found);
  return found !== undefined;
}

function checkFolder(folder: string, found: Stats): void {
  const remedy = "remove it";
  if (found.isSymbolicLink()) throw new HubUnusable(`${folder} is a link; ${remedy}`);
  if (!found.isDirectory()) throw new HubUnusable(`${folder} is not a folder; ${remedy}`);
  const uid = process.getuid?.();
  if (uid === undefined) return;
  if (found.uid !== uid) throw new HubUnusable(`${folder} belongs to another user`);
  if ((found.mode & 0o077) !== 0)
    throw new HubUnusable(`other users may open ${folder}; ${remedy}, or make it private (chmod 700)`);
}

/** `pipe`: the name of the pipe on Windows, which nobody else can know before it is there. */
export interface HubSecret {
  key: Buffer;
  pipe: string;
}

const KEY_BYTES = 32;
const SECRET_BYTES = 1024;

/** Undefined if there is none. Throws `HubUnusable` if it cannot be read, or is not this package's. */
export async function readSecret({ secret }: HubPlace): Promise<HubSecret | undefined> {
  const unusable = (why: string): never => {
    throw new HubUnusable(`${secret}: ${why}; remove it`);
  };
  const found = await lstat(secret).catch(() => undefined);
  if (!found) return undefined;
  const uid = process.getuid?.();
  if (!found.isFile()) unusable("it is not a regular file");
  if (uid !== undefined && (found.uid !== uid || (found.mode & 0o077) !== 0))
    unusable("other users may read it");
  const read = await readRegularText(secret, SECRET_BYTES);
  // A hub that ends removes it, which may happen between the two looks.
  if (read.kind === "missing") return undefined;
  if (read.kind !== "text") return unusable(whyUnread(read));
  const [, key = "", pipe = ""] =
    /^([0-9a-f]{64}) ([0-9a-f]{32})\n$/.exec(read.text) ?? unusable("it is damaged");
  return { key: Buffer.from(key, "hex"), pipe };
}

const newSecret = (): HubSecret => ({
  key: randomBytes(KEY_BYTES),
  pipe: randomBytes(16).toString("hex"),
});

/** Writes a new secret, for a hub that is to be started, or again the one of a hub that runs. Throws `HubUnusable`. */
export async function writeSecret({ secret }: HubPlace, made = newSecret()): Promise<HubSecret> {
  try {
    // In one step: half a secret, as of a full disk, would keep every later hub away.
    await writeFileAtomic(secret, `${made.key.toString("hex")} ${made.pipe}\n`);
  } catch (error) {
    throw new HubUnusable(`${secret} cannot be written: ${messageOf(error)}`);
  }
  return made;
}

/** What `node:net` listens and connects to. */
export const addressOf = ({ socket }: HubPlace, { pipe }: HubSecret, platform = process.platform): string =>
  platform === "win32" ? `\\\\.\\pipe\\pi-mcp-${pipe}` : socket;
