/**
 * Whose it is what root makes in the folder of another user, as with `sudo` where HOME stays, or in a container with a home from
 * outside: that user's, who could not read it otherwise. Owns: that rule, and how private folders are made by it. A sign-in's
 * folders do not follow it, because a sign-in is used only by whom its files belong to.
 */
import { lchown, mkdir, stat } from "node:fs/promises";
import { dirname, resolve } from "node:path";

export interface Owner {
  uid: number;
  gid: number;
}

const isRoot = (): boolean => process.getuid?.() === 0;

/** Gives what was just made to its owner. What cannot be given, as on some file systems of other machines, stays root's. */
export async function give(
  made: { chown(uid: number, gid: number): Promise<void> },
  folder: string,
  before?: Owner,
): Promise<void> {
  if (!isRoot()) return;
  try {
    const { uid, gid } = before ?? (await stat(folder));
    if (uid !== 0) await made.chown(uid, gid);
  } catch {
    // The user has to be root to read it.
  }
}

/** Makes the folder, and those above it that are not there, for the user alone. */
export async function makeFolder(folder: string): Promise<void> {
  const first = await mkdir(folder, { recursive: true, mode: 0o700 });
  if (first === undefined || !isRoot()) return;
  const made: string[] = [];
  for (let at = resolve(folder); at.length >= first.length; at = dirname(at)) made.unshift(at);
  // The uppermost one first: each is as the one above it.
  for (const at of made) await give({ chown: (uid, gid) => lchown(at, uid, gid) }, dirname(at));
}
