/**
 * What npx's own cache holds for a command, without running npm. Reads folders only, and takes npm's folder from the
 * environment: a setting in a file of npm may name another one, so `absent` is a guess.
 */
import { join } from "node:path";
import { isFolder } from "../../shared/files/file-system.ts";
import { type Env, valueIn } from "../../shared/programs/find-program.ts";
import { parseNpxCommand } from "./command.ts";
import { cacheTree, isComplete, locate } from "./tree.ts";

export interface NpxState {
  /** As the command line writes them. */
  packages: string[];
  /** `broken`: an install was interrupted, or files were removed since. */
  kind: "absent" | "installed" | "broken";
  /** npx's folder for these packages. */
  folder: string;
  /** What is broken about it; empty otherwise. */
  reason: string;
}

export interface NpmHome {
  env: Env;
  home: string;
  platform: NodeJS.Platform;
}

/** npm's cache folder, unless a file of npm's settings names another one. */
export function npmCache({ env, home, platform }: NpmHome): string {
  const set = valueIn(env, "npm_config_cache", platform);
  if (set) return set;
  const local = valueIn(env, "LOCALAPPDATA", platform);
  return platform === "win32" && local ? join(local, "npm-cache") : join(home, ".npm");
}

/** Undefined for a command that is none of npm's, or that only npm understands. Never rejects. */
export async function npxState(
  command: string,
  args: readonly string[],
  npm: NpmHome,
): Promise<NpxState | undefined> {
  const parsed = parseNpxCommand(command, args, npm.platform);
  if (parsed.kind !== "npx") return undefined;
  const { request } = parsed;
  const tree = cacheTree({ cacheDir: npmCache(npm) }, request.packages);
  const folder = join(tree.modules, "..");
  const about = { packages: request.packages.map(({ raw }) => raw), folder };
  if (!(await isFolder(folder))) return { ...about, kind: "absent", reason: "" };
  if (!(await isComplete(tree))) return { ...about, kind: "broken", reason: "its install was interrupted" };
  const binary = await locate(tree, request);
  if ("reason" in binary) return { ...about, kind: "broken", reason: binary.reason };
  return { ...about, kind: "installed", reason: "" };
}
