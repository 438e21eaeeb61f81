/**
 * Owns: which entries of PATH, the folders in which a command is looked for, do not depend on the folder in which Pi
 * runs. Pure: platform and folders are parameters.
 */
import { posix, win32 } from "node:path";

export interface Folders {
  platform: NodeJS.Platform;
  /** Folder in which Pi runs: it may be a clone of somebody else's repository. */
  cwd: string;
  /** The user's home folder. */
  home: string;
}

/** Folders in which a POSIX system keeps its own programs. */
export const SYSTEM_FOLDERS = "/usr/bin:/bin";

const isWindows = (platform: NodeJS.Platform): boolean => platform === "win32";

export const searchDelimiter = (platform: NodeJS.Platform): string => (isWindows(platform) ? ";" : ":");

/** The entries of a search path as they are written. Windows allows quotes around a folder with a `;`. */
export function splitSearchPath(value: string, platform: NodeJS.Platform): string[] {
  if (!isWindows(platform)) return value.split(":");
  return (value.match(/(?:"[^"]*"|[^;])+/g) ?? [])
    .map((entry) => entry.trim())
    .filter((entry) => entry !== "");
}

/** The folder that an entry names. */
export const folderOfEntry = (entry: string, platform: NodeJS.Platform): string =>
  isWindows(platform) ? entry.replaceAll('"', "") : entry;

/** `\tools` and `C:tools` depend on the current drive and folder of Windows. */
const isAbsolute = (folder: string, platform: NodeJS.Platform): boolean =>
  isWindows(platform) ? /^(?:[a-z]:[\\/]|[\\/]{2}[^\\/])/i.test(folder) : folder.startsWith("/");

/** Whether `inner` is `outer` or lies below it. */
export function isWithin(outer: string, inner: string, platform: NodeJS.Platform): boolean {
  const { relative, sep, isAbsolute: isOtherDrive } = isWindows(platform) ? win32 : posix;
  const way = relative(outer, inner);
  return way !== ".." && !way.startsWith(`..${sep}`) && !isOtherDrive(way);
}

/**
 * When npm and similar tools start a program, they put `node_modules/.bin` of the current folder and of all folders
 * above it on PATH, so Pi's own PATH may hold programs of a clone. Packages in the home folder itself are the user's.
 */
function isPackageFolderHere(folder: string, { platform, cwd, home }: Folders): boolean {
  const packages = isWindows(platform)
    ? /^(.*?[\\/])node_modules(?:[\\/]|$)/i
    : /^(.*?\/)node_modules(?:\/|$)/;
  const owner = packages.exec(folder)?.[1];
  if (owner === undefined || isWithin(cwd, home, platform)) return false;
  const isHere = isWithin(owner, cwd, platform) || isWithin(cwd, owner, platform);
  return isHere && !isWithin(owner, home, platform);
}

/** Whether an entry names the same folder of the user, wherever Pi runs. */
export function isUsersEntry(entry: string, folders: Folders): boolean {
  const folder = folderOfEntry(entry, folders.platform);
  return isAbsolute(folder, folders.platform) && !isPackageFolderHere(folder, folders);
}

/**
 * A search path without the entries that depend on the folder in which Pi runs: empty and relative entries, which mean
 * that folder itself, and the packages of that folder and of the folders above it. The path is never empty on POSIX,
 * where an empty search path means the current folder. `left`: the entries that are left out.
 */
export function usersSearchPath(
  value: string | undefined,
  folders: Folders,
): { path: string; left: string[] } {
  const { platform } = folders;
  const entries = value === undefined ? [] : splitSearchPath(value, platform);
  const kept = entries.filter((entry) => isUsersEntry(entry, folders));
  const left = entries.filter((entry) => !isUsersEntry(entry, folders));
  const path = kept.join(searchDelimiter(platform));
  return { path: path === "" && platform !== "win32" ? SYSTEM_FOLDERS : path, left };
}
