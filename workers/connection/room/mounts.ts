/**
 * Where a file system is seen a second time: a mount of its root, as WSL makes at /mnt/wslg/distro, or of a folder of it. A path
 * that is hidden in one place would be read in the other. Linux alone.
 */
import { readFile } from "node:fs/promises";
import { posix } from "node:path";

/** One mount (proc(5), /proc/pid/mountinfo). */
export interface Mount {
  /** Major and minor number of the file system. */
  device: string;
  /** The folder of the file system that is mounted. */
  root: string;
  /** Where. */
  at: string;
}

/** Blanks and the like are written as octal numbers there. */
const unescaped = (path: string): string =>
  path.replace(/\\(\d{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));

/** Empty if no file system is mounted twice, as on most machines. */
export function mountsIn(table: string): Mount[] {
  const all = table.split("\n").flatMap((line): Mount[] => {
    const [, , device, root, at] = line.split(" ");
    return device && root && at ? [{ device, root: unescaped(root), at: unescaped(at) }] : [];
  });
  return new Set(all.map(({ device }) => device)).size < all.length ? all : [];
}

/** Those that this process sees. Empty where the system does not tell. */
export async function readMounts(): Promise<Mount[]> {
  if (process.platform !== "linux") return [];
  return mountsIn(await readFile("/proc/self/mountinfo", "utf8").catch(() => ""));
}

/** What stands behind the folder: "" for itself, undefined if the path is not within it. */
function behind(path: string, folder: string): string | undefined {
  if (folder === "/") return path === "/" ? "" : path;
  if (path === folder) return "";
  return path.startsWith(`${folder}/`) ? path.slice(folder.length) : undefined;
}

/** The other paths that lead to the same file or folder. `path`: absolute and real. Some of them may be covered by other mounts. */
export function seenAgain(path: string, mounts: readonly Mount[]): string[] {
  // The last one counts of several at one place, and the deepest of those above.
  const own = mounts.reduce<Mount | undefined>(
    (best, mount) =>
      behind(path, mount.at) !== undefined && (!best || mount.at.length >= best.at.length) ? mount : best,
    undefined,
  );
  if (!own) return [];
  const inner = posix.join(own.root, behind(path, own.at) ?? "");
  return mounts.flatMap((mount) => {
    const rest = mount.device === own.device && mount !== own ? behind(inner, mount.root) : undefined;
    const again = rest === undefined ? undefined : posix.join(mount.at, rest);
    return again === undefined || again === path ? [] : [again];
  });
}
