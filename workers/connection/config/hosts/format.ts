/**
 * How a program's files are described: where they are, how servers are written in them, and how they become entries of ours. What all
 * rows of DIALECTS and the formats of packages share. Pure.
 */
import { isObject } from "../../../../src/shared/protocol/values.ts";
import type { Mistake } from "../entry/mistakes.ts";
import type { Override } from "../entry/override.ts";
import type { ConfigFacts } from "../files/sources.ts";

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

/** Paths of one program's files, lowest precedence first. `userLast`: files of the user that win over the project's. */
export interface HostFiles {
  user: string[];
  /** Files of the project, found from the working folder. */
  project: string[];
  userLast?: string[];
}

/** A program's variables. `pattern`: global, with the variable as first group. */
export interface Syntax {
  pattern: RegExp;
  /** The keys in which variables are filled in; default: all that hold values. */
  keys?: readonly string[];
  /** A variable may have no brace at its end. */
  isBare?: true;
  /** The value of a variable, or a variable of ours for it. Undefined: the program takes the text literally. */
  fill: (variable: string) => { value: string } | { ours: string } | undefined;
}

export interface Dialect extends Format {
  /** How people call the program. */
  title: string;
  files(folders: HostFolders): HostFiles;
  /** The program looks for files in the folders above the working folder, up to the worktree's root. */
  looksUp?: true;
}

/** What the rules for one server cost. */
export interface RulesCost {
  /** Comparisons. */
  steps: number;
  /** Rules that can be names of the only tools that are there: each is compared with those of another file. */
  listed: number;
}

export interface Rules {
  /** Rules for tools. */
  count: number;
  /** Known after the first answer. Absent: one comparison for each server. */
  cost?: (name: string) => RulesCost;
  of: (name: string) => Override | undefined;
  /** A tool, or a pattern, that the program lets run and what is said here takes away. */
  lost?: (name: string) => string | undefined;
}

/** How servers are written in files that are not ours, or that a package brings. */
export interface Format {
  /** The format of the files; default: JSON with comments. */
  format?: "toml";
  /** Why nothing of a file can be used. */
  refuses?(root: Data): string | undefined;
  /** Values mean what they mean in our own files. */
  isOurs?: true;
  /** The server's name here; default: as it is written. */
  name?(written: string): string;
  /** The program merges its files key by key: an entry without a target changes one of an earlier file. */
  mergesEntries?: true;
  /** The objects of servers in a file; later ones win. */
  groups(root: Data, facts: ConfigFacts, file: string): { path: string[]; servers: unknown }[];
  /** What a file says of servers by their names, beside their entries: it counts for servers of the program's other files as well. */
  rules?(root: Data, facts: ConfigFacts, file: string): Rules | undefined;
  /** An entry in our shape. The values are still the program's. `root`: the file that holds the entry. */
  convert(entry: Data, root: Data, facts: ConfigFacts): Data;
  /** What of a usable entry does not count here. */
  differs?(entry: Data, root: Data, facts: ConfigFacts): Pick<Mistake, "message" | "remedy"> | undefined;
  /** Headers whose values are the variables of these names: header -> name. */
  headersFromEnv?(entry: Data): unknown;
  /** Names of variables that a local server gets as they are, if they are set. */
  passesOn?(entry: Data): unknown;
  /** Without it the program fills in nothing. `key`: of our entry, whose values are filled in. */
  syntax?(facts: ConfigFacts, key: string): Syntax;
  /** A leading `~/` in `args` is the home folder. */
  expandsHomeInArgs?: true;
  /** Variables that only the program can fill in; global, with the variable as first group. */
  foreign?: RegExp;
  /** `${file:...}` names a file that is open in the program; in other programs it is a file that holds the value. */
  namesOpenFile?: true;
  /** Why the entry cannot be used here, apart from foreign variables. */
  unusable?(entry: Data): string | undefined;
}

/** The program itself has switched a server off. */
export const OFF: Override = { enabled: false };

/** Without the keys that hold nothing. */
export const compact = (data: Data): Data =>
  Object.fromEntries(Object.entries(data).filter(([, value]) => value !== undefined && value !== null));

export const pick = (entry: Data, ...keys: string[]): Data =>
  Object.fromEntries(keys.map((key) => [key, entry[key]]));

export const objectAt = (value: unknown): Data => (isObject(value) ? value : {});

/**
 * The keys of an OAuth client in our words; undefined if the entry says nothing. A client is registered with the redirect
 * URI of its program, so that a client id or a port alone already means that URI.
 */
export function oauthOf(data: Data, redirectUri?: (port: number | undefined) => string): Data | undefined {
  const oauth = compact(data);
  if (Object.keys(oauth).length === 0) return undefined;
  const { clientId, callbackPort: port } = oauth;
  const isNumber = port === undefined || typeof port === "number";
  if (!redirectUri || oauth.redirectUri !== undefined || !isNumber) return oauth;
  return clientId === undefined && port === undefined ? oauth : { ...oauth, redirectUri: redirectUri(port) };
}
