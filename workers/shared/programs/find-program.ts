/**
 * Owns: finding the file of a command. The search follows the system's own rules with one exception: Windows looks
 * into the current folder first, and this search never does. Every program is then started by the whole path that is
 * found here. `findProgram` is pure: a parameter looks at files.
 */
import { access, constants, lstat, stat } from "node:fs/promises";
import { posix, win32 } from "node:path";
import { type Env, valueIn } from "./environment.ts";
import { folderOfEntry, SYSTEM_FOLDERS, splitSearchPath } from "./search-path.ts";

export interface ProgramSearch {
  /** Environment of the process: its PATH and, on Windows, its PATHEXT are read. */
  env: Env;
  /** Folder from which a command with a separator starts, and a relative folder of PATH. */
  cwd: string;
  platform: NodeJS.Platform;
  /** Whether the file can be started. */
  isProgram: (file: string) => Promise<boolean>;
}

/** The list of Windows if PATHEXT is not set. */
const ENDINGS = ".COM;.EXE;.BAT;.CMD";

/** A command with a separator names a file and is not looked for. */
export const namesFile = (command: string, platform: NodeJS.Platform): boolean =>
  platform === "win32" ? /[\\/]|^[a-z]:/i.test(command) : command.includes("/");

/** Endings that may follow a name on Windows, in the order of trying. */
function endingsFor(command: string, { env, platform }: ProgramSearch): string[] {
  if (platform !== "win32") return [""];
  const endings = (valueIn(env, "PATHEXT", platform) || ENDINGS).split(";").filter((e) => e.startsWith("."));
  const isWhole = endings.some((ending) => command.toLowerCase().endsWith(ending.toLowerCase()));
  return isWhole ? ["", ...endings] : endings;
}

function foldersOf({ env, cwd, platform }: ProgramSearch): string[] {
  const { resolve } = platform === "win32" ? win32 : posix;
  const otherwise = platform === "win32" ? "" : SYSTEM_FOLDERS;
  const entries = splitSearchPath(valueIn(env, "PATH", platform) ?? otherwise, platform);
  return entries.map((entry) => resolve(cwd, folderOfEntry(entry, platform)));
}

/** The absolute path of the program; undefined if there is none. */
export async function findProgram(command: string, search: ProgramSearch): Promise<string | undefined> {
  const { cwd, platform, isProgram } = search;
  if (command === "") return undefined;
  const { resolve, join } = platform === "win32" ? win32 : posix;
  const candidates = namesFile(command, platform)
    ? [resolve(cwd, command)]
    : foldersOf(search).map((folder) => join(folder, command));
  const endings = endingsFor(command, search);
  // The exact name comes last, for a script whose first line names the program that runs it.
  const rounds = endings.includes("") ? [endings] : [endings, [""]];
  for (const round of rounds) {
    for (const candidate of candidates) {
      for (const ending of round) if (await isProgram(candidate + ending)) return candidate + ending;
    }
  }
  return undefined;
}

export const isFile = (path: string): Promise<boolean> =>
  stat(path).then(
    (found) => found.isFile(),
    () => false,
  );

const succeeds = (task: Promise<unknown>): Promise<boolean> =>
  task.then(
    () => true,
    () => false,
  );

/**
 * On Windows the name decides, elsewhere the mode. Windows also starts the aliases of programs from its store, such as
 * `python.exe`, although nobody may look at the files behind them.
 */
async function isExecutable(path: string): Promise<boolean> {
  if (process.platform !== "win32") return (await isFile(path)) && succeeds(access(path, constants.X_OK));
  try {
    return (await stat(path)).isFile();
  } catch (error) {
    const isHidden = !["ENOENT", "ENOTDIR"].includes((error as NodeJS.ErrnoException).code ?? "");
    return isHidden && succeeds(lstat(path));
  }
}

/** `findProgram` with the platform and the files of this machine. */
export const findHere = (
  command: string,
  { env, cwd }: Pick<ProgramSearch, "env" | "cwd">,
): Promise<string | undefined> =>
  findProgram(command, { env, cwd, platform: process.platform, isProgram: isExecutable });
