/**
 * The identity under which the tools of a server are stored: its definition, and also the session's folder if the
 * same definition starts another program in another folder. Otherwise `node ./server.js` of one project would show
 * the tools that another project's server described. Pure.
 */
import { FOLDER_KEY } from "../../../shared/json.ts";

import { childEnvironment, type Ends, type Env, isWithin } from "../../../shared/programs/find-program.ts";
import { npmWords } from "../../npx/npm-words.ts";
import type { ServerDefinition } from "./definition.ts";
import { inherited } from "./inherit-env.ts";

/** `./x`, `..`, also as the value of `--option=./x`. */
const RELATIVE = /^(?:--?[\w-]+=)?\.{1,2}(?:[/\\]|$)/;
/**
 * `server.js`, `src/main.py`: a program's file. A word that begins with one of these signs does not name a file of
 * the folder.
 */
const PROGRAM = /^[^-@/\\~$!:][^:]*\.(?:[cm]?[jt]sx?|py|rb|sh|php|pl|lua|jar|exe|cmd|bat|ps1|wasm)$/i;
/** The variable that names the folder itself. */
const FOLDER_VARIABLE = /\bPWD\b/;
const ABSOLUTE = /^(?:[/\\~]|[A-Za-z]:[/\\])/;
/** `run .`, `exec .`: the folder holds the program. */
const STARTS_PROGRAM = ["run", "exec", "dlx", "x"];

const textsOf = (value: unknown): string[] =>
  Object.values(typeof value === "object" && value !== null ? value : {}).filter(
    (item) => typeof item === "string",
  );

const isPathInFolder = (text: string): boolean =>
  RELATIVE.test(text) || PROGRAM.test(text) || FOLDER_VARIABLE.test(text);

/** Usually a program works on a folder. If no program is named before the folder, the folder holds the program. */
function isDataFolder(args: readonly string[], at: number): boolean {
  if (!/^\.{1,2}$/.test(args[at] ?? "")) return false;
  const before = args.slice(0, at).filter((arg) => !arg.startsWith("-"));
  const last = before.at(-1);
  return last !== undefined && !STARTS_PROGRAM.includes(last);
}

/** Takes an entry as the file gives it. An absolute `cwd` is the folder of all relative paths. */
function dependsOnFolder({ command, args, env, cwd, socket }: Record<string, unknown>): boolean {
  if (typeof socket === "string") return !WRITTEN_OUT.test(socket);
  if (typeof command !== "string") return false;
  if (typeof cwd === "string" && cwd !== "") {
    if (FOLDER_VARIABLE.test(cwd)) return true;
    return !ABSOLUTE.test(cwd) && !/^[$!{]/.test(cwd);
  }
  const isRelativeCommand = /[/\\]/.test(command) && !ABSOLUTE.test(command) && !/^[$!{]/.test(command);
  if (isRelativeCommand || FOLDER_VARIABLE.test(command)) return true;
  const words = textsOf(args);
  return (
    words.some((word, i) => isPathInFolder(word) && !isDataFolder(words, i)) ||
    textsOf(env).some(isPathInFolder)
  );
}

/** The definition as the cache worker hashes it, with what the settings add to it. */
export function cacheIdentity(
  { project, raw, inheritEnv, sandbox }: Pick<ServerDefinition, "project" | "raw" | "inheritEnv" | "sandbox">,
  cwd: string,
): Record<string, unknown> {
  // The person's words for its tools change nothing that the server says.
  const { [FOLDER_KEY]: _folder, searchKeywords: _words, ...written } = raw;
  const definition = {
    ...written,
    ...(inheritEnv !== undefined && { inheritEnv }),
    ...(sandbox !== undefined && { sandbox }),
  };
  return project || dependsOnFolder(definition) ? { ...definition, [FOLDER_KEY]: cwd } : definition;
}

/** A path from the root or the home folder, without a variable or a command in it. */
const WRITTEN_OUT = /^(?:\/|~[/\\]|~$|[a-z]:[\\/])(?:(?!\$\{|\$env:|\{env:).)*$/is;

type Chosen = Pick<ServerDefinition, "origin" | "project" | "target">;

export function isChosenFolder(
  { origin, project, target }: Chosen,
  where: { session: string; folder: string; platform: NodeJS.Platform },
): boolean {
  const written = target.kind === "stdio" ? target.cwd : undefined;
  // A file of the project may have set this folder.
  if (written === undefined || project) return false;
  // A path from an extension, or from a file of another program, may be the folder in which Pi runs.
  if (origin === "user" && WRITTEN_OUT.test(written)) return true;
  const { session, folder, platform } = where;
  return !isWithin(folder, session, platform) && !isWithin(session, folder, platform);
}

interface EnvironmentFacts {
  /** Environment of this process. */
  base: Env;
  /** The session's folder. */
  session: string;
  home: string;
  platform: NodeJS.Platform;
  /** `endsOf` these. */
  ends: Ends;
  /** Gets the entries of PATH that are left out. Not called if there are none. */
  onLeftOut?: (entries: string[]) => void;
}

/**
 * `command`: of the server. `own`: the variables of the definition, filled in, and others that the server gets in any case.
 * A program of the folder in which Pi runs stands in only for what a project's server names, and never for npm, node or the
 * published package that npx takes.
 */
export const serverEnvironment = (
  {
    definedByProject,
    inheritEnv,
    command,
    args,
  }: Pick<ServerDefinition, "definedByProject" | "inheritEnv"> & { command: string; args: readonly string[] },
  own: Env,
  { base, session, home, platform, ends, onLeftOut }: EnvironmentFacts,
): Record<string, string> =>
  childEnvironment({
    base: inherited(base, inheritEnv, platform),
    own,
    platform,
    independentOf:
      definedByProject && !npmWords(command, args, platform) ? undefined : { cwd: session, home, ends },
    ...(onLeftOut ? { onLeftOut } : {}),
  });
