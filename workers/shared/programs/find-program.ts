/**
 * Owns: finding the file of a command. The search follows the system's own rules with one exception: Windows looks
 * into the current folder first, and this search never does. Every program is then started by the whole path that is
 * found here. `findProgram` is pure: a parameter looks at files.
 */

import { access, constants, lstat, realpath, stat } from "node:fs/promises";
import { posix, win32 } from "node:path";
import { inTime } from "../files/file-system.ts";

interface ProgramSearch {
  /** Environment of the process: its PATH and, on Windows, its PATHEXT are read. */
  env: Env;
  /** Folder from which a command with a separator starts, and a relative folder of PATH. */
  cwd: string;
  platform: NodeJS.Platform;
  /** Whether the file can be started. */
  isProgram: (file: string) => Promise<boolean>;
}

/** The list of Windows if PATHEXT is not set. */
const ENDINGS = ".COM;.EXE;.BAT;.CMD";

/** A command with a separator names a file and is not looked for. */
export const namesFile = (command: string, platform: NodeJS.Platform): boolean =>
  platform === "win32" ? /[\\/]|^[a-z]:/i.test(command) : command.includes("/");

/** Endings that may follow a name on Windows, in the order of trying. */
function endingsFor(command: string, { env, platform }: ProgramSearch): string[] {
  if (platform !== "win32") return [""];
  const endings = (valueIn(env, "PATHEXT", platform) || ENDINGS).split(";").filter((e) => e.startsWith("."));
  const isWhole = endings.some((ending) => command.toLowerCase().endsWith(ending.toLowerCase()));
  return isWhole ? ["", ...endings] : endings;
}

function foldersOf({ env, cwd, platform }: ProgramSearch): string[] {
  const { resolve } = platform === "win32" ? win32 : posix;
  const otherwise = platform === "win32" ? "" : SYSTEM_FOLDERS;
  const entries = splitSearchPath(valueIn(env, "PATH", platform) ?? otherwise, platform);
  return entries.map((entry) => resolve(cwd, folderOfEntry(entry, platform)));
}

/** The absolute path of the program; undefined if there is none. */
export async function findProgram(command: string, search: ProgramSearch): Promise<string | undefined> {
  const { cwd, platform, isProgram } = search;
  if (command === "") return undefined;
  const { resolve, join } = platform === "win32" ? win32 : posix;
  const candidates = namesFile(command, platform)
    ? [resolve(cwd, command)]
    : foldersOf(search).map((folder) => join(folder, command));
  const endings = endingsFor(command, search);
  // The exact name comes last, for a script whose first line names the program that runs it.
  const rounds = endings.includes("") ? [endings] : [endings, [""]];
  for (const round of rounds) {
    for (const candidate of candidates) {
      for (const ending of round) if (await isProgram(candidate + ending)) return candidate + ending;
    }
  }
  return undefined;
}

export const isFile = (path: string): Promise<boolean> =>
  stat(path).then(
    (found) => found.isFile(),
    () => false,
  );

const succeeds = (task: Promise<unknown>): Promise<boolean> =>
  task.then(
    () => true,
    () => false,
  );

/**
 * On Windows the name decides, elsewhere the mode. Windows also starts the aliases of programs from its store, such as
 * `python.exe`, although nobody may look at the files behind them.
 */
async function isExecutable(path: string): Promise<boolean> {
  if (process.platform !== "win32") return (await isFile(path)) && succeeds(access(path, constants.X_OK));
  try {
    return (await stat(path)).isFile();
  } catch (error) {
    const isHidden = !["ENOENT", "ENOTDIR"].includes((error as NodeJS.ErrnoException).code ?? "");
    return isHidden && succeeds(lstat(path));
  }
}

/** `findProgram` with the platform and the files of this machine. */
export const findHere = (
  command: string,
  { env, cwd }: Pick<ProgramSearch, "env" | "cwd">,
): Promise<string | undefined> =>
  findProgram(command, { env, cwd, platform: process.platform, isProgram: isExecutable });

