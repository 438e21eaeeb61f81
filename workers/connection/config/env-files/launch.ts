/**
 * The variables that a server really gets from its envFile at its start. A project's server gets the content to which
 * the user agreed, or is not started. The user's own server gets everything but the variables that the session's folder
 * may not decide. The text that is checked is the text that is used: nobody can change the file in between.
 */
import { LIMITS } from "../../../../src/shared/protocol/limits.ts";
import type { ServerDefinition } from "../entry/definition.ts";
import { pathsOf } from "../entry/interpolate.ts";
import { listed, shown } from "../entry/shown-text.ts";
import { findWorktree } from "../files/files.ts";
import { contentOf, forOwnServer, isOwn } from "./content.ts";
import { endOf, isWithin, type Way, wayTo } from "./path-stops.ts";
import { readEnvFile } from "./read.ts";

export interface EnvFolders {
  home: string;
  /** The session's folder. */
  cwd: string;
  platform?: NodeJS.Platform;
}

export type AgreedEntries =
  /** `note`: one line about variables that were left out. */
  | { entries: Record<string, string>; note?: string }
  | { reason: string }
  /** The content is not the one to which the user agreed. */
  | { changed: true };

const SHOWN_NAMES = 20;

/** A longer name is cut at its end, because the start says what the variable decides. */
const NAME_CHARS = 80;

const REMOTE = "it lies on another machine";

/** Why an envFile is not read for a project's server: its content could not be shown to anybody. */
export function unfitReason({ isRemote, found }: Way): string | undefined {
  if (isRemote) return REMOTE;
  if (found?.isSpecial) return "it is no regular file";
  const { bytes = 0 } = found ?? {};
  return bytes > LIMITS.envFileShownBytes ? `it has ${bytes} bytes` : undefined;
}

const briefName = (name: string): string =>
  name.length <= NAME_CHARS ? shown(name) : `${shown(name.slice(0, NAME_CHARS).toWellFormed())}…`;

/** One line, without values, about the variables of an envFile in the session's folder that are left out. */
export function droppedText(file: string, names: readonly string[]): string {
  const why = names.length === 1 ? "it may decide" : "they may decide";
  const what = listed(names.map(briefName), SHOWN_NAMES);
  return `${shown(file)} lies in the folder that Pi runs in and sets ${what}: left out, since ${why} what runs or where it connects`;
}

/**
 * The real folder of the clone that Pi runs in: its worktree, or the session's folder. Undefined: Pi runs in the home
 * folder or above it, which is no clone.
 */
export async function cloneOf({
  cwd,
  home,
  platform = process.platform,
}: EnvFolders): Promise<string | undefined> {
  const [folder, user] = await Promise.all([endOf(cwd), endOf(home)]);
  const isHome = (one: string): boolean => isWithin(user, one, platform);
  if (isHome(folder)) return undefined;
  const worktree = await findWorktree(folder);
  // Some people keep their whole home folder in Git.
  return worktree === undefined || isHome(worktree) ? folder : worktree;
}

/**
 * Whether the session's folder decides to which file a path leads: the path is relative, or the file or a link on the
 * way to it lies in the clone.
 */
export async function isDecidedByFolder(
  path: string,
  folders: EnvFolders,
  { stops }: Pick<Way, "stops">,
): Promise<boolean> {
  const { platform = process.platform } = folders;
  const clone = await cloneOf(folders);
  if (clone === undefined) return false;
  return !pathsOf(platform).isAbsolute(path) || stops.some((stop) => isWithin(stop, clone, platform));
}

/** `path`: resolved; a relative path starts from the session's folder. Never throws. */
export async function agreedEntries(
  definition: ServerDefinition,
  path: string,
  folders: EnvFolders,
): Promise<AgreedEntries> {
  const file = pathsOf(folders.platform ?? process.platform).resolve(folders.cwd, path);
  const way = await wayTo(file, folders.platform);
  const isFolders = await isDecidedByFolder(path, folders, way);
  const unfit = isOwn(definition) ? way.isRemote && isFolders && REMOTE : unfitReason(way);
  if (unfit) return { reason: unfit };
  const read = await readEnvFile(file);
  if ("reason" in read) return read;
  const { entries } = read;
  if (!isOwn(definition))
    return contentOf(entries).hash === definition.agreedEnvFile ? { entries } : { changed: true };
  const { target } = definition;
  const { kept, dropped } = forOwnServer(entries, target.kind === "stdio" ? target.envFileNames : []);
  if (!isFolders || dropped.length === 0) return { entries };
  return { entries: kept, note: droppedText(file, dropped) };
}
