/** Owns: whether a command line is one of npm (`npx`, `npm exec`), and its words. Pure, and small: each start of a server asks it. */

/** A command line of npm without a command shell around it. */
export interface NpmWords {
  /** `npx` or `npm`, as it is written. */
  command: string;
  args: readonly string[];
  /** The first argument is npm's own command, `exec` or `x`. */
  isExec: boolean;
}

const baseName = (command: string): string => command.split(/[\\/]/).at(-1)?.toLowerCase() ?? "";

/** Characters that mean something to the command shell of Windows. */
const FOR_SHELL = /[&|<>^%!"()\r\n]/;

/** Many people write `cmd /c npx ...` for Windows. A line with anything else for the shell is left to the shell. */
function withoutShell(
  command: string,
  args: readonly string[],
): { command: string; args: readonly string[] } {
  const at = args.findIndex((arg) => /^\/c$/i.test(arg));
  const isPlain = at >= 0 && args.slice(0, at).every((arg) => /^\/[dsq]$/i.test(arg));
  if (!/^cmd(?:\.exe)?$/.test(baseName(command)) || !isPlain) return { command, args };
  const rest = args.slice(at + 1);
  if (rest.some((word) => FOR_SHELL.test(word))) return { command, args };
  const [first = "", ...others] = rest.length === 1 ? (rest[0] ?? "").trim().split(/\s+/) : rest;
  return { command: first, args: others };
}

/** The words of a command line of npm; undefined for any other command line. */
export function npmWords(
  command: string,
  args: readonly string[],
  platform: NodeJS.Platform = process.platform,
): NpmWords | undefined {
  const words = platform === "win32" ? withoutShell(command, args) : { command, args };
  const [first] = words.args;
  if (/^npx(?:\.cmd|\.exe)?$/.test(baseName(words.command))) return { ...words, isExec: false };
  const isNpm = /^npm(?:\.cmd|\.exe)?$/.test(baseName(words.command));
  return isNpm && (first === "exec" || first === "x") ? { ...words, isExec: true } : undefined;
}
