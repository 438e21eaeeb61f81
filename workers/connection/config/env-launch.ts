/**
 * What a server really gets of its envFile at its start: of a project's server what the user agreed to, or nothing; of
 * the user's own server all but what the session's folder may not decide. What is read here is what the server gets:
 * nobody can change the file between the look and the use.
 */
import { LIMITS } from "../../../src/protocol/limits.ts";
import type { ServerDefinition } from "./definition.ts";
import { contentHash, contentOf, isOwn, withoutDeciding } from "./env-content.ts";
import { readEnvFile } from "./env-file.ts";
import { endOf, isWithin, type Way, wayTo } from "./path-stops.ts";
import { pathsOf } from "./paths.ts";
import { listed, shown } from "./shown-text.ts";

export interface EnvFolders {
  home: string;
  /** The session's folder. */
  cwd: string;
  platform?: NodeJS.Platform;
}

export type AgreedEntries =
  /** `note`: what was left out. */
  | { entries: Record<string, string>; note?: string }
  | { reason: string }
  /** It is not what the user agreed to. */
  | { changed: true };

const SHOWN_NAMES = 20;

export const REMOTE = "it lies on another machine";
/** Of a project's server: what nobody was shown. */
export const tooLarge = (bytes: number): string => `it has ${bytes} bytes`;

/** What an envFile in the session's folder may not decide, in one line without values. */
export function droppedText(file: string, names: readonly string[]): string {
  const why = names.length === 1 ? "it decides" : "they decide";
  const what = listed(names.map(shown), SHOWN_NAMES);
  return `${shown(file)} lies in the folder that Pi runs in and sets ${what}: left out, since ${why} what runs`;
}

/**
 * Whether the session's folder decides what a path leads to: it is relative, or the file or a link on the way to it
 * lies there. Where Pi runs in the home folder, or above it, that folder is no clone.
 */
export async function isDecidedByFolder(
  path: string,
  { cwd, home, platform = process.platform }: EnvFolders,
  { stops }: Pick<Way, "stops">,
): Promise<boolean> {
  const [folder, user] = await Promise.all([endOf(cwd), endOf(home)]);
  if (isWithin(user, folder, platform)) return false;
  return !pathsOf(platform).isAbsolute(path) || stops.some((stop) => isWithin(stop, folder, platform));
}

/** `path`: as resolved, relative to the session's folder where it is not absolute. Never throws. */
export async function agreedEntries(
  definition: ServerDefinition,
  path: string,
  folders: EnvFolders,
): Promise<AgreedEntries> {
  const file = pathsOf(folders.platform ?? process.platform).resolve(folders.cwd, path);
  const way = await wayTo(file, folders.platform);
  const isFolders = await isDecidedByFolder(path, folders, way);
  if (way.isRemote && (isFolders || !isOwn(definition))) return { reason: REMOTE };
  const { bytes = 0 } = way.found ?? {};
  if (bytes > LIMITS.envFileShownBytes && !isOwn(definition)) return { reason: tooLarge(bytes) };
  const read = await readEnvFile(file);
  if ("reason" in read) return read;
  const { entries } = read;
  if (!isOwn(definition))
    return contentHash(contentOf(entries)) === definition.agreedEnvFile ? { entries } : { changed: true };
  const { kept, dropped } = withoutDeciding(entries);
  if (!isFolders || dropped.length === 0) return { entries };
  return { entries: kept, note: droppedText(file, dropped) };
}
