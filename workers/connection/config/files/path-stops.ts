/**
 * The way that the system takes to a file, link by link, without opening anything: it shows who decides which file is
 * found. A link is read before it is followed, because on Windows a mere look at another machine's folder signs in
 * there.
 */
import { lstat, readlink } from "node:fs/promises";
import { join, parse, resolve, sep } from "node:path";

/** Linux follows as many links. */
const MOST_LINKS = 40;

export interface Way {
  /** The real path of every link on the way, then that of the file itself, which need not exist. */
  stops: string[];
  /** A part of the way lies on another machine. The way was not followed further. */
  isRemote: boolean;
  /** The file at the end of the way. `isSpecial`: a pipe or a device, which may block its reader. */
  found?: { bytes: number; modifiedMs: number; isSpecial: boolean };
}

/** Whether a path is a network path of Windows, `\\machine\share`, with either slash. */
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
    // Below what is not there lies nothing, and a text may name thousands of parts.
    if (!found) return { stops: [...stops, join(next, rest.join(sep))], isRemote: false };
    if (!found.isSymbolicLink()) {
      at = next;
      if (rest.length === 0) {
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
  return { stops: [...stops, join(at, rest.join(sep))], isRemote: false };
}

/** The real path of a path. */
export const endOf = async (path: string): Promise<string> => (await wayTo(path)).stops.at(-1) ?? path;
