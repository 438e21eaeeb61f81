/**
 * Owns: the whole environment of a process that this package starts, which is the user's own environment with the
 * variables of a definition over it. Pure: platform and folders are parameters.
 */
import {
  type Folders,
  isUsersEntry,
  searchDelimiter,
  splitSearchPath,
  usersSearchPath,
} from "./search-path.ts";

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

const sameName = (platform: NodeJS.Platform, a: string, b: string): boolean =>
  platform === "win32" ? a.toLowerCase() === b.toLowerCase() : a === b;

/** The name of a variable as the environment spells it: Windows may write `Path` in any case. */
export const nameIn = (env: Env, name: string, platform: NodeJS.Platform): string =>
  Object.keys(env).findLast((key) => sameName(platform, key, name)) ?? name;

/** The value of a variable, whatever its case on Windows. */
export const valueIn = (env: Env, name: string, platform: NodeJS.Platform): string | undefined =>
  env[nameIn(env, name, platform)];

/** `over` wins, also if Windows has the same name in another case. */
export function mergeEnvironments(base: Env, over: Env, platform: NodeJS.Platform): Record<string, string> {
  const merged: Record<string, string> = {};
  for (const [name, value] of [...Object.entries(base), ...Object.entries(over)]) {
    if (value === undefined) continue;
    const before = nameIn(merged, name, platform);
    if (before !== name) delete merged[before];
    merged[name] = value;
  }
  return merged;
}

export interface EnvironmentParts {
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
