/** Path functions of a platform, and a leading `~/`. Pure: home and platform are given. */
import { posix, win32 } from "node:path";

export const pathsOf = (platform: NodeJS.Platform): typeof posix => (platform === "win32" ? win32 : posix);

/** Replaces a leading `~/` with the home folder. */
export function expandHome(
  path: string,
  { home, platform }: { home: string; platform: NodeJS.Platform },
): string {
  if (path === "~") return home;
  const isHome = path.startsWith("~/") || (platform === "win32" && path.startsWith("~\\"));
  return isHome ? pathsOf(platform).join(home, path.slice(2)) : path;
}
