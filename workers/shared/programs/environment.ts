/**
 * The whole environment of a process that this package starts: the user's own, with what a definition sets over it.
 * Pure: platform and folders are given.
 */
import {
  type Folders,
  isUsersEntry,
  searchDelimiter,
  splitSearchPath,
  usersSearchPath,
} from "./search-path.ts";

export type Env = Readonly<Record<string, string | undefined>>;

/** With this variable Windows looks for a command in PATH only, and not in the current folder first. Any value does. */
const NO_CURRENT_FOLDER = "NoDefaultCurrentDirectoryInExePath";

/** Lists of folders in which a program looks for code. An empty entry is the current folder for most of them. */
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

/** The name under which a variable is there: Windows writes `Path` in any case. */
export const nameIn = (env: Env, name: string, platform: NodeJS.Platform): string =>
  Object.keys(env).findLast((key) => sameName(platform, key, name)) ?? name;

/** The value of a variable, whatever its case on Windows. */
export const valueIn = (env: Env, name: string, platform: NodeJS.Platform): string | undefined =>
  env[nameIn(env, name, platform)];

/** `over` wins, also where Windows has the same name in another case. */
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
  /** Of this process. */
  base: Env;
  /** Of the definition. */
  own: Env;
  platform: NodeJS.Platform;
  /** Folders that must decide nothing. Undefined: a file of the project defines what is started. */
  independentOf: Omit<Folders, "platform"> | undefined;
  /** Entries of PATH that are left out. Not called where there are none. */
  onLeftOut?: (entries: string[]) => void;
}

/** What a definition sets itself in CODE_FOLDERS stays as it is written: its author means it so. */
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
