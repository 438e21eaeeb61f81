/**
 * The contract of a dialect: everything that is peculiar to one program whose servers can be imported. A dialect is
 * data and pure functions; reading, checking and translating are the same for all programs and stand beside it.
 */
import type { ConfigFacts } from "../files/files.ts";

export type Data = Record<string, unknown>;

/** Where programs keep files, on the platform of the facts. */
export interface HostFolders {
  facts: ConfigFacts;
  join: (...parts: string[]) => string;
  /** `~/.config`, or the folder that `XDG_CONFIG_HOME` names. */
  config: string;
  /** Where desktop programs keep settings; another folder on each platform. */
  appData: string;
}

/** Paths of one program's files, lowest precedence first. */
export interface HostFiles {
  user: string[];
  /** Files of the project, found from the working folder. */
  project: string[];
  /** Files of the user that win over the project's. */
  userLast?: string[];
}

/** An object of servers in a file. */
export interface ServerGroup {
  path: string[];
  servers: unknown;
}

/** A program's variables. `pattern`: global, with the variable as first group. */
export interface Syntax {
  pattern: RegExp;
  /** The value of a variable, or a variable of ours for it. Undefined: the program takes the text literally. */
  fill: (variable: string) => { value: string } | { ours: string } | undefined;
}

export interface Dialect {
  files(folders: HostFolders): HostFiles;
  /** The format of the files; default: JSON with comments. */
  format?: "toml";
  /** The program looks for files in the folders above the working folder, up to the worktree's root. */
  looksUp?: true;
  /** The program merges its files key by key: an entry without a target changes one of an earlier file. */
  mergesEntries?: true;
  /** The objects of servers in a file; later ones win. */
  groups(root: Data, facts: ConfigFacts): ServerGroup[];
  /** Names of servers that the program itself has disabled. */
  disabled?(root: Data, facts: ConfigFacts): ReadonlySet<unknown>;
  /** An entry in our shape. The values are still the program's. `root`: the file that holds the entry. */
  convert(entry: Data, root: Data): Data;
  /** Headers whose values are the variables of these names: header -> name. */
  headersFromEnv?(entry: Data): unknown;
  /** Without it the program fills in nothing. */
  syntax?(facts: ConfigFacts): Syntax;
  /** A leading `~/` in `args` is the home folder. */
  expandsHomeInArgs?: true;
  /** Variables that only the program can fill in; global, with the variable as first group. */
  foreign?: RegExp;
  /** `${file:...}` names a file that is open in the program; in other programs it is a file that holds the value. */
  namesOpenFile?: true;
  /** Why the entry cannot be used here, apart from foreign variables. */
  unusable?(entry: Data): string | undefined;
}

/** Without the keys that hold nothing. */
export const compact = (data: Data): Data =>
  Object.fromEntries(Object.entries(data).filter(([, value]) => value !== undefined && value !== null));

export const pick = (entry: Data, keys: readonly string[]): Data =>
  Object.fromEntries(keys.map((key) => [key, entry[key]]));

/** The value of an environment variable; undefined if it is empty, as programs read it. */
export const given = (value: string | undefined): string | undefined => (value ? value : undefined);
