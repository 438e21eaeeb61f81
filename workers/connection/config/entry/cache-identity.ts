/**
 * What the tools of a server are stored under: its definition, with the session's folder where the same definition is
 * another program in another folder. Otherwise `node ./server.js` of one project would lend the words of its tools to
 * another one. Pure.
 */
import { FOLDER_KEY } from "../../../shared/json/definition-hash.ts";
import type { ServerDefinition } from "./definition.ts";

/** `./x`, `..`, also as the value of `--option=./x`. */
const RELATIVE = /^(?:--?[\w-]+=)?\.{1,2}(?:[/\\]|$)/;
/** `server.js`, `src/main.py`: a program's file. What begins with one of these signs is no file of the folder. */
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

/** A folder itself is mostly what a program works on; it is the program where none was named before it. */
function isDataFolder(args: readonly string[], at: number): boolean {
  if (!/^\.{1,2}$/.test(args[at] ?? "")) return false;
  const before = args.slice(0, at).filter((arg) => !arg.startsWith("-"));
  const last = before.at(-1);
  return last !== undefined && !STARTS_PROGRAM.includes(last);
}

/** `raw`: an entry as the file gives it. An absolute `cwd` is the folder of all that is relative. */
function dependsOnFolder({ command, args, env, cwd }: Record<string, unknown>): boolean {
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

/** The definition as the cache worker hashes it. */
export function cacheIdentity(
  { project, raw }: Pick<ServerDefinition, "project" | "raw">,
  cwd: string,
): Record<string, unknown> {
  const { [FOLDER_KEY]: _, ...definition } = raw;
  return project || dependsOnFolder(definition) ? { ...definition, [FOLDER_KEY]: cwd } : definition;
}
