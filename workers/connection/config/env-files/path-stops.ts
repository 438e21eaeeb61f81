/**
 * The way that the system takes to a file, link by link, without opening anything: who decides what is found there.
 * A link is looked at before it is followed, since on Windows the mere look at another machine's folder signs in there.
 */
import { lstat, readlink } from "node:fs/promises";
import { join, parse, posix, resolve, sep, win32 } from "node:path";

/** As many as Linux follows. */
const MOST_LINKS = 40;

export interface Way {
  /** Every link that is followed, each where it really lies, then the file itself, which need not be there. */
  stops: string[];
  /** A part of the way lies on another machine: the way was not followed further. */
  isRemote: boolean;
  /** What is at the end of the way. `isSpecial`: a pipe or a device, which may block whoever reads it. */
  found?: { bytes: number; modifiedMs: number; isSpecial: boolean };
}

/** A network path of Windows, `\\machine\share`, however it is written. */
export const isRemotePath = (path: string, platform: NodeJS.Platform): boolean =>
  platform === "win32" && /^[\\/]{2}/.test(path);

const partsOf = (path: string): string[] =>
  path
    .slice(parse(path).root.length)
    .split(sep)
    .filter((part) => part !== "");

/** `file`: an absolute path. Never throws. */
export async function wayTo(file: string, platform: NodeJS.Platform = process.platform): Promise<Way> {
  const stops: string[] = [];
  if (isRemotePath(file, platform)) return { stops: [file], isRemote: true };
  let at = parse(file).root;
  let rest = partsOf(file);
  for (let part = rest.shift(); part !== undefined; part = rest.shift()) {
    const next = join(at, part);
    const found = await lstat(next).catch(() => undefined);
    if (!found?.isSymbolicLink()) {
      at = next;
      if (found && rest.length === 0) {
        const { size: bytes, mtimeMs: modifiedMs } = found;
        const isSpecial = !found.isFile() && !found.isDirectory();
        return { stops: [...stops, at], isRemote: false, found: { bytes, modifiedMs, isSpecial } };
      }
      continue;
    }
    stops.push(next);
    const target = await readlink(next).catch(() => undefined);
    if (target === undefined || stops.length > MOST_LINKS) break;
    if (isRemotePath(target, platform)) return { stops: [...stops, target], isRemote: true };
    const behind = resolve(at, target);
    rest = [...partsOf(behind), ...rest];
    at = parse(behind).root;
  }
  return { stops: [...stops, join(at, ...rest)], isRemote: false };
}

/** Where the way to a path ends. */
export const endOf = async (path: string): Promise<string> => (await wayTo(path)).stops.at(-1) ?? path;

/** Whether a path is the folder or lies in it. Windows and macOS do not mind the case of names. */
export function isWithin(
  path: string,
  folder: string,
  platform: NodeJS.Platform = process.platform,
): boolean {
  const paths = platform === "win32" ? win32 : posix;
  const plain = (text: string): string =>
    platform === "win32" || platform === "darwin" ? text.toLowerCase() : text;
  const way = paths.relative(plain(folder), plain(path));
  return way === "" || (way !== ".." && !way.startsWith(`..${paths.sep}`) && !paths.isAbsolute(way));
}
