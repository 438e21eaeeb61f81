/**
 * Whether the commands of a file run once it is written: what Pi loads, and lists of MCP servers, which are followed. Judged
 * where Pi's `write` and `edit` would write it, so the path is brought into their form first (`resolveToCwd` of Pi), then
 * through links.
 */
import { readlink, realpath } from "node:fs/promises";
import { homedir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

export interface WrittenPlace {
  /** Of the session. Relative paths start there. */
  cwd: string;
  agentDir: string;
  /** Absolute paths of the files that servers come from, imported ones included. */
  files: readonly string[];
}

const RUNS = /(?:^|\/)(?:\.pi\/.*|\.?mcp[^/]*\.json\w?|\.claude\.json)$/isu;
const SPACES = /[\u00a0\u2000-\u200a\u202f\u205f\u3000]/g;
const LINKS = 40;

/** Throws if Pi cannot read the path. */
function resolvedByPi(path: string, cwd: string): string {
  let plain = path.replace(SPACES, " ").replace(/^@/, "");
  // Drives as Git Bash, Cygwin and WSL write them.
  if (process.platform === "win32") plain = plain.replace(/^\/(?:mnt\/|cygdrive\/)?([a-z])(?=\/|$)/i, "$1:/");
  if (/^~(?:$|\/|\\)/.test(plain)) plain = join(homedir(), plain.slice(1));
  if (plain.startsWith("file://")) plain = fileURLToPath(plain);
  return resolve(cwd, plain);
}

/** Where the content goes: through links, also those that lead to nothing yet. The path itself if that cannot be said. */
async function throughLinks(path: string, left = LINKS): Promise<string> {
  try {
    return await realpath(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT" || dirname(path) === path) return path;
  }
  const folder = await throughLinks(dirname(path), left);
  const leadsTo = left === 0 ? undefined : await readlink(path).catch(() => undefined);
  return leadsTo === undefined
    ? join(folder, basename(path))
    : throughLinks(resolve(folder, leadsTo), left - 1);
}

/** Without what Windows does not count: the dots, blanks and streams (`mcp.json::$DATA`) behind a name, and the slash. */
const comparable = (path: string): string =>
  path
    .replaceAll("\\", "/")
    .replace(/(?<![. ])[. ]*(?::[^/]*)?(?=\/|$)/g, "")
    .toLowerCase();

export async function runsWhenWritten(
  path: string,
  { cwd, agentDir, files }: WrittenPlace,
): Promise<boolean> {
  let absolute: string;
  try {
    absolute = resolvedByPi(path, cwd);
  } catch {
    return true;
  }
  const targets = [path, absolute, await throughLinks(absolute)].map(comparable);
  const folders = [resolve(agentDir), await throughLinks(resolve(agentDir))].map(
    (folder) => `${comparable(folder)}/`,
  );
  const listed = new Set(
    (await Promise.all(files.map((file) => throughLinks(file)))).concat(files).map(comparable),
  );
  return targets.some(
    (target) =>
      RUNS.test(target) || listed.has(target) || folders.some((folder) => target.startsWith(folder)),
  );
}