export interface Folders {
  platform: NodeJS.Platform;
  /** Folder in which Pi runs: it may be a clone of somebody else's repository. */
  cwd: string;
  /** The user's home folder. */
  home: string;
  /** `endsOf` these and the entries. */
  ends: Ends;
}

/** A folder as it is written -> its real path. */
export type Ends = ReadonlyMap<string, string>;

/** Folders in which a POSIX system keeps its own programs. */
export const SYSTEM_FOLDERS = "/usr/bin:/bin";

const isWindows = (platform: NodeJS.Platform): boolean => platform === "win32";

const searchDelimiter = (platform: NodeJS.Platform): string => (isWindows(platform) ? ";" : ":");

/** The entries of a search path as they are written. Windows allows quotes around a folder with a `;`. */
export function splitSearchPath(value: string, platform: NodeJS.Platform): string[] {
  if (!isWindows(platform)) return value.split(":");
  return (value.match(/(?:"[^"]*"|[^;])+/g) ?? [])
    .map((entry) => entry.trim())
    .filter((entry) => entry !== "");
}

/** The folder that an entry names. */
const folderOfEntry = (entry: string, platform: NodeJS.Platform): string =>
  isWindows(platform) ? entry.replaceAll('"', "") : entry;

/** `\tools` and `C:tools` depend on the current drive and folder of Windows. */
const isAbsolute = (folder: string, platform: NodeJS.Platform): boolean =>
  isWindows(platform) ? /^(?:[a-z]:[\\/]|[\\/]{2}[^\\/])/i.test(folder) : folder.startsWith("/");

/** As macOS compares paths: neither case nor the composition of a letter matters. Windows' `relative` ignores case itself. */
const compared = (path: string, platform: NodeJS.Platform): string =>
  platform === "darwin" ? path.normalize("NFC").toLowerCase() : path;

/** Whether a path is the folder or lies in it. */
export function isWithin(
  path: string,
  folder: string,
  platform: NodeJS.Platform = process.platform,
): boolean {
  const { relative, sep, isAbsolute: isOtherDrive } = isWindows(platform) ? win32 : posix;
  const way = relative(compared(folder, platform), compared(path, platform));
  return way !== ".." && !way.startsWith(`..${sep}`) && !isOtherDrive(way);
}

/**
 * When npm and similar tools start a program, they put `node_modules/.bin` of the current folder and of all folders
 * above it on PATH, so Pi's own PATH may hold programs of a clone. Packages in the home folder itself are the user's.
 */
function isPackageFolderHere(folder: string, { platform, cwd, home }: Omit<Folders, "ends">): boolean {
  const packages = isWindows(platform)
    ? /^(.*?[\\/])node_modules(?:[\\/]|$)/i
    : /^(.*?\/)node_modules(?:\/|$)/;
  const owner = packages.exec(folder)?.[1];
  if (owner === undefined || isWithin(home, cwd, platform)) return false;
  const isHere = isWithin(owner, cwd, platform) || isWithin(cwd, owner, platform);
  return isHere && !isWithin(home, owner, platform);
}

/** Whether an entry names the same folder of the user, wherever Pi runs. A link may lead to the folder, or to where Pi runs. */
function isUsersEntry(entry: string, folders: Folders): boolean {
  const { platform, cwd, home, ends } = folders;
  const folder = folderOfEntry(entry, platform);
  const end = (path: string): string => ends.get(path) ?? path;
  return (
    isAbsolute(folder, platform) &&
    !isPackageFolderHere(folder, folders) &&
    !isPackageFolderHere(end(folder), { platform, cwd: end(cwd), home: end(home) })
  );
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

export type Env = Readonly<Record<string, string | undefined>>;

/**
 * With this variable, whatever its value, Windows looks for a command in PATH only and not in the current folder
 * first.
 */
const NO_CURRENT_FOLDER = "NoDefaultCurrentDirectoryInExePath";

/** Lists of folders in which programs look for code. For most of them an empty entry means the current folder. */
const CODE_FOLDERS = [
  "PYTHONPATH",
  "NODE_PATH",
  "RUBYLIB",
  "PERL5LIB",
  "LD_LIBRARY_PATH",
  "DYLD_LIBRARY_PATH",
] as const;

/** A disk of a machine that has too much to do takes seconds, and an entry that does not answer would hold up each start. */
const ANSWER_MS = 10_000;

/** What links come to among the folders that an environment lists, and these. A folder that does not answer stays as written. Never rejects. */
export async function endsOf(env: Env, { cwd, home }: Pick<Folders, "cwd" | "home">): Promise<Ends> {
  const { platform } = process;
  const listed = ["PATH", ...CODE_FOLDERS]
    .flatMap((name) => splitSearchPath(valueIn(env, name, platform) ?? "", platform))
    .map((entry) => folderOfEntry(entry, platform))
    // Windows signs in to a machine of which it looks at a folder.
    .filter((folder) => isAbsolute(folder, platform) && !(isWindows(platform) && /^[\\/]{2}/.test(folder)));
  const found = [...new Set([cwd, home, ...listed])].map(async (folder) => {
    const end = await inTime(`link ${folder}`, () => realpath(folder).catch(() => folder), ANSWER_MS);
    return [folder, "value" in end ? end.value : folder] as const;
  });
  return new Map(await Promise.all(found));
}

const sameName = (platform: NodeJS.Platform, a: string, b: string): boolean =>
  platform === "win32" ? a.toLowerCase() === b.toLowerCase() : a === b;

/** The name of a variable as the environment spells it: Windows may write `Path` in any case. */
export const nameIn = (env: Env, name: string, platform: NodeJS.Platform): string =>
  Object.keys(env).findLast((key) => sameName(platform, key, name)) ?? name;

/** The value of a variable, whatever its case on Windows. */
export const valueIn = (env: Env, name: string, platform: NodeJS.Platform): string | undefined =>
  env[nameIn(env, name, platform)];

/** `over` wins, also if Windows has the same name in another case. */
function mergeEnvironments(base: Env, over: Env, platform: NodeJS.Platform): Record<string, string> {
  const merged: Record<string, string> = {};
  for (const [name, value] of [...Object.entries(base), ...Object.entries(over)]) {
    if (value === undefined) continue;
    const before = nameIn(merged, name, platform);
    if (before !== name) delete merged[before];
    merged[name] = value;
  }
  return merged;
}

interface EnvironmentParts {
  /** Environment of this process. */
  base: Env;
  /** Variables of the definition. */
  own: Env;
  platform: NodeJS.Platform;
  /** Folders that must decide nothing. Undefined: a file of the project defines the program, so they may decide. */
  independentOf: Omit<Folders, "platform"> | undefined;
  /** Gets the entries of PATH that are left out. Not called if there are none. */
  onLeftOut?: (entries: string[]) => void;
}

/** A variable of CODE_FOLDERS that the definition itself sets stays as it is written: its author wants it so. */
export function childEnvironment({
  base,
  own,
  platform,
  independentOf,
  onLeftOut,
}: EnvironmentParts): Record<string, string> {
  const env = mergeEnvironments(base, own, platform);
  if (platform === "win32") env[nameIn(env, NO_CURRENT_FOLDER, platform)] ??= "1";
  if (independentOf === undefined) return env;
  const folders = { ...independentOf, platform };
  const path = nameIn(env, "PATH", platform);
  const search = usersSearchPath(env[path], folders);
  env[path] = search.path;
  if (search.left.length > 0) onLeftOut?.(search.left);
  for (const name of CODE_FOLDERS) {
    const value = valueIn(base, name, platform);
    if (value === undefined || valueIn(own, name, platform) !== undefined) continue;
    const kept = splitSearchPath(value, platform).filter((entry) => isUsersEntry(entry, folders));
    const key = nameIn(env, name, platform);
    if (kept.length === 0) delete env[key];
    else env[key] = kept.join(searchDelimiter(platform));
  }
  return env;
}
