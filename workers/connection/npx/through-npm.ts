/**
 * How npm itself starts a server whose folder the user did not choose, if only npm can tell what to start: npm runs in
 * its neutral folder and enters the server's folder only for the server. Pure.
 */
import { resolve } from "node:path";
import type { NpmWords } from "./command.ts";
import { settingOf } from "./environment.ts";
import type { NpxLaunch } from "./launch.ts";
import { FOLDER_VARIABLE, type NeutralFolder, NO_WORKSPACES, SHELL_VARIABLE } from "./neutral-folder.ts";
import { RETRY_SOON } from "./npm-words.ts";

const RELATIVE = /^(file:)?(\.{1,2}(?:[\\/].*)?)$/s;
/** A flag that takes no value from the next word. */
const ALONE = /^(?:-y|--yes|-q|--quiet|-s|--silent|--|-.*=.*)$/s;

/** Makes a path that starts from the server's folder absolute, with or without `--flag=` before it. */
function absolute(word: string, cwd: string): string {
  const [flag = "", value = word] = /^(--?[\w-]+=)(.*)$/s.exec(word)?.slice(1) ?? [];
  const [, scheme = "", path] = RELATIVE.exec(value) ?? [];
  return path === undefined ? word : `${flag}${scheme}${resolve(cwd, path)}`;
}

/** A line for npm's shell, which starts in the server's folder. */
const CALL = /^(?:-c|--call)$|^(?:-c|--call)=/;

/**
 * The same command line for npm in another folder: words with which npm finds the program name the same files.
 * Arguments of the server stay as they are.
 */
export function fromFolder(args: readonly string[], cwd: string): string[] {
  let end = 0;
  for (; end < args.length; end++) {
    const before = args[end - 1];
    const mayBeValue = before?.startsWith("-") === true && !ALONE.test(before);
    if (!args[end]?.startsWith("-") && !mayBeValue) break;
  }
  const isCall = (i: number): boolean =>
    CALL.test(args[i] ?? "") || /^(?:-c|--call)$/.test(args[i - 1] ?? "");
  return args.map((arg, i) => (i <= end && !isCall(i) ? absolute(arg, cwd) : arg));
}

/** `program`: the file of `npx` or `npm`. */
export function throughNpm(
  program: string,
  { args, isExec }: NpmWords,
  { cwd, env, neutral }: { cwd: string; env: Record<string, string>; neutral: NeutralFolder },
): NpxLaunch {
  const command = isExec ? args.slice(0, 1) : [];
  const words = [...command, NO_WORKSPACES, ...fromFolder(args.slice(command.length), cwd)];
  if (neutral.shell === undefined)
    return { command: program, args: words, env: { ...RETRY_SOON, ...env }, cwd: neutral.path };
  const isShell = (name: string): boolean => settingOf(name) === "script_shell";
  const own = Object.entries(env).find(([name]) => isShell(name))?.[1] ?? "";
  const others = Object.fromEntries(Object.entries(env).filter(([name]) => !isShell(name)));
  const variables = {
    npm_config_script_shell: neutral.shell,
    [FOLDER_VARIABLE]: cwd,
    [SHELL_VARIABLE]: own.startsWith("/") ? own : "",
  };
  return {
    command: program,
    args: words,
    env: { ...RETRY_SOON, ...others, ...variables },
    cwd: neutral.path,
  };
}
