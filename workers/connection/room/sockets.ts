/**
 * Which sockets of the file system a room hides. Owns: how they are found, and what hides one where other users of the machine
 * may change what its path leads to. They open sockets wherever they may write, and put something else in the place of one
 * while a room is made: what a rule names must be there, and be what it was.
 */
import type { Stats } from "node:fs";
import { lstat, readFile, realpath, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { isWithin } from "../../shared/programs/find-program.ts";

/** A room has its own. */
const ANEW = ["/dev", "/proc"];

/** Sockets in the file system that listen now (proc(5), /proc/net/unix). Empty where the system does not tell. */
export async function socketPaths(): Promise<string[]> {
  if (process.platform !== "linux") return [];
  const table = await readFile("/proc/net/unix", "utf8").catch(() => "");
  const found = table.split("\n").map((line) => / (\/.*)$/.exec(line)?.[1] ?? "");
  return [...new Set(found)].filter((path) => path !== "" && !ANEW.some((folder) => isWithin(path, folder)));
}

/** Whether another user than root may change what is in the folder. Who is in the folder's group is the administrator's word. */
export const isOthers = ({ uid, mode }: Pick<Stats, "uid" | "mode">): boolean =>
  (uid !== 0 && uid !== process.getuid?.()) || (mode & 0o002) !== 0;

/** Finds the topmost folder on the way to a folder that others may change; undefined: there is none. */
function createWays(): (folder: string) => Promise<string | undefined> {
  const known = new Map<string, Promise<string | undefined>>();
  const look = async (folder: string): Promise<string | undefined> => {
    const above = dirname(folder) === folder ? undefined : await othersOn(dirname(folder));
    if (above !== undefined) return above;
    const found = await stat(folder).catch(() => undefined);
    return found && isOthers(found) ? realpath(folder).catch(() => undefined) : undefined;
  };
  // Each folder once: others may open sockets in a hundred thousand folders.
  const othersOn = (folder: string): Promise<string | undefined> => {
    const found = known.get(folder) ?? look(folder);
    known.set(folder, found);
    return found;
  };
  return othersOn;
}

/** What is a socket now, at its real path. */
async function socketAt(path: string): Promise<string | undefined> {
  const at = await realpath(path).catch(() => undefined);
  const found = at === undefined ? undefined : await lstat(at).catch(() => undefined);
  return found?.isSocket() ? at : undefined;
}

/**
 * What is hidden, so that none of these sockets can be reached: where others may change its path, the topmost folder that they
 * may change, of which they can neither move nor remove the name; else the socket alone. `shown`: real paths that the server
 * needs, beside which nothing but the socket is hidden.
 */
export async function hiddenFor(
  paths: readonly string[],
  shown: readonly string[],
): Promise<{ path: string; effect: "empty" | "closed" }[]> {
  const othersOn = createWays();
  const apart = new Map<string, boolean>();
  const isApart = (folder: string): boolean => {
    const known = apart.get(folder) ?? !shown.some((one) => isWithin(one, folder) || isWithin(folder, one));
    apart.set(folder, known);
    return known;
  };
  const found = await Promise.all(
    paths.map(async (path) => {
      const folder = await othersOn(dirname(path));
      if (folder !== undefined && isApart(folder)) return [{ path: folder, effect: "empty" as const }];
      const at = await socketAt(path);
      return at === undefined ? [] : [{ path: at, effect: "closed" as const }];
    }),
  );
  return found.flat();
}
